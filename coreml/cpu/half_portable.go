package cpu

import "github.com/anepkg/anepkg/coreml/tensor"

// Conversions over whole rows; each is replaced by a vector version where the
// processor has one.
var (
	cvtHalf    = halfPortable   // widen fp16 bit patterns
	roundHalf  = roundPortable  // round float32 to fp16 in place
	narrowHalf = narrowPortable // round and store as bit patterns
	scaleRow   = scalePortable  // x = scale*(x - offset)
	cvtInt8    = int8Portable
	cvtUint8   = uint8Portable
)

func halfPortable(dst []float32, src []uint16) {
	for k, x := range src {
		dst[k] = tensor.F16ToF32(x)
	}
}

func roundPortable(x []float32) { tensor.RoundF16Slice(x) }

func narrowPortable(dst []uint16, src []float32) {
	for k, x := range src {
		dst[k] = tensor.F32ToF16(x)
	}
}

func scalePortable(x []float32, scale, offset float32) {
	for k, v := range x {
		x[k] = scale * (v - offset)
	}
}

func int8Portable(dst []float32, src []byte) {
	for k, x := range src {
		dst[k] = float32(int8(x))
	}
}

func uint8Portable(dst []float32, src []byte) {
	for k, x := range src {
		dst[k] = float32(x)
	}
}
