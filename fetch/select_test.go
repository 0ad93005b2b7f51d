package fetch_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/coreml/sharedtest"
	"github.com/anepkg/anepkg/fetch"
)

// TestSelection plans repositories; want lists what is fetched.
func TestSelection(t *testing.T) {
	one := []string{"meta.yaml", "tokenizer.json", "a.mlmodelc/model.mil", "a.mlmodelc/weights/weight.bin", "a.mlmodelc/coremldata.bin"}
	forms := []string{"meta.yaml", "a.mlmodelc/model.mil", "a.mlpackage/Manifest.json", "a.mlpackage/Data/com.apple.CoreML/weights/weight.bin", "a.mlmodelc.zip",
		"b.mlpackage/Manifest.json", "c.mlmodelc.zip", "model.safetensors", "pytorch_model.bin", "x.gguf"}
	several := []string{"README.md", "ctx512/meta.yaml", "ctx512/a.mlmodelc/model.mil", "ctx2048/meta.yaml", "ctx2048/a.mlmodelc/model.mil"}
	cases := []struct {
		name  string
		ref   string
		files []string
		sel   fetch.Selection
		want  string
		code  diag.Code
	}{
		{"all of one package", repoName, one, fetch.Selection{}, strings.Join(one, " "), ""},
		{"without weights", repoName, one, fetch.Selection{WithoutWeights: true}, "meta.yaml tokenizer.json a.mlmodelc/model.mil a.mlmodelc/coremldata.bin", ""},
		{"a folder", repoName + "/a.mlmodelc", one, fetch.Selection{}, "a.mlmodelc/model.mil a.mlmodelc/weights/weight.bin a.mlmodelc/coremldata.bin", ""},
		{"a file", repoName + "/tokenizer.json", one, fetch.Selection{}, "tokenizer.json", ""},
		{"include", repoName, one, fetch.Selection{Include: []string{"*.json", "a.mlmodelc/w*"}}, "tokenizer.json a.mlmodelc/weights/weight.bin", ""},
		{"include a folder", repoName, one, fetch.Selection{Include: []string{"a.mlmodelc/"}, Exclude: []string{"*.bin"}}, "a.mlmodelc/model.mil", ""},
		{"nothing matches", repoName, one, fetch.Selection{Include: []string{"*.xyz"}}, "", diag.Usage},
		{"compiled form", repoName, forms, fetch.Selection{}, "meta.yaml a.mlmodelc/model.mil b.mlpackage/Manifest.json c.mlmodelc.zip", ""},
		{"package form", repoName, forms, fetch.Selection{Container: "mlpackage"}, "meta.yaml a.mlpackage/Manifest.json a.mlpackage/Data/com.apple.CoreML/weights/weight.bin b.mlpackage/Manifest.json c.mlmodelc.zip", ""},
		{"both forms", repoName, forms, fetch.Selection{Container: "both"}, "meta.yaml a.mlmodelc/model.mil a.mlpackage/Manifest.json a.mlpackage/Data/com.apple.CoreML/weights/weight.bin a.mlmodelc.zip b.mlpackage/Manifest.json c.mlmodelc.zip", ""},
		{"unknown form", repoName, forms, fetch.Selection{Container: "onnx"}, "", diag.Usage},
		{"everything", repoName, forms, fetch.Selection{All: true}, strings.Join(forms, " "), ""},
		{"several packages", repoName, several, fetch.Selection{}, "", diag.Usage},
		{"one of several", repoName, several, fetch.Selection{Variant: "ctx512"}, "ctx512/meta.yaml ctx512/a.mlmodelc/model.mil", ""},
		{"one of several by path", repoName + "/ctx2048", several, fetch.Selection{}, "ctx2048/meta.yaml ctx2048/a.mlmodelc/model.mil", ""},
		{"no such package", repoName, several, fetch.Selection{Variant: "ctx1"}, "", diag.NotFound},
		{"other frameworks alone stay", repoName, []string{"config.json", "model.safetensors"}, fetch.Selection{}, "config.json model.safetensors", ""},
		{"bad pattern", repoName, one, fetch.Selection{Include: []string{""}}, "", diag.Usage},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			h := newHub(t)
			files := map[string][]byte{}
			for _, p := range tc.files {
				files[p] = []byte(p)
			}
			h.Add(repoName, files)
			p, err := newClient(t, h, nil).Plan(t.Context(), ref(t, tc.ref), fetch.PlanOptions{Selection: tc.sel})
			if tc.code != "" {
				is(t, err, nil, tc.code)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range p.Files {
				got = append(got, f.Path)
			}
			want := strings.Fields(tc.want)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("got %q, want %q; skipped %+v", got, want, p.Skipped)
			}
			if tc.sel.Include == nil && !strings.Contains(tc.ref, "/a") && !strings.Contains(tc.ref, "/t") && !strings.Contains(tc.ref, "/c") && len(got)+len(p.Skipped) != len(tc.files) {
				t.Errorf("%d taken and %d skipped of %d", len(got), len(p.Skipped), len(tc.files))
			}
		})
	}
}

// TestParts asks for single models of a real package.
func TestParts(t *testing.T) {
	dir := filepath.Join(sharedtest.Path(t, "models/tiny"), "anemll-llama-lut4", "compiled")
	h := newHub(t)
	if _, err := h.AddFS(repoName, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	c := newClient(t, h, nil)
	cases := []struct {
		parts []string
		want  []string
	}{
		{[]string{"lm_head"}, []string{"llama_lm_head_lut6.mlmodelc"}},
		{[]string{"chunk1", "embeddings"}, []string{"llama_FFN_PF_lut4_chunk_01of01.mlmodelc", "llama_embeddings_lut6.mlmodelc"}},
		{[]string{"llama_lm_head_lut6.mlmodelc"}, []string{"llama_lm_head_lut6.mlmodelc"}},
	}
	for _, tc := range cases {
		p, err := c.Plan(t.Context(), ref(t, repoName), fetch.PlanOptions{Selection: fetch.Selection{Parts: tc.parts}})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		meta := false
		for _, f := range p.Files {
			top, _, inside := strings.Cut(f.Path, "/")
			if inside && !slices.Contains(got, top) {
				got = append(got, top)
			}
			meta = meta || f.Path == "meta.yaml"
		}
		if !slices.Equal(got, tc.want) || !meta {
			t.Errorf("%v: %v, meta.yaml %v", tc.parts, got, meta)
		}
	}
	_, err := c.Plan(t.Context(), ref(t, repoName), fetch.PlanOptions{Selection: fetch.Selection{Parts: []string{"vision"}}})
	is(t, err, nil, diag.Usage)
	if !strings.Contains(hintOf(err), "lm_head") {
		t.Errorf("hint %q names no part", hintOf(err))
	}
}
