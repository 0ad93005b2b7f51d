package runner

import (
	"path"
	"strings"

	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/manifest"
	"github.com/anepkg/anepkg/runner/tokenizer"
)

// StopSources lists the ids that end generation and the file and key that
// name each: the union of generation_config.json, config.json,
// tokenizer_config.json and the chat end tokens of the vocabulary.
func (r *Runner) StopSources() []manifest.StopSource { return r.pkg.Tokenizer.StopSources }

// Tokenizer reads the package's tokenizer once. A package without one gives
// an error of class diag.NotFound.
func (r *Runner) Tokenizer() (tokenizer.Tokenizer, error) {
	if !r.tokDone {
		load := r.opts.Tokenizer
		if load == nil {
			load = tokenizer.Load
		}
		r.tok, r.tokErr = loadTokenizer(r.pkg, load)
		r.tokDone = true
	}
	return r.tok, r.tokErr
}

// LoadTokenizer reads the tokenizer of pkg.
func LoadTokenizer(pkg *manifest.Package) (tokenizer.Tokenizer, error) {
	return loadTokenizer(pkg, tokenizer.Load)
}

// TokenizerFile is the path of the tokenizer inside the package:
// tokenizer.json, else SentencePiece's tokenizer.model beside the
// tokenizer's other files or at the top; "" without one.
func TokenizerFile(pkg *manifest.Package) string {
	if pkg.Tokenizer.File != "" {
		return pkg.Tokenizer.File
	}
	for _, dir := range []string{pkg.Tokenizer.Dir, ".", "hf_model"} {
		if name := path.Join(dir, "tokenizer.model"); pkg.File(name) != nil {
			return name
		}
	}
	return ""
}

// ReadTokenizer makes a tokenizer of the contents of TokenizerFile; load
// reads a tokenizer.json. Whether a tokenizer.model adds BOS and EOS stands
// in tokenizer_config.json.
func ReadTokenizer(pkg *manifest.Package, load func([]byte) (tokenizer.Tokenizer, error), data []byte) (tokenizer.Tokenizer, error) {
	if pkg.Tokenizer.File != "" {
		return load(data)
	}
	config := pkg.ReadJSON(pkg.Tokenizer.ConfigFile)
	var opts tokenizer.SentencePieceOptions
	opts.AddBOS, _ = config.Member("add_bos_token").Bool()
	opts.AddEOS, _ = config.Member("add_eos_token").Bool()
	return tokenizer.LoadSentencePiece(data, opts)
}

func loadTokenizer(pkg *manifest.Package, load func([]byte) (tokenizer.Tokenizer, error)) (tokenizer.Tokenizer, error) {
	file := TokenizerFile(pkg)
	if file == "" {
		return nil, diag.Errorf(diag.In(pkg.Path), diag.NotFound, "the package has no tokenizer.json and no tokenizer.model").
			WithHint("give token ids with --prompt-ids")
	}
	data, err := readFile(pkg.FS, file)
	if err != nil {
		return nil, err
	}
	t, err := ReadTokenizer(pkg, load, data)
	if err != nil {
		if diag.CodeOf(err) != "" {
			return nil, err
		}
		return nil, diag.Errorf(diag.In(file), diag.Malformed, "%w", err)
	}
	return t, nil
}

// textStream turns ids into text, holds back what may become a stop string,
// and ends at the first one.
type textStream struct {
	stream *tokenizer.Stream // nil without a tokenizer
	stops  []string
	held   string
	emit   func(string)
	ended  bool
}

func newTextStream(t tokenizer.Tokenizer, skipSpecial bool, stops []string, emit func(string)) *textStream {
	s := &textStream{emit: emit}
	if t != nil {
		s.stream = tokenizer.NewStream(t, skipSpecial)
	}
	for _, st := range stops {
		if st != "" {
			s.stops = append(s.stops, st)
		}
	}
	return s
}

// push adds an id; it returns the stop string that the text now holds, or "".
func (s *textStream) push(id int) string {
	if s.stream == nil || s.ended {
		return ""
	}
	return s.add(s.stream.Push(id), false)
}

// flush emits what was held back and returns a stop string found in it.
func (s *textStream) flush() string {
	if s.stream == nil || s.ended {
		return ""
	}
	found := s.add(s.stream.Flush(), true)
	s.ended = true
	return found
}

func (s *textStream) add(text string, last bool) string {
	s.held += text
	first, which := -1, ""
	for _, st := range s.stops {
		if i := strings.Index(s.held, st); i >= 0 && (first < 0 || i < first) {
			first, which = i, st
		}
	}
	if first >= 0 {
		s.say(s.held[:first])
		s.held, s.ended = "", true
		return which
	}
	keep := 0
	if !last {
		keep = s.pending()
	}
	s.say(s.held[:len(s.held)-keep])
	s.held = s.held[len(s.held)-keep:]
	return ""
}

// pending is the length of the longest end of held that begins a stop string.
func (s *textStream) pending() int {
	best := 0
	for _, st := range s.stops {
		for n := min(len(st)-1, len(s.held)); n > best; n-- {
			if strings.HasSuffix(s.held, st[:n]) {
				best = n
				break
			}
		}
	}
	return best
}

func (s *textStream) say(text string) {
	if text != "" {
		s.emit(text)
	}
}
