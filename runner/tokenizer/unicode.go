package tokenizer

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
)

//go:embed unicode16.txt
var unicode16 string

// One bit for each general category and set, in the order of categoryNames.
const (
	pLu uint64 = 1 << iota
	pLl
	pLt
	pLm
	pLo
	pMn
	pMc
	pMe
	pNd
	pNl
	pNo
	pPc
	pPd
	pPs
	pPe
	pPi
	pPf
	pPo
	pSm
	pSc
	pSk
	pSo
	pZs
	pZl
	pZp
	pCc
	pCf
	pCo
	pHan
	pSpace
	pWord       // \w of the Whitespace pre-tokenizer and around added tokens
	pPunct      // of the Punctuation pre-tokenizer
	pDigit      // of the Digits pre-tokenizer
	pMark       // of StripAccents
	pNonspacing // of BertNormalizer
	pBertDrop   // what BertNormalizer drops
	pKept       // what the normal forms leave where it is although newer Unicode decomposes or reorders it

	pL = pLu | pLl | pLt | pLm | pLo
	pM = pMn | pMc | pMe
	pN = pNd | pNl | pNo
	pP = pPc | pPd | pPs | pPe | pPi | pPf | pPo
	pS = pSm | pSc | pSk | pSo
	pZ = pZs | pZl | pZp
)

var categoryNames = []string{
	"Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl", "No", "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po",
	"Sm", "Sc", "Sk", "So", "Zs", "Zl", "Zp", "Cc", "Cf", "Co", "Han", "", "Word", "Punct", "Digit", "Mark", "Nonspacing", "BertDrop", "Kept",
}

// categorySets names the sets that a pattern may ask for; C without unassigned code points is not among them.
var categorySets = func() map[string]uint64 {
	m := map[string]uint64{"L": pL, "M": pM, "N": pN, "P": pP, "S": pS, "Z": pZ}
	for i, n := range categoryNames {
		if n != "" {
			m[n] = 1 << i
		}
	}
	return m
}()

type page [256]uint64

// unicodeTable maps code points to property bits by pages of 256.
type unicodeTable struct {
	ascii [utf8.RuneSelf]uint64
	pages [0x1100]*page
	lower map[rune]rune // lower case letters that the unicode package does not know
}

var loadUnicode = sync.OnceValue(func() *unicodeTable {
	t := &unicodeTable{}
	empty := &page{}
	for i := range t.pages {
		t.pages[i] = empty
	}
	for _, line := range strings.Split(unicode16, "\n") {
		name, ranges, ok := strings.Cut(line, " ")
		if !ok || name == "#" {
			continue
		}
		if name == "Lower" {
			t.lower = runePairs(ranges)
			continue
		}
		bit, full := categorySets[name], map[*page]*page{}
		for _, r := range strings.Fields(ranges) {
			lo, hi := hexRange(r)
			t.fill(lo, hi, bit, empty, full)
		}
	}
	for _, r := range [][2]rune{
		{9, 13}, {32, 32}, {0x85, 0x85}, {0xa0, 0xa0}, {0x1680, 0x1680}, {0x2000, 0x200a},
		{0x2028, 0x2029}, {0x202f, 0x202f}, {0x205f, 0x205f}, {0x3000, 0x3000},
	} {
		t.fill(r[0], r[1], pSpace, empty, map[*page]*page{})
	}
	copy(t.ascii[:], t.pages[0][:utf8.RuneSelf])
	return t
})

// fill sets bit for lo..hi. Pages that the range covers whole share one copy for each page they were before.
func (t *unicodeTable) fill(lo, hi rune, bit uint64, empty *page, full map[*page]*page) {
	for i := lo >> 8; i <= hi>>8; i++ {
		from, to := max(lo, i<<8), min(hi, i<<8+255)
		whole := to-from == 255
		old := t.pages[i]
		if whole && full[old] != nil {
			t.pages[i] = full[old]
			continue
		}
		p := *old
		for c := from; c <= to; c++ {
			p[c&255] |= bit
		}
		t.pages[i] = &p
		if whole && old == empty {
			full[old] = &p
		}
	}
}

func hexRange(s string) (lo, hi rune) {
	a, b, ok := strings.Cut(s, "-")
	if !ok {
		b = a
	}
	l, err1 := strconv.ParseInt(a, 16, 32)
	h, err2 := strconv.ParseInt(b, 16, 32)
	if err1 != nil || err2 != nil || l > h || h > utf8.MaxRune {
		panic(fmt.Sprintf("tokenizer: unicode16.txt holds range %q", s))
	}
	return rune(l), rune(h)
}

// runePairs reads "from>to …".
func runePairs(s string) map[rune]rune {
	m := map[rune]rune{}
	for _, f := range strings.Fields(s) {
		a, b, _ := strings.Cut(f, ">")
		from, _ := hexRange(a)
		m[from], _ = hexRange(b)
	}
	return m
}

// props returns the property bits of r.
func (t *unicodeTable) props(r rune) uint64 {
	if uint32(r) < utf8.RuneSelf {
		return t.ascii[r]
	}
	if uint32(r) > utf8.MaxRune {
		return 0
	}
	return t.pages[r>>8][r&255]
}

// at decodes the rune of s at i and returns its property bits and width; width 0 means the end.
func (t *unicodeTable) at(s string, i int) (uint64, int) {
	if i >= len(s) {
		return 0, 0
	}
	if c := s[i]; c < utf8.RuneSelf {
		return t.ascii[c], 1
	}
	r, n := utf8.DecodeRuneInString(s[i:])
	return t.pages[r>>8][r&255], n
}

func props(r rune) uint64     { return loadUnicode().props(r) }
func isSpaceRune(r rune) bool { return props(r)&pSpace != 0 }

func isWordRune(r rune) bool { return props(r)&pWord != 0 }

// validText returns s with one U+FFFD for each maximal part of a broken UTF-8 sequence.
func validText(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return string(appendLossy(nil, []byte(s)))
}

// appendLossy appends b to dst with one U+FFFD for each maximal part of a broken UTF-8 sequence.
func appendLossy(dst, b []byte) []byte {
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		if r != utf8.RuneError || n > 1 {
			dst = append(dst, b[:n]...)
			b = b[n:]
			continue
		}
		dst = append(dst, "\uFFFD"...)
		b = b[brokenLen(b):]
	}
	return dst
}

// brokenLen returns how many bytes of b, which starts with a broken sequence, form its maximal part.
func brokenLen(b []byte) int {
	need, lo, hi := sequenceBounds(b[0])
	k := 1
	for k <= need && k < len(b) && b[k] >= lo && b[k] <= hi {
		lo, hi = 0x80, 0xBF
		k++
	}
	return k
}

// sequenceBounds returns how many bytes must follow the lead byte c, and the bounds of the first of them.
func sequenceBounds(c byte) (need int, lo, hi byte) {
	lo, hi = 0x80, 0xBF
	switch {
	case c >= 0xC2 && c <= 0xDF:
		need = 1
	case c >= 0xE0 && c <= 0xEF:
		need = 2
		switch c {
		case 0xE0:
			lo = 0xA0
		case 0xED:
			hi = 0x9F
		}
	case c >= 0xF0 && c <= 0xF4:
		need = 3
		switch c {
		case 0xF0:
			lo = 0x90
		case 0xF4:
			hi = 0x8F
		}
	}
	return need, lo, hi
}

// incompleteTail returns the length of a trailing part of b that more bytes could complete.
func incompleteTail(b []byte) int {
	for k := 1; k <= 3 && k <= len(b); k++ {
		c := b[len(b)-k]
		if c < 0x80 {
			return 0
		}
		if c >= 0xC0 {
			need, _, _ := sequenceBounds(c)
			if need >= k && brokenLen(b[len(b)-k:]) == k {
				return k
			}
			return 0
		}
	}
	return 0
}
