package optrace

import (
	"fmt"
	"math"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/coreml/tensor"
)

// recordLimit bounds the bytes that a Recorder keeps.
const recordLimit = 4 << 30

// Recorder keeps the results of a run so that another can be held against
// them. Results that only read or update a state are left out.
type Recorder struct {
	values []recorded
	bytes  int64
}

type recorded struct {
	key
	value *tensor.Tensor
}

// passive ops move data; they cannot be where two runs part.
var passive = map[string]bool{"read_state": true, "write_state": true, "slice_update": true, "identity": true}

// Observe keeps one result.
func (r *Recorder) Observe(ev coreml.OpEvent) error {
	if ev.Value == nil || passive[ev.Op] {
		return nil
	}
	v, err := ev.Value()
	if err != nil {
		return nil //nolint:nilerr // strings and dictionaries are not compared
	}
	if r.bytes += int64(len(v.Data)); r.bytes > recordLimit {
		return diag.Errorf(diag.Pos{}, diag.TooLarge, "the results of this run take more than %d bytes", int64(recordLimit)).
			WithHint("compare a shorter prompt")
	}
	r.values = append(r.values, recorded{key{ev.File, ev.Function, ev.Name}, v})
	return nil
}

// Parting is the first op where two runs differ.
type Parting struct {
	Function string  `json:"function"`
	Op       string  `json:"op"`
	Name     string  `json:"name"`
	File     string  `json:"file"`
	Line     int     `json:"line"`
	Index    int     `json:"index"` // of the element that differs most, row-major
	Got      float64 `json:"got"`
	Want     float64 `json:"want"`
	// Excess is the difference over what the element's type and the largest
	// element allow; above 1.
	Excess float64 `json:"excess"`
}

// Differ holds a run against a recorded one.
type Differ struct {
	want []recorded
	// Tolerance is the difference allowed, as a part of the largest element
	// of a result.
	Tolerance float64
	next      int
	parting   *Parting
}

// Against makes a Differ. The second run must execute the same programs.
func (r *Recorder) Against(tolerance float64) *Differ {
	return &Differ{want: r.values, Tolerance: tolerance}
}

// Parting returns where the runs part, or nil.
func (d *Differ) Parting() *Parting { return d.parting }

// Observe compares one result.
func (d *Differ) Observe(ev coreml.OpEvent) error {
	if ev.Value == nil || passive[ev.Op] || d.parting != nil {
		return nil
	}
	got, err := ev.Value()
	if err != nil {
		return nil //nolint:nilerr // as in Recorder
	}
	if d.next >= len(d.want) || d.want[d.next].key != (key{ev.File, ev.Function, ev.Name}) {
		return diag.Errorf(diag.Pos{File: ev.File, Line: ev.Line}, diag.Mismatch, "the second run executes %q here, the first did not", ev.Name)
	}
	want := d.want[d.next].value
	d.next++
	if fmt.Sprint(got.Shape) != fmt.Sprint(want.Shape) {
		return diag.Errorf(diag.Pos{File: ev.File, Line: ev.Line}, diag.Mismatch, "%q has shape %v, in the first run %v", ev.Name, got.Shape, want.Shape)
	}
	d.compare(ev, got, want)
	return nil
}

func (d *Differ) compare(ev coreml.OpEvent, got, want *tensor.Tensor) {
	if !got.DType.IsFloat() {
		for i := range got.Len() {
			if got.Int(i) != want.Int(i) {
				d.parting = &Parting{ev.Function, ev.Op, ev.Name, ev.File, ev.Line, i, got.Float64(i), want.Float64(i), math.Inf(1)}
				return
			}
		}
		return
	}
	largest := 0.0
	for i := range want.Len() {
		if x := math.Abs(want.Float64(i)); !math.IsInf(x, 0) {
			largest = max(largest, x)
		}
	}
	worst, at := 0.0, -1
	for i := range want.Len() {
		g, w := got.Float64(i), want.Float64(i)
		diff := math.Abs(g - w)
		switch {
		case g == w || math.IsNaN(g) && math.IsNaN(w):
			continue
		case math.IsNaN(diff):
			diff = math.Inf(1)
		}
		if e := diff / (d.Tolerance * largest); e > worst {
			worst, at = e, i
		}
	}
	if worst > 1 {
		d.parting = &Parting{ev.Function, ev.Op, ev.Name, ev.File, ev.Line, at, got.Float64(at), want.Float64(at), worst}
	}
}
