package runner_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/coreml/cpu"
	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/manifest"
	"github.com/anepkg/anepkg/runner"
)

// Packages that the CPU engine must run, and those whose ops it may lack.
var (
	mustRun = []string{
		"demo", "tiny/seed-qwen3-lut6", "tiny/seed-qwen3-mixed", "tiny/seed-qwen3-int8", "tiny/anemll-qwen3-fp16", "tiny/anemll-qwen3-lut6",
		"tiny/anemll-llama-lut4", "tiny/anemll-qwen25-argmax", "tiny/anemll-qwen3-mono-lut6",
	}
	mayRun = []string{
		"tiny/seed-qwen3_5-2chunks-fp16", "tiny/seed-qwen3_5-lut6", "tiny/seed-qwen3_5-moe-fp16", "tiny/seed-gemma4-full-local-fp16",
		"tiny/seed-gemma4-block-window-fp16", "tiny/seed-gemma4-block-window-lut6-2chunks", "tiny/anemll-gemma3-rotate", "tiny/anemll-gemma3-mono",
		"tiny/cml-embeddinggemma", "tiny/cml-qwen2-mono-fp16", "tiny/cml-qwen2-mono-int8", "tiny/cml-qwen2-mono-int4", "tiny/cml-functiongemma",
	}
)

// TestRepositoryPackages runs the packages of this repository, so that a
// fresh clone tests the whole way from files to text.
func TestRepositoryPackages(t *testing.T) {
	for name, form := range map[string]string{
		"seed-qwen3-lut6": "compiled", "anemll-llama-lut4": "package", "anemll-qwen25-argmax": "package", "anemll-qwen3-mono-lut6": "compiled",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testPackage(t, filepath.Join("testdata", "packages", name), form, coreml.Fast, true)
		})
	}
}

// TestPackages compares every sample, in both forms and two precisions, with
// its golden logits, and checks that greedy generation gives the golden ids.
func TestPackages(t *testing.T) {
	shared := sharedModels(t)
	for _, set := range []struct {
		names []string
		must  bool
	}{{mustRun, true}, {mayRun, false}} {
		for _, name := range set.names {
			for _, form := range []string{"package", "compiled"} {
				for _, precision := range []coreml.Precision{coreml.Fast, coreml.Strict} {
					t.Run(name+"/"+form+"/"+string(precision), func(t *testing.T) {
						t.Parallel()
						testPackage(t, filepath.Join(shared, name), form, precision, set.must)
					})
				}
			}
		}
	}
}

func testPackage(t *testing.T, dir, form string, precision coreml.Precision, must bool) {
	path := filepath.Join(dir, form)
	pkg, err := manifest.Open(t.Context(), os.DirFS(path), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pkg.Close() })
	opts := runner.Options{Precision: precision, Threads: 1, AllModes: true}
	cmp, err := runner.CompareGolden(t.Context(), pkg, cpu.New(), opts, os.DirFS(dir), "golden.json")
	if !must && errors.Is(err, diag.ErrUnsupported) {
		t.Skipf("the engine lacks something: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cmp.Cases {
		cos := 1.0
		if c.CosineMin != nil {
			cos = *c.CosineMin
		}
		if !c.Pass || !c.Top1Agree {
			t.Errorf("case %s: cosine %.7f (want %.7f), difference %.4f (want %.4f), best tokens agree %v, row %d, %s",
				c.Name, cos, cmp.Tolerance.CosineMin, c.MaxAbs, cmp.Tolerance.MaxAbs, c.Top1Agree, c.FirstRow, c.Error)
		}
	}
	r, err := runner.Open(t.Context(), pkg, cpu.New(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	if !r.IsEncoder() {
		generateGolden(t, r, filepath.Join(dir, "golden.json"))
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

func sharedModels(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("ANEPKG_SHARED")
	if dir == "" {
		dir = filepath.Join("..", "..", "shared")
	}
	dir = filepath.Join(dir, "models")
	if _, err := os.Stat(dir); err != nil {
		if os.Getenv("ANEPKG_REQUIRE_SHARED") == "1" {
			t.Fatalf("shared test data is required: %v", err)
		}
		t.Skipf("no shared test data at %s (set ANEPKG_SHARED)", dir)
	}
	return dir
}
