package mil

import (
	"io"
	"slices"
	"strconv"

	"github.com/anepkg/anepkg/coreml/tensor"
)

// Print writes p as text MIL, laid out as Apple's compiler does: printing a
// parsed model.mil gives the same bytes. Version "1.0" spells the scalars of
// BLOBFILE as tensor<..., []>, any other one bare.
//
// The text form of nested blocks (cond, while_loop of an .mlpackage) is not
// known; they print in a readable notation that Parse refuses.
func Print(w io.Writer, p *Program) error {
	pr := &printer{w: w, bare: p.Version != "1.0"}
	pr.program(p)
	pr.flush(0)
	return pr.err
}

// String returns what Print writes.
func (p *Program) String() string {
	pr := &printer{bare: p.Version != "1.0"}
	pr.program(p)
	return string(pr.b)
}

// AppendOp appends one op as it stands in the text of p, without indentation
// and line end.
func AppendOp(b []byte, p *Program, op *Op) []byte {
	pr := &printer{b: b, bare: p.Version != "1.0"}
	pr.op(op, 0)
	return pr.b
}

const (
	funcIndent = "    "
	opIndent   = "            "
	endIndent  = "        "
	stepIndent = "    "
)

// printer collects text and passes it on in large pieces.
type printer struct {
	w    io.Writer // nil keeps everything in b
	b    []byte
	bare bool
	err  error
}

func (p *printer) str(s string) { p.b = append(p.b, s...) }

// flush writes what was collected when it is more than limit bytes.
func (p *printer) flush(limit int) {
	if p.w == nil || len(p.b) <= limit {
		return
	}
	if p.err == nil {
		_, p.err = p.w.Write(p.b)
	}
	p.b = p.b[:0]
}

func (p *printer) program(prog *Program) {
	p.str("program(" + prog.Version + ")\n")
	if len(prog.Attrs) > 0 {
		p.attrs(prog.Attrs)
		p.str("\n")
	}
	p.str("{\n")
	for _, f := range prog.Functions {
		p.function(f)
	}
	p.str("}")
}

func (p *printer) function(f *Function) {
	p.str(funcIndent + "func " + f.Name + "<" + f.Opset + ">(")
	p.paramList(f.Params)
	p.str(")")
	if len(f.Attrs) > 0 {
		p.str(" ")
		p.attrs(f.Attrs)
	}
	p.str(" {\n")
	p.body(f.Body, 0)
	p.str(endIndent + "} -> (")
	p.refs(f.Body.Outputs)
	p.str(");\n")
}

func (p *printer) body(b *Block, depth int) {
	for _, op := range b.Ops {
		p.indent(depth)
		p.op(op, depth)
		p.str("\n")
		p.flush(1 << 16)
	}
}

func (p *printer) indent(depth int) {
	p.str(opIndent)
	for range depth {
		p.str(stepIndent)
	}
}

func (p *printer) paramList(ps []Param) {
	for i, a := range ps {
		if i > 0 {
			p.str(", ")
		}
		p.b = appendType(p.b, a.Type)
		p.str(" " + a.Name)
	}
}

func (p *printer) refs(rs []Ref) {
	for i, r := range rs {
		if i > 0 {
			p.str(", ")
		}
		p.str(r.Name)
	}
}

func (p *printer) op(op *Op, depth int) {
	if len(op.Outputs) > 0 {
		p.paramList(op.Outputs)
		p.str(" = ")
	}
	p.str(op.Type)
	p.str("(")
	for i := range op.Args {
		if i > 0 {
			p.str(", ")
		}
		p.arg(&op.Args[i])
	}
	p.str(")")
	if len(op.Attrs) > 0 {
		p.attrs(op.Attrs)
	}
	for _, b := range op.Blocks {
		p.str("\n")
		p.indent(depth)
		p.str("block(")
		p.paramList(b.Params)
		p.str(") {\n")
		p.body(b, depth+1)
		p.indent(depth)
		p.str("} -> (")
		p.refs(b.Outputs)
		p.str(")")
	}
	p.str(";")
}

func (p *printer) arg(a *Arg) {
	p.str(a.Name)
	p.str(" = ")
	if a.Variadic {
		p.str("(")
	}
	for i := range a.Bindings {
		if i > 0 {
			p.str(", ")
		}
		if v := a.Bindings[i].Value; v != nil {
			p.value(v)
		} else {
			p.str(a.Bindings[i].Ref)
		}
	}
	if a.Variadic {
		p.str(")")
	}
}

func (p *printer) attrs(as []Attr) {
	p.str("[")
	for i := range as {
		if i > 0 {
			p.str(", ")
		}
		p.str(as[i].Name)
		p.str(" = ")
		p.value(as[i].Value)
	}
	p.str("]")
}

func (p *printer) value(v *Value) {
	p.b = appendType(p.b, v.Type)
	p.str("(")
	p.literal(v)
	p.str(")")
}

func (p *printer) literal(v *Value) {
	switch {
	case v.Blob != nil:
		s := Type{DType: tensor.String, Bare: p.bare}
		o := Type{DType: tensor.UInt64, Bare: p.bare}
		p.str("BLOBFILE(path = ")
		p.b = appendQuoted(append(appendType(p.b, s), '('), v.Blob.Path)
		p.str("), offset = ")
		p.b = append(appendType(p.b, o), '(')
		p.b = strconv.AppendUint(p.b, v.Blob.Offset, 10)
		p.str("))")
	case v.Type.Kind == TensorType:
		i := 0
		p.nested(v, resolved(v), &i)
	case v.Type.Kind == DictType:
		p.str("{")
		for i := 0; i+1 < len(v.Elems); i += 2 {
			if i > 0 {
				p.str(", ")
			}
			p.str("{")
			p.literal(v.Elems[i])
			p.str(", ")
			p.literal(v.Elems[i+1])
			p.str("}")
		}
		p.str("}")
	default:
		open, closing := "(", ")"
		if v.Type.Kind == ListType {
			open, closing = "[", "]"
		}
		p.str(open)
		for i, e := range v.Elems {
			if i > 0 {
				p.str(", ")
			}
			p.literal(e)
		}
		p.str(closing)
	}
}

// resolved returns the shape of an inline tensor with its one unknown
// dimension, if any, worked out from the number of elements.
func resolved(v *Value) []int {
	at := slices.IndexFunc(v.Type.Shape, func(d int) bool { return d < 0 })
	if at < 0 {
		return v.Type.Shape
	}
	shape := slices.Clone(v.Type.Shape)
	shape[at] = 1
	if n := tensor.Count(shape); n > 0 {
		shape[at] = v.Len() / n
	} else {
		shape[at] = 0
	}
	return shape
}

func (p *printer) nested(v *Value, shape []int, i *int) {
	if len(shape) == 0 {
		p.element(v, *i)
		*i++
		return
	}
	p.str("[")
	for k := range shape[0] {
		if k > 0 {
			p.str(", ")
		}
		p.nested(v, shape[1:], i)
	}
	p.str("]")
}

func (p *printer) element(v *Value, i int) {
	if i >= v.Len() { // not a tree that a parser made
		p.str("0")
		return
	}
	switch storageOf(v.Type.DType) {
	case storeFloats:
		p.b = appendHexFloat(p.b, float64(v.Floats[i]))
	case storeDoubles:
		p.b = appendHexFloat(p.b, v.Doubles[i])
	case storeBools:
		p.b = strconv.AppendBool(p.b, v.Bools[i])
	case storeStrings:
		p.b = appendQuoted(p.b, v.Strings[i])
	default:
		if v.Type.DType == tensor.UInt64 {
			p.b = strconv.AppendUint(p.b, uint64(v.Ints[i]), 10)
		} else {
			p.b = strconv.AppendInt(p.b, v.Ints[i], 10)
		}
	}
}

// appendQuoted prints a string literal.
func appendQuoted(b []byte, s string) []byte {
	b = append(b, '"')
	for i := range len(s) {
		switch c := s[i]; c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, '\\', 'n')
		case '\t':
			b = append(b, '\\', 't')
		case '\r':
			b = append(b, '\\', 'r')
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}

var kindNames = [...]string{TensorType: "tensor", ListType: "list", TupleType: "tuple", DictType: "dict", StateType: "state"}

// appendType prints a type.
func appendType(b []byte, t Type) []byte {
	if t.Kind == TensorType {
		return appendTensorType(b, t)
	}
	b = append(append(b, kindNames[t.Kind]...), '<')
	for i, e := range t.Elems {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = appendType(b, e)
	}
	if t.Kind == ListType {
		b = appendDim(append(b, ", "...), t.Len)
	}
	return append(b, '>')
}

func appendTensorType(b []byte, t Type) []byte {
	if t.Bare && len(t.Shape) == 0 {
		return append(b, t.DType.String()...)
	}
	b = append(b, "tensor<"...)
	b = append(b, t.DType.String()...)
	b = append(b, ", ["...)
	for i, d := range t.Shape {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = appendDim(b, d)
	}
	return append(b, "]>"...)
}

func appendDim(b []byte, d int) []byte {
	if d < 0 {
		return append(b, '?')
	}
	return strconv.AppendInt(b, int64(d), 10)
}
