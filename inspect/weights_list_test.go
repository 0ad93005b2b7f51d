package inspect_test

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/coreml/sharedtest"
	"github.com/anepkg/anepkg/coreml/tensor"
	"github.com/anepkg/anepkg/inspect"
)

// TestWeightsAgree: the list sums to what inspect says of the schemes, both
// containers of a package list the same constants, and shared ones name the
// functions.
func TestWeightsAgree(t *testing.T) {
	ctx := context.Background()
	lists := map[string]*inspect.WeightsReport{}
	for _, form := range []string{"compiled", "package"} {
		dir := sharedtest.Path(t, "models/tiny/seed-qwen3-lut6/"+form)
		p := open(t, os.DirFS(dir), dir)
		r, err := inspect.Weights(ctx, p)
		if err != nil {
			t.Fatal(err)
		}
		rep, err := inspect.Inspect(ctx, p)
		if err != nil {
			t.Fatal(err)
		}
		var bytes int64
		count := 0
		for _, part := range rep.Parts {
			bytes += part.Weights.Bytes
			count += part.Weights.Count
		}
		if r.TotalBytes != bytes || r.Count != count || count == 0 {
			t.Errorf("%s: got %d constants of %d bytes, inspect says %d of %d", form, r.Count, r.TotalBytes, count, bytes)
		}
		lists[form] = r
	}
	a, b := lists["compiled"].Weights, lists["package"].Weights
	if len(a) != len(b) {
		t.Fatalf("compiled has %d constants, package %d", len(a), len(b))
	}
	shared := 0
	for i := range a {
		if a[i].Offset != b[i].Offset || a[i].Bytes != b[i].Bytes || a[i].Kind != b[i].Kind || !slices.Equal(a[i].Shape, b[i].Shape) {
			t.Errorf("constant %d: compiled %+v, package %+v", i, a[i], b[i])
		}
		if len(a[i].SharedBy) == 2 {
			shared++
		}
	}
	if shared == 0 {
		t.Error("no constant is shared by infer and prefill")
	}
}

// TestExport: a dense constant decodes to its bytes in the weight file; a
// palettized one holds no more values than its tables have entries.
func TestExport(t *testing.T) {
	ctx := context.Background()
	dir := sharedtest.Path(t, "models/tiny/seed-qwen3-lut6/compiled")
	p := open(t, os.DirFS(dir), dir)
	list, err := inspect.Weights(ctx, p)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, w := range list.Weights {
		if seen[w.Kind] {
			continue
		}
		seen[w.Kind] = true
		got, err := inspect.Export(ctx, p, w.Part+":"+w.Function+":"+w.Name)
		if err != nil {
			t.Fatalf("%s: %v", w.Name, err)
		}
		if got.DType != tensor.FP32 || !slices.Equal(got.Shape, w.Shape) {
			t.Errorf("%s: got %s %v, want float32 %v", w.Name, got.DType, got.Shape, w.Shape)
		}
		switch w.Kind {
		case "dense":
			raw, err := os.ReadFile(dir + "/" + w.File)
			if err != nil {
				t.Fatal(err)
			}
			for i := range got.Len() {
				h := binary.LittleEndian.Uint16(raw[w.Offset+64+int64(2*i):])
				if float64(tensor.F16ToF32(h)) != got.Float64(i) {
					t.Fatalf("%s: element %d is %g, the file has %g", w.Name, i, got.Float64(i), tensor.F16ToF32(h))
				}
			}
		case "lut":
			values := map[float64]bool{}
			row := got.Len() / w.Shape[0]
			for i := range w.GroupSize * row {
				values[got.Float64(i)] = true
			}
			if len(values) > 1<<w.Bits || len(values) < 2 {
				t.Errorf("%s: %d values in one group of %d bits", w.Name, len(values), w.Bits)
			}
		}
	}
	if !seen["dense"] || !seen["lut"] {
		t.Errorf("kinds %v, want dense and lut", seen)
	}
	if _, err := inspect.Export(ctx, p, "no_such_weight"); diag.CodeOf(err) != diag.NotFound {
		t.Errorf("unknown name: got %v", err)
	}
	name := list.Weights[len(list.Weights)-1].Name
	if _, err := inspect.Export(ctx, p, name[:len(name)-1]); err == nil || !strings.Contains(err.Error()+hint(err), name[:4]) {
		t.Errorf("misspelt name: got %v", err)
	}
}

func hint(err error) string {
	var e *diag.Error
	if errors.As(err, &e) {
		return e.Hint
	}
	return ""
}
