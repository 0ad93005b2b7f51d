package tokenizer

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A decoder is a chain of stages through which token texts flow. A stage passes text on as soon as no later
// token can change it, so that whole and streamed decoding are the same thing.

// chunk is a part of a token text; end marks its last part.
type chunk struct {
	text string
	end  bool
}

// stage is one decoder of the chain.
type stage interface {
	// push takes a chunk and hands on through emit what is certain.
	push(c chunk, emit func(chunk))
	// flush hands on what was held back at the end of all input.
	flush(emit func(chunk))
}

// decoderFactory makes a fresh chain.
type decoderFactory func() []stage

// newDecoder builds the decoder that n describes. Without one, tokens are joined by spaces.
func newDecoder(n *node) (decoderFactory, error) {
	if n == nil {
		return func() []stage { return []stage{&eachToken{f: joinBySpace}} }, nil
	}
	var makers []func() stage
	if err := addDecoders(n, &makers); err != nil {
		return nil, err
	}
	return func() []stage {
		out := make([]stage, len(makers))
		for i, m := range makers {
			out[i] = m()
		}
		return out
	}, nil
}

func joinBySpace(i int, s string) string {
	if i == 0 {
		return s
	}
	return " " + s
}

func addDecoders(n *node, out *[]func() stage) error {
	if n.Type == "Sequence" {
		for i := range n.Decoders {
			if err := addDecoders(&n.Decoders[i], out); err != nil {
				return fmt.Errorf("decoders[%d]: %w", i, err)
			}
		}
		return nil
	}
	m, err := newStage(n)
	if err == nil {
		*out = append(*out, m)
	}
	return err
}

// perToken makes stages that map each token by itself, given its index.
func perToken(f func(i int, s string) string) (func() stage, error) {
	return func() stage { return &eachToken{f: f} }, nil
}

func newStage(n *node) (func() stage, error) {
	switch n.Type {
	case "ByteLevel":
		return func() stage { return &byteLevelStage{} }, nil
	case "ByteFallback":
		return func() stage { return &fallbackStage{} }, nil
	case "Fuse":
		return func() stage { return &fuseStage{} }, nil
	case "Replace":
		return newReplaceStage(n)
	case "Strip":
		return newStripStage(n)
	case "Metaspace":
		mark, scheme, err := metaspaceOptions(n)
		if err != nil {
			return nil, err
		}
		return perToken(func(i int, s string) string {
			if i == 0 && scheme != "never" {
				return strings.ReplaceAll(s, mark, "")
			}
			return strings.ReplaceAll(s, mark, " ")
		})
	case "WordPiece":
		prefix, tidy := "##", isTrue(n.Cleanup, true)
		if n.Prefix != nil {
			prefix = *n.Prefix
		}
		return perToken(func(i int, s string) string { return wordPieceText(i, s, prefix, tidy) })
	case "BPEDecoder":
		suffix := "</w>"
		if n.Suffix != nil {
			suffix = *n.Suffix
		}
		return func() stage { return &suffixStage{suffix: suffix} }, nil
	case "CTC":
		return newCTCStage(n), nil
	}
	return nil, unknownType("decoder", n.Type, "Sequence", "ByteLevel", "ByteFallback", "Fuse", "Replace", "Strip",
		"Metaspace", "WordPiece", "BPEDecoder", "CTC")
}

func wordPieceText(i int, s, prefix string, tidy bool) string {
	if i > 0 {
		if rest, ok := strings.CutPrefix(s, prefix); ok {
			s = rest
		} else {
			s = " " + s
		}
	}
	if tidy {
		s = cleanup(s)
	}
	return s
}

// cleanup takes spaces out before punctuation and English contractions, one rule after the other.
func cleanup(s string) string {
	for i := 0; i < len(cleanupRules); i += 2 {
		s = strings.ReplaceAll(s, cleanupRules[i], cleanupRules[i+1])
	}
	return s
}

var cleanupRules = []string{
	" .", ".", " ?", "?", " !", "!", " ,", ",", " ' ", "'", " n't", "n't", " 'm", "'m", " do not", " don't",
	" 's", "'s", " 've", "'ve", " 're", "'re",
}

func newReplaceStage(n *node) (func() stage, error) {
	if n.Pattern.String != nil {
		from := *n.Pattern.String
		if from == "" {
			return perToken(func(_ int, s string) string { return s })
		}
		return perToken(func(_ int, s string) string { return strings.ReplaceAll(s, from, n.Content) })
	}
	r, err := newReplace(n)
	if err != nil {
		return nil, err
	}
	return perToken(func(_ int, s string) string {
		if out, err := r.normalize(s); err == nil {
			return out
		}
		return s // the pattern ran into its time limit
	})
}

func newCTCStage(n *node) func() stage {
	pad, delimiter, tidy := n.PadToken, n.WordDelimiterToken, isTrue(n.Cleanup, true)
	if pad == "" {
		pad = "<pad>"
	}
	if delimiter == "" {
		delimiter = "|"
	}
	return func() stage {
		last, seen := "", false
		return &eachToken{f: func(_ int, s string) string {
			if seen && s == last {
				return ""
			}
			last, seen = s, true
			s = strings.ReplaceAll(s, pad, "")
			if tidy {
				s = strings.ReplaceAll(cleanup(s), delimiter, " ")
			}
			return s
		}}
	}
}

// eachToken maps whole tokens.
type eachToken struct {
	f    func(i int, s string) string
	n    int
	part []byte
}

func (e *eachToken) push(c chunk, emit func(chunk)) {
	if !c.end {
		e.part = append(e.part, c.text...)
		return
	}
	s := c.text
	if len(e.part) > 0 {
		s = string(append(e.part, s...))
		e.part = e.part[:0]
	}
	emit(chunk{e.f(e.n, s), true})
	e.n++
}

func (e *eachToken) flush(func(chunk)) {}

// fuseStage makes one token of all.
type fuseStage struct{}

func (f *fuseStage) push(c chunk, emit func(chunk)) { emit(chunk{text: c.text}) }
func (f *fuseStage) flush(emit func(chunk))         { emit(chunk{end: true}) }

// byteLevelStage turns the byte-level alphabet into text, all of it one token.
type byteLevelStage struct {
	part []byte // of the current token
	tail []byte // bytes that may be completed
}

func (b *byteLevelStage) push(c chunk, emit func(chunk)) {
	b.part = append(b.part, c.text...)
	if !c.end {
		return
	}
	buf := appendFromByteLevel(b.tail, string(b.part))
	b.part = b.part[:0]
	n := len(buf) - incompleteTail(buf)
	if n > 0 {
		emit(chunk{text: string(appendLossy(nil, buf[:n]))})
	}
	b.tail = append(b.tail[:0], buf[n:]...)
}

func (b *byteLevelStage) flush(emit func(chunk)) {
	emit(chunk{string(appendLossy(nil, b.tail)), true})
	b.tail = nil
}

// fallbackStage joins runs of byte tokens: one text if they are valid UTF-8, else a U+FFFD for each byte.
// Whether the run is valid is known only at its end.
type fallbackStage struct {
	part []byte
	run  []byte
}

func (f *fallbackStage) push(c chunk, emit func(chunk)) {
	f.part = append(f.part, c.text...)
	if !c.end {
		return
	}
	s := string(f.part)
	f.part = f.part[:0]
	if b, ok := byteToken(s); ok {
		f.run = append(f.run, b)
		return
	}
	f.flush(emit)
	emit(chunk{s, true})
}

func (f *fallbackStage) flush(emit func(chunk)) {
	if len(f.run) == 0 {
		return
	}
	if utf8.Valid(f.run) {
		emit(chunk{string(f.run), true})
	} else {
		for range f.run {
			emit(chunk{"\uFFFD", true})
		}
	}
	f.run = f.run[:0]
}

// byteToken returns the byte that <0xNN> stands for.
func byteToken(s string) (byte, bool) {
	if len(s) != 6 || s[:3] != "<0x" || s[5] != '>' {
		return 0, false
	}
	n, err := strconv.ParseUint(s[3:5], 16, 8)
	return byte(n), err == nil
}

// stripStage cuts up to start and stop copies of a character off the ends of each token.
// With a stop it needs the whole token; this is the stage without.
type stripStage struct {
	content string
	start   int
	left    int // how many may still be cut off this token's start
	begun   bool
}

func newStripStage(n *node) (func() stage, error) {
	if utf8.RuneCountInString(n.Content) != 1 {
		return nil, fmt.Errorf("content of Strip is %q, want one character", n.Content)
	}
	if n.Start < 0 || n.Stop < 0 {
		return nil, fmt.Errorf("start and stop of Strip are %d and %d, want at least 0", n.Start, n.Stop)
	}
	trim := func(_ int, s string) string {
		for k := 0; k < n.Start && strings.HasPrefix(s, n.Content); k++ {
			s = s[len(n.Content):]
		}
		for k := 0; k < n.Stop && strings.HasSuffix(s, n.Content); k++ {
			s = s[:len(s)-len(n.Content)]
		}
		return s
	}
	if n.Stop > 0 {
		return perToken(trim)
	}
	return func() stage { return &stripStage{content: n.Content, start: n.Start} }, nil
}

func (p *stripStage) push(c chunk, emit func(chunk)) {
	if !p.begun {
		p.begun, p.left = true, p.start
	}
	for p.left > 0 && c.text != "" {
		rest, ok := strings.CutPrefix(c.text, p.content)
		if !ok {
			p.left = 0
			break
		}
		c.text = rest
		p.left--
	}
	if c.end {
		p.begun = false
	}
	emit(c)
}

func (p *stripStage) flush(func(chunk)) {}

// suffixStage makes a space of the end-of-word suffix, and nothing of it in the last token.
type suffixStage struct {
	suffix string
	part   []byte
	held   *string
}

func (x *suffixStage) push(c chunk, emit func(chunk)) {
	x.part = append(x.part, c.text...)
	if !c.end {
		return
	}
	if x.held != nil && x.suffix != "" {
		emit(chunk{strings.ReplaceAll(*x.held, x.suffix, " "), true})
	} else if x.held != nil {
		emit(chunk{*x.held, true})
	}
	s := string(x.part)
	x.part = x.part[:0]
	x.held = &s
}

func (x *suffixStage) flush(emit func(chunk)) {
	if x.held == nil {
		return
	}
	s := *x.held
	if x.suffix != "" {
		s = strings.ReplaceAll(s, x.suffix, "")
	}
	emit(chunk{s, true})
	x.held = nil
}
