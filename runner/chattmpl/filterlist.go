package chattmpl

import (
	"slices"
	"strings"
)

// sortKey makes text compare without regard to case.
func sortKey(v any, caseSensitive bool) any {
	if s, ok := v.(string); ok && !caseSensitive {
		return strings.ToLower(s)
	}
	return v
}

// sortBy sorts items by their keys, keeping the order of equal ones.
func (x *exec) sortBy(items []any, key func(any) any, reverse bool) []any {
	type pair struct{ key, item any }
	x.charge(48 * len(items))
	pairs := make([]pair, len(items))
	for i, it := range items {
		pairs[i] = pair{key(it), it}
	}
	slices.SortStableFunc(pairs, func(a, b pair) int {
		c, _ := x.order(a.key, b.key, "<", 0)
		if reverse {
			return -c
		}
		return c
	})
	out := make([]any, len(items))
	for i, p := range pairs {
		out[i] = p.item
	}
	return out
}

// multiKey returns a key function for "a,b.c"; nil is the item itself.
func (x *exec) multiKey(attribute any, caseSensitive bool) func(any) any {
	s, ok := attribute.(string)
	if !ok || !strings.Contains(s, ",") {
		get := x.getter(attribute)
		return func(v any) any { return sortKey(get(v), caseSensitive) }
	}
	var gets []func(any) any
	for _, p := range strings.Split(s, ",") {
		gets = append(gets, x.getter(p))
	}
	return func(v any) any {
		out := tuple{}
		for _, g := range gets {
			out = append(out, sortKey(g(v), caseSensitive))
		}
		return out
	}
}

func sortFilter(x *exec, in any, a args) any {
	v := a.bind("sort()", "reverse", "case_sensitive", "attribute")
	return x.sortBy(x.sequence(in), x.multiKey(v["attribute"], truth(v["case_sensitive"])), truth(v["reverse"]))
}

func dictSortFilter(x *exec, in any, a args) any {
	v := a.bind("dictsort()", "case_sensitive", "by", "reverse")
	m, ok := defined(in).(*OrderedMap)
	if !ok {
		raise("TypeError", "dictsort needs a mapping, got %s", typeName(in))
	}
	at := map[any]int{"key": 0, "value": 1}
	by := get(v, "by", "key")
	if by != any("key") && by != any("value") {
		raise("FilterArgumentError", "You can only sort by either \"key\" or \"value\"")
	}
	key := func(item any) any { return sortKey(item.(tuple)[at[by]], truth(v["case_sensitive"])) }
	return x.sortBy(m.items(), key, truth(v["reverse"]))
}

func uniqueFilter(x *exec, in any, a args) any {
	v := a.bind("unique()", "case_sensitive", "attribute")
	get := x.getter(v["attribute"])
	seen, out := NewMap(), []any{}
	for _, it := range x.sequence(in) {
		x.charge(64)
		key := sortKey(get(it), truth(v["case_sensitive"]))
		if _, ok := seen.get(key); !ok {
			seen.set(key, nil)
			out = append(out, it)
		}
	}
	return out
}

func groupByFilter(x *exec, in any, a args) any {
	v := a.bind("groupby()", "attribute", "default", "case_sensitive")
	get, sensitive := x.getter(v["attribute"]), truth(v["case_sensitive"])
	value := func(item any) any {
		got := get(item)
		if _, ok := got.(*undefined); ok && v["default"] != nil {
			return v["default"]
		}
		return got
	}
	key := func(item any) any { return sortKey(value(item), sensitive) }
	out := []any{}
	var last *group
	for _, it := range x.sortBy(x.sequence(in), key, false) {
		if last == nil || !x.equal(last.key, key(it), 0) {
			last = &group{key: key(it), name: value(it)}
			out = append(out, last)
		}
		last.list = append(last.list, it)
	}
	for i, g := range out {
		out[i] = tuple{g.(*group).name, g.(*group).list}
	}
	return out
}

type group struct {
	key, name any
	list      []any
}

func extremeFilter(name string, sign int) func(*exec, any, args) any {
	return func(x *exec, in any, a args) any {
		v := a.bind(name+"()", "case_sensitive", "attribute")
		get := x.getter(v["attribute"])
		var best, bestKey any
		items := x.sequence(in)
		for i, it := range items {
			key := sortKey(get(it), truth(v["case_sensitive"]))
			if i > 0 {
				c, ok := x.order(key, bestKey, "<", 0)
				if !ok || c*sign <= 0 {
					continue
				}
			}
			best, bestKey = it, key
		}
		if len(items) == 0 {
			return &undefined{msg: "No aggregated item, sequence was empty."}
		}
		return best
	}
}

func sumFilter(x *exec, in any, a args) any {
	v := a.bind("sum()", "attribute", "start")
	attr := x.getter(v["attribute"])
	total := get(v, "start", int64(0))
	for _, it := range x.sequence(in) {
		if _, isText := total.(string); isText {
			raise("TypeError", "sum() can't sum strings [use ''.join(seq) instead]")
		}
		total = x.binary("+", total, attr(it))
	}
	return total
}

func batchFilter(x *exec, in any, a args) any {
	v := a.bind("batch()", "linecount", "fill_with")
	n := wantSize(v["linecount"], "batch")
	if n < 1 {
		raise("ValueError", "linecount is %d, want at least 1", n)
	}
	items := x.sequence(in)
	x.charge(32 * len(items))
	out := []any{}
	for chunk := range slices.Chunk(items, n) {
		row := slices.Clone(chunk)
		if fill := v["fill_with"]; fill != nil {
			x.charge(16 * (n - len(row)))
			for len(row) < n {
				row = append(row, fill)
			}
		}
		out = append(out, row)
	}
	return out
}

func sliceFilter(x *exec, in any, a args) any {
	v := a.bind("slice()", "slices", "fill_with")
	n := wantSize(v["slices"], "slice")
	if n < 1 {
		raise("ZeroDivisionError", "integer division or modulo by zero")
	}
	items := x.sequence(in)
	x.charge(16*len(items) + 48*n)
	per, extra, at := len(items)/n, len(items)%n, 0
	out := []any{}
	for i := range n {
		size := per
		if i < extra {
			size++
		}
		row := slices.Clone(items[at : at+size])
		at += size
		if fill := v["fill_with"]; fill != nil && i >= extra && extra > 0 {
			row = append(row, fill)
		}
		out = append(out, append([]any{}, row...))
	}
	return out
}
