package chattmpl

import (
	"fmt"
	"math/big"
)

// A value is nil (None), bool, int64, *big.Int, float64, string, []any (a list), tuple, *OrderedMap, *undefined,
// *namespace, function or object.

// tuple is a list that is written with parentheses.
type tuple []any

// undefined is a name, attribute or element that is not there.
type undefined struct {
	msg    string
	unsafe bool // the sandbox hides it
}

// namespace is what namespace() makes: attributes that templates may set.
type namespace struct{ attrs *OrderedMap }

// function is what may be called.
type function struct {
	name string
	call func(x *exec, a args) any
}

// object is a value with attributes of its own.
type object interface {
	attr(x *exec, name string) (any, bool)
	typeName() string
}

// args are evaluated arguments.
type args struct {
	pos   []any
	named *OrderedMap // nil: none
}

// OrderedMap is a dict: it keeps the order in which keys were set.
type OrderedMap struct {
	keys  []any
	vals  []any
	index map[any]int
}

// NewMap returns an empty map.
func NewMap() *OrderedMap { return &OrderedMap{index: map[any]int{}} }

// Set sets the value of a key. Values may be nil, booleans, numbers, strings, slices, maps (whose keys are then
// sorted) and *OrderedMap.
func (m *OrderedMap) Set(key string, value any) { m.set(key, value) }

// Get returns the value of a key.
func (m *OrderedMap) Get(key string) (any, bool) { return m.get(key) }

// Len returns how many keys there are.
func (m *OrderedMap) Len() int { return len(m.keys) }

// Keys returns the keys in order.
func (m *OrderedMap) Keys() []string {
	out := make([]string, len(m.keys))
	for i, k := range m.keys {
		out[i] = str(k)
	}
	return out
}

// hashKey maps keys that Python counts as equal to one Go value.
func hashKey(k any) any {
	switch v := k.(type) {
	case bool:
		if v {
			return int64(1)
		}
		return int64(0)
	case float64:
		if v == float64(int64(v)) {
			return int64(v)
		}
	case *big.Int:
		return "\x00big" + v.String()
	case tuple:
		s := "\x00tuple"
		for _, e := range v {
			s += fmt.Sprintf("\x00%T%v", hashKey(e), hashKey(e))
		}
		return s
	case []any, *OrderedMap:
		raise("TypeError", "unhashable type: '%s'", typeName(k))
	}
	return k
}

func (m *OrderedMap) set(key, value any) {
	if m.index == nil {
		m.index = map[any]int{}
	}
	h := hashKey(key)
	if i, ok := m.index[h]; ok {
		m.vals[i] = value
		return
	}
	m.index[h] = len(m.keys)
	m.keys = append(m.keys, key)
	m.vals = append(m.vals, value)
}

func (m *OrderedMap) get(key any) (any, bool) {
	i, ok := m.index[hashKey(key)]
	if !ok {
		return nil, false
	}
	return m.vals[i], true
}

func (m *OrderedMap) items() []any {
	out := make([]any, len(m.keys))
	for i := range m.keys {
		out[i] = tuple{m.keys[i], m.vals[i]}
	}
	return out
}

// typeName returns the name of the Python type.
func typeName(v any) string {
	switch t := v.(type) {
	case nil:
		return "NoneType"
	case bool:
		return "bool"
	case int64, *big.Int:
		return "int"
	case float64:
		return "float"
	case string:
		return "str"
	case []any:
		return "list"
	case tuple:
		return "tuple"
	case *OrderedMap:
		return "dict"
	case *undefined:
		return "Undefined"
	case *namespace:
		return "Namespace"
	case *function:
		return "function"
	case object:
		return t.typeName()
	}
	return fmt.Sprintf("%T", v)
}

// describe names the type as the messages of undefined values do.
func describe(v any) string {
	switch v.(type) {
	case nil:
		return "None"
	case *namespace:
		return "jinja2.utils.Namespace object"
	}
	return typeName(v) + " object"
}

// truth is Python's bool().
func truth(v any) bool {
	switch t := v.(type) {
	case nil, *undefined:
		return false
	case bool:
		return t
	case int64:
		return t != 0
	case *big.Int:
		return t.Sign() != 0
	case float64:
		return t != 0
	case string:
		return t != ""
	case []any:
		return len(t) > 0
	case tuple:
		return len(t) > 0
	case *OrderedMap:
		return len(t.keys) > 0
	case *rangeValue:
		return t.n > 0
	}
	return true
}

// fail raises the error of using an undefined value.
func (u *undefined) fail() {
	if u.unsafe {
		raise("SecurityError", "%s", u.msg)
	}
	raise("UndefinedError", "%s", u.msg)
}

// defined raises an error if v is undefined.
func defined(v any) any {
	if u, ok := v.(*undefined); ok {
		u.fail()
	}
	return v
}

// normalInt returns n as int64 if it fits.
func normalInt(n *big.Int) any {
	if n.IsInt64() {
		return n.Int64()
	}
	return n
}

// toFloat returns v as a float if it is a number.
func toFloat(v any) (float64, bool) {
	switch t := v.(type) {
	case bool:
		if t {
			return 1, true
		}
		return 0, true
	case int64:
		return float64(t), true
	case *big.Int:
		f, _ := new(big.Float).SetInt(t).Float64()
		return f, true
	case float64:
		return t, true
	}
	return 0, false
}

// toInt returns v as an int64 if it is an integer or a boolean.
func toInt(v any) (int64, bool) {
	switch t := v.(type) {
	case bool:
		if t {
			return 1, true
		}
		return 0, true
	case int64:
		return t, true
	}
	return 0, false
}

// sequence returns the elements of v as iterating over it gives them.
func (x *exec) sequence(v any) []any {
	switch t := v.(type) {
	case []any:
		return t
	case tuple:
		return t
	case *OrderedMap:
		return t.keys
	case *undefined:
		return nil
	case *rangeValue:
		x.charge(16 * t.n)
		out := make([]any, t.n)
		for i := range out {
			out[i] = t.at(i)
		}
		return out
	case string:
		x.charge(24 * len(t))
		out := make([]any, 0, len(t))
		for _, r := range t {
			out = append(out, string(r))
		}
		return out
	}
	raise("TypeError", "'%s' object is not iterable", typeName(v))
	return nil
}
