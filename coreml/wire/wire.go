// Package wire walks protobuf messages field by field. It knows no message:
// callers pick the fields that they read by number and skip the others, so a
// file of a newer format still opens. Nothing is copied, and every error
// carries the offset in the file.
package wire

import (
	"math"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/anepkg/anepkg/coreml/diag"
)

// Source is the file that the messages lie in.
type Source struct {
	file string
	data []byte
}

// NewSource makes a Source of a whole file. Every message given to its
// methods must be a piece of data.
func NewSource(file string, data []byte) *Source {
	return &Source{file: file, data: data[:len(data):len(data)]}
}

// Message returns the whole file as a message.
func (s *Source) Message() []byte { return s.data }

// Field is one field of a message.
type Field struct {
	Num   int
	Bytes []byte // of a length-delimited field, else nil
	Uint  uint64 // of a varint or fixed-width field
	typ   protowire.Type
}

// IsBytes reports whether the field is length-delimited: a message, a string
// or a packed list.
func (f Field) IsBytes() bool { return f.typ == protowire.BytesType }

// String returns the bytes as text.
func (f Field) String() string { return string(f.Bytes) }

// Int returns a varint as a signed number.
func (f Field) Int() int64 { return int64(f.Uint) }

// Pos returns where msg, a piece of the file, begins.
func (s *Source) Pos(msg []byte) diag.Pos {
	return diag.AtOffset(s.file, int64(cap(s.data)-cap(msg)))
}

// Errorf makes an error of class diag.Malformed at the beginning of msg.
func (s *Source) Errorf(msg []byte, format string, args ...any) error {
	return diag.Errorf(s.Pos(msg), diag.Malformed, format, args...)
}

// Each calls fn for every field of msg in order and stops at its first error.
func (s *Source) Each(msg []byte, fn func(Field) error) error {
	for len(msg) > 0 {
		num, typ, n := protowire.ConsumeTag(msg)
		if n < 0 {
			return s.Errorf(msg, "protobuf: %w", protowire.ParseError(n))
		}
		at := msg
		msg = msg[n:]
		f := Field{Num: int(num), typ: typ}
		switch typ {
		case protowire.VarintType:
			f.Uint, n = protowire.ConsumeVarint(msg)
		case protowire.BytesType:
			f.Bytes, n = protowire.ConsumeBytes(msg)
		case protowire.Fixed64Type:
			f.Uint, n = protowire.ConsumeFixed64(msg)
		case protowire.Fixed32Type:
			var v uint32
			v, n = protowire.ConsumeFixed32(msg)
			f.Uint = uint64(v)
		default:
			n = protowire.ConsumeFieldValue(num, typ, msg)
		}
		if n < 0 {
			return s.Errorf(at, "protobuf field %d: %w", num, protowire.ParseError(n))
		}
		msg = msg[n:]
		if err := fn(f); err != nil {
			return err
		}
	}
	return nil
}

// Entry returns the key and the value message of a map<string, message>
// entry.
func (s *Source) Entry(msg []byte) (key string, value []byte, err error) {
	value = msg[len(msg):]
	err = s.Each(msg, func(f Field) error {
		switch {
		case f.Num == 1 && f.IsBytes():
			key = f.String()
		case f.Num == 2 && f.IsBytes():
			value = f.Bytes
		}
		return nil
	})
	return key, value, err
}

// Varints appends a repeated integer field, packed or not.
func (s *Source) Varints(dst []int64, f Field) ([]int64, error) {
	if !f.IsBytes() {
		return append(dst, int64(f.Uint)), nil
	}
	for b := f.Bytes; len(b) > 0; {
		v, n := protowire.ConsumeVarint(b)
		if n < 0 {
			return dst, s.Errorf(b, "protobuf: %w", protowire.ParseError(n))
		}
		dst = append(dst, int64(v))
		b = b[n:]
	}
	return dst, nil
}

// Floats appends a repeated float field, packed or not.
func (s *Source) Floats(dst []float32, f Field) ([]float32, error) {
	if !f.IsBytes() {
		return append(dst, math.Float32frombits(uint32(f.Uint))), nil
	}
	for b := f.Bytes; len(b) > 0; {
		v, n := protowire.ConsumeFixed32(b)
		if n < 0 {
			return dst, s.Errorf(b, "protobuf: %w", protowire.ParseError(n))
		}
		dst = append(dst, math.Float32frombits(v))
		b = b[n:]
	}
	return dst, nil
}

// Doubles appends a repeated double field, packed or not.
func (s *Source) Doubles(dst []float64, f Field) ([]float64, error) {
	if !f.IsBytes() {
		return append(dst, math.Float64frombits(f.Uint)), nil
	}
	for b := f.Bytes; len(b) > 0; {
		v, n := protowire.ConsumeFixed64(b)
		if n < 0 {
			return dst, s.Errorf(b, "protobuf: %w", protowire.ParseError(n))
		}
		dst = append(dst, math.Float64frombits(v))
		b = b[n:]
	}
	return dst, nil
}
