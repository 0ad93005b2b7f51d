package chattmpl

import (
	"fmt"
	"math"
	"math/big"
	"strings"
)

func (e *unaryExpr) eval(x *exec, s *scope) any {
	v := e.in.eval(x, s)
	if e.op == "not" {
		return !truth(v)
	}
	x.line = e.line
	defined(v)
	switch t := v.(type) {
	case bool, int64, *big.Int:
		if e.op == "-" {
			return arithmetic("-", int64(0), t)
		}
		return arithmetic("+", int64(0), t)
	case float64:
		if e.op == "-" {
			return -t
		}
		return t
	}
	raise("TypeError", "bad operand type for unary %s: '%s'", e.op, typeName(v))
	return nil
}

func (e *binaryExpr) eval(x *exec, s *scope) any {
	l, r := e.left.eval(x, s), e.right.eval(x, s)
	x.line = e.line
	if e.op == "~" {
		a, b := x.str(l), x.str(r)
		x.charge(len(a) + len(b))
		return a + b
	}
	return x.binary(e.op, l, r)
}

func (x *exec) binary(op string, l, r any) any {
	defined(l)
	if s, ok := l.(string); ok && op == "%" {
		return x.format(s, r)
	}
	defined(r)
	if _, ok := toFloat(l); ok {
		if _, ok := toFloat(r); ok {
			return arithmetic(op, l, r)
		}
	}
	switch op {
	case "+":
		return x.join(l, r)
	case "*":
		if n, ok := toInt(r); ok {
			return x.repeat(l, n, r)
		}
		if n, ok := toInt(l); ok {
			return x.repeat(r, n, l)
		}
	}
	badOperands(op, l, r)
	return nil
}

func badOperands(op string, l, r any) {
	if op == "**" {
		op = "** or pow()"
	}
	raise("TypeError", "unsupported operand type(s) for %s: '%s' and '%s'", op, typeName(l), typeName(r))
}

// join is + of strings, lists and tuples.
func (x *exec) join(l, r any) any {
	switch a := l.(type) {
	case string:
		b, ok := r.(string)
		if !ok {
			raise("TypeError", "can only concatenate str (not \"%s\") to str", typeName(r))
		}
		x.charge(len(a) + len(b))
		return a + b
	case []any:
		b, ok := r.([]any)
		if !ok {
			raise("TypeError", "can only concatenate list (not \"%s\") to list", typeName(r))
		}
		x.charge(16 * (len(a) + len(b)))
		return append(append(make([]any, 0, len(a)+len(b)), a...), b...)
	case tuple:
		b, ok := r.(tuple)
		if !ok {
			raise("TypeError", "can only concatenate tuple (not \"%s\") to tuple", typeName(r))
		}
		x.charge(16 * (len(a) + len(b)))
		return append(append(make(tuple, 0, len(a)+len(b)), a...), b...)
	}
	badOperands("+", l, r)
	return nil
}

// repeat is v * n.
func (x *exec) repeat(v any, n int64, other any) any {
	n = max(n, 0)
	size := func(unit int) int {
		if unit > 0 && n > int64(maxBytes/unit) {
			raise("LimitError", "repeating makes over %d bytes", maxBytes)
		}
		x.charge(unit * int(n))
		return int(n)
	}
	switch t := v.(type) {
	case string:
		if t == "" {
			return t
		}
		return strings.Repeat(t, size(len(t)))
	case []any:
		return repeated(t, size(16*len(t)))
	case tuple:
		return tuple(repeated(t, size(16*len(t))))
	}
	badOperands("*", v, other)
	return nil
}

func repeated(items []any, n int) []any {
	if len(items) == 0 {
		return []any{}
	}
	out := make([]any, 0, len(items)*n)
	for range n {
		out = append(out, items...)
	}
	return out
}

func toBig(v any) *big.Int {
	if b, ok := v.(*big.Int); ok {
		return b
	}
	n, _ := toInt(v)
	return big.NewInt(n)
}

// arithmetic computes with numbers.
func arithmetic(op string, l, r any) any {
	_, lf := l.(float64)
	_, rf := r.(float64)
	if lf || rf || op == "/" {
		a, _ := toFloat(l)
		b, _ := toFloat(r)
		return floatOp(op, a, b)
	}
	a, b := toBig(l), toBig(r)
	if a.BitLen() > 1<<14 || b.BitLen() > 1<<14 {
		raise("LimitError", "integer is too large")
	}
	z := new(big.Int)
	switch op {
	case "+":
		z.Add(a, b)
	case "-":
		z.Sub(a, b)
	case "*":
		z.Mul(a, b)
	case "//", "%":
		if b.Sign() == 0 {
			raise("ZeroDivisionError", "integer division or modulo by zero")
		}
		q, m := new(big.Int).QuoRem(a, b, z)
		if m.Sign() != 0 && m.Sign() != b.Sign() {
			q.Sub(q, big.NewInt(1))
			m.Add(m, b)
		}
		if op == "//" {
			z = q
		}
	case "**":
		if b.Sign() < 0 {
			f, _ := toFloat(l)
			g, _ := toFloat(r)
			return floatOp(op, f, g)
		}
		if !b.IsInt64() || b.Int64() > 1<<14 || int64(a.BitLen())*b.Int64() > 1<<14 && a.BitLen() > 1 {
			raise("LimitError", "integer power is too large")
		}
		z.Exp(a, b, nil)
	default:
		badOperands(op, l, r)
	}
	return normalInt(z)
}

func floatOp(op string, a, b float64) any {
	switch op {
	case "+":
		return a + b
	case "-":
		return a - b
	case "*":
		return a * b
	case "**":
		if a == 0 && b < 0 {
			raise("ZeroDivisionError", "0.0 cannot be raised to a negative power")
		}
		return math.Pow(a, b)
	}
	if b == 0 {
		raise("ZeroDivisionError", "division by zero")
	}
	if op == "/" {
		return a / b
	}
	m := math.Mod(a, b)
	if m != 0 && (m < 0) != (b < 0) {
		m += b
	}
	if op == "%" {
		return m
	}
	return math.Floor((a-m)/b + 0.5)
}

func (e *compareExpr) eval(x *exec, s *scope) any {
	left := e.first.eval(x, s)
	for i, op := range e.ops {
		right := e.rest[i].eval(x, s)
		x.line = e.line
		if !x.compare(op, left, right) {
			return false
		}
		left = right
	}
	return true
}

func (x *exec) compare(op string, l, r any) bool {
	switch op {
	case "==":
		return x.equal(l, r, 0)
	case "!=":
		return !x.equal(l, r, 0)
	case "in":
		return x.contains(r, l)
	case "not in":
		return !x.contains(r, l)
	}
	c, ok := x.order(l, r, op, 0)
	if !ok {
		return false // not a number
	}
	switch op {
	case "<":
		return c < 0
	case "<=":
		return c <= 0
	case ">":
		return c > 0
	}
	return c >= 0
}

// equal is Python's ==.
func (x *exec) equal(l, r any, depth int) bool {
	x.step()
	if depth > maxDepth {
		raise("RecursionError", "values are nested over %d levels", maxDepth)
	}
	switch a := l.(type) {
	case nil:
		return r == nil
	case string:
		b, ok := r.(string)
		return ok && a == b
	case []any:
		b, ok := r.([]any)
		return ok && x.equalLists(a, b, depth)
	case tuple:
		b, ok := r.(tuple)
		return ok && x.equalLists(a, b, depth)
	case *OrderedMap:
		b, ok := r.(*OrderedMap)
		if !ok || len(a.keys) != len(b.keys) {
			return false
		}
		for i, k := range a.keys {
			if v, ok := b.get(k); !ok || !x.equal(a.vals[i], v, depth+1) {
				return false
			}
		}
		return true
	case *undefined:
		_, ok := r.(*undefined)
		return ok
	}
	if _, ok := toFloat(l); ok {
		if _, ok := toFloat(r); ok {
			c, ok := numberOrder(l, r)
			return ok && c == 0
		}
		return false
	}
	return canCompare(l, r) && l == r
}

// canCompare reports whether l == r cannot panic.
func canCompare(l, r any) bool {
	for _, v := range []any{l, r} {
		switch v.(type) {
		case []any, tuple:
			return false
		}
	}
	return true
}

func (x *exec) equalLists(a, b []any, depth int) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !x.equal(a[i], b[i], depth+1) {
			return false
		}
	}
	return true
}

func numberOrder(l, r any) (int, bool) {
	_, lf := l.(float64)
	_, rf := r.(float64)
	if !lf && !rf {
		return toBig(l).Cmp(toBig(r)), true
	}
	a, _ := toFloat(l)
	b, _ := toFloat(r)
	switch {
	case a < b:
		return -1, true
	case a > b:
		return 1, true
	}
	return 0, a == b
}

// order compares values that have an order; ok is false for comparisons with NaN.
func (x *exec) order(l, r any, op string, depth int) (c int, ok bool) {
	x.step()
	defined(l)
	defined(r)
	if _, isNum := toFloat(l); isNum {
		if _, isNum := toFloat(r); isNum {
			return numberOrder(l, r)
		}
	}
	switch a := l.(type) {
	case string:
		if b, ok := r.(string); ok {
			return strings.Compare(a, b), true
		}
	case []any:
		if b, ok := r.([]any); ok {
			return x.orderLists(a, b, op, depth)
		}
	case tuple:
		if b, ok := r.(tuple); ok {
			return x.orderLists(a, b, op, depth)
		}
	}
	raise("TypeError", "'%s' not supported between instances of '%s' and '%s'", op, typeName(l), typeName(r))
	return 0, false
}

func (x *exec) orderLists(a, b []any, op string, depth int) (int, bool) {
	if depth > maxDepth {
		raise("RecursionError", "values are nested over %d levels", maxDepth)
	}
	for i := range a {
		if i >= len(b) {
			return 1, true
		}
		if !x.equal(a[i], b[i], 0) {
			return x.order(a[i], b[i], op, depth+1)
		}
	}
	if len(a) < len(b) {
		return -1, true
	}
	return 0, true
}

// contains is "v in in".
func (x *exec) contains(in, v any) bool {
	switch t := in.(type) {
	case string:
		s, ok := v.(string)
		if !ok {
			raise("TypeError", "'in <string>' requires string as left operand, not %s", typeName(v))
		}
		return strings.Contains(t, s)
	case *OrderedMap:
		_, ok := t.get(v)
		return ok
	case []any, tuple, *rangeValue, *undefined:
		for _, e := range x.sequence(t) {
			if x.equal(e, v, 0) {
				return true
			}
		}
		return false
	}
	raise("TypeError", "argument of type '%s' is not iterable", typeName(in))
	return false
}

// format is s % v.
func (x *exec) format(s string, v any) string {
	vals, isTuple := v.(tuple)
	if !isTuple {
		vals = tuple{v}
	}
	var b strings.Builder
	used := 0
	for i := 0; i < len(s); i++ {
		if s[i] != '%' {
			b.WriteByte(s[i])
			continue
		}
		spec := "%"
		for i++; i < len(s) && strings.IndexByte("0123456789.+- #", s[i]) >= 0 && len(spec) < 8; i++ {
			spec += s[i : i+1]
		}
		if i >= len(s) {
			raise("ValueError", "incomplete format")
		}
		if s[i] == '%' {
			b.WriteByte('%')
			continue
		}
		if used >= len(vals) {
			raise("TypeError", "not enough arguments for format string")
		}
		b.WriteString(x.formatOne(spec, s[i], vals[used]))
		used++
		x.charge(b.Len() / 16)
	}
	if _, isMap := v.(*OrderedMap); used < len(vals) && !isMap {
		raise("TypeError", "not all arguments converted during string formatting")
	}
	x.charge(b.Len())
	return b.String()
}

func (x *exec) formatOne(spec string, verb byte, v any) string {
	if strings.TrimLeft(spec, "%+- #0") > "1000" && len(spec) > 4 {
		raise("LimitError", "format %q is too wide", spec)
	}
	switch verb {
	case 's':
		return fmt.Sprintf(spec+"s", x.str(v))
	case 'r':
		return fmt.Sprintf(spec+"s", x.repr(v))
	case 'd', 'i', 'x', 'X', 'o':
		if f, ok := v.(float64); ok && verb != 'x' && verb != 'X' && verb != 'o' {
			v = int64(f)
		}
		if _, ok := toFloat(defined(v)); !ok {
			raise("TypeError", "%%%c format: a real number is required, not %s", verb, typeName(v))
		}
		if verb == 'i' {
			verb = 'd'
		}
		return fmt.Sprintf(spec+string(verb), toBig(v))
	case 'f', 'F', 'e', 'E', 'g', 'G':
		f, ok := toFloat(defined(v))
		if !ok {
			raise("TypeError", "must be real number, not %s", typeName(v))
		}
		if verb == 'g' && !strings.Contains(spec, ".") {
			spec += ".6"
		}
		return fmt.Sprintf(spec+string(verb), f)
	}
	raise("ValueError", "unsupported format character '%c'", verb)
	return ""
}
