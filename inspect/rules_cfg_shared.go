package inspect

import (
	"slices"
	"strconv"
	"strings"

	"github.com/anepkg/anepkg/manifest"
)

// sharedByPrograms: the layers of a gemma4 chunk that kv_shared_layers leaves
// out are as many as the caches that its program writes.
func (p *Pass) sharedByPrograms(r *LayersReport, shared *manifest.Param) {
	if p.pkg.Layout != manifest.ChunkedGemma4 || !p.complete(r) || shared == nil && p.pkg.Params.Get("num_kv_shared_layers") != nil {
		return
	}
	for i := range r.Chunks {
		c := &r.Chunks[i]
		f := c.view.fn("infer")
		if f == nil || c.view.program(f.Name) == nil || c.view.Role != manifest.Chunk {
			continue
		}
		writes := gemma4Own(f, c.view.program(f.Name))
		if slices.ContainsFunc(writes, func(l ownLayer) bool { return l.slot < 0 || stateRole(l.state) == roleKV }) {
			continue // a cache of another form
		}
		own, keep := len(writes), 0
		for n := c.First; n <= c.Last; n++ {
			if shared.Member(itoa(n)) == nil {
				keep++
			}
		}
		if own == keep {
			continue
		}
		if shared == nil {
			p.Report(p.posOf("kv_shared_layers"), "kv_shared_layers is absent: of the layers %d to %d in %s, %s the cache of an earlier one", c.First, c.Last, c.view.label(), reads(keep-own)).As(Warning).
				Compare("absent", keep-own).Also(fact(c.view, f, "", 1).pos)
			continue
		}
		p.Report(shared.Pos, "by kv_shared_layers %d of the layers %d to %d keep a cache; %s writes %d", keep, c.First, c.Last, c.view.label(), own).As(Warning).Compare(keep, own).Also(fact(c.view, f, "", 1).pos)
	}
}

func reads(n int) string {
	if n == 1 {
		return "1 reads"
	}
	return itoa(n) + " read"
}

// sharedLayer: a layer shares with one of its type that keeps a cache of its
// own, in Gemma 4 with the last such layer.
func (p *Pass) sharedLayer(e, shared *manifest.Param, from, to int) {
	if e2 := shared.Member(strconv.Itoa(to)); e2 != nil {
		p.Report(e.KeyPos, "kv_shared_layers: layer %d reads the cache of layer %d, which keeps none and reads that of layer %s", from, to, e2.Raw).As(Warning).Compare(to, "a layer with a cache").Also(e2.KeyPos)
		return
	}
	types := typeList(p.pkg.Params.Get("layer_types"))
	if from >= len(types) {
		return
	}
	if types[from] != types[to] {
		p.Report(e.KeyPos, "kv_shared_layers: layer %d is %s and reads the cache of layer %d, which is %s", from, types[from], to, types[to]).As(Warning).Compare(types[to], types[from]).
			Also(p.posOf("layer_types"))
		return
	}
	for k := from - 1; k > to; k-- {
		if types[k] == types[from] && shared.Member(strconv.Itoa(k)) == nil && strings.HasPrefix(p.pkg.Architecture, "gemma4") {
			p.Report(e.KeyPos, "kv_shared_layers: layer %d reads the cache of layer %d; layer %d is the last %s layer that keeps one", from, to, k, types[k]).As(Warning).Compare(to, k).Fix("write %d: %d", from, k)
			return
		}
	}
}
