package tokenizer

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// bpe is byte-pair encoding.
type bpe struct {
	v              *vocab
	merges         pairTable
	unk            int32 // -1: none
	fuseUnk        bool
	ignoreMerges   bool
	prefix, suffix string
	fallback       *[256]int32 // ids of <0x00> to <0xFF>, -1 where missing; nil: no byte fallback
	alphabet       *[256]int32 // ids of the byte-level alphabet; nil unless all are there
	noCut          map[rune]bool
}

// spaceMark stands for a space in vocabularies that come from SentencePiece.
const spaceMark = "▁"

func newBPE(m *rawModel) (*bpe, error) {
	b := &bpe{v: m.vocab, unk: -1, fuseUnk: m.settings.FuseUnk, ignoreMerges: m.settings.IgnoreMerges}
	if d := string(m.settings.Dropout); d != "" && d != "null" && d != "0" && d != "0.0" {
		return nil, fmt.Errorf("dropout is %s, want null: encoding would be random", d)
	}
	if p := m.settings.Prefix; p != nil {
		b.prefix = *p
	}
	if p := m.settings.Suffix; p != nil {
		b.suffix = *p
	}
	if u := m.settings.Unk; u != nil {
		if id, ok := b.v.ids[*u]; ok {
			b.unk = id
		}
	}
	if m.settings.ByteFallback {
		b.fallback = b.v.byteTokens()
	}
	if b.prefix == "" && b.suffix == "" {
		b.alphabet = byteAlphabet(b.v)
	}
	if err := b.buildMerges(m.merges); err != nil {
		return nil, err
	}
	return b, nil
}

// byteTokens returns the ids of <0x00> to <0xFF>, -1 where missing.
func (v *vocab) byteTokens() *[256]int32 {
	var out [256]int32
	for i := range out {
		out[i] = -1
		if id, ok := v.ids[fmt.Sprintf("<0x%02X>", i)]; ok {
			out[i] = id
		}
	}
	return &out
}

// byteAlphabet returns the ids of the 256 characters of the byte-level alphabet, nil if one is missing.
func byteAlphabet(v *vocab) *[256]int32 {
	var out [256]int32
	for i := range out {
		id, ok := v.ids[string(byteRunes[i])]
		if !ok {
			return nil
		}
		out[i] = id
	}
	return &out
}

func (b *bpe) buildMerges(pairs []mergePair) error {
	b.merges = newPairTable(len(pairs))
	var buf []byte
	b.noCut = map[rune]bool{}
	for rank, p := range pairs {
		l, r := b.v.toks[p.left], b.v.toks[p.right]
		if len(b.prefix) > len(r) {
			return fmt.Errorf("merge %d: %q is shorter than the continuing_subword_prefix %q", rank, r, b.prefix)
		}
		tail := r[len(b.prefix):]
		buf = append(append(buf[:0], l...), tail...)
		id, ok := b.v.ids[string(buf)]
		if !ok {
			return fmt.Errorf("merge %d of %q and %q: %q is not in the vocabulary", rank, l, r, buf)
		}
		b.merges.set(p, int32(rank), id)
		if strings.HasPrefix(tail, spaceMark) {
			last, _ := utf8.DecodeLastRuneInString(l)
			b.noCut[last] = true
		}
	}
	return nil
}

func (b *bpe) kind() string       { return "BPE" }
func (b *bpe) vocabulary() *vocab { return b.v }

// byteLevel reports whether the model can take raw bytes.
func (b *bpe) byteLevel() bool { return b.alphabet != nil }

// encode implements model.
func (b *bpe) encode(s string, raw bool, w *work, out []int) ([]int, error) {
	if b.ignoreMerges {
		if id, ok := b.whole(s, raw, w); ok {
			return append(out, int(id)), nil
		}
	}
	if raw {
		syms := w.bpe.syms[:0]
		for i := range len(s) {
			syms = append(syms, b.alphabet[s[i]])
		}
		w.bpe.syms = syms
		return b.merge(&w.bpe, out), nil
	}
	if b.prefix != "" || b.suffix != "" {
		b.symbols(s, w)
		return b.merge(&w.bpe, out), nil
	}
	for s != "" {
		n := b.cut(s)
		b.symbols(s[:n], w)
		out = b.merge(&w.bpe, out)
		s = s[n:]
	}
	return out, nil
}

// cut returns the length of a leading part of s that no merge can join with the rest: it ends before a space
// mark that never follows the character before it in a merge. An unknown character may be one that is fused with
// the next, so a part never ends after one, nor before one.
func (b *bpe) cut(s string) int {
	for i := 1; i < len(s); {
		k := strings.Index(s[i:], spaceMark)
		if k < 0 {
			break
		}
		i += k
		last, _ := utf8.DecodeLastRuneInString(s[:i])
		if i > 0 && !b.noCut[last] {
			if _, known := b.v.ids[string(last)]; known {
				if _, known = b.v.ids[spaceMark]; known {
					return i
				}
			}
		}
		i += len(spaceMark)
	}
	return len(s)
}

// whole looks the piece up as one token.
func (b *bpe) whole(s string, raw bool, w *work) (int32, bool) {
	if !raw {
		id, ok := b.v.ids[s]
		return id, ok
	}
	if len(s) > maxTokenLen {
		return 0, false
	}
	w.buf = appendByteLevel(w.buf[:0], s)
	id, ok := b.v.ids[string(w.buf)]
	return id, ok
}

// symbols fills w.bpe.syms with the ids of the characters of s.
func (b *bpe) symbols(s string, w *work) {
	syms := w.bpe.syms[:0]
	pending := false // an unknown token that waits to be fused with the next
	for i := 0; i < len(s); {
		_, n := utf8.DecodeRuneInString(s[i:])
		c := s[i : i+n]
		if i > 0 && b.prefix != "" {
			c = b.prefix + c
		}
		if i += n; i == len(s) {
			c += b.suffix
		}
		id, ok := b.v.ids[c]
		if ok {
			if pending {
				syms = append(syms, b.unk)
				pending = false
			}
			syms = append(syms, id)
			continue
		}
		if b.fallback != nil {
			if more, ok := appendBytes(syms, c, b.fallback); ok {
				syms = more
				continue
			}
		}
		if b.unk < 0 {
			continue
		}
		if pending && !b.fuseUnk {
			syms = append(syms, b.unk)
		}
		pending = true
	}
	if pending {
		syms = append(syms, b.unk)
	}
	w.bpe.syms = syms
}

func appendBytes(syms []int32, c string, ids *[256]int32) ([]int32, bool) {
	n := len(syms)
	for i := range len(c) {
		id := ids[c[i]]
		if id < 0 {
			return syms[:n], false
		}
		syms = append(syms, id)
	}
	return syms, true
}
