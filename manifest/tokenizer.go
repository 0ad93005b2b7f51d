package manifest

import (
	"errors"
	"path"
	"sort"
	"strings"

	"github.com/anepkg/anepkg/coreml/diag"
)

const maxTemplate = 2 << 20

// endTokens are the texts that end a turn in the chat formats of the models
// that are converted for the Neural Engine.
var endTokens = []string{
	"<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<end_of_turn>", "<turn|>", "<|endoftext|>", "<|end_of_text|>",
	"<|end|>", "</s>", "<eos>", "<｜end▁of▁sentence｜>",
}

// tokenizerDirs are where tokenizer files may lie, in order of preference.
func (p *Package) tokenizerDirs() []string {
	dirs := []string{".", "hf_model"}
	if p.ConfigFile != "" {
		if d := path.Dir(p.ConfigFile); d != "." {
			dirs = append([]string{d, path.Join(d, "hf_model")}, dirs...)
		}
	}
	for _, pt := range p.Parts {
		if d := path.Dir(pt.Path); pt.Path != "" && d != "." {
			dirs = append(dirs, d, path.Join(d, "hf_model"))
		}
	}
	return append(dirs, "tokenizer")
}

// readTokenizer collects what the tokenizer files claim. Files that do not
// parse become problems.
func (p *Package) readTokenizer() {
	t := &p.Tokenizer
	for _, dir := range p.tokenizerDirs() {
		if p.File(path.Join(dir, "tokenizer.json")) != nil || p.File(path.Join(dir, "tokenizer_config.json")) != nil {
			t.Dir = dir
			break
		}
	}
	if t.Dir == "" {
		return
	}
	at := func(name string) string {
		if f := path.Join(t.Dir, name); p.File(f) != nil {
			return f
		}
		return ""
	}
	t.File, t.ConfigFile, t.TemplateFile = at("tokenizer.json"), at("tokenizer_config.json"), at("chat_template.jinja")
	t.GenConfig, t.ModelConfig = at("generation_config.json"), at("config.json")
	config := p.jsonFile(t.ConfigFile)
	special := p.jsonFile(at("special_tokens_map.json"))
	r := &tokenizerFacts{t: t, ids: map[string]int{}}
	r.wanted(config, special)
	if p.readable(t.File) != nil {
		if err := r.readVocabulary(p, t.File); err != nil {
			p.Problems = append(p.Problems, asError(t.File, err))
		}
	}
	r.addedDecoder(config)
	r.special(config)
	r.special(special)
	model := p.jsonFile(t.ModelConfig)
	if s, ok := model.Member("model_type").Str(); ok && p.Architecture == "" && p.Kind == CoreMLLLM {
		p.Architecture = s
	}
	r.stops("config.json", model)
	if p.Kind == CoreMLLLM && len(p.Params) > 0 {
		r.stops("model_config.json", Param{Elems: p.Params, Value: map[string]any{}})
	}
	r.stops("generation_config.json", p.jsonFile(t.GenConfig))
	r.endOfTurn()
	p.readTemplate(config, at("chat_template.json"))
}

// jsonFile reads a JSON file when it is there and holds content; an empty
// Param otherwise.
func (p *Package) jsonFile(name string) Param {
	if name == "" || p.readable(name) == nil {
		return Param{}
	}
	data, err := readFile(p.FS, name, maxConfig)
	if err != nil {
		p.Problems = append(p.Problems, asError(name, err))
		return Param{}
	}
	v, notes, err := parseJSON(name, data)
	if err != nil {
		p.Problems = append(p.Problems, asError(name, err))
		return Param{}
	}
	p.dialect(notes)
	return v
}

// dialect keeps what strict readers of JSON refuse; keys that stand twice in
// tokenizer files trouble nobody.
func (p *Package) dialect(notes []*diag.Error) {
	for _, e := range notes {
		if errors.Is(e, ErrBOM) || errors.Is(e, ErrNaN) {
			p.Problems = append(p.Problems, e)
		}
	}
}

// ReadJSON reads a JSON file of the package with the positions of its
// values. It returns an empty Param for a file that is absent, a stub or
// broken; Problems then says what is wrong with those that Open reads.
func (p *Package) ReadJSON(name string) Param {
	if p.readable(name) == nil {
		return Param{}
	}
	data, err := readFile(p.FS, name, maxConfig)
	if err != nil {
		return Param{}
	}
	v, _, err := parseJSON(name, data)
	if err != nil {
		return Param{}
	}
	return v
}

// tokenizerFacts gathers ids of the tokens that matter.
type tokenizerFacts struct {
	t   *Tokenizer
	ids map[string]int // wanted tokens; -1 until found
}

var specialKeys = []string{"bos", "eos", "pad", "unk"}

// tokenText returns the text of a token given as a string or an object.
func tokenText(p *Param) (string, bool) {
	if p == nil {
		return "", false
	}
	if c := p.Member("content"); c != nil {
		return c.Str()
	}
	return p.Str()
}

// wanted notes the tokens whose ids the vocabulary must tell.
func (r *tokenizerFacts) wanted(files ...Param) {
	for _, s := range endTokens {
		r.ids[s] = -1
	}
	for i := range files {
		for _, k := range specialKeys {
			if s, ok := tokenText(files[i].Member(k + "_token")); ok {
				r.ids[s] = -1
			}
		}
	}
}

// addedDecoder uses tokenizer_config.json's own list of added tokens when
// tokenizer.json is not readable (it is often a Git LFS pointer).
func (r *tokenizerFacts) addedDecoder(config Param) {
	if len(r.t.Added) > 0 {
		return
	}
	list := config.Member("added_tokens_decoder")
	if list == nil {
		return
	}
	for _, e := range list.Elems {
		id, ok := (&Param{Value: e.Key}).Int()
		text, ok2 := tokenText(&e)
		if !ok || !ok2 || id < 0 {
			continue
		}
		special, _ := e.Member("special").Bool()
		r.t.Added = append(r.t.Added, SpecialToken{Content: text, ID: id, Special: special, Pos: e.KeyPos})
		r.ids[text] = id
	}
	sort.SliceStable(r.t.Added, func(i, j int) bool { return r.t.Added[i].ID < r.t.Added[j].ID })
}

// special fills Special from a file; what an earlier file said stays.
func (r *tokenizerFacts) special(file Param) {
	for _, k := range specialKeys {
		prm := file.Member(k + "_token")
		text, ok := tokenText(prm)
		if !ok || text == "" {
			continue
		}
		if _, done := r.t.Special[k]; done {
			continue
		}
		if r.t.Special == nil {
			r.t.Special = map[string]SpecialToken{}
		}
		id, found := r.ids[text]
		if !found {
			id = -1
		}
		r.t.Special[k] = SpecialToken{Content: text, ID: id, Special: true, Pos: prm.Pos}
	}
}

// stops adds eos_token_id of a config file, an integer or a list.
func (r *tokenizerFacts) stops(name string, file Param) {
	for _, inner := range []string{"", "text_config"} {
		m := &file
		key := "eos_token_id"
		if inner != "" {
			m = file.Member(inner)
			key = inner + ".eos_token_id"
		}
		prm := m.Member("eos_token_id")
		if prm == nil {
			continue
		}
		list := []Param{*prm}
		if prm.Elems != nil {
			list = prm.Elems
		}
		for i := range list {
			if id, ok := list[i].Int(); ok && id >= 0 {
				r.t.StopSources = append(r.t.StopSources, StopSource{ID: id, Token: r.textOf(id), Source: name + ": " + key, Pos: list[i].Pos})
			}
		}
	}
}

func (r *tokenizerFacts) textOf(id int) string {
	for _, a := range r.t.Added {
		if a.ID == id {
			return a.Content
		}
	}
	for s, n := range r.ids {
		if n == id {
			return s
		}
	}
	return ""
}

// endOfTurn adds tokenizer_config's eos_token and the chat end tokens. A
// text such as </s> also is an ordinary HTML tag in some vocabularies, so
// only special added tokens count when there are any.
func (r *tokenizerFacts) endOfTurn() {
	if eos, ok := r.t.Special["eos"]; ok && eos.ID >= 0 {
		r.t.StopSources = append(r.t.StopSources, StopSource{ID: eos.ID, Token: eos.Content, Source: path.Base(eos.Pos.File) + ": eos_token", Pos: eos.Pos})
	}
	added := map[string]SpecialToken{}
	for _, a := range r.t.Added {
		added[a.Content] = a
	}
	for _, text := range endTokens {
		a, ok := added[text]
		switch {
		case ok && a.Special:
			r.t.StopSources = append(r.t.StopSources, StopSource{ID: a.ID, Token: text, Source: path.Base(a.Pos.File) + ": chat end token", Pos: a.Pos})
		case !ok && len(added) == 0 && r.ids[text] >= 0:
			r.t.StopSources = append(r.t.StopSources, StopSource{ID: r.ids[text], Token: text, Source: "tokenizer.json: chat end token", Pos: diag.In(r.t.File)})
		}
	}
}

// readTemplate takes the chat template: chat_template.jinja wins over
// tokenizer_config.json, as in transformers; chat_template.json is older.
func (p *Package) readTemplate(config Param, jsonTemplate string) {
	t := &p.Tokenizer
	if t.TemplateFile != "" && p.readable(t.TemplateFile) != nil {
		data, err := readFile(p.FS, t.TemplateFile, maxTemplate)
		if err != nil {
			p.Problems = append(p.Problems, asError(t.TemplateFile, err))
		} else if len(strings.TrimSpace(string(data))) > 0 {
			t.ChatTemplate, t.ChatTemplateFrom = string(data), t.TemplateFile
			return
		}
	}
	if s, ok := templateText(config.Member("chat_template")); ok {
		t.ChatTemplate, t.ChatTemplateFrom = s, t.ConfigFile
		return
	}
	file := p.jsonFile(jsonTemplate)
	if s, ok := templateText(file.Member("chat_template")); ok {
		t.ChatTemplate, t.ChatTemplateFrom = s, jsonTemplate
	}
}

// templateText reads a template given as a string or as a list of named
// templates, of which "default" or else the first counts.
func templateText(p *Param) (string, bool) {
	if p == nil {
		return "", false
	}
	if s, ok := p.Str(); ok {
		return s, s != ""
	}
	first, ok := "", false
	for i := range p.Elems {
		s, has := p.Elems[i].Member("template").Str()
		if !has {
			continue
		}
		if name, _ := p.Elems[i].Member("name").Str(); name == "default" {
			return s, true
		}
		if !ok {
			first, ok = s, true
		}
	}
	return first, ok
}
