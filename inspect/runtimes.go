package inspect

import (
	"fmt"
	"strings"

	"github.com/anepkg/anepkg/manifest"
)

// The runtimes whose view of a package is shown.
const (
	anemllPython = "anemll-python" // chat.py
	anemllSwift  = "anemll-swift"  // AnemllCore YAMLConfig
	coremlLLM    = "coreml-llm"
	seedContract = "seed"
)

// reader is how one runtime reads one key: its default, and which types it
// accepts.
type reader struct {
	key      string
	fallback any // what it uses when the key is absent or of a type that it drops
}

// Defaults of ANEMLL's Python and Swift readers (anemll.md 1.3) and of
// CoreML-LLM (coreml-llm.md 2). nil means that the reader stops.
var (
	pythonKeys = []reader{{"context_length", 512}, {"batch_size", 64}, {"num_chunks", nil}, {"split_lm_head", 8}, {"lut_embeddings", nil},
		{"lut_ffn", nil}, {"lut_lmhead", nil}, {"sliding_window", nil}, {"vocab_size", nil}}
	swiftKeys = []reader{{"context_length", 2048}, {"batch_size", 32}, {"num_chunks", 1}, {"split_lm_head", 8}, {"lut_embeddings", nil},
		{"lut_ffn", nil}, {"lut_lmhead", nil}, {"sliding_window", nil}, {"vocab_size", nil}}
	coremlLLMKeys = []reader{{"context_length", 2048}, {"hidden_size", 1536}, {"vocab_size", 262144}, {"num_layers", 35}, {"sliding_window", 512},
		{"architecture", "gemma4"}, {"eos_token_id", 1}, {"num_kv_shared_layers", 20}}
)

// runtimes lists what every runtime that knows this kind of package reads.
func (v *view) runtimes() []RuntimeView {
	out := []RuntimeView{}
	switch v.pkg.Kind {
	case manifest.Seed, manifest.ANEMLL:
		for _, r := range pythonKeys {
			out = append(out, v.pythonSees(r))
		}
		for _, r := range swiftKeys {
			out = append(out, v.swiftSees(r))
		}
	case manifest.CoreMLLLM:
		for _, r := range coremlLLMKeys {
			out = append(out, v.coremlLLMSees(r))
		}
		return append(out, v.textRuntimes()...)
	default:
		return out
	}
	for _, f := range []struct {
		key string
		n   number
	}{{"context_length", v.facts.context}, {"batch_size", v.facts.batch}, {"hidden_size", v.facts.hidden}, {"vocab_size", v.facts.vocab}} {
		if f.n.n > 0 {
			out = append(out, RuntimeView{seedContract, f.key, f.n.n, "program: " + f.n.source})
		}
	}
	if len(v.facts.parts) > 0 {
		out = append(out, RuntimeView{seedContract, "split_lm_head", len(v.facts.parts), "program: outputs of the head"})
	}
	return append(out, v.textRuntimes()...)
}

func at(p *manifest.Param) string { return fmt.Sprintf("%s:%d", p.Pos.File, p.Pos.Line) }

// pythonSees follows chat.py: int() of whatever stands there, so quoted
// numbers count; sliding_window is 512 for every prefix gemma3*.
func (v *view) pythonSees(r reader) RuntimeView {
	p := v.pkg.Params.Get(r.key)
	if n, ok := p.Int(); ok {
		return RuntimeView{anemllPython, r.key, n, at(p)}
	}
	if s, ok := p.Str(); ok {
		return RuntimeView{anemllPython, r.key, s, at(p)}
	}
	if r.key == "sliding_window" {
		if prefix, _ := v.pkg.Params.Str("model_prefix"); strings.HasPrefix(prefix, "gemma3") {
			return RuntimeView{anemllPython, r.key, 512, "default of the prefix gemma3"}
		}
	}
	if p != nil {
		return RuntimeView{anemllPython, r.key, nil, at(p)}
	}
	return RuntimeView{anemllPython, r.key, r.fallback, "default"}
}

// swiftSees follows YAMLConfig.swift: "as? Int", so a quoted number, a float
// or null is dropped and the default counts.
func (v *view) swiftSees(r reader) RuntimeView {
	p := v.pkg.Params.Get(r.key)
	if p != nil {
		if n, ok := p.Value.(int); ok {
			return RuntimeView{anemllSwift, r.key, n, at(p)}
		}
		return RuntimeView{anemllSwift, r.key, r.fallback, at(p) + " has no integer: default"}
	}
	return RuntimeView{anemllSwift, r.key, r.fallback, "default"}
}

// coremlLLMSees follows ModelConfig.swift: a value of another type is
// silently the default, which is Gemma 4 E2B's.
func (v *view) coremlLLMSees(r reader) RuntimeView {
	p := v.pkg.Params.Get(r.key)
	if p == nil && r.key == "num_layers" {
		p = v.pkg.Params.Get("num_hidden_layers")
	}
	if p == nil {
		return RuntimeView{coremlLLM, r.key, r.fallback, "default"}
	}
	switch r.fallback.(type) {
	case int:
		if n, ok := p.Value.(int); ok {
			return RuntimeView{coremlLLM, r.key, n, at(p)}
		}
	case string:
		if s, ok := p.Value.(string); ok {
			return RuntimeView{coremlLLM, r.key, s, at(p)}
		}
	}
	return RuntimeView{coremlLLM, r.key, r.fallback, at(p) + " has another type: default"}
}
