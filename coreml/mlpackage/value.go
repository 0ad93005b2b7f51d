package mlpackage

import (
	"encoding/binary"
	"math"

	"github.com/anepkg/anepkg/coreml/blob"
	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/coreml/mil"
	"github.com/anepkg/anepkg/coreml/tensor"
	"github.com/anepkg/anepkg/coreml/wire"
)

// value decodes message Value: type = 2, immediateValue = 3,
// blobFileValue = 5.
func (d *decoder) value(msg []byte, depth int) (*mil.Value, error) {
	if depth > maxValueDepth {
		return nil, diag.Errorf(d.Pos(msg), diag.TooLarge, "values nested deeper than %d", maxValueDepth)
	}
	v := &mil.Value{}
	var typ, immediate, file []byte
	err := d.Each(msg, func(f wire.Field) error {
		switch {
		case f.Num == 2 && f.IsBytes():
			typ = f.Bytes
		case f.Num == 3 && f.IsBytes():
			immediate = f.Bytes
		case f.Num == 5 && f.IsBytes():
			file = f.Bytes
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, err
	case typ == nil:
		return nil, d.Errorf(msg, "value without a type")
	}
	if v.Type, err = d.typ(typ, 0); err != nil {
		return nil, err
	}
	switch {
	case file != nil && v.Type.Kind == mil.TensorType:
		v.Blob, err = d.blobRef(file)
	case immediate != nil:
		err = d.immediate(v, immediate, depth)
	default:
		err = d.Errorf(msg, "value of type %s without content", v.Type)
	}
	return v, err
}

// blobRef decodes message BlobFileValue: fileName = 1, offset = 2.
func (d *decoder) blobRef(msg []byte) (*mil.BlobRef, error) {
	r := &mil.BlobRef{}
	err := d.Each(msg, func(f wire.Field) error {
		switch {
		case f.Num == 1 && f.IsBytes():
			r.Path = d.intern(f.Bytes)
		case f.Num == 2 && !f.IsBytes():
			r.Offset = f.Uint
		}
		return nil
	})
	return r, err
}

// immediate decodes message ImmediateValue: tensor = 1, tuple = 2, list = 3,
// dictionary = 4.
func (d *decoder) immediate(v *mil.Value, msg []byte, depth int) error {
	want := map[mil.Kind]int{mil.TensorType: 1, mil.TupleType: 2, mil.ListType: 3, mil.DictType: 4}[v.Type.Kind]
	found := false
	err := d.Each(msg, func(f wire.Field) error {
		if !f.IsBytes() || f.Num != want {
			return nil
		}
		found = true
		if want == 1 {
			return d.tensorValue(v, f.Bytes)
		}
		return d.members(v, f.Bytes, depth)
	})
	if err == nil && !found {
		err = d.Errorf(msg, "the content does not fit the type %s", v.Type)
	}
	return err
}

// members decodes TupleValue, ListValue (values = 1) and DictionaryValue
// (values = 1, each with key = 1 and value = 2).
func (d *decoder) members(v *mil.Value, msg []byte, depth int) error {
	add := func(b []byte) error {
		e, err := d.value(b, depth+1)
		v.Elems = append(v.Elems, e)
		return err
	}
	err := d.Each(msg, func(f wire.Field) error {
		if f.Num != 1 || !f.IsBytes() {
			return nil
		}
		if v.Type.Kind != mil.DictType {
			return add(f.Bytes)
		}
		var pair [2][]byte
		err := d.Each(f.Bytes, func(f wire.Field) error {
			if (f.Num == 1 || f.Num == 2) && f.IsBytes() {
				pair[f.Num-1] = f.Bytes
			}
			return nil
		})
		if err == nil && (pair[0] == nil || pair[1] == nil) {
			err = d.Errorf(f.Bytes, "dictionary entry without a key or a value")
		}
		if err == nil {
			err = add(pair[0])
		}
		if err == nil {
			err = add(pair[1])
		}
		return err
	})
	if err != nil {
		return err
	}
	if n := len(v.Type.Elems); v.Type.Kind == mil.TupleType && n != len(v.Elems) {
		return d.Errorf(msg, "%d members for the type %s", len(v.Elems), v.Type)
	}
	return d.memberKinds(v, msg)
}

// memberKinds checks that members have the types that the enclosing type
// gives them, so that a printer needs to look at one of the two only.
func (d *decoder) memberKinds(v *mil.Value, msg []byte) error {
	for i, e := range v.Elems {
		var want mil.Type
		switch v.Type.Kind {
		case mil.ListType:
			want = v.Type.Elems[0]
		case mil.DictType:
			want = v.Type.Elems[i%2]
		default:
			want = v.Type.Elems[i]
		}
		if e.Type.Kind != want.Kind || e.Type.DType != want.DType {
			return d.Errorf(msg, "member %d has type %s, want %s", i, e.Type, want)
		}
	}
	return nil
}

// tensorValue decodes message TensorValue: floats = 1, ints = 2, bools = 3,
// strings = 4, longInts = 5, doubles = 6, bytes = 7, each with values = 1.
func (d *decoder) tensorValue(v *mil.Value, msg []byte) error {
	err := d.Each(msg, func(f wire.Field) error {
		if !f.IsBytes() || f.Num < 1 || f.Num > 7 {
			return nil
		}
		form := f.Num
		return d.Each(f.Bytes, func(f wire.Field) error {
			if f.Num != 1 {
				return nil
			}
			return d.elements(v, form, f)
		})
	})
	if err != nil {
		return err
	}
	dt := v.Type.DType
	n := tensor.Count(v.Type.Shape)
	if dt == tensor.String && n == 1 && v.Len() == 0 {
		v.Strings = []string{""}
	}
	if tensor.Known(v.Type.Shape) && n != v.Len() {
		return d.Errorf(msg, "%d values for the type %s", v.Len(), v.Type)
	}
	return d.inlineShape(v, msg)
}

// maxEmpty bounds the dimensions in front of a zero one: an empty tensor has
// no values that would, and its text form has a pair of brackets for each.
const maxEmpty = 1 << 16

// inlineShape checks that an inline value has at most one unknown dimension,
// which the number of values then gives.
func (d *decoder) inlineShape(v *mil.Value, msg []byte) error {
	unknown, rest, front := 0, 1, 1
	for _, n := range v.Type.Shape {
		if n < 0 {
			unknown++
			n = 1
			if v.Len() == 0 {
				n = 0
			}
		}
		rest = tensor.Count([]int{rest, n})
		if rest > 0 {
			front = rest
		}
		if rest <= 0 {
			break
		}
	}
	switch {
	case unknown > 1:
		return diag.Errorf(d.Pos(msg), diag.Unsupported, "inline value of type %s with several unknown dimensions", v.Type)
	case rest < 0 || v.Len() == 0 && front > maxEmpty:
		return diag.Errorf(d.Pos(msg), diag.TooLarge, "inline value of type %s", v.Type)
	case unknown == 1 && rest > 0 && v.Len()%rest != 0:
		return d.Errorf(msg, "%d values for the type %s", v.Len(), v.Type)
	}
	return nil
}

// elements appends one field "values" of a repeated kind to v.
func (d *decoder) elements(v *mil.Value, form int, f wire.Field) (err error) {
	dt := v.Type.DType
	switch {
	case form == 1 && dt.IsFloat() && dt != tensor.FP64:
		v.Floats, err = d.Floats(v.Floats, f)
	case form == 6 && dt == tensor.FP64:
		v.Doubles, err = d.Doubles(v.Doubles, f)
	case form == 4 && dt == tensor.String && f.IsBytes():
		v.Strings = append(v.Strings, d.intern(f.Bytes))
	case (form == 3 || form == 2) && dt == tensor.Bool:
		var ints []int64
		ints, err = d.Varints(nil, f)
		for _, n := range ints {
			v.Bools = append(v.Bools, n != 0)
		}
	case (form == 2 || form == 5) && dt.IsInt():
		start := len(v.Ints)
		v.Ints, err = d.Varints(v.Ints, f)
		for i := start; i < len(v.Ints); i++ {
			v.Ints[i] = narrow(dt, v.Ints[i])
		}
	case form == 7 && f.IsBytes() && dt != tensor.String:
		return d.raw(v, f.Bytes)
	default:
		return d.Errorf(f.Bytes, "the stored form (TensorValue field %d) cannot hold %s", form, dt)
	}
	return err
}

// narrow keeps the bits that d has: int32 lists also carry unsigned and
// narrower types.
func narrow(d tensor.DType, n int64) int64 {
	shift := 64 - d.Bits()
	if d.IsUnsigned() {
		return int64(uint64(n) << shift >> shift)
	}
	return n << shift >> shift
}

// raw decodes little-endian bytes; elements narrower than a byte are packed.
func (d *decoder) raw(v *mil.Value, b []byte) error {
	dt := v.Type.DType
	if dt.IsSubByte() {
		n := tensor.Count(v.Type.Shape)
		u := blob.Unpack(b, dt.Bits(), max(n, 0))
		if n < 0 || u == nil || blob.PackedSize(n, dt.Bits()) != len(b) {
			return d.Errorf(b, "%d bytes for a value of type %s", len(b), v.Type)
		}
		for _, e := range u {
			v.Ints = append(v.Ints, narrow(dt, int64(e)))
		}
		return nil
	}
	width := dt.Bits() / 8
	if width == 0 || len(b)%width != 0 {
		return d.Errorf(b, "%d bytes for a value of type %s", len(b), v.Type)
	}
	for ; len(b) > 0; b = b[width:] {
		switch dt {
		case tensor.FP16:
			v.Floats = append(v.Floats, tensor.F16ToF32(binary.LittleEndian.Uint16(b)))
		case tensor.BF16:
			v.Floats = append(v.Floats, tensor.BF16ToF32(binary.LittleEndian.Uint16(b)))
		case tensor.FP32:
			v.Floats = append(v.Floats, math.Float32frombits(binary.LittleEndian.Uint32(b)))
		case tensor.FP64:
			v.Doubles = append(v.Doubles, math.Float64frombits(binary.LittleEndian.Uint64(b)))
		case tensor.FP8E4M3FN:
			v.Floats = append(v.Floats, tensor.F8E4M3FNToF32(b[0]))
		case tensor.FP8E5M2:
			v.Floats = append(v.Floats, tensor.F8E5M2ToF32(b[0]))
		case tensor.Bool:
			v.Bools = append(v.Bools, b[0] != 0)
		default:
			v.Ints = append(v.Ints, narrow(dt, int64(littleEndian(b[:width]))))
		}
	}
	return nil
}

func littleEndian(b []byte) (n uint64) {
	for i, c := range b {
		n |= uint64(c) << (8 * i)
	}
	return n
}
