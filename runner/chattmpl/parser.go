package chattmpl

import (
	"fmt"
	"slices"
)

// Bounds of a template.
const (
	maxSource = 1 << 20
	maxNest   = 200
)

// parser builds the tree of a template.
type parser struct {
	toks  []token
	i     int
	depth int
	loops int
	names map[string]bool // names that the macro being parsed reads

	unknown []unknownName
}

// unknownName is a filter or test that does not exist. Like jinja2, the parser lets it pass where a condition guards
// it, for then it is an error only when it is used.
type unknownName struct {
	line int
	msg  string
	hard bool // it stands in a loop or another block of its own within the condition
}

// guarded forgets the unknown names since mark, unless they stand in a block of their own.
func (p *parser) guarded(mark int) {
	kept := p.unknown[:mark]
	for _, u := range p.unknown[mark:] {
		if u.hard {
			kept = append(kept, u)
		}
	}
	p.unknown = kept
}

// scoped parses the body of a block that has a scope of its own.
func (p *parser) scoped(ends ...string) []stmt {
	mark := len(p.unknown)
	body := p.body(ends...)
	for i := mark; i < len(p.unknown); i++ {
		p.unknown[i].hard = true
	}
	return body
}

func parse(src string) (body []stmt, err error) {
	if len(src) > maxSource {
		return nil, &Error{Kind: "TemplateSyntaxError", Msg: fmt.Sprintf("template has %d bytes, want at most %d", len(src),
			maxSource)}
	}
	toks, err := lex(src)
	if err != nil {
		return nil, err
	}
	defer recoverError(&err)
	p := &parser{toks: toks, names: map[string]bool{}}
	body = p.body()
	if t := p.peek(); t.kind != tEOF {
		p.fail("got %s, want the end of the template", t)
	}
	if len(p.unknown) > 0 {
		panic(&Error{Line: p.unknown[0].line, Kind: "TemplateAssertionError", Msg: p.unknown[0].msg})
	}
	return body, nil
}

func (p *parser) peek() token { return p.toks[p.i] }
func (p *parser) line() int   { return p.toks[p.i].line }

func (p *parser) next() token {
	t := p.toks[p.i]
	if t.kind != tEOF {
		p.i++
	}
	return t
}

func (p *parser) fail(format string, args ...any) {
	panic(&Error{Line: p.line(), Kind: "TemplateSyntaxError", Msg: fmt.Sprintf(format, args...)})
}

// enter bounds the nesting; leave goes with it.
func (p *parser) enter() {
	if p.depth++; p.depth > maxNest {
		p.fail("nesting is over %d levels", maxNest)
	}
}

func (p *parser) leave() { p.depth-- }

func (p *parser) isOp(op string) bool {
	t := p.peek()
	return t.kind == tOp && t.text == op
}

func (p *parser) isName(name string) bool {
	t := p.peek()
	return t.kind == tName && t.text == name
}

func (p *parser) skipOp(op string) bool {
	ok := p.isOp(op)
	if ok {
		p.i++
	}
	return ok
}

func (p *parser) skipName(name string) bool {
	ok := p.isName(name)
	if ok {
		p.i++
	}
	return ok
}

func (p *parser) wantOp(op string) {
	if !p.skipOp(op) {
		p.fail("got %s, want %q", p.peek(), op)
	}
}

func (p *parser) wantName(name string) {
	if !p.skipName(name) {
		p.fail("got %s, want %q", p.peek(), name)
	}
}

func (p *parser) name() string {
	t := p.next()
	if t.kind != tName {
		p.i--
		p.fail("got %s, want a name", t)
	}
	return t.text
}

func (p *parser) want(k kind, text string) {
	if t := p.peek(); t.kind != k {
		p.fail("got %s, want %s", t, text)
	}
	p.i++
}

// body parses statements up to a tag whose name is one of ends, or the end of the template when there are none.
// The cursor is left at the name.
func (p *parser) body(ends ...string) []stmt {
	p.enter()
	defer p.leave()
	var out []stmt
	for {
		t := p.next()
		switch t.kind {
		case tEOF:
			if len(ends) > 0 {
				p.fail("got the end of the template, want {%% %s %%}", ends[len(ends)-1])
			}
			return out
		case tText:
			out = append(out, &textStmt{t.text})
		case tVarBegin:
			out = append(out, &outputStmt{p.tuple(true), t.line})
			p.want(tVarEnd, "}}")
		case tBlockBegin:
			if n := p.peek(); n.kind == tName && slices.Contains(ends, n.text) {
				return out
			}
			if s := p.statement(); s != nil {
				out = append(out, s)
			}
		default:
			p.fail("got %s, want text or a tag", t)
		}
	}
}

// end closes a tag whose end name is at the cursor.
func (p *parser) end() {
	p.next()
	p.want(tBlockEnd, "%}")
}

func (p *parser) statement() stmt {
	line := p.line()
	tag := p.name()
	switch tag {
	case "if":
		return p.ifTag(line)
	case "for":
		return p.forTag(line)
	case "set":
		return p.setTag(line)
	case "macro":
		name := p.name()
		return p.macroTag(name, "endmacro", line)
	case "call":
		return p.callTag(line)
	case "filter":
		f := &filterStmt{filters: p.filterChain(), line: line}
		p.want(tBlockEnd, "%}")
		f.body = p.scoped("endfilter")
		p.end()
		return f
	case "with":
		return p.withTag()
	case "generation":
		p.want(tBlockEnd, "%}")
		w := &withStmt{body: p.scoped("endgeneration")}
		p.end()
		return w
	case "block":
		name := p.name()
		p.want(tBlockEnd, "%}")
		w := &withStmt{body: p.scoped("endblock")}
		p.next()
		p.skipName(name)
		p.want(tBlockEnd, "%}")
		return w
	case "break", "continue":
		if p.loops == 0 {
			p.fail("%s stands outside a loop", tag)
		}
		p.want(tBlockEnd, "%}")
		return &loopControl{tag == "break"}
	case "include", "import", "from", "extends":
		p.fail("%s is not supported: a chat template stands alone", tag)
	}
	p.i--
	p.fail("got unknown tag %q", tag)
	return nil
}

func (p *parser) ifTag(line int) stmt {
	s := &ifStmt{line: line}
	mark := len(p.unknown)
	defer func() { p.guarded(mark) }()
	for {
		s.conds = append(s.conds, p.tuple(false))
		p.want(tBlockEnd, "%}")
		s.bodies = append(s.bodies, p.body("elif", "else", "endif"))
		if p.skipName("elif") {
			continue
		}
		if p.skipName("else") {
			p.want(tBlockEnd, "%}")
			s.other = p.body("endif")
		}
		p.end()
		return s
	}
}

func (p *parser) forTag(line int) stmt {
	s := &forStmt{line: line, target: p.targets("in")}
	p.wantName("in")
	s.iter = p.tuple(false)
	if p.skipName("if") {
		s.cond = p.expression()
	}
	s.recursive = p.skipName("recursive")
	p.want(tBlockEnd, "%}")
	p.loops++
	s.body = p.scoped("else", "endfor")
	p.loops--
	if p.skipName("else") {
		p.want(tBlockEnd, "%}")
		s.other = p.scoped("endfor")
	}
	p.end()
	return s
}

// targets parses "a" or "a, b" or "(a, b)".
func (p *parser) targets(until string) target {
	first := p.target()
	if !p.isOp(",") {
		return first
	}
	t := target{parts: []target{first}}
	for p.skipOp(",") {
		if p.isName(until) || p.isOp(until) {
			break
		}
		t.parts = append(t.parts, p.target())
	}
	return t
}

func (p *parser) target() target {
	p.enter()
	defer p.leave()
	if p.skipOp("(") {
		t := p.targets(")")
		p.wantOp(")")
		return t
	}
	name := p.name()
	if reserved[name] {
		p.fail("cannot assign to %s", name)
	}
	if p.skipOp(".") {
		return target{name: name, attr: p.name()}
	}
	return target{name: name}
}

func (p *parser) setTag(line int) stmt {
	t := p.targets("=")
	if p.skipOp("=") {
		s := &setStmt{t, p.tuple(true), line}
		p.want(tBlockEnd, "%}")
		return s
	}
	s := &setBlockStmt{target: t, line: line}
	if p.skipOp("|") {
		s.filters = p.filterChain()
	}
	p.want(tBlockEnd, "%}")
	s.body = p.scoped("endset")
	p.end()
	return s
}

// macroTag parses parameters and body of a macro or call block.
func (p *parser) macroTag(name, end string, line int) *macroStmt {
	m := &macroStmt{name: name, line: line}
	if end == "endmacro" || p.isOp("(") {
		p.params(m)
	}
	if end == "endmacro" {
		p.want(tBlockEnd, "%}")
		p.macroBody(m, end)
	}
	return m
}

func (p *parser) macroBody(m *macroStmt, end string) {
	outer, loops := p.names, p.loops
	p.names, p.loops = map[string]bool{}, 0
	m.body = p.scoped(end)
	p.end()
	m.varargs, m.kwargs, m.caller = p.names["varargs"], p.names["kwargs"], p.names["caller"]
	for n := range p.names {
		outer[n] = outer[n] || n != "varargs" && n != "kwargs" && n != "caller"
	}
	p.names, p.loops = outer, loops
}

func (p *parser) params(m *macroStmt) {
	p.wantOp("(")
	for !p.isOp(")") {
		if len(m.params) > 0 {
			p.wantOp(",")
			if p.isOp(")") {
				break
			}
		}
		m.params = append(m.params, p.name())
		if p.skipOp("=") {
			m.defaults = append(m.defaults, p.expression())
		} else if len(m.defaults) > 0 {
			p.fail("parameter without default follows one with a default")
		}
	}
	p.wantOp(")")
}

func (p *parser) callTag(line int) stmt {
	c := &callStmt{line: line, macro: p.macroTag("caller", "endcall", line)}
	call, ok := p.expression().(*callExpr)
	if !ok {
		p.fail("got no call, want one after the call tag")
	}
	c.call = call
	p.want(tBlockEnd, "%}")
	p.macroBody(c.macro, "endcall")
	return c
}

func (p *parser) withTag() stmt {
	w := &withStmt{}
	for p.peek().kind != tBlockEnd {
		if len(w.targets) > 0 {
			p.wantOp(",")
		}
		w.targets = append(w.targets, p.target())
		p.wantOp("=")
		w.values = append(w.values, p.expression())
	}
	p.want(tBlockEnd, "%}")
	w.body = p.scoped("endwith")
	p.end()
	return w
}

// filterChain parses "name(args)|name…" of a filter block.
func (p *parser) filterChain() []*filterExpr {
	var out []*filterExpr
	for {
		out = append(out, p.filter(nil))
		if !p.skipOp("|") {
			return out
		}
	}
}
