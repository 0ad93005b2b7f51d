package tokenizer

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

// SentencePieceOptions are what tokenizer_config.json says beside a
// tokenizer.model: which tokens Encode adds with addSpecial.
type SentencePieceOptions struct {
	AddBOS, AddEOS bool
}

// The types of pieces, model types and field numbers of SentencePiece's sentencepiece_model.proto.
const (
	spNormal = 1 + iota
	spUnknown
	spControl
	spUserDefined
	spUnused
	spByte

	spUnigram = 1
	spBPE     = 2

	maxPieces = 1 << 22
)

type spPiece struct {
	text  string
	score float32
	kind  int
}

// spModel is what a tokenizer.model says, with the defaults of the format.
type spModel struct {
	pieces               []spPiece
	kind                 int
	byteFallback, suffix bool
	bos, eos             int
	charsmap             []byte
	dummyPrefix          bool
	collapse, escape     bool // remove_extra_whitespaces, escape_whitespaces
}

// LoadSentencePiece reads a tokenizer.model of SentencePiece, Unigram or BPE, into the pipeline that a tokenizer.json
// made from it would give (transformers' conversion), but for white space, which is left to the model whole as
// SentencePiece does. Control and unknown pieces are special tokens. The errors say what is wrong with the file.
func LoadSentencePiece(data []byte, opts SentencePieceOptions) (Tokenizer, error) {
	m := &spModel{kind: spUnigram, bos: 1, eos: 2, dummyPrefix: true, collapse: true, escape: true}
	if err := m.read(data); err != nil {
		return nil, fmt.Errorf("SentencePiece model: %w", err)
	}
	doc, err := m.document(opts)
	if err != nil {
		return nil, fmt.Errorf("SentencePiece model: %w", err)
	}
	text, err := json.Marshal(doc)
	if err != nil {
		return nil, err
	}
	p, err := load(text)
	if err != nil {
		return nil, fmt.Errorf("SentencePiece model: %w", err)
	}
	if q, ok := p.norm.(normSequence); ok {
		if c, ok := q[0].(*charsmap); ok {
			c.longest = true
		}
	}
	s := &sentencePiece{pipeline: p, trim: m.collapse, prefix: m.dummyPrefix}
	for _, x := range m.pieces {
		if x.kind == spControl || x.kind == spUnknown {
			s.special = append(s.special, x.text)
		}
	}
	return s, nil
}

// sentencePiece is a pipeline before which the ends of the whole text are treated as SentencePiece does; a
// normalizer would see only what lies between added tokens.
type sentencePiece struct {
	*pipeline
	trim, prefix bool
	special      []string
}

// Encode implements Tokenizer.
func (s *sentencePiece) Encode(text string, addSpecial bool) ([]int, error) {
	if s.trim {
		text = strings.TrimFunc(text, s.blank)
	}
	begins := func(special string) bool { return strings.HasPrefix(text, special) }
	if s.prefix && text != "" && !slices.ContainsFunc(s.special, begins) {
		text = spaceMark + text
	}
	return s.pipeline.Encode(text, addSpecial)
}

// blank reports whether nothing but spaces becomes of a code point.
func (s *sentencePiece) blank(r rune) bool {
	if r == ' ' || s.norm == nil || r > ' ' && r < 0x7F {
		return r == ' '
	}
	out, err := s.norm.normalize(string(r))
	return err == nil && strings.Trim(out, " ") == ""
}

// eachField calls f for every field of a message.
func eachField(data []byte, f func(num protowire.Number, v uint64, b []byte) error) error {
	for len(data) > 0 {
		num, typ, n := protowire.ConsumeTag(data)
		if n < 0 {
			return protowire.ParseError(n)
		}
		data = data[n:]
		var v uint64
		var b []byte
		switch typ {
		case protowire.VarintType:
			v, n = protowire.ConsumeVarint(data)
		case protowire.Fixed32Type:
			var x uint32
			x, n = protowire.ConsumeFixed32(data)
			v = uint64(x)
		case protowire.BytesType:
			b, n = protowire.ConsumeBytes(data)
		default:
			n = protowire.ConsumeFieldValue(num, typ, data)
		}
		if n < 0 {
			return protowire.ParseError(n)
		}
		data = data[n:]
		if err := f(num, v, b); err != nil {
			return err
		}
	}
	return nil
}

func (m *spModel) read(data []byte) error {
	err := eachField(data, func(num protowire.Number, _ uint64, b []byte) error {
		switch num {
		case 1:
			return m.piece(b)
		case 2:
			return m.trainer(b)
		case 3:
			return m.normalizer(b)
		}
		return nil
	})
	switch {
	case err != nil:
		return err
	case len(m.pieces) == 0:
		return errors.New("there are no pieces")
	case m.kind != spUnigram && m.kind != spBPE:
		return fmt.Errorf("model type is %d, want 1 (Unigram) or 2 (BPE)", m.kind)
	case m.suffix:
		return errors.New("white space as a suffix is not supported")
	case !m.escape:
		return errors.New("white space that is not escaped is not supported")
	}
	return nil
}

func (m *spModel) piece(data []byte) error {
	p := spPiece{kind: spNormal}
	err := eachField(data, func(num protowire.Number, v uint64, b []byte) error {
		switch num {
		case 1:
			p.text = string(b)
		case 2:
			p.score = math.Float32frombits(uint32(v))
		case 3:
			p.kind = int(v)
		}
		return nil
	})
	switch {
	case err != nil:
		return fmt.Errorf("piece %d: %w", len(m.pieces), err)
	case len(m.pieces) >= maxPieces:
		return fmt.Errorf("more than %d pieces", maxPieces)
	case p.text == "" || !utf8.ValidString(p.text):
		return fmt.Errorf("piece %d is %q, want a text", len(m.pieces), p.text)
	case p.score != p.score || math.IsInf(float64(p.score), 0):
		return fmt.Errorf("piece %d has the score %v", len(m.pieces), p.score)
	}
	m.pieces = append(m.pieces, p)
	return nil
}

func (m *spModel) trainer(data []byte) error {
	return eachField(data, func(num protowire.Number, v uint64, _ []byte) error {
		switch num {
		case 3:
			m.kind = int(v)
		case 24:
			m.suffix = v != 0
		case 35:
			m.byteFallback = v != 0
		case 41:
			m.bos = int(int32(v))
		case 42:
			m.eos = int(int32(v))
		}
		return nil
	})
}

func (m *spModel) normalizer(data []byte) error {
	return eachField(data, func(num protowire.Number, v uint64, b []byte) error {
		switch num {
		case 2:
			m.charsmap = b
		case 3:
			m.dummyPrefix = v != 0
		case 4:
			m.collapse = v != 0
		case 5:
			m.escape = v != 0
		}
		return nil
	})
}

type object = map[string]any

// document is the tokenizer.json of the model.
func (m *spModel) document(opts SentencePieceOptions) (object, error) {
	var added []object
	unk := -1
	for id, p := range m.pieces {
		switch p.kind {
		case spUnknown:
			if unk < 0 {
				unk = id
			}
			fallthrough
		case spControl, spUserDefined:
			added = append(added, object{"id": id, "content": p.text, "special": p.kind != spUserDefined, "normalized": false})
		}
	}
	if unk < 0 {
		return nil, errors.New("no piece stands for unknown text")
	}
	replace := func(pattern object, content string) object {
		return object{"type": "Replace", "pattern": pattern, "content": content}
	}
	var norms []object
	if len(m.charsmap) > 0 {
		norms = append(norms, object{"type": "Precompiled", "precompiled_charsmap": base64.StdEncoding.EncodeToString(m.charsmap)})
	}
	if m.collapse {
		norms = append(norms, replace(object{"Regex": ` {2,}`}, " "))
	}
	decoders := []object{replace(object{"String": spaceMark}, " "), {"type": "ByteFallback"}, {"type": "Fuse"}}
	if m.dummyPrefix {
		decoders = append(decoders, object{"type": "Strip", "content": " ", "start": 1, "stop": 0})
	}
	doc := object{
		"version": "1.0", "added_tokens": added,
		"normalizer":    object{"type": "Sequence", "normalizers": norms},
		"pre_tokenizer": object{"type": "Metaspace", "replacement": spaceMark, "prepend_scheme": "never", "split": false},
		"decoder":       object{"type": "Sequence", "decoders": decoders},
		"model":         m.model(unk),
	}
	if len(norms) == 0 {
		delete(doc, "normalizer")
	}
	post, err := m.post(opts)
	if post != nil {
		doc["post_processor"] = post
	}
	return doc, err
}

// post adds BOS and EOS.
func (m *spModel) post(opts SentencePieceOptions) (object, error) {
	if !opts.AddBOS && !opts.AddEOS {
		return nil, nil
	}
	single := []object{{"Sequence": object{"id": "A", "type_id": 0}}}
	tokens := object{}
	use := func(name string, id int) (object, error) {
		if id < 0 || id >= len(m.pieces) {
			return nil, fmt.Errorf("%s is to be added, its id is %d", name, id)
		}
		text := m.pieces[id].text
		tokens[text] = object{"id": text, "ids": []int{id}, "tokens": []string{text}}
		return object{"SpecialToken": object{"id": text, "type_id": 0}}, nil
	}
	if opts.AddBOS {
		t, err := use("the BOS token", m.bos)
		if err != nil {
			return nil, err
		}
		single = slices.Insert(single, 0, t)
	}
	if opts.AddEOS {
		t, err := use("the EOS token", m.eos)
		if err != nil {
			return nil, err
		}
		single = append(single, t)
	}
	return object{"type": "TemplateProcessing", "single": single, "pair": single, "special_tokens": tokens}, nil
}

func (m *spModel) model(unk int) object {
	if m.kind == spUnigram {
		vocab := make([][2]any, len(m.pieces))
		for id, p := range m.pieces {
			vocab[id] = [2]any{p.text, p.score}
		}
		return object{"type": "Unigram", "unk_id": unk, "vocab": vocab, "byte_fallback": m.byteFallback}
	}
	ids := make(map[string]int, len(m.pieces))
	for id, p := range m.pieces {
		if _, twice := ids[p.text]; !twice {
			ids[p.text] = id
		}
	}
	return object{"type": "BPE", "unk_token": m.pieces[unk].text, "fuse_unk": true, "byte_fallback": m.byteFallback, "vocab": ids, "merges": m.merges(ids)}
}

// merges are the pairs of pieces that make a piece, the best score first, as transformers lists them.
func (m *spModel) merges(ids map[string]int) [][2]string {
	type merge struct {
		left, right string
		score       float32
	}
	var all []merge
	for _, p := range m.pieces {
		if p.kind != spNormal {
			continue
		}
		first := len(all)
		for i := range p.text {
			l, r := p.text[:i], p.text[i:]
			if _, ok := ids[l]; !ok || i == 0 {
				continue
			}
			if _, ok := ids[r]; ok {
				all = append(all, merge{l, r, p.score})
			}
		}
		slices.SortStableFunc(all[first:], func(a, b merge) int {
			return cmp.Or(cmp.Compare(ids[a.left], ids[b.left]), cmp.Compare(ids[a.right], ids[b.right]))
		})
	}
	slices.SortStableFunc(all, func(a, b merge) int { return cmp.Compare(b.score, a.score) })
	out := make([][2]string, len(all))
	for i, x := range all {
		out[i] = [2]string{x.left, x.right}
	}
	return out
}
