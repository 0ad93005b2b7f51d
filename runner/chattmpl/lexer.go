package chattmpl

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// kind is the kind of a token.
type kind int

const (
	tEOF kind = iota
	tText
	tVarBegin
	tVarEnd
	tBlockBegin
	tBlockEnd
	tName
	tString
	tInt
	tFloat
	tOp
)

type token struct {
	kind kind
	text string // for strings, the value
	line int
}

func (t token) String() string {
	switch t.kind {
	case tEOF:
		return "the end of the template"
	case tVarEnd:
		return "}}"
	case tBlockEnd:
		return "%}"
	case tString:
		return fmt.Sprintf("string %q", t.text)
	}
	return fmt.Sprintf("%q", t.text)
}

// lexer cuts a template into tokens, with blocks trimmed and stripped as chat templates expect: a newline after
// a block tag goes, and so does white space before one on its line.
type lexer struct {
	src       string
	pos       int
	line      int
	toks      []token
	lineStart bool // the last thing taken ended with a newline, or there was none
	open      []byte
}

// lex returns the tokens of src.
func lex(src string) (toks []token, err error) {
	defer recoverError(&err)
	src = strings.ReplaceAll(src, "\r\n", "\n")
	src = strings.ReplaceAll(src, "\r", "\n")
	src = strings.TrimSuffix(src, "\n")
	l := &lexer{src: src, line: 1, lineStart: true}
	for l.pos < len(l.src) {
		l.text()
	}
	l.add(tEOF, "")
	return l.toks, nil
}

func (l *lexer) add(k kind, text string) { l.toks = append(l.toks, token{k, text, l.line}) }

func (l *lexer) fail(format string, args ...any) {
	panic(&Error{Line: l.line, Kind: "TemplateSyntaxError", Msg: fmt.Sprintf(format, args...)})
}

// advance moves over n bytes and counts lines.
func (l *lexer) advance(n int) {
	taken := l.src[l.pos : l.pos+n]
	l.line += strings.Count(taken, "\n")
	l.pos += n
	if n > 0 {
		l.lineStart = taken[n-1] == '\n'
	}
}

// text takes text up to the next tag, and the tag.
func (l *lexer) text() {
	n := nextTag(l.src[l.pos:])
	text := l.src[l.pos : l.pos+n]
	if l.pos+n == len(l.src) {
		if text != "" {
			l.add(tText, text)
		}
		l.advance(n)
		return
	}
	open := l.src[l.pos+n : l.pos+n+2]
	sign := l.sign(l.pos + n + 2)
	if text = l.stripBefore(text, sign, open == "{{"); text != "" {
		l.add(tText, text)
	}
	lineStart := l.lineStart
	l.advance(n)
	if n == 0 {
		l.lineStart = lineStart
	}
	l.advance(2 + len(sign))
	switch open {
	case "{#":
		l.comment()
	case "{{":
		l.add(tVarBegin, open)
		l.expression("}}", tVarEnd)
	default:
		if !l.raw() {
			l.add(tBlockBegin, open)
			l.expression("%}", tBlockEnd)
		}
	}
}

// nextTag returns the offset of the first tag of s, or its length.
func nextTag(s string) int {
	for i := 0; i+1 < len(s); i++ {
		if s[i] == '{' && (s[i+1] == '%' || s[i+1] == '{' || s[i+1] == '#') {
			return i
		}
	}
	return len(s)
}

// sign returns the white space control at i: "-", "+" or "".
func (l *lexer) sign(i int) string {
	if i < len(l.src) && (l.src[i] == '-' || l.src[i] == '+') {
		return l.src[i : i+1]
	}
	return ""
}

// stripBefore strips the text before a tag.
func (l *lexer) stripBefore(text, sign string, variable bool) string {
	switch {
	case sign == "-":
		return strings.TrimRightFunc(text, isSpace)
	case sign == "+" || variable:
		return text
	}
	from := strings.LastIndexByte(text, '\n') + 1
	if from > 0 || l.lineStart {
		if strings.TrimFunc(text[from:], isSpace) == "" {
			return text[:from]
		}
	}
	return text
}

// end returns the length of the closing tag at the cursor with the white space that goes with it, 0 if there is
// none. Block and comment tags also take the newline after them.
func (l *lexer) end(tag string) int {
	rest := l.src[l.pos:]
	switch {
	case strings.HasPrefix(rest, "-"+tag):
		n := 1 + len(tag)
		return n + len(rest[n:]) - len(strings.TrimLeftFunc(rest[n:], isSpace))
	case tag != "}}" && strings.HasPrefix(rest, "+"+tag):
		return 1 + len(tag)
	case strings.HasPrefix(rest, tag):
		if tag != "}}" && strings.HasPrefix(rest[len(tag):], "\n") {
			return len(tag) + 1
		}
		return len(tag)
	}
	return 0
}

func (l *lexer) comment() {
	start := l.line
	for l.pos < len(l.src) {
		if n := l.end("#}"); n > 0 {
			l.advance(n)
			return
		}
		l.advance(1)
	}
	l.line = start
	l.fail("comment has no end, want #}")
}

// raw takes {% raw %}…{% endraw %}, the cursor after the opening sign.
func (l *lexer) raw() bool {
	saved := *l
	l.blanks()
	if !l.word("raw") {
		*l = saved
		return false
	}
	l.blanks()
	n := l.end("%}")
	if n == 0 {
		*l = saved
		return false
	}
	l.advance(n)
	from, first := l.pos, l.lineStart
	for l.pos < len(l.src) {
		tag := strings.Index(l.src[l.pos:], "{%")
		if tag < 0 {
			break
		}
		l.advance(tag)
		at := l.pos
		sign := l.sign(at + 2)
		l.advance(2 + len(sign))
		l.blanks()
		if !l.word("endraw") {
			continue
		}
		l.blanks()
		if n := l.end("%}"); n > 0 {
			l.lineStart = first
			if text := l.stripBefore(l.src[from:at], sign, false); text != "" {
				l.add(tText, text)
			}
			l.advance(n)
			return true
		}
	}
	*l = saved
	l.fail("raw block has no end, want {%% endraw %%}")
	return false
}

func (l *lexer) blanks() {
	rest := l.src[l.pos:]
	l.advance(len(rest) - len(strings.TrimLeftFunc(rest, isSpace)))
}

// word takes a name if it is w.
func (l *lexer) word(w string) bool {
	rest := l.src[l.pos:]
	if !strings.HasPrefix(rest, w) {
		return false
	}
	if r, _ := utf8.DecodeRuneInString(rest[len(w):]); isNameRune(r) && len(rest) > len(w) {
		return false
	}
	l.advance(len(w))
	return true
}

// expression takes tokens up to the closing tag.
func (l *lexer) expression(tag string, k kind) {
	l.open = l.open[:0]
	start := l.line
	for {
		l.blanks()
		if l.pos >= len(l.src) {
			l.line = start
			l.fail("tag has no end, want %s", tag)
		}
		if len(l.open) == 0 {
			if n := l.end(tag); n > 0 {
				l.add(k, tag)
				l.advance(n)
				return
			}
		}
		l.token()
	}
}

func (l *lexer) token() {
	rest := l.src[l.pos:]
	c := rest[0]
	r, _ := utf8.DecodeRuneInString(rest)
	switch {
	case c >= '0' && c <= '9':
		l.number(rest)
	case c == '\'' || c == '"':
		l.str(rest)
	case isNameRune(r):
		n := strings.IndexFunc(rest, func(r rune) bool { return !isNameRune(r) })
		if n < 0 {
			n = len(rest)
		}
		l.add(tName, rest[:n])
		l.advance(n)
	default:
		l.operator(rest)
	}
}

var operators = []string{
	"//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[", "]", "(", ")", "{", "}", ">", "<", "=",
	".", ":", "|", ",", ";",
}

func (l *lexer) operator(rest string) {
	for _, op := range operators {
		if !strings.HasPrefix(rest, op) {
			continue
		}
		switch op {
		case "(", "[", "{":
			l.open = append(l.open, op[0])
		case ")", "]", "}":
			want := map[string]byte{")": '(', "]": '[', "}": '{'}[op]
			if n := len(l.open); n == 0 || l.open[n-1] != want {
				l.fail("got %q, which closes nothing", op)
			}
			l.open = l.open[:len(l.open)-1]
		}
		l.add(tOp, op)
		l.advance(len(op))
		return
	}
	r, _ := utf8.DecodeRuneInString(rest)
	l.fail("got %q, want an expression", r)
}

// number takes an integer or a float.
func (l *lexer) number(rest string) {
	n := digits(rest)
	k := tInt
	if len(rest) > 2 && rest[0] == '0' && strings.IndexByte("xXoObB", rest[1]) >= 0 {
		n = 2
		for n < len(rest) && (rest[n] == '_' || isHex(rest[n])) {
			n++
		}
	} else {
		if n+1 < len(rest) && rest[n] == '.' && isDigit(rest[n+1]) {
			k = tFloat
			n += 1 + digits(rest[n+1:])
		}
		if m := exponent(rest[n:]); m > 0 {
			k = tFloat
			n += m
		}
	}
	l.add(k, strings.ReplaceAll(rest[:n], "_", ""))
	l.advance(n)
}

func digits(s string) int {
	n := 0
	for n < len(s) && (isDigit(s[n]) || s[n] == '_' && n+1 < len(s) && isDigit(s[n+1])) {
		n++
	}
	return n
}

func exponent(s string) int {
	if s == "" || s[0]|0x20 != 'e' {
		return 0
	}
	n := 1
	if n < len(s) && (s[n] == '+' || s[n] == '-') {
		n++
	}
	if d := digits(s[n:]); d > 0 {
		return n + d
	}
	return 0
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
func isHex(c byte) bool   { return isDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'f' }

// str takes a quoted string.
func (l *lexer) str(rest string) {
	for i := 1; i < len(rest); i++ {
		switch rest[i] {
		case '\\':
			i++
		case rest[0]:
			l.add(tString, unescape(rest[1:i]))
			l.advance(i + 1)
			return
		}
	}
	l.fail("string has no end, want %c", rest[0])
}
