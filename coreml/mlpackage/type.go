package mlpackage

import (
	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/coreml/mil"
	"github.com/anepkg/anepkg/coreml/tensor"
	"github.com/anepkg/anepkg/coreml/wire"
)

// maxValueDepth bounds types in types and values in values.
const maxValueDepth = 16

// dataTypes maps enum DataType of MIL.proto.
var dataTypes = map[uint64]tensor.DType{
	1: tensor.Bool, 2: tensor.String,
	10: tensor.FP16, 11: tensor.FP32, 12: tensor.FP64, 13: tensor.BF16,
	21: tensor.Int8, 22: tensor.Int16, 23: tensor.Int32, 24: tensor.Int64, 25: tensor.Int4,
	31: tensor.UInt8, 32: tensor.UInt16, 33: tensor.UInt32, 34: tensor.UInt64,
	35: tensor.UInt4, 36: tensor.UInt2, 37: tensor.UInt1, 38: tensor.UInt6, 39: tensor.UInt3,
	40: tensor.FP8E4M3FN, 41: tensor.FP8E5M2,
}

// typ decodes message ValueType: tensorType = 1, listType = 2, tupleType = 3,
// dictionaryType = 4, stateType = 5.
func (d *decoder) typ(msg []byte, depth int) (mil.Type, error) {
	if depth > maxValueDepth {
		return mil.Type{}, diag.Errorf(d.Pos(msg), diag.TooLarge, "types nested deeper than %d", maxValueDepth)
	}
	var t mil.Type
	known := false
	err := d.Each(msg, func(f wire.Field) (err error) {
		if !f.IsBytes() || f.Num < 1 || f.Num > 5 {
			return nil
		}
		known = true
		switch f.Num {
		case 1:
			t, err = d.tensorType(f.Bytes)
		case 2:
			t, err = d.listType(f.Bytes, depth)
		case 3:
			t, err = d.memberTypes(mil.TupleType, f.Bytes, depth)
		case 4:
			t, err = d.memberTypes(mil.DictType, f.Bytes, depth)
		case 5:
			t, err = d.memberTypes(mil.StateType, f.Bytes, depth)
		}
		return err
	})
	if err == nil && !known {
		err = d.Errorf(msg, "value type without content")
	}
	return t, err
}

// tensorType decodes message TensorType: dataType = 1, rank = 2,
// dimensions = 3.
func (d *decoder) tensorType(msg []byte) (mil.Type, error) {
	var t mil.Type
	var rank int64
	err := d.Each(msg, func(f wire.Field) error {
		switch {
		case f.Num == 1 && !f.IsBytes():
			dt, ok := dataTypes[f.Uint]
			if !ok {
				return diag.Errorf(d.Pos(msg), diag.Unsupported, "element type number %d is not known", f.Uint)
			}
			t.DType = dt
		case f.Num == 2 && !f.IsBytes():
			rank = f.Int()
		case f.Num == 3 && f.IsBytes():
			if len(t.Shape) == tensor.MaxRank {
				return diag.Errorf(d.Pos(msg), diag.TooLarge, "more than %d dimensions", tensor.MaxRank)
			}
			n, err := d.dim(f.Bytes)
			t.Shape = append(t.Shape, n)
			return err
		}
		return nil
	})
	switch {
	case err != nil:
	case t.DType == tensor.Invalid:
		err = d.Errorf(msg, "tensor type without an element type")
	case len(t.Shape) == 0 && rank != 0:
		err = diag.Errorf(d.Pos(msg), diag.Unsupported, "tensor type of rank %d without dimensions", rank)
	case rank > 0 && rank != int64(len(t.Shape)):
		err = d.Errorf(msg, "tensor type of rank %d has %d dimensions", rank, len(t.Shape))
	}
	t.Bare = d.bare && len(t.Shape) == 0
	return t, err
}

// dim decodes message Dimension: constant{size = 1} = 1,
// unknown{variadic = 1} = 2.
func (d *decoder) dim(msg []byte) (int, error) {
	n := 0
	err := d.Each(msg, func(f wire.Field) error {
		if !f.IsBytes() || f.Num > 2 {
			return nil
		}
		unknown := f.Num == 2
		if unknown {
			n = mil.Unknown
		}
		return d.Each(f.Bytes, func(f wire.Field) error {
			switch {
			case f.Num != 1:
			case unknown && f.Uint != 0:
				return diag.Errorf(d.Pos(msg), diag.Unsupported, "dimension of a variadic number is not supported")
			case unknown:
			case f.Uint > tensor.MaxElements || uint64(int(f.Uint)) != f.Uint:
				return d.Errorf(msg, "dimension %d is too large", f.Uint)
			default:
				n = int(f.Uint)
			}
			return nil
		})
	})
	return n, err
}

// listType decodes message ListType: type = 1, length = 2.
func (d *decoder) listType(msg []byte, depth int) (mil.Type, error) {
	t := mil.Type{Kind: mil.ListType, Len: mil.Unknown}
	err := d.Each(msg, func(f wire.Field) error {
		switch {
		case f.Num == 1 && f.IsBytes():
			e, err := d.typ(f.Bytes, depth+1)
			t.Elems = []mil.Type{e}
			return err
		case f.Num == 2 && f.IsBytes():
			n, err := d.dim(f.Bytes)
			t.Len = n
			return err
		}
		return nil
	})
	if err == nil && len(t.Elems) != 1 {
		err = d.Errorf(msg, "list type without an element type")
	}
	return t, err
}

// memberTypes decodes TupleType{types = 1}, DictionaryType{keyType = 1,
// valueType = 2} and StateType{wrappedType = 1}.
func (d *decoder) memberTypes(k mil.Kind, msg []byte, depth int) (mil.Type, error) {
	t := mil.Type{Kind: k}
	if k == mil.DictType {
		t.Elems = make([]mil.Type, 2)
	}
	var seen [2]bool
	err := d.Each(msg, func(f wire.Field) error {
		if !f.IsBytes() || f.Num > 2 || f.Num == 2 && k != mil.DictType {
			return nil
		}
		e, err := d.typ(f.Bytes, depth+1)
		if err != nil {
			return err
		}
		seen[f.Num-1] = true
		if k == mil.DictType {
			t.Elems[f.Num-1] = e
		} else {
			t.Elems = append(t.Elems, e)
		}
		return nil
	})
	switch {
	case err != nil:
	case k == mil.DictType && (!seen[0] || !seen[1]):
		err = d.Errorf(msg, "dictionary type without a key or value type")
	case k == mil.StateType && (len(t.Elems) != 1 || t.Elems[0].Kind != mil.TensorType):
		err = d.Errorf(msg, "a state holds one tensor")
	}
	return t, err
}
