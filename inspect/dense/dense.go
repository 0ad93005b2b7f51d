// Package dense turns one stored constant, compressed or not, into plain
// numbers: const and every constexpr op, with operands that are constexpr ops
// themselves. It is for looking at weights one at a time; backends have their
// own kernels that never expand a weight.
//
// Files: dense.go (Decode, Array, immediate and stored values), expand.go
// (the constexpr ops).
//
// Values follow the op definitions of coremltools (mil.md section D): sums
// and products are computed in float32 and rounded to the result's type.
package dense

import (
	"encoding/binary"
	"math"

	"github.com/anepkg/anepkg/coreml/blob"
	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/coreml/mil"
	"github.com/anepkg/anepkg/coreml/tensor"
)

// MaxElements bounds the elements of a decoded constant.
const MaxElements = 1 << 30

// maxDepth bounds constexpr ops inside each other.
const maxDepth = 8

// Array is a decoded constant in row-major order. Float types have F, integer
// types and bool I.
type Array struct {
	DType tensor.DType
	Shape []int
	F     []float32
	I     []int64
}

// Len returns the element count.
func (a *Array) Len() int { return max(len(a.F), len(a.I)) }

// at returns element i as a float.
func (a *Array) at(i int) float32 {
	if a.F != nil {
		return a.F[i]
	}
	return float32(a.I[i])
}

// Tensor returns the array for a .npy file: float32 for every float type,
// the array's own type for whole-byte integers, int8 or uint8 for narrower
// ones.
func (a *Array) Tensor() (*tensor.Tensor, error) {
	if a.DType.IsFloat() {
		return tensor.FromFloat32(tensor.FP32, a.Shape, a.F)
	}
	d := a.DType
	if d.IsSubByte() {
		d = tensor.UInt8
		if !a.DType.IsUnsigned() {
			d = tensor.Int8
		}
	}
	ints := make([]int, len(a.I))
	for i, n := range a.I {
		ints[i] = int(n)
	}
	return tensor.FromInts(d, a.Shape, ints)
}

// Source is where a constant's operands come from.
type Source struct {
	Op   func(name string) *mil.Op              // the op that defines a value, nil when there is none
	Data func(ref *mil.BlobRef) ([]byte, error) // the packed bytes of a blob
}

// Decode returns the results of a const or constexpr op: one, or two for the
// sparse forms (mask and nonzero values). Errors have class diag.Malformed
// when operands do not fit together, diag.TooLarge beyond MaxElements,
// diag.Unsupported for ops that are no constants; errors of Data are passed
// on.
func Decode(src Source, op *mil.Op) ([]*Array, error) {
	d := &decoder{Source: src}
	return d.op(op, 0)
}

type decoder struct{ Source }

func malformed(op *mil.Op, format string, args ...any) error {
	return diag.Errorf(diag.Pos{Line: int(op.Pos.Line), Col: int(op.Pos.Col)}, diag.Malformed, op.Type+": "+format, args...)
}

func count(op *mil.Op, shape []int) (int, error) {
	n, err := tensor.NumElements(shape)
	if err != nil {
		return 0, malformed(op, "%w", err)
	}
	if n > MaxElements {
		return 0, diag.Errorf(diag.Pos{Line: int(op.Pos.Line), Col: int(op.Pos.Col)}, diag.TooLarge, "%s has %d elements, the limit is %d", op.Name(), n, MaxElements)
	}
	return int(n), nil
}

// operand decodes an operand; nil when it is absent.
func (d *decoder) operand(op *mil.Op, name string, depth int) (*Array, error) {
	bs := op.Operand(name)
	if len(bs) == 0 {
		return nil, nil
	}
	if len(bs) != 1 {
		return nil, malformed(op, "%s has %d values, want one", name, len(bs))
	}
	if bs[0].Value != nil {
		return d.value(op, bs[0].Value)
	}
	def := d.Op(bs[0].Ref)
	if def == nil || !def.IsConst() {
		return nil, malformed(op, "%s is no constant", name)
	}
	if depth >= maxDepth {
		return nil, malformed(op, "constants nest deeper than %d", maxDepth)
	}
	outs, err := d.op(def, depth+1)
	if err != nil {
		return nil, err
	}
	for i, o := range def.Outputs {
		if o.Name == bs[0].Ref && i < len(outs) {
			return outs[i], nil
		}
	}
	return outs[0], nil
}

// need is operand for one that must be there.
func (d *decoder) need(op *mil.Op, name string, depth int) (*Array, error) {
	a, err := d.operand(op, name, depth)
	if err == nil && a == nil {
		err = malformed(op, "argument %s is missing", name)
	}
	return a, err
}

// value decodes an immediate or stored value.
func (d *decoder) value(op *mil.Op, v *mil.Value) (*Array, error) {
	if v.Type.Kind != mil.TensorType || v.Type.DType == tensor.String {
		return nil, diag.Errorf(diag.Pos{Line: int(v.Pos.Line), Col: int(v.Pos.Col)}, diag.Unsupported, "%s holds %s, not numbers", op.Name(), v.Type)
	}
	n, err := count(op, v.Type.Shape)
	if err != nil {
		return nil, err
	}
	a := &Array{DType: v.Type.DType, Shape: append([]int{}, v.Type.Shape...)}
	if v.Blob != nil {
		data, err := d.Data(v.Blob)
		if err != nil {
			return nil, err
		}
		err = a.unpack(op, data, n)
		return a, err
	}
	if v.Len() != n {
		return nil, malformed(op, "%d values for shape %s", v.Len(), tensor.ShapeString(a.Shape))
	}
	a.alloc(n)
	switch {
	case v.Floats != nil:
		copy(a.F, v.Floats)
	case v.Doubles != nil:
		for i, f := range v.Doubles {
			a.F[i] = float32(f)
		}
	case v.Ints != nil:
		copy(a.I, v.Ints)
	case v.Bools != nil:
		for i, b := range v.Bools {
			if b {
				a.I[i] = 1
			}
		}
	}
	return a, nil
}

func (a *Array) alloc(n int) {
	if a.DType.IsFloat() {
		a.F = make([]float32, n)
		return
	}
	a.I = make([]int64, n)
}

// unpack fills a from little-endian or packed bytes.
func (a *Array) unpack(op *mil.Op, data []byte, n int) error {
	if want := a.DType.ByteSize(int64(n)); int64(len(data)) < want {
		return malformed(op, "%d bytes of data, %s %s takes %d", len(data), a.DType, tensor.ShapeString(a.Shape), want)
	}
	a.alloc(n)
	le := binary.LittleEndian
	switch d := a.DType; {
	case d.IsSubByte() && d.IsUnsigned():
		for i, u := range blob.Unpack(data, d.Bits(), n) {
			a.I[i] = int64(u)
		}
	case d.IsSubByte():
		for i, s := range blob.UnpackSigned(data, d.Bits(), n) {
			a.I[i] = int64(s)
		}
	case d == tensor.FP16:
		for i := range n {
			a.F[i] = tensor.F16ToF32(le.Uint16(data[2*i:]))
		}
	case d == tensor.BF16:
		for i := range n {
			a.F[i] = tensor.BF16ToF32(le.Uint16(data[2*i:]))
		}
	case d == tensor.FP32:
		for i := range n {
			a.F[i] = math.Float32frombits(le.Uint32(data[4*i:]))
		}
	case d == tensor.FP64:
		for i := range n {
			a.F[i] = float32(math.Float64frombits(le.Uint64(data[8*i:])))
		}
	case d == tensor.FP8E4M3FN:
		for i := range n {
			a.F[i] = tensor.F8E4M3FNToF32(data[i])
		}
	case d == tensor.FP8E5M2:
		for i := range n {
			a.F[i] = tensor.F8E5M2ToF32(data[i])
		}
	default:
		a.integers(data)
	}
	return nil
}

func (a *Array) integers(data []byte) {
	le := binary.LittleEndian
	for i := range a.I {
		switch a.DType {
		case tensor.Int8:
			a.I[i] = int64(int8(data[i]))
		case tensor.Int16:
			a.I[i] = int64(int16(le.Uint16(data[2*i:])))
		case tensor.UInt16:
			a.I[i] = int64(le.Uint16(data[2*i:]))
		case tensor.Int32:
			a.I[i] = int64(int32(le.Uint32(data[4*i:])))
		case tensor.UInt32:
			a.I[i] = int64(le.Uint32(data[4*i:]))
		case tensor.Int64, tensor.UInt64:
			a.I[i] = int64(le.Uint64(data[8*i:]))
		default: // uint8 and bool
			a.I[i] = int64(data[i])
		}
	}
}

// round brings float values to the precision of d.
func (a *Array) round(d tensor.DType) *Array {
	a.DType = d
	switch d {
	case tensor.FP16:
		tensor.RoundF16Slice(a.F)
	case tensor.BF16:
		for i, f := range a.F {
			a.F[i] = tensor.BF16ToF32(tensor.F32ToBF16(f))
		}
	}
	return a
}
