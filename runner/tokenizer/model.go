package tokenizer

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
)

// Bounds of what a file may hold.
const (
	maxTokenID  = 1 << 24
	maxTokens   = 1 << 23
	maxTokenLen = 1 << 16
)

// rawModel is the model as scanned, before it is known to be consistent.
type rawModel struct {
	vocab    *vocab
	scores   []float64 // Unigram only, by id
	merges   []mergePair
	parts    map[string][]byte
	settings modelSettings
}

// mergePair is a merge by the ids of its parts.
type mergePair struct{ left, right int32 }

// modelSettings are the small fields of all model types.
type modelSettings struct {
	Type          string          `json:"type"`
	Unk           *string         `json:"unk_token"`
	UnkID         *int            `json:"unk_id"`
	FuseUnk       bool            `json:"fuse_unk"`
	ByteFallback  bool            `json:"byte_fallback"`
	IgnoreMerges  bool            `json:"ignore_merges"`
	Prefix        *string         `json:"continuing_subword_prefix"`
	Suffix        *string         `json:"end_of_word_suffix"`
	MaxInputChars *int            `json:"max_input_chars_per_word"`
	Dropout       json.RawMessage `json:"dropout"`
}

// scanModel reads the model object; its tables are read as they come.
func scanModel(s *scanner) (*rawModel, error) {
	m := &rawModel{parts: map[string][]byte{}}
	var merges *scanner // merges that stand before the vocabulary
	err := s.object(func(key []byte) (err error) {
		switch k := string(key); {
		case k == "vocab" && s.peek() == '{':
			m.vocab, err = scanVocab(s)
		case k == "vocab":
			m.vocab, m.scores, err = scanScores(s)
		case k == "merges" && s.peek() == '[':
			merges = &scanner{b: s.b, i: s.i}
			_, err = s.value()
		default:
			m.parts[k], err = s.value()
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if m.vocab == nil {
		return nil, s.errorf("model has no \"vocab\"")
	}
	small, err := json.Marshal(rawParts(m.parts))
	if err == nil {
		err = json.Unmarshal(small, &m.settings)
	}
	if err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	if merges != nil {
		if m.merges, err = m.scanMerges(merges); err != nil {
			return nil, err
		}
	}
	m.inferType(merges != nil)
	return m, nil
}

func rawParts(parts map[string][]byte) map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	for k, v := range parts {
		out[k] = v
	}
	return out
}

// inferType sets the type when an old file leaves it out.
func (m *rawModel) inferType(hasMerges bool) {
	if m.settings.Type != "" {
		return
	}
	switch {
	case m.scores != nil:
		m.settings.Type = "Unigram"
	case hasMerges:
		m.settings.Type = "BPE"
	case m.settings.MaxInputChars != nil || m.settings.Prefix != nil:
		m.settings.Type = "WordPiece"
	default:
		m.settings.Type = "WordLevel"
	}
}

func (m *rawModel) build() (model, error) {
	switch m.settings.Type {
	case "BPE":
		return newBPE(m)
	case "WordPiece":
		return newWordPiece(m), nil
	case "WordLevel":
		return newWordLevel(m), nil
	case "Unigram":
		return newUnigram(m)
	}
	return nil, unknownType("model", m.settings.Type, "BPE", "WordPiece", "Unigram", "WordLevel")
}

// arena collects token strings so that they share one allocation and do not keep the file alive.
type arena struct {
	text []byte
	ends []int
	ids  []int32
}

func (a *arena) add(s *scanner, tok []byte, id int) error {
	if len(tok) > maxTokenLen {
		return s.errorf("token has %d bytes, want at most %d", len(tok), maxTokenLen)
	}
	if id >= maxTokenID {
		return s.errorf("token %q has id %d, want at most %d", tok, id, maxTokenID-1)
	}
	if len(a.ids) >= maxTokens {
		return s.errorf("vocabulary has over %d tokens", maxTokens)
	}
	a.text = append(a.text, tok...)
	a.ends = append(a.ends, len(a.text))
	a.ids = append(a.ids, int32(id))
	return nil
}

func (a *arena) build() (*vocab, error) {
	size := 0
	for _, id := range a.ids {
		size = max(size, int(id)+1)
	}
	if limit := 8*len(a.ids) + 1<<20; size > limit {
		return nil, fmt.Errorf("vocabulary has %d tokens and id %d, want ids under %d", len(a.ids), size-1, limit)
	}
	all := string(a.text)
	v := &vocab{ids: make(map[string]int32, len(a.ids)), toks: make([]string, size)}
	from := 0
	for i, id := range a.ids {
		tok := all[from:a.ends[i]]
		from = a.ends[i]
		v.ids[tok] = id
		v.toks[id] = tok
	}
	return v, nil
}

// scanVocab reads {"token": id, …}.
func scanVocab(s *scanner) (*vocab, error) {
	a := newArena(s)
	err := s.object(func(key []byte) error {
		id, err := s.integer()
		if err != nil {
			return err
		}
		return a.add(s, key, id)
	})
	if err != nil {
		return nil, err
	}
	return a.build()
}

func newArena(s *scanner) *arena {
	n := (len(s.b) - s.i) / 40
	return &arena{text: make([]byte, 0, 8*n), ends: make([]int, 0, n), ids: make([]int32, 0, n)}
}

// scanScores reads [["token", score], …].
func scanScores(s *scanner) (*vocab, []float64, error) {
	a := newArena(s)
	scores := []float64{}
	err := s.array(func() error {
		if err := s.expect('['); err != nil {
			return err
		}
		tok, err := s.str()
		if err != nil {
			return err
		}
		if err := a.add(s, tok, len(scores)); err != nil {
			return err
		}
		if err := s.expect(','); err != nil {
			return err
		}
		lit := s.literal()
		score, err := strconv.ParseFloat(string(lit), 64)
		if err != nil || math.IsNaN(score) || math.IsInf(score, 0) {
			return s.errorf("got score %q, want a number", lit)
		}
		scores = append(scores, score)
		return s.expect(']')
	})
	if err != nil {
		return nil, nil, err
	}
	v, err := a.build()
	return v, scores, err
}

// scanMerges reads ["a b", …] or [["a", "b"], …].
func (m *rawModel) scanMerges(s *scanner) ([]mergePair, error) {
	out := make([]mergePair, 0, len(m.vocab.ids))
	var left []byte
	err := s.array(func() error {
		if len(out) >= maxTokens {
			return s.errorf("there are over %d merges", maxTokens)
		}
		if s.peek() == '"' {
			text, err := s.str()
			if err != nil {
				return err
			}
			a, b, ok := cutMerge(text)
			if !ok {
				return s.errorf("got merge %q, want two tokens with a space between", text)
			}
			return m.addMerge(s, &out, a, b)
		}
		if err := s.expect('['); err != nil {
			return err
		}
		a, err := s.str()
		if err != nil {
			return err
		}
		left = append(left[:0], a...)
		if err := s.expect(','); err != nil {
			return err
		}
		b, err := s.str()
		if err != nil {
			return err
		}
		if err := s.expect(']'); err != nil {
			return err
		}
		return m.addMerge(s, &out, left, b)
	})
	return out, err
}

func cutMerge(text []byte) (a, b []byte, ok bool) {
	for i, c := range text {
		if c == ' ' {
			for _, d := range text[i+1:] {
				if d == ' ' {
					return nil, nil, false
				}
			}
			return text[:i], text[i+1:], true
		}
	}
	return nil, nil, false
}

func (m *rawModel) addMerge(s *scanner, out *[]mergePair, a, b []byte) error {
	l, ok1 := m.vocab.ids[string(a)]
	r, ok2 := m.vocab.ids[string(b)]
	if !ok1 || !ok2 {
		missing := a
		if ok1 {
			missing = b
		}
		return s.errorf("merge %d of %q and %q: %q is not in the vocabulary", len(*out), a, b, missing)
	}
	*out = append(*out, mergePair{l, r})
	return nil
}
