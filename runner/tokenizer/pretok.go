package tokenizer

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// piece is a part of a segment.
type piece struct {
	text  string
	first bool // it begins where the whole text begins
}

// preTokenizer splits pieces into smaller ones. It may reuse in.
type preTokenizer interface {
	split(in []piece) ([]piece, error)
}

type preSequence []preTokenizer

func (q preSequence) split(in []piece) ([]piece, error) {
	var err error
	for _, p := range q {
		if in, err = p.split(in); err != nil {
			return nil, err
		}
	}
	return in, nil
}

// newPreTokenizer builds the pre-tokenizer that n describes. When the last step is ByteLevel and the model can
// apply the byte-level alphabet (rawOK), that is left to the model and raw is true.
func newPreTokenizer(n *node, rawOK bool) (p preTokenizer, raw bool, err error) {
	if n == nil {
		return nil, false, nil
	}
	if n.Type != "Sequence" {
		if n.Type == "ByteLevel" {
			p, err = newByteLevel(n, !rawOK)
			return p, rawOK, err
		}
		p, err = newPre(n)
		return p, false, err
	}
	var q preSequence
	for i := range n.Pretokenizers {
		child := &n.Pretokenizers[i]
		x, r, err := newPreTokenizer(child, rawOK && i == len(n.Pretokenizers)-1)
		if err != nil {
			return nil, false, fmt.Errorf("pretokenizers[%d]: %w", i, err)
		}
		raw = r
		if x != nil {
			q = append(q, x)
		}
	}
	return q, raw, nil
}

func newPre(n *node) (preTokenizer, error) {
	switch n.Type {
	case "Split":
		m, err := newMatch(n.Pattern)
		if err != nil {
			return nil, err
		}
		return newSplitter(m, n.Behavior, n.Invert)
	case "Digits":
		if n.IndividualDigits {
			return newSplitter(runeMatch(func(r rune) bool { return props(r)&pDigit != 0 }), "Isolated", false)
		}
		return newSplitter(runeMatch(func(r rune) bool { return props(r)&pDigit != 0 }), "Contiguous", false)
	case "Punctuation":
		if n.Behavior == "" {
			return newSplitter(runeMatch(isPunctuation), "Isolated", false)
		}
		return newSplitter(runeMatch(isPunctuation), n.Behavior, false)
	case "Whitespace":
		return newSplitter(scan(scanWords), "Removed", true)
	case "WhitespaceSplit":
		return newSplitter(runeMatch(isSpaceRune), "Removed", false)
	case "BertPreTokenizer":
		a, _ := newSplitter(runeMatch(isSpaceRune), "Removed", false)
		b, err := newSplitter(runeMatch(isPunctuation), "Isolated", false)
		return preSequence{a, b}, err
	case "CharDelimiterSplit":
		d, size := utf8.DecodeRuneInString(n.Delimiter)
		if size == 0 || size != len(n.Delimiter) {
			return nil, fmt.Errorf("delimiter is %q, want one character", n.Delimiter)
		}
		return newSplitter(runeMatch(func(r rune) bool { return r == d }), "Removed", false)
	case "Metaspace":
		return newMetaspace(n)
	case "FixedLength":
		if n.Length < 1 {
			return nil, fmt.Errorf("length is %d, want at least 1", n.Length)
		}
		return fixedLength(n.Length), nil
	case "UnicodeScripts":
		return newSplitter(scriptMatch{}, "Isolated", false)
	}
	return nil, unknownType("pre-tokenizer", n.Type, "Sequence", "ByteLevel", "Split", "Digits", "Punctuation",
		"Whitespace", "WhitespaceSplit", "BertPreTokenizer", "CharDelimiterSplit", "Metaspace", "FixedLength",
		"UnicodeScripts")
}

func isPunctuation(r rune) bool { return props(r)&pPunct != 0 }

// splitter splits pieces at the matches of a pattern.
type splitter struct {
	m      match
	invert bool
	join   joinMode
}

// joinMode says what becomes of a match.
type joinMode int

const (
	isolated joinMode = iota
	removed
	mergedWithPrevious
	mergedWithNext
	contiguous
)

var behaviors = map[string]joinMode{
	"Isolated": isolated, "Removed": removed, "MergedWithPrevious": mergedWithPrevious,
	"MergedWithNext": mergedWithNext, "Contiguous": contiguous,
}

func newSplitter(m match, behavior string, invert bool) (preTokenizer, error) {
	join, ok := behaviors[behavior]
	if !ok {
		return nil, fmt.Errorf("behavior is %q, want one of Removed, Isolated, MergedWithPrevious, MergedWithNext, "+
			"Contiguous", behavior)
	}
	return &splitter{m: m, invert: invert, join: join}, nil
}

func (p *splitter) split(in []piece) ([]piece, error) {
	out := make([]piece, 0, len(in)+estimatePieces(in))
	for _, pc := range in {
		if pc.text == "" {
			continue
		}
		var err error
		if out, err = p.splitOne(pc, out); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func estimatePieces(in []piece) int {
	n := 0
	for _, pc := range in {
		n += len(pc.text)
	}
	return n / 4
}

func (p *splitter) splitOne(pc piece, out []piece) ([]piece, error) {
	s := pc.text
	start, hold := 0, -1 // hold: a match that waits for what follows it
	previous := false
	base := len(out)
	add := func(from, to int) { out = append(out, piece{s[from:to], pc.first && from == 0}) }
	err := p.m.spans(s, func(from, to int, matched bool) {
		matched = matched != p.invert
		switch p.join {
		case isolated:
			add(from, to)
		case removed:
			if !matched {
				add(from, to)
			}
		case contiguous:
			if len(out) > base && matched == previous {
				out[len(out)-1].text = s[start:to]
			} else {
				start = from
				add(from, to)
			}
		case mergedWithPrevious:
			if matched && !previous && len(out) > base {
				out[len(out)-1].text = s[start:to]
			} else {
				start = from
				add(from, to)
			}
		case mergedWithNext:
			if hold >= 0 && !matched {
				add(hold, to)
				hold = -1
			} else {
				if hold >= 0 {
					add(hold, from)
					hold = -1
				}
				if matched {
					hold = from
				} else {
					add(from, to)
				}
			}
		}
		previous = matched
	})
	if hold >= 0 {
		add(hold, len(s))
	}
	return out, err
}

// byteLevel splits by the GPT-2 pattern unless told not to, and maps bytes to the byte-level alphabet.
type byteLevel struct {
	prefix  bool
	splitBy preTokenizer // nil: no split
	mapped  bool
}

func newByteLevel(n *node, mapped bool) (preTokenizer, error) {
	b := &byteLevel{prefix: isTrue(n.AddPrefixSpace, true), mapped: mapped}
	if isTrue(n.UseRegex, true) {
		var err error
		if b.splitBy, err = newSplitter(scan(scanGPT2), "Isolated", false); err != nil {
			return nil, err
		}
	}
	return b, nil
}

func (b *byteLevel) split(in []piece) ([]piece, error) {
	if b.prefix {
		for i := range in {
			if t := in[i].text; t != "" && t[0] != ' ' {
				in[i].text = " " + t
			}
		}
	}
	if b.splitBy != nil {
		var err error
		if in, err = b.splitBy.split(in); err != nil {
			return nil, err
		}
	}
	if b.mapped {
		for i := range in {
			in[i].text = string(appendByteLevel(nil, in[i].text))
		}
	}
	return in, nil
}

// metaspace replaces spaces by a visible mark and splits before each.
type metaspace struct {
	mark    string
	scheme  string
	splitBy preTokenizer // nil: no split
}

func newMetaspace(n *node) (preTokenizer, error) {
	mark, scheme, err := metaspaceOptions(n)
	if err != nil {
		return nil, err
	}
	m := &metaspace{mark: mark, scheme: scheme}
	if isTrue(n.Split, true) {
		m.splitBy, err = newSplitter(literalMatch(mark), "MergedWithNext", false)
	}
	return m, err
}

// metaspaceOptions returns the mark and the prepend scheme, whichever way they are given.
func metaspaceOptions(n *node) (mark, scheme string, err error) {
	mark, scheme = n.Replacement, n.PrependScheme
	if mark == "" {
		mark = "▁"
	}
	if utf8.RuneCountInString(mark) != 1 {
		return "", "", fmt.Errorf("replacement is %q, want one character", mark)
	}
	if scheme == "" {
		scheme = "always"
		if !isTrue(n.AddPrefixSpace, true) {
			scheme = "never"
		}
	}
	if scheme != "always" && scheme != "first" && scheme != "never" {
		return "", "", fmt.Errorf("prepend_scheme is %q, want always, first or never", scheme)
	}
	return mark, scheme, nil
}

func (m *metaspace) split(in []piece) ([]piece, error) {
	for i := range in {
		t := strings.ReplaceAll(in[i].text, " ", m.mark)
		if m.scheme == "always" || m.scheme == "first" && in[i].first {
			if !strings.HasPrefix(t, m.mark) {
				t = m.mark + t
			}
		}
		in[i].text = t
	}
	if m.splitBy == nil {
		return in, nil
	}
	return m.splitBy.split(in)
}

// fixedLength splits into pieces of so many code points.
type fixedLength int

func (f fixedLength) split(in []piece) ([]piece, error) {
	var out []piece
	for _, pc := range in {
		from, n := 0, 0
		for i := range pc.text {
			if n == int(f) {
				out = append(out, piece{pc.text[from:i], pc.first && from == 0})
				from, n = i, 0
			}
			n++
		}
		if from < len(pc.text) {
			out = append(out, piece{pc.text[from:], pc.first && from == 0})
		}
	}
	return out, nil
}
