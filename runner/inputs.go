package runner

import (
	"encoding/binary"
	"math"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/coreml/tensor"
)

// The inputs that a decoder function may declare. Their values follow from
// the step; anything else must come from an earlier part of the same step.
const (
	inIDs        = "input_ids"
	inHidden     = "hidden_states"
	inPositions  = "position_ids"
	inCurrent    = "current_pos"
	inMask       = "causal_mask"
	inUpdateMask = "update_mask"
	inPLE        = "per_layer_inputs"
)

// inputs makes the values of one step; it shares them among the parts.
type inputs struct {
	st   step
	ids  []int
	from map[string]*tensor.Tensor // tensors of earlier parts, by input name
	made map[string]*tensor.Tensor // values made from the step
}

func newInputs(st step, ids []int) *inputs {
	return &inputs{st: st, ids: ids, from: map[string]*tensor.Tensor{}, made: map[string]*tensor.Tensor{}}
}

// fill returns the inputs that u declares, in its element types.
func (in *inputs) fill(u *unit) (map[string]*tensor.Tensor, error) {
	out := make(map[string]*tensor.Tensor, len(u.fn.Inputs))
	for i := range u.fn.Inputs {
		f := &u.fn.Inputs[i]
		t, err := in.value(u, f)
		if err != nil {
			return nil, err
		}
		out[f.Name] = t
	}
	return out, nil
}

func (in *inputs) value(u *unit, f *coreml.Feature) (*tensor.Tensor, error) {
	if t := in.from[f.Name]; t != nil {
		return convert(t, f.DType), nil
	}
	if t := in.made[f.Name]; t != nil && t.DType == f.DType && tensor.Compatible(f.Shape, t.Shape) {
		return t, nil
	}
	t, err := in.make(u, f)
	if err == nil {
		in.made[f.Name] = t
	}
	return t, err
}

func (in *inputs) make(u *unit, f *coreml.Feature) (*tensor.Tensor, error) {
	n := in.st.n
	switch f.Name {
	case inIDs:
		return ints(u, f, knownShape(f, 1, n), in.ids)
	case inPositions:
		pos := make([]int, n)
		for i := range pos {
			pos[i] = in.st.pos + i
		}
		return ints(u, f, knownShape(f, n), pos)
	case inCurrent:
		return ints(u, f, knownShape(f, 1), []int{in.st.pos})
	case inMask:
		shape := knownShape(f, 1, 1, n, -1)
		return causalMask(u, f, shape, in.st.pos, n)
	case inUpdateMask:
		shape := knownShape(f, 1, 1, -1, n)
		return updateMask(u, f, shape, in.st.pos, n)
	}
	return nil, diag.Errorf(u.pos(), diag.Unsupported, "function %s has the input %s, which nothing provides", u.fn.Name, f.Name)
}

// knownShape is the declared shape with its unknown dimensions taken from
// want, and from the default shape where want is -1.
func knownShape(f *coreml.Feature, want ...int) []int {
	if len(f.Shape) != len(want) {
		return f.Shape
	}
	out := make([]int, len(want))
	for i, d := range f.Shape {
		switch {
		case d >= 0:
			out[i] = d
		case want[i] >= 0:
			out[i] = want[i]
		case i < len(f.Default):
			out[i] = f.Default[i]
		default:
			out[i] = -1
		}
	}
	return out
}

// ints makes an integer input; the number of values must fit the shape.
func ints(u *unit, f *coreml.Feature, shape, values []int) (*tensor.Tensor, error) {
	if tensor.Count(shape) != len(values) {
		return nil, diag.Errorf(u.pos(), diag.Mismatch, "input %s of function %s has shape %s, want %d elements",
			f.Name, u.fn.Name, tensor.ShapeString(shape), len(values))
	}
	if f.DType.IsFloat() {
		vals := make([]float32, len(values))
		for i, v := range values {
			vals[i] = float32(v)
		}
		return tensor.FromFloat32(f.DType, shape, vals)
	}
	return tensor.FromInts(f.DType, shape, values)
}

// causalMask makes rows pos..pos+n-1 of the causal mask, [1, 1, n, width]:
// 0 where column <= row, -Inf elsewhere (package format, "Decoder chunks").
func causalMask(u *unit, f *coreml.Feature, shape []int, pos, n int) (*tensor.Tensor, error) {
	size := f.DType.Bits() / 8
	if len(shape) != 4 || tensor.Count(shape) < 0 || shape[2] != n || (f.DType != tensor.FP16 && f.DType != tensor.FP32) {
		return nil, diag.Errorf(u.pos(), diag.Unsupported, "input %s of function %s is %s %s, want fp16 or fp32 [1, 1, %d, context]",
			f.Name, u.fn.Name, f.DType, tensor.ShapeString(shape), n)
	}
	t := tensor.New(f.DType, shape...)
	width := shape[3]
	for row := range n {
		for col := pos + row + 1; col < width; col++ {
			at := (row*width + col) * size
			if f.DType == tensor.FP16 {
				binary.LittleEndian.PutUint16(t.Data[at:], 0xFC00)
			} else {
				binary.LittleEndian.PutUint32(t.Data[at:], math.Float32bits(float32(math.Inf(-1))))
			}
		}
	}
	return t, nil
}

// updateMask makes [1, 1, context, n] with a 1 at [pos+i, i]: where each
// token's keys and values go (ANEMLL's static prefill of Gemma 3).
func updateMask(u *unit, f *coreml.Feature, shape []int, pos, n int) (*tensor.Tensor, error) {
	if len(shape) != 4 || tensor.Count(shape) < 0 || shape[3] != n || pos+n > shape[2] || (f.DType != tensor.FP16 && f.DType != tensor.FP32) {
		return nil, diag.Errorf(u.pos(), diag.Unsupported, "input %s of function %s is %s %s, want fp16 or fp32 [1, 1, context, %d]",
			f.Name, u.fn.Name, f.DType, tensor.ShapeString(shape), n)
	}
	vals := make([]float32, tensor.Count(shape))
	for i := range n {
		vals[(pos+i)*n+i] = 1
	}
	return tensor.FromFloat32(f.DType, shape, vals)
}

// convert returns t as element type d: parts of a package may disagree
// between fp16 and fp32.
func convert(t *tensor.Tensor, d tensor.DType) *tensor.Tensor {
	if t.DType == d || !t.DType.IsFloat() || !d.IsFloat() {
		return t
	}
	c, err := tensor.FromFloat32(d, t.Shape, t.Float32s())
	if err != nil {
		return t
	}
	return c
}

// lastRow returns the last token of [1, n, H] as [1, 1, H].
func lastRow(t *tensor.Tensor) *tensor.Tensor {
	if len(t.Shape) != 3 || t.Shape[0] != 1 || t.Shape[1] <= 1 {
		return t
	}
	row := len(t.Data) / t.Shape[1]
	return &tensor.Tensor{DType: t.DType, Shape: []int{1, 1, t.Shape[2]}, Data: t.Data[len(t.Data)-row:]}
}
