package backendtest

import (
	"bytes"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/anepkg/anepkg/coreml/sharedtest"
	"github.com/anepkg/anepkg/coreml/tensor"
)

func floats(t *testing.T, shape []int, x ...float32) *tensor.Tensor {
	t.Helper()
	v, err := tensor.FromFloat32(tensor.FP32, shape, x)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func ints(t *testing.T, d tensor.DType, x ...int) *tensor.Tensor {
	t.Helper()
	v, err := tensor.FromInts(d, []int{len(x)}, x)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func dictionary(keys ...string) *tensor.Tensor {
	t := tensor.New(tensor.FP64, len(keys))
	t.Keys = keys
	return t
}

func TestDiff(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	tests := []struct {
		name      string
		got, want *tensor.Tensor
		tol       Tolerance
		diff      string // part of the message; "" = equal
	}{
		{"equal", floats(t, []int{2}, 1, 2), floats(t, []int{2}, 1, 2), Tolerance{}, ""},
		{"missing", nil, floats(t, []int{1}, 1), Tolerance{}, "is missing"},
		{"shape", floats(t, []int{1, 2}, 1, 2), floats(t, []int{2}, 1, 2), Tolerance{}, "is fp32 [1, 2], want fp32 [2]"},
		{"nan equals nan", floats(t, []int{1}, nan), floats(t, []int{1}, nan), Tolerance{}, ""},
		{"nan for a number", floats(t, []int{1}, nan), floats(t, []int{1}, 1), Tolerance{1e9, 1}, "is NaN, want 1"},
		{"a number for nan", floats(t, []int{1}, 1), floats(t, []int{1}, nan), Tolerance{1e9, 1}, "want NaN"},
		{"sign of infinity", floats(t, []int{1}, -inf), floats(t, []int{1}, inf), Tolerance{1e9, 1}, "is -Inf, want +Inf"},
		{"at the tolerance", floats(t, []int{1}, 1.5), floats(t, []int{1}, 1), Tolerance{0.25, 0.25}, ""},
		{"beyond it", floats(t, []int{2}, 0, 1.75), floats(t, []int{2}, 0, 1), Tolerance{0.25, 0.25}, "element [1] is 1.75, want 1 (1 of 2 differ, by up to 0.75; allowed 0.25 + 0.25*|want|)"},
		{"below it", floats(t, []int{1}, -0.75), floats(t, []int{1}, 0), Tolerance{0.5, 0.25}, "is -0.75, want 0"},
		{"infinity for a number", floats(t, []int{1}, inf), floats(t, []int{1}, 1), Tolerance{1e9, 1}, "is +Inf, want 1"},
		{"a number for infinity", floats(t, []int{1}, 1), floats(t, []int{1}, inf), Tolerance{1e9, 1}, "is 1, want +Inf"},
		{"index per dimension", floats(t, []int{2, 3}, 0, 0, 0, 0, 0, 7), floats(t, []int{2, 3}, 0, 0, 0, 0, 0, 0), Tolerance{}, "element [1, 2] is 7, want 0"},
		{"scalar", floats(t, []int{}, 7), floats(t, []int{}, 0), Tolerance{}, "element [] is 7, want 0"},
		{"scalar for one element", floats(t, []int{}, 7), floats(t, []int{1}, 7), Tolerance{}, "is fp32 [], want fp32 [1]"},
		{"no elements", floats(t, []int{0, 2}), floats(t, []int{0, 2}), Tolerance{}, ""},
		{"type", tensor.New(tensor.FP16, 2), floats(t, []int{2}, 0, 0), Tolerance{}, "is fp16 [2], want fp32 [2]"},
		{"cut data", &tensor.Tensor{DType: tensor.FP32, Shape: []int{2}, Data: make([]byte, 4)}, floats(t, []int{2}, 0, 0), Tolerance{}, "has 4 bytes, want 8"},
		{"beyond 2^53", ints(t, tensor.Int64, 1<<53+1), ints(t, tensor.Int64, 1<<53), Tolerance{}, "is 9007199254740993, want 9007199254740992"},
		{"unsigned", ints(t, tensor.UInt64, -1), ints(t, tensor.UInt64, -2), Tolerance{}, "is 18446744073709551615, want 18446744073709551614"},
		{"keys", dictionary("a", "b"), dictionary("b", "a"), Tolerance{}, `has the keys ["a" "b"], want ["b" "a"]`},
		{"strings", &tensor.Tensor{DType: tensor.String, Shape: []int{}, Strings: []string{"a"}}, &tensor.Tensor{DType: tensor.String, Shape: []int{}, Strings: []string{"b"}}, Tolerance{}, `is ["a"], want ["b"]`},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			err := Diff(tc.got, tc.want, tc.tol)
			if tc.diff == "" && err != nil || tc.diff != "" && (err == nil || !strings.Contains(err.Error(), tc.diff)) {
				t.Errorf("got %v, want %q", err, tc.diff)
			}
		})
	}
}

// TestDictionary holds the values of a dictionary to fp64: 0.1 is not a
// float32.
func TestDictionary(t *testing.T) {
	d, err := Array{DType: "dict<string, fp64>", Keys: []string{"a"}, Values: []float64{0.1}}.Tensor()
	if err != nil || d.Float64(0) != 0.1 {
		t.Errorf("got %v, %v", d, err)
	}
	if _, err := (Array{Keys: []string{"a", "b"}, Values: []float64{1}}).Tensor(); err == nil {
		t.Error("two keys with one value pass")
	}
}

func TestNumbered(t *testing.T) {
	if got, want := numbered("a\nb\n"), "   1  a\n   2  b\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestReport(t *testing.T) {
	var r Report
	t.Run("case", func(t *testing.T) {
		defer r.add("add", t)
	})
	t.Run("left out", func(t *testing.T) {
		defer r.add("add", t)
		t.SkipNow()
	})
	if got, want := r.Ops()["add"], (Tally{Passed: 1, Skipped: 1}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	missing, err := r.Missing()
	if err != nil || len(missing) != 163 || !slices.Contains(missing, "add: 1 of 25") || !slices.Contains(missing, "abs: 0 of 11") {
		t.Errorf("got %q, %v", missing, err)
	}
	if s := r.String(); !strings.Contains(s, "add") || !strings.Contains(s, "1 files of cases") {
		t.Errorf("got %s", s)
	}
}

func TestSorted(t *testing.T) {
	got := sorted(floats(t, []int{3, 2}, 3, 1, 1, 5, 2, 3), 0)
	if err := Diff(got, floats(t, []int{3, 2}, 1, 1, 2, 3, 3, 5), Tolerance{}); err != nil {
		t.Error(err)
	}
	nan := float32(math.NaN())
	got = sorted(floats(t, []int{4}, 3, nan, 1, nan), -1)
	if err := Diff(got, floats(t, []int{4}, nan, nan, 1, 3), Tolerance{}); err != nil {
		t.Error(err)
	}
}

// TestCoverage holds the number of ops and cases that the shared README names.
func TestCoverage(t *testing.T) {
	ops, err := Ops()
	if err != nil {
		t.Fatal(err)
	}
	single, total, failing := 0, 0, 0
	for _, op := range ops {
		cases, err := Cases(op)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(op, "composite_") {
			single++
		}
		for _, c := range cases {
			total++
			if c.Error {
				failing++
			}
		}
	}
	if single != 159 || total != 2730 || failing != 87 {
		t.Errorf("%d ops, %d cases, %d of them errors; want 159, 2730, 87", single, total, failing)
	}
}

// TestArchive holds testdata/ops.zip to the shared vectors, byte for byte.
func TestArchive(t *testing.T) {
	dir := sharedtest.Path(t, "vectors", "ops")
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	z, err := archive()
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != len(z.File) {
		t.Errorf("the archive has %d files, the folder %d", len(z.File), len(files))
	}
	for _, file := range files {
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		got, err := fs.ReadFile(z, filepath.Base(file))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not in the archive as it is (%v)", filepath.Base(file), err)
		}
	}
}
