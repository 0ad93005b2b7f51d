package mil

import "github.com/anepkg/anepkg/coreml/tensor"

// Value is a typed constant. Exactly one of the storage fields is used:
//
//	Blob     the data lies in a weight file
//	Floats   fp8, fp16, bf16, fp32 (each exact in float32)
//	Doubles  fp64
//	Ints     every integer type (uint64 as its two's complement)
//	Bools    bool
//	Strings  string
//	Elems    the members of a tuple or list, or key, value, key, value, ...
//	         of a dict
//
// Tensors are stored flat in row-major order; Type has the shape. In
// FlexibleShapeInformation members are printed without a type of their own;
// they carry the one that the enclosing type gives them.
type Value struct {
	Type    Type
	Pos     Pos
	Blob    *BlobRef
	Floats  []float32
	Doubles []float64
	Ints    []int64
	Bools   []bool
	Strings []string
	Elems   []*Value
}

// BlobRef points into a weight file.
type BlobRef struct {
	Path   string // "@model_path/weights/weight.bin"
	Offset uint64 // of the blob's metadata record
	Pos    Pos
}

// Len returns the number of inline elements of a tensor; 0 for a blob.
func (v *Value) Len() int {
	return len(v.Floats) + len(v.Doubles) + len(v.Ints) + len(v.Bools) + len(v.Strings)
}

// Int returns the only integer (or bool as 0 or 1) of a scalar-like value.
func (v *Value) Int() (int, bool) {
	switch {
	case v == nil:
		return 0, false
	case len(v.Ints) == 1:
		return int(v.Ints[0]), true
	case len(v.Bools) == 1:
		if v.Bools[0] {
			return 1, true
		}
		return 0, true
	}
	return 0, false
}

// Bool returns the only bool of a scalar-like value.
func (v *Value) Bool() (val, ok bool) {
	if v == nil || len(v.Bools) != 1 {
		return false, false
	}
	return v.Bools[0], true
}

// Str returns the only string of a scalar-like value.
func (v *Value) Str() (string, bool) {
	if v == nil || len(v.Strings) != 1 {
		return "", false
	}
	return v.Strings[0], true
}

// Float returns the only number of a scalar-like value.
func (v *Value) Float() (float64, bool) {
	switch {
	case v == nil:
		return 0, false
	case len(v.Floats) == 1:
		return float64(v.Floats[0]), true
	case len(v.Doubles) == 1:
		return v.Doubles[0], true
	case len(v.Ints) == 1:
		return float64(v.Ints[0]), true
	}
	return 0, false
}

// StringValue makes a string constant, as attribute values are.
func StringValue(s string) *Value {
	return &Value{Type: Type{DType: tensor.String, Bare: true}, Strings: []string{s}}
}
