package chattmpl

import (
	"fmt"
)

// globals are the functions that every template may call.
var globals map[string]any

func init() { // breaks the cycle between evaluation and the functions that evaluate
	globals = map[string]any{
		"range":           &function{"range", makeRange},
		"dict":            &function{"dict", makeDict},
		"namespace":       &function{"namespace", makeNamespace},
		"cycler":          &function{"cycler", makeCycler},
		"joiner":          &function{"joiner", makeJoiner},
		"raise_exception": &function{"raise_exception", raiseException},
		"strftime_now":    &function{"strftime_now", strftimeNow},
	}
}

// only returns the positional arguments, of which there must be n.
func (a args) only(n int, name string) []any {
	if len(a.pos) != n || a.named != nil && a.named.Len() > 0 {
		raise("TypeError", "%s() takes %d positional argument(s) but %d were given", name, n, len(a.pos))
	}
	return a.pos
}

// bind gives the arguments by the names of the parameters; missing ones are absent.
func (a args) bind(what string, params ...string) map[string]any {
	out := map[string]any{}
	if len(a.pos) > len(params) {
		raise("TypeError", "%s takes at most %d arguments but %d were given", what, len(params), len(a.pos))
	}
	for i, v := range a.pos {
		out[params[i]] = v
	}
	if a.named == nil {
		return out
	}
	for i, k := range a.named.keys {
		name, _ := k.(string)
		if !contains(params, name) {
			raise("TypeError", "%s got an unexpected keyword argument %s", what, pyRepr(k))
		}
		if _, ok := out[name]; ok {
			raise("TypeError", "%s got multiple values for argument %s", what, pyRepr(k))
		}
		out[name] = a.named.vals[i]
	}
	return out
}

// rangeValue is what range() makes.
type rangeValue struct {
	start, step int64
	n           int
}

func (r *rangeValue) at(i int) any     { return r.start + int64(i)*r.step }
func (r *rangeValue) typeName() string { return "range" }

func (r *rangeValue) attr(*exec, string) (any, bool) { return nil, false }

func (r *rangeValue) String() string {
	stop := r.start + int64(r.n)*r.step
	if r.step == 1 {
		return fmt.Sprintf("range(%d, %d)", r.start, stop)
	}
	return fmt.Sprintf("range(%d, %d, %d)", r.start, stop, r.step)
}

func makeRange(_ *exec, a args) any {
	if len(a.pos) < 1 || len(a.pos) > 3 || a.named != nil && a.named.Len() > 0 {
		raise("TypeError", "range expected 1 to 3 arguments, got %d", len(a.pos))
	}
	nums := [3]int64{0, 0, 1}
	for i, v := range a.pos {
		n, ok := toInt(defined(v))
		if !ok {
			raise("TypeError", "'%s' object cannot be interpreted as an integer", typeName(v))
		}
		if n > 1<<40 || n < -1<<40 {
			raise("OverflowError", "Range too big. The sandbox blocks ranges larger than MAX_RANGE (%d).", maxRange)
		}
		nums[i] = n
	}
	if len(a.pos) == 1 {
		nums[0], nums[1] = 0, nums[0]
	}
	start, stop, step := nums[0], nums[1], nums[2]
	if step == 0 {
		raise("ValueError", "range() arg 3 must not be zero")
	}
	n := int64(0)
	if step > 0 && stop > start {
		n = (stop - start + step - 1) / step
	} else if step < 0 && stop < start {
		n = (start - stop - step - 1) / -step
	}
	if n > maxRange {
		raise("OverflowError", "Range too big. The sandbox blocks ranges larger than MAX_RANGE (%d).", maxRange)
	}
	return &rangeValue{start, step, int(n)}
}

// makeDict is dict() and, with attrs, namespace().
func makeDict(x *exec, a args) any {
	m := NewMap()
	if len(a.pos) > 1 {
		raise("TypeError", "dict expected at most 1 argument, got %d", len(a.pos))
	}
	if len(a.pos) == 1 {
		if from, ok := a.pos[0].(*OrderedMap); ok {
			x.charge(64 * len(from.keys))
			for i, k := range from.keys {
				m.set(k, from.vals[i])
			}
		} else {
			for _, pair := range x.sequence(defined(a.pos[0])) {
				kv := x.sequence(pair)
				if len(kv) != 2 {
					raise("ValueError", "dictionary update sequence element has length %d; 2 is required", len(kv))
				}
				m.set(kv[0], kv[1])
			}
		}
	}
	if a.named != nil {
		for i, k := range a.named.keys {
			m.set(k, a.named.vals[i])
		}
	}
	return m
}

func makeNamespace(x *exec, a args) any { return &namespace{makeDict(x, a).(*OrderedMap)} }

func raiseException(x *exec, a args) any {
	v := a.bind("raise_exception()", "m")
	m, ok := v["m"]
	if !ok {
		raise("TypeError", "raise_exception() missing 1 required positional argument: 'm'")
	}
	panic(&RaiseError{Message: x.str(m)})
}

// cycler is what cycler() makes.
type cycler struct {
	items []any
	pos   int
}

func makeCycler(_ *exec, a args) any {
	if len(a.pos) == 0 {
		raise("RuntimeError", "at least one item has to be provided")
	}
	return &cycler{items: a.pos}
}

func (c *cycler) typeName() string { return "Cycler" }

func (c *cycler) attr(_ *exec, name string) (any, bool) {
	switch name {
	case "current":
		return c.items[c.pos], true
	case "next":
		return &function{"next", func(*exec, args) any {
			v := c.items[c.pos]
			c.pos = (c.pos + 1) % len(c.items)
			return v
		}}, true
	case "reset":
		return &function{"reset", func(*exec, args) any { c.pos = 0; return nil }}, true
	}
	return nil, false
}

// joiner is what joiner() makes: called, it gives its separator but for the first time.
type joiner struct {
	sep  any
	used bool
}

func makeJoiner(_ *exec, a args) any {
	v := a.bind("joiner()", "sep")
	if sep, ok := v["sep"]; ok {
		return &joiner{sep: sep}
	}
	return &joiner{sep: ", "}
}

func (j *joiner) typeName() string               { return "Joiner" }
func (j *joiner) attr(*exec, string) (any, bool) { return nil, false }

func (j *joiner) next() any {
	if !j.used {
		j.used = true
		return ""
	}
	return j.sep
}

// loopObject is the loop variable.
type loopObject struct {
	items []any
	i     int
	depth int
	last  any
	seen  bool
	again func(x *exec, v any) string // nil unless the loop is recursive
}

func (l *loopObject) typeName() string { return "LoopContext" }

func (l *loopObject) attr(_ *exec, name string) (any, bool) {
	n := len(l.items)
	switch name {
	case "index":
		return int64(l.i + 1), true
	case "index0":
		return int64(l.i), true
	case "revindex":
		return int64(n - l.i), true
	case "revindex0":
		return int64(n - l.i - 1), true
	case "first":
		return l.i == 0, true
	case "last":
		return l.i == n-1, true
	case "length":
		return int64(n), true
	case "depth":
		return int64(l.depth + 1), true
	case "depth0":
		return int64(l.depth), true
	case "previtem":
		if l.i > 0 {
			return l.items[l.i-1], true
		}
		return &undefined{msg: "there is no previous item"}, true
	case "nextitem":
		if l.i+1 < n {
			return l.items[l.i+1], true
		}
		return &undefined{msg: "there is no next item"}, true
	case "cycle":
		return &function{"cycle", l.cycle}, true
	case "changed":
		return &function{"changed", l.changed}, true
	}
	return nil, false
}

func (l *loopObject) cycle(_ *exec, a args) any {
	if len(a.pos) == 0 {
		raise("TypeError", "no items for cycling given")
	}
	return a.pos[l.i%len(a.pos)]
}

func (l *loopObject) changed(x *exec, a args) any {
	now := tuple(a.pos)
	if l.seen && x.equal(l.last, now, 0) {
		return false
	}
	l.last, l.seen = now, true
	return true
}
