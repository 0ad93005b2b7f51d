package chattmpl

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"
)

var reserved = map[string]bool{
	"true": true, "True": true, "false": true, "False": true, "none": true, "None": true,
}

// tuple parses one expression, or several with commas between as a tuple. Without cond, "if" ends it.
func (p *parser) tuple(cond bool) expr {
	one := p.orExpr
	if cond {
		one = p.expression
	}
	first := one()
	if !p.isOp(",") {
		return first
	}
	l := &listExpr{items: []expr{first}, tuple: true}
	for p.skipOp(",") {
		if t := p.peek(); t.kind == tVarEnd || t.kind == tBlockEnd || t.kind == tOp && t.text == ")" {
			break
		}
		l.items = append(l.items, one())
	}
	return l
}

func (p *parser) expression() expr {
	p.enter()
	defer p.leave()
	mark := len(p.unknown)
	e := p.orExpr()
	for p.isName("if") {
		line := p.next().line
		c := &condExpr{then: e, cond: p.orExpr(), line: line}
		if p.skipName("else") {
			c.other = p.expression()
		}
		p.guarded(mark)
		e = c
	}
	return e
}

func (p *parser) orExpr() expr {
	e := p.andExpr()
	for p.skipName("or") {
		e = &logicExpr{false, e, p.andExpr()}
	}
	return e
}

func (p *parser) andExpr() expr {
	e := p.notExpr()
	for p.skipName("and") {
		e = &logicExpr{true, e, p.notExpr()}
	}
	return e
}

func (p *parser) notExpr() expr {
	if p.isName("not") {
		p.enter()
		defer p.leave()
		line := p.next().line
		return &unaryExpr{"not", p.notExpr(), line}
	}
	return p.compare()
}

func (p *parser) compareOp() string {
	t := p.peek()
	switch {
	case t.kind == tOp:
		switch t.text {
		case "==", "!=", "<", "<=", ">", ">=":
			p.i++
			return t.text
		}
	case p.skipName("in"):
		return "in"
	case t.kind == tName && t.text == "not":
		if n := p.toks[p.i+1]; n.kind == tName && n.text == "in" {
			p.i += 2
			return "not in"
		}
	}
	return ""
}

func (p *parser) compare() expr {
	line := p.line()
	e := p.sum()
	c := &compareExpr{first: e, line: line}
	for op := p.compareOp(); op != ""; op = p.compareOp() {
		c.ops = append(c.ops, op)
		c.rest = append(c.rest, p.sum())
	}
	if len(c.ops) == 0 {
		return e
	}
	return c
}

// binary parses a left-associative level.
func (p *parser) binary(sub func() expr, ops ...string) expr {
	e := sub()
	for {
		t := p.peek()
		if t.kind != tOp || !contains(ops, t.text) {
			return e
		}
		p.i++
		e = &binaryExpr{t.text, e, sub(), t.line}
	}
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

func (p *parser) sum() expr     { return p.binary(p.concat, "+", "-") }
func (p *parser) concat() expr  { return p.binary(p.product, "~") }
func (p *parser) product() expr { return p.binary(p.power, "*", "/", "//", "%") }
func (p *parser) power() expr   { return p.binary(func() expr { return p.unary(true) }, "**") }

func (p *parser) unary(filters bool) expr {
	p.enter()
	defer p.leave()
	var e expr
	if t := p.peek(); t.kind == tOp && (t.text == "-" || t.text == "+") {
		p.i++
		e = &unaryExpr{t.text, p.unary(false), t.line}
	} else {
		e = p.primary()
	}
	e = p.postfix(e)
	if filters {
		e = p.filters(e)
	}
	return e
}

func (p *parser) primary() expr {
	t := p.next()
	switch t.kind {
	case tName:
		switch t.text {
		case "true", "True":
			return &constExpr{true}
		case "false", "False":
			return &constExpr{false}
		case "none", "None":
			return &constExpr{nil}
		}
		p.names[t.text] = true
		return &nameExpr{t.text}
	case tString:
		s := t.text
		for p.peek().kind == tString {
			s += p.next().text
		}
		return &constExpr{s}
	case tInt:
		n, ok := new(big.Int).SetString(t.text, 0)
		if strings.Trim(t.text, "0") == "" {
			n, ok = new(big.Int), true
		}
		if !ok {
			p.i--
			p.fail("got number %q, want an integer", t.text)
		}
		return &constExpr{normalInt(n)}
	case tFloat:
		f, _ := strconv.ParseFloat(t.text, 64)
		return &constExpr{f}
	case tOp:
		switch t.text {
		case "(":
			return p.parens()
		case "[":
			return &listExpr{items: p.items("]")}
		case "{":
			return p.dict()
		}
	}
	p.i--
	p.fail("got %s, want an expression", t)
	return nil
}

func (p *parser) parens() expr {
	if p.skipOp(")") {
		return &listExpr{tuple: true}
	}
	e := p.tuple(true)
	p.wantOp(")")
	return e
}

func (p *parser) items(end string) []expr {
	var out []expr
	for !p.isOp(end) {
		if len(out) > 0 {
			p.wantOp(",")
			if p.isOp(end) {
				break
			}
		}
		out = append(out, p.expression())
	}
	p.wantOp(end)
	return out
}

func (p *parser) dict() expr {
	d := &dictExpr{}
	for !p.isOp("}") {
		if len(d.keys) > 0 {
			p.wantOp(",")
			if p.isOp("}") {
				break
			}
		}
		d.keys = append(d.keys, p.expression())
		p.wantOp(":")
		d.vals = append(d.vals, p.expression())
	}
	p.wantOp("}")
	return d
}

func (p *parser) postfix(e expr) expr {
	for {
		t := p.peek()
		if t.kind != tOp {
			return e
		}
		switch t.text {
		case ".":
			p.i++
			e = p.attribute(e, t.line)
		case "[":
			p.i++
			e = &indexExpr{e, p.subscript(), t.line}
		case "(":
			e = &callExpr{e, p.args(), t.line}
		default:
			return e
		}
	}
}

func (p *parser) attribute(e expr, line int) expr {
	t := p.next()
	switch t.kind {
	case tName:
		return &attrExpr{e, t.text, line}
	case tInt:
		n, _ := strconv.ParseInt(t.text, 10, 64)
		return &indexExpr{e, &constExpr{n}, line}
	}
	p.i--
	p.fail("got %s, want a name after \".\"", t)
	return nil
}

// subscript parses what stands in brackets.
func (p *parser) subscript() expr {
	first := p.slice()
	if !p.isOp(",") {
		p.wantOp("]")
		return first
	}
	l := &listExpr{items: []expr{first}, tuple: true}
	for p.skipOp(",") {
		l.items = append(l.items, p.slice())
	}
	p.wantOp("]")
	return l
}

func (p *parser) slice() expr {
	var parts [3]expr
	n := 0
	colon := false
	for n < 3 {
		if !p.isOp(":") && !p.isOp("]") && !p.isOp(",") {
			parts[n] = p.expression()
		}
		if !p.skipOp(":") {
			break
		}
		colon = true
		n++
	}
	if !colon {
		if parts[0] == nil {
			p.fail("got %s, want a subscript", p.peek())
		}
		return parts[0]
	}
	if n == 3 {
		p.fail("got a third \":\", want \"]\"")
	}
	return &sliceExpr{parts[0], parts[1], parts[2]}
}

func (p *parser) args() callArgs {
	var a callArgs
	p.wantOp("(")
	for first := true; !p.isOp(")"); first = false {
		if !first {
			p.wantOp(",")
			if p.isOp(")") {
				break
			}
		}
		t := p.peek()
		switch n := p.toks[min(p.i+1, len(p.toks)-1)]; {
		case p.skipOp("*"):
			if a.star != nil || a.dict != nil {
				p.fail("got a second * or one after **")
			}
			a.star = p.expression()
		case p.skipOp("**"):
			if a.dict != nil {
				p.fail("got a second **")
			}
			a.dict = p.expression()
		case t.kind == tName && n.kind == tOp && n.text == "=":
			p.i += 2
			a.names = append(a.names, t.text)
			a.named = append(a.named, p.expression())
		default:
			if len(a.names) > 0 || a.star != nil || a.dict != nil {
				p.fail("got a positional argument after a named one")
			}
			a.pos = append(a.pos, p.expression())
		}
	}
	p.wantOp(")")
	return a
}

// filters parses what may follow an operand: filters, tests and calls.
func (p *parser) filters(e expr) expr {
	for {
		t := p.peek()
		switch {
		case p.skipOp("|"):
			e = p.filter(e)
		case t.kind == tName && t.text == "is":
			p.i++
			e = p.test(e, t.line)
		case p.isOp("("):
			e = &callExpr{e, p.args(), t.line}
		default:
			return e
		}
	}
}

func (p *parser) dotted() string {
	name := p.name()
	for p.skipOp(".") {
		name += "." + p.name()
	}
	return name
}

func (p *parser) filter(in expr) *filterExpr {
	f := &filterExpr{in: in, line: p.line()}
	f.name = p.dotted()
	if filters[f.name] == nil {
		p.unknown = append(p.unknown, unknownName{f.line, fmt.Sprintf("No filter named '%s'.", f.name), false})
	}
	if p.isOp("(") {
		f.args = p.args()
	}
	return f
}

func (p *parser) test(in expr, line int) expr {
	t := &testExpr{in: in, line: line, negated: p.skipName("not")}
	t.name = p.dotted()
	if tests[t.name] == nil {
		p.unknown = append(p.unknown, unknownName{line, fmt.Sprintf("No test named '%s'.", t.name), false})
	}
	n := p.peek()
	switch {
	case p.isOp("("):
		t.args = p.args()
	case n.kind == tString, n.kind == tInt, n.kind == tFloat, p.isOp("["), p.isOp("{"),
		n.kind == tName && n.text != "else" && n.text != "or" && n.text != "and":
		if n.text == "is" && n.kind == tName {
			p.fail("tests cannot be chained with is")
		}
		t.args.pos = []expr{p.postfix(p.primary())}
	}
	return t
}
