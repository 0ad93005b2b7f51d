package runner

import (
	"bytes"
	"io/fs"
	"os"
	"path"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/coreml/cpu"
	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/coreml/sharedtest"
	"github.com/anepkg/anepkg/coreml/tensor"
	"github.com/anepkg/anepkg/manifest"
)

// loadFS copies a folder into memory, for tests that change files.
func loadFS(t *testing.T, dir string) fstest.MapFS {
	t.Helper()
	out := fstest.MapFS{}
	fsys := os.DirFS(dir)
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(fsys, name)
		out[name] = &fstest.MapFile{Data: data}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestContractOfChunks: what golden.json of each CoreML-LLM package says.
func TestContractOfChunks(t *testing.T) {
	for _, tc := range []struct {
		name     string
		contract manifest.Layout
		vocab    int
		logits   bool
		batch    int
		ring     int
		rerun    bool
		carried  int // chunks that hand caches or states to their next call
		states   int // chunks with states
	}{
		{"cml-gemma4-swa-chunks", manifest.KVIO, 768, false, 0, 0, false, 2, 0},
		{"cml-gemma4-stateful", manifest.StatefulChunks, 768, false, 8, 16, true, 0, 2},
		{"cml-qwen35-mlkv", manifest.MLKV, 544, true, 0, 0, false, 4, 4},
	} {
		for _, form := range []string{"package", "compiled"} {
			r, err := Open(t.Context(), openShared(t, "models", "tiny", tc.name, form), &idleBackend{}, Options{})
			if err != nil {
				t.Errorf("%s/%s: %v", tc.name, form, err)
				continue
			}
			s := r.contract.(*stepper)
			l := s.net.(*linked)
			if r.Contract() != string(tc.contract) || r.ContextLength() != 64 || r.VocabSize() != tc.vocab || r.HasLogits() != tc.logits ||
				s.rules.batch != tc.batch || s.rules.ring != tc.ring || s.rules.rerun != tc.rerun || s.rules.lastOut != (tc.batch > 0) {
				t.Errorf("%s/%s: contract %s, vocabulary %d, logits %v, rules %+v, want %+v", tc.name, form, r.Contract(), r.VocabSize(), r.HasLogits(), s.rules, tc)
			}
			if len(l.kept) != tc.carried || len(l.st.byPart) != tc.states || len(r.States()) != tc.carried+tc.states {
				t.Errorf("%s/%s: %d chunks carry and %d have states, want %d and %d", tc.name, form, len(l.kept), len(l.st.byPart), tc.carried, tc.states)
			}
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// cut, grow and zero change a file.
func cut(n int) func([]byte) []byte         { return func(b []byte) []byte { return b[:len(b)-n] } }
func grow(b []byte) []byte                  { return append(bytes.Clone(b), 0) }
func replaced(s string) func([]byte) []byte { return func([]byte) []byte { return []byte(s) } }
func swapped(old, new string) func([]byte) []byte {
	return func(b []byte) []byte { return bytes.Replace(b, []byte(old), []byte(new), 1) }
}

const lfsPointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 49152\n"

// TestSideFiles: whatever is wrong with a side file is an error before
// anything runs, with the file's name and what it should be.
func TestSideFiles(t *testing.T) {
	const swa, stateful, mlkv = "cml-gemma4-swa-chunks", "cml-gemma4-stateful", "cml-qwen35-mlkv"
	const sub = "qwen3_5_0_8b_decode_chunks_mlkv/"
	for _, tc := range []struct {
		name string
		pkg  string
		file string
		edit func([]byte) []byte // nil removes the file
		code diag.Code
		want string
	}{
		{"embedding missing", swa, "embed_tokens_q8.bin", nil, diag.NotFound, "the side file is missing"},
		{"embedding short", swa, "embed_tokens_q8.bin", cut(1), diag.Mismatch, "got 49151 bytes, want 49152 (768 rows of 64 elements)"},
		{"embedding one row short", stateful, "embed_tokens_q8.bin", cut(64), diag.Mismatch, "got 49088 bytes"},
		{"embedding long", swa, "embed_tokens_q8.bin", grow, diag.Mismatch, "got 49153 bytes"},
		{"embedding empty", swa, "embed_tokens_q8.bin", replaced(""), diag.Malformed, "not complete (empty)"},
		{"embedding a pointer", swa, "embed_tokens_q8.bin", replaced(lfsPointer), diag.LFSPointer, "where 49152 bytes should be"},
		{"embedding a web page", swa, "embed_tokens_q8.bin", replaced("<!DOCTYPE html><html><body>Not Found</body></html>"), diag.Malformed, "not complete (html)"},
		{"scales short", swa, "embed_tokens_scales.bin", cut(2), diag.Mismatch, "got 1534 bytes, want 1536"},
		{"per-layer table short", stateful, "embed_tokens_per_layer_q8.bin", cut(192), diag.Mismatch, "want 147456"},
		{"per-layer scales missing", swa, "embed_tokens_per_layer_scales.bin", nil, diag.NotFound, "missing"},
		{"rotary table missing", swa, "sin_full.npy", nil, diag.NotFound, "missing"},
		{"rotary table cut", swa, "cos_full.npy", cut(2), diag.Malformed, "got 16510 bytes, want 16512"},
		{"rotary table in fp32", swa, "cos_full.npy", swapped("'<f2'", "'<f4'"), diag.Mismatch, "got fp32"},
		{"rotary table in Fortran order", swa, "cos_sliding.npy", swapped("False", "True "), diag.Malformed, "Fortran order"},
		{"rotary table of another width", swa, "cos_sliding.npy", swapped("(128, 32)", "(64, 64) "), diag.Mismatch, "want fp16 [positions, 32]"},
		{"rotary table of few rows", stateful, "sin_sliding.npy", swapped("(128, 32)", "(63, 32) "), diag.Mismatch, "got 63 rows, want one for each of the 64 positions"},
		{"rotary table of endless rows", stateful, "sin_sliding.npy", swapped("(128, 32)", "(999999999, 32)"), diag.Malformed, "want 64000000"},
		{"rotary table no table", stateful, "sin_sliding.npy", replaced("hello, this is no table"), diag.Malformed, "magic"},
		{"embedding of half elements", mlkv, sub + "embed_weight.bin", cut(1), diag.Mismatch, "want a multiple of 128"},
		{"embedding of fewer rows than the head", mlkv, sub + "embed_weight.bin", cut(128), diag.Mismatch, "has 543 rows, the head 544 tokens"},
		{"embedding missing, mlkv", mlkv, sub + "embed_weight.bin", nil, diag.NotFound, "embed_weight.bin"},
		{"context_length of another build", swa, "model_config.json", swapped(`"context_length": 64`, `"context_length": 128`), diag.Mismatch, "context_length is 128, the chunks' masks have 64 columns"},
		{"vocab_size of another model", swa, "model_config.json", swapped(`"vocab_size": 768`, `"vocab_size": 769`), diag.Mismatch, "want 49216"},
	} {
		dir := sharedtest.Path(t, "models", "tiny", tc.pkg, "compiled")
		fsys := loadFS(t, dir)
		if fsys[tc.file] == nil {
			t.Fatalf("%s: no file %s", tc.name, tc.file)
		}
		if tc.edit == nil {
			delete(fsys, tc.file)
		} else {
			fsys[tc.file] = &fstest.MapFile{Data: tc.edit(fsys[tc.file].Data)}
		}
		pkg, err := manifest.Open(t.Context(), fsys, "pkg")
		if err != nil {
			t.Fatal(err)
		}
		_, err = Open(t.Context(), pkg, &idleBackend{}, Options{})
		if diag.CodeOf(err) != tc.code || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v (class %s), want class %s and %q", tc.name, err, diag.CodeOf(err), tc.code, tc.want)
		}
		if err != nil && !strings.Contains(err.Error(), path.Base(tc.file)) && tc.code != diag.Mismatch {
			t.Errorf("%s: %v does not name %s", tc.name, err, tc.file)
		}
		_ = pkg.Close()
	}
}

// TestChunksOfDifferentBuilds: chunks that do not fit each other are refused.
func TestChunksOfDifferentBuilds(t *testing.T) {
	const swa, mlkv = "cml-gemma4-swa-chunks", "cml-qwen35-mlkv"
	for _, tc := range []struct {
		name, pkg, file string
		edit            func([]byte) []byte
		want            string
	}{
		{"mask", swa, "chunk3.mlmodelc/model.mil", swapped("tensor<fp16, [1, 1, 1, 64]> causal_mask_full", "tensor<fp16, [1, 1, 1, 128]> causal_mask_full"),
			"causal_mask_full has 128 columns, in the chunks before 64"},
		{"cache", swa, "chunk1.mlmodelc/model.mil", swapped("tensor<fp16, [1, 1, 64, 64]> K_full_in", "tensor<fp16, [1, 1, 32, 64]> K_full_in"), "the input K_full_in that it becomes"},
		{"shared cache", swa, "chunk4.mlmodelc/model.mil", swapped("tensor<fp16, [1, 1, 16, 32]> kv13_k", "tensor<fp16, [1, 1, 8, 32]> kv13_k"), "an earlier chunk gives fp16 [1, 1, 16, 32]"},
		{"unknown input", swa, "chunk3.mlmodelc/model.mil", swapped("[1, 1, 192]> per_layer_combined", "[1, 1, 192]> per_layer_combined, tensor<fp16, [1, 1, 64]> image_embedding"), "image_embedding, which nothing provides"},
		{"recurrent state", mlkv, "qwen3_5_0_8b_decode_chunks_mlkv/chunk_b.mlmodelc/model.mil", swapped("tensor<fp16, [1, 4, 16, 16]> rec_state_4", "tensor<fp32, [1, 4, 16, 16]> rec_state_4"), "rec_state_4"},
	} {
		fsys := loadFS(t, sharedtest.Path(t, "models", "tiny", tc.pkg, "compiled"))
		was := fsys[tc.file].Data
		fsys[tc.file] = &fstest.MapFile{Data: tc.edit(was)}
		if bytes.Equal(was, fsys[tc.file].Data) {
			t.Fatalf("%s: nothing was changed", tc.name)
		}
		pkg, err := manifest.Open(t.Context(), fsys, "pkg")
		if err != nil {
			t.Fatal(err)
		}
		_, err = Open(t.Context(), pkg, &idleBackend{}, Options{})
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %q", tc.name, err, tc.want)
		}
		_ = pkg.Close()
	}
}

// TestCheckpoints: in every contract, going back to a checkpoint gives the
// same scores again, bit for bit, also after a longer detour, and a package
// says rightly whether it may be rewound without one.
func TestCheckpoints(t *testing.T) {
	for _, name := range []string{
		"seed-qwen3-lut6", "seed-qwen3_5-2chunks-fp16", "seed-gemma4-block-window-fp16", "anemll-gemma3-rotate", "anemll-qwen3-mono-lut6", "cml-qwen2-mono-int8",
		"cml-functiongemma", "cml-gemma4-swa-chunks", "cml-gemma4-stateful", "cml-qwen35-mlkv",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, err := Open(t.Context(), openShared(t, "models", "tiny", name, "compiled"), cpu.New(), Options{Threads: 1})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = r.Close() })
			ids := make([]int, 40)
			for i := range ids {
				ids[i] = (i*i*31 + 7*i + 3) % 500
			}
			checkpoints(t, r, ids)
		})
	}
}

func checkpoints(t *testing.T, r *Runner, ids []int) {
	must := func(sc Scores, err error) Scores {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return sc
	}
	const n = 21 // past the window of the Gemma 4 samples
	sc, _, err := r.seq.prompt(t.Context(), feeding{ids: ids[:n], mode: "auto", reuse: false}, nil)
	must(sc, err)
	cp, err := r.Checkpoint()
	if err != nil {
		t.Fatal(err)
	}
	first := []Scores{must(r.seq.next(t.Context(), ids[n])), must(r.seq.next(t.Context(), ids[n+1]))}
	for _, id := range ids[n+2 : n+12] {
		must(r.seq.next(t.Context(), id))
	}
	if err := r.Rollback(cp); err != nil {
		t.Fatal(err)
	}
	if r.Position() != n {
		t.Fatalf("position %d after going back, want %d", r.Position(), n)
	}
	for i, want := range first {
		if got := must(r.seq.next(t.Context(), ids[n+i])); !sameScores(got, want) {
			t.Errorf("step %d after going back differs from the first time", i)
		}
	}
	// A fresh run must agree with what Reuse keeps, whatever it keeps.
	for _, keep := range []int{n, n + 1} {
		fresh, _, err := r.seq.prompt(t.Context(), feeding{ids: append(ids[:keep:keep], 5), mode: "single", reuse: false}, nil)
		must(fresh, err)
		full, _, err := r.seq.prompt(t.Context(), feeding{ids: append(ids[:keep:keep], 6), mode: "single", reuse: false}, nil)
		must(full, err)
		again, fed, err := r.seq.prompt(t.Context(), feeding{ids: append(ids[:keep:keep], 5), mode: "single", reuse: true}, nil)
		if must(again, err); !sameScores(again, fresh) {
			t.Errorf("after %d kept and %d fed tokens the scores differ from a fresh run's", keep+1-fed, fed)
		}
	}
}

func sameScores(a, b Scores) bool {
	if a.Token != b.Token || a.Value != b.Value || len(a.Logits) != len(b.Logits) {
		return false
	}
	for i := range a.Logits {
		if a.Logits[i] != b.Logits[i] {
			return false
		}
	}
	return true
}

// TestCarried: the tensors that are handed on behave like a state object.
func TestCarried(t *testing.T) {
	f := &coreml.Function{Name: "main",
		Inputs:  []coreml.Feature{{Name: "conv_state_0", DType: tensor.FP16, Shape: []int{2}}, {Name: "K_full_in", DType: tensor.FP32, Shape: []int{1, 2}}, {Name: "x", DType: tensor.FP16, Shape: []int{2}}},
		Outputs: []coreml.Feature{{Name: "new_conv_state_0", DType: tensor.FP16, Shape: []int{2}}, {Name: "K_full_out", DType: tensor.FP32, Shape: []int{1, 2}}},
	}
	u := &unit{part: &part{}, path: "chunk", fn: f}
	pairs, err := carries(u)
	if err != nil || len(pairs) != 2 {
		t.Fatalf("got %v, %v, want two pairs", pairs, err)
	}
	c := newCarried(u, pairs)
	if got := strings.Join(c.Names(), " "); got != "K_full_in conv_state_0" {
		t.Errorf("names %s", got)
	}
	one, _ := tensor.FromFloat32(tensor.FP32, []int{1, 2}, []float32{1, 2})
	snap, err := c.Snapshot()
	if err != nil || c.Write("K_full_in", one) != nil {
		t.Fatalf("snapshot or write failed: %v", err)
	}
	one.Data[0] = 9 // the state has its own copy
	if got, err := c.Read("K_full_in"); err != nil || got.Float64(0) != 1 || got.Float64(1) != 2 {
		t.Errorf("read %v, %v after writing 1 2", got, err)
	}
	if err := c.Restore(snap); err != nil {
		t.Fatal(err)
	}
	if got, _ := c.Read("K_full_in"); got.Float64(0) != 0 || got.Float64(1) != 0 {
		t.Errorf("read %v after restoring zeros", got.Float32s())
	}
	for name, bad := range map[string]error{
		"unknown name": c.Write("K", one), "other type": c.Write("conv_state_0", one), "unknown read": func() error { _, err := c.Read("x"); return err }(),
		"snapshot without a tensor": c.Restore(coreml.Snapshot{}),
	} {
		if bad == nil || diag.CodeOf(bad) == "" {
			t.Errorf("%s: got %v, want an error with a class", name, bad)
		}
	}
	f.Outputs[1].Shape = []int{1, 3}
	if _, err := carries(u); diag.CodeOf(err) != diag.Mismatch {
		t.Errorf("other shape: got %v, want class mismatch", err)
	}
	f.Inputs[1].Shape, f.Outputs[1].Shape = []int{1 << 20, 1 << 20}, []int{1 << 20, 1 << 20}
	if _, err := carries(u); diag.CodeOf(err) != diag.TooLarge {
		t.Errorf("2^40 elements: got %v, want class too_large", err)
	}
}

// TestAmbiguousChunks: where several forms lie in one folder, the loaders'
// rules decide, and the reason says which form won.
func TestAmbiguousChunks(t *testing.T) {
	copyModel := func(fsys fstest.MapFS, from, to string) {
		for name, f := range fsys {
			if rest, ok := strings.CutPrefix(name, from+".mlmodelc/"); ok {
				fsys[to+".mlmodelc/"+rest] = f
			}
		}
	}
	for _, tc := range []struct {
		name, pkg string
		edit      func(fstest.MapFS)
		chunks    int
		reason    string
	}{
		{"three-chunk form beside chunk2 to chunk4", "cml-gemma4-swa-chunks", func(m fstest.MapFS) {
			copyModel(m, "chunk2", "chunk2_3way")
			copyModel(m, "chunk4", "chunk3_3way")
		}, 3, "chunk1, chunk2_3way and chunk3_3way, which win over chunk2 to chunk4"},
		{"half of the three-chunk form", "cml-gemma4-swa-chunks", func(m fstest.MapFS) { copyModel(m, "chunk2", "chunk2_3way") }, 4, "chunk1 and its successors"},
		{"chunk_4 of an older build", "cml-gemma4-stateful", func(m fstest.MapFS) { copyModel(m, "chunk_3", "chunk_4") }, 3, "chunk_3 gives token_id, so that chunk_4.mlmodelc is left over"},
	} {
		fsys := loadFS(t, sharedtest.Path(t, "models", "tiny", tc.pkg, "compiled"))
		tc.edit(fsys)
		pkg, err := manifest.Open(t.Context(), fsys, "pkg")
		if err != nil {
			t.Fatal(err)
		}
		r, err := Open(t.Context(), pkg, &idleBackend{}, Options{})
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
			continue
		}
		if got := len(r.contract.(*stepper).net.(*linked).chunks); got != tc.chunks || !strings.Contains(pkg.Reason, tc.reason) || r.Reason() == "" {
			t.Errorf("%s: %d chunks, %q, %q; want %d and %q", tc.name, got, pkg.Reason, r.Reason(), tc.chunks, tc.reason)
		}
		_ = r.Close()
		_ = pkg.Close()
	}
}

// FuzzRotaryTable: no table, however wrong, makes a panic or a row that is
// not in the file.
func FuzzRotaryTable(f *testing.F) {
	var buf bytes.Buffer
	good, _ := tensor.FromFloat32(tensor.FP16, []int{3, 4}, make([]float32, 12))
	if err := tensor.WriteNPY(&buf, good); err != nil {
		f.Fatal(err)
	}
	f.Add(buf.Bytes(), 3, 4)
	f.Add(buf.Bytes()[:buf.Len()-1], 3, 4)
	f.Add(bytes.Replace(buf.Bytes(), []byte("(3, 4)"), []byte("(9, 4)"), 1), 3, 4)
	f.Fuzz(func(t *testing.T, data []byte, rows, width int) {
		tab := &table{name: "t.npy", r: bytes.NewReader(data), size: int64(len(data))}
		if tab.npy(rows, width) != nil {
			return
		}
		for _, i := range []int{-1, 0, rows - 1, tab.rows - 1, tab.rows} {
			row, err := tab.row(i)
			if inside := i >= 0 && i < tab.rows; (err == nil) != inside || inside && len(row) != 2*width {
				t.Errorf("row %d of %d: %d bytes, %v", i, tab.rows, len(row), err)
			}
		}
	})
}
