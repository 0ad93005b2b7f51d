package inspect

import (
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/manifest"
)

// compareNumber reports a claimed number that differs from the programs'.
func (p *Pass) compareNumber(fact number, keys ...string) {
	for _, key := range keys {
		n, ok := p.pkg.Params.Int(key)
		if !ok {
			continue
		}
		if fact.n == 0 {
			p.Skip("no readable program tells %s", key)
			return
		}
		if n != fact.n {
			p.Report(p.posOf(key), "%s is %d, the programs have %d (%s)", key, n, fact.n, fact.source).
				Compare(n, fact.n).Also(fact.pos).Fix("write %d, or use the parts that were made for %d", fact.n, n)
		}
		return
	}
	p.Skip("%s is not claimed", keys[0])
}

func checkContext(p *Pass) { p.compareNumber(p.facts.context, "context_length", "max_seq_len") }
func checkBatch(p *Pass)   { p.compareNumber(p.facts.batch, "batch_size") }
func checkHidden(p *Pass)  { p.compareNumber(p.facts.hidden, "hidden_size") }
func checkVocab(p *Pass) {
	if p.pkg.Kind == manifest.CoreMLLLM && p.facts.vocab.n == 0 {
		p.Skip("the programs do not tell the vocabulary")
		return
	}
	p.compareNumber(p.facts.vocab, "vocab_size")
}

func checkNumLayers(p *Pass) {
	r := p.layers()
	for _, c := range r.Chunks {
		if c.First < 0 {
			p.Skip("the layers of %s are not known", c.Part)
			return
		}
	}
	if r.NumLayers == 0 {
		p.Skip("no program tells its layers")
		return
	}
	last := r.Chunks[len(r.Chunks)-1]
	p.compareNumber(number{n: r.NumLayers, source: "layers by " + last.Source + " of " + last.Part}, "num_layers", "num_hidden_layers")
}

// checkSplit compares split_lm_head with the outputs of the head.
func checkSplit(p *Pass) {
	if len(p.facts.parts) == 0 {
		p.Skip("no readable program tells the parts of the head")
		return
	}
	p.compareNumber(number{n: len(p.facts.parts), source: "outputs of " + p.facts.vocab.source, pos: p.facts.vocab.pos}, "split_lm_head")
}

func checkHeadSizes(p *Pass) {
	prm := p.pkg.Params.Get("lm_head_chunk_sizes")
	if prm == nil {
		p.Skip("lm_head_chunk_sizes is not claimed")
		return
	}
	sizes, ok := prm.Ints()
	if !ok {
		p.Report(prm.Pos, "lm_head_chunk_sizes is no list of numbers").Compare(prm.Raw, "a list of numbers")
		return
	}
	sum := 0
	for _, s := range sizes {
		sum += s
	}
	if n, ok := p.pkg.Params.Int("vocab_size"); ok && sum != n {
		p.Report(prm.Pos, "lm_head_chunk_sizes add up to %d, vocab_size is %d", sum, n).Compare(sum, n).Also(p.posOf("vocab_size"))
	}
	if len(p.facts.parts) == 0 {
		return
	}
	if !slices.Equal(sizes, p.facts.parts) {
		p.Report(prm.Pos, "lm_head_chunk_sizes differ from the widths of the head's outputs (%s)", p.facts.vocab.source).
			Compare(sizes, p.facts.parts).Also(p.facts.vocab.pos).Fix("write the widths of the outputs; ids of later parts are wrong otherwise")
	}
}

func checkArgmax(p *Pass) {
	if p.facts.vocab.n == 0 && !p.facts.argmax {
		p.Skip("no head is readable")
		return
	}
	claimed, _ := p.pkg.Params.Bool("argmax_in_model")
	if claimed != p.facts.argmax {
		p.Report(p.posOf("argmax_in_model"), "argmax_in_model is %t, the head gives %s", claimed, map[bool]string{true: "argmax_idx and argmax_val", false: "logits"}[p.facts.argmax]).
			Compare(claimed, p.facts.argmax).Also(p.facts.vocab.pos)
	}
	if p.facts.argmax && p.pkg.Params.Get("vocab_size") == nil && p.pkg.Params.Get("lm_head_chunk_sizes") == nil && len(p.facts.parts) > 1 {
		p.Report(p.posOf("argmax_in_model"), "neither vocab_size nor lm_head_chunk_sizes is given: chat.py then guesses the offsets of the %d parts and gives wrong ids", len(p.facts.parts)).
			As(Warning).On(anemllPython, anemllSwift).Fix("write lm_head_chunk_sizes")
	}
}

// checkUneven names the defect of ANEMLL's Swift runtime with parts of
// different width.
func checkUneven(p *Pass) {
	if p.facts.argmax || len(p.facts.parts) < 2 || p.pkg.Layout == manifest.Monolithic {
		p.Skip("the head has no several logits outputs")
		return
	}
	w := p.facts.parts
	for i, n := range w {
		if n != w[0] {
			p.Report(p.facts.vocab.pos, "the head's outputs have different widths (%d and %d): ANEMLL's Swift runtime takes every offset as a multiple of the width and gives wrong ids from part %d on", w[0], n, i+1).
				Compare(w, "equal widths").On(anemllSwift).Fix("convert with a number of parts that divides %d", p.facts.vocab.n)
			return
		}
	}
}

// checkEmbeddingRows compares the table with the head.
func checkEmbeddingRows(p *Pass) {
	if p.facts.embedRows.n == 0 || p.facts.vocab.n == 0 {
		p.Skip("no readable program tells both the embedding table and the head")
		return
	}
	if p.facts.embedRows.n != p.facts.vocab.n {
		p.Report(p.facts.vocab.pos, "the head gives %d logits, the embedding table has %d rows", p.facts.vocab.n, p.facts.embedRows.n).
			Compare(p.facts.vocab.n, p.facts.embedRows.n).Also(p.facts.embedRows.pos)
	}
}

// checkLUT compares claimed bits and groups with the stored weights.
func checkLUT(p *Pass) {
	for _, c := range []struct {
		role manifest.Role
		key  string
	}{{manifest.Embeddings, "lut_embeddings"}, {manifest.Chunk, "lut_ffn"}, {manifest.LMHead, "lut_lmhead"}, {manifest.Mono, "lut_bits"}} {
		prm := p.pkg.Params.Get(c.key)
		parts := p.of(c.role)
		p.namedLUT(parts)
		if prm == nil {
			continue
		}
		var all []*Weight
		for _, pt := range parts {
			all = append(all, pt.weights...)
		}
		if len(parts) == 0 {
			p.Skip("no readable part has the role %s", c.role)
			continue
		}
		p.compareLUT(prm, c.key, all, parts[0])
	}
}

var lutInName = regexp.MustCompile(`_lut(\d+)(?:_|\.|$)`)

// namedLUT compares the bits in the names of parts with their tables.
func (p *Pass) namedLUT(parts []*partView) {
	for _, pt := range parts {
		m := lutInName.FindStringSubmatch(path.Base(pt.Path))
		if m == nil {
			continue
		}
		least := 0
		for _, w := range pt.weights {
			if strings.HasPrefix(w.Kind, "lut") && (least == 0 || w.Bits < least) {
				least = w.Bits
			}
		}
		if n, err := strconv.Atoi(m[1]); err == nil && n != least {
			p.Report(diag.In(pt.Path), "the name of %s says %d bits, its narrowest table has %d", pt.label(), n, least).Compare(n, least).Fix("convert the part again, or name it and meta.yaml after the %d bits", least)
		}
	}
}

func (p *Pass) compareLUT(prm *manifest.Param, key string, all []*Weight, part *partView) {
	least, most, group := 0, 0, map[int]bool{}
	for _, w := range all {
		if len(w.Kind) >= 3 && w.Kind[:3] == "lut" {
			if least == 0 || w.Bits < least {
				least = w.Bits
			}
			most = max(most, w.Bits)
			group[w.GroupSize] = true
		}
	}
	n, isNumber := prm.Int()
	switch {
	case isNumber && n > 0 && least == 0:
		p.Report(prm.Pos, "%s is %d, no weight of %s is palettized", key, n, part.label()).Compare(n, "none")
	case isNumber && n > 0 && least != n:
		p.Report(prm.Pos, "%s is %d, the tables of %s have %d bits", key, n, part.label(), least).Compare(n, least)
	case isNumber && n > 0 && most != least && p.pkg.Params.Get(key+"_mixed") == nil:
		p.Report(prm.Pos, "%s is %d, tables of %d to %d bits are used in %s", key, n, least, most, part.label()).As(Note).Compare(n, strconv.Itoa(least)+" to "+strconv.Itoa(most))
	case !isNumber && least > 0 && key != "lut_bits":
		p.Report(prm.Pos, "%s is none, the weights of %s are palettized with %d bits", key, part.label(), least).Compare("none", least)
	}
	want := 8
	if key == "lut_bits" || least == 0 {
		return
	}
	pc := p.pkg.Params.Get(key + "_per_channel")
	if v, ok := pc.Int(); ok {
		want = v
	}
	if want > 0 && !group[want] && pc != nil {
		p.Report(pc.Pos, "%s_per_channel is %d, no table of %s is shared by %d channels", key, want, part.label(), want).As(Note).Compare(want, sortedInts(group))
	}
}

// checkWindow compares sliding_window with the local cache.
func checkWindow(p *Pass) {
	if p.pkg.Kind != manifest.ANEMLL || p.facts.window.n == 0 {
		p.Skip("no ANEMLL package with a local cache")
		return
	}
	w := p.facts.window
	if n, ok := p.pkg.Params.Int("sliding_window"); ok {
		if n != w.n {
			p.Report(p.posOf("sliding_window"), "sliding_window is %d, the local cache holds %d positions", n, w.n).Compare(n, w.n).Also(w.pos).
				Fix("write sliding_window: %d", w.n)
		}
	} else if w.n != 512 {
		p.Report(w.pos, "sliding_window is not given, so runtimes take 512; the local cache holds %d positions", w.n).As(Warning).On(anemllPython, anemllSwift).
			Compare(512, w.n).Fix("write sliding_window: %d (convert_monolith.sh 0.3.5 loses it)", w.n)
	}
	if c := p.facts.context; c.n > w.n && !p.rotates() && len(p.unreadable(manifest.Chunk, manifest.ChunkRot, manifest.Mono)) == 0 {
		p.Report(w.pos, "the context of %d exceeds the local cache of %d positions, and no part has rotate functions: from position %d on runtimes overwrite the cache", c.n, w.n, w.n).
			As(Warning).On(anemllPython, anemllSwift).Compare(c.n, w.n).Fix("add the _rot files, or convert with a context of at most %d", w.n)
	}
	if b := p.facts.batch.n; b > 0 && w.n%b != 0 {
		p.Report(w.pos, "the window of %d positions is no multiple of the batch size %d: a batch would cross the window", w.n, b).As(Warning).Compare(w.n%b, 0).On(anemllPython, anemllSwift)
	}
}

// rotates reports whether some part has a rotate function.
func (p *Pass) rotates() bool {
	for _, pt := range p.of(manifest.Chunk, manifest.ChunkRot, manifest.Mono) {
		if pt.model.Function("infer_rotate") != nil {
			return true
		}
	}
	return false
}

// checkPerLayerInputs compares per_layer_inputs with the programs.
func checkPerLayerInputs(p *Pass) {
	var width number
	for _, c := range p.of(manifest.Chunk) {
		if f := c.fn("infer"); f != nil {
			if in := f.Input("per_layer_inputs"); in != nil && len(in.Shape) == 3 {
				width = fact(c, f, in.Name, in.Shape[2])
			}
		}
	}
	n, ok := p.pkg.Params.Int("per_layer_inputs")
	switch {
	case ok && len(p.of(manifest.Chunk)) == 0:
		p.Skip("no chunk is readable")
	case ok && width.n != n:
		p.Report(p.posOf("per_layer_inputs"), "per_layer_inputs is %d, the chunks take %d", n, width.n).Compare(n, width.n).Also(width.pos)
	case !ok && width.n > 0:
		p.Report(width.pos, "the chunks take per_layer_inputs of %d values; meta.yaml does not say so", width.n).As(Warning).Compare("absent", width.n)
	}
	if e := p.of(manifest.Embeddings); width.n > 0 && len(e) > 0 {
		if f := e[0].fn(""); f != nil {
			out := f.Output("per_layer_inputs")
			if out == nil || len(out.Shape) != 3 || out.Shape[2] != width.n {
				p.Report(width.pos, "the chunks take per_layer_inputs of %d values, %s gives %s", width.n, e[0].label(), describeOutput(out)).Compare(describeOutput(out), width.n)
			}
		}
	}
	shared := p.pkg.Params.Get("kv_shared_layers")
	r := p.layers()
	p.sharedByPrograms(r, shared)
	if shared == nil {
		return
	}
	for _, e := range shared.Elems {
		from, err := strconv.Atoi(e.Key)
		to, ok := e.Int()
		if err != nil || !ok || from <= to || to < 0 || r.NumLayers > 0 && from >= r.NumLayers {
			p.Report(e.KeyPos, "kv_shared_layers: layer %s reads the cache of layer %s, want an earlier layer of the model", e.Key, e.Raw).Compare(e.Key+": "+e.Raw, "an earlier layer")
			continue
		}
		p.sharedLayer(&e, shared, from, to)
	}
}

// checkForeignWindow: a sliding window of an architecture that has none.
func checkForeignWindow(p *Pass) {
	prm := p.pkg.Params.Get("sliding_window")
	n, ok := prm.Int()
	if !ok || n == 0 || p.pkg.Kind != manifest.ANEMLL || p.pkg.Layout == manifest.Rotate || strings.HasPrefix(p.pkg.Architecture, "gemma") || p.facts.window.n > 0 {
		return
	}
	p.Report(prm.Pos, "sliding_window is %d, and no state of the package is a local cache: runtimes switch to rotate functions from there on, or stop", n).On(anemllSwift).
		Compare(n, "absent").Fix("delete the line")
}

var contextInName = regexp.MustCompile(`(?i)[-_]ctx(\d+)(?:[-_.]|$)`)

// checkNamedContext: names of packages end in -ctxN.
func checkNamedContext(p *Pass) {
	want := p.facts.context
	if want.n == 0 {
		p.Skip("no readable program tells the context")
		return
	}
	some := false
	look := func(name string, at diag.Pos, what string) {
		m := contextInName.FindStringSubmatch(name)
		if m == nil {
			return
		}
		some = true
		if n, err := strconv.Atoi(m[1]); err == nil && n != want.n {
			p.Report(at, "%s is %q, and says ctx%d; the programs have a context of %d (%s)", what, name, n, want.n, want.source).Compare(n, want.n).Also(want.pos).Fix("name it after the context of %d", want.n)
		}
	}
	if prm := p.pkg.Params.Get("model_info.name"); prm != nil {
		if s, ok := prm.Str(); ok {
			look(s, prm.Pos, "the name in meta.yaml")
		}
	}
	look(path.Base(strings.ReplaceAll(p.pkg.Path, "\\", "/")), diag.Pos{}, "the folder's name")
	if !some {
		p.Skip("no name tells a context")
	}
}
