package runner

import (
	"encoding/binary"
	"math"
	"slices"

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
	// room keeps the tensors of earlier steps, which are written anew.
	room  map[*coreml.Feature]*tensor.Tensor
	args  map[string]*tensor.Tensor
	nums  []int
	shape []int
}

func newInputs(st step, ids []int) *inputs {
	in := &inputs{mask: plainMasks}
	in.begin(st, ids)
	return in
}

// begin readies the inputs for a step. What fill gave for the step before
// may be overwritten.
func (in *inputs) begin(st step, ids []int) {
	in.st, in.ids = st, ids
	if in.from == nil {
		in.from, in.made = map[string]*tensor.Tensor{}, map[string]*tensor.Tensor{}
		in.room, in.args = map[*coreml.Feature]*tensor.Tensor{}, map[string]*tensor.Tensor{}
	}
	clear(in.from)
	clear(in.made)
}

// tensor returns a tensor of zeros for the input f.
func (in *inputs) tensor(f *coreml.Feature, d tensor.DType, shape []int) *tensor.Tensor {
	t := in.room[f]
	if t == nil || t.DType != d || !slices.Equal(t.Shape, shape) {
		t = tensor.New(d, shape...)
		in.room[f] = t
		return t
	}
	clear(t.Data)
	return t
}

// numbers returns room for n integers, until the next call.
func (in *inputs) numbers(n int) []int {
	in.nums = slices.Grow(in.nums[:0], n)[:n]
	return in.nums
}

// fill returns the inputs that u declares, in its element types. They are
// good until the next call.
func (in *inputs) fill(u *unit) (map[string]*tensor.Tensor, error) {
	out := in.args
	clear(out)
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
		return in.convert(f, t), nil
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
		return in.ints(u, f, in.knownShape(f, 1, n), in.ids)
	case inPositions:
		at := in.numbers(n)
		for i := range at {
			at[i] = pos + i
		}
		return in.ints(u, f, in.knownShape(f, n), at)
	case inCurrent:
		at := in.numbers(1)
		at[0] = pos
		return in.ints(u, f, in.knownShape(f, 1), at)
	case inRing:
		if in.mask.window > 0 {
			at := in.numbers(1)
			at[0] = pos % in.mask.window
			return in.ints(u, f, in.knownShape(f, 1), at)
		}
	case inMask, inMaskFull:
		return in.rowMask(u, f, n, func(row, _ int) (from, to int) { return 0, pos + row + 1 })
	case inMaskWindow:
		return in.rowMask(u, f, n, func(row, width int) (from, to int) {
			seen := min(pos+row+1, width)
			if in.mask.ring {
				return 0, seen
			}
			return width - seen, width
		})
	case inUpdateMask:
		shape := in.knownShape(f, 1, 1, -1, n)
		return in.updateMask(u, f, shape, pos, n)
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
	t := in.tensor(f, tensor.FP16, f.Shape)
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
// want, and from the default shape where want is -1. It is good until the
// next call.
func (in *inputs) knownShape(f *coreml.Feature, want ...int) []int {
	if len(f.Shape) != len(want) || tensor.Known(f.Shape) {
		return f.Shape
	}
	in.shape = slices.Grow(in.shape[:0], len(want))[:len(want)]
	for i, d := range f.Shape {
		switch {
		case d >= 0:
			in.shape[i] = d
		case want[i] >= 0:
			in.shape[i] = want[i]
		case i < len(f.Default):
			in.shape[i] = f.Default[i]
		default:
			in.shape[i] = -1
		}
	}
	return in.shape
}

// ints makes an integer input; the number of values must fit the shape.
func (in *inputs) ints(u *unit, f *coreml.Feature, shape, values []int) (*tensor.Tensor, error) {
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
	t := in.tensor(f, f.DType, shape)
	if err := t.SetInts(values); err != nil {
		return nil, err
	}
	return t, nil
}

// rowMask makes a mask [1, 1, n, width]: 0 in the columns from..to-1 that row
// may see, hidden elsewhere (package format, "Decoder chunks"; coreml-llm.md
// 4).
func (in *inputs) rowMask(u *unit, f *coreml.Feature, n int, visible func(row, width int) (from, to int)) (*tensor.Tensor, error) {
	shape := in.knownShape(f, 1, 1, n, -1)
	size := f.DType.Bits() / 8
	if len(shape) != 4 || tensor.Count(shape) < 0 || shape[2] != n || (f.DType != tensor.FP16 && f.DType != tensor.FP32) {
		return nil, diag.Errorf(u.pos(), diag.Unsupported, "input %s of function %s is %s %s, want fp16 or fp32 [1, 1, %d, context]",
			f.Name, u.fn.Name, f.DType, tensor.ShapeString(shape), n)
	}
	t := in.tensor(f, f.DType, shape)
	width := shape[3]
	half, full := tensor.F32ToF16(in.mask.hidden), math.Float32bits(in.mask.hidden)
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
func (in *inputs) updateMask(u *unit, f *coreml.Feature, shape []int, pos, n int) (*tensor.Tensor, error) {
	if len(shape) != 4 || tensor.Count(shape) < 0 || shape[3] != n || pos+n > shape[2] || (f.DType != tensor.FP16 && f.DType != tensor.FP32) {
		return nil, diag.Errorf(u.pos(), diag.Unsupported, "input %s of function %s is %s %s, want fp16 or fp32 [1, 1, context, %d]",
			f.Name, u.fn.Name, f.DType, tensor.ShapeString(shape), n)
	}
	t := in.tensor(f, f.DType, shape)
	for i := range n {
		at := (pos+i)*n + i
		if f.DType == tensor.FP16 {
			binary.LittleEndian.PutUint16(t.Data[2*at:], tensor.F32ToF16(1))
		} else {
			binary.LittleEndian.PutUint32(t.Data[4*at:], math.Float32bits(1))
		}
	}
	return t, nil
}

// convert returns t as the element type of f: parts of a package may disagree
// between fp16 and fp32.
func (in *inputs) convert(f *coreml.Feature, t *tensor.Tensor) *tensor.Tensor {
	if t.DType == f.DType || !t.DType.IsFloat() || !f.DType.IsFloat() {
		return t
	}
	c := in.tensor(f, f.DType, t.Shape)
	if c.SetFloat32s(t.Float32s()) != nil {
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
