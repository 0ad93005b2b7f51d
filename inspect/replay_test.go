package inspect_test

import (
	"bytes"
	"context"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/anepkg/anepkg/coreml/sharedtest"
	"github.com/anepkg/anepkg/inspect"
)

// TestReplays builds the situations of public bug reports from a good package
// and expects the finding that would have helped, at the file and line.
func TestReplays(t *testing.T) {
	const first = "qwen_FFN_PF_lut6_chunk_01of02.mlmodelc"
	for _, c := range []struct {
		name, pkg string
		change    func(fstest.MapFS)
		rule      string
		file      string // of the finding
		line      bool   // a line is known
		text      string // in the message or hint
	}{
		{"LFS pointers for every file over 1 KB", qwen, func(m fstest.MapFS) {
			for name, f := range maps.Clone(m) {
				if len(f.Data) > 1024 {
					m[name] = &fstest.MapFile{Data: lfs(len(f.Data))}
				}
			}
		}, "PKG006", first + "/weights/weight.bin", false, "git lfs pull"},
		{"a proxy's page in every coremldata.bin", qwen, func(m fstest.MapFS) {
			for name := range maps.Clone(m) {
				if strings.HasSuffix(name, "/coremldata.bin") {
					m[name] = &fstest.MapFile{Data: page} // "<!DO" is the number 1329865020
				}
			}
		}, "PKG007", first + "/coremldata.bin", false, "web page"},
		{"only analytics, partial weights and an etag", qwen, func(m fstest.MapFS) {
			for name, f := range maps.Clone(m) {
				if strings.HasPrefix(name, first+"/") {
					delete(m, name)
					if strings.HasSuffix(name, "weight.bin") {
						m[first+"/weights/weight.bin.partial"] = f
					}
				}
			}
			m[first+"/analytics/coremldata.bin"] = &fstest.MapFile{Data: []byte("x")}
			m[first+"/weights/.etag"] = &fstest.MapFile{Data: []byte("x")}
		}, "PKG005", first + "/model.mil", false, "lacks model.mil"},
		{"zeroed blob header", qwen, poke(first, 64, make([]byte, 64)...), "WGT002", first + "/weights/weight.bin", false, ""},
		{"weights folder missing", qwen, func(m fstest.MapFS) { delete(m, first+"/weights/weight.bin") }, "WGT004", first + "/weights/weight.bin", false, "blobs"},
		{"metadata.json missing", qwen, func(m fstest.MapFS) { delete(m, first+"/metadata.json") }, "PKG005", first + "/metadata.json", false, "program tells the same"},
		{"context differs", qwen, edit("meta.yaml", "context_length: 64", "context_length: 32"), "CFG010", "meta.yaml", true, "64"},
		{"fp32 update of an fp16 state", qwen, func(m fstest.MapFS) {
			name := first + "/model.mil"
			re := regexp.MustCompile(`(tensor<fp16, (\[[^\]]*\])> \w+ = slice_update\([^\n]*update = )(\w+)`)
			loc := re.FindSubmatchIndex(m[name].Data)
			d := m[name].Data
			update := string(d[loc[6]:loc[7]])
			shape := regexp.MustCompile(`tensor<fp16, (\[[^\]]*\])> ` + update + ` =`).FindSubmatch(d)[1]
			wide := "tensor<fp32, " + string(shape) + "> wide = cast(dtype = string(\"fp32\"), x = " + update + ");\n            "
			line := bytes.LastIndexByte(d[:loc[0]], '\n') + 1
			m[name] = &fstest.MapFile{Data: slices.Concat(d[:line], []byte(wide), d[line:loc[6]], []byte("wide"), d[loc[7]:])}
		}, "MIL013", first + "/model.mil", true, "update is fp32, x is fp16"},
		{"state only in the program", qwen, func(m fstest.MapFS) {
			name := first + "/metadata.json"
			re := regexp.MustCompile(`(?s)"stateSchema" : \[.*?\n +\]`)
			m[name] = &fstest.MapFile{Data: re.ReplaceAll(m[name].Data, []byte(`"stateSchema" : []`))}
		}, "MIL007", first + "/metadata.json", false, "state"},
		{"folder, meta.yaml and program disagree", qwen, edit("meta.yaml", "context_length: 64", "context_length: 128"), "CFG010", "meta.yaml", true, "128"},
		{"template only in chat_template.jinja, with a namespace", qwen, both(
			write("chat_template.jinja", "{% set ns = namespace(n=0) %}{% for m in messages %}{% set ns.n = ns.n + 1 %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"),
			edit("tokenizer_config.json", `"chat_template"`, `"other"`)), "TOK015", "chat_template.jinja", false, "anemll-swift"},
		{"two root models in a manifest", "tiny/seed-qwen3-lut6/package", func(m fstest.MapFS) {
			for name := range maps.Clone(m) {
				if strings.HasSuffix(name, "chunk_01of02.mlpackage/Manifest.json") {
					m[name] = &fstest.MapFile{Data: bytes.ReplaceAll(m[name].Data, []byte("com.apple.CoreML/model.mlmodel"), []byte("com.apple.CoreML/gone.mlmodel"))}
				}
			}
		}, "PKG003", "", false, "cannot be read"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m := maps.Clone(load(t, sharedtest.Path(t, "models/"+c.pkg)))
			c.change(m)
			r, err := inspect.Validate(context.Background(), open(t, m, "pkg"), inspect.Options{})
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range r.Findings {
				if f.ID != c.rule || len(f.Where) == 0 || c.file != "" && f.Where[0].File != c.file || !strings.Contains(f.Message+f.Hint, c.text) {
					continue
				}
				if !c.line || f.Where[0].Line != nil {
					return
				}
			}
			t.Errorf("no %s in %s with %q; got %v", c.rule, c.file, c.text, errorIDs(r))
		})
	}
}

// TestRuntimesText: which stop ids and template each reader takes.
func TestRuntimesText(t *testing.T) {
	files := load(t, sharedtest.Path(t, "models/tiny/seed-qwen3-lut6/compiled"))
	both(write("chat_template.jinja", "{{ messages }}"), edit("tokenizer_config.json", `"chat_template"`, `"other"`), write("config.json", `{"eos_token_id": 7}`))(files)
	r, err := inspect.Inspect(context.Background(), open(t, files, "pkg"))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]any{}
	for _, v := range r.Runtimes {
		got[v.Runtime+" "+v.Key] = v.Value
	}
	if got["anemll-swift chat_template"] != nil || got["anemll-python chat_template"] != "chat_template.jinja" {
		t.Errorf("templates: %v and %v", got["anemll-swift chat_template"], got["anemll-python chat_template"])
	}
	swift, _ := got["anemll-swift stop_ids"].([]int)
	python, _ := got["anemll-python stop_ids"].([]int)
	if !slices.Contains(swift, 7) || slices.Contains(python, 7) || len(python) == 0 {
		t.Errorf("stop ids: swift %v, python %v", swift, python)
	}
}
