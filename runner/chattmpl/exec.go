package chattmpl

import "time"

// Bounds of a rendering.
const (
	maxSteps  = 5_000_000
	maxOutput = 64 << 20
	maxBytes  = 256 << 20 // of all values that are made
	maxCalls  = 150
	maxRange  = 100_000
)

// exec is one rendering.
type exec struct {
	out   []byte
	now   func() time.Time
	line  int
	steps int
	bytes int
	calls int
	ctl   control
}

// control is a pending break or continue.
type control int

const (
	goOn control = iota
	breakLoop
	continueLoop
)

// scope holds the variables of a template, loop turn, macro or with block.
type scope struct {
	parent *scope
	vars   map[string]any
}

func (s *scope) lookup(name string) (any, bool) {
	for ; s != nil; s = s.parent {
		if v, ok := s.vars[name]; ok {
			return v, true
		}
	}
	return nil, false
}

func (s *scope) set(name string, v any) {
	if s.vars == nil {
		s.vars = map[string]any{}
	}
	s.vars[name] = v
}

// step counts work.
func (x *exec) step() {
	if x.steps++; x.steps > maxSteps {
		raise("LimitError", "rendering takes over %d steps", maxSteps)
	}
}

// charge counts the bytes of a value that is about to be made.
func (x *exec) charge(n int) {
	x.step()
	if n < 0 || n > maxBytes || x.bytes+n > maxBytes {
		raise("LimitError", "rendering makes over %d bytes of values", maxBytes)
	}
	x.bytes += n
}

// enter counts nested calls; leave goes with it.
func (x *exec) enter() {
	if x.calls++; x.calls > maxCalls {
		raise("RecursionError", "calls are nested over %d deep", maxCalls)
	}
}

func (x *exec) leave() { x.calls-- }

func (x *exec) write(s string) {
	if len(x.out)+len(s) > maxOutput {
		raise("LimitError", "output is over %d bytes", maxOutput)
	}
	x.out = append(x.out, s...)
}

// capture returns what f writes.
func (x *exec) capture(f func()) string {
	outer := x.out
	x.out = nil
	f()
	s := string(x.out)
	x.out = outer
	x.charge(len(s))
	return s
}

func (x *exec) run(body []stmt, s *scope) {
	for _, st := range body {
		x.step()
		st.exec(x, s)
		if x.ctl != goOn {
			return
		}
	}
}

func (t *textStmt) exec(x *exec, _ *scope) { x.write(t.text) }

func (o *outputStmt) exec(x *exec, s *scope) {
	x.line = o.line
	x.write(x.str(o.e.eval(x, s)))
}

func (i *ifStmt) exec(x *exec, s *scope) {
	x.line = i.line
	for k, c := range i.conds {
		if truth(c.eval(x, s)) {
			x.run(i.bodies[k], s)
			return
		}
	}
	x.run(i.other, s)
}

func (l *loopControl) exec(x *exec, _ *scope) {
	x.ctl = continueLoop
	if l.stop {
		x.ctl = breakLoop
	}
}

func (f *forStmt) exec(x *exec, s *scope) {
	x.line = f.line
	f.loop(x, s, f.iter.eval(x, s), 0)
}

func (f *forStmt) loop(x *exec, s *scope, over any, depth int) {
	items := x.sequence(over)
	if f.cond != nil {
		kept := []any{}
		for _, item := range items {
			inner := &scope{parent: s}
			x.assign(inner, f.target, item)
			if truth(f.cond.eval(x, inner)) {
				kept = append(kept, item)
			}
		}
		items = kept
	}
	l := &loopObject{items: items, depth: depth}
	if f.recursive {
		l.again = func(x *exec, v any) string {
			x.enter()
			defer x.leave()
			return x.capture(func() { f.loop(x, s, v, depth+1) })
		}
	}
	for i, item := range items {
		x.step()
		l.i = i
		inner := &scope{parent: s, vars: map[string]any{"loop": l}}
		x.assign(inner, f.target, item)
		x.run(f.body, inner)
		ctl := x.ctl
		x.ctl = goOn
		if ctl == breakLoop {
			return
		}
	}
	if len(items) == 0 {
		x.run(f.other, &scope{parent: s})
	}
}

// assign sets a target in the scope.
func (x *exec) assign(s *scope, t target, v any) {
	switch {
	case t.attr != "":
		ns, ok := s.lookup(t.name)
		n, isNS := ns.(*namespace)
		if !ok || !isNS {
			raise("TemplateRuntimeError", "cannot assign attribute on non-namespace object")
		}
		n.attrs.set(t.attr, v)
	case t.parts != nil:
		items := x.sequence(defined(v))
		if len(items) < len(t.parts) {
			raise("ValueError", "not enough values to unpack (expected %d, got %d)", len(t.parts), len(items))
		}
		if len(items) > len(t.parts) {
			raise("ValueError", "too many values to unpack (expected %d)", len(t.parts))
		}
		for i, p := range t.parts {
			x.assign(s, p, items[i])
		}
	default:
		s.set(t.name, v)
	}
}

func (st *setStmt) exec(x *exec, s *scope) {
	x.line = st.line
	x.assign(s, st.target, st.value.eval(x, s))
}

func (st *setBlockStmt) exec(x *exec, s *scope) {
	text := x.capture(func() { x.run(st.body, &scope{parent: s}) })
	x.line = st.line
	x.assign(s, st.target, x.applyAll(st.filters, text, s))
}

func (x *exec) applyAll(filters []*filterExpr, v any, s *scope) any {
	for _, f := range filters {
		v = x.applyFilter(f.name, v, x.args(f.args, s))
	}
	return v
}

func (f *filterStmt) exec(x *exec, s *scope) {
	text := x.capture(func() { x.run(f.body, &scope{parent: s}) })
	x.line = f.line
	x.write(x.str(x.applyAll(f.filters, text, s)))
}

func (w *withStmt) exec(x *exec, s *scope) {
	inner := &scope{parent: s}
	for i, t := range w.targets {
		x.assign(inner, t, w.values[i].eval(x, s))
	}
	x.run(w.body, inner)
}

func (m *macroStmt) exec(_ *exec, s *scope) { s.set(m.name, &macroObject{m, s}) }

func (c *callStmt) exec(x *exec, s *scope) {
	x.line = c.line
	fn := c.call.fn.eval(x, s)
	a := x.args(c.call.args, s)
	if a.named == nil {
		a.named = NewMap()
	}
	a.named.set("caller", &macroObject{c.macro, s})
	x.write(x.str(x.call(fn, a)))
}

// macroObject is a macro with the scope that it was defined in.
type macroObject struct {
	m *macroStmt
	s *scope
}

func (o *macroObject) typeName() string { return "Macro" }

func (o *macroObject) attr(_ *exec, name string) (any, bool) {
	switch name {
	case "name":
		return o.m.name, true
	case "arguments":
		out := tuple{}
		for _, p := range o.m.params {
			out = append(out, p)
		}
		return out, true
	case "catch_kwargs":
		return o.m.kwargs, true
	case "catch_varargs":
		return o.m.varargs, true
	case "caller":
		return o.m.caller, true
	}
	return nil, false
}

// invoke runs the macro.
func (o *macroObject) invoke(x *exec, a args) any {
	x.enter()
	defer x.leave()
	s := &scope{parent: o.s, vars: map[string]any{}}
	o.bind(x, s, a)
	line := x.line
	text := x.capture(func() { x.run(o.m.body, s) })
	x.line = line
	return text
}

// bind sets the parameters.
func (o *macroObject) bind(x *exec, s *scope, a args) {
	m := o.m
	rest := NewMap()
	if a.named != nil {
		for i, k := range a.named.keys {
			rest.set(k, a.named.vals[i])
		}
	}
	take := func(name string) (any, bool) {
		v, ok := rest.get(name)
		if ok {
			rest = without(rest, name)
		}
		return v, ok
	}
	if m.caller {
		v, ok := take("caller")
		if !ok {
			v = &undefined{msg: "No caller defined"}
		}
		s.set("caller", v)
	}
	for i, p := range m.params {
		v, ok := take(p)
		switch d := i - (len(m.params) - len(m.defaults)); {
		case i < len(a.pos) && ok:
			raise("TypeError", "macro %s got multiple values for argument '%s'", pyRepr(m.name), p)
		case i < len(a.pos):
			v = a.pos[i]
		case !ok && d >= 0:
			v = m.defaults[d].eval(x, s)
		case !ok:
			v = &undefined{msg: "parameter '" + p + "' was not provided"}
		}
		s.set(p, v)
	}
	if m.kwargs {
		s.set("kwargs", rest)
	} else if len(rest.keys) > 0 {
		raise("TypeError", "macro %s takes no keyword argument %s", pyRepr(m.name), pyRepr(rest.keys[0]))
	}
	extra := a.pos[min(len(a.pos), len(m.params)):]
	if m.varargs {
		s.set("varargs", tuple(extra))
	} else if len(extra) > 0 {
		raise("TypeError", "macro %s takes not more than %d argument(s)", pyRepr(m.name), len(m.params))
	}
}

func without(m *OrderedMap, name string) *OrderedMap {
	out := NewMap()
	for i, k := range m.keys {
		if k != any(name) {
			out.set(k, m.vals[i])
		}
	}
	return out
}
