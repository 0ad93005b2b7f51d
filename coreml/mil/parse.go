package mil

import (
	"bytes"

	"github.com/anepkg/anepkg/coreml/diag"
)

// Bounds on what a text program may hold.
const (
	maxSource    = 1 << 30 // bytes
	maxErrors    = 10      // reported by Parse and Check
	maxTypeDepth = 8       // tuple<tuple<dict<...>>>
	maxDim       = 1 << 40
	maxFunctions = 1 << 12
)

// Parse reads text MIL (model.mil of a compiled model). file names the source
// in positions. Both dialects, program(1.0) and program(1.3), and both
// spellings of scalars are accepted everywhere; white space is free.
//
// The error is a diag.List of up to ten problems sorted by place, each with
// its line and column: after a malformed op the parser goes on with the next
// one. Literals are checked against their type: count, nesting, range.
// Names are not resolved; see Check.
func Parse(file string, src []byte) (*Program, error) {
	if len(src) > maxSource {
		return nil, diag.List{diag.Errorf(diag.In(file), diag.TooLarge, "text MIL of %d bytes, the limit is %d", len(src), maxSource)}
	}
	p := &parser{scanner: scanner{src: src, line: 1}, file: file, names: make(map[string]string, min(len(src)/128, 1<<16))}
	p.prog = &Program{File: file}
	if err := p.foreign(); err != nil {
		return nil, diag.List{err}
	}
	p.next()
	p.program()
	if err := p.errs.Err(); err != nil {
		return nil, err
	}
	return p.prog, nil
}

// parser is a recursive-descent parser with one token of look-ahead. The
// first problem sets bad; from then on next stands still, so that every loop
// ends, until recover skips the op.
type parser struct {
	scanner
	tok   token
	bad   bool
	lost  bool // where the op ends is not known either
	file  string
	prog  *Program
	errs  diag.List
	names map[string]string // interned identifiers and strings

	ints   slab[int]
	ops    slab[Op]
	values slab[Value]
	params slab[Param]
	binds  slab[Binding]
}

// slab hands out pieces of larger allocations: a program has tens of
// thousands of small objects that live and die together.
type slab[T any] struct{ free []T }

// take returns n zero elements with no spare capacity.
func (s *slab[T]) take(n int) []T {
	if n > len(s.free) {
		if n > 256 {
			return make([]T, n)
		}
		s.free = make([]T, 512)
	}
	out := s.free[:n:n]
	s.free = s.free[n:]
	return out
}

func (s *slab[T]) one() *T { return &s.take(1)[0] }

// foreign recognises files that are called .mil but are something else.
func (p *parser) foreign() *diag.Error {
	head := bytes.TrimLeft(p.src[:min(len(p.src), 512)], " \t\r\n")
	line, _, _ := bytes.Cut(head, []byte("\n"))
	switch {
	case len(head) == 0:
		return diag.Errorf(diag.In(p.file), diag.Malformed, "empty file, want text MIL")
	case bytes.HasPrefix(head, []byte("version https://git-lfs")):
		return diag.Errorf(diag.In(p.file), diag.LFSPointer, "a git lfs pointer stands where text MIL should be").
			WithHint("fetch the file itself: git lfs pull")
	case head[0] != '"' && bytes.Contains(line, []byte("(%")) || bytes.Contains(line, []byte("](%")):
		return diag.Errorf(diag.In(p.file), diag.Unsupported, "a debug dump of coremltools' Python MIL, not the text MIL of a compiled model").
			WithHint("compile the .mlpackage and use model.mil of the .mlmodelc")
	}
	return nil
}

func (p *parser) next() {
	if !p.bad {
		p.tok = p.scanner.next()
	}
}

// report notes a problem that does not upset the syntax.
func (p *parser) report(pos Pos, code diag.Code, format string, args ...any) {
	if len(p.errs) < maxErrors {
		p.errs = append(p.errs, diag.Errorf(p.prog.At(pos), code, format, args...))
	}
	if len(p.errs) == maxErrors {
		p.stop()
	}
}

// stop makes next stand still at an end of the file.
func (p *parser) stop() {
	p.bad = true
	p.tok = token{kind: tokEOF, pos: p.tok.pos, start: p.tok.start, end: p.tok.start}
}

// fail notes a syntax error at pos and stops the scanner until recover. Only
// the first problem counts.
func (p *parser) fail(pos Pos, code diag.Code, format string, args ...any) {
	if !p.bad {
		p.report(pos, code, format, args...)
		p.stop()
	}
}

// want fails with what was wanted at the current token.
func (p *parser) want(what string) {
	switch {
	case p.bad:
	case p.tok.kind == tokBad && p.src[p.tok.start] == '"':
		p.fail(p.tok.pos, diag.Malformed, "string is not closed before the end of the line")
	default:
		p.fail(p.tok.pos, diag.Malformed, "got %s, want %s", p.describe(), what)
	}
}

func (p *parser) describe() string {
	if p.tok.kind == tokEOF {
		return "the end of the file"
	}
	text := p.src[p.tok.start:min(p.tok.end, p.tok.start+40)]
	if p.tok.kind == tokString {
		return "string " + string(text)
	}
	return string(appendQuoted(nil, string(text)))
}

// is reports whether the current token is the punctuation c.
func (p *parser) is(c byte) bool { return p.tok.punct == c }

// accept skips the punctuation c when it is there.
func (p *parser) accept(c byte) bool {
	if p.tok.punct != c {
		return false
	}
	p.next()
	return !p.bad
}

var punctNames = func() (t [256]string) {
	for _, c := range "()[]{}<>,;=?*" {
		t[c] = `"` + string(c) + `"`
	}
	return t
}()

// expect skips the punctuation c and fails without it.
func (p *parser) expect(c byte) {
	if p.tok.punct == c {
		p.next()
		return
	}
	p.want(punctNames[c])
}

// more is called after a list element: it skips a comma, or else the closing
// punctuation and reports that the list is over.
func (p *parser) more(closing byte) bool {
	if p.accept(',') {
		return true
	}
	if !p.accept(closing) {
		p.want(`"," or ` + punctNames[closing])
	}
	return false
}

func (p *parser) text() []byte { return p.src[p.tok.start:p.tok.end] }

// intern returns the text as a string, shared with equal ones.
func (p *parser) intern(b []byte) string {
	if s, ok := p.names[string(b)]; ok {
		return s
	}
	s := string(b)
	p.names[s] = s
	return s
}

// ident skips an identifier and returns it; what says which one is wanted.
func (p *parser) ident(what string) string {
	if p.tok.kind != tokIdent {
		p.want(what)
		return ""
	}
	s := p.intern(p.text())
	p.next()
	return s
}

// word skips the keyword s.
func (p *parser) word(s string) {
	if p.tok.kind != tokIdent || string(p.text()) != s {
		p.want(`"` + s + `"`)
		return
	}
	p.next()
}

// program = "program" "(" version ")" [ attrs ] "{" { function } "}"
func (p *parser) program() {
	p.word("program")
	p.expect('(')
	if p.tok.kind != tokNumber {
		p.want("a version number")
		return
	}
	p.prog.Version = string(p.text())
	if v := p.prog.Version; v != "1.0" && v != "1.3" {
		if _, ok := parseFloat(p.text()); !ok || len(v) > 16 || v[0] < '0' || v[0] > '9' {
			p.fail(p.tok.pos, diag.Malformed, "program version %q, want a number such as 1.3", v)
			return
		}
	}
	p.next()
	p.expect(')')
	if p.is('[') {
		p.prog.Attrs = p.attrs()
	}
	p.expect('{')
	for !p.bad && !p.is('}') {
		if len(p.prog.Functions) == maxFunctions {
			p.fail(p.tok.pos, diag.TooLarge, "more than %d functions", maxFunctions)
			return
		}
		p.prog.Functions = append(p.prog.Functions, p.function())
	}
	p.expect('}')
	if p.tok.kind != tokEOF {
		p.want("the end of the file")
	}
}

// function = "func" ident "<" opset ">" "(" params ")" [ attrs ] body ";"
func (p *parser) function() *Function {
	f := &Function{}
	p.word("func")
	f.Pos = p.tok.pos
	f.Name = p.ident("a function name")
	p.expect('<')
	f.Opset = p.ident("an opset such as ios18")
	p.expect('>')
	p.expect('(')
	if !p.accept(')') {
		for !p.bad {
			t := p.typ(0)
			f.Params = append(f.Params, p.named(t, "a parameter name"))
			if !p.more(')') {
				break
			}
		}
	}
	if p.is('[') {
		f.Attrs = p.attrs()
	}
	p.expect('{')
	f.Body = p.body()
	return f
}

// named reads the identifier that follows its type.
func (p *parser) named(t Type, what string) Param {
	pos := p.tok.pos
	return Param{Type: t, Pos: pos, Name: p.ident(what)}
}

// body = { op } "}" "->" "(" [ ident { "," ident } ] ")" ";"
func (p *parser) body() *Block {
	b := &Block{}
	for !p.bad && !p.is('}') {
		op := p.op()
		if p.bad {
			p.recover()
			continue
		}
		b.Ops = append(b.Ops, op)
	}
	p.expect('}')
	if p.tok.kind == tokArrow {
		p.next()
	} else {
		p.want(`"->" and the results of the function`)
	}
	p.expect('(')
	if !p.accept(')') {
		for !p.bad {
			pos := p.tok.pos
			b.Outputs = append(b.Outputs, Ref{Pos: pos, Name: p.ident("a result name")})
			if !p.more(')') {
				break
			}
		}
	}
	p.expect(';')
	return b
}

// recover goes on after the ";" that ends a malformed op, or at the "}" that
// ends the function, unless enough problems were found.
func (p *parser) recover() {
	if p.lost || len(p.errs) >= maxErrors {
		return
	}
	p.off = p.tok.start
	p.line, p.lineStart = p.tok.pos.Line, p.tok.start-int(p.tok.pos.Col)+1
	for {
		t := p.scanner.next()
		switch {
		case t.kind == tokEOF:
			return
		case t.punct == ';', t.kind == tokBad && p.src[t.start] == '"': // an unclosed string ends with its line
			p.bad = false
			p.next()
			return
		case t.punct == '}':
			ahead := p.scanner
			if ahead.next().kind == tokArrow {
				p.bad, p.tok = false, t
				return
			}
		}
	}
}

// op = [ type ident { "," type ident } "=" ] ident "(" args ")" [ attrs ] ";"
func (p *parser) op() *Op {
	op := p.ops.one()
	head := p.tok
	name := p.ident("an op or a type")
	if !p.is('(') { // otherwise an op without results
		var first [4]Param
		outs := append(first[:0], p.named(p.typeAfter(name, head.pos, 0), "a result name"))
		for p.accept(',') {
			t := p.typ(0)
			outs = append(outs, p.named(t, "a result name"))
		}
		p.expect('=')
		op.Outputs = p.params.take(len(outs))
		copy(op.Outputs, outs)
		head = p.tok
		name = p.ident("an op")
	}
	op.Type, op.Pos = name, head.pos
	p.expect('(')
	if !p.accept(')') {
		var first [16]Arg
		args := first[:0]
		for !p.bad {
			args = append(args, p.arg())
			if !p.more(')') {
				break
			}
		}
		op.Args = append([]Arg(nil), args...)
	}
	if p.is('[') {
		op.Attrs = p.attrs()
	}
	if p.is('{') || p.is('(') || p.tok.kind == tokIdent && nestedStart(p.scanner) {
		p.fail(p.tok.pos, diag.Unsupported, "%s: nested block not supported in text MIL", op.Type)
		p.lost = true
	}
	p.expect(';')
	return op
}

// nestedStart looks past an identifier that follows an op: a named block
// starts with "(" or "{" after it.
func nestedStart(s scanner) bool {
	t := s.next()
	return t.punct == '(' || t.punct == '{'
}

// arg = ident "=" ( binding | "(" binding { "," binding } ")" )
func (p *parser) arg() Arg {
	a := Arg{Pos: p.tok.pos}
	a.Name = p.ident("an argument name")
	p.expect('=')
	if !p.accept('(') {
		a.Bindings = p.binds.take(1)
		a.Bindings[0] = p.binding()
		return a
	}
	a.Variadic = true
	if p.accept(')') {
		return a
	}
	for !p.bad {
		a.Bindings = append(a.Bindings, p.binding())
		if !p.more(')') {
			break
		}
	}
	return a
}

// binding = ident | value
func (p *parser) binding() Binding {
	pos := p.tok.pos
	name := p.ident("a name or a typed value")
	if !p.is('<') && !p.is('(') {
		return Binding{Ref: name, Pos: pos}
	}
	return Binding{Value: p.valueAfter(name, pos), Pos: pos}
}

// attrs = "[" [ ident "=" value { "," ident "=" value } ] "]"
func (p *parser) attrs() []Attr {
	p.expect('[')
	if p.accept(']') {
		return nil
	}
	var first [8]Attr
	attrs := first[:0]
	for !p.bad {
		a := Attr{Pos: p.tok.pos}
		a.Name = p.ident("an attribute name")
		p.expect('=')
		pos := p.tok.pos
		a.Value = p.valueAfter(p.ident("a typed value"), pos)
		attrs = append(attrs, a)
		if !p.more(']') {
			break
		}
	}
	return append([]Attr(nil), attrs...)
}
