package inspect

import (
	"fmt"
	"path"
	"strings"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/coreml/mil"
	"github.com/anepkg/anepkg/coreml/tensor"
	"github.com/anepkg/anepkg/manifest"
)

// maxPhoneLayers is how many layers a model compiled on a Mac may have before
// iPhones were seen to refuse it (coreml-llm.md B42).
const maxPhoneLayers = 30

// checkWholeCompiled: a whole large model that was compiled on a Mac.
func checkWholeCompiled(p *Pass) {
	for _, pt := range p.usable() {
		if pt.Container != coreml.MLModelC || !pt.decoder() || pt.Role == manifest.Chunk && pt.Of > 1 {
			continue
		}
		if n := p.layers().NumLayers; n > maxPhoneLayers {
			p.Report(diag.In(programFile(pt)), "%s holds all %d layers and was compiled on a Mac: iPhones are reported to refuse it (\"must re-compile the E5 bundle\")", pt.label(), n).On(iPhones...).
				Compare(n, maxPhoneLayers).Fix("ship the .mlpackage, which the phone compiles itself, or convert into chunks")
		}
	}
}

// checkDrafter: the drafter takes values transposed against the chunks.
func checkDrafter(p *Pass) {
	var drafter *partView
	for _, pt := range p.usable() {
		if strings.HasPrefix(path.Base(pt.Path), "mtp_drafter.") {
			drafter = pt
		}
	}
	if drafter == nil {
		p.Skip("no mtp_drafter")
		return
	}
	fn := drafter.fn("")
	for _, pt := range p.of(manifest.Chunk) {
		give := pt.fn("infer")
		if give == nil || fn == nil {
			continue
		}
		for _, name := range []string{"kv13_k", "kv14_k", "kv13_v", "kv14_v"} {
			in, out := fn.Input(name), give.Output(name)
			if in == nil || out == nil || len(in.Shape) != 4 || len(out.Shape) != 4 {
				continue
			}
			at := fact(drafter, fn, name, 1).pos
			turned := []int{out.Shape[0], out.Shape[1], out.Shape[3], out.Shape[2]}
			switch {
			case tensor.Compatible(in.Shape, out.Shape):
			case tensor.Compatible(in.Shape, turned):
				p.Report(at, "%s takes %s as %s, %s gives %s: the last two axes are exchanged, and the caller must transpose", drafter.label(), name, tensor.ShapeString(in.Shape), pt.label(), tensor.ShapeString(out.Shape)).
					Compare(in.Shape, out.Shape).Fix("transpose %s before the call of the drafter", name)
			default:
				p.Report(at, "%s takes %s as %s, %s gives %s", drafter.label(), name, tensor.ShapeString(in.Shape), pt.label(), tensor.ShapeString(out.Shape)).As(Warning).On(coremlLLM).
					Compare(in.Shape, out.Shape).Fix("use the drafter that was made for this package")
			}
		}
	}
}

// checkExperts: a gather over a table of matrices, as sparse experts have.
func checkExperts(p *Pass) {
	for _, s := range p.sites(func(pt *partView, ix *program, op *mil.Op) (string, bool) {
		if op.Type != "gather" || !pt.decoder() {
			return "", false
		}
		t, ok := ix.typeOf(op, "x")
		d := ix.defs[ref(op, "x")]
		return tensor.ShapeString(t.Shape), ok && d != nil && d.IsConst() && longAxes(t.Shape) >= 3 && ix.operand(op, "indices") == nil
	}) {
		p.Report(s.pos(), "function %s of %s picks weights of shape %s at run time: reported as 46 ms a layer on the Neural Engine (%s)", s.fn, s.pt.label(), s.note, plural(s.count, "op")).
			Compare("gather of weights", "all experts computed").Fix("compute all experts and weight them (seed format, qwen3_5_moe)")
	}
}

// checkPhonePrefill: 4-bit prefill chunks of Gemma 4 E4B.
func checkPhonePrefill(p *Pass) {
	const hiddenE4B = 2560
	if p.pkg.Layout != manifest.KVIO || p.facts.hidden.n != hiddenE4B {
		p.Skip("not chunks of Gemma 4 E4B")
		return
	}
	for _, pt := range p.of(manifest.PrefillOf) {
		for _, w := range pt.weights {
			if strings.HasPrefix(w.Kind, "lut") && w.Bits == 4 {
				p.Report(pt.position(w.Op.Pos), "%s has 4-bit weights: prefill chunks of Gemma 4 E4B are reported to give unusable text on iPhones", pt.label()).On(iPhones...).
					Compare(w.Bits, "no prefill chunks").Fix("leave the prefill chunks out of a package for iPhones")
				return
			}
		}
	}
}

// checkWideConv: very many output channels in one convolution.
func checkWideConv(p *Pass) {
	const limit = 32768
	for _, s := range p.sites(func(_ *partView, ix *program, op *mil.Op) (string, bool) {
		t, ok := ix.typeOf(op, "weight")
		return fmt.Sprint(leading(t.Shape)), op.Type == "conv" && ok && leading(t.Shape) > limit
	}) {
		p.Report(s.pos(), "function %s of %s: a convolution has %s output channels; more than %d are reported to be refused by one source, and to be fastest in one piece on an iPhone 17 Pro by another", s.fn, s.pt.label(), s.note, limit).
			Compare(s.note, limit).Fix("measure it, or split the head")
	}
}

func leading(shape []int) int {
	if len(shape) == 0 {
		return 0
	}
	return shape[0]
}

// checkCoarsePalette: 4 bits with one table for a whole matrix.
func checkCoarsePalette(p *Pass) {
	for _, pt := range p.usable() {
		n := 0
		var site *Weight
		for _, w := range pt.weights {
			if w.Kind == "lut" && w.Bits == 4 && w.Elements >= 1<<10 && len(w.Type.Shape) > 0 && (w.GroupSize <= 0 || w.GroupSize >= w.Type.Shape[0]) && w.Type.Shape[0] > 32 {
				if n++; site == nil {
					site = w
				}
			}
		}
		if n > 0 {
			p.Report(pt.position(site.Op.Pos), "one 4-bit table for the whole matrix in %s of %s: such packages are reported to diverge from their source", plural(n, "weight"), pt.label()).
				Compare("one table", "a table for 8 channels").Fix("compare the package with its source (anepkg compare), or palettize in groups of 8 channels")
		}
	}
}

// checkSigmoid: the engine's own sigmoid is a coarse approximation.
func checkSigmoid(p *Pass) {
	for _, s := range p.sites(func(pt *partView, _ *program, op *mil.Op) (string, bool) {
		return op.Type, pt.decoder() && (op.Type == "sigmoid" || op.Type == "silu")
	}) {
		p.Report(s.pos(), "the Neural Engine's sigmoid, whose error is up to 0.015, in %s of %s (first: %s in function %s)", plural(s.count, "op"), s.pt.label(), s.note, s.fn).
			Compare(s.note, "tanh").Fix("write silu as x (0.5 + 0.5 tanh(x / 2))")
	}
}

// checkSplitUpdates: keys and values of one slot written one after the other.
func checkSplitUpdates(p *Pass) {
	some := false
	for _, pt := range p.of(manifest.Chunk) {
		for _, f := range pt.model.Functions {
			ix := pt.program(f.Name)
			for _, s := range f.States {
				if role := stateRole(s.Name); role != roleLocal && role != roleGlobal || len(s.Shape) != 4 || p.pkg.Layout != manifest.ChunkedGemma4 {
					continue
				}
				some = true
				if s.Shape[1] != 2 {
					continue // more than one head
				}
				count := map[int]int{}
				for _, w := range ix.stateWrites() {
					if w.state != s.Name {
						continue
					}
					if count[w.slot]++; count[w.slot] == 2 {
						p.Report(pt.position(w.op.Pos), "function %s of %s writes slot %d of %s in two steps; with one key-value head the Neural Engine's compiler fails", f.Name, pt.label(), w.slot, s.Name).On("ane").
							Compare(2, 1).Fix("join keys and values, and write them with one slice_update")
						break
					}
				}
			}
		}
	}
	if !some {
		p.Skip("no joint caches of gemma4")
	}
}

// checkRouter: a compressed router chooses other experts.
func checkRouter(p *Pass) {
	some := false
	for _, pt := range p.usable() {
		for _, w := range pt.weights {
			name := strings.ToLower(w.Name)
			if !strings.Contains(name, "router") {
				continue
			}
			some = true
			if w.Kind != "dense" {
				p.Report(pt.position(w.Op.Pos), "%s of %s is compressed (%s, %d bits): small differences flip the choice of experts", w.Name, pt.label(), w.Kind, w.Bits).
					Compare(w.Kind, "dense").Fix("leave the router in fp16")
			}
		}
	}
	if !some {
		p.Skip("no router of experts")
	}
}

// checkNarrowRecurrent: 4 bits in models whose states carry errors on.
func checkNarrowRecurrent(p *Pass) {
	recurrent := p.pkg.Layout == manifest.ChunkedRecurrent || p.pkg.Layout == manifest.MLKV
	conv := false
	for _, pt := range p.usable() {
		for _, f := range pt.model.Functions {
			conv = conv || f.Input("conv_state_in") != nil
		}
	}
	if !recurrent && !conv {
		p.Skip("no recurrent layers")
		return
	}
	for _, pt := range p.usable() {
		if !pt.decoder() {
			continue
		}
		n := 0
		var site *Weight
		for _, w := range pt.weights {
			if w.Kind != "dense" && w.Bits > 0 && w.Bits <= 4 && w.Elements > 1<<10 {
				if n++; site == nil {
					site = w
				}
			}
		}
		if n > 0 {
			p.Report(pt.position(site.Op.Pos), "weights of %d bits in %s of %s: recurrent layers carry the error on (Qwen3.5: the top 3 agree in 80 %% instead of 100 %%)", site.Bits, plural(n, "place"), pt.label()).
				Compare(site.Bits, "6 or 8").Fix("use 6 or 8 bits for the recurrent layers")
		}
	}
}

// checkBlendedCache: a cache that is multiplied by a mask as a whole.
func checkBlendedCache(p *Pass) {
	for _, s := range p.sites(func(_ *partView, ix *program, op *mil.Op) (string, bool) {
		state := ref(op, "input")
		if role := stateRole(state); op.Type != "write_state" || role == roleRecurrent || role == roleConv {
			return "", false
		}
		return state, ix.blends(ref(op, "data"), state, 0)
	}) {
		p.Report(s.pos(), "function %s of %s writes the whole cache %s for each token, blended by a mask: safe, and twice the cache in memory traffic (%s)", s.fn, s.pt.label(), s.note, plural(s.count, "write")).
			Compare("cache * (1 - mask) + new * mask", "slice_update").Fix("write the new rows with slice_update at current_pos")
	}
}

// blends reports whether a value is a sum with a product of the state's old
// value.
func (p *program) blends(name, state string, depth int) bool {
	op := p.defs[name]
	if op == nil || depth > 6 {
		return false
	}
	switch op.Type {
	case "add":
		for _, side := range []string{"x", "y"} {
			if m := p.defs[ref(op, side)]; m != nil && m.Type == "mul" && (p.ofState(ref(m, "x"), state, 0) || p.ofState(ref(m, "y"), state, 0)) {
				return true
			}
		}
	case "concat":
		for _, b := range op.Operand("values") {
			if p.blends(b.Ref, state, depth+1) {
				return true
			}
		}
	case "slice_update":
		return p.blends(ref(op, "update"), state, depth+1)
	case "reshape", "expand_dims", "squeeze", "identity":
		return p.blends(ref(op, "x"), state, depth+1)
	}
	return false
}

// ofState reports whether a value is the state or a part of it.
func (p *program) ofState(name, state string, depth int) bool {
	op := p.defs[name]
	if op == nil || depth > 6 {
		return false
	}
	switch op.Type {
	case "read_state":
		return ref(op, "input") == state
	case "slice_by_index", "slice_by_size", "expand_dims", "squeeze", "identity", "slice_update":
		return p.ofState(ref(op, "x"), state, depth+1)
	}
	return false
}

// checkOldestANEMLL names the release of ANEMLL that a package needs.
func checkOldestANEMLL(p *Pass) {
	need, why := "", ""
	raise := func(version, reason string) {
		if version > need {
			need, why = version, reason
		}
	}
	for _, key := range []string{"argmax_in_model", "split_rotate", "update_mask_prefill", "single_cache"} {
		if b, _ := p.pkg.Params.Bool(key); b {
			raise("0.3.5", key)
		}
	}
	if p.pkg.Layout == manifest.Monolithic {
		raise("0.3.5", "one monolithic model")
	}
	for _, pt := range p.usable() {
		for _, f := range pt.model.Functions {
			switch {
			case strings.Contains(f.Name, "_ctx"):
				raise("0.3.6", "the function "+f.Name)
			case strings.HasSuffix(f.Name, "_rotate"):
				raise("0.3.5", "the function "+f.Name)
			}
		}
	}
	switch {
	case p.pkg.Layout == manifest.ChunkedRecurrent || p.pkg.Layout == manifest.ChunkedGemma4:
		p.Report(diag.In(p.pkg.ConfigFile), "no release of ANEMLL up to 0.3.6 runs packages of layout %s", p.pkg.Layout).Compare(string(p.pkg.Layout), "chunked").
			Fix("use a runtime of the seed format, such as anepkg run")
	case need != "":
		p.Report(diag.In(p.pkg.ConfigFile), "the package needs ANEMLL %s or newer: %s", need, why).Compare(need, "any release")
	}
}
