// Package tensor holds element types, shapes, half-precision conversion and
// the plain host tensor that crosses the Backend interface.
//
// Files: dtype.go (element types), float16.go (fp16 and bf16 conversion),
// shape.go (bounded shape arithmetic), tensor.go (Tensor), npy.go (.npy files).
package tensor

import "fmt"

// DType is an element type of MIL.
type DType uint8

// The element types, named as text MIL spells them.
const (
	Invalid DType = iota
	Bool
	String
	FP16
	FP32
	FP64
	BF16
	Int4
	Int8
	Int16
	Int32
	Int64
	UInt1
	UInt2
	UInt3
	UInt4
	UInt6
	UInt8
	UInt16
	UInt32
	UInt64
	FP8E4M3FN
	FP8E5M2
	numDTypes
)

type dtypeInfo struct {
	name string
	long string // as JSON output and Core ML people write it
	bits int
}

var dtypes = [numDTypes]dtypeInfo{
	Invalid: {"invalid", "invalid", 0},
	Bool:    {"bool", "bool", 8}, String: {"string", "string", 0},
	FP16: {"fp16", "float16", 16}, FP32: {"fp32", "float32", 32}, FP64: {"fp64", "float64", 64}, BF16: {"bf16", "bfloat16", 16},
	Int4: {"int4", "int4", 4}, Int8: {"int8", "int8", 8}, Int16: {"int16", "int16", 16}, Int32: {"int32", "int32", 32}, Int64: {"int64", "int64", 64},
	UInt1: {"uint1", "uint1", 1}, UInt2: {"uint2", "uint2", 2}, UInt3: {"uint3", "uint3", 3}, UInt4: {"uint4", "uint4", 4}, UInt6: {"uint6", "uint6", 6},
	UInt8: {"uint8", "uint8", 8}, UInt16: {"uint16", "uint16", 16}, UInt32: {"uint32", "uint32", 32}, UInt64: {"uint64", "uint64", 64},
	FP8E4M3FN: {"fp8e4m3fn", "float8e4m3fn", 8}, FP8E5M2: {"fp8e5m2", "float8e5m2", 8},
}

var dtypeByName = func() map[string]DType {
	m := make(map[string]DType, 2*numDTypes)
	for d := Bool; d < numDTypes; d++ {
		m[dtypes[d].name] = d
		m[dtypes[d].long] = d
	}
	return m
}()

// ParseDType accepts the MIL spelling ("fp16") and the long one ("float16").
func ParseDType(s string) (DType, bool) {
	d, ok := dtypeByName[s]
	return d, ok
}

// String returns the MIL spelling, for example "fp16".
func (d DType) String() string {
	if d >= numDTypes {
		return fmt.Sprintf("dtype(%d)", uint8(d))
	}
	return dtypes[d].name
}

// Long returns the spelling used in JSON output, for example "float16".
func (d DType) Long() string {
	if d >= numDTypes {
		return d.String()
	}
	return dtypes[d].long
}

// Bits returns the width of a stored element; bool is one byte, string 0.
func (d DType) Bits() int {
	if d >= numDTypes {
		return 0
	}
	return dtypes[d].bits
}

// ByteSize returns how many bytes n packed elements take, rounded up.
// n must not be negative.
func (d DType) ByteSize(n int64) int64 { return (n*int64(d.Bits()) + 7) / 8 }

// IsFloat reports whether d is a floating-point type.
func (d DType) IsFloat() bool {
	switch d {
	case FP16, FP32, FP64, BF16, FP8E4M3FN, FP8E5M2:
		return true
	}
	return false
}

// IsInt reports whether d is an integer type (bool is not).
func (d DType) IsInt() bool { return d >= Int4 && d <= UInt64 }

// IsUnsigned reports whether d is an unsigned integer type.
func (d DType) IsUnsigned() bool { return d >= UInt1 && d <= UInt64 }

// IsSubByte reports whether elements of d are packed several to a byte.
func (d DType) IsSubByte() bool { b := d.Bits(); return b > 0 && b < 8 }
