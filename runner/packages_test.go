package runner_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/coreml/cpu"
	"github.com/anepkg/anepkg/coreml/sharedtest"
	"github.com/anepkg/anepkg/manifest"
	"github.com/anepkg/anepkg/runner"
)

// allPackages are the samples that must agree with their references.
var allPackages = []string{
	"demo", "tiny/seed-qwen3-lut6", "tiny/seed-qwen3-mixed", "tiny/seed-qwen3-int8", "tiny/anemll-qwen3-fp16", "tiny/anemll-qwen3-lut6",
	"tiny/anemll-llama-lut4", "tiny/anemll-qwen25-argmax", "tiny/anemll-qwen3-mono-lut6",
	"tiny/seed-qwen3_5-2chunks-fp16", "tiny/seed-qwen3_5-lut6", "tiny/seed-qwen3_5-moe-fp16", "tiny/seed-gemma4-full-local-fp16",
	"tiny/seed-gemma4-block-window-fp16", "tiny/seed-gemma4-block-window-lut6-2chunks", "tiny/anemll-gemma3-rotate", "tiny/anemll-gemma3-mono",
	"tiny/cml-embeddinggemma", "tiny/cml-qwen2-mono-fp16", "tiny/cml-qwen2-mono-int8", "tiny/cml-qwen2-mono-int4", "tiny/cml-functiongemma",
	"tiny/cml-gemma4-swa-chunks", "tiny/cml-gemma4-stateful", "tiny/cml-qwen35-mlkv",
}

// TestRepositoryPackages runs the packages of this repository, so that a
// fresh clone tests the whole way from files to text.
func TestRepositoryPackages(t *testing.T) {
	for name, form := range map[string]string{
		"seed-qwen3-lut6": "compiled", "anemll-llama-lut4": "package", "anemll-qwen25-argmax": "package", "anemll-qwen3-mono-lut6": "compiled",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testPackage(t, filepath.Join("testdata", "packages", name), form, coreml.Fast)
		})
	}
}

// TestPackages compares every sample, in both forms and two precisions, with
// its golden logits and states, and checks that greedy generation gives the
// golden ids.
func TestPackages(t *testing.T) {
	shared := sharedtest.Path(t, "models")
	for _, name := range allPackages {
		for _, form := range []string{"package", "compiled"} {
			t.Run(name+"/"+form, func(t *testing.T) {
				t.Parallel()
				testPackage(t, filepath.Join(shared, name), form, coreml.Fast, coreml.Strict)
			})
		}
	}
}

// testPackage runs one form of a package in the given precisions, and
// generates in the first.
func testPackage(t *testing.T, dir, form string, precisions ...coreml.Precision) {
	path := filepath.Join(dir, form)
	pkg, err := manifest.Open(t.Context(), os.DirFS(path), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pkg.Close() })
	for i, precision := range precisions {
		r, err := runner.Open(t.Context(), pkg, cpu.New(), runner.Options{Precision: precision, Threads: 1, AllModes: true})
		if err != nil {
			t.Fatal(err)
		}
		compareGolden(t, r, dir, precision)
		if i == 0 && !r.IsEncoder() {
			generateGolden(t, r, filepath.Join(dir, "golden.json"))
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

func compareGolden(t *testing.T, r *runner.Runner, dir string, precision coreml.Precision) {
	cmp, err := r.CompareGolden(t.Context(), os.DirFS(dir), "golden.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cmp.Cases {
		cos := 1.0
		if c.CosineMin != nil {
			cos = *c.CosineMin
		}
		if !c.Pass || !c.Top1Agree {
			t.Errorf("%s, case %s: cosine %.7f (want %.7f), difference %.4f (want %.4f), best tokens agree %v, row %d, %s", precision,
				c.Name, cos, cmp.Tolerance.CosineMin, c.MaxAbs, cmp.Tolerance.MaxAbs, c.Top1Agree, c.FirstRow, c.Error)
		}
	}
}

type generated struct {
	Name    string
	Prefill runner.PrefillMode
	Prompt  []int  `json:"prompt_ids"`
	IDs     []int  `json:"generated_ids"`
	Shape   []int  `json:"logits_shape"`
	Text    string `json:"generated_text"`
	Stopped string `json:"stopped_by"`
}

// generateGolden generates every case; end tokens end only those cases that
// the reference ended by one.
func generateGolden(t *testing.T, r *runner.Runner, file string) {
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var g struct{ Cases []generated }
	if err := json.Unmarshal(data, &g); err != nil {
		t.Fatal(err)
	}
	for _, c := range g.Cases {
		want := c.IDs
		ends := c.Stopped == "end token"
		req := runner.Request{PromptIDs: c.Prompt, MaxTokens: len(want), IgnoreEOS: !ends, Prefill: c.Prefill, KeepLogits: r.HasLogits()}
		if ends {
			want = want[:len(want)-1]
		}
		text := ""
		res, err := r.Generate(t.Context(), req, func(s string) { text += s })
		if err != nil {
			t.Errorf("case %s: %v", c.Name, err)
			continue
		}
		if !slices.Equal(res.GeneratedIDs, want) {
			t.Errorf("case %s: got %v, want %v", c.Name, res.GeneratedIDs, want)
		}
		if c.Text != "" && (res.Text != c.Text || text != c.Text) {
			t.Errorf("case %s: text %q, streamed %q, want %q", c.Name, res.Text, text, c.Text)
		}
		if ends && (res.FinishReason != runner.FinishStop || res.StopID == nil || *res.StopID != c.IDs[len(want)]) {
			t.Errorf("case %s: ended by %s %v, want stop id %d", c.Name, res.FinishReason, res.StopID, c.IDs[len(want)])
		}
		if r.HasLogits() && (len(res.Logits) != c.Shape[0] || len(res.Logits[0]) != c.Shape[1]) {
			t.Errorf("case %s: %d rows of %d logits, want %v", c.Name, len(res.Logits), len(res.Logits[0]), c.Shape)
		}
	}
}
