package backendtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/coreml/tensor"
)

// replay is a backend that answers with what a case records, after corrupt
// has changed it: it computes nothing.
type replay struct {
	coreml.Backend
	c       *Case
	corrupt func(outputs, states map[string]*tensor.Tensor)
	err     error // what every call gives
	calls   int
}

// memory is the state of replay.
type memory struct {
	coreml.State
	values map[string]*tensor.Tensor
}

func (m memory) Close() error { return nil }

func (m memory) Read(name string) (*tensor.Tensor, error) { return m.values[name], nil }

func (m memory) Write(name string, t *tensor.Tensor) error {
	m.values[name] = t
	return nil
}

type replaySession struct {
	coreml.Session
	r *replay
}

func (replaySession) Close() error { return nil }

func (r *replay) Load(context.Context, *coreml.Model, string, coreml.LoadOptions) (coreml.Session, error) {
	return replaySession{r: r}, nil
}

func (r *replay) NewState(features []coreml.Feature) (coreml.State, error) {
	m := memory{values: map[string]*tensor.Tensor{}}
	for _, f := range features {
		m.values[f.Name] = tensor.New(f.DType, f.Shape...)
	}
	return m, nil
}

func (s replaySession) Predict(_ context.Context, _ map[string]*tensor.Tensor, st coreml.State) (map[string]*tensor.Tensor, error) {
	if s.r.err != nil {
		return nil, s.r.err
	}
	step := s.r.c.steps()[s.r.calls]
	s.r.calls++
	out, err := tensorsOf(step.Outputs)
	if err != nil {
		return nil, err
	}
	after, err := tensorsOf(step.StatesAfter)
	if err != nil {
		return nil, err
	}
	if s.r.corrupt != nil {
		s.r.corrupt(out, after)
	}
	for name, t := range after {
		if err := st.Write(name, t); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// corruptions break every result of a case, each in its own way. They return
// false for a tensor that they cannot break.
var corruptions = map[string]func(x *tensor.Tensor, tol Tolerance) bool{
	"value": wrongValue,
	"shape": func(x *tensor.Tensor, _ Tolerance) bool {
		x.Shape = append([]int{1}, x.Shape...)
		return true
	},
	"type": func(x *tensor.Tensor, _ Tolerance) bool {
		if x.DType == tensor.Bool {
			x.DType = tensor.UInt8
		} else {
			x.DType = tensor.Bool
		}
		return true
	},
	"data cut": func(x *tensor.Tensor, _ Tolerance) bool {
		if len(x.Data) == 0 {
			return false
		}
		x.Data = x.Data[:len(x.Data)-1]
		return true
	},
}

// wrongValue changes the last element, by little more than tol where it is a
// finite number.
func wrongValue(x *tensor.Tensor, tol Tolerance) bool {
	if x.DType == tensor.String {
		x.Strings = []string{x.Strings[0] + "x"}
		return true
	}
	if x.Len() == 0 {
		return false
	}
	i := x.Len() - 1
	last := x.Data[i*x.DType.Bits()/8:]
	if !x.DType.IsFloat() {
		last[0] ^= 1
		return tol == Tolerance{}
	}
	w := x.Float64(i)
	allowed := tol.Abs + tol.Rel*max(w, -w)
	moved, err := tensor.FromFloat32(x.DType, []int{1}, []float32{float32(w + 1.25*allowed)})
	if err != nil {
		panic(err)
	}
	// Rounding may have brought the value back within the tolerance.
	for step := 0; step < 4 && sameNumber(moved.Float64(0), w, tol); step++ {
		moved.Data[0]++ // one unit further, or another NaN
		if w != w || moved.Data[0] == 0 {
			copy(moved.Data, make([]byte, len(moved.Data)))
			if w == 0 {
				moved.Data[0] = 1
			}
		}
	}
	copy(last, moved.Data)
	return true
}

// eachCase calls f with every case.
func eachCase(t *testing.T, f func(op string, c *Case)) {
	t.Helper()
	ops, err := Ops()
	if err != nil {
		t.Fatal(err)
	}
	for _, op := range ops {
		cases, err := Cases(op)
		if err != nil {
			t.Fatal(err)
		}
		for i := range cases {
			f(op, &cases[i])
		}
	}
}

// TestRecordedResultsPass shows that what a case records satisfies it, and
// that a case that wants an error takes no result.
func TestRecordedResultsPass(t *testing.T) {
	eachCase(t, func(op string, c *Case) {
		err := Check(t.Context(), &replay{c: c}, c, Options{Tight: true})
		_, openErr := openCase(t.Context(), c)
		switch {
		case !c.Error && err != nil:
			t.Errorf("%s/%s: %v", op, c.Name, err)
		case c.Error && (err == nil) != (openErr != nil):
			t.Errorf("%s/%s: a result gives %v, opening gives %v", op, c.Name, err, openErr)
		}
		err = Check(t.Context(), &replay{c: c, err: errors.New("no")}, c, Options{})
		if (err == nil) != c.Error {
			t.Errorf("%s/%s: a backend that fails gives %v", op, c.Name, err)
		}
	})
}

// TestWrongResultsFail shows that the suite can fail: one wrong element of one
// result, a wrong shape or type, a missing or an extra result, and a state
// that was not updated fail every case that has them.
func TestWrongResultsFail(t *testing.T) {
	counts := map[string]int{}
	try := func(op string, c *Case, kind string, corrupt func(out, states map[string]*tensor.Tensor)) {
		counts[kind]++
		if err := Check(t.Context(), &replay{c: c, corrupt: corrupt}, c, Options{Tight: true}); err == nil {
			t.Errorf("%s/%s: %s: passes", op, c.Name, kind)
		}
	}
	eachCase(t, func(op string, c *Case) {
		if c.Error {
			return
		}
		last := c.steps()[len(c.steps())-1]
		for name := range last.Outputs {
			for kind, corrupt := range corruptions {
				if x, err := last.Outputs[name].Tensor(); err != nil || !corrupt(x, c.tolerance(true)) {
					continue
				}
				try(op, c, kind, func(out, _ map[string]*tensor.Tensor) {
					if out[name] != nil {
						corrupt(out[name], c.tolerance(true))
					}
				})
			}
			try(op, c, "missing", func(out, _ map[string]*tensor.Tensor) { delete(out, name) })
		}
		try(op, c, "extra", func(out, _ map[string]*tensor.Tensor) { out["extra"] = tensor.New(tensor.FP32) })
		for name := range last.StatesAfter {
			try(op, c, "state", func(_, states map[string]*tensor.Tensor) {
				if states[name] != nil {
					wrongValue(states[name], Tolerance{})
				}
			})
		}
	})
	for _, kind := range append(slices.Collect(maps.Keys(corruptions)), "missing", "extra", "state") {
		if counts[kind] == 0 {
			t.Errorf("%s was tried on no case", kind)
		}
	}
	t.Log(fmt.Sprint(counts))
}

// TestDefectiveCasesFail shows that a case that checks nothing, or cannot be
// read, fails, whether or not it wants an error.
func TestDefectiveCasesFail(t *testing.T) {
	cases, err := Cases("relu")
	if err != nil {
		t.Fatal(err)
	}
	good := cases[0]
	for name, spoil := range map[string]func(c *Case){
		"nothing expected": func(c *Case) { c.Outputs = nil },
		"weights":          func(c *Case) { c.Weights = "?" },
		"weights of a case that wants an error": func(c *Case) {
			c.Weights, c.Error = "?", true
		},
		"input of a case that wants an error": func(c *Case) {
			c.Inputs, c.Error = map[string]Array{"x": {DType: "fp33"}}, true
		},
		"states without a state": func(c *Case) { c.StatesAfter = c.Outputs },
	} {
		c := good
		spoil(&c)
		r := &replay{c: &good}
		if err := Check(t.Context(), r, &c, Options{}); err == nil {
			t.Errorf("%s: passes", name)
		}
	}
}
