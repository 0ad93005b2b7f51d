// Package optrace watches a run op by op: the range of every result, the
// first op that makes NaN, infinity or an fp16 overflow, and the first op
// where two runs part. It works with every backend that calls a
// coreml.Observer.
//
// Files: optrace.go (Tracer), diff.go (two runs side by side).
package optrace

import (
	"cmp"
	"math"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/coreml/tensor"
)

// Stats is what was seen of one op's result, over all its executions.
// Min, Max and Mean are of the finite elements of the last one.
type Stats struct {
	Function  string  `json:"function"`
	Op        string  `json:"op"`
	Name      string  `json:"name"`
	File      string  `json:"file"`
	Line      int     `json:"line"`
	DType     string  `json:"dtype"`
	Shape     []int   `json:"shape"`
	Calls     int     `json:"calls"`
	Min       float64 `json:"min"`
	Max       float64 `json:"max"`
	Mean      float64 `json:"mean"`
	NaN       int     `json:"nan"`
	Inf       int     `json:"inf"`
	Subnormal int     `json:"subnormal"` // of fp16 or fp32, whichever the type is
}

// Kind says what an op made of operands that were sound.
type Kind string

// The kinds of first trouble.
const (
	NaN      Kind = "nan"
	Inf      Kind = "inf"
	Overflow Kind = "overflow" // a result beyond 65504 in fp16
)

// First is the first op whose result holds what none of its operands held.
type First struct {
	Kind     Kind   `json:"kind"`
	Function string `json:"function"`
	Op       string `json:"op"`
	Name     string `json:"name"`
	File     string `json:"file"`
	Line     int    `json:"line"`
}

type key struct {
	file, function, name string
}

// Tracer collects statistics. Its Observe is the coreml.Observer to run with.
// It is not safe for concurrent use.
type Tracer struct {
	// Keep names results whose last value is kept; see Kept.
	Keep  map[string]bool
	order []key
	stats map[key]*Stats
	first *First
	kept  map[string]*tensor.Tensor
}

// New makes an empty Tracer.
func New() *Tracer {
	return &Tracer{stats: map[key]*Stats{}, kept: map[string]*tensor.Tensor{}}
}

// Ops returns the statistics in the order of first execution.
func (t *Tracer) Ops() []Stats {
	out := make([]Stats, len(t.order))
	for i, k := range t.order {
		out[i] = *t.stats[k]
	}
	return out
}

// First returns the first trouble, or nil.
func (t *Tracer) First() *First { return t.first }

// Kept returns the last value of a result that Keep names, or nil.
func (t *Tracer) Kept(name string) *tensor.Tensor { return t.kept[name] }

// Observe records one executed op.
func (t *Tracer) Observe(ev coreml.OpEvent) error {
	if ev.Value == nil {
		return nil
	}
	v, err := ev.Value()
	if err != nil {
		return nil //nolint:nilerr // strings and dictionaries have no range
	}
	if t.Keep[ev.Name] {
		t.kept[ev.Name] = v.Clone()
	}
	k := key{ev.File, ev.Function, ev.Name}
	s := t.stats[k]
	if s == nil {
		s = &Stats{Function: ev.Function, Op: ev.Op, Name: ev.Name, File: ev.File, Line: ev.Line}
		t.stats[k] = s
		t.order = append(t.order, k)
	}
	nan, inf := s.add(v)
	if t.first == nil && nan+inf > 0 {
		return t.blame(ev, v.DType, nan > 0, inf > 0)
	}
	return nil
}

// add measures one result.
func (s *Stats) add(v *tensor.Tensor) (nan, inf int) {
	s.DType, s.Shape = v.DType.Long(), v.Shape
	s.Calls++
	s.Min, s.Max, s.Mean = 0, 0, 0
	small := 0x1p-126
	if v.DType == tensor.FP16 {
		small = 0x1p-14
	}
	sum, n := 0.0, 0
	for i := range v.Len() {
		x := v.Float64(i)
		switch {
		case math.IsNaN(x):
			nan++
			continue
		case math.IsInf(x, 0):
			inf++
			continue
		case x != 0 && math.Abs(x) < small:
			s.Subnormal++
		}
		if n == 0 {
			s.Min, s.Max = x, x
		}
		s.Min, s.Max = min(s.Min, x), max(s.Max, x)
		sum += x
		n++
	}
	if n > 0 {
		s.Mean = sum / float64(n)
	}
	s.NaN += nan
	s.Inf += inf
	return nan, inf
}

// blame looks whether the op made the trouble or only passed it on.
func (t *Tracer) blame(ev coreml.OpEvent, d tensor.DType, nan, inf bool) error {
	had := ev.Op == "read_state" // another op, or the caller, put it there
	if ev.Operands != nil {
		ops, err := ev.Operands()
		if err != nil {
			return nil //nolint:nilerr // operands that cannot be seen are not blamed
		}
		for k, o := range ops {
			// A NaN in the weights is found where it enters; an infinity there
			// is a mask.
			if !o.DType.IsFloat() || nan && k < len(ev.Constant) && ev.Constant[k] {
				continue
			}
			for i := range o.Len() {
				x := o.Float64(i)
				had = had || math.IsNaN(x) || !nan && math.IsInf(x, 0)
			}
		}
	}
	if had {
		return nil
	}
	f := &First{Kind: Inf, Function: ev.Function, Op: ev.Op, Name: ev.Name, File: ev.File, Line: ev.Line}
	switch {
	case nan:
		f.Kind = NaN
	case inf && d == tensor.FP16:
		f.Kind = Overflow
	}
	t.first = f
	return nil
}

// Compare orders statistics by file, line and function.
func Compare(a, b Stats) int {
	return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Function, b.Function))
}
