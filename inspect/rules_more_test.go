package inspect_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/anepkg/anepkg/coreml/sharedtest"
	"github.com/anepkg/anepkg/inspect"
	"github.com/anepkg/anepkg/manifest"
)

// fires reports whether a rule finds something of the given severity.
func fires(t *testing.T, p *manifest.Package, rule string, severity inspect.Severity) bool {
	t.Helper()
	r, err := inspect.Validate(context.Background(), p, inspect.Options{Only: []string{rule}})
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(r.Findings, func(f *inspect.Finding) bool { return f.ID == rule && f.Severity == severity })
}

// program replaces the program of a part by one with the given body.
func program(part, params, body, result string) func(fstest.MapFS) {
	text := "program(1.3)\n{\n    func main<ios18>(" + params + ") {\n            " + body + "\n        } -> (" + result + ");\n}"
	return write(part+"/model.mil", text)
}

// onHead replaces the head's program: one fp16 input x of the given shape.
func onHead(shape, body string) func(fstest.MapFS) {
	return program(head, "tensor<fp16, "+shape+"> x", body, "y")
}

// poke changes bytes of a part's weight file at an offset.
func poke(part string, offset int, data ...byte) func(fstest.MapFS) {
	return func(m fstest.MapFS) {
		name := part + "/weights/weight.bin"
		d := slices.Clone(m[name].Data)
		copy(d[offset:], data)
		m[name] = &fstest.MapFile{Data: d}
	}
}

func replaceAll(name, old, now string) func(fstest.MapFS) {
	return func(m fstest.MapFS) {
		m[name] = &fstest.MapFile{Data: bytes.ReplaceAll(m[name].Data, []byte(old), []byte(now))}
	}
}

func both(fns ...func(fstest.MapFS)) func(fstest.MapFS) {
	return func(m fstest.MapFS) {
		for _, f := range fns {
			f(m)
		}
	}
}

// fillBlob overwrites the data of the first blob that the part's program
// names by the pattern.
func fillBlob(part, pattern string, value ...byte) func(fstest.MapFS) {
	return func(m fstest.MapFS) {
		loc := regexp.MustCompile(pattern + `[^;]*?offset = uint64\((\d+)\)`).FindSubmatch(m[part+"/model.mil"].Data)
		var off int
		if _, err := fmt.Sscan(string(loc[1]), &off); err != nil {
			panic(err)
		}
		name := part + "/weights/weight.bin"
		d := slices.Clone(m[name].Data)
		size := int(binary.LittleEndian.Uint64(d[off+8:]))
		for i := range size {
			d[off+64+i] = value[i%len(value)]
		}
		m[name] = &fstest.MapFile{Data: d}
	}
}

func template(text string) func(fstest.MapFS) { return write("chat_template.jinja", text) }

const chatml = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"

// moreCases are for rules on ops, weight contents, files and runtimes.
var moreCases = []ruleCase{
	{"PKG014", "tiny/cml-gemma4-stateful/compiled", inspect.Error, func(m fstest.MapFS) {
		m["cos_full.npy"] = &fstest.MapFile{Data: append(slices.Clone(m["cos_full.npy"].Data[:128]), make([]byte, len(m["cos_full.npy"].Data)-128)...)}
	}},
	{"PKG014", "tiny/cml-gemma4-stateful/compiled", inspect.Error, func(m fstest.MapFS) {
		d := slices.Clone(m["embed_tokens_scales.bin"].Data)
		binary.LittleEndian.PutUint16(d[4:], 0x7e00)
		m["embed_tokens_scales.bin"] = &fstest.MapFile{Data: d}
	}},
	{"PKG014", "tiny/cml-gemma4-stateful/compiled", inspect.Warning, nil},
	{"PKG015", qwen, inspect.Error, write("Config.json", "{}")},
	{"PKG015", qwen, inspect.Error, both(write("caf\u00e9.txt", "a"), write("cafe\u0301.txt", "b"))},
	{"PKG016", qwen, inspect.Warning, func(m fstest.MapFS) {
		for name, f := range maps.Clone(m) {
			if strings.HasPrefix(name, head) {
				m["t\u00eate.mlmodelc"+strings.TrimPrefix(name, head)] = f
				delete(m, name)
			}
		}
		edit("meta.yaml", "lm_head: "+head, "lm_head: t\u00eate.mlmodelc")(m)
	}},
	{"PKG017", qwen, inspect.Note, write(".DS_Store", "x")},
	{"PKG017", qwen, inspect.Note, write("weights.etag", "x")},
	{"PKG019", qwen, inspect.Warning, func(m fstest.MapFS) {
		m["qwen_embeddings.mlpackage/Manifest.json"] = &fstest.MapFile{Data: []byte("{}")}
	}},
	{"PKG020", "tiny/cml-gemma4-swa-chunks/compiled", inspect.Warning, write("model.mlmodelc/model.mil", "x")},
	{"CFG032", "tiny/cml-gemma4-stateful/compiled", inspect.Warning, edit("model_config.json", `"embed_scale": 8.0`, `"embed_scale": 1.0`)},
	{"CFG033", "tiny/cml-qwen2-mono-fp16/compiled", inspect.Warning, program("model.mlmodelc", "tensor<fp16, [1, 64, 3]> conv_state_in", "tensor<fp16, [1, 64, 3]> y = relu(x = conv_state_in);", "y")},
	{"CFG034", qwen, inspect.Warning, edit("meta.yaml", "    batch_size: 16\n", "")},
	{"CFG035", "tiny/anemll-qwen3-lut6/compiled", inspect.Warning, edit("meta.yaml", "    batch_size: 16\n", "    batch_size: 16\n    sliding_window: 32\n")},
	{"MIL013", qwen, inspect.Error, onHead("[1, 4]", `tensor<fp32, [1, 4]> w = cast(dtype = string("fp32"), x = x); tensor<fp16, [1, 4]> y = add(x = x, y = w);`)},
	{"MIL014", qwen, inspect.Error, replaceAll(head+"/model.mil", "<ios18>", "<ios15>")},
	{"MIL015", qwen, inspect.Error, onHead("[1, 4]", `tensor<fp16, [1, 4]> y = softmax(axis = int32(5), x = x);`)},
	{"MIL016", qwen, inspect.Warning, onHead("[1, 4]", `tensor<fp16, [1, 4]> y = softmux(x = x);`)},
	{"MIL017", qwen, inspect.Note, onHead("[1, 4]", `fp16 k = const()[val = fp16(0x0p+0)]; tensor<fp16, [1, 4]> y = relu(x = x);`)},
	{"MIL018", qwen, inspect.Warning, program(head, "tensor<fp16, [1, 4]> x, state<tensor<fp16, [1, 4]>> s", "tensor<fp16, [1, 4]> y = relu(x = x);", "y")},
	{"MIL019", "tiny/cml-gemma4-stateful/compiled", inspect.Note, nil},
	{"MIL020", "tiny/cml-qwen2-mono-fp16/compiled", inspect.Note, edit("model.mlmodelc/model.mil", "tensor<int32, [1, 1]> input_ids", "tensor<int32, [1, ?]> input_ids")},
	{"MIL021", "compiled/mlmodelc-export-multifunction", inspect.Note, nil},
	{"MIL022", "tiny/cml-gemma4-stateful/compiled", inspect.Warning, replaceAll("chunk_1.mlmodelc/model.mil", "prefill_b8", "prefill_b4")},
	{"WGT006", qwen, inspect.Error, edit(chunk+"/model.mil", "offset = uint64(64)", "offset = uint64(65)")},
	{"WGT007", qwen, inspect.Note, onHead("[1, 4]", `tensor<fp16, [4]> k = const()[val = tensor<fp16, [4]>(BLOBFILE(path = string("@model_path/weights/weight.bin"), offset = uint64(4096)))]; tensor<fp16, [1, 4]> y = add(x = x, y = k);`)},
	{"WGT008", qwen, inspect.Error, poke(embeddings, 128, 0x01, 0x7e)},
	{"WGT008", qwen, inspect.Warning, poke(embeddings, 128, 0x00, 0x7c)},
	{"WGT009", qwen, inspect.Warning, fillBlob(chunk, `lut = tensor<fp16`, 0)},
	{"WGT010", "tiny/cml-functiongemma/compiled", inspect.Note, nil},
	{"WGT011", qwen, inspect.Note, fillBlob(chunk, `lut = tensor<fp16`, 0x01, 0x02)},
	{"WGT012", qwen, inspect.Note, fillBlob(chunk, `lut = tensor<fp16`, 0x12, 0x34)},
	{"WGT013", qwen, inspect.Warning, func(m fstest.MapFS) {
		name := chunk + "/model.mil"
		i := bytes.Index(m[name].Data, []byte("func prefill"))
		d := regexp.MustCompile(`offset = uint64\((\d+)\)`).ReplaceAll(m[name].Data[i:], []byte("offset = uint64(1${1}00)"))
		m[name] = &fstest.MapFile{Data: append(slices.Clone(m[name].Data[:i]), d...)}
	}},
	{"TOK008", qwen, inspect.Warning, template("{% for m in messages %}{{ m.content ")},
	{"TOK009", qwen, inspect.Warning, template("{{ raise_exception('no') }}")},
	{"TOK009", qwen, inspect.Warning, template("hello")},
	{"TOK010", qwen, inspect.Note, both(template(chatml), edit("tokenizer_config.json", `"eos_token": "<|im_end|>"`, `"eos_token": "<|endoftext|>"`), write("generation_config.json", "{}"), write("config.json", "{}"))},
	{"TOK011", qwen, inspect.Note, both(write("generation_config.json", `{"eos_token_id": 3}`), write("config.json", `{"eos_token_id": 4}`))},
	{"TOK012", qwen, inspect.Warning, func(m fstest.MapFS) {
		re := regexp.MustCompile(`"tokenizer_class":\s*"[^"]*"`)
		m["tokenizer_config.json"] = &fstest.MapFile{Data: re.ReplaceAll(m["tokenizer_config.json"].Data, []byte(`"tokenizer_class": "TokenizersBackend"`))}
	}},
	{"TOK013", qwen, inspect.Error, func(m fstest.MapFS) {
		re := regexp.MustCompile(`"content":\s*"<\|im_end\|>"`)
		m["tokenizer.json"] = &fstest.MapFile{Data: re.ReplaceAll(m["tokenizer.json"].Data, []byte(`"content": "<|endoftext|>"`))}
	}},
	{"TOK014", "tiny/cml-gemma4-stateful/compiled", inspect.Note, nil},
	{"TOK015", qwen, inspect.Note, both(template(chatml), edit("tokenizer_config.json", `"chat_template"`, `"other"`))},
	{"RUN011", "tiny/anemll-qwen3-lut6/compiled", inspect.Warning, func(m fstest.MapFS) {
		name := "qwen_FFN_PF_lut6_chunk_01of02.mlmodelc/model.mil"
		loc := regexp.MustCompile(`(tensor<fp16, [^>]*> )(\w+)( = layer_norm\([^\n]*\n)`).FindSubmatchIndex(m[name].Data)
		d := m[name].Data
		again := string(d[loc[2]:loc[3]]) + string(d[loc[4]:loc[5]]) + "_again" + string(d[loc[6]:loc[7]])
		m[name] = &fstest.MapFile{Data: slices.Concat(d[:loc[1]], []byte(again), d[loc[1]:])}
	}},
	{"RUN012", "tiny/cml-gemma4-stateful/compiled", inspect.Warning, nil},
	{"RUN012", "tiny/cml-gemma4-swa-chunks/compiled", inspect.Warning, nil},
	{"RUN013", "tiny/cml-qwen2-mono-int8/compiled", inspect.Warning, nil},
	{"RUN014", qwen, inspect.Note, program(chunk, "tensor<fp16, [1, 4]> x", `tensor<fp16, [1, 4]> y = cumsum(axis = int32(1), x = x);`, "y")},
	{"RUN015", qwen, inspect.Warning, program(head, "tensor<fp16, [4, 4]> x, tensor<int32, [1, 1]> i", `tensor<fp16, [1, 4]> y = gather_nd(indices = i, x = x);`, "y")},
	{"RUN016", qwen, inspect.Warning, onHead("[1, 70000]", `tensor<fp16, [1, 4]> y, tensor<int32, [1, 4]> i = topk(axis = int32(-1), k = int32(4), x = x);`)},
	{"RUN017", qwen, inspect.Warning, onHead("[1, 4]", `tensor<int8, [1, 4]> y = quantize(input = x, output_dtype = string("int8"), scale = fp16(0x1p+0));`)},
	{"RUN018", qwen, inspect.Warning, onHead("[2, 4]", `tensor<fp16, [2, 2]> l = constexpr_lut_to_dense(indices = tensor<uint1, [2, 2]>([[0, 1], [1, 0]]), lut = tensor<fp16, [2, 2, 2, 1]>([[[[0x0p+0], [0x1p+0]], [[0x0p+0], [0x1p+0]]], [[[0x0p+0], [0x1p+0]], [[0x0p+0], [0x1p+0]]]])); tensor<fp16, [2, 4]> y = matmul(x = l, y = x);`)},
	{"RUN018", qwen, inspect.Warning, onHead("[2, 4]", `tensor<int8, [2, 2]> l = constexpr_lut_to_dense(indices = tensor<uint1, [2, 2]>([[0, 1], [1, 0]]), lut = tensor<int8, [1, 1, 2, 1]>([[[[0], [1]]]])); tensor<fp16, [2, 2]> w = constexpr_blockwise_shift_scale(data = l, scale = tensor<fp16, [2, 1]>([[0x1p+0], [0x1p+0]])); tensor<fp16, [2, 4]> y = matmul(x = w, y = x);`)},
	{"RUN019", qwen, inspect.Note, onHead("[4]", `tensor<uint1, [4]> m, tensor<fp16, [2]> d = constexpr_lut_to_sparse(indices_mask = tensor<uint1, [4]>([0, 1, 1, 0]), indices_nonzero_data = tensor<uint1, [2]>([0, 1]), lut = tensor<fp16, [1, 2, 1]>([[[0x0p+0], [0x1p+0]]])); tensor<fp16, [4]> w = constexpr_sparse_to_dense(mask = m, nonzero_data = d); tensor<fp16, [4]> y = add(x = x, y = w);`)},
	{"RUN020", qwen, inspect.Note, onHead("[64, 64]", `tensor<fp16, [64, 64]> w = constexpr_lut_to_dense(indices = tensor<uint2, [64, 64]>(BLOBFILE(path = string("@model_path/weights/weight.bin"), offset = uint64(64))), lut = tensor<fp16, [1, 1, 4, 1]>([[[[0x0p+0], [0x1p+0], [0x1p+1], [0x1p+2]]]])); tensor<fp16, [64, 64]> y = matmul(x = w, y = x);`)},
	{"RUN021", qwen, inspect.Note, onHead("[2, 4]", `tensor<fp16, [2, 2]> w = constexpr_lut_to_dense(indices = tensor<uint1, [2, 2]>(BLOBFILE(path = string("@model_path/weights/weight.bin"), offset = uint64(64))), lut = tensor<fp16, [2, 1, 2, 1]>([[[[0x0p+0], [0x1p+0]]], [[[0x0p+0], [0x1p+0]]]])); tensor<fp16, [2, 4]> y = matmul(x = w, y = x);`)},
	{"RUN022", qwen, inspect.Warning, program(head, "tensor<int32, [1]> i", `tensor<fp16, [65536, 1024]> w = constexpr_lut_to_dense(indices = tensor<uint4, [65536, 1024]>(BLOBFILE(path = string("@model_path/weights/weight.bin"), offset = uint64(64))), lut = tensor<fp16, [1, 1, 16, 1]>(BLOBFILE(path = string("@model_path/weights/weight.bin"), offset = uint64(128)))); tensor<fp16, [1, 1024]> y = gather(axis = int32(0), indices = i, x = w);`, "y")},
	{"RUN023", qwen, inspect.Note, onHead("[1, 4]", `tensor<fp16, [1, 4]> y = rsqrt(epsilon = fp16(0x1p-20), x = x);`)},
	{"RUN024", qwen, inspect.Note, onHead("[1, 4]", `tensor<fp16, [1, 4]> y = gelu(mode = string("EXACT"), x = x);`)},
	{"RUN025", qwen, inspect.Note, onHead("[1, 4]", `tensor<fp32, [1, 4]> w = cast(dtype = string("fp32"), x = x); tensor<fp32, [1, 4]> y = exp(x = w);`)},
	{"RUN026", qwen, inspect.Note, onHead("[1, 16, 512, 8192]", `tensor<fp16, [1, 16, 512, 8192]> y = softmax(axis = int32(-1), x = x);`)},
	{"RUN027", qwen, inspect.Note, onHead("[1, 1024, 1, 4]", `tensor<fp16, [1024, 1, 1, 1]> w = const()[val = tensor<fp16, [1024, 1, 1, 1]>(BLOBFILE(path = string("@model_path/weights/weight.bin"), offset = uint64(64)))]; tensor<fp16, [1, 1024, 1, 4]> y = conv(groups = int32(1024), weight = w, x = x);`)},
	{"RUN028", "tiny/cml-gemma4-stateful/compiled", inspect.Warning, program("chunk_3.mlmodelc", "tensor<fp16, [1, 2, 4]> x", `tensor<fp16, [1, 2, 4]> y = scaled_dot_product_attention(key = x, query = x, value = x);`, "y")},
	{"RUN029", qwen, inspect.Note, onHead("[1, 4]", longProgram(1600))},
	{"RUN031", "tiny/anemll-qwen25-argmax/compiled", inspect.Note, nil},
	{"RUN032", qwen, inspect.Note, onHead("[1, 4]", `fp32 k = const()[val = fp32(-0x1.dcd65p+29)]; fp16 h = cast(dtype = string("fp16"), x = k); tensor<fp16, [1, 4]> y = add(x = x, y = h);`)},
	{"RUN033", "tiny/seed-qwen3_5-lut6/compiled", inspect.Note, nil},
	{"RUN034", "tiny/cml-gemma4-stateful/compiled", inspect.Note, program("chunk_3.mlmodelc", "tensor<fp16, [1, 4]> x, state<tensor<fp16, [2, 4]>> s", `tensor<fp16, [2, 4]> r = read_state(input = s); tensor<fp16, [1, 4]> o = slice_by_index(begin = tensor<int32, [2]>([1, 0]), end = tensor<int32, [2]>([2, 4]), x = r); tensor<fp16, [2, 4]> y = concat(axis = int32(0), interleave = bool(false), values = (o, x)); write_state(data = y, input = s);`, "y")},
	{"RUN035", "tiny/cml-gemma4-stateful/compiled", inspect.Note, program("chunk_3.mlmodelc", "tensor<fp16, [1]> x, state<tensor<fp16, [1]>> a, state<tensor<fp16, [1]>> b, state<tensor<fp16, [1]>> c", `tensor<fp16, [1]> y = relu(x = x);`, "y")},
	{"RUN006", "tiny/anemll-gemma3-rotate/compiled", inspect.Note, nil},
	{"RUN037", "tiny/cml-gemma4-stateful/compiled", inspect.Note, nil},
	{"RUN038", "tiny/cml-embeddinggemma/compiled", inspect.Note, nil},
	{"RUN036", "tiny/cml-gemma4-stateful/compiled", inspect.Note, nil},
}

// longProgram is a chain of n ops from x to y.
func longProgram(n int) string {
	var b strings.Builder
	prev := "x"
	for i := range n {
		fmt.Fprintf(&b, "tensor<fp16, [1, 4]> v%d = relu(x = %s);\n", i, prev)
		prev = fmt.Sprintf("v%d", i)
	}
	return b.String() + "tensor<fp16, [1, 4]> y = relu(x = " + prev + ");"
}

// TestLinks: links on a real disk that lead nowhere, in a circle and out.
func TestLinks(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(sharedtest.Path(t, "models/tiny/seed-qwen3-lut6/compiled"))); err != nil {
		t.Fatal(err)
	}
	const rule = "PKG018"
	if fires(t, open(t, os.DirFS(dir), dir), rule, inspect.Warning) {
		t.Error("fires on a package without links")
	}
	for _, c := range []struct{ name, target string }{{"lost.json", "nowhere.json"}, {"circle", "circle"}, {"folder", "."}} {
		link := filepath.Join(dir, c.name)
		if err := os.Symlink(c.target, link); err != nil {
			t.Skipf("no symbolic links here: %v", err)
		}
		if !fires(t, open(t, os.DirFS(dir), dir), rule, inspect.Warning) {
			t.Errorf("link to %s is not reported", c.target)
		}
		if err := os.Remove(link); err != nil {
			t.Fatal(err)
		}
	}
}

// TestNested: of a folder with several packages one is named.
func TestNested(t *testing.T) {
	m := fstest.MapFS{}
	for name, f := range load(t, sharedtest.Path(t, "models/tiny/seed-qwen3-lut6/compiled")) {
		m["first/inner/"+name], m["second/"+name] = f, f
	}
	r, err := inspect.Validate(context.Background(), open(t, m, "pkg"), inspect.Options{Only: []string{"PKG001"}})
	if err != nil || len(r.Findings) != 1 || !strings.Contains(r.Findings[0].Hint, "first/inner") {
		t.Errorf("got %+v, %v", r.Findings, err)
	}
}

// TestEveryRuleHasACase: each rule is named by a failing case of one of the
// tables or by a mutation.
func TestEveryRuleHasACase(t *testing.T) {
	var text []byte
	for _, name := range []string{"rules_test.go", "rules_more_test.go", "rules_new_test.go", "mutation_test.go"} {
		data, err := fs.ReadFile(os.DirFS("."), name)
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, data...)
	}
	for _, r := range inspect.Catalogue() {
		if !bytes.Contains(text, []byte(`"`+r.ID+`"`)) {
			t.Errorf("%s has no failing case", r.ID)
		}
	}
}

// TestTargets: a finding is an error where it fails, a note where the caller
// means other systems or chips, and as the rule says where nobody asked.
func TestTargets(t *testing.T) {
	const (
		int8Weights = "tiny/seed-qwen3-int8/compiled"      // fails on the Neural Engine
		twoShapes   = "tiny/anemll-gemma3-rotate/compiled" // fails on M1 and A14
		twoWidths   = "tiny/seed-qwen3-lut6/compiled"      // fails in ANEMLL's Swift runtime
		batches     = "tiny/cml-gemma4-stateful/compiled"  // fails on iPhones
		newest      = "tiny/cml-qwen2-mono-fp16/compiled"  // needs macOS 26, iOS 26
	)
	for _, c := range []struct {
		pkg, rule string
		targets   []string
		want      inspect.Severity
	}{
		{int8Weights, "RUN004", nil, inspect.Warning},
		{int8Weights, "RUN004", []string{"iphone"}, inspect.Error},
		{int8Weights, "RUN004", []string{"m3"}, inspect.Error},
		{int8Weights, "RUN004", []string{"A17"}, inspect.Error},
		{int8Weights, "RUN004", []string{"mac"}, inspect.Error},
		{int8Weights, "RUN004", []string{"macos27"}, inspect.Warning}, // a system says nothing of the Neural Engine
		{twoShapes, "RUN002", nil, inspect.Note},
		{twoShapes, "RUN002", []string{"m1"}, inspect.Error},
		{twoShapes, "RUN002", []string{"m4"}, inspect.Note},
		{twoWidths, "CFG018", nil, inspect.Warning},
		{twoWidths, "CFG018", []string{"anemll-swift"}, inspect.Error},
		{twoWidths, "CFG018", []string{"anemll-python"}, inspect.Note},
		{twoWidths, "CFG018", []string{"macos26"}, inspect.Warning},
		{batches, "RUN036", nil, inspect.Note},
		{batches, "RUN036", []string{"ios18"}, inspect.Error},
		{batches, "RUN036", []string{"macos15"}, inspect.Note},
		{newest, "RUN001", nil, inspect.Note},
		{newest, "RUN001", []string{"macos15"}, inspect.Error},
		{newest, "RUN001", []string{"ios26"}, inspect.Note},
	} {
		t.Run(c.rule+"/"+strings.Join(c.targets, ","), func(t *testing.T) {
			p := open(t, os.DirFS(sharedtest.Path(t, "models/"+c.pkg)), "pkg")
			r, err := inspect.Validate(context.Background(), p, inspect.Options{Only: []string{c.rule}, Targets: c.targets})
			if err != nil || len(r.Findings) == 0 || r.Findings[0].Severity != c.want {
				t.Errorf("got %+v, %v, want %s", r.Findings, err, c.want)
			}
		})
	}
	for _, c := range []struct {
		pkg    string
		names  string
		reason string
	}{
		{newest, "macos26 macos27 ios26 ios27", "opset ios26 of model.mlmodelc"},
		{twoWidths, "macos15 macos26 macos27 ios18 ios26 ios27", "opset ios18 of"},
	} {
		p := open(t, os.DirFS(sharedtest.Path(t, "models/"+c.pkg)), "pkg")
		r, err := inspect.Validate(context.Background(), p, inspect.Options{Fast: true})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(r.Target.Names, " "); got != c.names || !r.Target.Assumed || !strings.Contains(r.Target.Reason, c.reason) {
			t.Errorf("%s: got %+v, want %s by %s", c.pkg, r.Target, c.names, c.reason)
		}
	}
	// metadata.json may declare a newer system than the program needs
	m := maps.Clone(load(t, sharedtest.Path(t, "models/"+twoWidths)))
	edit(head+"/metadata.json", `"macOS" : "15.0"`, `"macOS" : "26.0"`)(m)
	r, err := inspect.Validate(context.Background(), open(t, m, "pkg"), inspect.Options{Only: []string{"RUN001"}})
	if err != nil || !strings.Contains(r.Target.Reason, "availability in "+head) || slices.Contains(r.Target.Names, "macos15") {
		t.Errorf("newer availability: got %+v, %v", r.Target, err)
	}
}
