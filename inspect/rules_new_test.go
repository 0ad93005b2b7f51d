package inspect_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing/fstest"

	"github.com/anepkg/anepkg/coreml/sharedtest"
	"github.com/anepkg/anepkg/inspect"
)

const (
	swa      = "tiny/cml-gemma4-swa-chunks/compiled"
	stateful = "tiny/cml-gemma4-stateful/compiled"
	mlkv     = "tiny/cml-qwen35-mlkv/compiled"
	window   = "tiny/seed-gemma4-block-window-lut6-2chunks/compiled"
	packaged = "tiny/seed-qwen3-lut6/package"

	headPackage = "qwen_lm_head_lut6.mlpackage"
)

// blobs makes a weight file of fp16 blobs; the first lies at offset 64.
func blobs(data ...[]byte) []byte {
	var out bytes.Buffer
	put := func(header ...uint64) {
		for _, v := range header {
			_ = binary.Write(&out, binary.LittleEndian, v)
		}
	}
	put(uint64(len(data))|2<<32, 0, 0, 0, 0, 0, 0, 0)
	for _, d := range data {
		put(0xdeadbeef|1<<32, uint64(len(d)), uint64(out.Len()+64), 0, 0, 0, 0, 0)
		out.Write(d)
		out.Write(make([]byte, (64-out.Len()%64)%64))
	}
	return out.Bytes()
}

const blobFile = `BLOBFILE(path = string("@model_path/weights/weight.bin"), offset = uint64(64))`

// lut is a palettized constant with its indices in the weight file and one
// table.
func lut(name, shape string, bits int) string {
	entries := strings.TrimSuffix(strings.Repeat("[0x0p+0], ", 1<<bits), ", ")
	return fmt.Sprintf("tensor<fp16, %[2]s> %[1]s = constexpr_lut_to_dense(indices = tensor<uint%[3]d, %[2]s>(%[4]s), lut = tensor<fp16, [1, 1, %[5]d, 1]>([[[%[6]s]]])); ", name, shape, bits, blobFile, 1<<bits, entries)
}

func copyModel(from, to string) func(fstest.MapFS) {
	return func(m fstest.MapFS) {
		for name, f := range maps.Clone(m) {
			if rest, ok := strings.CutPrefix(name, from+"/"); ok {
				m[to+"/"+rest] = f
			}
		}
	}
}

func drop(name, pattern string) func(fstest.MapFS) {
	return func(m fstest.MapFS) {
		m[name] = &fstest.MapFile{Data: regexp.MustCompile(pattern).ReplaceAll(m[name].Data, nil)}
	}
}

// manyLayers is a chain over weights of n layers.
func manyLayers(n int) string {
	var b strings.Builder
	prev := "x"
	for i := range n {
		fmt.Fprintf(&b, "tensor<fp16, [4]> layers_%d_w = const()[val = tensor<fp16, [4]>(BLOBFILE(path = string(\"@model_path/weights/weight.bin\"), offset = uint64(%d)))];\n", i, 64+128*i)
		fmt.Fprintf(&b, "tensor<fp16, [4]> v%d = add(x = %s, y = layers_%d_w);\n", i, prev, i)
		prev = fmt.Sprintf("v%d", i)
	}
	return b.String() + "tensor<fp16, [4]> y = relu(x = " + prev + ");"
}

func manyFunctions(n int) string {
	var b strings.Builder
	b.WriteString("program(1.3)\n{\n")
	for i := range n {
		fmt.Fprintf(&b, "    func f%d<ios18>(tensor<fp16, [4]> x) {\n            tensor<fp16, [4]> y = relu(x = x);\n        } -> (y);\n", i)
	}
	return b.String() + "}\n"
}

const mlkvFolder = "qwen3_5_0_8b_decode_chunks_mlkv/"

// cutTo keeps the first n bytes of a file.
func cutTo(name string, n int) func(fstest.MapFS) {
	return func(m fstest.MapFS) { m[name] = &fstest.MapFile{Data: m[name].Data[:n]} }
}

// fill overwrites a file of fp16 numbers, or of bytes.
func fill(name string, pair ...byte) func(fstest.MapFS) {
	return func(m fstest.MapFS) {
		m[name] = &fstest.MapFile{Data: bytes.Repeat(pair, len(m[name].Data)/len(pair))}
	}
}

// narrow keeps the first columns of a table of 64 and all its rows, as a
// table that was made for another head dimension.
func narrow(name string, width int) func(fstest.MapFS) {
	return func(m fstest.MapFS) {
		d := m[name].Data
		head := bytes.Replace(slices.Clone(d[:128]), []byte(", 64)"), fmt.Appendf(nil, ", %d)", width), 1)
		for at := 128; at < len(d); at += 2 * 64 {
			head = append(head, d[at:at+2*width]...)
		}
		m[name] = &fstest.MapFile{Data: head}
	}
}

// newCases are for the rules of the second round over the dossiers.
var newCases = []ruleCase{
	{"PKG002", swa, inspect.Error, copyModel("chunk1.mlmodelc", "prefill_chunk1.mlmodelc")},
	{"PKG014", stateful, inspect.Error, func(m fstest.MapFS) {
		d := slices.Clone(m["sin_sliding.npy"].Data)
		binary.LittleEndian.PutUint16(d[128+2*32:], 0x3800) // 0.5
		m["sin_sliding.npy"] = &fstest.MapFile{Data: d}
	}},
	{"PKG018", qwen, inspect.Warning, func(m fstest.MapFS) {
		m["lost.json"] = &fstest.MapFile{Data: []byte("nowhere.json"), Mode: fs.ModeSymlink | 0o777}
	}},
	{"PKG021", qwen, inspect.Error, func(m fstest.MapFS) {
		m["tokenizer.json"] = &fstest.MapFile{Data: m["tokenizer.json"].Data, Mode: 0o200}
	}},
	{"PKG022", qwen, inspect.Note, copyModel(chunk, "qwen_FFN_PF_lut6_chunk_01of02.mlmodelc")},
	{"PKG022", swa, inspect.Warning, both(copyModel("chunk1.mlmodelc", "prefill_chunk1.mlmodelc"), poke("prefill_chunk1.mlmodelc", 200, 1, 2))},
	{"PKG023", qwen, inspect.Error, func(m fstest.MapFS) {
		blob := fmt.Sprintf("blobs/%x", sha256.Sum256([]byte("another content")))
		m[blob] = m["tokenizer.json"]
		m["tokenizer.json"] = &fstest.MapFile{Data: []byte(blob), Mode: fs.ModeSymlink | 0o777}
	}},
	{"PKG024", qwen, inspect.Error, func(m fstest.MapFS) {
		m["manifest.json"] = &fstest.MapFile{Data: sharedtest.BundleManifest(".", m, nil)}
		m["generation_config.json"] = &fstest.MapFile{Data: []byte(`{"eos_token_id": [514, 512]}`)}
	}},
	{"PKG025", packaged, inspect.Error, edit(headPackage+"/Manifest.json", "com.apple.CoreML/weights", "com.apple.CoreML/w2")},
	{"PKG025", packaged, inspect.Error, edit(headPackage+"/Manifest.json", `"itemInfoEntries": {`, `"itemInfoEntries": {"A": {"author": "a", "description": "d", "name": "n", "path": "com.apple.CoreML/model2.mlmodel"},`)},
	{"PKG025", packaged, inspect.Warning, edit(headPackage+"/Manifest.json", `"itemInfoEntries": {`, `"itemInfoEntries": {"A": {"author": "a", "description": "d", "name": "n", "path": "com.apple.CoreML/weights"},`)},
	{"CFG021", window, inspect.Error, edit("meta.yaml", "prefill_last_token_output: true", "prefill_last_token_output: false")},
	{"CFG021", window, inspect.Error, edit("meta.yaml", "    prefill_last_token_output: true\n", "")},
	{"CFG026", window, inspect.Warning, edit("meta.yaml", "{4: 2, 5: 3}", "{4: 3, 5: 2}")},
	{"CFG026", window, inspect.Warning, edit("meta.yaml", "{4: 2, 5: 3}", "{4: 2, 5: 4}")},
	{"CFG026", window, inspect.Warning, edit("meta.yaml", "{4: 2, 5: 3}", "{4: 0, 5: 3}")},
	{"CFG026", window, inspect.Warning, edit("meta.yaml", "    kv_shared_layers: {4: 2, 5: 3}\n", "")},
	{"CFG026", window, inspect.Warning, edit("meta.yaml", "{4: 2, 5: 3}", "{4: 2}")},
	{"MIL026", qwen, inspect.Error, func(m fstest.MapFS) {
		name := head + "/coremldata.bin"
		m[name] = &fstest.MapFile{Data: m[name].Data[:100]}
	}},
	{"MIL026", qwen, inspect.Error, func(m fstest.MapFS) { m[head+"/coremldata.bin"] = m[chunk+"/coremldata.bin"] }},
	{"MIL026", qwen, inspect.Error, func(m fstest.MapFS) {
		m[head+"/coremldata.bin"] = &fstest.MapFile{Data: make([]byte, 600)}
	}},
	{"MIL026", qwen, inspect.Error, write(head+"/coremldata.bin", `{"a": "a JSON text that is long enough for a header"}`)},
	{"MIL026", qwen, inspect.Error, func(m fstest.MapFS) {
		name := head + "/coremldata.bin"
		d := slices.Clone(m[name].Data)
		binary.LittleEndian.PutUint32(d, 500) // a neural network
		m[name] = &fstest.MapFile{Data: d}
	}},
	{"MIL026", qwen, inspect.Error, replaceAll(head+"/coremldata.bin", "logits2", "logits9")},
	{"PKG013", swa, inspect.Error, both(narrow("cos_full.npy", 32), narrow("sin_full.npy", 32))},
	{"PKG013", swa, inspect.Error, cutTo("per_layer_norm_weight.bin", 16)},
	{"PKG013", mlkv, inspect.Error, cutTo(mlkvFolder+"embed_weight.bin", 2*64*543)},
	{"PKG014", swa, inspect.Error, fill("per_layer_projection.bin", 0x00, 0x7e)},
	{"PKG014", swa, inspect.Error, fill("per_layer_projection.bin", 0, 0)},
	{"PKG014", swa, inspect.Error, fill("per_layer_norm_weight.bin", 0x00, 0x7c)},
	{"PKG014", swa, inspect.Error, fill("embed_tokens_scales.bin", 0, 0)},
	{"PKG014", swa, inspect.Error, fill("embed_tokens_q8.bin", 0, 0)},
	{"PKG014", swa, inspect.Error, fill("embed_tokens_per_layer_q8.bin", 0, 0)},
	{"PKG014", mlkv, inspect.Error, fill(mlkvFolder+"final_norm.bin", 0x00, 0x7e)},
	{"PKG014", mlkv, inspect.Error, fill(mlkvFolder+"embed_weight.bin", 0, 0)},
	{"PKG014", mlkv, inspect.Warning, write(mlkvFolder+"head_meta.json", "{")},
	{"PKG014", mlkv, inspect.Warning, edit(mlkvFolder+"head_meta.json", `"vocab_size": 544`, `"vocab_size": 500`)},
	{"MIL011", stateful, inspect.Error, program("chunk_1.mlmodelc", "tensor<fp16, [2, 1, 16, 64]> K_sliding_in, tensor<fp16, [1, 1, 64]> hidden_states, tensor<fp16, [1, 1, 192]> per_layer_raw",
		"tensor<fp16, [1, 1, 64]> hidden_states_out = relu(x = hidden_states); tensor<fp16, [2, 1, 16, 64]> K_sliding_out = relu(x = K_sliding_in); tensor<fp16, [1, 1, 192]> per_layer_combined_out = relu(x = per_layer_raw);",
		"hidden_states_out, K_sliding_out, per_layer_combined_out")},
	{"MIL025", swa, inspect.Error, edit("model_config.json", `"num_kv_shared_layers": 6`, `"num_kv_shared_layers": 4`)},
	{"CFG024", qwen, inspect.Warning, func(m fstest.MapFS) {
		edit("meta.yaml", "lm_head: "+head, "lm_head: qwen_lm_head_lut4.mlmodelc")(m)
		copyModel(head, "qwen_lm_head_lut4.mlmodelc")(m)
	}},
	{"RUN005", qwen, inspect.Note, func(m fstest.MapFS) {
		m[chunk+"/weights/weight.bin"] = &fstest.MapFile{Data: lfs(1000 << 20)}
	}},
	{"CFG030", swa, inspect.Error, drop("model_config.json", `  "vocab_size": \d+,\n`)},
	{"CFG030", swa, inspect.Error, drop("model_config.json", `(?s)  "layer_types": \[[^\]]*\],\n`)},
	{"CFG030", swa, inspect.Error, drop("model_config.json", `  "num_kv_shared_layers": \d+,\n`)},
	{"CFG033", "tiny/cml-qwen2-mono-fp16/compiled", inspect.Error, both(
		program("model.mlmodelc", "tensor<fp16, [2, 64, 3]> conv_state_in", "tensor<fp16, [2, 64, 3]> y = relu(x = conv_state_in);", "y"),
		edit("model_config.json", "{", `{ "lfm2_conv_l_pad": 3, "layer_types": ["conv", "full_attention"],`))},
	{"CFG036", qwen, inspect.Note, edit("meta.yaml", "-ctx64", "-ctx128")},
	{"MIL007", qwen, inspect.Warning, edit(head+"/metadata.json", `"macOS" : "15.0"`, `"macOS" : "14.0"`)},
	{"MIL022", stateful, inspect.Warning, both(replaceAll("chunk_1.mlmodelc/model.mil", "prefill_b8", "prefill_b12"), replaceAll("chunk_2.mlmodelc/model.mil", "prefill_b8", "prefill_b12"), replaceAll("chunk_3.mlmodelc/model.mil", "prefill_b8", "prefill_b12"))},
	{"MIL022", "tiny/cml-functiongemma/compiled", inspect.Warning, copyModel("prefill_t16.mlmodelc", "prefill_t24.mlmodelc")},
	{"MIL023", swa, inspect.Error, both(
		program("prefill_chunk3.mlmodelc", "tensor<fp16, [1, 8, 64]> hidden_states", "tensor<fp16, [1, 8, 64]> hidden_states_out = relu(x = hidden_states);", "hidden_states_out"),
		program("prefill_chunk4.mlmodelc", "tensor<fp16, [1, 16, 64]> hidden_states", "tensor<fp16, [1, 16, 64]> hidden_states_out = relu(x = hidden_states);", "hidden_states_out"))},
	{"MIL023", swa, inspect.Error, program("prefill_chunk1.mlmodelc", "tensor<fp16, [1, 8, 64]> hidden_states, tensor<fp16, [1, 1, 8, 32]> k",
		"tensor<fp16, [1, 8, 64]> hidden_states_out = relu(x = hidden_states); tensor<fp16, [1, 1, 8, 32]> K0 = relu(x = k); tensor<fp16, [1, 1, 8, 32]> V0 = exp(x = k);", "hidden_states_out, K0, V0")},
	{"MIL023", swa, inspect.Error, program("prefill_chunk1.mlmodelc", "tensor<fp16, [1, 8, 64]> hidden_states, tensor<fp16, [1, 1, 8, 32]> k",
		"tensor<fp16, [1, 8, 64]> hidden_states_out = relu(x = hidden_states); tensor<fp16, [1, 1, 8, 32]> K0 = relu(x = k); tensor<fp16, [1, 1, 8, 32]> V1 = exp(x = k);", "hidden_states_out, K0, V1")},
	{"MIL024", swa, inspect.Error, replaceAll("chunk1.mlmodelc/model.mil", "new_K_sliding", "K_sliding_new")},
	{"MIL024", swa, inspect.Warning, nil},
	{"MIL025", swa, inspect.Error, edit("chunk2.mlmodelc/model.mil", "tensor<fp16, [1, 1, 64, 64]> K_full_in", "tensor<fp16, [1, 1, 32, 64]> K_full_in")},
	{"MIL025", swa, inspect.Error, edit("model_config.json", `"sliding_attention"`, `"full_attention"`)},
	{"MIL025", stateful, inspect.Error, edit("chunk_1.mlmodelc/model.mil", "[4, 2, 16, 64]>> kv_cache_sliding", "[4, 2, 24, 64]>> kv_cache_sliding")},
	{"WGT014", qwen, inspect.Warning, both(
		write(head+"/weights/weight.bin", string(blobs([]byte{0, 0, 0, 0, 0, 0x3c, 0, 0, 0, 0, 0, 0x3c}))),
		onHead("[1, 2, 1, 8]", `tensor<fp16, [2, 1, 1, 3]> w = const()[val = tensor<fp16, [2, 1, 1, 3]>(`+blobFile+`)]; tensor<fp16, [1, 2, 1, 6]> y = conv(groups = int32(2), weight = w, x = x);`))},
	{"WGT005", qwen, inspect.Note, func(m fstest.MapFS) {
		name := head + "/weights/weight.bin"
		m[name] = &fstest.MapFile{Data: lfs(len(m[name].Data))}
	}},
	{"RUN023", qwen, inspect.Note, onHead("[1, 4]", `tensor<fp16, [1, 4]> s = add(x = x, y = fp16(0x1p-20)); tensor<fp16, [1, 4]> y = rsqrt(x = s);`)},
	{"RUN030", qwen, inspect.Note, write(head+"/model.mil", manyFunctions(101))},
	{"RUN039", "tiny/cml-qwen2-mono-fp16/compiled", inspect.Note, program("model.mlmodelc", "tensor<fp16, [4]> x", manyLayers(32), "y")},
	{"RUN040", swa, inspect.Note, program("mtp_drafter.mlmodelc", "tensor<fp16, [1, 1, 32, 16]> kv13_v", "tensor<fp16, [1, 1, 32, 16]> y = relu(x = kv13_v);", "y")},
	{"RUN040", swa, inspect.Warning, program("mtp_drafter.mlmodelc", "tensor<fp16, [1, 1, 99, 16]> kv13_v", "tensor<fp16, [1, 1, 99, 16]> y = relu(x = kv13_v);", "y")},
	{"RUN041", qwen, inspect.Note, program(chunk, "tensor<int32, [2]> i", `tensor<fp16, [4, 8, 8]> experts = const()[val = tensor<fp16, [4, 8, 8]>(`+blobFile+`)]; tensor<fp16, [2, 8, 8]> y = gather(axis = int32(0), indices = i, x = experts);`, "y")},
	{"RUN042", swa, inspect.Note, both(
		program("chunk1.mlmodelc", "tensor<fp16, [1, 1, 2560]> hidden_states", "tensor<fp16, [1, 1, 2560]> hidden_states_out = relu(x = hidden_states);", "hidden_states_out"),
		program("prefill_chunk1.mlmodelc", "tensor<fp16, [8, 8]> x", lut("w", "[8, 8]", 4)+"tensor<fp16, [8, 8]> y = matmul(x = w, y = x);", "y"))},
	{"RUN043", qwen, inspect.Note, onHead("[1, 4, 1, 1]", `tensor<fp16, [40000, 4, 1, 1]> w = const()[val = tensor<fp16, [40000, 4, 1, 1]>(`+blobFile+`)]; tensor<fp16, [1, 40000, 1, 1]> y = conv(weight = w, x = x);`)},
	{"RUN044", qwen, inspect.Note, onHead("[64, 64]", lut("w", "[64, 64]", 4)+"tensor<fp16, [64, 64]> y = matmul(x = w, y = x);")},
	{"RUN045", "tiny/anemll-qwen3-lut6/compiled", inspect.Note, nil},
	{"RUN046", "tiny/seed-gemma4-block-window-fp16/compiled", inspect.Warning, program("gemma4_FFN_PF_chunk_01of01.mlmodelc", "tensor<fp16, [1, 1, 2, 4]> u, state<tensor<fp16, [1, 2, 2, 4]>> model_model_kv_cache_local, tensor<fp16, [1, 1, 8]> per_layer_inputs",
		"tensor<fp16, [1, 2, 2, 4]> r = read_state(input = model_model_kv_cache_local);\n"+
			"            tensor<fp16, [1, 2, 2, 4]> k = slice_update(begin = tensor<int32, [4]>([0, 0, 0, 0]), end = tensor<int32, [4]>([1, 1, 2, 4]), update = u, x = r);\n"+
			"            tensor<fp16, [1, 2, 2, 4]> v = slice_update(begin = tensor<int32, [4]>([0, 1, 0, 0]), end = tensor<int32, [4]>([1, 2, 2, 4]), update = u, x = k);\n"+
			"            write_state(data = v, input = model_model_kv_cache_local);", "v")},
	{"RUN047", qwen, inspect.Warning, program(chunk, "tensor<fp16, [8, 4]> x", lut("layers_0_mlp_router_weight", "[4, 8]", 4)+"tensor<fp16, [4, 4]> y = matmul(x = layers_0_mlp_router_weight, y = x);", "y")},
	{"RUN048", "tiny/seed-qwen3_5-lut6/compiled", inspect.Note, func(m fstest.MapFS) {
		name := "qwen35_FFN_PF_lut6_chunk_01of01.mlmodelc/model.mil"
		text := strings.ReplaceAll(string(m[name].Data), "tensor<uint6, ", "tensor<uint4, ")
		m[name] = &fstest.MapFile{Data: []byte(strings.ReplaceAll(text, ", 64, 1]> = ", ", 16, 1]> = "))}
	}},
	{"RUN049", "tiny/cml-qwen2-mono-fp16/compiled", inspect.Note, nil},
	{"RUN050", "tiny/anemll-gemma3-rotate/compiled", inspect.Note, nil},
	{"RUN050", "tiny/seed-qwen3_5-lut6/compiled", inspect.Note, nil},
}
