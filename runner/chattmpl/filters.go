package chattmpl

import (
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// filters are all filters by name.
var filters map[string]func(x *exec, in any, a args) any

func init() { // breaks the cycle with map, which applies filters
	filters = map[string]func(x *exec, in any, a args) any{
		"abs":        absFilter,
		"attr":       attrFilter,
		"batch":      batchFilter,
		"capitalize": textFilter(capitalize),
		"center":     centerFilter,
		"count":      lengthFilter,
		"d":          defaultFilter,
		"default":    defaultFilter,
		"dictsort":   dictSortFilter,
		"e":          textFilter(escapeHTML),
		"escape":     textFilter(escapeHTML),
		"first":      firstFilter,
		"float":      floatFilter,
		"format":     formatFilter,
		"groupby":    groupByFilter,
		"indent":     indentFilter,
		"int":        intFilter,
		"items":      itemsFilter,
		"join":       joinFilter,
		"last":       lastFilter,
		"length":     lengthFilter,
		"list":       func(x *exec, in any, _ args) any { return slices.Clone(x.sequence(in)) },
		"lower":      textFilter(lower),
		"map":        mapFilter,
		"max":        extremeFilter("max", 1),
		"min":        extremeFilter("min", -1),
		"reject":     selectFilter(false, false),
		"rejectattr": selectFilter(true, false),
		"replace":    replaceFilter,
		"reverse":    reverseFilter,
		"round":      roundFilter,
		"safe":       textFilter(func(s string) string { return s }),
		"select":     selectFilter(false, true),
		"selectattr": selectFilter(true, true),
		"slice":      sliceFilter,
		"sort":       sortFilter,
		"string":     textFilter(func(s string) string { return s }),
		"sum":        sumFilter,
		"title":      textFilter(titleFilter),
		"tojson":     toJSONFilter,
		"trim":       trimFilter,
		"truncate":   truncateFilter,
		"unique":     uniqueFilter,
		"upper":      textFilter(upper),
		"urlencode":  textFilter(urlEncode),
		"wordcount":  func(x *exec, in any, _ args) any { return int64(len(strings.FieldsFunc(x.str(in), isNotWord))) },
	}
}

func (x *exec) applyFilter(name string, in any, a args) any {
	f, ok := filters[name]
	if !ok {
		raise("TemplateRuntimeError", "No filter named '%s' found.", name)
	}
	x.step()
	return f(x, in, a)
}

// textFilter makes a filter of a function on text.
func textFilter(f func(string) string) func(*exec, any, args) any {
	return func(x *exec, in any, a args) any {
		a.only(0, "filter")
		s := x.str(in)
		x.charge(2 * len(s))
		return f(s)
	}
}

func get(v map[string]any, name string, byDefault any) any {
	if x, ok := v[name]; ok {
		return x
	}
	return byDefault
}

func defaultFilter(_ *exec, in any, a args) any {
	v := a.bind("default()", "default_value", "boolean")
	if _, ok := in.(*undefined); ok || truth(v["boolean"]) && !truth(in) {
		return get(v, "default_value", "")
	}
	return in
}

func lengthFilter(_ *exec, in any, a args) any {
	a.only(0, "length")
	switch t := in.(type) {
	case string:
		return int64(utf8.RuneCountInString(t))
	case []any:
		return int64(len(t))
	case tuple:
		return int64(len(t))
	case *OrderedMap:
		return int64(len(t.keys))
	case *rangeValue:
		return int64(t.n)
	case *loopObject:
		return int64(len(t.items))
	case *undefined:
		return int64(0)
	}
	raise("TypeError", "object of type '%s' has no len()", typeName(in))
	return nil
}

func trimFilter(x *exec, in any, a args) any {
	return strip(x.str(in), a.bind("trim()", "chars")["chars"], true, true)
}

func replaceFilter(x *exec, in any, a args) any {
	v := a.bind("replace()", "old", "new", "count")
	if _, ok := v["new"]; !ok {
		raise("TypeError", "replace() takes at least 2 arguments")
	}
	count := -1
	if n := v["count"]; n != nil {
		count = wantInt(n, "replace")
	}
	return x.replace(x.str(in), x.str(v["old"]), x.str(v["new"]), count)
}

func firstFilter(x *exec, in any, a args) any {
	a.only(0, "first")
	if items := x.sequence(in); len(items) > 0 {
		return items[0]
	}
	return &undefined{msg: "No first item, sequence was empty."}
}

func lastFilter(x *exec, in any, a args) any {
	a.only(0, "last")
	if items := x.sequence(in); len(items) > 0 {
		return items[len(items)-1]
	}
	return &undefined{msg: "No last item, sequence was empty."}
}

func reverseFilter(x *exec, in any, a args) any {
	a.only(0, "reverse")
	items := slices.Clone(x.sequence(in))
	x.charge(16 * len(items))
	slices.Reverse(items)
	if _, ok := in.(string); !ok {
		return items
	}
	b := []byte{}
	for _, c := range items {
		b = append(b, c.(string)...)
	}
	return string(b)
}

func joinFilter(x *exec, in any, a args) any {
	v := a.bind("join()", "d", "attribute")
	sep := x.str(get(v, "d", ""))
	items := x.sequence(in)
	attr := x.getter(v["attribute"])
	parts := make([]string, len(items))
	for i, it := range items {
		parts[i] = x.str(attr(it))
		x.charge(len(parts[i]) + len(sep))
	}
	return strings.Join(parts, sep)
}

// getter returns a function that takes an attribute such as "a.b.0" off a value; nil is the value itself.
func (x *exec) getter(attribute any) func(any) any {
	if attribute == nil {
		return func(v any) any { return v }
	}
	if _, ok := attribute.(string); !ok {
		return func(v any) any { return x.getItem(v, attribute) }
	}
	parts := strings.Split(attribute.(string), ".")
	return func(v any) any {
		for _, p := range parts {
			if n, err := strconv.ParseInt(p, 10, 64); err == nil && n >= 0 {
				v = x.getItem(v, n)
			} else {
				v = x.getItem(v, p)
			}
		}
		return v
	}
}

func mapFilter(x *exec, in any, a args) any {
	var f func(any) any
	if len(a.pos) == 0 {
		v := a.bind("map()", "attribute", "default")
		attr, ok := v["attribute"]
		if !ok {
			raise("FilterArgumentError", "map requires a filter argument")
		}
		get, def := x.getter(attr), v["default"]
		f = func(item any) any {
			got := get(item)
			if _, ok := got.(*undefined); ok && def != nil {
				return def
			}
			return got
		}
	} else {
		name := wantStr(a.pos[0], "map")
		rest := args{a.pos[1:], a.named}
		f = func(item any) any { return x.applyFilter(name, item, rest) }
	}
	items := x.sequence(in)
	x.charge(16 * len(items))
	out := make([]any, len(items))
	for i, it := range items {
		out[i] = f(it)
	}
	return out
}

// selectFilter makes select, reject, selectattr and rejectattr.
func selectFilter(byAttr, keep bool) func(*exec, any, args) any {
	return func(x *exec, in any, a args) any {
		get := x.getter(nil)
		if byAttr {
			if len(a.pos) == 0 {
				raise("FilterArgumentError", "Missing parameter for attribute name")
			}
			get = x.getter(a.pos[0])
			a.pos = a.pos[1:]
		}
		test := truth
		if len(a.pos) > 0 {
			name := wantStr(a.pos[0], "select")
			rest := args{a.pos[1:], a.named}
			test = func(v any) bool { return x.applyTest(name, v, rest) }
		}
		out := []any{}
		for _, it := range x.sequence(in) {
			x.step()
			if test(get(it)) == keep {
				out = append(out, it)
			}
		}
		return out
	}
}

func itemsFilter(x *exec, in any, a args) any {
	a.only(0, "items")
	switch m := in.(type) {
	case *undefined:
		return []any{}
	case *OrderedMap:
		x.charge(64 * len(m.keys))
		return m.items()
	}
	raise("TypeError", "Can only get item pairs from a mapping.")
	return nil
}

func attrFilter(x *exec, in any, a args) any {
	name := x.str(a.only(1, "attr")[0])
	if v, ok := x.attribute(defined(in), name); ok {
		return v
	}
	return &undefined{msg: "'" + describe(in) + "' has no attribute '" + name + "'"}
}

func absFilter(_ *exec, in any, a args) any {
	a.only(0, "abs")
	defined(in)
	if f, ok := in.(float64); ok {
		return math.Abs(f)
	}
	if _, ok := toFloat(in); !ok {
		raise("TypeError", "bad operand type for abs(): '%s'", typeName(in))
	}
	return normalInt(new(big.Int).Abs(toBig(in)))
}

// parseInt is Python's int() of a string.
func parseInt(s string, base int) (any, bool) {
	s = strings.TrimFunc(s, isSpace)
	if len(s) > 4300 || base < 0 || base == 1 || base > 36 {
		return nil, false
	}
	digits := strings.ToLower(strings.TrimLeft(s, "+-"))
	if prefix := map[int]string{16: "0x", 8: "0o", 2: "0b"}[base]; prefix != "" && strings.HasPrefix(digits, prefix) {
		s = strings.Replace(strings.ToLower(s), prefix, "", 1)
	}
	if base != 0 {
		s = strings.ReplaceAll(s, "_", "")
	}
	n, ok := new(big.Int).SetString(s, base)
	if !ok {
		return nil, false
	}
	return normalInt(n), true
}

func parseFloat(s string) (float64, bool) {
	s = strings.TrimFunc(s, isSpace)
	if strings.ContainsAny(s, "xXpP") {
		return 0, false
	}
	f, err := strconv.ParseFloat(strings.ReplaceAll(s, "_", ""), 64)
	return f, err == nil || isRange(err)
}

func intFilter(_ *exec, in any, a args) any {
	v := a.bind("int()", "default", "base")
	def := get(v, "default", int64(0))
	defined(in)
	f, isNum := toFloat(in)
	if s, ok := in.(string); ok {
		if n, ok := parseInt(s, wantInt(get(v, "base", int64(10)), "int")); ok {
			return n
		}
		if f, isNum = parseFloat(s); !isNum {
			return def
		}
	} else if _, isFloat := in.(float64); isNum && !isFloat {
		return normalInt(toBig(in))
	}
	if !isNum || math.IsNaN(f) || math.IsInf(f, 0) {
		return def
	}
	n, _ := big.NewFloat(f).Int(nil)
	return normalInt(n)
}

func floatFilter(_ *exec, in any, a args) any {
	def := get(a.bind("float()", "default"), "default", 0.0)
	if f, ok := toFloat(defined(in)); ok {
		return f
	}
	if s, ok := in.(string); ok {
		if f, ok := parseFloat(s); ok {
			return f
		}
	}
	return def
}

func roundFilter(_ *exec, in any, a args) any {
	v := a.bind("round()", "precision", "method")
	p := wantInt(get(v, "precision", int64(0)), "round")
	method := get(v, "method", "common")
	f, ok := toFloat(defined(in))
	if !ok {
		raise("TypeError", "type %s doesn't define __round__ method", typeName(in))
	}
	switch method {
	case "common":
		if _, isFloat := in.(float64); !isFloat && p >= 0 {
			return normalInt(toBig(in))
		}
		if p >= 0 {
			r, _ := strconv.ParseFloat(strconv.FormatFloat(f, 'f', min(p, 400), 64), 64)
			return r
		}
		scale := math.Pow(10, float64(-p))
		return math.RoundToEven(f/scale) * scale
	case "ceil":
		return math.Ceil(f*math.Pow(10, float64(p))) / math.Pow(10, float64(p))
	case "floor":
		return math.Floor(f*math.Pow(10, float64(p))) / math.Pow(10, float64(p))
	}
	raise("FilterArgumentError", "method must be common, ceil or floor")
	return nil
}

func formatFilter(x *exec, in any, a args) any {
	if a.named != nil && a.named.Len() > 0 {
		raise("FilterArgumentError", "named arguments of format are not supported")
	}
	return x.format(x.str(in), tuple(a.pos))
}
