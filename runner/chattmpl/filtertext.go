package chattmpl

import (
	"fmt"
	"strings"
	"unicode"
)

var htmlEscapes = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&#34;", "'", "&#39;")

func escapeHTML(s string) string { return htmlEscapes.Replace(s) }

// titleFilter begins a word after white space and the characters -({[<.
func titleFilter(s string) string {
	begin := true
	return strings.Map(func(r rune) rune {
		was := begin
		begin = isSpace(r) || strings.ContainsRune("-({[<", r)
		if was {
			return unicode.ToUpper(r)
		}
		return unicode.ToLower(r)
	}, s)
}

func isNotWord(r rune) bool { return !isNameRune(r) }

// urlEncode escapes all but letters, digits and _.-~/ byte by byte.
func urlEncode(s string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		if isDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'z' || strings.IndexByte("_.-~/", c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

func centerFilter(x *exec, in any, a args) any {
	width := get(a.bind("center()", "width"), "width", int64(80))
	return justify(1, 1)(x, x.str(in), args{pos: []any{width}})
}

func indentFilter(x *exec, in any, a args) any {
	v := a.bind("indent()", "width", "first", "blank")
	pad, ok := get(v, "width", int64(4)).(string)
	if !ok {
		n := max(0, wantSize(get(v, "width", int64(4)), "indent"))
		x.charge(n)
		pad = strings.Repeat(" ", n)
	}
	lines := strings.Split(strings.Join(lineTexts(x, x.str(in)+"\n"), "\n"), "\n")
	x.charge(len(lines) * (len(pad) + 16))
	for i, line := range lines {
		if i > 0 && (line != "" || truth(v["blank"])) || i == 0 && truth(v["first"]) {
			lines[i] = pad + line
		}
	}
	return strings.Join(lines, "\n")
}

func lineTexts(x *exec, s string) []string {
	var out []string
	for _, l := range splitLines(x, s, args{}).([]any) {
		out = append(out, l.(string))
	}
	return out
}

func truncateFilter(x *exec, in any, a args) any {
	v := a.bind("truncate()", "length", "killwords", "end", "leeway")
	s, end := []rune(x.str(in)), []rune(x.str(get(v, "end", "...")))
	n := wantInt(get(v, "length", int64(255)), "truncate")
	leeway := 5
	if l := v["leeway"]; l != nil {
		leeway = wantInt(l, "truncate")
	}
	if n < len(end) || leeway < 0 {
		raise("AssertionError", "expected length >= %d, got %d", len(end), n)
	}
	if len(s) <= n+leeway {
		return string(s)
	}
	cut := string(s[:n-len(end)])
	if truth(v["killwords"]) {
		return cut + string(end)
	}
	if i := strings.LastIndexByte(cut, ' '); i >= 0 {
		cut = cut[:i]
	}
	return cut + string(end)
}
