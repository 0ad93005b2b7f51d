package mil

import (
	"bytes"
	"math"
	"strings"

	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/coreml/tensor"
)

// valueAfter reads the rest of type "(" literal ")" after the type's first
// word.
func (p *parser) valueAfter(name string, pos Pos) *Value {
	t := p.typeAfter(name, pos, 0)
	p.expect('(')
	v := p.literal(t)
	v.Pos = pos
	p.expect(')')
	return v
}

// literal reads a value of type t. Its own position is that of the literal.
func (p *parser) literal(t Type) *Value {
	v := p.values.one()
	v.Type, v.Pos = t, p.tok.pos
	switch {
	case p.bad:
	case t.Kind == TensorType && p.tok.kind == tokIdent && string(p.text()) == "BLOBFILE":
		v.Blob = p.blob()
	case t.Kind == TensorType:
		p.tensorLiteral(v)
	case t.Kind == ListType:
		p.listLiteral(v)
	case t.Kind == TupleType:
		p.expect('(')
		for i, e := range t.Elems {
			if i > 0 {
				p.expect(',')
			}
			v.Elems = append(v.Elems, p.literal(e))
		}
		p.expect(')')
	case t.Kind == DictType:
		p.dictLiteral(v)
	default:
		p.fail(p.tok.pos, diag.Malformed, "a value of type %s cannot be written", t)
	}
	return v
}

func (p *parser) listLiteral(v *Value) {
	p.expect('[')
	if !p.accept(']') {
		for !p.bad {
			v.Elems = append(v.Elems, p.literal(v.Type.Elems[0]))
			if !p.more(']') {
				break
			}
		}
	}
	if !p.bad && v.Type.Len >= 0 && v.Type.Len != len(v.Elems) {
		p.report(v.Pos, diag.Malformed, "%s has %d values, want %d", v.Type, len(v.Elems), v.Type.Len)
	}
}

// dictLiteral = "{" [ "{" key "," value "}" { "," ... } ] "}"
func (p *parser) dictLiteral(v *Value) {
	p.expect('{')
	if p.accept('}') {
		return
	}
	for !p.bad {
		p.expect('{')
		v.Elems = append(v.Elems, p.literal(v.Type.Elems[0]))
		p.expect(',')
		v.Elems = append(v.Elems, p.literal(v.Type.Elems[1]))
		p.expect('}')
		if !p.more('}') {
			break
		}
	}
}

// blob = "BLOBFILE" "(" "path" "=" value "," "offset" "=" value ")"
func (p *parser) blob() *BlobRef {
	r := &BlobRef{Pos: p.tok.pos}
	p.next()
	p.expect('(')
	havePath, haveOffset := false, false
	for !p.bad {
		pos := p.tok.pos
		key := p.ident(`"path" or "offset"`)
		p.expect('=')
		at := p.tok.pos
		v := p.valueAfter(p.ident("a typed value"), at)
		switch {
		case p.bad:
		case key == "path" && !havePath:
			r.Path, havePath = v.Str()
		case key == "offset" && !haveOffset:
			haveOffset = len(v.Ints) == 1 && (v.Ints[0] >= 0 || v.Type.DType == tensor.UInt64)
			if haveOffset {
				r.Offset = uint64(v.Ints[0])
			}
		default:
			p.fail(pos, diag.Malformed, "BLOBFILE takes one path and one offset, got %q", key)
		}
		if !p.more(')') {
			break
		}
	}
	if !p.bad && (!havePath || !haveOffset) {
		p.fail(r.Pos, diag.Malformed, "BLOBFILE needs a path (a string) and an offset (a number from 0)")
	}
	return r
}

// tensorLiteral reads the elements of an inline tensor, nested as deep as its
// rank, and checks their number against the shape.
func (p *parser) tensorLiteral(v *Value) {
	t := v.Type
	if unknownDims(t.Shape) > 1 {
		p.fail(p.tok.pos, diag.Unsupported, "inline value of type %s with several unknown dimensions", t)
		return
	}
	// Every element takes at least two bytes of text, which bounds the
	// memory whatever the shape claims.
	if n := tensor.Count(t.Shape); n > 1 {
		n = min(n, (len(p.src)-p.tok.start)/2)
		switch storageOf(t.DType) {
		case storeFloats:
			v.Floats = make([]float32, 0, n)
		case storeInts:
			v.Ints = make([]int64, 0, n)
		case storeBools:
			v.Bools = make([]bool, 0, n)
		}
	}
	p.nested(v, 0)
}

func unknownDims(shape []int) (n int) {
	for _, d := range shape {
		if d < 0 {
			n++
		}
	}
	return n
}

func (p *parser) nested(v *Value, depth int) {
	shape := v.Type.Shape
	if depth == len(shape) {
		p.element(v)
		return
	}
	pos, n := p.tok.pos, 0
	p.expect('[')
	if !p.accept(']') {
		for !p.bad {
			p.nested(v, depth+1)
			n++
			if !p.more(']') {
				break
			}
		}
	}
	if want := shape[depth]; !p.bad && want >= 0 && n != want {
		p.report(pos, diag.Malformed, "dimension %d of %s has %d values, want %d", depth, v.Type, n, want)
	}
}

// storage is the field of Value that holds elements of a type.
type storage uint8

const (
	storeInts storage = iota
	storeFloats
	storeDoubles
	storeBools
	storeStrings
)

func storageOf(d tensor.DType) storage {
	switch {
	case d == tensor.FP64:
		return storeDoubles
	case d.IsFloat():
		return storeFloats
	case d == tensor.Bool:
		return storeBools
	case d == tensor.String:
		return storeStrings
	}
	return storeInts
}

// element reads one element of an inline tensor.
func (p *parser) element(v *Value) {
	d := v.Type.DType
	if p.is('[') {
		p.fail(p.tok.pos, diag.Malformed, `got "[", want one %s: the value is nested deeper than %s`, d, v.Type)
		return
	}
	switch storageOf(d) {
	case storeFloats, storeDoubles:
		p.floatElement(v, d)
	case storeBools:
		switch text := p.text(); {
		case p.tok.kind == tokIdent && string(text) == "true":
			v.Bools = append(v.Bools, true)
		case p.tok.kind == tokIdent && string(text) == "false":
			v.Bools = append(v.Bools, false)
		default:
			p.want("true or false")
		}
	case storeStrings:
		if p.tok.kind != tokString {
			p.want("a string")
			return
		}
		v.Strings = append(v.Strings, p.unquote(p.text()))
	default:
		p.intElement(v, d)
	}
	p.next()
}

func (p *parser) intElement(v *Value, d tensor.DType) {
	if p.tok.kind != tokNumber {
		p.want("an integer (" + d.String() + ")")
		return
	}
	n, big, ok := parseInt(p.text())
	switch {
	case !ok:
		p.want("an integer (" + d.String() + ")")
	case !intFits(d, n, big):
		p.report(p.tok.pos, diag.Malformed, "%s is out of the range of %s", p.text(), d)
	}
	v.Ints = append(v.Ints, n)
}

func (p *parser) floatElement(v *Value, d tensor.DType) {
	var f float64
	ok := false
	if p.tok.kind == tokNumber || p.tok.kind == tokIdent {
		f, ok = parseFloat(p.text())
	}
	if !ok {
		p.want("a number (" + d.String() + ")")
		return
	}
	if d == tensor.FP64 {
		v.Doubles = append(v.Doubles, f)
		return
	}
	r, ok := roundFloat(d, f)
	if !ok {
		p.report(p.tok.pos, diag.Malformed, "%s is out of the range of %s", p.text(), d)
	}
	if math.IsNaN(f) {
		r = float32(math.NaN())
	}
	v.Floats = append(v.Floats, r)
}

// unquote takes the quotes and escapes off a string. Apple's compiler has
// never been seen to escape anything; an unknown escape stays as written.
func (p *parser) unquote(b []byte) string {
	b = b[1 : len(b)-1]
	if bytes.IndexByte(b, '\\') < 0 {
		return p.intern(b)
	}
	var s strings.Builder
	for i := 0; i < len(b); i++ {
		if b[i] != '\\' || i+1 == len(b) {
			s.WriteByte(b[i])
			continue
		}
		i++
		switch b[i] {
		case '"', '\\':
			s.WriteByte(b[i])
		case 'n':
			s.WriteByte('\n')
		case 't':
			s.WriteByte('\t')
		case 'r':
			s.WriteByte('\r')
		default:
			s.WriteByte('\\')
			s.WriteByte(b[i])
		}
	}
	return s.String()
}
