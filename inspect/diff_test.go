package inspect_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/anepkg/anepkg/coreml/sharedtest"
	"github.com/anepkg/anepkg/inspect"
)

// TestDiffForms: the two containers of one conversion have the same numbers,
// programs and bytes; only the container differs.
func TestDiffForms(t *testing.T) {
	dir := sharedtest.Path(t, "models/tiny/seed-qwen3-lut6")
	a, b := open(t, os.DirFS(dir+"/compiled"), "a"), open(t, os.DirFS(dir+"/package"), "b")
	r, err := inspect.Diff(context.Background(), a, b, inspect.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Functions)+len(r.States)+len(r.Ops) != 0 || r.Weights.SameBytes == 0 || len(r.Weights.Changes) != 0 {
		t.Errorf("got %+v, weights %v", r, weightCounts(r))
	}
	if len(r.Parts) != 4 || r.Parts[0].A != "mlmodelc" || r.Parts[0].B != "mlpackage" {
		t.Errorf("parts: got %+v, want four with another container", r.Parts)
	}
	if f := r.Findings; len(f.Appeared)+len(f.Vanished) != 0 {
		t.Errorf("findings: got %d only in B and %d only in A, want none", len(f.Appeared), len(f.Vanished))
	}
	same, err := inspect.Diff(context.Background(), a, a, inspect.Options{})
	if err != nil || !same.Equal {
		t.Errorf("a package differs from itself: %+v, %v", same, err)
	}
}

func weightCounts(r *inspect.DiffReport) []int {
	w := r.Weights
	return []int{w.SameBytes, w.SameValues, w.Differ, w.OnlyA, w.OnlyB, w.Unread}
}

// TestDiffChanges changes one thing at a time.
func TestDiffChanges(t *testing.T) {
	const chunk = "qwen_FFN_PF_lut6_chunk_02of02.mlmodelc"
	files := load(t, sharedtest.Path(t, "models/tiny/seed-qwen3-lut6/compiled"))
	for _, c := range []struct {
		name   string
		change func(fstest.MapFS)
		check  func(*inspect.DiffReport) bool
	}{
		{"parameter", edit("meta.yaml", "context_length: 64", "context_length: 65"), func(r *inspect.DiffReport) bool {
			return len(r.Params) == 1 && r.Params[0].Key == "context_length" && r.Params[0].A == 64 && r.Params[0].B == 65 &&
				slices.ContainsFunc(r.Findings.Appeared, func(f *inspect.Finding) bool { return f.ID == "CFG010" }) && r.Weights.Differ == 0
		}},
		{"one weight", func(m fstest.MapFS) {
			name := "qwen_embeddings.mlmodelc/weights/weight.bin"
			d := slices.Clone(m[name].Data)
			binary.LittleEndian.PutUint16(d[128:], 0x4000) // the first element becomes 2
			m[name] = &fstest.MapFile{Data: d}
		}, func(r *inspect.DiffReport) bool {
			return r.Weights.Differ == 1 && len(r.Weights.Changes) == 1 && r.Weights.Changes[0].Part == "embeddings" && r.Weights.Changes[0].Status == "differ" &&
				r.Weights.Changes[0].MaxAbs != nil && *r.Weights.Changes[0].MaxAbs > 1.5
		}},
		{"weights gone", func(m fstest.MapFS) { delete(m, chunk+"/weights/weight.bin") }, func(r *inspect.DiffReport) bool {
			return r.Weights.Unread > 0 && r.Weights.Differ == 0 && r.Weights.Changes[0].Reason != ""
		}},
		{"part gone", func(m fstest.MapFS) {
			for name := range maps.Clone(m) {
				if strings.HasPrefix(name, chunk) {
					delete(m, name)
				}
			}
		}, func(r *inspect.DiffReport) bool { return len(r.Parts) == 1 && r.Parts[0].B == "absent" }},
		{"op and function", func(m fstest.MapFS) {
			name := "qwen_lm_head_lut6.mlmodelc/model.mil"
			d := bytes.ReplaceAll(m[name].Data, []byte("func main<ios18>"), []byte("func head<ios18>"))
			m[name] = &fstest.MapFile{Data: d}
		}, func(r *inspect.DiffReport) bool {
			return len(r.Functions) == 2 && r.Functions[0].Function == "head" && r.Functions[0].A == nil && r.Functions[1].B == nil
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := maps.Clone(files)
			c.change(m)
			r, err := inspect.Diff(context.Background(), open(t, files, "pkg"), open(t, m, "pkg"), inspect.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if r.Equal || !c.check(r) {
				t.Errorf("params %+v, parts %+v, functions %+v, ops %+v, weights %v %+v", r.Params, r.Parts, r.Functions, r.Ops, weightCounts(r), r.Weights.Changes)
			}
			var b bytes.Buffer
			if err := r.WriteText(&b, false); err != nil || b.Len() < 40 {
				t.Errorf("text: %v\n%s", err, b.String())
			}
		})
	}
}
