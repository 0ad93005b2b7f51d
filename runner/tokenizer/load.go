package tokenizer

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// node is one normalizer, pre-tokenizer, post-processor or decoder, with the fields of all of them.
type node struct {
	Type             string                   `json:"type"`
	Normalizers      []node                   `json:"normalizers"`
	Pretokenizers    []node                   `json:"pretokenizers"`
	Processors       []node                   `json:"processors"`
	Decoders         []node                   `json:"decoders"`
	Pattern          pattern                  `json:"pattern"`
	Behavior         string                   `json:"behavior"`
	Invert           bool                     `json:"invert"`
	Content          string                   `json:"content"`
	Prepend          string                   `json:"prepend"`
	Delimiter        string                   `json:"delimiter"`
	Start            int                      `json:"start"`
	Stop             int                      `json:"stop"`
	Length           int                      `json:"length"`
	AddPrefixSpace   *bool                    `json:"add_prefix_space"`
	UseRegex         *bool                    `json:"use_regex"`
	IndividualDigits bool                     `json:"individual_digits"`
	Replacement      string                   `json:"replacement"`
	PrependScheme    string                   `json:"prepend_scheme"`
	Split            *bool                    `json:"split"`
	Single           []map[string]templateRef `json:"single"`
	SpecialTokens    map[string]struct {
		IDs []int `json:"ids"`
	} `json:"special_tokens"`
	Sep                *tokenRef `json:"sep"`
	Cls                *tokenRef `json:"cls"`
	StripLeft          bool      `json:"strip_left"`
	StripRight         bool      `json:"strip_right"`
	CleanText          *bool     `json:"clean_text"`
	HandleChineseChars *bool     `json:"handle_chinese_chars"`
	StripAccents       *bool     `json:"strip_accents"`
	Lowercase          *bool     `json:"lowercase"`
	Charsmap           string    `json:"precompiled_charsmap"`
	Prefix             *string   `json:"prefix"`
	Suffix             *string   `json:"suffix"`
	Cleanup            *bool     `json:"cleanup"`
	PadToken           string    `json:"pad_token"`
	WordDelimiterToken string    `json:"word_delimiter_token"`
}

// templateRef is an entry of a template: a special token or a sequence, by its id.
type templateRef struct {
	ID string `json:"id"`
}

// tokenRef is a [token, id] pair.
type tokenRef struct {
	token string
	id    int
}

// UnmarshalJSON reads the pair.
func (t *tokenRef) UnmarshalJSON(b []byte) error {
	var pair []json.RawMessage
	if err := json.Unmarshal(b, &pair); err != nil {
		return err
	}
	if len(pair) != 2 {
		return fmt.Errorf("got %d elements, want [token, id]", len(pair))
	}
	if err := json.Unmarshal(pair[0], &t.token); err != nil {
		return err
	}
	return json.Unmarshal(pair[1], &t.id)
}

// pattern is {"String": s} or {"Regex": s}, or the bare string that old files have.
type pattern struct {
	String, Regex *string
}

// UnmarshalJSON reads either form.
func (p *pattern) UnmarshalJSON(b []byte) error {
	var s string
	if json.Unmarshal(b, &s) == nil {
		p.String = &s
		return nil
	}
	var m map[string]*string
	if err := json.Unmarshal(b, &m); err != nil {
		return err
	}
	p.String, p.Regex = m["String"], m["Regex"]
	return nil
}

func isTrue(b *bool, byDefault bool) bool {
	if b == nil {
		return byDefault
	}
	return *b
}

// unknownType reports a component type that this package does not know.
func unknownType(what, got string, want ...string) error {
	return fmt.Errorf("%s type is %q, want one of %s", what, got, strings.Join(want, ", "))
}

// rawFile holds the parts of the file whose decoding waits until all of it was walked.
type rawFile struct {
	parts map[string][]byte
	model *rawModel
}

func load(data []byte) (*pipeline, error) {
	if !utf8.Valid(data) {
		return nil, fmt.Errorf("the file is not UTF-8")
	}
	f := rawFile{parts: map[string][]byte{}}
	s := &scanner{b: data}
	err := s.object(func(key []byte) (err error) {
		switch k := string(key); k {
		case "model":
			f.model, err = scanModel(s)
		case "added_tokens", "normalizer", "pre_tokenizer", "post_processor", "decoder":
			f.parts[k], err = s.value()
		default:
			_, err = s.value()
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if s.peek() != 0 || s.i < len(data) {
		return nil, s.errorf("got %s after the end of the object", s.got())
	}
	if f.model == nil {
		return nil, fmt.Errorf("the file has no \"model\"")
	}
	return f.build()
}

// part decodes one component; nil when it is absent or null.
func (f *rawFile) part(name string) (*node, error) {
	raw := f.parts[name]
	if raw == nil || string(raw) == "null" {
		return nil, nil
	}
	n := &node{}
	if err := json.Unmarshal(raw, n); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return n, nil
}

func (f *rawFile) build() (*pipeline, error) {
	p := &pipeline{}
	var err error
	if p.model, err = f.model.build(); err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	var parts [4]*node
	for i, name := range []string{"normalizer", "pre_tokenizer", "post_processor", "decoder"} {
		if parts[i], err = f.part(name); err != nil {
			return nil, err
		}
	}
	if p.norm, err = newNormalizer(parts[0]); err != nil {
		return nil, fmt.Errorf("normalizer: %w", err)
	}
	b, isBPE := p.model.(*bpe)
	if p.pre, p.rawPre, err = newPreTokenizer(parts[1], isBPE && b.byteLevel()); err != nil {
		return nil, fmt.Errorf("pre_tokenizer: %w", err)
	}
	if p.post, err = newProcessor(parts[2]); err != nil {
		return nil, fmt.Errorf("post_processor: %w", err)
	}
	if p.decoder, err = newDecoder(parts[3]); err != nil {
		return nil, fmt.Errorf("decoder: %w", err)
	}
	if err := p.loadAdded(f.parts["added_tokens"]); err != nil {
		return nil, fmt.Errorf("added_tokens: %w", err)
	}
	return p, nil
}
