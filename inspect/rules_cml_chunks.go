package inspect

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/coreml/tensor"
	"github.com/anepkg/anepkg/manifest"
)

// missingPrefill reports a prefill set of which only some files are there:
// the runtime looks at the first one and needs all four (coreml-llm.md A3).
func (p *Pass) missingPrefill() {
	have := map[int]*partView{}
	for _, pt := range p.parts {
		if pt.Role == manifest.PrefillOf && pt.Chunk > 0 {
			have[pt.Chunk] = pt
		}
	}
	if p.pkg.Layout != manifest.KVIO || len(have) == 0 {
		return
	}
	for n := 1; n <= 4; n++ {
		if have[n] != nil {
			continue
		}
		name := fmt.Sprintf("prefill_chunk%d.mlmodelc", n)
		first := have[slices.Min(slices.Collect(maps.Keys(have)))]
		p.Report(diag.In(path.Join(path.Dir(first.Path), name)), "%s is missing: %s of the 4 prefill chunks are there, and the runtime feeds prompts token by token without a word", name, strconv.Itoa(len(have))).
			Compare("absent", name).Also(diag.In(first.Path)).Fix("copy or fetch %s, or delete the other prefill chunks", name)
	}
}

// ownLayers counts the layers of a chunk that have a cache slot of their own.
func (v *view) ownLayers(chunk int) (sliding, full int, known bool) {
	for _, l := range v.layers().Layers {
		if l.Chunk != chunk {
			continue
		}
		known = true
		switch {
		case l.SharesWith != nil || l.KVSlot == nil:
		case l.Type == "sliding":
			sliding++
		case l.Type == "full":
			full++
		}
	}
	return sliding, full, known
}

// checkPrefillOutputs: a prefill chunk gives the keys and values of the
// layers whose caches its decode chunk holds.
func checkPrefillOutputs(p *Pass) {
	parts := slices.DeleteFunc(p.of(manifest.PrefillOf), func(pt *partView) bool { return pt.Chunk == 0 })
	if p.pkg.Layout != manifest.KVIO || len(parts) == 0 {
		p.Skip("no prefill chunks of the layout kv-io")
		return
	}
	batch := number{}
	for _, pt := range parts {
		if only := pt.fn(""); pt.fn("prefill") == nil && only != nil { // one size
			if n := sequenceLength(pt, only); batch.n == 0 {
				batch = n
			} else if n.n > 0 && n.n != batch.n {
				p.Report(n.pos, "%s takes %d tokens, %s has %d: the runtime feeds all prefill chunks the same ones", pt.label(), n.n, batch.source, batch.n).Compare(n.n, batch.n).Also(batch.pos).
					Fix("use prefill chunks of one size")
			}
		}
		sliding, full, known := p.ownLayers(pt.Chunk)
		for _, fn := range pt.model.Functions {
			keys, values := numbered(fn, "K"), numbered(fn, "V")
			producers := 0
			if fn.Output("kv13_k") != nil {
				producers = 2
			}
			want := sliding + full - producers
			at := fact(pt, fn, "", 1).pos
			switch {
			case keys != values || !consecutive(fn, "K", keys) || !consecutive(fn, "V", values):
				p.Report(at, "%s gives %d keys and %d values, want K0 to Kn and V0 to Vn without a gap", pt.label(), keys, values).Compare(featureNames(fn.Outputs), "K0, V0, ...")
			case known && want >= 0 && keys != want:
				p.Report(at, "%s gives the keys and values of %s, chunk %d has %d with a cache slot of their own: the runtime stops with predictionFailed", pt.label(), plural(keys, "layer"), pt.Chunk, want).
					Compare(keys, want).Fix("convert the prefill chunks again from the same checkpoint")
			}
			p.prefillRows(pt, fn)
		}
	}
}

func numbered(fn *coreml.Function, letter string) int {
	n := 0
	for _, o := range fn.Outputs {
		if rest, ok := strings.CutPrefix(o.Name, letter); ok {
			if _, err := strconv.Atoi(rest); err == nil {
				n++
			}
		}
	}
	return n
}

func consecutive(fn *coreml.Function, letter string, n int) bool {
	for i := range n {
		if fn.Output(letter+strconv.Itoa(i)) == nil {
			return false
		}
	}
	return true
}

// prefillRows: keys and values have one row for each token of the call.
func (p *Pass) prefillRows(pt *partView, fn *coreml.Function) {
	t := sequenceLength(pt, fn)
	for i := range fn.Outputs {
		o := &fn.Outputs[i]
		kv := strings.HasPrefix(o.Name, "K") || strings.HasPrefix(o.Name, "V") || strings.HasPrefix(o.Name, "kv1")
		if kv && t.n > 0 && len(o.Shape) == 4 && o.Shape[2] > 0 && o.Shape[2] != t.n {
			p.Report(fact(pt, fn, "", 1).pos, "%s takes %d tokens and gives %s %s", pt.label(), t.n, o.Name, tensor.ShapeString(o.Shape)).Compare(o.Shape[2], t.n).Also(t.pos)
			return
		}
	}
}

// checkVerifySet: the functions of speculative decoding have the schema that
// the runtime reads, and its hard-coded cache layout.
func checkVerifySet(p *Pass) {
	some := false
	tokens := map[int]string{}
	for _, pt := range p.of(manifest.Chunk) {
		for _, fn := range pt.model.Functions {
			if !strings.HasPrefix(fn.Name, "verify") {
				continue
			}
			some = true
			at := fact(pt, fn, "", 1).pos
			for _, bad := range []string{"K_sliding_new", "kv13_k_out", "token_logits"} {
				if fn.Output(bad) != nil {
					p.Report(at, "%s %s gives %s: the schema of build_eagle3_verify.py, on which the runtime crashes", pt.label(), fn.Name, bad).
						Compare(bad, "new_K_sliding, kv13_k").Fix("convert with build_verify_chunks.py")
				}
			}
			if fn.Output("new_K_sliding") == nil && fn.Input("K_sliding_in") != nil && fn.Output("K_sliding_new") == nil {
				p.Report(at, "%s %s takes a cache and gives no new_K_sliding", pt.label(), fn.Name).Compare(featureNames(fn.Outputs), "new_K_sliding")
			}
			if n := sequenceLength(pt, fn).n; n > 0 {
				tokens[n] = pt.label()
			}
			p.verifySlots(pt, fn)
		}
	}
	if len(tokens) > 1 {
		p.Report(diag.In(p.of(manifest.Chunk)[0].label()), "the verify functions of the chunks take different numbers of tokens: %v", slices.Sorted(maps.Keys(tokens))).Compare(slices.Sorted(maps.Keys(tokens)), "one number").
			Fix("convert all chunks with the same K")
	}
	if !some {
		p.Skip("no verify function")
	}
}

// verifySlots: the runtime copies accepted rows into 7/1 and 5/2 slots of one
// head, whatever the model has.
func (p *Pass) verifySlots(pt *partView, fn *coreml.Function) {
	hard := map[int][2]int{1: {7, 1}, 2: {5, 2}}
	want, ok := hard[pt.Chunk]
	s, f := fn.Output("new_K_sliding"), fn.Output("new_K_full")
	if !ok || s == nil || f == nil || len(s.Shape) != 4 || len(f.Shape) != 4 {
		return
	}
	if s.Shape[0] != want[0] || f.Shape[0] != want[1] || s.Shape[1] != 1 {
		p.Report(fact(pt, fn, "", 1).pos, "%s %s has %d sliding and %d full slots of %s; the runtime's commitKVSlices copies %d and %d of one head, whatever the model is", pt.label(), fn.Name, s.Shape[0], f.Shape[0], plural(s.Shape[1], "head"), want[0], want[1]).
			As(Warning).On(coremlLLM).Compare([]int{s.Shape[0], f.Shape[0], s.Shape[1]}, []int{want[0], want[1], 1}).Fix("decode token by token; speculative decoding works with Gemma 4 E2B only")
	}
}

// checkCaches compares the caches of CoreML-LLM chunks, inputs or states,
// with the context, the window and the layers.
func checkCaches(p *Pass) {
	some := false
	for _, pt := range p.of(manifest.Chunk, manifest.Mono) {
		for _, fn := range pt.model.Functions {
			for k := range fn.Inputs {
				in := &fn.Inputs[k]
				some = p.cacheInput(pt, fn, in) || some
			}
			for k := range fn.States {
				some = p.cacheState(pt, fn, &fn.States[k]) || some
			}
		}
		p.cacheSlots(pt)
	}
	if !some {
		p.Skip("no cache is an input or a state")
	}
}

// cacheInput checks one input that is a cache or a mask over it.
func (p *Pass) cacheInput(pt *partView, fn *coreml.Function, in *coreml.Feature) bool {
	want := p.facts.context
	switch in.Name {
	case "K_full_in", "V_full_in", "kv14_k", "kv14_v", "update_mask", "update_indicator":
	case "K_sliding_in", "V_sliding_in", "kv13_k", "kv13_v":
		want = p.slidingMask()
	default:
		return false
	}
	if len(in.Shape) == 4 && want.n > 0 && in.Shape[2] > 0 && in.Shape[2] != want.n {
		p.Report(fact(pt, fn, in.Name, 1).pos, "%s %s: %s holds %d positions, %s has %d", pt.label(), fn.Name, in.Name, in.Shape[2], want.source, want.n).
			Compare(in.Shape[2], want.n).Also(want.pos).Fix("use chunks of one conversion")
	}
	if out := fn.Output(strings.TrimSuffix(in.Name, "_in") + "_out"); out != nil && strings.HasSuffix(in.Name, "_in") && !tensor.Compatible(out.Shape, in.Shape) {
		p.Report(fact(pt, fn, in.Name, 1).pos, "%s %s: %s is %s and comes back as %s %s; the runtime feeds it again", pt.label(), fn.Name, in.Name, tensor.ShapeString(in.Shape), out.Name, tensor.ShapeString(out.Shape)).
			Compare(out.Shape, in.Shape)
	}
	return true
}

// slidingMask is the window by the sliding mask.
func (p *Pass) slidingMask() number {
	for _, pt := range p.of(manifest.Chunk) {
		if f := pt.fn("infer"); f != nil {
			if in := f.Input("causal_mask_sliding"); in != nil && len(in.Shape) == 4 {
				return fact(pt, f, in.Name, in.Shape[3])
			}
		}
	}
	return number{}
}

// cacheState checks a state that is a cache: positions, pairs, element type.
func (p *Pass) cacheState(pt *partView, fn *coreml.Function, s *coreml.Feature) bool {
	want := p.facts.context
	switch stateRole(s.Name) {
	case roleLocal:
		want = p.slidingMask()
	case roleKV, roleGlobal:
	default:
		return false
	}
	if len(s.Shape) != 4 {
		return false
	}
	at := fact(pt, fn, s.Name, 1).pos
	if want.n > 0 && s.Shape[2] > 0 && s.Shape[2] != want.n {
		p.Report(at, "%s %s: state %s holds %d positions, %s has %d", pt.label(), fn.Name, s.Name, s.Shape[2], want.source, want.n).Compare(s.Shape[2], want.n).Also(want.pos).
			Fix("use chunks of one conversion")
	}
	if s.Shape[0]%2 != 0 {
		p.Report(at, "%s %s: state %s has %d slots, want an even number: a key and a value for each layer", pt.label(), fn.Name, s.Name, s.Shape[0]).Compare(s.Shape[0], "an even number")
	}
	if s.DType != tensor.FP16 {
		p.Report(at, "%s %s: state %s is %s, want float16", pt.label(), fn.Name, s.Name, s.DType.Long()).Compare(s.DType.Long(), "float16")
	}
	return true
}

// cacheSlots: a chunk of the layout kv-io has a slot for each of its own
// layers, and one unused full slot where it has no full layer.
func (p *Pass) cacheSlots(pt *partView) {
	fn := pt.fn("infer")
	if p.pkg.Layout != manifest.KVIO || fn == nil {
		return
	}
	sliding, full, known := p.ownLayers(pt.Chunk)
	for _, c := range []struct {
		name string
		want int
	}{{"K_sliding_in", sliding}, {"K_full_in", max(1, full)}} {
		in := fn.Input(c.name)
		if own := map[string]int{"K_sliding_in": sliding, "K_full_in": full}[c.name]; known && in == nil && own > 0 && len(fn.States) == 0 {
			p.Report(fact(pt, fn, "", 1).pos, "%s: by model_config.json %d of its layers keep a cache in %s, which the chunk does not take", pt.label(), own, c.name).Compare("absent", c.name).Also(p.posOf("num_kv_shared_layers")).
				Fix("compare layer_types and num_kv_shared_layers with the checkpoint")
		}
		if known && in != nil && len(in.Shape) == 4 && in.Shape[0] > 0 && in.Shape[0] != c.want {
			p.Report(fact(pt, fn, c.name, 1).pos, "%s: %s has %d slots, its layers need %d", pt.label(), c.name, in.Shape[0], c.want).Compare(in.Shape[0], c.want).
				Fix("compare layer_types and num_kv_shared_layers with the checkpoint; the copy after prefill goes to wrong slots otherwise")
		}
	}
}
