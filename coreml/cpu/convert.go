package cpu

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"unsafe"

	"github.com/anepkg/anepkg/coreml/tensor"
)

// fromBytes makes a value from little-endian data. fp16 data that is aligned
// is used in place, so data must stay valid and unchanged; everything else
// is copied. Sub-byte types are unpacked.
func fromBytes(d tensor.DType, shape []int, data []byte) *value {
	v := &value{dtype: d, shape: shape}
	n := product(shape)
	le := binary.LittleEndian
	switch d {
	case tensor.FP16:
		v.h = halfView(data, n)
	case tensor.BF16:
		v.f = make([]float32, n)
		for k := range v.f {
			v.f[k] = tensor.BF16ToF32(le.Uint16(data[2*k:]))
		}
	case tensor.FP32:
		v.f = make([]float32, n)
		for k := range v.f {
			v.f[k] = math.Float32frombits(le.Uint32(data[4*k:]))
		}
	case tensor.FP64:
		v.f = make([]float32, n)
		for k := range v.f {
			v.f[k] = float32(math.Float64frombits(le.Uint64(data[8*k:])))
		}
	case tensor.FP8E4M3FN:
		v.f = make([]float32, n)
		for k := range v.f {
			v.f[k] = tensor.F8E4M3FNToF32(data[k])
		}
	case tensor.FP8E5M2:
		v.f = make([]float32, n)
		for k := range v.f {
			v.f[k] = tensor.F8E5M2ToF32(data[k])
		}
	default:
		v.i = make([]int32, n)
		intsFromBytes(v.i, d, data)
	}
	return v
}

func intsFromBytes(dst []int32, d tensor.DType, data []byte) {
	le := binary.LittleEndian
	for k := range dst {
		switch d {
		case tensor.Bool, tensor.UInt8:
			dst[k] = int32(data[k])
		case tensor.Int8:
			dst[k] = int32(int8(data[k]))
		case tensor.Int16:
			dst[k] = int32(int16(le.Uint16(data[2*k:])))
		case tensor.UInt16:
			dst[k] = int32(le.Uint16(data[2*k:]))
		case tensor.Int32, tensor.UInt32:
			dst[k] = int32(le.Uint32(data[4*k:]))
		case tensor.Int64, tensor.UInt64:
			dst[k] = int32(le.Uint64(data[8*k:]))
		default:
			dst[k] = subByte(d, data, k)
		}
	}
}

// subByte returns element k of a packed stream, LSB first; int4 is signed.
func subByte(d tensor.DType, data []byte, k int) int32 {
	n := d.Bits()
	bit := k * n
	w := uint32(data[bit>>3])
	if bit&7+n > 8 {
		w |= uint32(data[bit>>3+1]) << 8
	}
	x := int32(w>>(bit&7)) & (1<<n - 1)
	if d == tensor.Int4 && x >= 8 {
		x -= 16
	}
	return x
}

// halfView reinterprets data as n fp16 bit patterns, without a copy when the
// machine is little endian and data is aligned.
func halfView(data []byte, n int) []uint16 {
	if n == 0 {
		return []uint16{}
	}
	_ = data[2*n-1]
	if p := unsafe.Pointer(&data[0]); littleEndian && uintptr(p)%2 == 0 { //nolint:gosec // aligned, and as long as was checked
		return unsafe.Slice((*uint16)(p), n) //nolint:gosec // as above
	}
	out := make([]uint16, n)
	for k := range out {
		out[k] = binary.LittleEndian.Uint16(data[2*k:])
	}
	return out
}

var littleEndian = binary.NativeEndian.Uint16([]byte{1, 0}) == 1

// toTensor copies v out.
func (v *value) toTensor() (*tensor.Tensor, error) { return v.copyTo(nil) }

// copyTo copies v to t when that has its type and shape, else to a new one.
func (v *value) copyTo(t *tensor.Tensor) (*tensor.Tensor, error) {
	if v.list != nil {
		return nil, errors.New("a list cannot leave the engine")
	}
	if v.s != nil {
		return &tensor.Tensor{DType: tensor.String, Shape: append([]int{}, v.shape...), Strings: slices.Clone(v.s)}, nil
	}
	if v.view != nil {
		v = v.view.copy(v)
	}
	if t == nil || t.DType != v.dtype || !slices.Equal(t.Shape, v.shape) {
		t = tensor.New(v.dtype, v.shape...)
	}
	t.Keys = slices.Clone(v.keys)
	le := binary.LittleEndian
	switch {
	case v.dtype == tensor.FP16 && v.h != nil:
		for k, x := range v.h {
			le.PutUint16(t.Data[2*k:], x)
		}
	case v.dtype == tensor.FP16:
		for k, x := range v.wide() {
			le.PutUint16(t.Data[2*k:], tensor.F32ToF16(x))
		}
	case v.dtype == tensor.BF16:
		for k, x := range v.wide() {
			le.PutUint16(t.Data[2*k:], tensor.F32ToBF16(x))
		}
	case v.dtype == tensor.FP32:
		for k, x := range v.wide() {
			le.PutUint32(t.Data[4*k:], math.Float32bits(x))
		}
	case v.dtype == tensor.FP64:
		for k, x := range v.wide() {
			le.PutUint64(t.Data[8*k:], math.Float64bits(float64(x)))
		}
	default:
		for k, x := range v.whole() {
			switch v.dtype.Bits() {
			case 8:
				t.Data[k] = byte(x)
			case 16:
				le.PutUint16(t.Data[2*k:], uint16(x))
			case 32:
				le.PutUint32(t.Data[4*k:], uint32(x))
			case 64:
				le.PutUint64(t.Data[8*k:], uint64(int64(x)))
			}
		}
	}
	return t, nil
}

// fromTensor copies t in; fp16 input is widened, since activations live in
// float32.
func (s *session) fromTensor(t *tensor.Tensor) *value {
	v, n := s.mem.newValue(value{dtype: t.DType, shape: s.mem.copyDims(t.Shape)}), product(t.Shape)
	switch {
	case t.DType == tensor.FP16:
		v.buf = s.arena.float(n)
		v.f = v.buf.f[:n]
		widenHalf(v.f, halfView(t.Data, n))
	case t.DType == tensor.FP32:
		v.buf = s.arena.float(n)
		v.f = v.buf.f[:n]
		for k := range v.f {
			v.f[k] = math.Float32frombits(binary.LittleEndian.Uint32(t.Data[4*k:]))
		}
	case t.DType.IsFloat():
		return fromBytes(t.DType, v.shape, t.Data)
	default:
		v.buf = s.arena.ints(n)
		v.i = v.buf.i[:n]
		intsFromBytes(v.i, t.DType, t.Data)
	}
	return v
}
