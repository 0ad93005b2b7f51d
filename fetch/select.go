package fetch

import (
	"context"
	"path"
	"slices"
	"strings"

	"github.com/anepkg/anepkg/coreml/diag"
)

// Selection narrows what is fetched. The zero value takes what a package
// needs: of two forms of one model the compiled one, no weights of other
// frameworks; a repository with several packages needs a choice.
type Selection struct {
	// Include and Exclude are patterns as huggingface_hub has them: "*" also
	// crosses "/", "?" is one character, "[a-c]" a set; a pattern that ends
	// with "/" means all below. Include keeps what matches any; Exclude then
	// removes.
	Include, Exclude []string
	// Parts keeps only models of these roles ("embeddings", "chunk",
	// "lm_head", …), chunk numbers ("chunk1") or paths; other files stay.
	Parts []string
	// WithoutWeights leaves weight files out.
	WithoutWeights bool
	// Container prefers "mlmodelc" (the default) or "mlpackage" where a
	// model exists in both forms; "both" keeps both.
	Container string
	// Variant is the folder of the package in a repository of several.
	Variant string
	// All takes every file; the patterns still apply.
	All bool
}

// choose applies sel to files and notes in p what was left out and why.
func (c *Client) choose(ctx context.Context, p *Plan, files []File, sel Selection) ([]File, error) {
	for _, pat := range slices.Concat(sel.Include, sel.Exclude) {
		if !validPattern(pat) {
			return nil, diag.Errorf(diag.Pos{}, diag.Usage, "pattern %q is malformed", pat).WithHint("want a file name in which * stands for anything")
		}
	}
	switch sel.Container {
	case "", "mlmodelc", "mlpackage", "both":
	default:
		return nil, diag.Errorf(diag.Pos{}, diag.Usage, "container %q is unknown", sel.Container).WithHint("want mlmodelc, mlpackage or both")
	}
	s := &selector{plan: p, sel: sel}
	files = s.patterns(files)
	if sel.All {
		return files, nil
	}
	files, err := s.variant(files)
	if err != nil {
		return nil, err
	}
	files = s.containers(files)
	files = s.foreign(files)
	if len(sel.Parts) > 0 {
		if files, err = c.parts(ctx, s, files); err != nil {
			return nil, err
		}
	}
	if sel.WithoutWeights {
		files = s.drop(files, "weights are not wanted", func(f File) bool { return isWeight(f.Path) })
	}
	return files, nil
}

// selector filters a list and keeps account.
type selector struct {
	plan *Plan
	sel  Selection
}

// drop removes the files for which out is true.
func (s *selector) drop(files []File, reason string, out func(File) bool) []File {
	var kept []File
	for _, f := range files {
		if out(f) {
			s.plan.Skipped = append(s.plan.Skipped, Skipped{Path: f.Path, Bytes: f.Bytes, Reason: reason})
			continue
		}
		kept = append(kept, f)
	}
	return kept
}

func (s *selector) patterns(files []File) []File {
	if len(s.sel.Include) > 0 {
		files = s.drop(files, "not included", func(f File) bool { return !anyMatch(s.sel.Include, f.Path) })
	}
	return s.drop(files, "excluded", func(f File) bool { return anyMatch(s.sel.Exclude, f.Path) })
}

// containerOf returns the folder of the model that holds name ("a/b.mlmodelc")
// and its form, or "". A zipped model counts as "zip".
func containerOf(name string) (dir, form string) {
	for p := name; p != "." && p != "/"; p = path.Dir(p) {
		switch {
		case strings.HasSuffix(p, ".mlmodelc"):
			dir, form = p, "mlmodelc"
		case strings.HasSuffix(p, ".mlpackage"):
			dir, form = p, "mlpackage"
		}
	}
	if form == "" && (strings.HasSuffix(name, ".mlmodelc.zip") || strings.HasSuffix(name, ".mlpackage.zip")) {
		return name, "zip"
	}
	return dir, form
}

// containers keeps one form of each model.
func (s *selector) containers(files []File) []File {
	if s.sel.Container == "both" {
		return files
	}
	have := map[string]map[string]bool{} // stem -> form
	stem := func(dir string) string {
		return strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(dir, ".zip"), ".mlmodelc"), ".mlpackage")
	}
	for _, f := range files {
		if dir, form := containerOf(f.Path); form != "" {
			if have[stem(dir)] == nil {
				have[stem(dir)] = map[string]bool{}
			}
			have[stem(dir)][form] = true
		}
	}
	order := []string{"mlmodelc", "mlpackage", "zip"}
	if s.sel.Container == "mlpackage" {
		order = []string{"mlpackage", "mlmodelc", "zip"}
	}
	best := func(dir string) string {
		for _, form := range order {
			if have[stem(dir)][form] {
				return form
			}
		}
		return ""
	}
	return s.drop(files, "another form of the same model is taken", func(f File) bool {
		dir, form := containerOf(f.Path)
		return form != "" && form != best(dir)
	})
}

// foreign drops weights of other frameworks beside Core ML models.
func (s *selector) foreign(files []File) []File {
	coreml := slices.ContainsFunc(files, func(f File) bool {
		_, form := containerOf(f.Path)
		return form != ""
	})
	if !coreml {
		return files
	}
	return s.drop(files, "weights of another framework", func(f File) bool {
		if _, form := containerOf(f.Path); form != "" {
			return false
		}
		base := path.Base(f.Path)
		switch path.Ext(base) {
		case ".safetensors", ".gguf", ".ggml", ".onnx", ".onnx_data", ".h5", ".msgpack", ".pt", ".pth", ".ckpt", ".tflite", ".pte":
			return true
		}
		return strings.HasPrefix(base, "pytorch_model") && strings.HasSuffix(base, ".bin")
	})
}

// isWeight reports whether name is a weight file of a model.
func isWeight(name string) bool {
	dir, form := containerOf(name)
	return form != "" && form != "zip" && path.Ext(name) == ".bin" && strings.Contains(strings.TrimPrefix(name, dir), "/weights/")
}

func anyMatch(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		if strings.HasSuffix(p, "/") {
			p += "*"
		}
		return match(p, name)
	})
}
