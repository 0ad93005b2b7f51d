package inspect

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/manifest"
	"github.com/anepkg/anepkg/runner/chattmpl"
)

// templatePos is the file that the chat template comes from, with the
// template's own line where it is a file of its own.
func (p *Pass) templatePos(err error) diag.Pos {
	t := &p.pkg.Tokenizer
	at := diag.In(t.ChatTemplateFrom)
	var e *chattmpl.Error
	var raised *chattmpl.RaiseError
	switch {
	case t.ChatTemplateFrom != t.TemplateFile:
	case errors.As(err, &e):
		at.Line = e.Line
	case errors.As(err, &raised):
		at.Line = raised.Line
	}
	return at
}

// template parses the package's chat template; nil when there is none or it
// does not parse.
func (p *Pass) template() (*chattmpl.Template, error) {
	if p.pkg.Tokenizer.ChatTemplate == "" {
		return nil, nil
	}
	return chattmpl.Parse(p.pkg.Tokenizer.ChatTemplate)
}

// checkTemplateParses: the template is valid Jinja.
func checkTemplateParses(p *Pass) {
	t, err := p.template()
	if t == nil && err == nil {
		p.Skip("no chat template")
		return
	}
	if err != nil {
		p.Report(p.templatePos(err), "the chat template does not parse: %v", err).Compare("a syntax error", "a Jinja template").Fix("copy the template from the model's checkpoint")
	}
}

// conversation renders one question and, when answer is not empty, its
// answer.
func (p *Pass) conversation(t *chattmpl.Template, answer string) (string, error) {
	msgs := []chattmpl.Message{{Role: "user", Content: "question-7315"}}
	if answer != "" {
		msgs = append(msgs, chattmpl.Message{Role: "assistant", Content: answer})
	}
	extra := map[string]any{}
	for name, s := range p.pkg.Tokenizer.Special {
		extra[name+"_token"] = s.Content
	}
	return t.RenderChat(msgs, answer == "", extra)
}

// checkTemplateRenders: a plain question renders, and is in the prompt.
func checkTemplateRenders(p *Pass) {
	t, err := p.template()
	if t == nil || err != nil {
		p.Skip("no chat template that parses")
		return
	}
	out, err := p.conversation(t, "")
	switch {
	case err != nil:
		p.Report(p.templatePos(err), "the chat template does not render a plain question: %v", err).Compare("an error", "a prompt").Fix("copy the template from the model's checkpoint")
	case !strings.Contains(out, "question-7315"):
		p.Report(p.templatePos(nil), "the prompt that the chat template renders lacks the question").Compare(out, "a prompt with the question").Fix("copy the template from the model's checkpoint")
	}
}

// checkTemplateEnd: what the template writes after an answer ends a
// generation.
func checkTemplateEnd(p *Pass) {
	t, err := p.template()
	tok := &p.pkg.Tokenizer
	if t == nil || err != nil || len(tok.StopSources) == 0 {
		p.Skip("no chat template that parses, or no stop ids")
		return
	}
	out, err := p.conversation(t, "answer-2846")
	_, rest, ok := strings.Cut(out, "answer-2846")
	if err != nil || !ok {
		p.Skip("the template does not render a conversation")
		return
	}
	rest = strings.TrimLeft(rest, " \n\t")
	end := manifest.SpecialToken{ID: -1}
	for _, a := range tok.Added {
		if a.Content != "" && strings.HasPrefix(rest, a.Content) && len(a.Content) > len(end.Content) {
			end = a
		}
	}
	if end.ID < 0 {
		p.Skip("no added token follows an answer")
		return
	}
	var ids []string
	guessed := false // only runtimes that know common end tokens by name stop
	for _, s := range tok.StopSources {
		if strings.HasSuffix(s.Source, ": chat end token") {
			guessed = guessed || s.ID == end.ID
			continue
		}
		if s.ID == end.ID {
			return
		}
		if text := fmt.Sprintf("%d (%s)", s.ID, s.Source); !slices.Contains(ids, text) {
			ids = append(ids, text)
		}
	}
	f := p.Report(p.templatePos(nil), "the chat template ends an answer with %s (%d), which no file names as a stop id: %s", end.Content, end.ID, strings.Join(ids, ", ")).
		Compare(end.ID, ids).Fix("add %d to eos_token_id in generation_config.json", end.ID)
	if guessed {
		f.As(Note).On(anemllPython, coremlLLM)
	}
}

// checkStopSources: the files that name end tokens have one in common.
func checkStopSources(p *Pass) {
	byFile := map[string][]int{}
	pos := map[string]diag.Pos{}
	for _, s := range p.pkg.Tokenizer.StopSources {
		file, key, named := strings.Cut(s.Source, ":")
		if !named || strings.Contains(key, "chat end token") {
			continue
		}
		byFile[file] = append(byFile[file], s.ID)
		if pos[file].File == "" {
			pos[file] = s.Pos
		}
	}
	files := make([]string, 0, len(byFile))
	for f := range byFile {
		if strings.HasSuffix(f, ".json") {
			files = append(files, f)
		}
	}
	if len(files) < 2 {
		p.Skip("fewer than two files name end tokens")
		return
	}
	slices.Sort(files)
	for i, a := range files {
		for _, b := range files[i+1:] {
			if !slices.ContainsFunc(byFile[a], func(id int) bool { return slices.Contains(byFile[b], id) }) {
				p.Report(pos[a], "%s ends a generation at %v, %s at %v: a runtime that reads one of them does not stop where another does", a, byFile[a], b, byFile[b]).
					Compare(byFile[a], byFile[b]).Also(pos[b]).Fix("list all end tokens in generation_config.json")
			}
		}
	}
}

// checkTokenizerClass: swift-transformers knows no TokenizersBackend.
func checkTokenizerClass(p *Pass) {
	t := &p.pkg.Tokenizer
	if t.ConfigFile == "" {
		p.Skip("no tokenizer_config.json")
		return
	}
	data := p.pkg.ReadJSON(t.ConfigFile)
	c := data.Member("tokenizer_class")
	if s, _ := c.Str(); s == "TokenizersBackend" {
		p.Report(c.Pos, "tokenizer_class is TokenizersBackend, which transformers 5 writes and swift-transformers refuses").On(coremlLLM, anemllSwift).
			Compare(s, "the class of the checkpoint's tokenizer").Fix("write the name of the tokenizer's class, for example PreTrainedTokenizerFast")
	}
}

// checkAddedTokens: one content has one id, one id one content.
func checkAddedTokens(p *Pass) {
	ids, names := map[int]manifest.SpecialToken{}, map[string]manifest.SpecialToken{}
	for _, a := range p.pkg.Tokenizer.Added {
		if b, ok := ids[a.ID]; ok && b.Content != a.Content {
			p.Report(a.Pos, "added tokens %q and %q have the same id %d", b.Content, a.Content, a.ID).Compare(a.ID, "an id of its own").Also(b.Pos)
		}
		if b, ok := names[a.Content]; ok && b.ID != a.ID {
			p.Report(a.Pos, "the added token %q has the ids %d and %d", a.Content, b.ID, a.ID).Compare(a.ID, b.ID).Also(b.Pos)
		}
		ids[a.ID], names[a.Content] = a, a
	}
	if len(p.pkg.Tokenizer.Added) == 0 {
		p.Skip("tokenizer.json has no added tokens, or is not readable")
	}
}
