package runner

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/manifest"
)

// fakeRow is the logits of the fake's head, rounded to fp16 as it gives them
// (multiples of 1/64 are exact).
func fakeRow(token int) []float32 {
	row := make([]float32, fakeVocab)
	for i := range row {
		row[i] = float32(i) / 64
	}
	row[token] = 9
	return row
}

func f32(rows ...[]float32) *fstest.MapFile {
	var out []byte
	for _, row := range rows {
		for _, v := range row {
			out = binary.LittleEndian.AppendUint32(out, math.Float32bits(v))
		}
	}
	return &fstest.MapFile{Data: out}
}

// fakeGolden is a golden.json with two cases of a correct run.
func fakeGolden() (map[string]any, fstest.MapFS) {
	fsys := fstest.MapFS{}
	var cases []any
	for i, n := range []int{5, 8} {
		prompt := randomIDs(n, 4)
		gen := fakeGreedy(prompt, 3)
		var logits [][]float32
		for _, id := range gen {
			logits = append(logits, fakeRow(id))
		}
		name := fmt.Sprintf("logits/case%d.f32", i)
		fsys["g/"+name] = f32(logits...)
		cases = append(cases, map[string]any{"name": fmt.Sprintf("case%d", i), "prompt_ids": prompt, "generated_ids": gen, "logits": name, "logits_shape": []int{3, fakeVocab}})
	}
	return map[string]any{"name": "fake", "tolerance": map[string]any{"cosine_min": 0.999, "max_abs": 0.01}, "cases": cases}, fsys
}

func compareFake(t *testing.T, g map[string]any, fsys fstest.MapFS, pkg fstest.MapFS) (*Comparison, error) {
	t.Helper()
	data, err := json.Marshal(g)
	if err != nil {
		t.Fatal(err)
	}
	fsys["g/golden.json"] = &fstest.MapFile{Data: data}
	p, err := manifest.Open(t.Context(), pkg, "fake")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return CompareGolden(t.Context(), p, &fakeBackend{}, Options{}, fsys, "g/golden.json")
}

func TestCompareGolden(t *testing.T) {
	type edit func(g map[string]any, c map[string]any, fsys fstest.MapFS)
	row := func(c map[string]any) []float32 { return fakeRow(c["generated_ids"].([]int)[1]) }
	for _, tc := range []struct {
		name   string
		edit   edit
		pass   bool
		top1   bool
		row    int
		maxAbs float64
		err    string // of the case
	}{
		{"as it is", func(map[string]any, map[string]any, fstest.MapFS) {}, true, true, -1, 0, ""},
		{"within the tolerance", func(_, c map[string]any, fsys fstest.MapFS) {
			r := row(c)
			r[7] += 0.0078125
			fsys["g/logits/case0.f32"] = f32(fakeRow(c["generated_ids"].([]int)[0]), r, fakeRow(c["generated_ids"].([]int)[2]))
		}, true, true, -1, 0.0078125, ""},
		{"one value off", func(_, c map[string]any, fsys fstest.MapFS) {
			r := row(c)
			r[7] += 0.015625
			fsys["g/logits/case0.f32"] = f32(fakeRow(c["generated_ids"].([]int)[0]), r, fakeRow(c["generated_ids"].([]int)[2]))
		}, false, true, 1, 0.015625, ""},
		{"cosine only", func(g, c map[string]any, fsys fstest.MapFS) {
			g["tolerance"] = map[string]any{"cosine_min": 0.999}
			r := row(c)
			for i := range r {
				r[i] = -r[i]
			}
			fsys["g/logits/case0.f32"] = f32(fakeRow(c["generated_ids"].([]int)[0]), r, fakeRow(c["generated_ids"].([]int)[2]))
		}, false, true, 1, 18, ""},
		{"last id differs", func(_, c map[string]any, _ fstest.MapFS) {
			gen := slices.Clone(c["generated_ids"].([]int))
			gen[2] = (gen[2] + 1) % fakeVocab
			c["generated_ids"] = gen
		}, false, false, 2, 0, ""},
		{"ids only", func(_, c map[string]any, _ fstest.MapFS) { delete(c, "logits") }, true, true, -1, 0, ""},
		{"logits of another vocabulary", func(_, c map[string]any, fsys fstest.MapFS) {
			c["logits_shape"] = []int{3, 2}
			fsys["g/logits/case0.f32"] = f32([]float32{1, 2}, []float32{1, 2}, []float32{1, 2})
		}, false, true, -1, 0, "23 values"},
		{"prompt beyond the context", func(_, c map[string]any, _ fstest.MapFS) { c["prompt_ids"] = randomIDs(17, 1) }, false, true, -1, 0, "17 tokens"},
		{"file is missing", func(_, c map[string]any, _ fstest.MapFS) { c["logits"] = "nowhere.f32" }, false, false, -1, 0, "nowhere.f32"},
		{"file is short", func(_, _ map[string]any, fsys fstest.MapFS) { fsys["g/logits/case0.f32"] = f32([]float32{1}) }, false, false, -1, 0, "got 4 bytes"},
		{"path leaves the folder", func(_, c map[string]any, _ fstest.MapFS) { c["logits"] = "../../x" }, false, false, -1, 0, "leaves the folder"},
	} {
		g, fsys := fakeGolden()
		tc.edit(g, g["cases"].([]any)[0].(map[string]any), fsys)
		cmp, err := compareFake(t, g, fsys, fakeFiles(fakeKV, "", false))
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
			continue
		}
		c := cmp.Cases[0]
		if c.Pass != tc.pass || cmp.Pass != tc.pass || c.FirstRow != tc.row || math.Abs(c.MaxAbs-tc.maxAbs) > 1e-9 || !strings.Contains(c.Error, tc.err) || tc.err == "" && c.Error != "" {
			t.Errorf("%s: got %+v", tc.name, c)
		}
		if tc.err == "" && c.Top1Agree != tc.top1 {
			t.Errorf("%s: top1_agree %v", tc.name, c.Top1Agree)
		}
		if !cmp.Cases[1].Pass {
			t.Errorf("%s: the other case failed: %+v", tc.name, cmp.Cases[1])
		}
		if _, err := json.Marshal(cmp); err != nil {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
}

func TestCompareGoldenMalformed(t *testing.T) {
	for _, tc := range []struct {
		name string
		edit func(g, c map[string]any)
		want string
	}{
		{"no cases", func(g, _ map[string]any) { g["cases"] = []any{} }, "no cases"},
		{"no prompt", func(_, c map[string]any) { delete(c, "prompt_ids") }, "case0: no prompt_ids"},
		{"nothing generated", func(_, c map[string]any) { c["generated_ids"] = []int{} }, "no generated_ids"},
		{"rows and ids", func(_, c map[string]any) { c["logits_shape"] = []int{2, fakeVocab} }, "want [3, vocabulary]"},
		{"prefill", func(_, c map[string]any) { c["prefill"] = "fast" }, "fast"},
		{"tolerance", func(g, _ map[string]any) { g["tolerance"] = map[string]any{"cosine_min": 2} }, "cosine_min 2"},
		{"wrong type", func(g, _ map[string]any) { g["cases"] = "x" }, "not a golden file"},
	} {
		g, fsys := fakeGolden()
		tc.edit(g, g["cases"].([]any)[0].(map[string]any))
		_, err := compareFake(t, g, fsys, fakeFiles(fakeKV, "", false))
		if diag.CodeOf(err) != diag.Malformed || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want class malformed and %q", tc.name, err, tc.want)
		}
	}
}

func TestComparePackages(t *testing.T) {
	open := func(fsys fstest.MapFS) *manifest.Package {
		p, err := manifest.Open(t.Context(), fsys, "fake")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = p.Close() })
		return p
	}
	a, b := open(fakeFiles(fakeKV, "", false)), open(fakeFiles(fakeKV, "", false))
	cmp, err := ComparePackages(t.Context(), a, b, &fakeBackend{}, Options{}, PackagePair{})
	if err != nil || !cmp.Pass || len(cmp.Cases) != 5 || cmp.Cases[0].MaxAbs != 0 {
		t.Errorf("equal packages: %+v, %v", cmp, err)
	}
	c := open(fakeFiles(fakeLocal, "", true))
	cmp, err = ComparePackages(t.Context(), a, c, &fakeBackend{nanAt: 9}, Options{}, PackagePair{Prompts: [][]int{{1, 2}, randomIDs(8, 3)}, Steps: 3})
	if err != nil || cmp.Pass || !cmp.Cases[0].Pass || !strings.Contains(cmp.Cases[1].Error, "NaN") {
		t.Errorf("a package that gives NaN at position 9: %+v, %v", cmp, err)
	}
	small := fakeFiles(fakeKV, "", false)
	small["qwen_lm_head.mlmodelc/model.mil"] = fakeProgram(fakeFn("main", "tensor<fp16, [1, 1, 4]> hidden_states", "tensor<fp16, [1, 1, 12]> = logits1"))
	if _, err := ComparePackages(t.Context(), a, open(small), &fakeBackend{}, Options{}, PackagePair{}); diag.CodeOf(err) != diag.Mismatch {
		t.Errorf("other vocabulary: got %v, want an error of class mismatch", err)
	}
}

func TestCosine(t *testing.T) {
	for _, tc := range []struct {
		a, b []float32
		want float64
	}{
		{[]float32{1, 0}, []float32{0, 1}, 0},
		{[]float32{1, 2}, []float32{2, 4}, 1},
		{[]float32{1, 2}, []float32{-1, -2}, -1},
		{[]float32{0, 0}, []float32{0, 0}, 1},
		{[]float32{0, 0}, []float32{1, 0}, 0},
		{[]float32{3, 4}, []float32{4, 3}, 24.0 / 25},
	} {
		if got := cosine(tc.a, tc.b); math.Abs(got-tc.want) > 1e-12 {
			t.Errorf("cosine(%v, %v) = %v, want %v", tc.a, tc.b, got, tc.want)
		}
	}
}
