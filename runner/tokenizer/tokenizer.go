// Package tokenizer reads tokenizer.json files and turns text into token ids and back.
//
// It is pure Go and gives the same ids as the Rust tokenizers library. Truncation and padding, which a
// tokenizer.json may ask for, are left to the caller: Encode always returns every token of the text.
//
// Where things are:
//
//   - tokenizer.go: the interface, Load, and the encoding pipeline
//   - jsonscan.go, load.go, model.go: reading the file; the big tables never pass through encoding/json
//   - sentencepiece.go: SentencePiece's tokenizer.model
//   - added.go: added tokens, which are cut out of the text before anything else
//   - normalize.go, nfc.go, precompiled.go: normalizers
//   - pretok.go, scripts.go, scanners.go, regex.go: pre-tokenizers; hand-written scanners for the usual patterns
//   - bpe.go, bpemerge.go, bytelevel.go, wordpiece.go, unigram.go: the models
//   - post.go: post-processors, which add special tokens
//   - decode.go, stream.go: decoders, built as streams so that whole and streamed decoding agree
//   - unicode.go, unicode16.txt: the categories and sets of code points that the Rust tokenizers go by
//
// The ids of added tokens are those of the file. (The Rust tokenizers number an added token anew when its id does
// not follow the vocabulary.)
package tokenizer

import (
	"fmt"
	"slices"
)

// Tokenizer turns text into ids and back. Its methods may be called from several goroutines.
type Tokenizer interface {
	// Encode returns the ids of text; addSpecial adds what the post-processor adds (such as a leading BOS).
	// Invalid UTF-8 in text counts as U+FFFD.
	Encode(text string, addSpecial bool) ([]int, error)
	// Decode returns the text of ids; skipSpecial leaves out special tokens. Unknown ids are ignored.
	Decode(ids []int, skipSpecial bool) string
	// Token returns the vocabulary string of an id, added tokens included.
	Token(id int) (string, bool)
	// ID returns the id of a vocabulary string, added tokens included.
	ID(token string) (int, bool)
	// VocabSize returns 1 + the highest id, added tokens included.
	VocabSize() int
	// IsSpecial reports whether the id is that of a special added token.
	IsSpecial(id int) bool
	// Kind returns the model type: "BPE", "WordPiece", "Unigram" or "WordLevel".
	Kind() string
}

// model turns one pre-tokenized piece into ids.
type model interface {
	// encode appends the ids of the piece to out. When raw is true the piece holds the bytes of the text and
	// the model applies the byte-level alphabet itself.
	encode(piece string, raw bool, w *work, out []int) ([]int, error)
	kind() string
	vocabulary() *vocab
}

// vocab is the model's vocabulary, without added tokens that the model does not know.
type vocab struct {
	ids  map[string]int32
	toks []string // by id; "" where there is no token, unless ids[""] says otherwise
}

func (v *vocab) token(id int) (string, bool) {
	if id < 0 || id >= len(v.toks) {
		return "", false
	}
	s := v.toks[id]
	if s == "" {
		e, ok := v.ids[""]
		return "", ok && int(e) == id
	}
	return s, true
}

// pipeline is a loaded tokenizer.json.
type pipeline struct {
	model   model
	added   addedTokens
	norm    normalizer   // nil: none
	pre     preTokenizer // nil: none
	rawPre  bool         // pre leaves the byte-level alphabet to the model
	post    processor    // nil: none
	decoder decoderFactory
	size    int
}

// Load reads the bytes of a tokenizer.json.
func Load(data []byte) (Tokenizer, error) {
	p, err := load(data)
	if err != nil {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	return p, nil
}

// Kind implements Tokenizer.
func (p *pipeline) Kind() string { return p.model.kind() }

// VocabSize implements Tokenizer.
func (p *pipeline) VocabSize() int { return p.size }

// IsSpecial implements Tokenizer.
func (p *pipeline) IsSpecial(id int) bool {
	t, ok := p.added.byID[id]
	return ok && p.added.special[t.Content]
}

// Token implements Tokenizer.
func (p *pipeline) Token(id int) (string, bool) {
	if t, ok := p.added.byID[id]; ok {
		return t.Content, true
	}
	return p.model.vocabulary().token(id)
}

// ID implements Tokenizer.
func (p *pipeline) ID(token string) (int, bool) {
	if t, ok := p.added.byContent[token]; ok {
		return t.ID, true
	}
	id, ok := p.model.vocabulary().ids[token]
	return int(id), ok
}

// Encode implements Tokenizer.
func (p *pipeline) Encode(text string, addSpecial bool) ([]int, error) {
	w := &work{}
	text = validText(text)
	ids := make([]int, 0, len(text)/4+8)
	var err error
	for _, seg := range p.added.raw.cut(text) {
		if seg.tok != nil {
			ids = append(ids, seg.tok.ID)
			continue
		}
		if ids, err = p.encodeSegment(seg, w, ids); err != nil {
			return nil, fmt.Errorf("tokenizer: %w", err)
		}
	}
	if addSpecial && p.post != nil {
		ids = p.post.process(ids)
	}
	return ids, nil
}

// encodeSegment encodes text that holds none of the added tokens that are matched before normalizing.
func (p *pipeline) encodeSegment(seg segment, w *work, ids []int) ([]int, error) {
	s := seg.text
	if p.norm != nil {
		var err error
		if s, err = p.norm.normalize(s); err != nil {
			return nil, err
		}
	}
	for _, sub := range p.added.normalized.cut(s) {
		if sub.tok != nil {
			ids = append(ids, sub.tok.ID)
			continue
		}
		w.pieces = append(w.pieces[:0], piece{text: sub.text, first: seg.start && sub.start})
		pieces := w.pieces
		if p.pre != nil {
			var err error
			if pieces, err = p.pre.split(pieces); err != nil {
				return nil, err
			}
		}
		for _, pc := range pieces {
			if pc.text == "" {
				continue
			}
			var err error
			if ids, err = p.model.encode(pc.text, p.rawPre, w, ids); err != nil {
				return nil, err
			}
		}
		w.pieces = pieces[:0]
	}
	return ids, nil
}

// work holds buffers that live for one Encode call.
type work struct {
	pieces []piece
	bpe    bpeWork
	buf    []byte
}

// Decode implements Tokenizer.
func (p *pipeline) Decode(ids []int, skipSpecial bool) string {
	s := p.newStream(skipSpecial)
	var out []byte
	for _, id := range ids {
		out = append(out, s.push(id)...)
	}
	out = append(out, s.flush()...)
	return string(out)
}

// sortedIDs returns the ids of the added tokens in order.
func (a *addedTokens) sortedIDs() []int {
	out := make([]int, 0, len(a.byID))
	for id := range a.byID {
		out = append(out, id)
	}
	slices.Sort(out)
	return out
}
