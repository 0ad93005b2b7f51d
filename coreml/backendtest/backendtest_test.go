package backendtest

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/anepkg/anepkg/coreml"
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
		{"beyond it", floats(t, []int{2}, 0, 1.75), floats(t, []int{2}, 0, 1), Tolerance{0.25, 0.25}, "element 1 is 1.75, want 1"},
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

func TestSorted(t *testing.T) {
	got := sorted(floats(t, []int{3, 2}, 3, 1, 1, 5, 2, 3), 0)
	if err := Diff(got, floats(t, []int{3, 2}, 1, 1, 2, 3, 3, 5), Tolerance{}); err != nil {
		t.Error(err)
	}
}

// liar is a backend that gives zeros, or an error, whatever it is asked.
type liar struct {
	coreml.Backend
	err error
}

type lie struct {
	coreml.Session
	liar liar
	fn   *coreml.Function
}

func (l liar) Load(_ context.Context, m *coreml.Model, fn string, _ coreml.LoadOptions) (coreml.Session, error) {
	return lie{liar: l, fn: m.Function(fn)}, nil
}

func (l lie) Close() error { return nil }

func (l lie) Predict(context.Context, map[string]*tensor.Tensor, coreml.State) (map[string]*tensor.Tensor, error) {
	out := map[string]*tensor.Tensor{}
	for _, f := range l.fn.Outputs {
		out[f.Name] = tensor.New(f.DType, f.Shape...)
	}
	return out, l.liar.err
}

// TestWrongResultsFail shows that the suite can fail: zeros are wrong for
// every case of add, an error is wrong except where one is wanted.
func TestWrongResultsFail(t *testing.T) {
	cases, err := Cases("add")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		if err := Check(t.Context(), liar{}, &c, Options{}); err == nil && !strings.HasPrefix(c.Name, "empty") {
			t.Errorf("%s: zeros pass", c.Name)
		}
		if err := Check(t.Context(), liar{err: errors.New("no")}, &c, Options{}); (err == nil) != c.Error {
			t.Errorf("%s: a backend that fails gives %v", c.Name, err)
		}
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
