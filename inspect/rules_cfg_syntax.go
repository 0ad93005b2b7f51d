package inspect

import (
	"errors"
	"fmt"
	"strings"

	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/manifest"
)

// isConfig reports whether a file describes the package, not the tokenizer.
func (p *Pass) isConfig(file string) bool {
	return file == p.pkg.ConfigFile || file == "meta.yaml"
}

// checkConfigParses reports description files that do not parse, lack their
// structure or are absent.
func checkConfigParses(p *Pass) {
	for _, e := range p.pkg.Problems {
		if !p.isConfig(e.Pos.File) || errors.Is(e, manifest.ErrDuplicateKey) || errors.Is(e, manifest.ErrOtherName) || errors.Is(e, manifest.ErrEscape) || errors.Is(e, manifest.ErrExtraChunk) {
			continue
		}
		f := p.ReportError(e).Compare("not readable", "YAML or JSON in its form")
		if errors.Is(e, manifest.ErrBOM) {
			f.As(Warning) // Swift, the reader of model_config.json, takes it
		}
	}
}

func checkDuplicateKeys(p *Pass) {
	for _, e := range p.pkg.Problems {
		if errors.Is(e, manifest.ErrDuplicateKey) {
			p.ReportError(e).Compare("twice", "once")
		}
	}
}

var integerKeys = []string{"context_length", "batch_size", "num_chunks", "split_lm_head", "vocab_size", "lut_embeddings", "lut_ffn", "lut_lmhead", "lut_bits", "sliding_window", "hidden_size", "num_layers"}

// checkTypes reports values that readers see differently: quoted numbers,
// floats and quoted booleans.
func checkTypes(p *Pass) {
	for _, key := range integerKeys {
		prm := p.pkg.Params.Get(key)
		if prm == nil || prm.Value == nil {
			continue
		}
		switch v := prm.Value.(type) {
		case string:
			if n, ok := prm.Int(); ok {
				p.Report(prm.Pos, "%s is the text %q: ANEMLL's Swift reader drops it and takes %s, its Python reader takes %d", key, v, swiftDefault(key), n).
					Compare(prm.Raw+" (text)", n).Fix("write %d without quotes", n).On(anemllSwift)
			} else if strings.HasPrefix(key, "lut") && v != "none" {
				p.Report(prm.Pos, "%s is %q, want a number of bits or none", key, v).As(Error).Compare(fmt.Sprintf("%q", v), "a number or none").Fix("write %s: none, or the bits of the tables", key)
			} else if v != "none" {
				p.Report(prm.Pos, "%s is %q, want a number", key, v).As(Error).Compare(v, "a number")
			}
		case float64:
			f := p.Report(prm.Pos, "%s is %s, not a whole number as readers expect", key, prm.Raw).Compare(prm.Raw, "a whole number").On(anemllSwift)
			if v != float64(int64(v)) {
				f.As(Error)
			}
		case int:
			if v < 0 || v == 0 && !strings.HasPrefix(key, "lut") {
				p.Report(prm.Pos, "%s is %d, want a number above 0", key, v).As(Error).Compare(v, "above 0")
			}
		default:
			p.Report(prm.Pos, "%s is no number", key).As(Error).Compare(fmt.Sprintf("%T", v), "a number")
		}
	}
	for _, key := range []string{"argmax_in_model", "split_rotate", "prefill_dynamic_slice", "update_mask_prefill", "recurrent_state", "prefill_last_token_output", "prefill_full_batches_only"} {
		prm := p.pkg.Params.Get(key)
		if prm == nil || prm.Value == nil {
			continue
		}
		if _, ok := prm.Value.(bool); ok {
			continue
		}
		if _, ok := prm.Bool(); ok {
			p.Report(prm.Pos, "%s is the text %q: ANEMLL's Swift reader takes false", key, prm.Raw).Compare(prm.Raw+" (text)", "a bool").
				Fix("write %s without quotes", strings.ToLower(prm.Raw)).On(anemllSwift)
		} else {
			p.Report(prm.Pos, "%s is no bool", key).As(Error).Compare(prm.Raw, "true or false")
		}
	}
}

func swiftDefault(key string) string {
	for _, r := range swiftKeys {
		if r.key == key && r.fallback != nil {
			return fmt.Sprint("its default ", r.fallback)
		}
	}
	return "no value"
}

// checkNone reports null where ANEMLL writes the text none.
func checkNone(p *Pass) {
	for _, key := range []string{"lut_embeddings", "lut_ffn", "lut_lmhead", "lut_bits"} {
		prm := p.pkg.Params.Get(key)
		if prm != nil && prm.Value == nil {
			p.Report(prm.Pos, "%s is null: ANEMLL's Python reader then looks for a file ..._lutNone", key).Compare("null", "none").
				Fix("write %s: none", key).On(anemllPython)
		}
	}
	if prm := p.pkg.Params.Get("model_info.version"); prm != nil {
		if _, ok := prm.Value.(float64); ok {
			p.Report(prm.Pos, "version %s is read as a number: Swift readers then take \"1.0\"", prm.Raw).As(Note).Compare(prm.Raw+" (number)", "text").
				Fix("write version: %q", prm.Raw)
		}
	}
}

// checkComments compares the generator's comment block with the parameters.
func checkComments(p *Pass) {
	pairs := map[string]string{"dynamic_prefill_slice": "prefill_dynamic_slice", "architecture": "model_info.architecture"}
	for i := range p.pkg.Comments {
		c := &p.pkg.Comments[i]
		key := c.Key
		if k, ok := pairs[key]; ok {
			key = k
		}
		switch c.Key {
		case "model_path", "output_dir", "command_line":
			if user := userPath(c.Raw); user != "" {
				p.Report(c.Pos, "the comment %s tells a path of the converter's machine: %s", c.Key, user).Fix("delete the line before publishing")
			}
			continue
		}
		prm := p.pkg.Params.Get(key)
		if prm == nil {
			continue
		}
		if n, ok := c.Int(); ok {
			if m, ok := prm.Int(); ok && n != m {
				p.Report(c.Pos, "the comment says %s: %d, the parameter is %d", c.Key, n, m).Compare(n, m).Also(prm.Pos)
			}
		} else if b, ok := c.Bool(); ok {
			if v, ok := prm.Bool(); ok && b != v {
				p.Report(c.Pos, "the comment says %s: %t, the parameter is %t", c.Key, b, v).Compare(b, v).Also(prm.Pos)
			}
		}
	}
}

// userPath finds an absolute path of a user in a text.
func userPath(s string) string {
	for f := range strings.FieldsSeq(s) {
		for _, root := range []string{"/Users/", "/home/", "/Volumes/", "/root/", "/private/"} {
			if i := strings.Index(f, root); i >= 0 {
				return f[i:]
			}
		}
	}
	return ""
}

// posOf is where a number is claimed, the config file when it is not.
func (p *Pass) posOf(key string) diag.Pos {
	if prm := p.pkg.Params.Get(key); prm != nil {
		return prm.Pos
	}
	return diag.In(p.pkg.ConfigFile)
}
