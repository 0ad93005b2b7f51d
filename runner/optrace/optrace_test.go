package optrace_test

import (
	"math"
	"testing"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/coreml/tensor"
	"github.com/anepkg/anepkg/runner/optrace"
)

// event makes an op's event of its result and its operands.
func event(t *testing.T, name string, d tensor.DType, out []float32, in ...[]float32) coreml.OpEvent {
	t.Helper()
	make1 := func(x []float32) *tensor.Tensor {
		v, err := tensor.FromFloat32(d, []int{len(x)}, x)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	return coreml.OpEvent{Function: "main", Op: "mul", Name: name, File: "m.mil", Line: 7,
		Value: func() (*tensor.Tensor, error) { return make1(out), nil },
		Operands: func() ([]*tensor.Tensor, error) {
			var ops []*tensor.Tensor
			for _, x := range in {
				ops = append(ops, make1(x))
			}
			return ops, nil
		}}
}

func TestFirst(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	tests := []struct {
		name string
		ev   coreml.OpEvent
		want optrace.Kind // "" = no trouble
	}{
		{"sound", event(t, "a", tensor.FP16, []float32{1, 2}, []float32{1}), ""},
		{"overflow", event(t, "a", tensor.FP16, []float32{inf}, []float32{300}), optrace.Overflow},
		{"infinity of fp32", event(t, "a", tensor.FP32, []float32{inf}, []float32{0}), optrace.Inf},
		{"nan", event(t, "a", tensor.FP16, []float32{nan, 1}, []float32{0}), optrace.NaN},
		{"nan out of infinities", event(t, "a", tensor.FP16, []float32{nan}, []float32{inf}, []float32{-inf}), optrace.NaN},
		{"infinity passed on", event(t, "a", tensor.FP16, []float32{-inf}, []float32{-inf}), ""},
		{"nan passed on", event(t, "a", tensor.FP16, []float32{nan}, []float32{nan}), ""},
	}
	weights := event(t, "a", tensor.FP16, []float32{nan}, []float32{nan}, []float32{1})
	weights.Constant = []bool{true, false}
	mask := event(t, "a", tensor.FP16, []float32{-inf}, []float32{-inf}, []float32{1})
	mask.Constant = []bool{true, false}
	state := event(t, "a", tensor.FP16, []float32{nan})
	state.Op = "read_state"
	tests = append(tests, []struct {
		name string
		ev   coreml.OpEvent
		want optrace.Kind
	}{{"nan in the weights", weights, optrace.NaN}, {"infinity in a mask", mask, ""}, {"nan out of a state", state, ""}}...)
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			tr := optrace.New()
			if err := tr.Observe(tc.ev); err != nil {
				t.Fatal(err)
			}
			switch f := tr.First(); {
			case tc.want == "" && f != nil:
				t.Errorf("got %s, want none", f.Kind)
			case tc.want != "" && (f == nil || f.Kind != tc.want || f.Line != 7 || f.Name != "a"):
				t.Errorf("got %+v, want %s", f, tc.want)
			}
		})
	}
}

func TestStats(t *testing.T) {
	tr := optrace.New()
	tr.Keep = map[string]bool{"a": true}
	for _, ev := range []coreml.OpEvent{
		event(t, "a", tensor.FP16, []float32{5, 1}),
		event(t, "b", tensor.FP16, []float32{0}),
		event(t, "a", tensor.FP16, []float32{-1, 0, 4, 0x1p-20, float32(math.NaN())}, []float32{float32(math.NaN())}),
	} {
		if err := tr.Observe(ev); err != nil {
			t.Fatal(err)
		}
	}
	ops := tr.Ops()
	if len(ops) != 2 || ops[0].Name != "a" || ops[1].Name != "b" {
		t.Fatalf("got %+v", ops)
	}
	a := ops[0]
	if a.Calls != 2 || a.Min != -1 || a.Max != 4 || math.Abs(a.Mean-0.75) > 1e-6 || a.NaN != 1 || a.Subnormal != 1 || a.DType != "float16" {
		t.Errorf("got %+v", a)
	}
	if v := tr.Kept("a"); v == nil || v.Len() != 5 || tr.Kept("b") != nil {
		t.Errorf("kept %v", v)
	}
}

func TestDiff(t *testing.T) {
	var rec optrace.Recorder
	want := []coreml.OpEvent{event(t, "a", tensor.FP32, []float32{1, 100}), event(t, "b", tensor.FP32, []float32{2})}
	for _, ev := range want {
		if err := rec.Observe(ev); err != nil {
			t.Fatal(err)
		}
	}
	same := rec.Against(0.01)
	for _, ev := range []coreml.OpEvent{event(t, "a", tensor.FP32, []float32{1.9, 100}), event(t, "b", tensor.FP32, []float32{2.01})} {
		if err := same.Observe(ev); err != nil {
			t.Fatal(err)
		}
	}
	if p := same.Parting(); p != nil {
		t.Errorf("parted at %+v within the tolerance", p)
	}
	parts := rec.Against(0.01)
	if err := parts.Observe(event(t, "a", tensor.FP32, []float32{1, 102})); err != nil {
		t.Fatal(err)
	}
	if p := parts.Parting(); p == nil || p.Name != "a" || p.Index != 1 || p.Got != 102 || p.Want != 100 || p.Excess < 1.9 {
		t.Errorf("got %+v", p)
	}
	other := rec.Against(0.01)
	if err := other.Observe(event(t, "z", tensor.FP32, []float32{1, 100})); diag.CodeOf(err) != diag.Mismatch {
		t.Errorf("another program: got %v", err)
	}
}
