package inspect_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/coreml/sharedtest"
	"github.com/anepkg/anepkg/inspect"
	"github.com/anepkg/anepkg/manifest"
)

// TestCatalogue: ids are unique, sorted inside their family, and every rule
// says what it means.
func TestCatalogue(t *testing.T) {
	form := regexp.MustCompile(`^(PKG|CFG|MIL|WGT|TOK|RUN)\d{3}$`)
	last := map[string]string{}
	for _, r := range inspect.Catalogue() {
		if !form.MatchString(r.ID) {
			t.Errorf("id %q does not follow the form", r.ID)
		}
		if prev := last[r.Family()]; r.ID <= prev {
			t.Errorf("%s stands after %s", r.ID, prev)
		}
		last[r.Family()] = r.ID
		if len(r.Doc) < 40 || r.Title == "" || r.Since == "" || r.Check == nil {
			t.Errorf("%s is incomplete", r.ID)
		}
		if r.Fix() == "" || !strings.HasSuffix(r.Doc, ".") {
			t.Errorf("%s: the text does not end in \"Fix: ...\"", r.ID)
		}
		if !slices.Contains([]inspect.Severity{inspect.Error, inspect.Warning, inspect.Note}, r.Severity) {
			t.Errorf("%s has severity %q", r.ID, r.Severity)
		}
		got, err := inspect.Explain(strings.ToLower(r.ID))
		if err != nil || got.ID != r.ID {
			t.Errorf("explain %s: got %s, %v", r.ID, got.ID, err)
		}
	}
	if _, err := inspect.Explain("PKG999"); diag.CodeOf(err) != diag.NotFound {
		t.Errorf("explain of an unknown id: got %v, want not found", err)
	}
}

// edit changes one file of a package in memory.
func edit(name, old, now string) func(fstest.MapFS) {
	return func(m fstest.MapFS) {
		m[name] = &fstest.MapFile{Data: bytes.Replace(m[name].Data, []byte(old), []byte(now), 1)}
	}
}

func write(name, text string) func(fstest.MapFS) {
	return func(m fstest.MapFS) { m[name] = &fstest.MapFile{Data: []byte(text)} }
}

// ruleCase is a package on which a rule fires: one that is clean without the
// change, or an unchanged one that has the property.
type ruleCase struct {
	rule, pkg string // the package's folder under shared/models
	severity  inspect.Severity
	change    func(fstest.MapFS) // nil: the package as it is
}

const (
	qwen       = "tiny/seed-qwen3-lut6/compiled"
	head       = "qwen_lm_head_lut6.mlmodelc"
	chunk      = "qwen_FFN_PF_lut6_chunk_02of02.mlmodelc"
	embeddings = "qwen_embeddings.mlmodelc"
)

// fireCases are for rules on description files and the contracts of parts.
var fireCases = []ruleCase{
	{"PKG001", qwen, inspect.Error, func(m fstest.MapFS) {
		for name := range maps.Clone(m) {
			delete(m, name)
		}
		m["weights.gguf"] = &fstest.MapFile{Data: []byte("GGUF")}
	}},
	{"PKG008", qwen, inspect.Warning, write("x.bin.incomplete", "part")},
	{"PKG009", qwen, inspect.Note, write("qwen_FFN_lut6_chunk_01of02.mlmodelc/model.mil", "x")},
	{"PKG010", qwen, inspect.Note, func(m fstest.MapFS) {
		m["qwen_embeddings.mlpackage/Manifest.json"] = &fstest.MapFile{Data: []byte("{}")}
	}},
	{"PKG011", qwen, inspect.Warning, edit("meta.yaml", "embeddings: qwen_embeddings.mlmodelc", "embeddings: qwen_embeddings_lut4.mlmodelc")},
	{"PKG011", qwen, inspect.Note, edit("meta.yaml", "ffn: qwen_FFN_PF_lut6_chunk_01of02.mlmodelc", "ffn: qwen_FFN_PF_lut6.mlmodelc")},
	{"PKG012", qwen, inspect.Note, edit(chunk+"/metadata.json", `"generatedClassName" : "qwen`, `"generatedClassName" : "other`)},
	{"CFG002", qwen, inspect.Warning, edit("meta.yaml", "    batch_size: 16\n", "    batch_size: 16\n    batch_size: 16\n")},
	{"CFG003", qwen, inspect.Warning, edit("meta.yaml", "context_length: 64", `context_length: "64"`)},
	{"CFG003", qwen, inspect.Warning, edit("meta.yaml", "prefill_dynamic_slice: true", `prefill_dynamic_slice: "true"`)},
	{"CFG004", qwen, inspect.Warning, edit("meta.yaml", "lut_embeddings: none", "lut_embeddings: null")},
	{"CFG004", qwen, inspect.Note, edit("meta.yaml", "version: 0.3.5", "version: 0.3")},
	{"CFG005", "tiny/anemll-qwen3-lut6/compiled", inspect.Note, edit("meta.yaml", "# batch_size: 16", "# batch_size: 17")},
	{"CFG005", "tiny/anemll-qwen3-lut6/compiled", inspect.Note, edit("meta.yaml", "# model_path: ", "# model_path: /Users/me/")},
	{"CFG017", "tiny/anemll-qwen25-argmax/compiled", inspect.Warning, func(m fstest.MapFS) {
		edit("meta.yaml", "    vocab_size: 515\n", "")(m)
		edit("meta.yaml", "    lm_head_chunk_sizes: [", "    other: [")(m)
	}},
	{"CFG018", qwen, inspect.Warning, nil},
	{"CFG019", qwen, inspect.Error, func(m fstest.MapFS) {
		name := "qwen_embeddings.mlmodelc/model.mil"
		m[name] = &fstest.MapFile{Data: bytes.ReplaceAll(m[name].Data, []byte("[515, 64]"), []byte("[514, 64]"))}
	}},
	{"CFG024", qwen, inspect.Warning, edit("meta.yaml", "lut_lmhead: 6", "lut_lmhead: 4")},
	{"CFG024", qwen, inspect.Note, edit("meta.yaml", "lut_ffn_per_channel: 8", "lut_ffn_per_channel: 2")},
	{"CFG025", "tiny/anemll-gemma3-mono/compiled", inspect.Warning, nil},
	{"CFG025", "tiny/anemll-gemma3-rotate/compiled", inspect.Warning, func(m fstest.MapFS) {
		for name := range maps.Clone(m) {
			if strings.Contains(name, "_rot.mlmodelc/") {
				delete(m, name)
			}
		}
		edit("meta.yaml", "    split_rotate: true\n", "")(m)
	}},
	{"CFG030", "tiny/cml-qwen2-mono-fp16/compiled", inspect.Warning, edit("model_config.json", `"architecture": "qwen2"`, `"architecture": ""`)},
	{"CFG030", "tiny/cml-qwen2-mono-fp16/compiled", inspect.Error, edit("model_config.json", `"context_length": 64`, `"context_length": "64"`)},
	{"MIL008", qwen, inspect.Error, func(m fstest.MapFS) {
		name := "qwen_embeddings.mlmodelc/model.mil"
		m[name] = &fstest.MapFile{Data: bytes.ReplaceAll(m[name].Data, []byte("input_ids"), []byte("inputs"))}
	}},
	{"MIL009", qwen, inspect.Error, func(m fstest.MapFS) {
		name := "qwen_lm_head_lut6.mlmodelc/model.mil"
		m[name] = &fstest.MapFile{Data: bytes.ReplaceAll(m[name].Data, []byte("logits2"), []byte("logits7"))}
	}},
	{"MIL006", qwen, inspect.Error, func(m fstest.MapFS) {
		name := chunk + "/model.mil"
		m[name] = &fstest.MapFile{Data: bytes.ReplaceAll(m[name].Data, []byte("current_pos"), []byte("position_no"))}
	}},
	{"WGT003", qwen, inspect.Error, func(m fstest.MapFS) {
		name := chunk + "/model.mil"
		re := regexp.MustCompile(`offset = uint64\((\d{4,})\)`)
		loc := re.FindSubmatchIndex(m[name].Data)
		d := slices.Clone(m[name].Data)
		m[name] = &fstest.MapFile{Data: append(append(slices.Clone(d[:loc[2]]), "128"...), d[loc[3]:]...)}
	}},
	{"WGT004", qwen, inspect.Error, edit(chunk+"/model.mil", "@model_path/weights/weight.bin", "@model_path/../other/weight.bin")},
	{"TOK004", qwen, inspect.Error, func(m fstest.MapFS) {
		m["tokenizer_config.json"] = &fstest.MapFile{Data: []byte(`{}`)}
		m["generation_config.json"] = &fstest.MapFile{Data: []byte(`{}`)}
		m["config.json"] = &fstest.MapFile{Data: []byte(`{}`)}
		d := bytes.ReplaceAll(m["tokenizer.json"].Data, []byte("<|im_end|>"), []byte("<|im_over|>"))
		m["tokenizer.json"] = &fstest.MapFile{Data: bytes.ReplaceAll(d, []byte("<|endoftext|>"), []byte("<|overtext|>"))}
	}},
	{"TOK005", qwen, inspect.Warning, edit("tokenizer_config.json", `"eos_token": "<|im_end|>"`, `"eos_token": "<|nobody|>"`)},
	{"TOK006", qwen, inspect.Note, edit("tokenizer_config.json", `"chat_template"`, `"other"`)},
	{"TOK007", "tiny/anemll-gemma3-rotate/compiled", inspect.Note, nil},
	{"RUN001", qwen, inspect.Note, nil},
	{"RUN002", "tiny/anemll-gemma3-rotate/compiled", inspect.Note, nil},
	{"RUN003", "tiny/seed-qwen3_5-lut6/compiled", inspect.Warning, func(m fstest.MapFS) {
		name := "qwen35_FFN_PF_lut6_chunk_01of01.mlmodelc/model.mil"
		m[name] = &fstest.MapFile{Data: bytes.ReplaceAll(m[name].Data, []byte("state<tensor<fp16, [6, 3, 128]>>"), []byte("state<tensor<fp16, [6, 128, 3]>>"))}
	}},
	{"RUN004", "tiny/seed-qwen3-int8/compiled", inspect.Warning, nil},
	{"RUN005", qwen, inspect.Note, func(m fstest.MapFS) {
		m[chunk+"/weights/weight.bin"] = &fstest.MapFile{Data: lfs(int64(2 << 30))}
	}},
	{"RUN006", "tiny/seed-qwen3_5-lut6/compiled", inspect.Note, nil},
	{"RUN006", "tiny/seed-gemma4-block-window-fp16/compiled", inspect.Note, nil},
	{"RUN007", "tiny/anemll-gemma3-mono/compiled", inspect.Note, nil},
	{"RUN008", "tiny/anemll-gemma3-rotate/compiled", inspect.Note, nil},
	{"RUN009", qwen, inspect.Warning, func(m fstest.MapFS) {
		name := "qwen_FFN_PF_lut6_chunk_01of02.mlmodelc/model.mil"
		m[name] = &fstest.MapFile{Data: bytes.Replace(m[name].Data, []byte("tensor<fp16, [1, 1, 1, 64]> causal_mask"), []byte("tensor<fp16, [1, 1, 1, 9000]> causal_mask"), 1)}
	}},
	{"RUN010", qwen, inspect.Error, edit("meta.yaml", "    prefill_dynamic_slice: true\n", "    update_mask_prefill: true\n")},
	{"RUN010", qwen, inspect.Note, edit("meta.yaml", "    prefill_dynamic_slice: true\n", "")},
}

// TestRulesFire has a failing case for every rule that no mutation of
// TestMutations covers.
func TestRulesFire(t *testing.T) {
	for _, c := range slices.Concat(fireCases, moreCases, newCases) {
		t.Run(c.rule+"/"+string(c.severity), func(t *testing.T) {
			t.Parallel()
			files := load(t, sharedtest.Path(t, "models/"+c.pkg))
			if c.change == nil {
				if !fires(t, open(t, files, "pkg"), c.rule, c.severity) {
					t.Error("does not fire on a package that has the property")
				}
				return
			}
			if fires(t, open(t, files, "pkg"), c.rule, c.severity) {
				t.Error("fires on the unchanged package")
			}
			m := maps.Clone(files)
			c.change(m)
			if !fires(t, open(t, m, "pkg"), c.rule, c.severity) {
				t.Error("does not fire on the changed package")
			}
		})
	}
}

// TestFindingTargets: a rule names every target of its findings.
func TestFindingTargets(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range slices.Concat(fireCases, moreCases, newCases) {
		m := maps.Clone(load(t, sharedtest.Path(t, "models/"+c.pkg)))
		if c.change != nil {
			c.change(m)
		}
		r, err := inspect.Validate(context.Background(), open(t, m, "pkg"), inspect.Options{Only: []string{c.rule}})
		if err != nil {
			t.Fatal(err)
		}
		rule, _ := inspect.Explain(c.rule)
		for _, f := range r.Findings {
			if f.Hint == "" || strings.Contains(f.Message, "%!") || strings.Contains(f.Hint, "%!") {
				t.Errorf("%s: message %q, hint %q", c.rule, f.Message, f.Hint)
			}
			for _, name := range f.Targets {
				seen[c.rule] = true
				if !slices.Contains(rule.Targets, name) {
					t.Errorf("%s: a finding fails on %s, the rule does not say so", c.rule, name)
				}
			}
		}
	}
	for _, r := range inspect.Catalogue() {
		for _, name := range r.Targets {
			if !slices.Contains(inspect.Targets(), name) {
				t.Errorf("%s names %q, which is no target", r.ID, name)
			}
		}
		if len(r.Targets) > 0 && !seen[r.ID] {
			t.Logf("%s: no case with a target", r.ID)
		}
	}
}

// TestCleanForEveryRule: for every rule there is a good package on which it
// runs and finds nothing.
func TestCleanForEveryRule(t *testing.T) {
	clean := map[string]bool{}
	for _, dir := range packages(t) {
		if filepath.Base(dir) == "package" && "tiny/"+shortName(dir) != packaged {
			continue // the same files but for the container, which PKG025 reads
		}
		p := open(t, os.DirFS(dir), dir)
		r, err := inspect.Validate(context.Background(), p, inspect.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range r.Run {
			if !slices.ContainsFunc(r.Findings, func(f *inspect.Finding) bool { return f.ID == id }) {
				clean[id] = true
			}
		}
	}
	// RUN001 always says what the package needs, RUN037 and RUN038 what every
	// package of their converter has; the others are skipped where they find
	// nothing
	always := []string{"RUN001", "RUN002", "WGT005", "RUN007", "RUN008", "RUN037", "RUN038", "PKG019", "CFG033", "PKG023", "PKG024", "MIL023", "MIL024", "RUN040", "RUN042"}
	for _, r := range inspect.Catalogue() {
		if !clean[r.ID] && !slices.Contains(always, r.ID) {
			t.Errorf("%s runs clean on no good package", r.ID)
		}
	}
}

func TestOptions(t *testing.T) {
	dir := sharedtest.Path(t, "models/tiny/seed-qwen3-int8/compiled")
	p := open(t, os.DirFS(dir), dir)
	run := func(o inspect.Options) *inspect.ValidateReport {
		t.Helper()
		r, err := inspect.Validate(context.Background(), p, o)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if r := run(inspect.Options{Only: []string{"wgt"}}); len(r.Run) == 0 || slices.ContainsFunc(r.Run, func(id string) bool { return !strings.HasPrefix(id, "WGT") }) {
		t.Errorf("only a family: got %v", r.Run)
	}
	if r := run(inspect.Options{Skip: []string{"RUN"}}); slices.ContainsFunc(r.Run, func(id string) bool { return strings.HasPrefix(id, "RUN") }) {
		t.Errorf("without a family: got %v", r.Run)
	}
	if r := run(inspect.Options{Fast: true}); slices.Contains(r.Run, "WGT002") || !slices.Contains(r.Run, "WGT001") {
		t.Errorf("fast: got %v", r.Run)
	}
	plain := run(inspect.Options{})
	if plain.Summary.Error != 0 || plain.Summary.Warning == 0 {
		t.Fatalf("plain: got %+v, want warnings and no error", plain.Summary)
	}
	if r := run(inspect.Options{Targets: []string{"ane"}}); r.Summary.Error == 0 {
		t.Error("target ane: linear weights stay a warning")
	}
	if r := run(inspect.Options{Targets: []string{"ios17"}}); r.Summary.Error == 0 {
		t.Error("target ios17: a package for iOS 18 has no error")
	}
	if r := run(inspect.Options{Targets: []string{"macos15"}}); r.Summary.Error != 0 {
		t.Errorf("target macos15: got %+v", r.Summary)
	}
	for _, o := range []inspect.Options{{Only: []string{"XYZ1"}}, {Targets: []string{"windows"}}} {
		if _, err := inspect.Validate(context.Background(), p, o); diag.CodeOf(err) != diag.Usage {
			t.Errorf("%+v: got %v, want a usage error", o, err)
		}
	}
	data, err := json.Marshal(plain)
	if err != nil {
		t.Fatal(err)
	}
	base, err := inspect.ReadBaseline(data)
	if err != nil {
		t.Fatal(err)
	}
	if r := run(inspect.Options{Baseline: base}); len(r.Findings) != 0 || r.Suppressed != len(plain.Findings) {
		t.Errorf("baseline: got %d findings and %d suppressed, want 0 and %d", len(r.Findings), r.Suppressed, len(plain.Findings))
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := inspect.Validate(ctx, p, inspect.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: got %v", err)
	}
}

// TestDeterministic: two runs give the same bytes.
func TestDeterministic(t *testing.T) {
	dir := sharedtest.Path(t, "models/anemll-qwen3-1.7b-ctx2048-lfs-pointers")
	var first []byte
	for range 3 {
		p := open(t, os.DirFS(dir), "pkg")
		r, err := inspect.Validate(context.Background(), p, inspect.Options{})
		if err != nil {
			t.Fatal(err)
		}
		rep, err := inspect.Inspect(context.Background(), p)
		if err != nil {
			t.Fatal(err)
		}
		data, err := json.Marshal([]any{r, rep})
		if err != nil {
			t.Fatal(err)
		}
		if first != nil && !bytes.Equal(first, data) {
			t.Fatal("two runs differ")
		}
		first = data
	}
}

// TestText: every report prints, with the line that a finding points at and
// without control characters of a hostile file.
func TestText(t *testing.T) {
	files := load(t, sharedtest.Path(t, "models/tiny/seed-qwen3-lut6/compiled"))
	edit("meta.yaml", "context_length: 64", "context_length: 65 # \u202ered")(files)
	p := open(t, files, "pkg")
	r, err := inspect.Validate(context.Background(), p, inspect.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := r.WriteText(&b, false); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"error   CFG010", "context_length: 65", "                ^", "got 65, want 64", "1 error"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("text lacks %q:\n%s", want, b.String())
		}
	}
	if strings.ContainsAny(b.String(), "\x1b\u202e") {
		t.Error("text without colour has escape sequences or turns the writing direction")
	}
	b.Reset()
	if err := r.WriteText(&b, true); err != nil || !strings.Contains(b.String(), "\x1b[31m") {
		t.Errorf("text with colour: %v", err)
	}
	rep, err := inspect.Inspect(context.Background(), p)
	if err != nil {
		t.Fatal(err)
	}
	b.Reset()
	if err := rep.WriteText(&b, false); err != nil || !strings.Contains(b.String(), "lut 6-bit/8") {
		t.Errorf("inspect text: %v\n%s", err, b.String())
	}
}

// TestJSONContract: the keys that the contract requires are there.
func TestJSONContract(t *testing.T) {
	dir := sharedtest.Path(t, "models/tiny/seed-gemma4-block-window-lut6-2chunks/compiled")
	p := open(t, os.DirFS(dir), dir)
	ctx := context.Background()
	rep, err1 := inspect.Inspect(ctx, p)
	st, err2 := inspect.States(ctx, p)
	la, err3 := inspect.Layers(ctx, p)
	va, err4 := inspect.Validate(ctx, p, inspect.Options{})
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		v    any
		path string
		keys string
	}{
		{"inspect", rep, "", "schema package parts tokenizer files runtimes"},
		{"inspect", rep, "package", "path kind layout name architecture context_length batch_size hidden_size vocab_size num_layers num_chunks bytes"},
		{"inspect", rep, "parts", "role chunk path container spec_version opset min_os functions weights"},
		{"inspect", rep, "parts.functions", "name default inputs outputs states op_histogram"},
		{"inspect", rep, "parts.functions.inputs", "name dtype shape enumerated range optional"},
		{"inspect", rep, "parts.weights", "bytes count schemes"},
		{"inspect", rep, "parts.weights.schemes", "kind bits group_size count bytes elements"},
		{"inspect", rep, "tokenizer", "type vocab_size special chat_template"},
		{"inspect", rep, "files", "path bytes status"},
		{"inspect", rep, "runtimes", "runtime key value source"},
		{"states", st, "", "schema states total_bytes"},
		{"states", st, "states", "name dtype shape bytes role layers parts"},
		{"states", st, "states.parts", "part functions"},
		{"layers", la, "", "schema num_layers chunks layers"},
		{"layers", la, "chunks", "part chunk of first last functions source"},
		{"layers", la, "layers", "index type chunk kv_slot shares_with weight_bytes schemes"},
		{"validate", va, "", "schema summary findings checks_run checks_skipped"},
		{"validate", va, "summary", "error warning note"},
		{"validate", va, "findings", "id severity title message where got want hint"},
		{"validate", va, "findings.where", "file line column offset"},
		{"validate", va, "checks_skipped", "id reason"},
	} {
		data, err := json.Marshal(c.v)
		if err != nil {
			t.Fatal(err)
		}
		var v any
		if err := json.Unmarshal(data, &v); err != nil {
			t.Fatal(err)
		}
		for step := range strings.SplitSeq(c.path, ".") {
			if step != "" {
				v = v.(map[string]any)[step]
			}
			if list, ok := v.([]any); ok {
				if len(list) == 0 {
					t.Fatalf("%s: %s is empty", c.name, c.path)
				}
				v = list[0]
			}
		}
		for key := range strings.FieldsSeq(c.keys) {
			if _, ok := v.(map[string]any)[key]; !ok {
				t.Errorf("%s: %s lacks %q", c.name, c.path, key)
			}
		}
	}
	if got := manifest.Kind(rep.Package.Kind); got != manifest.Seed {
		t.Errorf("kind: got %s", got)
	}
}
