package inspect

import (
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/coreml/tensor"
	"github.com/anepkg/anepkg/manifest"
)

// normWeights are the gains of the norm of Gemma 4's inputs of each layer.
const normWeights = "per_layer_norm_weight.bin"

// checkSideFiles compares CoreML-LLM's side files with the exact sizes that
// the runtime reads without checking (coreml-llm.md 3.9).
func checkSideFiles(p *Pass) {
	if p.pkg.Kind != manifest.CoreMLLLM {
		return
	}
	num := func(keys ...string) int64 {
		for _, k := range keys {
			if n, ok := p.pkg.Params.Int(k); ok {
				return int64(n)
			}
		}
		return 0
	}
	v, h, l, d := num("vocab_size"), num("hidden_size"), num("num_layers", "num_hidden_layers"), num("per_layer_dim")
	if p.pkg.Layout == manifest.MLKV { // there is no description: the programs tell
		v, h = int64(p.facts.vocab.n), int64(p.facts.hidden.n)
	}
	dir := "."
	if c := p.pkg.PartsOf(manifest.Chunk); len(c) > 0 && c[0].Path != "" {
		dir = path.Dir(c[0].Path)
	}
	chunked := p.pkg.Layout == manifest.KVIO || p.pkg.Layout == manifest.StatefulChunks && d > 0
	for _, s := range []struct {
		name string
		size int64
		need bool
	}{
		{"embed_tokens_q8.bin", v * h, chunked}, {"embed_tokens_scales.bin", 2 * v, chunked},
		{"embed_tokens_per_layer_q8.bin", v * l * d, chunked}, {"embed_tokens_per_layer_scales.bin", 2 * v, chunked},
		{"per_layer_projection.bin", 2 * l * d * h, chunked},
		{"embed_weight.bin", 2 * v * h, p.pkg.Layout == manifest.MLKV},
	} {
		f := p.pkg.File(path.Join(dir, s.name))
		switch {
		case f == nil && s.need:
			p.Report(diag.In(path.Join(dir, s.name)), "%s is missing", s.name).Compare("absent", s.name).Fix("fetch it")
		case f != nil && f.Status == manifest.FileOK && s.size > 0 && f.Bytes != s.size:
			source := "model_config.json"
			if p.pkg.Layout == manifest.MLKV {
				source = p.facts.vocab.source
			}
			p.Report(diag.In(f.Path), "%s has %d bytes, want %d from %s; the runtime reads it without a check", s.name, f.Bytes, s.size, source).Compare(f.Bytes, s.size)
		}
	}
	if f := p.pkg.File(path.Join(dir, normWeights)); f != nil && f.Status == manifest.FileOK && d > 0 && f.Bytes != 4*d && f.Bytes != 2*d {
		p.Report(diag.In(f.Path), "%s has %d bytes, want %d: float32 for each of per_layer_dim %d", normWeights, f.Bytes, 4*d, d).Compare(f.Bytes, 4*d)
	}
	if chunked {
		p.ropeTables(dir)
	}
}

// ropeTables checks the NumPy headers' sizes of the RoPE tables: missing or
// short ones silently become rows of zeros.
func (p *Pass) ropeTables(dir string) {
	c := p.facts.context.n
	for _, name := range []string{"cos_sliding.npy", "sin_sliding.npy", "cos_full.npy", "sin_full.npy"} {
		f := p.pkg.File(path.Join(dir, name))
		if f == nil {
			p.Report(diag.In(path.Join(dir, name)), "%s is missing: the runtime then rotates by rows of zeros, without an error", name).Compare("absent", name).Fix("fetch it")
			continue
		}
		width := p.ropeWidth(name)
		if f.Status != manifest.FileOK || width == 0 || c == 0 {
			continue
		}
		if t, err := tensor.ReadNPYHeader(strings.NewReader(string(p.readSide(f.Path, 1<<12)))); err == nil && len(t.Shape) > 0 && t.Shape[len(t.Shape)-1] != width {
			p.Report(diag.In(f.Path), "the rows of %s hold %d angles, the chunks take %d: the runtime reads rows of %d over the file", name, t.Shape[len(t.Shape)-1], width, width).Compare(t.Shape, width).
				Fix("make the table again for the head dimension of the chunks")
			continue
		}
		rows := (f.Bytes - 128) / int64(2*width)
		if rows < int64(c) || f.Bytes != 128+rows*int64(2*width) {
			p.Report(diag.In(f.Path), "%s has %d bytes, room for %d rows of %d; the context needs %d", name, f.Bytes, rows, width, c).Compare(rows, c)
		}
	}
}

func (p *Pass) ropeWidth(name string) int {
	for _, pt := range p.of(manifest.Chunk) {
		if f := pt.fn("infer"); f != nil {
			in := f.Input("cos_s")
			if strings.Contains(name, "full") {
				in = f.Input("cos_f")
			}
			if in != nil && len(in.Shape) > 0 {
				return in.Shape[len(in.Shape)-1]
			}
		}
	}
	return 0
}

// checkWiring: what a CoreML-LLM chunk reads, an earlier chunk gives; the
// last chunk gives the token.
func checkWiring(p *Pass) {
	chunks := p.pkg.PartsOf(manifest.Chunk)
	if p.pkg.Kind != manifest.CoreMLLLM || len(chunks) == 0 || len(p.unreadable(manifest.Chunk)) > 0 {
		p.Skip("not all chunks of a CoreML-LLM package are readable")
		return
	}
	given := map[string]*coreml.Feature{}
	parts := p.of(manifest.Chunk)
	for i, pt := range parts {
		fn := pt.fn("infer")
		if fn == nil {
			continue
		}
		for k := range fn.Inputs {
			in := &fn.Inputs[k]
			name, fromChunk := producer(in.Name, i)
			if !fromChunk {
				continue
			}
			out := given[name]
			if out == nil {
				p.Report(fact(pt, fn, in.Name, 1).pos, "%s reads %s, which no earlier chunk gives", pt.label(), in.Name).Compare("absent", name).
					Fix("put the chunks of one conversion into their order")
			} else if !tensor.Compatible(out.Shape, in.Shape) {
				p.Report(fact(pt, fn, in.Name, 1).pos, "%s reads %s as %s, an earlier chunk gives %s", pt.label(), in.Name, tensor.ShapeString(in.Shape), tensor.ShapeString(out.Shape)).
					Compare(in.Shape, out.Shape)
			}
		}
		if i == 0 && fn.Input("per_layer_combined") != nil {
			p.Report(fact(pt, fn, "per_layer_combined", 1).pos, "the first chunk reads per_layer_combined, which the first chunk itself gives").Compare("per_layer_combined", "per_layer_raw").
				Fix("put the chunks of one conversion into their order")
		}
		for k := range fn.Outputs {
			given[fn.Outputs[k].Name] = &fn.Outputs[k]
		}
		p.tokenOutput(pt, fn, i == len(parts)-1)
	}
	p.headOfPackage(parts)
	p.oneCacheForm(parts)
}

// oneCacheForm: the caches of all chunks are states, or inputs and results of
// all (coreml-llm.md L2, L4).
func (p *Pass) oneCacheForm(parts []*partView) {
	var states, inputs *partView
	for _, pt := range parts {
		fn := pt.fn("infer")
		if fn == nil {
			continue
		}
		for i := range fn.States {
			if r := stateRole(fn.States[i].Name); states == nil && r != roleConv && r != roleRecurrent {
				states = pt
			}
		}
		if inputs == nil && (fn.Input("K_sliding_in") != nil || fn.Input("K_full_in") != nil) {
			inputs = pt
		}
	}
	switch {
	case states == nil || inputs == nil:
	case states == inputs:
		p.Report(fact(states, states.fn("infer"), "", 1).pos, "%s takes caches as inputs and keeps others as states", states.label()).Compare("inputs and states", "one of the two").Fix("convert the chunk again")
	default:
		p.Report(fact(inputs, inputs.fn("infer"), "K_sliding_in", 1).pos, "%s takes its caches as inputs, %s keeps them as states: the chunks are of two layouts", inputs.label(), states.label()).
			Compare("inputs", "states").Also(fact(states, states.fn("infer"), "", 1).pos).Fix("use the chunks of one conversion")
	}
}

// producer says which output of an earlier chunk feeds an input.
func producer(input string, chunk int) (output string, fromChunk bool) {
	switch {
	case chunk == 0:
		return "", false
	case input == "per_layer_combined":
		return "per_layer_combined_out", true
	case strings.HasPrefix(input, "kv13_") || strings.HasPrefix(input, "kv14_"):
		return input, true
	case input == "hidden_in":
		return "hidden", true
	}
	return "", false
}

func (p *Pass) tokenOutput(pt *partView, fn *coreml.Function, last bool) {
	has := fn.Output("token_id") != nil || fn.Output("logits") != nil || fn.Output("top_indices") != nil
	head := len(p.pkg.PartsOf(manifest.LMHead)) > 0
	if has && !last {
		p.Report(fact(pt, fn, "", 1).pos, "%s gives the token, and is not the last chunk", pt.label()).Compare(featureNames(fn.Outputs), "hidden states").Fix("put the chunks of one conversion into their order")
	}
	if !has && last && !head {
		p.Report(fact(pt, fn, "", 1).pos, "the last chunk %s gives %s, want token_id or logits", pt.label(), featureNames(fn.Outputs)).Compare(featureNames(fn.Outputs), "token_id or logits").
			Fix("put the chunks into their order, and fetch the last one if it is missing")
	}
}

func (p *Pass) headOfPackage(parts []*partView) {
	first := parts[0].fn("infer")
	if first == nil || p.pkg.Layout == manifest.MLKV {
		return
	}
	if first.Input("kv13_k") != nil || first.Input("kv14_k") != nil {
		p.Report(fact(parts[0], first, "kv13_k", 1).pos, "the first chunk reads the caches of a later one").Compare("kv13_k", "none").Fix("put the chunks of one conversion into their order")
	}
}

// checkModelConfig checks model_config.json, whose every default is that of
// Gemma 4 E2B.
func checkModelConfig(p *Pass) {
	if p.pkg.ConfigFile == "" {
		if !p.fixedModel() {
			f := p.Report(diag.In("model_config.json"), "model_config.json is missing").Compare("absent", "model_config.json").Fix("copy it from the source of the package")
			if p.pkg.Layout == manifest.Encoder {
				f.As(Warning)
			}
		}
		return
	}
	if len(p.pkg.Params) == 0 {
		p.Skip("model_config.json is not readable")
		return
	}
	if s, ok := p.pkg.Params.Str("architecture"); !ok || s == "" {
		p.Report(p.posOf("architecture"), "architecture is empty: the runtime then uses Gemma's prompt format").As(Warning).On(coremlLLM).Compare(s, "the model's architecture")
	}
	if e := p.pkg.Params.Get("eos_token_id"); e != nil && e.Elems != nil && p.pkg.Architecture != "gemma3" {
		p.Report(e.Pos, "eos_token_id is a list: the runtime takes 1 instead").As(Warning).On(coremlLLM).Compare("list", "a number")
	}
	p.defaultsOfGemma()
	for _, r := range coremlLLMKeys {
		want, isInt := r.fallback.(int)
		prm := p.pkg.Params.Get(r.key)
		if !isInt || prm == nil || prm.Value == nil || r.key == "eos_token_id" {
			continue
		}
		if _, ok := prm.Value.(int); !ok {
			p.Report(prm.Pos, "%s is no whole number: the runtime silently takes %d", r.key, want).Compare(fmt.Sprint(prm.Value), "a whole number")
		} else if n, _ := prm.Int(); n <= 0 && r.key != "num_kv_shared_layers" {
			p.Report(prm.Pos, "%s is %d, want a number above 0", r.key, n).Compare(n, "above 0")
		}
	}
}

// fixedModel reports whether the runtime of the layout knows its one model by
// heart, and fetches the tokenizer itself: Qwen3.5 (MLKV) and Qwen3-VL
// (chunk_0 to chunk_3; coreml-llm.md L5, L6).
func (v *view) fixedModel() bool {
	chunks := v.pkg.PartsOf(manifest.Chunk)
	return v.pkg.Layout == manifest.MLKV || len(chunks) > 0 && strings.HasPrefix(path.Base(chunks[0].Claimed), "chunk_0.")
}

// defaultsOfGemma: keys that are absent, where the runtime's default, that of
// Gemma 4 E2B, is not the program's number.
func (p *Pass) defaultsOfGemma() {
	if p.pkg.Layout == manifest.Encoder || p.fixedModel() {
		return // their runtimes read other files
	}
	layers := p.layers().NumLayers
	truth := map[string]int{"context_length": p.facts.context.n, "hidden_size": p.facts.hidden.n, "vocab_size": p.facts.vocab.n, "num_layers": layers, "sliding_window": p.slidingMask().n}
	for _, r := range coremlLLMKeys {
		fallback, isInt := r.fallback.(int)
		n := truth[r.key]
		if p.pkg.Layout == manifest.Monolithic && r.key != "context_length" && r.key != "hidden_size" {
			continue // the program holds all the rest
		}
		if !isInt || n == 0 || n == fallback || p.pkg.Params.Get(r.key) != nil || r.key == "num_layers" && p.pkg.Params.Get("num_hidden_layers") != nil {
			continue
		}
		p.Report(diag.In(p.pkg.ConfigFile), "%s is absent: the runtime takes %d, which is Gemma 4 E2B's; the programs have %d", r.key, fallback, n).Compare("absent", n).Fix("write \"%s\": %d", r.key, n)
	}
	const layersE2B = 35
	if (p.pkg.Layout != manifest.KVIO && p.pkg.Layout != manifest.StatefulChunks) || !strings.HasPrefix(p.pkg.Architecture, "gemma4") || layers == 0 || layers == layersE2B {
		return
	}
	for _, key := range []string{"layer_types", "num_kv_shared_layers"} {
		if p.pkg.Params.Get(key) == nil {
			p.Report(diag.In(p.pkg.ConfigFile), "%s is absent: the runtime takes that of a model of %d layers, the programs have %d", key, layersE2B, layers).Compare("absent", key).
				Fix("copy %s from the checkpoint's config.json", key)
		}
	}
}

// checkSlidingWindow compares CoreML-LLM's sliding_window with the masks.
func checkSlidingWindow(p *Pass) {
	for _, pt := range p.of(manifest.Chunk) {
		f := pt.fn("infer")
		if f == nil {
			continue
		}
		in := f.Input("causal_mask_sliding")
		if in == nil || len(in.Shape) != 4 {
			continue
		}
		if n, ok := p.pkg.Params.Int("sliding_window"); ok && n != in.Shape[3] {
			p.Report(p.posOf("sliding_window"), "sliding_window is %d, %s takes a sliding mask of %s positions", n, pt.label(), strconv.Itoa(in.Shape[3])).Compare(n, in.Shape[3]).Also(fact(pt, f, in.Name, 1).pos)
		}
	}
}
