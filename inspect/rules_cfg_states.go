package inspect

import (
	"slices"

	"github.com/anepkg/anepkg/coreml/tensor"
	"github.com/anepkg/anepkg/manifest"
)

// checkClaimedStates compares meta.yaml's states with the programs.
func checkClaimedStates(p *Pass) {
	list := p.pkg.Params.Get("states")
	if list == nil {
		p.Skip("states is not claimed")
		return
	}
	if len(p.unreadable(manifest.Chunk)) > 0 && len(p.of(manifest.Chunk)) == 0 {
		p.Skip("no chunk is readable")
		return
	}
	layers := p.layers()
	have := p.states(layers)
	claimed := map[string]bool{}
	for i := range list.Elems {
		e := &list.Elems[i]
		name, _ := e.Member("name").Str()
		claimed[name] = true
		var s *StateInfo
		for k := range have.States {
			if have.States[k].Name == name {
				s = &have.States[k]
			}
		}
		if s == nil {
			p.Report(e.Pos, "state %q is claimed; no program declares it", name).Compare(name, stateNames(have)).Fix("write the states that the programs declare")
			continue
		}
		if dims, ok := e.Member("shape").Ints(); !ok || !slices.Equal(dims, s.Shape) {
			p.Report(e.Member("shape").At(e.Pos), "state %s has shape %s here, %s in the programs", name, tensor.ShapeString(dims), tensor.ShapeString(s.Shape)).
				Compare(dims, s.Shape).Fix("write the shape of the programs")
		}
		if d, ok := e.Member("dtype").Str(); ok && d != s.DType {
			if t, known := tensor.ParseDType(d); !known || t.Long() != s.DType {
				p.Report(e.Member("dtype").Pos, "state %s has dtype %s here, %s in the programs", name, d, s.DType).Compare(d, s.DType)
			}
		}
		if ls, ok := e.Member("layers").Ints(); ok && len(s.Layers) > 0 && !slices.Equal(ls, s.Layers) && p.complete(layers) {
			p.Report(e.Member("layers").Pos, "state %s belongs to layers %s here; in the programs layers %s write it", name, intRanges(ls), intRanges(s.Layers)).
				Compare(ls, s.Layers)
		}
	}
	for i := range have.States {
		if s := &have.States[i]; !claimed[s.Name] {
			p.Report(list.KeyPos, "the programs declare state %s, which is not listed", s.Name).Compare("absent", s.Name).Fix("add it to states")
		}
	}
}

func stateNames(r *StatesReport) []string {
	var out []string
	for i := range r.States {
		out = append(out, r.States[i].Name)
	}
	return out
}

// complete reports whether every chunk's layers are known.
func (p *Pass) complete(r *LayersReport) bool {
	for _, c := range r.Chunks {
		if c.First < 0 {
			return false
		}
	}
	return len(r.Chunks) > 0
}

// checkRecurrent compares the recurrent flags with the states.
func checkRecurrent(p *Pass) {
	chunks := p.of(manifest.Chunk)
	if len(chunks) == 0 {
		p.Skip("no chunk is readable")
		return
	}
	name := ""
	for _, c := range chunks {
		for _, f := range c.model.Functions {
			for _, s := range f.States {
				if manifest.IsRecurrentState(s.Name) {
					name = s.Name
				}
			}
		}
	}
	claimed, _ := p.pkg.Params.Bool("recurrent_state")
	if claimed != (name != "") {
		p.Report(p.posOf("recurrent_state"), "recurrent_state is %t, the programs have %s", claimed, orNone(name, "recurrent state")).
			Compare(claimed, name != "").Fix("write recurrent_state: %t; a runtime that feeds a token twice corrupts such a state", name != "")
	}
	full, _ := p.pkg.Params.Bool("prefill_full_batches_only")
	if name != "" && !full {
		p.Report(p.posOf("prefill_full_batches_only"), "prefill_full_batches_only is not true, and state %s absorbs padding tokens", name).
			Compare(false, true).Fix("write prefill_full_batches_only: true")
	}
	if last, _ := p.pkg.Params.Bool("prefill_last_token_output"); name != "" && !last {
		p.Report(p.posOf("prefill_last_token_output"), "prefill_last_token_output is not true: a prompt that ends on a batch boundary then has no logits, since no token may be fed twice").
			Compare(false, true)
	} else if at := p.blockWindow(); name == "" && at.n > 0 && !last {
		p.Report(p.posOf("prefill_last_token_output"), "prefill_last_token_output is not true: the local cache of %d positions is a block-shifting window of a context of %d, no position may be fed twice, and a prompt that ends on a batch boundary has no logits", at.n, p.facts.context.n).
			Compare(false, true).Also(at.pos).Fix("convert again, or write prefill_last_token_output: true where the last chunk's prefill gives one token")
	}
}

// blockWindow is the length of a seed package's local cache that shifts by
// blocks: it is shorter than the context (seed format, States).
func (p *Pass) blockWindow() number {
	if p.pkg.Kind != manifest.Seed || p.facts.window.n >= p.facts.context.n {
		return number{}
	}
	return p.facts.window
}

func orNone(name, what string) string {
	if name == "" {
		return "no " + what
	}
	return "state " + name
}

// checkLocalCache checks the length of a block-shifting window.
func checkLocalCache(p *Pass) {
	var length number
	for _, c := range p.of(manifest.Chunk) {
		for _, f := range c.model.Functions {
			for _, s := range f.States {
				if stateRole(s.Name) == roleLocal && len(s.Shape) == 4 {
					length = fact(c, f, s.Name, s.Shape[2])
				}
			}
		}
	}
	if length.n == 0 {
		p.Skip("no readable program has a local cache")
		return
	}
	claimed, ok := p.pkg.Params.Int("local_cache_length")
	if ok && claimed != length.n {
		p.Report(p.posOf("local_cache_length"), "local_cache_length is %d, the local cache holds %d positions", claimed, length.n).Compare(claimed, length.n).Also(length.pos)
	}
	window, hasWindow := p.pkg.Params.Int("local_attention_window")
	b, c := p.facts.batch.n, p.facts.context.n
	if !hasWindow || b == 0 || c == 0 {
		return
	}
	switch {
	case c <= window+2*b && length.n != c:
		p.Report(length.pos, "the local cache holds %d positions; with a context of %d up to window %d plus two batches of %d it must span the context", length.n, c, window, b).Compare(length.n, c)
	case c > window+2*b && length.n != window+2*b && length.n != window+b && length.n != c:
		p.Report(length.pos, "the local cache holds %d positions, want window %d plus two batches of %d", length.n, window, b).Compare(length.n, window+2*b)
	case c > window+2*b && !ok && length.n != c:
		p.Report(p.posOf("local_attention_window"), "local_cache_length is missing; the local cache is a window of %d positions that cannot be rewound", length.n).Compare("absent", length.n)
	}
}

// checkLayerTypes checks the list of layer types.
func checkLayerTypes(p *Pass) {
	prm := p.pkg.Params.Get("layer_types")
	if prm == nil {
		p.Skip("layer_types is not claimed")
		return
	}
	known := map[string]bool{"full": true, "sliding": true, "linear": true, "conv": true,
		"full_attention": true, "sliding_attention": true, "linear_attention": true}
	for i := range prm.Elems {
		if s, _ := prm.Elems[i].Str(); !known[s] {
			p.Report(prm.Elems[i].Pos, "layer %d has type %q, which no format knows", i, prm.Elems[i].Raw).Compare(prm.Elems[i].Raw, "full, sliding, linear or conv")
		}
	}
	r := p.layers()
	if !p.complete(r) {
		p.Skip("the layers of some chunk are not known")
		return
	}
	if len(prm.Elems) != r.NumLayers {
		p.Report(prm.Pos, "layer_types has %d entries, the programs have %d layers", len(prm.Elems), r.NumLayers).Compare(len(prm.Elems), r.NumLayers)
		return
	}
	types := typeList(prm)
	for _, l := range r.Layers {
		if l.state != "" && l.Index < len(types) && types[l.Index] != l.Type && p.pkg.Kind == manifest.Seed {
			p.Report(prm.Elems[l.Index].Pos, "layer %d is %q here; in the programs it writes state %s and so is %s", l.Index, types[l.Index], l.state, l.Type).Compare(types[l.Index], l.Type)
		}
	}
}
