package manifest

import (
	"strings"

	"github.com/anepkg/anepkg/coreml/diag"
)

// seedKeys are the parameters that only the seed format has
// (seed-package-format.txt, meta.yaml).
var seedKeys = []string{
	"prefill_last_token_output", "recurrent_state", "prefill_full_batches_only", "gdn_chunk_size", "moe",
	"layer_types", "states", "local_attention_window", "local_cache_length", "final_logit_softcap",
	"per_layer_inputs", "kv_shared_layers", "quant_ffn", "quant_lmhead", "quant_embeddings",
	"lut_ffn_mixed", "hidden_size", "num_layers",
}

// parameterKeys are names that show that a map holds the parameters even
// when the file lost its indentation.
var parameterKeys = []string{"context_length", "batch_size", "num_chunks", "model_prefix", "lut_ffn", "ffn", "monolithic_model"}

// readMetaYAML reads meta.yaml into Params. A file that does not parse is a
// problem, not an error: the parts are then found by their names.
func (p *Package) readMetaYAML(name string) {
	p.ConfigFile = name
	p.Kind = ANEMLL
	f := p.File(name)
	if f == nil || f.Status == FileLFSPointer || f.Status == FileHTML {
		return // the file rules report it
	}
	data, err := readFile(p.FS, name, maxYAML)
	if err != nil {
		p.Problems = append(p.Problems, asError(name, err))
		return
	}
	p.Source = data
	p.Comments = parseComments(name, data)
	root, dups, err := parseYAML(name, data)
	if err != nil {
		p.Problems = append(p.Problems, asError(name, err))
		return
	}
	p.Problems = append(p.Problems, dups...)
	p.Params = p.metaParams(root)
	for _, k := range seedKeys {
		if prm := p.Params.Get(k); prm != nil && prm.Value != nil {
			p.Kind = Seed
			p.Reason = name + " has the seed key " + k
			break
		}
	}
	if p.Kind == ANEMLL {
		p.Reason = name + " has only keys that ANEMLL writes"
	}
	if s, ok := p.Params.Str("model_info.name"); ok && s != "" {
		p.Name = s
	}
	if s, ok := p.Params.Str("model_info.architecture"); ok {
		p.Architecture = s
	}
}

// metaParams flattens model_info and model_info.parameters. Files that lost
// their nesting are read too; the lost nesting is a problem, because every
// other reader refuses them (anemll.md 1.1).
func (p *Package) metaParams(root Param) Params {
	top := root
	info := top.Member("model_info")
	pos := diag.Pos{File: p.ConfigFile, Line: 1, Col: 1}
	if info == nil || info.Elems == nil {
		p.problem(pos, diag.Malformed, ErrStructure, "got no map model_info, want model_info: at the top and parameters: inside it",
			"put every key under model_info and model_info.parameters")
	}
	var out Params
	params := info.Member("parameters")
	if params == nil {
		params = top.Member("parameters")
	}
	if params != nil && params.Elems != nil {
		out = append(out, params.Elems...)
	} else if info != nil && info.Elems != nil {
		at := info.KeyPos
		if params != nil {
			at = params.KeyPos
		}
		p.problem(at, diag.Malformed, ErrStructure, "got no map model_info.parameters, want the parameters there",
			"indent the parameters under model_info.parameters")
	}
	hasParams := params != nil && params.Elems != nil
	if info != nil {
		for _, e := range info.Elems {
			if e.Key == "parameters" {
				continue
			}
			if !hasParams && isParameterMap(info.Elems) {
				out = append(out, e)
			}
			e.Key = "model_info." + e.Key
			out = append(out, e)
		}
	}
	for _, e := range top.Elems {
		switch {
		case e.Key == "model_info" || e.Key == "parameters":
		case !hasParams && isParameterMap(top.Elems):
			out = append(out, e)
			if info == nil || info.Elems == nil {
				e.Key = "model_info." + e.Key
				out = append(out, e)
			}
		default:
			e.Key = "top." + e.Key
			out = append(out, e)
		}
	}
	return out
}

func isParameterMap(elems []Param) bool {
	for _, k := range parameterKeys {
		if Params(elems).Get(k) != nil {
			return true
		}
	}
	return false
}

// lutSuffix gives the part of a file name that a lut or quant key makes:
// "_lut6" for 6, "_int8" for "int8", "" for none.
func (p *Package) lutSuffix(lutKey, quantKey string) string {
	if n, ok := p.Params.Int(lutKey); ok && n > 0 {
		prm := p.Params.Get(lutKey)
		return "_lut" + strings.TrimSpace(prm.Raw)
	}
	if s, ok := p.Params.Str(quantKey); ok && s != "" && s != "none" {
		kind, _, _ := strings.Cut(s, ",")
		return "_" + strings.TrimSpace(kind)
	}
	return ""
}
