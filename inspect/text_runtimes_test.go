package inspect_test

import (
	"bytes"
	"context"
	"maps"
	"os"
	"regexp"
	"testing"
	"testing/fstest"

	"github.com/anepkg/anepkg/coreml/sharedtest"
	"github.com/anepkg/anepkg/inspect"
)

// TestRuntimesInText: the text shows a key where the readers part, and says
// so in one line where they agree. The expected numbers are those of the
// readers' sources (anemll.md 1.3).
func TestRuntimesInText(t *testing.T) {
	files := load(t, sharedtest.Path(t, "models/tiny/seed-qwen3-lut6/compiled"))
	for _, c := range []struct {
		name   string
		change func(fstest.MapFS)
		want   []string
		not    []string
	}{
		{"all agree", func(fstest.MapFS) {}, []string{`(?m)^Runtimes  .*: all read the same values`}, []string{"anemll-swift +2048"}},
		{"quoted number", edit("meta.yaml", "context_length: 64", `context_length: "64"`),
			[]string{`(?m)^Runtimes  anemll-python, anemll-swift, seed: where they differ`, `context_length +anemll-python +64 +meta\.yaml:\d+\n`, `anemll-swift +2048 +meta\.yaml:\d+ has no integer: default\n`, ` seed +64 +program: `},
			[]string{`batch_size`, `lut_ffn`}},
		{"absent number", edit("meta.yaml", "batch_size: 16", "other: 16"), []string{`batch_size +anemll-python +64 +default\n`, `anemll-swift +32 +default\n`, ` seed +16 +program`}, []string{`context_length`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := maps.Clone(files)
			c.change(m)
			r, err := inspect.Inspect(context.Background(), open(t, m, "pkg"))
			if err != nil {
				t.Fatal(err)
			}
			var b bytes.Buffer
			if err := r.WriteText(&b, false); err != nil {
				t.Fatal(err)
			}
			for _, w := range c.want {
				if !regexp.MustCompile(w).Match(b.Bytes()) {
					t.Errorf("no %q in\n%s", w, b.String())
				}
			}
			for _, w := range c.not {
				if regexp.MustCompile(w).Match(b.Bytes()) {
					t.Errorf("%q in\n%s", w, b.String())
				}
			}
		})
	}
}

// TestWeightLayers: weights and layers count alike, also where the names in
// each chunk start at 0. The package was converted with layers 3 to 5 in
// chunk 2.
func TestWeightLayers(t *testing.T) {
	dir := sharedtest.Path(t, "models/tiny/seed-gemma4-block-window-lut6-2chunks/compiled")
	p := open(t, os.DirFS(dir), dir)
	r, err := inspect.Weights(context.Background(), p)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]map[int]bool{}
	for _, w := range r.Weights {
		if w.Layer != nil {
			if got[w.Part] == nil {
				got[w.Part] = map[int]bool{}
			}
			got[w.Part][*w.Layer] = true
		}
	}
	for part, want := range map[string]map[int]bool{
		"gemma4_FFN_PF_lut6_chunk_01of02.mlmodelc": {0: true, 1: true, 2: true},
		"gemma4_FFN_PF_lut6_chunk_02of02.mlmodelc": {3: true, 4: true, 5: true},
	} {
		if !maps.Equal(got[part], want) {
			t.Errorf("%s: got layers %v, want %v", part, got[part], want)
		}
	}
}
