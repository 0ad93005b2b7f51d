package mil

import (
	"strings"

	"github.com/anepkg/anepkg/coreml/diag"
)

// Check verifies that the names of a program resolve: every operand and
// result is defined before its use, no name is defined twice in a function,
// no op has two arguments of one name, and read_state and write_state name a
// state. The error is a diag.List of up to ten problems.
//
// Blocks nested in an op see the values around them, and may define names
// that another block of the same op defines too.
func Check(p *Program) error {
	c := &checker{prog: p}
	seen := map[string]Pos{}
	for _, f := range p.Functions {
		if first, ok := seen[f.Name]; ok {
			c.report(f.Pos, "function %q is defined twice%s", f.Name, c.also(first))
		}
		seen[f.Name] = f.Pos
		c.attrs(f.Attrs)
		c.scope = &scope{names: make(map[string]def, 2*len(f.Body.Ops)+len(f.Params))}
		c.define(f.Params, "parameter")
		c.block(f.Body)
	}
	return c.errs.Err()
}

// def is where a name is defined and whether it is a state.
type def struct {
	pos   Pos
	state bool
}

type scope struct {
	names map[string]def
	outer *scope
}

func (s *scope) find(name string) (def, bool) {
	for ; s != nil; s = s.outer {
		if d, ok := s.names[name]; ok {
			return d, true
		}
	}
	return def{}, false
}

type checker struct {
	prog  *Program
	scope *scope
	errs  diag.List
}

func (c *checker) report(pos Pos, format string, args ...any) {
	if len(c.errs) < maxErrors {
		c.errs = append(c.errs, diag.Errorf(c.prog.At(pos), diag.Malformed, format, args...))
	}
}

// also names the place of a first definition, when there is one.
func (c *checker) also(pos Pos) string {
	if pos.Line == 0 {
		return ""
	}
	return ", first at " + c.prog.At(pos).String()
}

func (c *checker) define(ps []Param, what string) {
	for i := range ps {
		if first, ok := c.scope.names[ps[i].Name]; ok {
			c.report(ps[i].Pos, "%s %q is defined twice%s", what, ps[i].Name, c.also(first.pos))
			continue
		}
		c.scope.names[ps[i].Name] = def{ps[i].Pos, ps[i].Type.IsState()}
	}
}

func (c *checker) block(b *Block) {
	for _, op := range b.Ops {
		if len(c.errs) >= maxErrors {
			return
		}
		c.op(op)
	}
	for _, r := range b.Outputs {
		if _, ok := c.scope.find(r.Name); !ok {
			c.undefined(r.Pos, "result %q is not defined", r.Name)
		}
	}
}

func (c *checker) op(op *Op) {
	for i := range op.Args {
		a := &op.Args[i]
		for j := range i {
			if op.Args[j].Name == a.Name {
				c.report(a.Pos, "%s: argument %q is given twice", op.Type, a.Name)
			}
		}
		for _, b := range a.Bindings {
			if b.Value == nil {
				c.use(op, a, b)
			}
		}
	}
	c.attrs(op.Attrs)
	for _, nb := range op.Blocks {
		outer := c.scope
		c.scope = &scope{names: map[string]def{}, outer: outer}
		c.define(nb.Params, "block parameter")
		c.block(nb)
		c.scope = outer
	}
	c.define(op.Outputs, "value")
}

func (c *checker) use(op *Op, a *Arg, b Binding) {
	d, ok := c.scope.find(b.Ref)
	if !ok {
		c.undefined(b.Pos, op.Type+": %q is not defined", b.Ref)
		return
	}
	wantState := a.Name == "input" && (op.Type == "read_state" || op.Type == "write_state")
	if wantState && !d.state {
		c.report(b.Pos, "%s: %q is no state of the function", op.Type, b.Ref)
	}
	if !wantState && d.state && len(op.Blocks) == 0 && !strings.Contains(op.Type, "state") {
		c.report(b.Pos, "%s: %q is a state; only read_state and write_state take one", op.Type, b.Ref)
	}
}

func (c *checker) undefined(pos Pos, format, name string) {
	if len(c.errs) >= maxErrors {
		return
	}
	e := diag.Errorf(c.prog.At(pos), diag.Malformed, format, name)
	if near := c.nearest(name); near != "" {
		e.Hint = "did you mean " + near + "?"
	}
	c.errs = append(c.errs, e)
}

func (c *checker) attrs(as []Attr) {
	for i := range as {
		for j := range i {
			if as[j].Name == as[i].Name {
				c.report(as[i].Pos, "attribute %q is given twice", as[i].Name)
			}
		}
	}
}

// nearest returns the defined name that differs from name by one or two
// bytes, the closest and then smallest one; "" without one.
func (c *checker) nearest(name string) string {
	if len(name) > 128 {
		return ""
	}
	best, bestDist := "", 3
	for s := c.scope; s != nil; s = s.outer {
		for n := range s.names {
			if len(n) > len(name)+2 || len(name) > len(n)+2 {
				continue
			}
			if d := diag.Distance(name, n, bestDist); d < bestDist || d == bestDist && d < 3 && n < best {
				best, bestDist = n, d
			}
		}
	}
	return best
}
