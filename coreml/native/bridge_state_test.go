//go:build gnustep

package native

import (
	"strings"
	"testing"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/coreml/native/fakecoreml"
	"github.com/anepkg/anepkg/coreml/tensor"
)

func TestStateReadWriteSnapshot(t *testing.T) {
	for _, modes := range []int32{0, fakecoreml.Padded} {
		b := newBackend(t, modes)
		before := fakecoreml.Live()
		m := write(t, adderProgram)
		s := load(t, b, m, "add")
		st, err := b.NewState(m.Functions[0].States)
		if err != nil {
			t.Fatal(err)
		}
		shape := []int{1, 3, 5}
		step := func(x float32) {
			t.Helper()
			if _, err := s.Predict(t.Context(), map[string]*tensor.Tensor{"x": filled(tensor.FP16, shape, x)}, st); err != nil {
				t.Fatal(err)
			}
		}
		first := func(want float64) {
			t.Helper()
			got, err := st.Read("sum")
			if err != nil {
				t.Fatal(err)
			}
			if got.Float64(0) != want || got.Float64(14) != want+14*(want/8) && want != 0 {
				t.Errorf("the state begins with %g and ends with %g, want %g", got.Float64(0), got.Float64(14), want)
			}
		}
		first(0)
		// Written before any prediction, so before there is an MLState.
		if err := st.Write("sum", filled(tensor.FP16, shape, 8)); err != nil {
			t.Fatal(err)
		}
		first(8)
		step(8)
		first(16)
		snap, err := st.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		step(8)
		first(24)
		if err := st.Restore(snap); err != nil {
			t.Fatal(err)
		}
		first(16)
		step(8)
		first(24)
		if err := st.Reset(); err != nil {
			t.Fatal(err)
		}
		first(0)
		step(8)
		first(8)
		if err := st.Write("sum", tensor.New(tensor.FP16, 15)); diag.CodeOf(err) != diag.Usage {
			t.Errorf("a wrong shape is written: %v", err)
		}
		if err := st.Write("none", tensor.New(tensor.FP16, 15)); diag.CodeOf(err) != diag.NotFound {
			t.Errorf("an unknown state is written: %v", err)
		}
		if err := st.Restore(coreml.Snapshot{}); diag.CodeOf(err) != diag.Usage {
			t.Errorf("an empty snapshot is restored: %v", err)
		}
		_ = s.Close()
		_ = st.Close()
		noFaults(t, before)
	}
}

// Chunks with other sets of states get MLStates of their own; what they have
// in common stays the same.
func TestStatesOfDifferentSets(t *testing.T) {
	b := newBackend(t, fakecoreml.Padded)
	before := fakecoreml.Live()
	more := strings.Replace(adderProgram, "state<tensor<fp16, [1, 3, 5]>> sum) {\n            tensor<fp16, [1, 3, 5]> old = read_state(input = sum)[name = string(\"old\")];\n            tensor<fp16, [1, 3, 5]> y",
		"state<tensor<fp16, [1, 3, 5]>> sum, state<tensor<fp16, [1, 3, 5]>> other) {\n            tensor<fp16, [1, 3, 5]> old = read_state(input = sum)[name = string(\"old\")];\n            tensor<fp16, [1, 3, 5]> new = add(x = old, y = x)[name = string(\"new\")];\n            write_state(data = new, input = sum)[name = string(\"w\")];\n            tensor<fp16, [1, 3, 5]> o = read_state(input = other)[name = string(\"o\")];\n            write_state(data = new, input = other)[name = string(\"w2\")];\n            tensor<fp16, [1, 3, 5]> y", 1)
	m := write(t, more)
	add, show := load(t, b, m, "add"), load(t, b, m, "show")
	st, err := b.NewState(append(m.Function("add").States, m.Function("show").States...))
	if err != nil {
		t.Fatal(err)
	}
	one := map[string]*tensor.Tensor{"x": filled(tensor.FP16, []int{1, 3, 5}, 1)}
	for i, s := range []coreml.Session{add, show, add, add, show, show, add} {
		if _, err := s.Predict(t.Context(), one, st); err != nil {
			t.Fatal(err)
		}
		sum, err := st.Read("sum")
		if err != nil {
			t.Fatal(err)
		}
		if got := sum.Float64(0); got != float64(i+1) {
			t.Fatalf("after call %d the sum is %g, want %d", i, got, i+1)
		}
	}
	other, err := st.Read("other")
	if err != nil {
		t.Fatal(err)
	}
	if got := other.Float64(0); got != 6 {
		t.Errorf("the other state is %g, want 6: what the last show wrote", got)
	}
	_, _, _ = add.Close(), show.Close(), st.Close()
	noFaults(t, before)
}

// TestNoLeak predicts 10,000 times, with and without backings.
func TestNoLeak(t *testing.T) {
	for name, modes := range map[string]int32{"backings": 0, "own arrays": fakecoreml.IgnoreBackings} {
		t.Run(name, func(t *testing.T) {
			b := newBackend(t, modes)
			m := write(t, adderProgram)
			s := load(t, b, m, "add")
			st, err := b.NewState(m.Functions[0].States)
			if err != nil {
				t.Fatal(err)
			}
			in := map[string]*tensor.Tensor{"x": filled(tensor.FP16, []int{1, 3, 5}, 0)}
			after := int64(0)
			for i := range 10000 {
				if _, err := s.Predict(t.Context(), in, st); err != nil {
					t.Fatal(err)
				}
				if i == 0 {
					after = fakecoreml.Live()
				}
			}
			noFaults(t, after)
			if n := fakecoreml.Calls(); n < 10000 {
				t.Errorf("the fake saw %d calls", n)
			}
		})
	}
}
