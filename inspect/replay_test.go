package inspect_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
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
		{"the same: the unfinished file", qwen, write(first+"/weights/weight.bin.partial", "x"), "PKG008", first + "/weights/weight.bin.partial", false, "unfinished"},
		{"the same: the mark of the download tool", qwen, write(first+"/weights/.etag", "x"), "PKG017", first + "/weights/.etag", false, "delete"},
		{"one flipped byte in a record", qwen, poke(first, 72, 0xff), "WGT002", first + "/weights/weight.bin", false, ""},
		{"one flipped byte in a blob of the hub's cache", qwen, func(m fstest.MapFS) {
			name := head + "/weights/weight.bin"
			blob := fmt.Sprintf("blobs/%x", sha256.Sum256(m[name].Data))
			d := slices.Clone(m[name].Data)
			d[200] ^= 1
			m[blob] = &fstest.MapFile{Data: d}
			m[name] = &fstest.MapFile{Data: []byte("../../" + blob), Mode: fs.ModeSymlink | 0o777}
		}, "PKG023", head + "/weights/weight.bin", false, "--repair"},
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
		{"name, meta.yaml and program disagree: the number", qwen, both(edit("meta.yaml", "-ctx64", "-ctx256"), edit("meta.yaml", "context_length: 64", "context_length: 128")), "CFG010", "meta.yaml", true, "128"},
		{"name, meta.yaml and program disagree: the name", qwen, both(edit("meta.yaml", "-ctx64", "-ctx256"), edit("meta.yaml", "context_length: 64", "context_length: 128")), "CFG036", "meta.yaml", true, "ctx256"},
		{"a palette followed by scales, as coremltools 9.0 makes", qwen, onHead("[2, 4]", `tensor<int8, [2, 2]> l = constexpr_lut_to_dense(indices = tensor<uint1, [2, 2]>([[0, 1], [1, 0]]), lut = tensor<int8, [1, 1, 2, 1]>([[[[0], [1]]]])); tensor<fp16, [2, 2]> w = constexpr_blockwise_shift_scale(data = l, scale = tensor<fp16, [2, 1]>([[0x1p+0], [0x1p+0]])); tensor<fp16, [2, 4]> y = matmul(x = w, y = x);`),
			"RUN018", head + "/model.mil", true, "a palette followed by scales"},
		{"range dimensions in a model of two functions", "compiled/mlmodelc-export-multifunction", func(fstest.MapFS) {}, "MIL021", "input.mlmodelc/model.mil", true, "range"},
		{"a model in protobuf form as model.mil", qwen, write(head+"/model.mil", "\x08\x09\x12\x03abc"), "PKG003", head + "/model.mil", true, "protobuf form"},
		{"coremltools' print of a program as model.mil", qwen, edit(head+"/model.mil", "func main<ios18>", "main[CoreML8]"), "PKG003", head + "/model.mil", true, "debug print"},
		{"a mask of -1e9 in fp16", qwen, onHead("[1, 4]", `fp32 k = const()[val = fp32(-0x1.dcd65p+29)]; fp16 h = cast(dtype = string("fp16"), x = k); tensor<fp16, [1, 4]> y = add(x = x, y = h);`),
			"RUN032", head + "/model.mil", true, "gives NaN"},
		{"end tokens of three files, and another one in the template", qwen, both(template(chatml), edit("tokenizer_config.json", `"eos_token": "<|im_end|>"`, `"eos_token": "<|endoftext|>"`), write("generation_config.json", `{"eos_token_id": 3}`), write("config.json", `{"eos_token_id": 4}`)),
			"TOK010", "chat_template.jinja", false, "<|im_end|>"},
		{"the same: the files differ", qwen, both(write("generation_config.json", `{"eos_token_id": 3}`), write("config.json", `{"eos_token_id": 4}`)), "TOK011", "config.json", true, "[4]"},
		{"template only in chat_template.jinja, with a namespace", qwen, both(
			write("chat_template.jinja", "{% set ns = namespace(n=0) %}{% for m in messages %}{% set ns.n = ns.n + 1 %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"),
			edit("tokenizer_config.json", `"chat_template"`, `"other"`)), "TOK015", "chat_template.jinja", false, "anemll-swift"},
		{"two root models in a manifest", "tiny/seed-qwen3-lut6/package", func(m fstest.MapFS) {
			const model = `"path": "com.apple.CoreML/%s.mlmodel"`
			for name := range maps.Clone(m) {
				if strings.HasSuffix(name, "chunk_01of02.mlpackage/Manifest.json") {
					m[name] = &fstest.MapFile{Data: fmt.Appendf(nil, `{"fileFormatVersion": "1.0.0", "itemInfoEntries": {"A": {`+model+`}, "B": {`+model+`}}}`, "model", "other")}
				}
			}
		}, "PKG003", "qwen_FFN_PF_lut6_chunk_01of02.mlpackage/Manifest.json", false, "none of the 2 items"},
		{"an item of the manifest is missing", "tiny/seed-qwen3-lut6/package", func(m fstest.MapFS) {
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

// TestReplayWeights: where the weights folder is missing, the finding names
// the line of the program that reads it first, and how much it reads.
func TestReplayWeights(t *testing.T) {
	m := maps.Clone(load(t, sharedtest.Path(t, "models/"+qwen)))
	delete(m, chunk+"/weights/weight.bin")
	r, err := inspect.Validate(context.Background(), open(t, m, "pkg"), inspect.Options{Only: []string{"WGT004"}})
	if err != nil || len(r.Findings) != 1 {
		t.Fatalf("got %d findings, %v", len(r.Findings), err)
	}
	f := r.Findings[0]
	text := string(m[chunk+"/model.mil"].Data)
	before, _, _ := strings.Cut(text, "BLOBFILE")
	line := 1 + strings.Count(before, "\n")
	if len(f.Where) != 2 || f.Where[1].File != chunk+"/model.mil" || f.Where[1].Line == nil || *f.Where[1].Line != line {
		t.Errorf("got places %v, want the file and %s:%d", f.Where, chunk+"/model.mil", line)
	}
	distinct := map[string]bool{}
	for _, x := range regexp.MustCompile(`offset = uint64\(\d+\)`).FindAllString(text, -1) {
		distinct[x] = true
	}
	if want := fmt.Sprintf("reads %d blobs", len(distinct)); !strings.Contains(f.Message, want) {
		t.Errorf("got %q, want %q in it", f.Message, want)
	}
}
