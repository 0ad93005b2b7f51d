package chattmpl

import "strings"

// attribute returns a method or attribute of a value.
func (x *exec) attribute(obj any, name string) (any, bool) {
	if strings.HasPrefix(name, "_") {
		return nil, false // the sandbox hides it, and it is an item at most
	}
	switch t := obj.(type) {
	case *namespace:
		return t.attrs.get(name)
	case *OrderedMap:
		return dictMethod(t, name)
	case string:
		if f, ok := strMethods[name]; ok {
			return &function{name, func(x *exec, a args) any { return f(x, t, a) }}, true
		}
	case []any:
		if f, ok := listMethod(t, name); ok {
			return f, true
		}
		if contains(mutators, name) {
			return &function{name, blocked}, true
		}
	case tuple:
		return listMethod(t, name)
	case object:
		return t.attr(x, name)
	}
	return nil, false
}

// mutators are the methods of lists and dicts that the sandbox blocks.
var mutators = []string{
	"append", "extend", "insert", "remove", "reverse", "sort", "clear", "pop", "popitem", "setdefault", "update",
}

func blocked(*exec, args) any {
	raise("SecurityError", "the value must not be changed: the sandbox blocks this method")
	return nil
}

func dictMethod(m *OrderedMap, name string) (any, bool) {
	method := func(f func(x *exec, a args) any) (any, bool) { return &function{name, f}, true }
	switch name {
	case "items":
		return method(func(x *exec, a args) any {
			a.only(0, name)
			x.charge(64 * len(m.keys))
			return m.items()
		})
	case "keys":
		return method(func(_ *exec, a args) any { a.only(0, name); return m.keys })
	case "values":
		return method(func(_ *exec, a args) any { a.only(0, name); return m.vals })
	case "copy":
		return method(func(x *exec, a args) any { a.only(0, name); return makeDict(x, args{pos: []any{m}}) })
	case "get":
		return method(func(_ *exec, a args) any {
			if len(a.pos) < 1 || len(a.pos) > 2 || a.named != nil && a.named.Len() > 0 {
				raise("TypeError", "get expected 1 to 2 arguments, got %d", len(a.pos))
			}
			if v, ok := m.get(a.pos[0]); ok {
				return v
			}
			if len(a.pos) == 2 {
				return a.pos[1]
			}
			return nil
		})
	}
	if contains(mutators, name) && name != "append" && name != "extend" && name != "insert" && name != "remove" &&
		name != "reverse" && name != "sort" {
		return method(blocked)
	}
	return nil, false
}

func listMethod(items []any, name string) (any, bool) {
	switch name {
	case "count":
		return &function{name, func(x *exec, a args) any {
			v, n := a.only(1, name)[0], int64(0)
			for _, e := range items {
				if x.equal(e, v, 0) {
					n++
				}
			}
			return n
		}}, true
	case "index":
		return &function{name, func(x *exec, a args) any {
			v := a.only(1, name)[0]
			for i, e := range items {
				if x.equal(e, v, 0) {
					return int64(i)
				}
			}
			raise("ValueError", "%s is not in list", x.repr(v))
			return nil
		}}, true
	case "copy":
		return &function{name, func(_ *exec, a args) any { a.only(0, name); return items }}, true
	}
	return nil, false
}
