package tensor

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
)

// Tensor is a dense, row-major host tensor. Data is little endian; bool
// elements are one byte, 0 or 1. Sub-byte element types do not occur here.
//
// Two results of classify are not numbers: a class label has DType String and
// its text in Strings; a dictionary has the values in Data, FP64 of shape [n],
// and their n names in Keys.
type Tensor struct {
	DType   DType
	Shape   []int
	Data    []byte
	Strings []string
	Keys    []string
}

// New returns a zero tensor. Shape must have known dimensions whose product
// is below MaxElements; New panics otherwise, since callers check first.
func New(d DType, shape ...int) *Tensor {
	n := Count(shape)
	if n < 0 {
		panic("tensor: bad shape " + ShapeString(shape))
	}
	return &Tensor{DType: d, Shape: append([]int{}, shape...), Data: make([]byte, d.ByteSize(int64(n)))}
}

// FromFloat32 stores values as dtype d (FP16, BF16, FP32 or FP64), rounding
// to nearest even.
func FromFloat32(d DType, shape []int, values []float32) (*Tensor, error) {
	if n := Count(shape); n != len(values) {
		return nil, fmt.Errorf("got %d values for shape %s", len(values), ShapeString(shape))
	}
	t := New(d, shape...)
	if err := t.SetFloat32s(values); err != nil {
		return nil, err
	}
	return t, nil
}

// SetFloat32s stores values in t, a tensor of as many elements and of a type
// that FromFloat32 takes.
func (t *Tensor) SetFloat32s(values []float32) error {
	if n := t.Len(); n != len(values) {
		return fmt.Errorf("got %d values for shape %s", len(values), ShapeString(t.Shape))
	}
	switch t.DType {
	case FP32:
		for i, v := range values {
			binary.LittleEndian.PutUint32(t.Data[4*i:], math.Float32bits(v))
		}
	case FP16:
		for i, v := range values {
			binary.LittleEndian.PutUint16(t.Data[2*i:], F32ToF16(v))
		}
	case BF16:
		for i, v := range values {
			binary.LittleEndian.PutUint16(t.Data[2*i:], F32ToBF16(v))
		}
	case FP64:
		for i, v := range values {
			binary.LittleEndian.PutUint64(t.Data[8*i:], math.Float64bits(float64(v)))
		}
	default:
		return fmt.Errorf("element type %s cannot hold float values", t.DType)
	}
	return nil
}

// FromInts stores values as an integer or bool dtype, keeping the low bits.
func FromInts(d DType, shape []int, values []int) (*Tensor, error) {
	if n := Count(shape); n != len(values) {
		return nil, fmt.Errorf("got %d values for shape %s", len(values), ShapeString(shape))
	}
	t := New(d, shape...)
	if err := t.SetInts(values); err != nil {
		return nil, err
	}
	return t, nil
}

// SetInts stores values in t, a tensor of as many elements and of a type that
// FromInts takes.
func (t *Tensor) SetInts(values []int) error {
	d := t.DType
	if n := t.Len(); n != len(values) {
		return fmt.Errorf("got %d values for shape %s", len(values), ShapeString(t.Shape))
	}
	if !d.IsInt() && d != Bool || d.IsSubByte() {
		return fmt.Errorf("element type %s cannot hold integers here", d)
	}
	for i, v := range values {
		switch d.Bits() {
		case 8:
			t.Data[i] = byte(v)
		case 16:
			binary.LittleEndian.PutUint16(t.Data[2*i:], uint16(v))
		case 32:
			binary.LittleEndian.PutUint32(t.Data[4*i:], uint32(v))
		case 64:
			binary.LittleEndian.PutUint64(t.Data[8*i:], uint64(v))
		}
	}
	return nil
}

// Len returns the element count.
func (t *Tensor) Len() int { return Count(t.Shape) }

// Check returns an error when Data does not have the length that DType and
// Shape ask for.
func (t *Tensor) Check() error {
	n, err := NumElements(t.Shape)
	if err != nil {
		return err
	}
	if want := t.DType.ByteSize(n); int64(len(t.Data)) != want {
		return fmt.Errorf("tensor %s %s has %d bytes, want %d", t.DType, ShapeString(t.Shape), len(t.Data), want)
	}
	return nil
}

// Float32s returns every element as float32, whatever the type (fp64 and
// wide integers round). Data must have been checked.
func (t *Tensor) Float32s() []float32 {
	n := t.Len()
	out := make([]float32, n)
	for i := range out {
		out[i] = float32(t.Float64(i))
	}
	return out
}

// Float64 returns element i as float64; exact but for 64-bit integers.
func (t *Tensor) Float64(i int) float64 {
	le := binary.LittleEndian
	switch t.DType {
	case FP16:
		return float64(F16ToF32(le.Uint16(t.Data[2*i:])))
	case BF16:
		return float64(BF16ToF32(le.Uint16(t.Data[2*i:])))
	case FP32:
		return float64(math.Float32frombits(le.Uint32(t.Data[4*i:])))
	case FP64:
		return math.Float64frombits(le.Uint64(t.Data[8*i:]))
	}
	return float64(t.Int(i))
}

// Int returns element i of an integer or bool tensor (floats truncate).
func (t *Tensor) Int(i int) int {
	le := binary.LittleEndian
	switch t.DType {
	case Int8:
		return int(int8(t.Data[i]))
	case UInt8, Bool:
		return int(t.Data[i])
	case Int16:
		return int(int16(le.Uint16(t.Data[2*i:])))
	case UInt16:
		return int(le.Uint16(t.Data[2*i:]))
	case Int32:
		return int(int32(le.Uint32(t.Data[4*i:])))
	case UInt32:
		return int(le.Uint32(t.Data[4*i:]))
	case Int64, UInt64:
		return int(le.Uint64(t.Data[8*i:]))
	}
	return int(t.Float64(i))
}

// Clone returns a deep copy.
func (t *Tensor) Clone() *Tensor {
	return &Tensor{DType: t.DType, Shape: append([]int{}, t.Shape...), Data: append([]byte{}, t.Data...),
		Strings: slices.Clone(t.Strings), Keys: slices.Clone(t.Keys)}
}
