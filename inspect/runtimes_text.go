package inspect

import (
	"slices"
	"strings"

	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/manifest"
)

// Added tokens that end a generation in ANEMLL's readers whatever the files
// say (anemll.md 4.1 and 4.3).
var (
	pythonEnds = []string{"<|endoftext|>", "<end_of_turn>", "<|eot_id|>"}
	swiftEnds  = []string{"<eos>", "</s>", "<|endoftext|>", "<end_of_turn>", "<|im_end|>", "<|eot_id|>"}
)

// textRuntimes lists which stop ids and which chat template every runtime
// takes.
func (v *view) textRuntimes() []RuntimeView {
	t := &v.pkg.Tokenizer
	if t.Dir == "" {
		return nil
	}
	var out []RuntimeView
	switch v.pkg.Kind {
	case manifest.Seed, manifest.ANEMLL:
		python := v.eosOf("tokenizer_config.json", "special_tokens_map.json")
		swift := v.eosOf("config.json")
		out = append(out,
			RuntimeView{anemllPython, "stop_ids", v.withAdded(python, pythonEnds), "tokenizer's eos_token and fixed added tokens"},
			RuntimeView{anemllSwift, "stop_ids", v.withAdded(swift, swiftEnds), "config.json's eos_token_id and fixed added tokens"},
			RuntimeView{seedContract, "stop_ids", v.allStops(), "every file"},
			RuntimeView{anemllPython, "chat_template", v.templateFor(true), templateSource(v.templateFor(true), "plain text")},
			RuntimeView{anemllSwift, "chat_template", v.templateFor(false), templateSource(v.templateFor(false), "a built-in format of the architecture, else ChatML")})
	case manifest.CoreMLLLM:
		id, source := any(1), "default"
		if e := v.pkg.Params.Get("eos_token_id"); e != nil {
			switch n, isInt := e.Value.(int); {
			case isInt:
				id, source = n, at(e)
			case e.Elems != nil && strings.HasPrefix(v.pkg.Architecture, "gemma3"):
				id, source = e.Value, at(e) // FunctionGemma's own reader takes lists
			default:
				source = at(e) + " has another type: default"
			}
		}
		out = append(out, RuntimeView{coremlLLM, "stop_ids", id, source},
			RuntimeView{coremlLLM, "chat_template", v.templateFor(true), templateSource(v.templateFor(true), "a built-in format of the architecture")})
	}
	return out
}

func templateSource(file any, fallback string) string {
	if file == nil {
		return fallback
	}
	return "file"
}

// templateFor is the file that a reader takes the template from; nil when it
// finds none.
func (v *view) templateFor(readsJinja bool) any {
	t := &v.pkg.Tokenizer
	if t.ChatTemplate == "" || !readsJinja && t.ChatTemplateFrom != t.ConfigFile && !v.configTemplate() {
		return nil
	}
	if !readsJinja {
		return t.ConfigFile
	}
	return t.ChatTemplateFrom
}

// configTemplate reports whether tokenizer_config.json has a template, also
// where chat_template.jinja outranks it.
func (v *view) configTemplate() bool {
	f := v.pkg.Tokenizer.ConfigFile
	if f == "" {
		return false
	}
	doc := v.pkg.ReadJSON(f)
	return doc.Member("chat_template") != nil
}

// eosOf lists the stop ids that some of the files name.
func (v *view) eosOf(files ...string) []int {
	out := []int{}
	for _, s := range v.pkg.Tokenizer.StopSources {
		file, key, _ := strings.Cut(s.Source, ":")
		if slices.Contains(files, file) && !strings.Contains(key, "chat end token") && !slices.Contains(out, s.ID) {
			out = append(out, s.ID)
		}
	}
	return out
}

func (v *view) withAdded(ids []int, names []string) []int {
	for _, a := range v.pkg.Tokenizer.Added {
		if slices.Contains(names, a.Content) && !slices.Contains(ids, a.ID) {
			ids = append(ids, a.ID)
		}
	}
	slices.Sort(ids)
	return ids
}

func (v *view) allStops() []int {
	out := []int{}
	for _, s := range v.pkg.Tokenizer.StopSources {
		if !slices.Contains(out, s.ID) {
			out = append(out, s.ID)
		}
	}
	slices.Sort(out)
	return out
}

// checkRuntimesAgree compares what every reader takes with the programs.
func checkRuntimesAgree(p *Pass) {
	views := p.runtimes()
	truth := map[string]any{}
	for _, r := range views {
		if r.Runtime == seedContract {
			truth[r.Key] = r.Value
		}
	}
	for _, r := range views {
		want, ok := truth[r.Key].(int)
		got, isInt := r.Value.(int)
		if r.Runtime == seedContract || !ok || isInt && got == want || !isInt && r.Value != nil {
			continue
		}
		if r.Value == nil || r.Source == "default" && p.pkg.Params.Get(r.Key) != nil || !strings.Contains(r.Source, "default") {
			continue // the value stands in the file: other rules compare it
		}
		p.Report(p.posOf(r.Key), "%s takes %s = %d (%s), the programs have %d", r.Runtime, r.Key, got, r.Source, want).On(r.Runtime).Compare(got, want).Fix("write %s: %d as a plain number", r.Key, want)
	}
}

// checkRuntimesStop: a reader that misses the end token of the answers.
func checkRuntimesStop(p *Pass) {
	t := &p.pkg.Tokenizer
	if t.Dir == "" || len(t.StopSources) == 0 || p.pkg.Layout == manifest.Encoder {
		p.Skip("no tokenizer files, or nothing names an end token")
		return
	}
	eos, ok := t.Special["eos"]
	if !ok || eos.ID < 0 {
		p.Skip("tokenizer_config.json names no eos_token")
		return
	}
	for _, r := range p.runtimes() {
		if r.Key != "stop_ids" || r.Runtime == seedContract {
			continue
		}
		ids, ok := r.Value.([]int)
		if n, one := r.Value.(int); one {
			ids, ok = []int{n}, true
		}
		if ok && !slices.Contains(ids, eos.ID) {
			p.Report(eos.Pos, "%s stops at %v (%s) and not at the eos_token %s (%d)", r.Runtime, ids, r.Source, eos.Content, eos.ID).On(r.Runtime).Compare(ids, eos.ID).
				Fix("name %d where %s reads it", eos.ID, r.Runtime)
		}
	}
}

// checkRuntimesTemplate: a reader that does not see the template.
func checkRuntimesTemplate(p *Pass) {
	if p.pkg.Tokenizer.ChatTemplate == "" {
		p.Skip("no chat template")
		return
	}
	for _, r := range p.runtimes() {
		if r.Key == "chat_template" && r.Value == nil {
			p.Report(diag.In(p.pkg.Tokenizer.ChatTemplateFrom), "%s does not read %s and uses %s", r.Runtime, p.pkg.Tokenizer.ChatTemplateFrom, r.Source).On(r.Runtime).
				Compare("not read", p.pkg.Tokenizer.ChatTemplateFrom).Fix("copy the template into tokenizer_config.json, key chat_template")
		}
	}
}
