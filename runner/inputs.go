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
	inMaskFull   = "causal_mask_full"
	inMaskWindow = "causal_mask_sliding"
	inRing       = "ring_pos"
)

// maskStyle is how the masks of a family of programs are filled.
type maskStyle struct {
	// hidden is the value of a column that a row must not see.
	hidden float32
	// ring: causal_mask_sliding marks the slots of a ring buffer (the first
	// min(position+1, window)); else those of a cache whose newest position
	// stands last.
	ring   bool
	window int // length of the sliding cache, for ring_pos
}

// plainMasks are those of the package format and of ANEMLL.
var plainMasks = maskStyle{hidden: float32(math.Inf(-1))}

// inputs makes the values of one step; it shares them among the parts.
type inputs struct {
	st   step
	ids  []int
	from map[string]*tensor.Tensor // tensors of earlier parts, by input name
	made map[string]*tensor.Tensor // values made from the step
	mask maskStyle
	rows map[string]rowSource // tables with a row for each token or position
}

func newInputs(st step, ids []int) *inputs {
	return &inputs{st: st, ids: ids, from: map[string]*tensor.Tensor{}, made: map[string]*tensor.Tensor{}, mask: plainMasks}
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
	n, pos := in.st.n, in.st.pos
	if src := in.rows[f.Name]; src != nil {
		return in.tableRows(u, f, src)
	}
	switch f.Name {
	case inIDs:
		return ints(u, f, knownShape(f, 1, n), in.ids)
	case inPositions:
		at := make([]int, n)
		for i := range at {
			at[i] = pos + i
		}
		return ints(u, f, knownShape(f, n), at)
	case inCurrent:
		return ints(u, f, knownShape(f, 1), []int{pos})
	case inRing:
		if in.mask.window > 0 {
			return ints(u, f, knownShape(f, 1), []int{pos % in.mask.window})
		}
	case inMask, inMaskFull:
		return rowMask(u, f, n, in.mask.hidden, func(row, _ int) (from, to int) { return 0, pos + row + 1 })
	case inMaskWindow:
		return rowMask(u, f, n, in.mask.hidden, func(row, width int) (from, to int) {
			seen := min(pos+row+1, width)
			if in.mask.ring {
				return 0, seen
			}
			return width - seen, width
		})
	case inUpdateMask:
		shape := knownShape(f, 1, 1, -1, n)
		return updateMask(u, f, shape, pos, n)
	}
	return nil, diag.Errorf(u.pos(), diag.Unsupported, "function %s has the input %s, which nothing provides", u.fn.Name, f.Name)
}

// tableRows makes an input of one table row for each token: the row of its id
// in embedding tables, of its position in rotary ones.
func (in *inputs) tableRows(u *unit, f *coreml.Feature, src rowSource) (*tensor.Tensor, error) {
	_, width := src.dims()
	if f.DType != tensor.FP16 || !tensor.Known(f.Shape) || tensor.Count(f.Shape) != in.st.n*width {
		return nil, diag.Errorf(u.pos(), diag.Unsupported, "input %s of function %s is %s %s, want fp16 with %d rows of %d elements",
			f.Name, u.fn.Name, f.DType, tensor.ShapeString(f.Shape), in.st.n, width)
	}
	t := tensor.New(tensor.FP16, f.Shape...)
	for i := range in.st.n {
		row := in.st.pos + i
		if byToken[f.Name] {
			row = in.ids[i]
		}
		if err := src.put(t.Data[2*i*width:2*(i+1)*width], row); err != nil {
			return nil, err
		}
	}
	return t, nil
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

// rowMask makes a mask [1, 1, n, width]: 0 in the columns from..to-1 that row
// may see, hidden elsewhere (package format, "Decoder chunks"; coreml-llm.md
// 4).
func rowMask(u *unit, f *coreml.Feature, n int, hidden float32, visible func(row, width int) (from, to int)) (*tensor.Tensor, error) {
	shape := knownShape(f, 1, 1, n, -1)
	size := f.DType.Bits() / 8
	if len(shape) != 4 || tensor.Count(shape) < 0 || shape[2] != n || (f.DType != tensor.FP16 && f.DType != tensor.FP32) {
		return nil, diag.Errorf(u.pos(), diag.Unsupported, "input %s of function %s is %s %s, want fp16 or fp32 [1, 1, %d, context]",
			f.Name, u.fn.Name, f.DType, tensor.ShapeString(shape), n)
	}
	t := tensor.New(f.DType, shape...)
	width := shape[3]
	half, full := tensor.F32ToF16(hidden), math.Float32bits(hidden)
	for row := range n {
		from, to := visible(row, width)
		for col := range width {
			if col >= from && col < to {
				continue
			}
			at := (row*width + col) * size
			if f.DType == tensor.FP16 {
				binary.LittleEndian.PutUint16(t.Data[at:], half)
			} else {
				binary.LittleEndian.PutUint32(t.Data[at:], full)
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
