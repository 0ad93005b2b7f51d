package chattmpl

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// strMethods are the methods of strings.
var strMethods map[string]func(x *exec, s string, a args) any

func init() { // breaks the cycle with format
	strMethods = map[string]func(x *exec, s string, a args) any{
		"upper":      plain(upper),
		"lower":      plain(lower),
		"casefold":   plain(lower),
		"title":      plain(titleCase),
		"capitalize": plain(capitalize),
		"swapcase":   plain(swapCase),
		"strip":      stripMethod(true, true),
		"lstrip":     stripMethod(true, false),
		"rstrip":     stripMethod(false, true),
		"startswith": affix("startswith", strings.HasPrefix),
		"endswith":   affix("endswith", strings.HasSuffix),
		"split":      splitMethod(false),
		"rsplit":     splitMethod(true),
		"splitlines": splitLines,
		"partition":  partition(false),
		"rpartition": partition(true),
		"replace":    replaceMethod,
		"join":       joinMethod,
		"find":       findMethod("find", strings.Index, false),
		"rfind":      findMethod("rfind", strings.LastIndex, false),
		"index":      findMethod("index", strings.Index, true),
		"rindex":     findMethod("rindex", strings.LastIndex, true),
		"count":      countMethod,
		"format":     formatMethod,
		"zfill":      zfill,
		"ljust":      justify(0, 1),
		"rjust":      justify(1, 0),
		"center":     justify(1, 1),
		"isdigit":    every(unicode.IsDigit),
		"isdecimal":  every(unicode.IsDigit),
		"isnumeric":  every(unicode.IsNumber),
		"isalpha":    every(unicode.IsLetter),
		"isalnum":    every(func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }),
		"isspace":    every(isSpace),
		"isupper": func(_ *exec, s string, _ args) any {
			return s != strings.ToLower(s) && s == strings.ToUpper(s)
		},
		"islower": func(_ *exec, s string, _ args) any {
			return s != strings.ToUpper(s) && s == strings.ToLower(s)
		},
		"removeprefix": func(_ *exec, s string, a args) any {
			return strings.TrimPrefix(s, wantStr(a.only(1, "removeprefix")[0], "removeprefix"))
		},
		"removesuffix": func(_ *exec, s string, a args) any {
			return strings.TrimSuffix(s, wantStr(a.only(1, "removesuffix")[0], "removesuffix"))
		},
	}
}

func plain(f func(string) string) func(*exec, string, args) any {
	return func(x *exec, s string, a args) any {
		a.only(0, "method")
		x.charge(2 * len(s))
		return f(s)
	}
}

func every(f func(rune) bool) func(*exec, string, args) any {
	return func(_ *exec, s string, _ args) any {
		return s != "" && strings.IndexFunc(s, func(r rune) bool { return !f(r) }) < 0
	}
}

// wantStr returns v as a string or raises a TypeError.
func wantStr(v any, what string) string {
	s, ok := defined(v).(string)
	if !ok {
		raise("TypeError", "%s: argument must be str, not %s", what, typeName(v))
	}
	return s
}

// wantInt returns v as an integer, cut to a size that cannot overflow, or raises a TypeError.
func wantInt(v any, what string) int {
	n, ok := toInt(defined(v))
	if !ok {
		raise("TypeError", "%s: '%s' object cannot be interpreted as an integer", what, typeName(v))
	}
	return int(max(-1<<26, min(1<<26, n)))
}

// maxSize bounds widths and counts.
const maxSize = 1 << 20

// wantSize returns v as a width or count.
func wantSize(v any, what string) int {
	n := wantInt(v, what)
	if n > maxSize {
		raise("LimitError", "%s: size is %d, want at most %d", what, n, maxSize)
	}
	return n
}

// strip cuts white space, or the characters of chars, off the ends.
func strip(s string, chars any, left, right bool) string {
	cut := isSpace
	if chars != nil {
		set := wantStr(chars, "strip")
		cut = func(r rune) bool { return strings.ContainsRune(set, r) }
	}
	if left {
		s = strings.TrimLeftFunc(s, cut)
	}
	if right {
		s = strings.TrimRightFunc(s, cut)
	}
	return s
}

func stripMethod(left, right bool) func(*exec, string, args) any {
	return func(_ *exec, s string, a args) any {
		return strip(s, a.bind("strip()", "chars")["chars"], left, right)
	}
}

func affix(name string, f func(s, t string) bool) func(*exec, string, args) any {
	return func(_ *exec, s string, a args) any {
		if len(a.pos) < 1 || len(a.pos) > 3 {
			raise("TypeError", "%s expected 1 to 3 arguments, got %d", name, len(a.pos))
		}
		if len(a.pos) > 1 {
			s = window(s, a.pos[1:], name)
		}
		if list, ok := a.pos[0].(tuple); ok {
			for _, t := range list {
				if f(s, wantStr(t, name)) {
					return true
				}
			}
			return false
		}
		return f(s, wantStr(a.pos[0], name))
	}
}

// window returns the part of s from one index to another.
func window(s string, at []any, name string) string {
	rs := []rune(s)
	part := []int{0, len(rs)}
	for i, v := range at {
		if v == nil {
			continue
		}
		n := wantInt(v, name)
		if n < 0 {
			n += len(rs)
		}
		part[i] = max(0, min(len(rs), n))
	}
	if part[0] > part[1] {
		return ""
	}
	return string(rs[part[0]:part[1]])
}

func strList(x *exec, parts []string) []any {
	x.charge(32 * len(parts))
	out := make([]any, len(parts))
	for i, p := range parts {
		out[i] = p
	}
	return out
}

func splitMethod(right bool) func(*exec, string, args) any {
	return func(x *exec, s string, a args) any {
		v := a.bind("split()", "sep", "maxsplit")
		limit := -1
		if m, ok := v["maxsplit"]; ok {
			limit = wantInt(m, "split")
		}
		x.charge(16 * len(s))
		if v["sep"] == nil {
			return strList(x, splitSpaces(s, limit, right))
		}
		sep := wantStr(v["sep"], "split")
		if sep == "" {
			raise("ValueError", "empty separator")
		}
		if !right || limit < 0 {
			if limit >= 0 {
				limit++
			}
			return strList(x, strings.SplitN(s, sep, limit))
		}
		var parts []string
		for ; limit > 0; limit-- {
			i := strings.LastIndex(s, sep)
			if i < 0 {
				break
			}
			parts = append([]string{s[i+len(sep):]}, parts...)
			s = s[:i]
		}
		return strList(x, append([]string{s}, parts...))
	}
}

// splitSpaces splits at runs of white space.
func splitSpaces(s string, limit int, right bool) []string {
	if limit < 0 {
		return strings.FieldsFunc(s, isSpace)
	}
	var out []string
	if right {
		for s = strings.TrimRightFunc(s, isSpace); s != ""; limit-- {
			i := strings.LastIndexFunc(s, isSpace)
			if i < 0 || limit == 0 {
				return append([]string{s}, out...)
			}
			_, n := utf8.DecodeRuneInString(s[i:])
			out = append([]string{s[i+n:]}, out...)
			s = strings.TrimRightFunc(s[:i], isSpace)
		}
		return out
	}
	for s = strings.TrimLeftFunc(s, isSpace); s != ""; limit-- {
		i := strings.IndexFunc(s, isSpace)
		if i < 0 || limit == 0 {
			return append(out, s)
		}
		out = append(out, s[:i])
		s = strings.TrimLeftFunc(s[i:], isSpace)
	}
	return out
}

func splitLines(x *exec, s string, a args) any {
	keep := truth(a.bind("splitlines()", "keepends")["keepends"])
	var out []string
	for s != "" {
		i := strings.IndexFunc(s, func(r rune) bool {
			return r >= '\n' && r <= '\r' || r >= 0x1c && r <= 0x1e || r == 0x85 || r == 0x2028 || r == 0x2029
		})
		if i < 0 {
			out = append(out, s)
			break
		}
		_, n := utf8.DecodeRuneInString(s[i:])
		if strings.HasPrefix(s[i:], "\r\n") {
			n = 2
		}
		if keep {
			out = append(out, s[:i+n])
		} else {
			out = append(out, s[:i])
		}
		s = s[i+n:]
	}
	return strList(x, out)
}

func partition(right bool) func(*exec, string, args) any {
	return func(_ *exec, s string, a args) any {
		sep := wantStr(a.only(1, "partition")[0], "partition")
		if sep == "" {
			raise("ValueError", "empty separator")
		}
		i := strings.Index(s, sep)
		if right {
			i = strings.LastIndex(s, sep)
		}
		switch {
		case i >= 0:
			return tuple{s[:i], sep, s[i+len(sep):]}
		case right:
			return tuple{"", "", s}
		}
		return tuple{s, "", ""}
	}
}

func (x *exec) replace(s, from, to string, count int) string {
	n := strings.Count(s, from)
	if count >= 0 {
		n = min(n, count)
	}
	if len(to) > 0 && n > maxBytes/len(to) {
		raise("LimitError", "replacing makes over %d bytes", maxBytes)
	}
	x.charge(len(s) + n*len(to))
	return strings.Replace(s, from, to, n)
}

func replaceMethod(x *exec, s string, a args) any {
	if len(a.pos) < 2 || len(a.pos) > 3 {
		raise("TypeError", "replace expected 2 to 3 arguments, got %d", len(a.pos))
	}
	count := -1
	if len(a.pos) == 3 {
		count = wantInt(a.pos[2], "replace")
	}
	return x.replace(s, wantStr(a.pos[0], "replace"), wantStr(a.pos[1], "replace"), count)
}

func joinMethod(x *exec, s string, a args) any {
	items := x.sequence(defined(a.only(1, "join")[0]))
	parts := make([]string, len(items))
	for i, it := range items {
		t, ok := it.(string)
		if !ok {
			raise("TypeError", "sequence item %d: expected str instance, %s found", i, typeName(it))
		}
		parts[i] = t
		x.charge(len(t) + len(s))
	}
	return strings.Join(parts, s)
}

func findMethod(name string, f func(s, t string) int, must bool) func(*exec, string, args) any {
	return func(_ *exec, s string, a args) any {
		if len(a.pos) < 1 || len(a.pos) > 3 {
			raise("TypeError", "%s expected 1 to 3 arguments, got %d", name, len(a.pos))
		}
		offset, in := 0, s
		if len(a.pos) > 1 {
			in = window(s, a.pos[1:], name)
			offset = utf8.RuneCountInString(s) - utf8.RuneCountInString(window(s, a.pos[1:2], name))
		}
		i := f(in, wantStr(a.pos[0], name))
		if i < 0 && must {
			raise("ValueError", "substring not found")
		}
		if i < 0 {
			return int64(-1)
		}
		return int64(offset + utf8.RuneCountInString(in[:i]))
	}
}

func countMethod(_ *exec, s string, a args) any {
	if len(a.pos) < 1 || len(a.pos) > 3 {
		raise("TypeError", "count expected 1 to 3 arguments, got %d", len(a.pos))
	}
	return int64(strings.Count(window(s, a.pos[1:], "count"), wantStr(a.pos[0], "count")))
}

func zfill(x *exec, s string, a args) any {
	n := wantSize(a.only(1, "zfill")[0], "zfill") - utf8.RuneCountInString(s)
	if n <= 0 {
		return s
	}
	x.charge(n)
	if s != "" && (s[0] == '-' || s[0] == '+') {
		return s[:1] + strings.Repeat("0", n) + s[1:]
	}
	return strings.Repeat("0", n) + s
}

func justify(left, right int) func(*exec, string, args) any {
	return func(x *exec, s string, a args) any {
		v := a.bind("justify", "width", "fillchar")
		fill := " "
		if f, ok := v["fillchar"]; ok {
			if fill = wantStr(f, "justify"); utf8.RuneCountInString(fill) != 1 {
				raise("TypeError", "The fill character must be exactly one character long")
			}
		}
		width := wantSize(v["width"], "justify")
		pad := width - utf8.RuneCountInString(s)
		if pad <= 0 {
			return s
		}
		x.charge(pad * len(fill))
		before := pad * left
		if left > 0 && right > 0 {
			before = pad/2 + pad&width&1
		}
		return strings.Repeat(fill, before) + s + strings.Repeat(fill, pad-before)
	}
}

func capitalize(s string) string {
	_, n := utf8.DecodeRuneInString(s)
	return strings.ToTitle(s[:n]) + strings.ToLower(s[n:])
}

func titleCase(s string) string {
	inWord := false
	return strings.Map(func(r rune) rune {
		was := inWord
		inWord = unicode.IsLetter(r)
		if was {
			return unicode.ToLower(r)
		}
		return unicode.ToTitle(r)
	}, s)
}

func swapCase(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsUpper(r) {
			return unicode.ToLower(r)
		}
		return unicode.ToUpper(r)
	}, s)
}

// formatMethod is str.format with {}, {0} and {name} without format specifications.
func formatMethod(x *exec, s string, a args) any {
	var b strings.Builder
	next := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if (c == '{' || c == '}') && i+1 < len(s) && s[i+1] == c {
			b.WriteByte(c)
			i++
			continue
		}
		if c != '{' {
			b.WriteByte(c)
			continue
		}
		end := strings.IndexByte(s[i:], '}')
		if end < 0 {
			raise("ValueError", "expected '}' before end of string")
		}
		b.WriteString(x.str(formatField(s[i+1:i+end], &next, a)))
		x.charge(b.Len() / 16)
		i += end
	}
	x.charge(b.Len())
	return b.String()
}

func formatField(field string, next *int, a args) any {
	if strings.ContainsAny(field, ":!.[") {
		raise("ValueError", "format field {%s} is not supported", field)
	}
	i := *next
	switch {
	case field == "":
		*next++
	case isDigit(field[0]):
		i = 0
		for _, c := range []byte(field) {
			if !isDigit(c) || i > 1<<20 {
				raise("ValueError", "format field {%s} is not supported", field)
			}
			i = i*10 + int(c-'0')
		}
	default:
		if a.named != nil {
			if v, ok := a.named.get(field); ok {
				return v
			}
		}
		raise("KeyError", "%s", pyRepr(field))
	}
	if i >= len(a.pos) {
		raise("IndexError", "Replacement index %d out of range for positional args tuple", i)
	}
	return a.pos[i]
}
