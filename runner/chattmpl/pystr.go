package chattmpl

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// str is Python's str() for values that are bounded already.
func str(v any) string { return (&exec{}).str(v) }

// pyRepr is Python's repr() of a short value.
func pyRepr(v any) string { return (&exec{}).repr(v) }

// str is Python's str().
func (x *exec) str(v any) string {
	switch t := v.(type) {
	case string:
		return t
	case *undefined:
		return ""
	}
	return x.repr(v)
}

// repr is Python's repr().
func (x *exec) repr(v any) string {
	var b strings.Builder
	x.writeRepr(&b, v, 0)
	x.charge(b.Len())
	return b.String()
}

func (x *exec) writeRepr(b *strings.Builder, v any, depth int) {
	x.step()
	if depth > maxDepth || b.Len() > maxOutput {
		raise("LimitError", "value is too large to be written")
	}
	switch t := v.(type) {
	case nil:
		b.WriteString("None")
	case bool:
		if t {
			b.WriteString("True")
		} else {
			b.WriteString("False")
		}
	case int64:
		b.WriteString(strconv.FormatInt(t, 10))
	case *big.Int:
		b.WriteString(t.String())
	case float64:
		b.WriteString(floatRepr(t))
	case string:
		writeStrRepr(b, t)
	case []any:
		x.writeList(b, "[", t, "]", depth)
	case tuple:
		if len(t) == 1 {
			x.writeList(b, "(", t, ",)", depth)
		} else {
			x.writeList(b, "(", t, ")", depth)
		}
	case *OrderedMap:
		b.WriteByte('{')
		for i, k := range t.keys {
			if i > 0 {
				b.WriteString(", ")
			}
			x.writeRepr(b, k, depth+1)
			b.WriteString(": ")
			x.writeRepr(b, t.vals[i], depth+1)
		}
		b.WriteByte('}')
	case *undefined:
		b.WriteString("Undefined")
	case *namespace:
		b.WriteString("<Namespace ")
		x.writeRepr(b, t.attrs, depth+1)
		b.WriteByte('>')
	case *rangeValue:
		b.WriteString(t.String())
	case *function:
		b.WriteString("<function " + t.name + ">")
	case *loopObject:
		fmt.Fprintf(b, "<LoopContext %d/%d>", t.i+1, len(t.items))
	default:
		fmt.Fprintf(b, "<%s>", typeName(v))
	}
}

func (x *exec) writeList(b *strings.Builder, open string, items []any, end string, depth int) {
	b.WriteString(open)
	for i, e := range items {
		if i > 0 {
			b.WriteString(", ")
		}
		x.writeRepr(b, e, depth+1)
	}
	b.WriteString(end)
}

// floatRepr writes the shortest text that reads back as f.
func floatRepr(f float64) string {
	switch {
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	case math.IsNaN(f):
		return "nan"
	}
	if a := math.Abs(f); a != 0 && (a < 1e-4 || a >= 1e16) {
		return strconv.FormatFloat(f, 'e', -1, 64)
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

func writeStrRepr(b *strings.Builder, s string) {
	quote := byte('\'')
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		quote = '"'
	}
	b.WriteByte(quote)
	for _, r := range s {
		switch {
		case r == rune(quote) || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < ' ' || r == 0x7f || r >= 0x80 && r < 0x100 && !printable(r):
			fmt.Fprintf(b, `\x%02x`, r)
		case r < 0x80 || printable(r):
			b.WriteRune(r)
		case r > 0xFFFF:
			fmt.Fprintf(b, `\U%08x`, r)
		default:
			fmt.Fprintf(b, `\u%04x`, r)
		}
	}
	b.WriteByte(quote)
}

func printable(r rune) bool { return unicode.IsPrint(r) || unicode.Is(unicode.Lm, r) }

// isSpace reports what Python's str.strip and \s take for white space.
func isSpace(r rune) bool {
	return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f
}

// upperSpecial are the characters whose upper case is more than one character, as far as text has them.
var upperSpecial = strings.NewReplacer("ß", "SS", "ﬀ", "FF", "ﬁ", "FI", "ﬂ", "FL", "ﬃ", "FFI", "ﬄ", "FFL", "ﬅ", "ST",
	"ﬆ", "ST", "ŉ", "ʼN", "ǰ", "J̌", "և", "ԵՒ")

func upper(s string) string { return strings.ToUpper(upperSpecial.Replace(s)) }

func lower(s string) string { return strings.ToLower(strings.ReplaceAll(s, "İ", "i̇")) }

func isNameRune(r rune) bool {
	return r == '_' || r < utf8.RuneSelf && (isDigit(byte(r)) || byte(r)|0x20 >= 'a' && byte(r)|0x20 <= 'z') ||
		r >= utf8.RuneSelf && r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r))
}

var escapes = map[byte]string{
	'\n': "", '\\': "\\", '\'': "'", '"': `"`, 'a': "\a", 'b': "\b", 'f': "\f", 'n': "\n", 'r': "\r", 't': "\t",
	'v': "\v",
}

// unescape decodes the escapes of a string literal; unknown ones stay.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		if e, ok := escapes[s[i]]; ok {
			b.WriteString(e)
			continue
		}
		if n := codeEscape(&b, s[i:]); n > 0 {
			i += n - 1
			continue
		}
		b.WriteByte('\\')
		b.WriteByte(s[i])
	}
	return b.String()
}

// codeEscape decodes xNN, uNNNN, UNNNNNNNN and octal digits, and returns how many bytes it took.
func codeEscape(b *strings.Builder, s string) int {
	size, base, from := 0, 16, 1
	switch c := s[0]; {
	case c == 'x':
		size = 2
	case c == 'u':
		size = 4
	case c == 'U':
		size = 8
	case c >= '0' && c <= '7':
		base, from = 8, 0
		for size < 3 && size < len(s) && s[size] >= '0' && s[size] <= '7' {
			size++
		}
	default:
		return 0
	}
	if from+size > len(s) {
		return 0
	}
	n, err := strconv.ParseUint(s[from:from+size], base, 32)
	if err != nil || n > utf8.MaxRune {
		return 0
	}
	b.WriteRune(rune(n))
	return from + size
}
