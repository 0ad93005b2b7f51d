package inspect

import (
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/coreml/mil"
	"github.com/anepkg/anepkg/manifest"
)

// checkScaleFactors: scales that follow from the sizes.
func checkScaleFactors(p *Pass) {
	h, pld := p.facts.hidden.n, 0
	if n, ok := p.pkg.Params.Int("hidden_size"); ok && h == 0 {
		h = n
	}
	if n, ok := p.pkg.Params.Int("per_layer_dim"); ok {
		pld = n
	}
	for _, c := range []struct {
		key  string
		want float64
		why  string
	}{
		{"embed_scale", math.Sqrt(float64(h)), "sqrt(hidden_size)"},
		{"per_layer_embed_scale", math.Sqrt(float64(pld)), "sqrt(per_layer_dim)"},
		{"per_layer_model_projection_scale", 1 / math.Sqrt(float64(h)), "1/sqrt(hidden_size)"},
	} {
		prm := p.pkg.Params.Get(c.key)
		got, ok := floatOf(prm)
		if !ok || c.want == 0 || math.IsInf(c.want, 0) || !strings.HasPrefix(p.pkg.Architecture, "gemma") {
			continue
		}
		if math.Abs(got-c.want) > c.want/1000 {
			p.Report(prm.Pos, "%s is %g, want %s = %g", c.key, got, c.why, c.want).Compare(got, c.want).Fix("write %g", c.want)
		}
	}
}

func floatOf(p *manifest.Param) (float64, bool) {
	if p == nil {
		return 0, false
	}
	switch v := p.Value.(type) {
	case int:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}

// checkPrefillSets: every chunk has the same batch functions.
func checkPrefillSets(p *Pass) {
	var first *partView
	var want []string
	sets := false
	for _, pt := range p.of(manifest.Chunk) {
		var got []string
		for _, n := range functionNames(pt.model) {
			if strings.HasPrefix(n, "prefill_b") || strings.HasPrefix(n, "verify_q") {
				got = append(got, n)
			}
		}
		got = sorted(got)
		sets = sets || len(got) > 0
		if first == nil {
			first, want = pt, got
			continue
		}
		if !slices.Equal(got, want) {
			p.Report(diag.In(pt.model.ProgramFile), "%s has the functions %v, %s has %v: the runtime uses only those that all chunks have, or stops", pt.label(), got, first.label(), want).Compare(got, want).
				Also(diag.In(first.model.ProgramFile)).Fix("convert all chunks with the same batch sizes")
		}
	}
	if probed := p.probedSizes(); !sets && !probed {
		p.Skip("no chunk has batch functions")
	}
}

// probedSizes: the runtime looks for batch functions and prefill models of
// certain sizes only (coreml-llm.md L8, A20).
func (p *Pass) probedSizes() bool {
	some := false
	check := func(at diag.Pos, what, digits string, sizes []int) {
		n, err := strconv.Atoi(digits)
		if err != nil {
			return
		}
		if some = true; !slices.Contains(sizes, n) {
			p.Report(at, "%s takes %d tokens; the runtime looks for %v only, and does not use it", what, n, sizes).On(coremlLLM).Compare(n, sizes).Fix("convert with one of these sizes")
		}
	}
	gemma, vision := []int{4, 8, 16}, []int{8, 16, 32, 64}
	for _, pt := range p.of(manifest.Chunk) {
		sizes := gemma
		if p.fixedModel() {
			sizes = vision
		}
		for _, f := range pt.model.Functions {
			if digits, ok := strings.CutPrefix(f.Name, "prefill_b"); ok && p.pkg.Layout == manifest.StatefulChunks {
				check(fact(pt, f, "", 1).pos, f.Name+" of "+pt.label(), digits, sizes)
			}
		}
	}
	for _, pt := range p.of(manifest.PrefillOf) {
		stem, _, _ := strings.Cut(path.Base(pt.Path), ".")
		if digits, ok := strings.CutPrefix(stem, "prefill_t"); ok {
			check(firstFunction(pt), pt.label(), digits, vision)
		}
	}
	return some
}

// checkStaleChunks: files of another layout that change what is loaded.
func checkStaleChunks(p *Pass) {
	has := func(name string) string {
		for _, f := range p.pkg.Files {
			for _, suffix := range []string{".mlmodelc", ".mlpackage"} {
				if strings.HasPrefix(f.Path, name+suffix+"/") {
					return name + suffix
				}
			}
		}
		return ""
	}
	for _, c := range []struct{ a, b, why string }{
		{"model", "chunk_1", "the runtime then loads model alone"},
		{"model", "chunk1", "the runtime then loads model alone"},
		{"chunk2_3way", "chunk4", "the three-chunk set wins over the four-chunk set"},
	} {
		if x, y := has(c.a), has(c.b); x != "" && y != "" && (c.a == "model" || has("chunk3_3way") != "") {
			p.Report(diag.In(y), "%s and %s are both there: %s", x, y, c.why).Compare(y, "one layout").Also(diag.In(x)).Fix("delete the files of the other layout")
		}
	}
	if x, y := has("chunk2_3way"), has("chunk3_3way"); (x == "") != (y == "") {
		p.Report(diag.In(x+y), "of chunk2_3way and chunk3_3way only one is there: the runtime falls back to four chunks").Compare(x+y, "both").Fix("fetch the other one")
	}
}

// checkRoPEQuantized: position tables inside the graph that were compressed
// with the weights.
func checkRoPEQuantized(p *Pass) {
	for _, pt := range p.usable() {
		n := 0
		var first *Weight
		for _, w := range pt.weights {
			name := strings.ToLower(w.Name)
			if w.Kind != "dense" && len(w.Type.Shape) >= 2 && (strings.HasPrefix(name, "cos_") || strings.HasPrefix(name, "sin_") || strings.Contains(name, "_cos_") || strings.Contains(name, "_sin_") || strings.Contains(name, "rotary")) {
				if n++; first == nil {
					first = w
				}
			}
		}
		if n > 0 {
			p.Report(pt.position(first.Op.Pos), "%s of positions in %s %s compressed with the weights (%s, %d bits): errors of 0.10 with 4 bits and 0.005 with 8 were measured in the angles", plural(n, "table"), pt.label(), isAre(n), first.Kind, first.Bits).
				Compare(first.Kind, "dense").Fix("leave the cos and sin tables out of the compression (op_name_configs)")
		}
	}
}

// checkWindowed: sliding layers whose masks the runtime or the program gets
// wrong past the window.
func checkWindowed(p *Pass) {
	w := p.facts.window.n
	if n, ok := p.pkg.Params.Int("sliding_window"); ok && n > 0 {
		w = n
	}
	c := p.facts.context
	if w == 0 {
		p.Skip("no sliding window")
		return
	}
	for _, pt := range p.usable() {
		for _, f := range pt.model.Functions {
			at := fact(pt, f, "", 1).pos
			switch {
			case p.pkg.Layout == manifest.KVIO && strings.HasPrefix(f.Name, "verify_q"):
				p.Report(at, "%s of %s: the runtime's sliding mask lets early draft tokens see later ones (cosine 0.61, a wrong token, measured)", f.Name, pt.label()).On(coremlLLM).
					Compare("not causal", "causal").Fix("decode token by token, or use a causal mask while position + K <= %d", w)
				return
			case p.pkg.Layout == manifest.StatefulChunks && strings.HasPrefix(f.Name, "prefill_b"):
				t, err := strconv.Atoi(strings.TrimPrefix(f.Name, "prefill_b"))
				if err == nil && t > 1 && w%t == 0 && c.n > w {
					p.Report(at, "%s: past position %d the runtime keeps feeding batches of %d, whose tokens then see later ones (cosine 0.86 to 0.95 measured): its test position%%%d+%d<=%d never stops it", f.Name, w, t, w, t, w).On(coremlLLM).
						Compare(w%t, "a rest").Fix("feed tokens from position %d on one at a time", w)
					return
				}
			case p.pkg.Layout == manifest.KVIO && pt.Role == manifest.PrefillOf:
				if n := sequenceLength(pt, f).n; n > w {
					p.Report(at, "prefill of %d tokens is longer than the window of %d, and has one causal mask: sliding layers see past their window", n, w).On(coremlLLM).Compare(n, w)
					return
				}
			}
		}
	}
	if mono := p.of(manifest.Mono); len(mono) > 0 && c.n > w && strings.HasPrefix(p.pkg.Architecture, "gemma3") && p.pkg.Kind == manifest.CoreMLLLM {
		p.Report(c.pos, "the context %d is longer than the window %d, and the program has one causal mask for all layers: sliding layers see past their window", c.n, w).Compare(c.n, w).Fix("keep the text below %d tokens", w)
	}
}

// checkConvPad: LFM2's convolution state.
func checkConvPad(p *Pass) {
	pad, ok := p.pkg.Params.Int("lfm2_conv_l_pad")
	prm := p.pkg.Params.Get("lfm2_conv_l_pad")
	some := false
	for _, pt := range p.of(manifest.Mono, manifest.Chunk) {
		for _, f := range pt.model.Functions {
			in := f.Input("conv_state_in")
			if in == nil || len(in.Shape) == 0 {
				continue
			}
			some = true
			p.convLayers(pt, f, in)
			last := in.Shape[len(in.Shape)-1]
			switch {
			case !ok:
				p.Report(fact(pt, f, in.Name, 1).pos, "lfm2_conv_l_pad is not given: the runtime takes 16, the program has %d", last).On(coremlLLM).Compare("absent", last).Fix("write lfm2_conv_l_pad: %d", last)
			case last > 0 && pad != last:
				p.Report(prm.Pos, "lfm2_conv_l_pad is %d, conv_state_in has %d", pad, last).As(Error).Compare(pad, last).Fix("write %d", last)
			}
		}
	}
	if !some {
		p.Skip("no convolution state as input")
	}
}

// convLayers: the state has a row for each convolution layer.
func (p *Pass) convLayers(pt *partView, f *coreml.Function, in *coreml.Feature) {
	prm := p.pkg.Params.Get("layer_types")
	if prm == nil || len(in.Shape) != 3 || in.Shape[0] <= 0 {
		return
	}
	n := 0
	for _, t := range typeList(prm) {
		if t == "conv" {
			n++
		}
	}
	if n != in.Shape[0] {
		p.Report(prm.Pos, "layer_types has %s, conv_state_in of %s %d", plural(n, "conv layer"), pt.label(), in.Shape[0]).As(Error).Compare(n, in.Shape[0]).Also(fact(pt, f, in.Name, 1).pos).
			Fix("write the layer types of the checkpoint")
	}
}

// checkShiftedCache: a state that is shifted by slice and concat.
func checkShiftedCache(p *Pass) {
	for _, s := range p.sites(func(_ *partView, ix *program, op *mil.Op) (string, bool) {
		if op.Type != "write_state" {
			return "", false
		}
		d := ix.defs[ref(op, "data")]
		if d == nil || d.Type != "concat" {
			return "", false
		}
		for _, b := range d.Operand("values") {
			if st := ix.sliceOfState(b.Ref); st != "" && st == ref(op, "input") {
				return st, true
			}
		}
		return "", false
	}) {
		p.Report(s.pos(), "function %s of %s writes the state %s as a concat of its own slice and new rows: reported to fail to load with error -14 for large models", s.fn, s.pt.label(), s.note).Compare("concat", "slice_update").
			Fix("write the new rows with slice_update")
	}
}

// checkStateCount: several states in one function.
func checkStateCount(p *Pass) {
	if p.pkg.Kind != manifest.CoreMLLLM {
		p.Skip("seed packages with three states are measured to work")
		return
	}
	for _, pt := range p.usable() {
		for _, f := range pt.model.Functions {
			if n := len(f.States); n >= 3 {
				p.Report(fact(pt, f, f.States[0].Name, 1).pos, "function %s of %s has %d states; three and more are reported to fail on iPhones", f.Name, pt.label(), n).On(iPhones...).Compare(n, "1 or 2").
					Fix("join states of equal type into one")
				return
			}
		}
	}
}

// multiBatchStates: several functions, batches and states on iPhones.
func checkMultiBatchStates(p *Pass) {
	if p.pkg.Kind != manifest.CoreMLLLM {
		p.Skip("reported for CoreML-LLM packages")
		return
	}
	for _, pt := range p.usable() {
		if len(pt.model.Functions) < 2 {
			continue
		}
		i := slices.IndexFunc(pt.model.Functions, func(f *coreml.Function) bool { return len(f.States) >= 2 && sequenceLength(pt, f).n > 1 })
		if i >= 0 {
			f := pt.model.Functions[i]
			p.Report(fact(pt, f, f.States[0].Name, 1).pos, "function %s of %s takes batches, has %d states and is one of %d functions: reported as ANECCompile FAILED 11 on iPhones", f.Name, pt.label(), len(f.States), len(pt.model.Functions)).
				On(iPhones...).Compare(len(pt.model.Functions), 1).Fix("ship the batch function as a model of its own")
			return
		}
	}
}

// checkStoredGains: EmbeddingGemma's norm gains lose precision.
func checkStoredGains(p *Pass) {
	if p.pkg.Layout != manifest.Encoder || !strings.HasPrefix(p.pkg.Architecture, "gemma3") {
		p.Skip("not an EmbeddingGemma package")
		return
	}
	if parts := p.of(manifest.EncoderOf); len(parts) > 0 {
		p.Report(diag.In(parts[0].model.ProgramFile), "the converter stores the gains of the norms after each block as (1+w)/16-1 in fp16: up to 0.3 %% of error in a gain").Compare("(1+w)/16-1", "1+w")
	}
}
