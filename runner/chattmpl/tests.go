package chattmpl

import (
	"math/big"
	"strings"
)

// tests are all tests by name.
var tests map[string]func(x *exec, v any, a args) bool

func init() { // breaks the cycle with select, which applies tests
	tests = map[string]func(x *exec, v any, a args) bool{
		"defined":   func(_ *exec, v any, _ args) bool { return !isType[*undefined](v) },
		"undefined": func(_ *exec, v any, _ args) bool { return isType[*undefined](v) },
		"none":      func(_ *exec, v any, _ args) bool { return v == nil },
		"string":    func(_ *exec, v any, _ args) bool { return isType[string](v) },
		"boolean":   func(_ *exec, v any, _ args) bool { return isType[bool](v) },
		"true":      func(_ *exec, v any, _ args) bool { b, ok := v.(bool); return ok && b },
		"false":     func(_ *exec, v any, _ args) bool { b, ok := v.(bool); return ok && !b },
		"integer":   func(_ *exec, v any, _ args) bool { return isType[int64](v) || isType[*big.Int](v) },
		"float":     func(_ *exec, v any, _ args) bool { return isType[float64](v) },
		"number":    func(_ *exec, v any, _ args) bool { _, ok := toFloat(v); return ok },
		"mapping":   func(_ *exec, v any, _ args) bool { return isType[*OrderedMap](v) },
		"sequence":  isSequence,
		"iterable":  isSequence,
		"callable":  isCallable,
		"odd":       func(_ *exec, v any, _ args) bool { return remainder(v, int64(2)) == any(int64(1)) },
		"even":      func(_ *exec, v any, _ args) bool { return remainder(v, int64(2)) == any(int64(0)) },
		"divisibleby": func(_ *exec, v any, a args) bool {
			return remainder(v, a.only(1, "divisibleby")[0]) == any(int64(0))
		},
		"lower":   func(x *exec, v any, _ args) bool { return strMethods["islower"](x, x.str(v), args{}).(bool) },
		"upper":   func(x *exec, v any, _ args) bool { return strMethods["isupper"](x, x.str(v), args{}).(bool) },
		"escaped": func(*exec, any, args) bool { return false },
		"filter":  func(_ *exec, v any, _ args) bool { s, _ := v.(string); return filters[s] != nil },
		"test":    func(_ *exec, v any, _ args) bool { s, _ := v.(string); return tests[s] != nil },
		"sameas":  isSame,
		"in":      func(x *exec, v any, a args) bool { return x.contains(a.only(1, "in")[0], v) },
	}
	for op, names := range map[string]string{
		"==": "== eq equalto", "!=": "!= ne", "<": "< lt lessthan", "<=": "<= le", ">": "> gt greaterthan", ">=": ">= ge",
	} {
		for _, name := range strings.Fields(names) {
			tests[name] = func(x *exec, v any, a args) bool { return x.compare(op, v, a.only(1, name)[0]) }
		}
	}
}

func (x *exec) applyTest(name string, v any, a args) bool {
	f, ok := tests[name]
	if !ok {
		raise("TemplateRuntimeError", "No test named '%s' found.", name)
	}
	x.step()
	return f(x, v, a)
}

func isType[T any](v any) bool {
	_, ok := v.(T)
	return ok
}

func isSequence(_ *exec, v any, _ args) bool {
	switch v.(type) {
	case string, []any, tuple, *OrderedMap, *rangeValue, *undefined:
		return true
	}
	return false
}

func isCallable(_ *exec, v any, _ args) bool {
	switch v.(type) {
	case *function, *macroObject, *joiner, *loopObject, *undefined:
		return true
	}
	return false
}

func remainder(v, by any) any {
	if _, ok := toFloat(defined(v)); !ok {
		raise("TypeError", "unsupported operand type(s) for %%: '%s' and '%s'", typeName(v), typeName(by))
	}
	if _, ok := toFloat(defined(by)); !ok {
		raise("TypeError", "unsupported operand type(s) for %%: '%s' and '%s'", typeName(v), typeName(by))
	}
	r := arithmetic("%", v, by)
	if f, ok := r.(float64); ok && f == float64(int64(f)) {
		return int64(f)
	}
	return r
}

// isSame is Python's "is", as far as values have an identity here.
func isSame(_ *exec, v any, a args) bool {
	other := a.only(1, "sameas")[0]
	switch v.(type) {
	case []any, tuple:
		return false
	}
	switch other.(type) {
	case []any, tuple:
		return false
	}
	return v == other
}
