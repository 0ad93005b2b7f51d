package runner

import (
	"bytes"
	"io/fs"
	"math"
	"path"
	"slices"
	"strings"

	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/coreml/tensor"
)

// goldenStates are reference contents of the states after the prompt of one
// case, before any generated token is fed.
type goldenStates struct {
	Case    string        `json:"case"`
	Entries []goldenState `json:"entries"`
}

// goldenState is the reference of one state: a .npy file, or float32 values
// of the state's shape. With Slots only [:, :, Slots[0]:Slots[1], :] is
// there.
type goldenState struct {
	Name    string  `json:"name"`
	File    string  `json:"file"`
	Shape   []int   `json:"shape"`
	Slots   []int   `json:"slots"`
	Float16 float64 `json:"max_abs_float16_run"` // how far an fp16 run of the same graph was off
}

// StateResult is the outcome of one state.
type StateResult struct {
	Name   string  `json:"name"`
	Cosine float64 `json:"cosine"`
	MaxAbs float64 `json:"max_abs"`
	Pass   bool    `json:"pass"`
}

// limit is how much a value of the state may differ: three times what an
// fp16 run was off, as the tolerances of golden files are made, else the
// file's own tolerance; 0 = not checked.
func (g goldenState) limit(tol Tolerance) float64 {
	if g.Float16 > 0 {
		return 3 * g.Float16
	}
	return tol.MaxAbs
}

func (g *goldenStates) check(file string) error {
	for _, e := range g.Entries {
		n := tensor.Count(e.Shape)
		bad := e.Name == "" || e.File == "" || n <= 0 || n > maxGoldenValues || !(e.Float16 >= 0)
		if len(e.Slots) > 0 {
			bad = bad || len(e.Slots) != 2 || len(e.Shape) != 4 || e.Slots[0] < 0 || e.Slots[0] >= e.Slots[1] || e.Slots[1] > e.Shape[2]
		}
		if bad {
			return diag.Errorf(diag.In(file), diag.Malformed, "states: entry %q has shape %v and slots %v, want a name, a file, a shape and slots inside it", e.Name, e.Shape, e.Slots)
		}
	}
	return nil
}

// read returns the reference values and the shape they have.
func (g goldenState) read(fsys fs.FS, file string) ([]float32, error) {
	shape := append([]int{}, g.Shape...)
	if len(g.Slots) > 0 {
		shape[2] = g.Slots[1] - g.Slots[0]
	}
	if !strings.HasSuffix(g.File, ".npy") {
		r, err := rows(fsys, file, g.File, 1, tensor.Count(shape))
		if err != nil {
			return nil, err
		}
		return r[0], nil
	}
	name := path.Join(path.Dir(file), g.File)
	if !fs.ValidPath(name) || path.IsAbs(g.File) {
		return nil, diag.Errorf(diag.In(file), diag.Malformed, "path %q leaves the folder", g.File)
	}
	data, err := readFile(fsys, name)
	if err != nil {
		return nil, err
	}
	t, err := tensor.ReadNPY(bytes.NewReader(data))
	if err != nil {
		return nil, diag.Errorf(diag.In(name), diag.Malformed, "%w", err)
	}
	if !t.DType.IsFloat() || !slices.Equal(t.Shape, shape) {
		return nil, diag.Errorf(diag.In(name), diag.Mismatch, "got %s %s, want floating-point numbers of shape %s", t.DType, tensor.ShapeString(t.Shape), tensor.ShapeString(shape))
	}
	return t.Float32s(), nil
}

// compareStates compares the states as they are now.
func (r *Runner) compareStates(fsys fs.FS, file string, g *goldenStates, tol Tolerance) ([]StateResult, error) {
	var out []StateResult
	for _, e := range g.Entries {
		want, err := e.read(fsys, file)
		if err != nil {
			return out, err
		}
		have, err := r.stateValue(e.Name, e.Shape)
		if err != nil {
			return out, err
		}
		got := have.Float32s()
		if len(e.Slots) > 0 {
			got = slots(got, e.Shape, e.Slots)
		}
		res := StateResult{Name: e.Name, Cosine: cosine(got, want), MaxAbs: maxAbs(got, want)}
		limit := e.limit(tol)
		res.Pass = res.Cosine >= tol.CosineMin && (limit == 0 || res.MaxAbs <= limit)
		if math.IsNaN(res.Cosine) { // JSON has no NaN
			res.Cosine = -1
		}
		if !(res.MaxAbs <= math.MaxFloat64) {
			res.MaxAbs = math.MaxFloat64
		}
		out = append(out, res)
	}
	return out, nil
}

// stateValue reads the state of that name and shape.
func (r *Runner) stateValue(name string, shape []int) (*tensor.Tensor, error) {
	var seen *tensor.Tensor
	for _, st := range r.States() {
		for _, n := range st.Names() {
			if n != name {
				continue
			}
			t, err := st.Read(name)
			if err != nil || slices.Equal(t.Shape, shape) {
				return t, err
			}
			seen = t
		}
	}
	if seen != nil {
		return nil, diag.Errorf(diag.In(r.pkg.Path), diag.Mismatch, "state %s has shape %s, the reference %s", name, tensor.ShapeString(seen.Shape), tensor.ShapeString(shape))
	}
	return nil, diag.Errorf(diag.In(r.pkg.Path), diag.NotFound, "the package has no state %s", name)
}

// slots cuts [:, :, from:to, :] out of values of the given shape.
func slots(values []float32, shape, slots []int) []float32 {
	inner := shape[3]
	var out []float32
	for i := range shape[0] * shape[1] {
		at := i * shape[2] * inner
		out = append(out, values[at+slots[0]*inner:at+slots[1]*inner]...)
	}
	return out
}
