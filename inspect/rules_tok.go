package inspect

import (
	"errors"
	"path"
	"strings"

	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/manifest"
)

// checkTokenizerPresent: a language model needs tokenizer.json and
// tokenizer_config.json.
func checkTokenizerPresent(p *Pass) {
	t := &p.pkg.Tokenizer
	dir := t.Dir
	if dir == "" {
		dir = "."
		if p.pkg.Kind == manifest.CoreMLLLM {
			dir = "hf_model"
		}
	}
	if t.File == "" {
		f := p.Report(diag.In(path.Join(dir, "tokenizer.json")), "tokenizer.json is missing").Compare("absent", "tokenizer.json").Fix("copy it from the model's checkpoint")
		for _, name := range []string{"tokenizer.model", "vocab.json"} {
			if p.pkg.File(path.Join(dir, name)) != nil {
				f.Fix("make it from %s with transformers: AutoTokenizer.from_pretrained(...).save_pretrained(...)", name)
			}
		}
		if p.fixedModel() {
			f.As(Warning).Fix("copy it into hf_model/ to use the package alone; the runtime of this layout fetches its tokenizer")
		}
	}
	if t.ConfigFile == "" {
		f := p.Report(diag.In(path.Join(dir, "tokenizer_config.json")), "tokenizer_config.json is missing").Compare("absent", "tokenizer_config.json").Fix("copy it from the model's checkpoint")
		if p.fixedModel() {
			f.As(Warning)
		}
	}
	if p.pkg.Kind == manifest.CoreMLLLM && t.ModelConfig == "" && !p.fixedModel() {
		p.Report(diag.In(path.Join(dir, "config.json")), "config.json is missing: swift-transformers refuses the folder").Compare("absent", "config.json").As(Warning).On(coremlLLM)
	}
}

// checkTokenizerParses reports tokenizer files that do not parse.
func checkTokenizerParses(p *Pass) {
	for _, e := range p.pkg.Problems {
		if !p.isConfig(e.Pos.File) && p.isTokenizerFile(e.Pos.File) {
			f := p.ReportError(e)
			if errors.Is(e, manifest.ErrNaN) && path.Base(e.Pos.File) != "tokenizer.json" {
				f.As(Warning).On(anemllSwift, coremlLLM) // Python's json takes it
			}
		}
	}
}

func (p *Pass) isTokenizerFile(name string) bool {
	switch path.Base(name) {
	case "tokenizer.json", "tokenizer_config.json", "generation_config.json", "special_tokens_map.json", "config.json", "chat_template.jinja", "chat_template.json":
		return !strings.Contains(name, ".mlmodelc/") && !strings.Contains(name, ".mlpackage/")
	}
	return false
}

// vocabulary is the number of ids that the programs know.
func (p *Pass) vocabulary() number {
	if p.facts.vocab.n > 0 {
		return p.facts.vocab
	}
	return p.facts.embedRows
}

// checkTokenIDs: every id of the tokenizer has an embedding row and a logit.
func checkTokenIDs(p *Pass) {
	t := &p.pkg.Tokenizer
	v := p.vocabulary()
	if v.n == 0 {
		if n, ok := p.pkg.Params.Int("vocab_size"); ok {
			v = number{n: n, source: "vocab_size", pos: p.posOf("vocab_size")}
		}
	}
	switch {
	case t.VocabSize == 0:
		p.Skip("tokenizer.json is not readable")
		return
	case v.n == 0:
		p.Skip("no readable program tells the vocabulary")
		return
	}
	if t.VocabSize <= v.n {
		return
	}
	at := diag.In(t.File)
	for _, a := range t.Added {
		if a.ID >= v.n {
			at = a.Pos
			break
		}
	}
	p.Report(at, "the tokenizer has ids up to %d, the model knows %d (%s): larger ids read past the embedding table", t.VocabSize-1, v.n, v.source).
		Compare(t.VocabSize-1, v.n-1).Also(v.pos).Fix("use the tokenizer of the model's checkpoint")
}

// checkStopIDs: some stop id is known and the model can produce it.
func checkStopIDs(p *Pass) {
	t := &p.pkg.Tokenizer
	if t.Dir == "" {
		p.Skip("the package has no tokenizer files")
		return
	}
	if len(t.StopSources) == 0 {
		if p.pkg.Layout == manifest.Encoder {
			return
		}
		if t.VocabSize == 0 {
			p.Skip("tokenizer.json is not readable")
			return
		}
		p.Report(diag.In(path.Join(t.Dir, "tokenizer_config.json")), "no file names an end-of-text token: a generation ends only at its length").Compare("none", "eos_token").
			Fix("write eos_token in tokenizer_config.json or eos_token_id in generation_config.json")
		return
	}
	v := p.vocabulary()
	for _, s := range t.StopSources {
		switch {
		case v.n > 0 && s.ID >= v.n:
			p.Report(s.Pos, "stop id %d (%s) lies outside the model's vocabulary of %d", s.ID, s.Source, v.n).Compare(s.ID, v.n-1)
		case t.VocabSize > 0 && s.ID >= t.VocabSize:
			p.Report(s.Pos, "stop id %d (%s) is unknown to the tokenizer, whose last id is %d", s.ID, s.Source, t.VocabSize-1).Compare(s.ID, t.VocabSize-1).As(Warning)
		}
	}
}

// checkSpecialTokens: named tokens exist in the vocabulary.
func checkSpecialTokens(p *Pass) {
	t := &p.pkg.Tokenizer
	if t.VocabSize == 0 {
		p.Skip("tokenizer.json is not readable")
		return
	}
	for _, name := range []string{"bos", "eos", "pad", "unk"} {
		if s, ok := t.Special[name]; ok && s.ID < 0 {
			f := p.Report(s.Pos, "%s_token %q is not in the vocabulary", name, s.Content).Compare(s.Content, "a token of tokenizer.json")
			if name == "eos" {
				f.Fix("write a token that tokenizer.json has; a runtime that waits for this one never stops")
			}
		}
	}
}

// checkTemplate names packages without a chat template.
func checkTemplate(p *Pass) {
	t := &p.pkg.Tokenizer
	if t.Dir == "" || p.pkg.Layout == manifest.Encoder {
		p.Skip("no tokenizer files, or an encoder")
		return
	}
	if t.ChatTemplate == "" {
		p.Report(diag.In(path.Join(t.Dir, "tokenizer_config.json")), "no chat template: chat works only with a built-in one").Compare("absent", "chat_template")
	}
	if t.TemplateFile != "" && t.ChatTemplateFrom == t.TemplateFile && p.anemllLike() {
		p.Report(diag.In(t.TemplateFile), "the chat template lies in chat_template.jinja, which ANEMLL's Swift reader does not read").Compare("chat_template.jinja", "tokenizer_config.json")
	}
}

// checkStubConfig: ANEMLL overwrites config.json with a stub that says llama.
func checkStubConfig(p *Pass) {
	t := &p.pkg.Tokenizer
	if t.ModelConfig == "" || p.pkg.Architecture == "" {
		p.Skip("no readable config.json")
		return
	}
	data := p.pkg.ReadJSON(t.ModelConfig)
	s, ok := data.Member("model_type").Str()
	if !ok || strings.HasPrefix(s, p.pkg.Architecture) || strings.HasPrefix(p.pkg.Architecture, s) {
		return
	}
	p.Report(data.Member("model_type").Pos, "config.json says model_type %s, meta.yaml says architecture %s: prepare_hf.sh overwrites config.json with a stub", s, p.pkg.Architecture).
		Compare(s, p.pkg.Architecture)
}
