package chattmpl

import (
	"fmt"
	"math"
	"math/big"
	"strings"
	"unicode/utf16"
)

// jsonWriter writes JSON as Python's json.dumps does.
type jsonWriter struct {
	x        *exec
	b        strings.Builder
	ascii    bool
	sortKeys bool
	indent   string
	pretty   bool
	comma    string
	colon    string
}

func toJSONFilter(x *exec, in any, a args) any {
	v := a.bind("tojson()", "ensure_ascii", "indent", "separators", "sort_keys")
	w := &jsonWriter{x: x, ascii: truth(v["ensure_ascii"]), sortKeys: truth(v["sort_keys"]), comma: ", ", colon: ": "}
	switch n := v["indent"].(type) {
	case nil:
	case string:
		w.pretty, w.indent = true, n
	default:
		w.pretty = true
		w.indent = strings.Repeat(" ", min(1000, max(0, wantInt(n, "tojson"))))
	}
	if w.pretty {
		w.comma = ","
	}
	if s := v["separators"]; s != nil {
		pair := x.sequence(s)
		if len(pair) != 2 {
			raise("ValueError", "separators has %d elements, want 2", len(pair))
		}
		w.comma, w.colon = wantStr(pair[0], "tojson"), wantStr(pair[1], "tojson")
	}
	w.value(in, 0)
	x.charge(w.b.Len())
	return w.b.String()
}

func (w *jsonWriter) value(v any, depth int) {
	w.x.step()
	if depth > maxDepth || w.b.Len() > maxOutput {
		raise("LimitError", "value is too large for tojson")
	}
	switch t := v.(type) {
	case nil:
		w.b.WriteString("null")
	case bool:
		fmt.Fprintf(&w.b, "%t", t)
	case int64, *big.Int:
		fmt.Fprintf(&w.b, "%d", t)
	case float64:
		w.b.WriteString(jsonFloat(t))
	case string:
		w.str(t)
	case []any:
		w.list('[', ']', len(t), depth, func(i int) { w.value(t[i], depth+1) })
	case tuple:
		w.list('[', ']', len(t), depth, func(i int) { w.value(t[i], depth+1) })
	case *OrderedMap:
		m := t
		if w.sortKeys {
			m = NewMap()
			for _, k := range w.x.sortBy(t.keys, func(k any) any { return k }, false) {
				v, _ := t.get(k)
				m.set(k, v)
			}
		}
		w.list('{', '}', len(m.keys), depth, func(i int) {
			w.key(m.keys[i])
			w.b.WriteString(w.colon)
			w.value(m.vals[i], depth+1)
		})
	default:
		raise("TypeError", "Object of type %s is not JSON serializable", typeName(v))
	}
}

func jsonFloat(f float64) string {
	switch {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	}
	return floatRepr(f)
}

func (w *jsonWriter) list(open, end byte, n, depth int, item func(i int)) {
	w.b.WriteByte(open)
	for i := range n {
		if i > 0 {
			w.b.WriteString(w.comma)
		}
		w.newline(depth + 1)
		item(i)
	}
	if n > 0 {
		w.newline(depth)
	}
	w.b.WriteByte(end)
}

func (w *jsonWriter) newline(depth int) {
	if !w.pretty {
		return
	}
	w.b.WriteByte('\n')
	for range depth {
		w.b.WriteString(w.indent)
	}
}

func (w *jsonWriter) key(k any) {
	switch t := k.(type) {
	case string:
		w.str(t)
	case nil, bool, int64, *big.Int, float64:
		w.b.WriteByte('"')
		w.value(t, 0)
		w.b.WriteByte('"')
	default:
		raise("TypeError", "keys must be str, int, float, bool or None, not %s", typeName(k))
	}
}

func (w *jsonWriter) str(s string) {
	w.b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			w.b.WriteByte('\\')
			w.b.WriteRune(r)
		case r >= ' ' && (r <= '~' || !w.ascii):
			w.b.WriteRune(r)
		case r < ' ' && strings.ContainsRune("\n\r\t\f\b", r):
			w.b.WriteByte('\\')
			w.b.WriteByte("btn\x00fr"[r-'\b'])
		case r <= 0xFFFF:
			fmt.Fprintf(&w.b, `\u%04x`, r)
		default:
			hi, lo := utf16.EncodeRune(r)
			fmt.Fprintf(&w.b, `\u%04x\u%04x`, hi, lo)
		}
	}
	w.b.WriteByte('"')
}
