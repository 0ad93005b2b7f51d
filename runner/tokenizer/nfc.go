package tokenizer

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// The norm package looks a composition up by the low 16 bits of both code points, so that a supplementary
// starter may compose as if it were another one (U+E0065 U+0300 becomes U+00E8). Text without supplementary
// code points is not concerned; other text that is not normal already is composed here.

// nfc returns the canonical composition of s.
func nfc(s string) string {
	return apart(s, func(s string) string { return compose(s, norm.NFC, norm.NFD) })
}

// nfkc returns the compatibility composition of s.
func nfkc(s string) string {
	return apart(s, func(s string) string { return compose(s, norm.NFKC, norm.NFKD) })
}

// nfd returns the canonical decomposition of s.
func nfd(s string) string { return apart(s, norm.NFD.String) }

// nfkd returns the compatibility decomposition of s.
func nfkd(s string) string { return apart(s, norm.NFKD.String) }

// apart applies f to what lies between code points that are kept. Those are starters which compose with nothing,
// so nothing happens across them. The normalizer of the Rust tokenizers has the tables of Unicode 9: the
// combining marks that came later are starters to it. The list was asked of it code point by code point, for all
// that Unicode 17 decomposes or gives a combining class.
func apart(s string, f func(string) string) string {
	u := loadUnicode()
	kept := func(r rune) bool { return u.props(r)&pKept != 0 }
	i := strings.IndexFunc(s, kept)
	if i < 0 {
		return f(s)
	}
	var b strings.Builder
	for i >= 0 {
		_, n := utf8.DecodeRuneInString(s[i:])
		b.WriteString(f(s[:i]))
		b.WriteString(s[i : i+n])
		s = s[i+n:]
		i = strings.IndexFunc(s, kept)
	}
	b.WriteString(f(s))
	return b.String()
}

func compose(s string, whole, decomposed norm.Form) string {
	if whole.QuickSpanString(s) == len(s) {
		return s
	}
	if !hasSupplementary(s) {
		return whole.String(s)
	}
	rs := []rune(decomposed.String(s))
	out := rs[:0]
	starter := -1
	lastClass := uint8(0)
	for _, r := range rs {
		class := combiningClass(r)
		if starter >= 0 {
			adjacent := starter == len(out)-1
			if adjacent || lastClass < class && lastClass != 0 {
				if c, ok := composePair(out[starter], r); ok {
					out[starter] = c
					continue
				}
			}
		}
		if class == 0 {
			starter = len(out)
		}
		lastClass = class
		out = append(out, r)
	}
	return string(out)
}

func hasSupplementary(s string) bool {
	for i := range len(s) {
		if s[i] >= 0xF0 {
			return true
		}
	}
	return false
}

func combiningClass(r rune) uint8 {
	var b [utf8.UTFMax]byte
	return norm.NFD.Properties(b[:utf8.EncodeRune(b[:], r)]).CCC()
}

// composePair returns the code point that the pair composes to.
func composePair(a, b rune) (rune, bool) {
	if a > 0xFFFF || b > 0xFFFF {
		c, ok := supplementaryPairs[[2]rune{a, b}]
		return c, ok
	}
	out := []rune(norm.NFC.String(string([]rune{a, b})))
	if len(out) == 1 {
		return out[0], true
	}
	return 0, false
}

// supplementaryPairs are the canonical compositions outside the basic plane, of the Unicode version that the Rust
// tokenizers compose by: U+11938 is newer.
var supplementaryPairs = map[[2]rune]rune{
	{0x11099, 0x110BA}: 0x1109A,
	{0x1109B, 0x110BA}: 0x1109C,
	{0x110A5, 0x110BA}: 0x110AB,
	{0x11131, 0x11127}: 0x1112E,
	{0x11132, 0x11127}: 0x1112F,
	{0x11347, 0x1133E}: 0x1134B,
	{0x11347, 0x11357}: 0x1134C,
	{0x114B9, 0x114BA}: 0x114BB,
	{0x114B9, 0x114B0}: 0x114BC,
	{0x114B9, 0x114BD}: 0x114BE,
	{0x115B8, 0x115AF}: 0x115BA,
	{0x115B9, 0x115AF}: 0x115BB,
}
