package inspect

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/coreml/mil"
	"github.com/anepkg/anepkg/coreml/tensor"
	"github.com/anepkg/anepkg/manifest"
)

// checkProgram reports text programs that parse and are inconsistent.
func checkProgram(p *Pass) {
	for _, pt := range p.parts {
		if pt.Role == manifest.Leftover || !verifierFailed(p.pkg, pt) {
			continue
		}
		for _, e := range diagErrors(pt.err, pt.label()) {
			p.ReportError(e).Compare("undefined, repeated or no state", "every name defined once, before its use")
		}
	}
}

// maxProgramText bounds a program that is parsed a second time to tell a
// syntax error from an inconsistency.
const maxProgramText = 256 << 20

// verifierFailed reports whether the part's program follows the grammar and
// only its names do not resolve.
func verifierFailed(pkg *manifest.Package, pt *partView) bool {
	var list diag.List
	if pt.Container != coreml.MLModelC || pt.Path == "" || !errors.As(pt.err, &list) {
		return false
	}
	name := path.Join(pt.Path, "model.mil")
	if f := pkg.File(name); f == nil || f.Bytes > maxProgramText {
		return false
	}
	src, err := fs.ReadFile(pkg.FS, name)
	if err != nil {
		return false
	}
	_, err = mil.Parse(name, src)
	return err == nil
}

// checkStatesEqual compares the declarations of every state.
func checkStatesEqual(p *Pass) {
	type decl struct {
		f  *coreml.Feature
		pt *partView
		fn *coreml.Function
	}
	shared := sharesStates(p.pkg)
	seen := map[string]decl{}
	for _, pt := range p.of(manifest.Chunk, manifest.ChunkRot, manifest.Mono, manifest.PrefillOf) {
		for _, fn := range pt.model.Functions {
			for i := range fn.States {
				s := &fn.States[i]
				key := s.Name
				if !shared {
					key = pt.label() + "#" + s.Name
				}
				first, ok := seen[key]
				if !ok {
					seen[key] = decl{s, pt, fn}
					continue
				}
				if first.f.DType != s.DType || !slices.Equal(first.f.Shape, s.Shape) {
					p.Report(fact(pt, fn, s.Name, 1).pos, "state %s is %s %s in %s %s and %s %s in %s %s", s.Name, s.DType.Long(), tensor.ShapeString(s.Shape), pt.label(), fn.Name,
						first.f.DType.Long(), tensor.ShapeString(first.f.Shape), first.pt.label(), first.fn.Name).
						Compare(s.Shape, first.f.Shape).Also(fact(first.pt, first.fn, s.Name, 1).pos).Fix("use parts of one conversion")
				}
			}
		}
	}
	if shared {
		p.sameStateSets()
	}
}

// sameStateSets: every chunk and function declares the same states, so that
// one state object serves them all.
func (p *Pass) sameStateSets() {
	var want []string
	var where string
	for _, pt := range p.of(manifest.Chunk, manifest.ChunkRot, manifest.Mono) {
		for _, fn := range pt.model.Functions {
			var names []string
			for _, s := range fn.States {
				names = append(names, s.Name)
			}
			slices.Sort(names)
			if where == "" {
				want, where = names, pt.label()+" "+fn.Name
				continue
			}
			if !slices.Equal(names, want) {
				p.Report(fact(pt, fn, "", 1).pos, "%s %s declares the states %s, %s declares %s", pt.label(), fn.Name, listOr(names), where, listOr(want)).
					Compare(names, want).Fix("use parts of one conversion: one state object has to serve all")
			}
		}
	}
}

func listOr(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// hiddenAt returns the width of a hidden-state feature.
func hiddenAt(fs *coreml.Feature) int {
	if fs == nil || len(fs.Shape) != 3 {
		return 0
	}
	return fs.Shape[2]
}

// checkHiddenEqual compares the width of the hidden states across parts.
func checkHiddenEqual(p *Pass) {
	want := p.facts.hidden
	if want.n == 0 {
		p.Skip("no readable program takes hidden states")
		return
	}
	for _, pt := range p.of(manifest.Embeddings, manifest.Chunk, manifest.ChunkRot, manifest.LMHead) {
		for _, fn := range pt.model.Functions {
			for _, name := range []string{"hidden_states", "output_hidden_states", "hidden_states_out", "hidden_in", "hidden"} {
				for _, f := range []*coreml.Feature{fn.Input(name), fn.Output(name)} {
					if n := hiddenAt(f); n > 0 && n != want.n {
						p.Report(fact(pt, fn, name, 1).pos, "%s %s: %s has width %d, %s has %d", pt.label(), fn.Name, name, n, want.source, want.n).
							Compare(n, want.n).Also(want.pos).Fix("use parts of one conversion")
					}
				}
			}
		}
	}
}

// checkContextEqual compares the context of every chunk and function.
func checkContextEqual(p *Pass) {
	want := p.facts.context
	if want.n == 0 {
		p.Skip("no readable program takes a causal mask")
		return
	}
	for _, pt := range p.of(manifest.Chunk, manifest.ChunkRot, manifest.Mono, manifest.PrefillOf) {
		for _, fn := range pt.model.Functions {
			if strings.Contains(fn.Name, "_ctx") {
				continue // context variants of ANEMLL 0.3.6
			}
			name := "causal_mask"
			in := fn.Input(name)
			if full := fn.Input("causal_mask_full"); full != nil {
				in, name = full, "causal_mask_full"
			}
			if in != nil && len(in.Shape) == 4 && in.Shape[3] != want.n && pt.Role != manifest.PrefillOf {
				p.Report(fact(pt, fn, name, 1).pos, "%s %s: %s spans %d positions, %s %d", pt.label(), fn.Name, name, in.Shape[3], want.source, want.n).
					Compare(in.Shape[3], want.n).Also(want.pos)
			}
			p.cacheSpansContext(pt, fn, want)
		}
	}
}

// cacheSpansContext: a full-length KV cache has as many positions as the
// mask.
func (p *Pass) cacheSpansContext(pt *partView, fn *coreml.Function, want number) {
	for _, s := range fn.States {
		role := stateRole(s.Name)
		if len(s.Shape) != 4 || role != roleKV && role != roleGlobal || !p.anemllLike() {
			continue
		}
		if s.Shape[2] != want.n {
			p.Report(fact(pt, fn, s.Name, 1).pos, "%s %s: state %s holds %d positions, the causal mask spans %d", pt.label(), fn.Name, s.Name, s.Shape[2], want.n).
				Compare(s.Shape[2], want.n).Also(want.pos).Fix("convert again with context_length and state_length in config.json: the converter otherwise takes 256 or 512")
		}
	}
}

// checkLayerRanges: the chunks hold every layer exactly once, in order.
func checkLayerRanges(p *Pass) {
	r := p.layers()
	next := 0
	some := false
	for i := range r.Chunks {
		c := &r.Chunks[i]
		if c.view.Role == manifest.ChunkRot {
			continue
		}
		if c.First < 0 {
			p.Skip("the layers of %s are not known", c.Part)
			return
		}
		some = true
		if c.First != next {
			p.Report(firstFunction(c.view), "chunk %d of %d holds layers %d to %d (by %s), want it to begin at layer %d", c.Chunk, c.Of, c.First, c.Last, c.Source, next).
				Compare(c.First, next).Fix("put the chunks of one conversion into their order")
		}
		next = c.Last + 1
	}
	if !some {
		p.Skip("no decoder part")
		return
	}
	p.slotsComplete(r)
}

// firstFunction is where the part's first function begins.
func firstFunction(pt *partView) diag.Pos {
	if pt.model == nil || len(pt.model.Functions) == 0 {
		return diag.In(programFile(pt))
	}
	return fact(pt, pt.model.Functions[0], "", 1).pos
}

func programFile(pt *partView) string {
	if pt.model != nil {
		return pt.model.ProgramFile
	}
	return pt.label()
}

// slotsComplete: in a plain cache of 2n slots every layer writes its own.
func (p *Pass) slotsComplete(r *LayersReport) {
	if !p.anemllLike() {
		return
	}
	for _, s := range p.states(r).States {
		if s.Role != roleKV || len(s.Shape) != 4 || len(s.Layers) == 0 {
			continue
		}
		if n := s.Shape[0] / 2; n != len(s.Layers) {
			p.Report(diag.In(s.Parts[0].Part), "state %s has room for %d attention layers, %d layers of the chunks write it", s.Name, n, len(s.Layers)).
				Compare(len(s.Layers), n).Fix("fetch the missing chunk, and use chunks of one conversion")
		}
	}
	seen := map[stateSlot]int{}
	for _, l := range r.Layers {
		if l.KVSlot == nil || l.SharesWith != nil || l.state == "" {
			continue
		}
		key := stateSlot{l.state, *l.KVSlot}
		if l.Type == "linear" {
			continue
		}
		if first, dup := seen[key]; dup {
			p.Report(diag.In(l.part), "layers %d and %d both write slot %d of state %s", first, l.Index, *l.KVSlot, l.state).Compare(*l.KVSlot, "a slot of its own")
		}
		seen[key] = l.Index
	}
}

// contract is what a chunk's function must take: the sequence length it is
// called with.
func checkChunkContract(p *Pass) {
	for _, pt := range p.of(manifest.Chunk, manifest.ChunkRot) {
		need := []string{"infer", "prefill"}
		if pt.Role == manifest.ChunkRot {
			need = []string{"infer_rotate", "prefill_rotate"}
		}
		for _, name := range need {
			if pt.model.Function(name) == nil {
				f := p.Report(diag.In(pt.model.ProgramFile), "%s has no function %s", pt.label(), name).Compare(functionNames(pt.model), need)
				if b, _ := p.pkg.Params.Bool("infer_only"); b && strings.HasPrefix(name, "prefill") {
					f.As(Note)
				} else if !b && strings.HasPrefix(name, "prefill") && p.pkg.Kind == manifest.ANEMLL {
					f.As(Warning)
				}
			}
		}
		for _, fn := range pt.model.Functions {
			p.chunkFunction(pt, fn)
		}
	}
}

func functionNames(m *coreml.Model) []string {
	var out []string
	for _, f := range m.Functions {
		out = append(out, f.Name)
	}
	return out
}

func (p *Pass) chunkFunction(pt *partView, fn *coreml.Function) {
	in := fn.Input("hidden_states")
	if in == nil {
		p.Report(fact(pt, fn, "", 1).pos, "%s %s has no input hidden_states", pt.label(), fn.Name).Compare("absent", "hidden_states")
		return
	}
	if len(in.Shape) != 3 || in.Shape[1] < 0 {
		return
	}
	t := in.Shape[1]
	if strings.HasPrefix(fn.Name, "infer") && t != 1 {
		p.Report(fact(pt, fn, in.Name, 1).pos, "%s %s takes %d tokens, want 1", pt.label(), fn.Name, t).Compare(t, 1)
	}
	if strings.HasPrefix(fn.Name, "prefill") && p.facts.batch.n > 0 && t != p.facts.batch.n {
		p.Report(fact(pt, fn, in.Name, 1).pos, "%s %s takes %d tokens, %s %d", pt.label(), fn.Name, t, p.facts.batch.source, p.facts.batch.n).
			Compare(t, p.facts.batch.n).Also(p.facts.batch.pos)
	}
	for _, c := range []struct {
		name  string
		shape []int
	}{{"position_ids", []int{t}}, {"current_pos", []int{1}}, {"causal_mask", []int{1, 1, t, -1}}} {
		x := fn.Input(c.name)
		if x == nil {
			if c.name != "position_ids" {
				p.Report(fact(pt, fn, "", 1).pos, "%s %s has no input %s", pt.label(), fn.Name, c.name).Compare("absent", c.name)
			}
			continue
		}
		if !tensor.Compatible(x.Shape, c.shape) {
			p.Report(fact(pt, fn, c.name, 1).pos, "%s %s: %s has shape %s, want %s for %d tokens", pt.label(), fn.Name, c.name, tensor.ShapeString(x.Shape), tensor.ShapeString(c.shape), t).
				Compare(x.Shape, c.shape)
		}
	}
	p.chunkOutput(pt, fn, t)
}

// chunkOutput checks the shape of the hidden states that a chunk gives.
func (p *Pass) chunkOutput(pt *partView, fn *coreml.Function, t int) {
	out := fn.Output("output_hidden_states")
	if out == nil && len(fn.Outputs) > 0 {
		out = &fn.Outputs[0]
	}
	if out == nil || len(out.Shape) != 3 || out.Shape[1] < 0 {
		return
	}
	last := pt.Chunk == pt.Of
	want := t
	if last && strings.HasPrefix(fn.Name, "prefill") {
		want = 1
	}
	if out.Shape[1] == want {
		return
	}
	f := p.Report(fact(pt, fn, "", 1).pos, "%s %s gives %s, want [1, %d, %d]", pt.label(), fn.Name, tensor.ShapeString(out.Shape), want, p.facts.hidden.n).
		Compare(out.Shape, []int{1, want, p.facts.hidden.n})
	if last && strings.HasPrefix(fn.Name, "prefill") {
		if b, _ := p.pkg.Params.Bool("prefill_last_token_output"); b {
			f.Also(p.posOf("prefill_last_token_output")).Fix("convert the last chunk again: with prefill_last_token_output it gives the last token only")
		} else {
			f.As(Warning).On(anemllSwift).Fix("convert again with ANEMLL 0.3.5; 0.1.1 made packages like this")
		}
	}
}
