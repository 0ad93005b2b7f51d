package mil

import (
	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/coreml/tensor"
)

// typ reads a type.
func (p *parser) typ(depth int) Type {
	pos := p.tok.pos
	return p.typeAfter(p.ident("a type"), pos, depth)
}

// typeAfter reads the rest of the type whose first word was name.
func (p *parser) typeAfter(name string, pos Pos, depth int) Type {
	switch {
	case p.bad:
		return Type{}
	case depth > maxTypeDepth:
		p.fail(pos, diag.TooLarge, "types nested deeper than %d", maxTypeDepth)
		return Type{}
	}
	switch name {
	case "tensor":
		return p.tensorType()
	case "list":
		p.expect('<')
		t := Type{Kind: ListType, Elems: []Type{p.typ(depth + 1)}}
		p.expect(',')
		t.Len = p.dim()
		p.expect('>')
		return t
	case "tuple":
		return p.memberTypes(TupleType, 1, maxFunctions, depth)
	case "dict":
		return p.memberTypes(DictType, 2, 2, depth)
	case "state":
		t := p.memberTypes(StateType, 1, 1, depth)
		if !p.bad && t.Elems[0].Kind != TensorType {
			p.fail(pos, diag.Malformed, "a state holds a tensor, got %s", t.Elems[0])
		}
		return t
	}
	d, ok := scalarTypes[name]
	if !ok {
		p.fail(pos, diag.Malformed, "got %q, want a type", name)
	}
	return Type{DType: d, Bare: true}
}

// scalarTypes are the element types in MIL spelling.
var scalarTypes = func() map[string]tensor.DType {
	m := map[string]tensor.DType{}
	for d := tensor.Bool; d <= tensor.FP8E5M2; d++ {
		m[d.String()] = d
	}
	return m
}()

// tensorType = "tensor" "<" scalar "," "[" [ dim { "," dim } ] "]" ">"
func (p *parser) tensorType() Type {
	var t Type
	p.expect('<')
	pos := p.tok.pos
	name := p.ident("an element type")
	d, ok := scalarTypes[name]
	if !ok {
		p.fail(pos, diag.Malformed, "got %q, want an element type", name)
	}
	t.DType = d
	p.expect(',')
	p.expect('[')
	var dims [tensor.MaxRank]int
	n := 0
	if !p.accept(']') {
		for !p.bad {
			if n == tensor.MaxRank {
				p.fail(p.tok.pos, diag.TooLarge, "more than %d dimensions", tensor.MaxRank)
				break
			}
			dims[n] = p.dim()
			n++
			if !p.more(']') {
				break
			}
		}
	}
	p.expect('>')
	if n > 0 {
		t.Shape = p.ints.take(n)
		copy(t.Shape, dims[:n])
	}
	return t
}

func (p *parser) memberTypes(k Kind, least, most, depth int) Type {
	t := Type{Kind: k}
	p.expect('<')
	for !p.bad {
		t.Elems = append(t.Elems, p.typ(depth+1))
		if len(t.Elems) == most {
			p.expect('>')
			break
		}
		if !p.more('>') {
			break
		}
	}
	if !p.bad && len(t.Elems) < least {
		p.want("a second type")
	}
	return t
}

// dim = digits | "?"
func (p *parser) dim() int {
	switch {
	case p.accept('?'):
		return Unknown
	case p.is('*'):
		p.fail(p.tok.pos, diag.Unsupported, "dimension of a variadic number is not supported")
		return Unknown
	case p.tok.kind == tokNumber:
		v, big, ok := parseInt(p.text())
		if !ok || big || v < 0 || v > maxDim || int64(int(v)) != v {
			p.fail(p.tok.pos, diag.Malformed, "dimension %s, want a number from 0 to 2^40 or ?", p.text())
		}
		p.next()
		return int(v)
	}
	p.want("a dimension")
	return Unknown
}
