package chattmpl

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

func (e *constExpr) eval(*exec, *scope) any { return e.v }

func (e *nameExpr) eval(_ *exec, s *scope) any {
	if v, ok := s.lookup(e.name); ok {
		return v
	}
	if g, ok := globals[e.name]; ok {
		return g
	}
	return &undefined{msg: fmt.Sprintf("'%s' is undefined", e.name)}
}

func (e *listExpr) eval(x *exec, s *scope) any {
	x.charge(16 * len(e.items))
	out := make([]any, len(e.items))
	for i, it := range e.items {
		out[i] = it.eval(x, s)
	}
	if e.tuple {
		return tuple(out)
	}
	return out
}

func (e *dictExpr) eval(x *exec, s *scope) any {
	x.charge(64 * len(e.keys))
	m := NewMap()
	for i, k := range e.keys {
		key := k.eval(x, s)
		m.set(key, e.vals[i].eval(x, s))
	}
	return m
}

func (e *condExpr) eval(x *exec, s *scope) any {
	if truth(e.cond.eval(x, s)) {
		return e.then.eval(x, s)
	}
	if e.other != nil {
		return e.other.eval(x, s)
	}
	return &undefined{msg: fmt.Sprintf("the inline if-expression on line %d evaluated to false and no else section was defined.",
		e.line)}
}

func (e *logicExpr) eval(x *exec, s *scope) any {
	left := e.left.eval(x, s)
	if truth(left) != e.and {
		return left
	}
	return e.right.eval(x, s)
}

func (e *attrExpr) eval(x *exec, s *scope) any {
	obj := e.obj.eval(x, s)
	x.line = e.line
	return x.getAttr(obj, e.name)
}

func (e *indexExpr) eval(x *exec, s *scope) any {
	obj := e.obj.eval(x, s)
	if sl, ok := e.index.(*sliceExpr); ok {
		x.line = e.line
		return x.slice(obj, sl, s)
	}
	index := e.index.eval(x, s)
	x.line = e.line
	return x.getItem(obj, index)
}

func (e *sliceExpr) eval(*exec, *scope) any {
	raise("TypeError", "unhashable type: 'slice'")
	return nil
}

// getAttr is obj.name: attributes and methods first, then items.
func (x *exec) getAttr(obj any, name string) any {
	defined(obj)
	if v, ok := x.attribute(obj, name); ok {
		return v
	}
	if m, ok := obj.(*OrderedMap); ok {
		if v, ok := m.get(name); ok {
			return v
		}
	}
	if strings.HasPrefix(name, "__") {
		return &undefined{fmt.Sprintf("access to attribute '%s' of '%s' object is unsafe.", name, typeName(obj)), true}
	}
	return &undefined{msg: fmt.Sprintf("'%s' has no attribute '%s'", describe(obj), name)}
}

// getItem is obj[index]: items first, then attributes and methods.
func (x *exec) getItem(obj, index any) any {
	defined(obj)
	if v, ok := x.item(obj, index); ok {
		return v
	}
	if name, ok := index.(string); ok {
		if v, ok := x.attribute(obj, name); ok {
			return v
		}
		return &undefined{msg: fmt.Sprintf("'%s' has no attribute %s", describe(obj), x.repr(index))}
	}
	return &undefined{msg: fmt.Sprintf("%s has no element %s", describe(obj), x.repr(index))}
}

func (x *exec) item(obj, index any) (any, bool) {
	if m, ok := obj.(*OrderedMap); ok {
		switch index.(type) {
		case []any, *OrderedMap, *undefined:
			return nil, false
		}
		return m.get(index)
	}
	i, ok := toInt(index)
	if !ok {
		return nil, false
	}
	n := 0
	switch t := obj.(type) {
	case []any:
		n = len(t)
	case tuple:
		n = len(t)
	case *rangeValue:
		n = t.n
	case string:
		n = utf8.RuneCountInString(t)
	default:
		return nil, false
	}
	if i < 0 {
		i += int64(n)
	}
	if i < 0 || i >= int64(n) {
		return nil, false
	}
	switch t := obj.(type) {
	case []any:
		return t[i], true
	case tuple:
		return t[i], true
	case *rangeValue:
		return t.at(int(i)), true
	}
	return runeAt(obj.(string), int(i)), true
}

func runeAt(s string, i int) string {
	for _, r := range s {
		if i == 0 {
			return string(r)
		}
		i--
	}
	return ""
}

// slice is obj[start:stop:step].
func (x *exec) slice(obj any, e *sliceExpr, s *scope) any {
	part := func(e expr) (int64, bool) {
		if e == nil {
			return 0, false
		}
		v := e.eval(x, s)
		if v == nil {
			return 0, false
		}
		n, ok := toInt(v)
		if !ok {
			raise("TypeError", "slice indices must be integers or None or have an __index__ method")
		}
		return n, true
	}
	start, hasStart := part(e.start)
	stop, hasStop := part(e.stop)
	step, hasStep := part(e.step)
	if !hasStep {
		step = 1
	}
	if step == 0 {
		raise("ValueError", "slice step cannot be zero")
	}
	defined(obj)
	var items []any
	switch t := obj.(type) {
	case []any, tuple, string, *rangeValue:
		items = x.sequence(t)
	default:
		return &undefined{msg: fmt.Sprintf("%s has no element slice", describe(obj))}
	}
	n := int64(len(items))
	lo, hi := bounds(n, step)
	start = clamp(start, hasStart, n, lo, hi, step > 0)
	stop = clamp(stop, hasStop, n, lo, hi, step < 0)
	out := []any{}
	for i := start; step > 0 && i < stop || step < 0 && i > stop; i += step {
		out = append(out, items[i])
		if step > n || step < -n {
			break
		}
	}
	x.charge(16 * len(out))
	switch obj.(type) {
	case string:
		b := []byte{}
		for _, c := range out {
			b = append(b, c.(string)...)
		}
		return string(b)
	case tuple:
		return tuple(out)
	}
	return out
}

// bounds returns the lowest and highest index that a slice may start or stop at.
func bounds(n, step int64) (lo, hi int64) {
	if step < 0 {
		return -1, n - 1
	}
	return 0, n
}

// clamp returns the effective bound: i within lo to hi, or the end at which the slice begins or stops.
func clamp(i int64, given bool, n, lo, hi int64, low bool) int64 {
	if !given {
		if low {
			return lo
		}
		return hi
	}
	if i < 0 {
		i += n
	}
	return max(lo, min(hi, i))
}

func (e *callExpr) eval(x *exec, s *scope) any {
	fn := e.fn.eval(x, s)
	a := x.args(e.args, s)
	x.line = e.line
	return x.call(fn, a)
}

func (x *exec) call(fn any, a args) any {
	x.step()
	switch f := fn.(type) {
	case *function:
		return f.call(x, a)
	case *macroObject:
		return f.invoke(x, a)
	case *loopObject:
		if f.again == nil {
			raise("TypeError", "the loop must have the 'recursive' marker to be called recursively")
		}
		return f.again(x, a.only(1, "loop")[0])
	case *cycler:
		raise("TypeError", "'Cycler' object is not callable")
	case *joiner:
		return f.next()
	case *undefined:
		f.fail()
	}
	raise("TypeError", "'%s' object is not callable", typeName(fn))
	return nil
}

// args evaluates arguments.
func (x *exec) args(c callArgs, s *scope) args {
	var a args
	for _, e := range c.pos {
		a.pos = append(a.pos, e.eval(x, s))
	}
	if c.star != nil {
		a.pos = append(a.pos, x.sequence(c.star.eval(x, s))...)
		x.charge(16 * len(a.pos))
	}
	if len(c.names) > 0 || c.dict != nil {
		a.named = NewMap()
	}
	for i, n := range c.names {
		a.named.set(n, c.named[i].eval(x, s))
	}
	if c.dict == nil {
		return a
	}
	more, ok := c.dict.eval(x, s).(*OrderedMap)
	if !ok {
		raise("TypeError", "argument after ** must be a mapping")
	}
	for i, k := range more.keys {
		if _, twice := a.named.get(k); twice {
			raise("TypeError", "got multiple values for keyword argument %s", x.repr(k))
		}
		a.named.set(k, more.vals[i])
	}
	return a
}

func (e *filterExpr) eval(x *exec, s *scope) any {
	in := e.in.eval(x, s)
	a := x.args(e.args, s)
	x.line = e.line
	return x.applyFilter(e.name, in, a)
}

func (e *testExpr) eval(x *exec, s *scope) any {
	in := e.in.eval(x, s)
	a := x.args(e.args, s)
	x.line = e.line
	return x.applyTest(e.name, in, a) != e.negated
}
