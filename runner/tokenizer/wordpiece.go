package tokenizer

import (
	"fmt"
	"unicode/utf8"
)

// wordPiece splits a word into the longest known parts from the left.
type wordPiece struct {
	v        *vocab
	unk      string
	prefix   string
	maxChars int
	maxLen   int // longest token in bytes
}

func newWordPiece(m *rawModel) *wordPiece {
	w := &wordPiece{v: m.vocab, unk: "[UNK]", prefix: "##", maxChars: 100}
	if p := m.settings.Unk; p != nil {
		w.unk = *p
	}
	if p := m.settings.Prefix; p != nil {
		w.prefix = *p
	}
	if p := m.settings.MaxInputChars; p != nil {
		w.maxChars = *p
	}
	for t := range w.v.ids {
		w.maxLen = max(w.maxLen, len(t))
	}
	return w
}

func (w *wordPiece) kind() string       { return "WordPiece" }
func (w *wordPiece) vocabulary() *vocab { return w.v }

func (w *wordPiece) unknown(s string, out []int) ([]int, error) {
	id, ok := w.v.ids[w.unk]
	if !ok {
		return nil, fmt.Errorf("%q is not in the vocabulary, and neither is unk_token %q", s, w.unk)
	}
	return append(out, int(id)), nil
}

// encode implements model.
func (w *wordPiece) encode(s string, _ bool, buf *work, out []int) ([]int, error) {
	if utf8.RuneCountInString(s) > w.maxChars {
		return w.unknown(s, out)
	}
	mark := len(out)
	for from := 0; from < len(s); {
		id, n := w.longest(s, from, buf)
		if n == 0 {
			return w.unknown(s, out[:mark])
		}
		out = append(out, int(id))
		from += n
	}
	return out, nil
}

// longest returns the longest token at from and how many bytes of s it covers.
func (w *wordPiece) longest(s string, from int, buf *work) (int32, int) {
	b := buf.buf[:0]
	if from > 0 {
		b = append(b, w.prefix...)
	}
	head := len(b)
	b = append(b, s[from:min(len(s), from+w.maxLen)]...)
	buf.buf = b
	for end := len(b); end > head; end-- {
		if end < len(b) && !utf8.RuneStart(b[end]) {
			continue
		}
		if id, ok := w.v.ids[string(b[:end])]; ok {
			return id, end - head
		}
	}
	return 0, 0
}

// wordLevel looks whole words up.
type wordLevel struct {
	v   *vocab
	unk string
}

func newWordLevel(m *rawModel) *wordLevel {
	w := &wordLevel{v: m.vocab, unk: "<unk>"}
	if p := m.settings.Unk; p != nil {
		w.unk = *p
	}
	return w
}

func (w *wordLevel) kind() string       { return "WordLevel" }
func (w *wordLevel) vocabulary() *vocab { return w.v }

// encode implements model.
func (w *wordLevel) encode(s string, _ bool, _ *work, out []int) ([]int, error) {
	id, ok := w.v.ids[s]
	if !ok {
		if id, ok = w.v.ids[w.unk]; !ok {
			return nil, fmt.Errorf("%q is not in the vocabulary, and neither is unk_token %q", s, w.unk)
		}
	}
	return append(out, int(id)), nil
}
