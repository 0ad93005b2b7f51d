package tokenizer

import (
	"fmt"
	"strings"
	"unicode"
)

// normalizer rewrites text before it is split.
type normalizer interface {
	normalize(s string) (string, error)
}

// normFunc is a normalizer that cannot fail.
type normFunc func(string) string

func (f normFunc) normalize(s string) (string, error) { return f(s), nil }

type normSequence []normalizer

func (q normSequence) normalize(s string) (string, error) {
	var err error
	for _, n := range q {
		if s, err = n.normalize(s); err != nil {
			return "", err
		}
	}
	return s, nil
}

// newNormalizer builds the normalizer that n describes; nil for nil.
func newNormalizer(n *node) (normalizer, error) {
	if n == nil {
		return nil, nil
	}
	switch n.Type {
	case "Sequence":
		var q normSequence
		for i := range n.Normalizers {
			x, err := newNormalizer(&n.Normalizers[i])
			if err != nil {
				return nil, fmt.Errorf("normalizers[%d]: %w", i, err)
			}
			q = append(q, x)
		}
		return q, nil
	case "Replace":
		return newReplace(n)
	case "Precompiled":
		return newPrecompiled(n.Charsmap)
	case "BertNormalizer":
		return newBertNormalizer(n), nil
	case "Prepend":
		return normFunc(func(s string) string {
			if s == "" {
				return s
			}
			return n.Prepend + s
		}), nil
	case "Strip":
		return normFunc(func(s string) string {
			if n.StripLeft {
				s = strings.TrimLeftFunc(s, isSpaceRune)
			}
			if n.StripRight {
				s = strings.TrimRightFunc(s, isSpaceRune)
			}
			return s
		}), nil
	}
	if f := plainNormalizers[n.Type]; f != nil {
		return f, nil
	}
	return nil, unknownType("normalizer", n.Type, "Sequence", "NFC", "NFD", "NFKC", "NFKD", "Lowercase", "Strip",
		"StripAccents", "Replace", "Prepend", "BertNormalizer", "Nmt", "Precompiled", "ByteLevel")
}

// plainNormalizers are those without parameters.
var plainNormalizers = map[string]normFunc{
	"NFC":          nfc,
	"NFD":          nfd,
	"NFKC":         nfkc,
	"NFKD":         nfkd,
	"Lowercase":    lowercase,
	"StripAccents": stripMarks,
	"Nmt":          nmt,
	"ByteLevel":    func(s string) string { return string(appendByteLevel(nil, s)) },
}

func newReplace(n *node) (normalizer, error) {
	if n.Pattern.String != nil {
		from := *n.Pattern.String
		if from == "" {
			return normFunc(func(s string) string { return s }), nil
		}
		return &textReplace{from, n.Content}, nil
	}
	m, err := newMatch(n.Pattern)
	if err != nil {
		return nil, err
	}
	return &regexReplace{m, n.Content}, nil
}

// maxNormalized bounds the text that a Replace makes, in bytes: a few of them
// after each other can ask for any amount.
const maxNormalized = 256 << 20

func tooLong(n int) error {
	return fmt.Errorf("a Replace makes a text of %d bytes, more than %d", n, maxNormalized)
}

type textReplace struct{ from, to string }

func (r *textReplace) normalize(s string) (string, error) {
	if n := len(s) + strings.Count(s, r.from)*(len(r.to)-len(r.from)); n > maxNormalized {
		return "", tooLong(n)
	}
	return strings.ReplaceAll(s, r.from, r.to), nil
}

type regexReplace struct {
	m       match
	content string
}

func (r *regexReplace) normalize(s string) (string, error) {
	var b strings.Builder
	last := 0
	err := r.m.spans(s, func(from, to int, matched bool) {
		if matched && b.Len() <= maxNormalized {
			b.WriteString(s[last:from])
			b.WriteString(r.content)
			last = to
		}
	})
	if n := b.Len() + len(s) - last; err == nil && n > maxNormalized {
		return "", tooLong(n)
	}
	b.WriteString(s[last:])
	return b.String(), err
}

// lowercase maps each code point by itself as Rust's char::to_lowercase does: no special final sigma.
func lowercase(s string) string {
	u := loadUnicode()
	return strings.Map(func(r rune) rune {
		if l, ok := u.lower[r]; ok {
			return l
		}
		return unicode.ToLower(r)
	}, strings.ReplaceAll(s, "İ", "i̇"))
}

func stripMarks(s string) string {
	return strings.Map(func(r rune) rune {
		if props(r)&pMark != 0 {
			return -1
		}
		return r
	}, s)
}

// stripNonspacing removes nonspacing marks after canonical decomposition.
func stripNonspacing(s string) string {
	return strings.Map(func(r rune) rune {
		if props(r)&pNonspacing != 0 {
			return -1
		}
		return r
	}, nfd(s))
}

// nmt drops control characters and maps odd spaces to a space.
func nmt(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 1 && r <= 8, r == 0xB, r >= 0xE && r <= 0x1F, r == 0x7F, r == 0x8F, r == 0x9F:
			return -1
		case r == 9, r == 0xA, r == 0xC, r == 0xD, r == 0x1680, r >= 0x200B && r <= 0x200F, r == 0x2028, r == 0x2029,
			r == 0x2581, r == 0xFEFF, r == 0xFFFD:
			return ' '
		}
		return r
	}, s)
}

func newBertNormalizer(n *node) normalizer {
	clean, chinese := isTrue(n.CleanText, true), isTrue(n.HandleChineseChars, true)
	lower := isTrue(n.Lowercase, true)
	strip := isTrue(n.StripAccents, lower)
	return normFunc(func(s string) string {
		if clean {
			s = strings.Map(bertClean, s)
		}
		if chinese {
			s = spaceChinese(s)
		}
		if strip {
			s = stripNonspacing(s)
		}
		if lower {
			s = lowercase(s)
		}
		return s
	})
}

// bertClean drops control characters and makes every white space a space.
func bertClean(r rune) rune {
	switch {
	case r == '\t', r == '\n', r == '\r':
		return ' '
	case props(r)&pBertDrop != 0:
		return -1
	case isSpaceRune(r):
		return ' '
	}
	return r
}

// spaceChinese puts spaces around CJK ideographs.
func spaceChinese(s string) string {
	if strings.IndexFunc(s, isIdeograph) < 0 {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if isIdeograph(r) {
			b.WriteByte(' ')
			b.WriteRune(r)
			b.WriteByte(' ')
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func isIdeograph(r rune) bool {
	return r >= 0x4E00 && r <= 0x9FFF || r >= 0x3400 && r <= 0x4DBF || r >= 0x20000 && r <= 0x2A6DF ||
		r >= 0x2A700 && r <= 0x2B73F || r >= 0x2B740 && r <= 0x2B81F || r >= 0x2B920 && r <= 0x2CEAF ||
		r >= 0xF900 && r <= 0xFAFF || r >= 0x2F800 && r <= 0x2FA1F
}
