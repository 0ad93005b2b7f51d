package tokenizer

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dlclark/regexp2/v2"
)

// match cuts text into matches and what lies between them.
type match interface {
	// spans calls f for each part of s in order, together all of s (parts may be empty).
	spans(s string, f func(from, to int, matched bool)) error
}

// newMatch returns the fastest implementation of a pattern.
func newMatch(p pattern) (match, error) {
	if p.String != nil {
		return literalMatch(*p.String), nil
	}
	if p.Regex == nil {
		return nil, fmt.Errorf("pattern has neither String nor Regex")
	}
	if f := knownScanners[*p.Regex]; f != nil {
		return f, nil
	}
	return newRegexMatch(*p.Regex)
}

// literalMatch finds a string.
type literalMatch string

func (m literalMatch) spans(s string, f func(from, to int, matched bool)) error {
	from := 0
	for m != "" {
		i := strings.Index(s[from:], string(m))
		if i < 0 {
			break
		}
		if i > 0 {
			f(from, from+i, false)
		}
		f(from+i, from+i+len(m), true)
		from += i + len(m)
	}
	if from < len(s) {
		f(from, len(s), false)
	}
	return nil
}

// runeMatch makes every rune that satisfies it a match of its own.
type runeMatch func(rune) bool

func (m runeMatch) spans(s string, f func(from, to int, matched bool)) error {
	from := 0
	for i, r := range s {
		if !m(r) {
			continue
		}
		if i > from {
			f(from, i, false)
		}
		from = i + utf8.RuneLen(r)
		f(i, from, true)
	}
	if from < len(s) {
		f(from, len(s), false)
	}
	return nil
}

// scan is a hand-written matcher: it returns the end of the match at i, or i if there is none.
type scan func(u *unicodeTable, s string, i int) int

func (m scan) spans(s string, f func(from, to int, matched bool)) error {
	u := loadUnicode()
	from := 0
	for i := 0; i < len(s); {
		end := m(u, s, i)
		if end <= i {
			_, n := utf8.DecodeRuneInString(s[i:])
			i += n
			continue
		}
		if i > from {
			f(from, i, false)
		}
		f(i, end, true)
		i, from = end, end
	}
	if from < len(s) {
		f(from, len(s), false)
	}
	return nil
}

// Bounds of a regular expression from a file.
const (
	maxRegexLen  = 1 << 14
	regexTimeout = 20 * time.Second
	regexStack   = 1 << 22
)

// regexMatch runs a pattern for which there is no hand-written scanner.
type regexMatch struct{ re *regexp2.Regexp }

func newRegexMatch(expr string) (match, error) {
	if len(expr) > maxRegexLen {
		return nil, fmt.Errorf("regular expression has %d bytes, want at most %d", len(expr), maxRegexLen)
	}
	translated, err := translateRegex(expr)
	if err != nil {
		return nil, fmt.Errorf("regular expression %q: %w", expr, err)
	}
	re, err := regexp2.Compile(translated, regexp2.Unicode, regexp2.OptionMaxBacktrackingStackSize(regexStack))
	if err != nil {
		what, _, _ := strings.Cut(err.Error(), " in `") // then follows the translated expression, which is long
		return nil, fmt.Errorf("regular expression %q: %s", expr, what)
	}
	re.MatchTimeout = regexTimeout
	return &regexMatch{re}, nil
}

func (m *regexMatch) spans(s string, f func(from, to int, matched bool)) error {
	rs := []rune(s)
	at, runeAt, from := 0, 0, 0 // at is the byte offset of rune runeAt
	advance := func(to int) {
		for ; runeAt < to; runeAt++ {
			at += utf8.RuneLen(rs[runeAt])
		}
	}
	found, err := m.re.FindRunesMatch(rs)
	for found != nil && err == nil {
		advance(found.RuneIndex)
		start := at
		advance(found.RuneIndex + found.RuneLength)
		if start > from {
			f(from, start, false)
		}
		f(start, at, true)
		from = at
		found, err = m.re.FindNextMatch(found)
	}
	if err != nil {
		return fmt.Errorf("regular expression: %w", err)
	}
	if from < len(s) {
		f(from, len(s), false)
	}
	return nil
}

// translateRegex writes the Unicode classes of an Oniguruma pattern as the ranges of this package's tables and
// set intersections with a negated set as subtractions. What it cannot express is an error.
func translateRegex(expr string) (string, error) {
	var b strings.Builder
	depth := 0
	for i := 0; i < len(expr); i++ {
		c := expr[i]
		switch {
		case c == '\\' && i+1 < len(expr):
			text, n, err := translateEscape(expr[i:], depth > 0)
			if err != nil {
				return "", err
			}
			b.WriteString(text)
			i += n - 1
		case c == '[' && depth == 0:
			depth = 1
			b.WriteByte(c)
			if strings.HasPrefix(expr[i+1:], "^") {
				b.WriteByte('^')
				i++
			}
			if strings.HasPrefix(expr[i+1:], "]") {
				b.WriteString(`\]`)
				i++
			}
		case c == '[':
			return "", fmt.Errorf("a set within a set at byte %d is not supported", i)
		case c == ']' && depth > 0:
			depth = 0
			b.WriteByte(c)
		case depth > 0 && strings.HasPrefix(expr[i:], "&&"):
			if !strings.HasPrefix(expr[i:], "&&[^") {
				return "", fmt.Errorf("set intersection at byte %d is not supported", i)
			}
			n := closingBracket(expr[i+2:])
			if n < 0 || !strings.HasPrefix(expr[i+2+n+1:], "]") {
				return "", fmt.Errorf("set intersection at byte %d is not supported", i)
			}
			inner, err := translateRegex(expr[i+2 : i+2+n+1])
			if err != nil {
				return "", err
			}
			b.WriteString("-[" + inner[2:])
			i += 2 + n
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), nil
}

// closingBracket returns the index of the bracket that closes the set that s starts with, -1 if there is none.
func closingBracket(s string) int {
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '[':
			return -1
		case ']':
			return i
		}
	}
	return -1
}

// translateEscape translates the escape that s starts with and returns how long it was.
func translateEscape(s string, inSet bool) (string, int, error) {
	if s[1] == 'h' || s[1] == 'H' || s[1] == 'R' || s[1] == 'X' || s[1] == 'K' {
		return "", 0, fmt.Errorf("escape \\%c is not supported", s[1])
	}
	if in := classes[s[1]]; in != nil {
		return bracketed(setRanges(in), inSet), 2, nil
	}
	if s[1] != 'p' && s[1] != 'P' {
		_, n := utf8.DecodeRuneInString(s[1:])
		return s[:1+n], 1 + n, nil
	}
	end := strings.IndexByte(s, '}')
	if len(s) < 3 || s[2] != '{' || end < 0 {
		return "", 0, fmt.Errorf("\\%c without {name}", s[1])
	}
	name, negated := strings.CutPrefix(s[3:end], "^")
	negated = negated != (s[1] == 'P')
	bits, ok := categorySets[name]
	if !ok {
		if negated != (s[1] == 'P') {
			return "", 0, fmt.Errorf("\\p{^%s} is not supported", name)
		}
		return s[:end+1], end + 1, nil
	}
	return bracketed(setRanges(func(r rune) bool { return (props(r)&bits != 0) != negated }), inSet), end + 1, nil
}

// classes are the sets of \w and \d and their complements.
var classes = map[byte]func(rune) bool{
	'w': onigWord,
	'W': func(r rune) bool { return !onigWord(r) },
	'd': func(r rune) bool { return props(r)&pNd != 0 },
	'D': func(r rune) bool { return props(r)&pNd == 0 },
}

// onigWord is \w of Oniguruma, which takes the numbers of Latin-1 in and leaves the joiners out.
func onigWord(r rune) bool {
	switch r {
	case 0xB2, 0xB3, 0xB9, 0xBC, 0xBD, 0xBE:
		return true
	case 0x200C, 0x200D:
		return false
	}
	return isWordRune(r)
}

func bracketed(set string, inSet bool) string {
	if inSet {
		return set
	}
	return "[" + set + "]"
}

// setRanges writes the code points of a set as the inside of brackets.
func setRanges(member func(rune) bool) string {
	var b strings.Builder
	in := func(r rune) bool { return r <= utf8.MaxRune && utf8.ValidRune(r) && member(r) }
	for r := rune(0); r <= utf8.MaxRune; r++ {
		if !in(r) {
			continue
		}
		lo := r
		for in(r + 1) {
			r++
		}
		writeSetRune(&b, lo)
		if r > lo {
			b.WriteByte('-')
			writeSetRune(&b, r)
		}
	}
	return b.String()
}

func writeSetRune(b *strings.Builder, r rune) {
	switch {
	case r < utf8.RuneSelf && r != '_' && props(r)&(pP|pS) != 0:
		b.WriteByte('\\')
		b.WriteRune(r)
	case r < ' ':
		fmt.Fprintf(b, `\x%02x`, r)
	default:
		b.WriteRune(r)
	}
}
