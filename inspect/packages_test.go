package inspect_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/anepkg/anepkg/coreml/sharedtest"
	"github.com/anepkg/anepkg/inspect"
	"github.com/anepkg/anepkg/manifest"
)

// TestGoodPackages: no good package has an error, in either form, and both
// forms tell the same numbers as golden.json, which an outside oracle made.
func TestGoodPackages(t *testing.T) {
	for _, dir := range packages(t) {
		t.Run(shortName(dir), func(t *testing.T) {
			t.Parallel()
			p := open(t, os.DirFS(dir), dir)
			r, err := inspect.Validate(context.Background(), p, inspect.Options{})
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range r.Findings {
				if f.Severity == inspect.Error {
					t.Errorf("%s at %v: %s", f.ID, f.Where, f.Message)
				}
			}
			report, err := inspect.Inspect(context.Background(), p)
			if err != nil {
				t.Fatal(err)
			}
			compareGolden(t, filepath.Join(filepath.Dir(dir), "golden.json"), report)
		})
	}
}

func compareGolden(t *testing.T, file string, r *inspect.Report) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var golden struct {
		VocabSize     int `json:"vocab_size"`
		ContextLength int `json:"context_length"`
		BatchSize     int `json:"batch_size"`
	}
	if err := json.Unmarshal(data, &golden); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		got  *int
		want int
	}{
		{"vocab_size", r.Package.VocabSize, golden.VocabSize}, {"context_length", r.Package.ContextLength, golden.ContextLength},
		{"batch_size", r.Package.BatchSize, golden.BatchSize},
	} {
		if c.want != 0 && (c.got == nil || *c.got != c.want) {
			t.Errorf("%s: got %v, want %d", c.name, deref(c.got), c.want)
		}
	}
}

func deref(p *int) any {
	if p == nil {
		return nil
	}
	return *p
}

// TestLayers: layouts, states and layers as each package's HOW.md and
// meta.yaml tell them.
func TestLayers(t *testing.T) {
	all := func(n int, typ string) []string { return slices.Repeat([]string{typ}, n) }
	for _, c := range []struct {
		name   string
		layout manifest.Layout
		types  []string
		chunks [][2]int
		states map[string][]int // name -> layers, of the first object with that name
	}{
		{"anemll-gemma3-mono", manifest.Monolithic, []string{"sliding", "sliding", "full", "sliding"}, [][2]int{{0, 3}},
			map[string][]int{"model_model_kv_cache_local": {0, 1, 3}, "model_model_kv_cache_global": {2}}},
		{"anemll-gemma3-rotate", manifest.Rotate, []string{"sliding", "full", "sliding"}, [][2]int{{0, 2}, {0, 2}},
			map[string][]int{"model_model_kv_cache_local": {0, 2}, "model_model_kv_cache_global": {1}}},
		{"anemll-llama-lut4", manifest.Chunked, all(4, "full"), [][2]int{{0, 3}}, map[string][]int{"model_model_kv_cache_0": {0, 1, 2, 3}}},
		{"anemll-qwen25-argmax", manifest.Chunked, all(3, "full"), [][2]int{{0, 2}}, map[string][]int{"model_model_kv_cache_0": {0, 1, 2}}},
		{"anemll-qwen3-fp16", manifest.Chunked, all(4, "full"), [][2]int{{0, 1}, {2, 3}}, map[string][]int{"model_model_kv_cache_0": {0, 1, 2, 3}}},
		{"anemll-qwen3-mono-lut6", manifest.Monolithic, all(3, "full"), [][2]int{{0, 2}}, map[string][]int{"model_model_kv_cache_0": {0, 1, 2}}},
		{"cml-embeddinggemma", manifest.Encoder, []string{"sliding", "sliding", "full", "sliding", "sliding", "full"}, [][2]int{{0, 5}}, nil},
		{"cml-functiongemma", manifest.Monolithic, []string{"sliding", "sliding", "full", "sliding", "sliding", "full"}, [][2]int{{0, 5}}, map[string][]int{"kv_cache_0": {0, 1, 2, 3, 4, 5}}},
		{"cml-gemma4-stateful", manifest.StatefulChunks, slices.Repeat([]string{"sliding", "sliding", "full"}, 4), [][2]int{{0, 2}, {3, 8}, {9, 11}},
			map[string][]int{"kv_cache_sliding": {0, 1}, "kv_cache_full": {2}}},
		{"cml-gemma4-swa-chunks", manifest.KVIO, slices.Repeat([]string{"sliding", "sliding", "full"}, 4), [][2]int{{0, 2}, {3, 5}, {6, 8}, {9, 11}}, nil},
		{"cml-qwen2-mono-fp16", manifest.Monolithic, all(4, "full"), [][2]int{{0, 3}}, map[string][]int{"kv_cache_0": {0, 1, 2, 3}}},
		{"cml-qwen35-mlkv", manifest.MLKV, slices.Repeat([]string{"linear", "linear", "linear", "full"}, 4), [][2]int{{0, 3}, {4, 7}, {8, 11}, {12, 15}}, map[string][]int{"kv_cache": {3}}},
		{"seed-gemma4-block-window-fp16", manifest.ChunkedGemma4, []string{"sliding", "sliding", "full", "sliding", "sliding", "full"}, [][2]int{{0, 5}},
			map[string][]int{"model_model_kv_cache_local": {0, 1, 3}, "model_model_kv_cache_global": {2}}},
		{"seed-gemma4-block-window-lut6-2chunks", manifest.ChunkedGemma4, []string{"sliding", "sliding", "sliding", "full", "sliding", "full"}, [][2]int{{0, 2}, {3, 5}},
			map[string][]int{"model_model_kv_cache_local": {0, 1, 2}, "model_model_kv_cache_global": {3}}},
		{"seed-qwen3-lut6", manifest.Chunked, all(4, "full"), [][2]int{{0, 1}, {2, 3}}, map[string][]int{"model_model_kv_cache_0": {0, 1, 2, 3}}},
		{"seed-qwen3_5-2chunks-fp16", manifest.ChunkedRecurrent, []string{"linear", "linear", "full", "full"}, [][2]int{{0, 1}, {2, 3}},
			map[string][]int{"model_model_kv_cache_0": {2, 3}, "model_model_gdn_state_0": {0, 1}, "model_model_conv_state_0": {0, 1}}},
		{"seed-qwen3_5-lut6", manifest.ChunkedRecurrent, slices.Repeat([]string{"linear", "linear", "linear", "full"}, 2), [][2]int{{0, 7}},
			map[string][]int{"model_model_kv_cache_0": {3, 7}, "model_model_gdn_state_0": {0, 1, 2, 4, 5, 6}, "model_model_conv_state_0": {0, 1, 2, 4, 5, 6}}},
		{"seed-qwen3_5-moe-fp16", manifest.ChunkedRecurrent, []string{"linear", "linear", "linear", "full"}, [][2]int{{0, 3}},
			map[string][]int{"model_model_kv_cache_0": {3}, "model_model_gdn_state_0": {0, 1, 2}, "model_model_conv_state_0": {0, 1, 2}}},
	} {
		for _, form := range []string{"package", "compiled"} {
			t.Run(c.name+"/"+form, func(t *testing.T) {
				dir := sharedtest.Path(t, "models/tiny/"+c.name+"/"+form)
				p := open(t, os.DirFS(dir), dir)
				if p.Layout != c.layout {
					t.Errorf("layout: got %s (%s), want %s", p.Layout, p.Reason, c.layout)
				}
				layers, err := inspect.Layers(context.Background(), p)
				if err != nil {
					t.Fatal(err)
				}
				var types []string
				for _, l := range layers.Layers {
					types = append(types, l.Type)
					if l.WeightBytes == 0 {
						t.Errorf("layer %d has no weights", l.Index)
					}
				}
				if !slices.Equal(types, c.types) {
					t.Errorf("types: got %v, want %v", types, c.types)
				}
				var chunks [][2]int
				for _, ch := range layers.Chunks {
					chunks = append(chunks, [2]int{ch.First, ch.Last})
				}
				if !slices.Equal(chunks, c.chunks) {
					t.Errorf("chunks: got %v, want %v", chunks, c.chunks)
				}
				checkStates(t, p, c.states)
			})
		}
	}
}

func checkStates(t *testing.T, p *manifest.Package, want map[string][]int) {
	t.Helper()
	states, err := inspect.States(context.Background(), p)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, s := range states.States {
		if seen[s.Name] {
			continue
		}
		seen[s.Name] = true
		if !slices.Equal(s.Layers, want[s.Name]) {
			t.Errorf("state %s: got layers %v, want %v", s.Name, s.Layers, want[s.Name])
		}
	}
	if len(seen) != len(want) {
		t.Errorf("states: got %d names, want %d", len(seen), len(want))
	}
}

// TestPointers: a clone without git-lfs is told apart from a broken package.
func TestPointers(t *testing.T) {
	dir := sharedtest.Path(t, "models/anemll-qwen3-1.7b-ctx2048-lfs-pointers")
	p := open(t, os.DirFS(dir), dir)
	r, err := inspect.Validate(context.Background(), p, inspect.Options{})
	if err != nil {
		t.Fatal(err)
	}
	sizes := map[string]int64{}
	matches := 0
	for _, f := range r.Findings {
		switch {
		case f.ID == "PKG006":
			sizes[f.Where[0].File] = f.Want.(int64)
		case f.ID == "WGT005":
			matches++
		case f.Severity == inspect.Error:
			t.Errorf("%s: %s", f.ID, f.Message)
		}
	}
	// the sizes stated in anemll.md 6.1b, taken from the published files
	for file, want := range map[string]int64{
		"qwen_FFN_PF_lut6_chunk_01of02.mlmodelc/weights/weight.bin": 539892672,
		"qwen_FFN_PF_lut6_chunk_02of02.mlmodelc/weights/weight.bin": 539896832,
		"qwen_embeddings.mlmodelc/weights/weight.bin":               622329984,
		"qwen_lm_head_lut6.mlmodelc/weights/weight.bin":             238237760,
	} {
		if sizes[file] != want {
			t.Errorf("%s: got true size %d, want %d", file, sizes[file], want)
		}
	}
	if matches != 4 {
		t.Errorf("got %d pointers that match their program, want 4", matches)
	}
	layers, err := inspect.Layers(context.Background(), p)
	if err != nil {
		t.Fatal(err)
	}
	if layers.NumLayers != 28 || len(layers.Chunks) != 2 || layers.Chunks[0].Last != 13 || layers.Chunks[1].First != 14 || layers.Chunks[1].Last != 27 {
		t.Errorf("layers: got %d in %+v, want 28 in 0-13 and 14-27", layers.NumLayers, layers.Chunks)
	}
}

// TestForeignSamples: real samples of other formats open and are named; good
// ones have no error beyond the weight files that the collection lacks.
func TestForeignSamples(t *testing.T) {
	models := sharedtest.Path(t, "models")
	for _, pattern := range []string{"compiled/*", "packages/*", "negative/*"} {
		dirs, err := filepath.Glob(filepath.Join(models, filepath.FromSlash(pattern)))
		if err != nil || len(dirs) == 0 {
			t.Fatalf("no sample matches %s: %v", pattern, err)
		}
		for _, dir := range dirs {
			t.Run(shortName(dir), func(t *testing.T) {
				p := open(t, os.DirFS(dir), dir)
				r, err := inspect.Validate(context.Background(), p, inspect.Options{})
				if err != nil {
					t.Fatal(err)
				}
				for _, f := range r.Findings {
					if strings.HasPrefix(f.Message, "the check itself failed") {
						t.Errorf("%s: %s", f.ID, f.Message)
					}
					if f.Severity == inspect.Error && p.Kind == manifest.SingleModel && f.ID != "WGT004" && f.ID != "PKG003" && f.ID != "PKG005" {
						t.Errorf("%s at %v: %s", f.ID, f.Where, f.Message)
					}
				}
				if p.Kind == manifest.Unknown && len(p.Seen) == 0 {
					t.Error("an unknown folder without a word about what it holds")
				}
				if strings.HasPrefix(pattern, "negative") && p.Kind != manifest.NeuralNetwork {
					t.Errorf("kind: got %s, want neural-network", p.Kind)
				}
			})
		}
	}
}
