package inspect_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/anepkg/anepkg/inspect"
	"github.com/anepkg/anepkg/manifest"
)

// part is a small model with a body that only has the right inputs and
// results.
func part(dir, params, body, results string) func(fstest.MapFS) {
	return both(program(dir, params, body, results), write(dir+"/coremldata.bin", "x"))
}

// visionChunks are the files of Qwen3-VL (coreml-llm.md L6, L7): four chunks
// and a head, without description and tokenizer.
func visionChunks(dir, params, body, results string) func(fstest.MapFS) {
	return func(m fstest.MapFS) {
		for i := range 4 {
			part(fmt.Sprintf("%s/chunk_%d.mlmodelc", dir, i), params, body, results)(m)
		}
		part(dir+"/chunk_head.mlmodelc", "tensor<fp16, [1, 1, 16]> hidden_in", "tensor<int32, [1, 1]> next_token = reduce_argmax(axis = int32(-1), keep_dims = bool(false), x = hidden_in);", "next_token")(m)
		write(dir+"/embed_weight.bin", "0123456789abcdef")(m)
	}
}

// kvioChunks are the three chunks of Gemma 4 (coreml-llm.md L2, 3.2).
func kvioChunks(m fstest.MapFS) {
	const (
		common = "tensor<fp16, [1, 1, 1, 64]> causal_mask_full, tensor<fp16, [1, 1, 1, 16]> causal_mask_sliding, tensor<fp16, [1, 1, 8]> hidden_states, tensor<fp16, [1, 1, 64, 1]> update_mask"
		caches = ", tensor<fp16, [1, 2, 64, 64]> K_full_in, tensor<fp16, [2, 2, 16, 64]> K_sliding_in"
		shared = ", tensor<fp16, [1, 2, 16, 32]> kv13_k, tensor<fp16, [1, 2, 64, 64]> kv14_k"
		hidden = "tensor<fp16, [1, 1, 8]> hidden_states_out = relu(x = hidden_states); "
		keep   = "tensor<fp16, [1, 2, 64, 64]> K_full_out = relu(x = K_full_in); tensor<fp16, [2, 2, 16, 64]> K_sliding_out = relu(x = K_sliding_in); "
	)
	part("chunk1.mlmodelc", common+caches+", tensor<fp16, [1, 1, 12]> per_layer_raw", hidden+keep+"tensor<fp16, [1, 1, 12]> per_layer_combined_out = relu(x = per_layer_raw);", "hidden_states_out, K_full_out, K_sliding_out, per_layer_combined_out")(m)
	part("chunk2_3way.mlmodelc", common+caches+", tensor<fp16, [1, 1, 12]> per_layer_combined",
		hidden+keep+"tensor<fp16, [1, 2, 16, 32]> kv13_k = slice_by_index(begin = tensor<int32, [4]>([0, 0, 0, 0]), end = tensor<int32, [4]>([1, 2, 16, 32]), x = K_sliding_out); tensor<fp16, [1, 2, 64, 64]> kv14_k = exp(x = K_full_in);", "hidden_states_out, K_full_out, K_sliding_out, kv13_k, kv14_k")(m)
	part("chunk3_3way.mlmodelc", common+shared+", tensor<fp16, [1, 1, 12]> per_layer_combined", hidden+"tensor<int32, [1, 1]> token_id = reduce_argmax(axis = int32(-1), keep_dims = bool(false), x = hidden_states_out);", "token_id, hidden_states_out")(m)
	write("model_config.json", `{"model_name": "g", "architecture": "gemma4", "hidden_size": 8, "context_length": 64, "sliding_window": 16, "vocab_size": 8, "num_layers": 6, "num_kv_shared_layers": 2, "layer_types": ["sliding_attention", "full_attention", "sliding_attention", "sliding_attention", "full_attention", "sliding_attention"], "eos_token_id": 1}`)(m)
	for _, name := range []string{"tokenizer.json", "tokenizer_config.json", "config.json"} {
		write("hf_model/"+name, `{"model": {"type": "BPE", "vocab": {"a": 0, "<eos>": 1}, "merges": []}, "added_tokens": [{"id": 1, "content": "<eos>", "special": true}], "eos_token": "<eos>", "eos_token_id": 1, "model_type": "gemma4"}`)(m)
	}
}

// statelessChunks are Qwen3.5's older chunks (coreml-llm.md L5b).
func statelessChunks(m fstest.MapFS) {
	for i, name := range []string{"a", "b", "c", "d"} {
		out, value := "hidden", "tensor<fp16, [1, 1, 16]> hidden"
		if name == "d" {
			out, value = "logits", "tensor<fp16, [1, 1, 16]> logits"
		}
		part("qwen3_5_0_8b_decode_chunks/chunk_"+name+".mlmodelc", fmt.Sprintf("tensor<fp16, [1, 1, 8]> cos, tensor<fp16, [1, 1, 16]> hidden_in, tensor<fp32, [1]> position, tensor<fp16, [1, 1, 8]> sin, tensor<fp16, [1, 4, 4]> state_%d_a", i),
			fmt.Sprintf("%s = relu(x = hidden_in); tensor<fp16, [1, 4, 4]> new_state_%d_a = relu(x = state_%d_a);", value, i, i), fmt.Sprintf("%s, new_state_%d_a", out, i))(m)
	}
	write("qwen3_5_0_8b_decode_chunks/embed_weight.bin", strings.Repeat("0123456789abcdef", 2*16))(m) // fp16 [16, 16]
}

// statefulFour are Gemma 4's four chunks with states (coreml-llm.md L4).
func statefulFour(m fstest.MapFS) {
	kvioChunks(m)
	for name := range m {
		if strings.HasPrefix(name, "chunk") {
			delete(m, name)
		}
	}
	const (
		common = "tensor<fp16, [1, 1, 1, 64]> causal_mask_full, tensor<fp16, [1, 1, 1, 16]> causal_mask_sliding, tensor<int32, [1]> current_pos, tensor<fp16, [1, 1, 8]> hidden_states, tensor<int32, [1]> ring_pos"
		states = ", state<tensor<fp16, [2, 2, 64, 64]>> kv_cache_full, state<tensor<fp16, [4, 2, 16, 64]>> kv_cache_sliding"
		shared = ", tensor<fp16, [1, 2, 16, 32]> kv13_k, tensor<fp16, [1, 2, 64, 64]> kv14_k, tensor<fp16, [1, 1, 12]> per_layer_combined"
		read   = "tensor<fp16, [2, 2, 64, 64]> f = read_state(input = kv_cache_full); tensor<fp16, [4, 2, 16, 64]> s = read_state(input = kv_cache_sliding); "
		hidden = "tensor<fp16, [1, 1, 8]> hidden_states_out = relu(x = hidden_states); "
	)
	part("chunk_1.mlmodelc", common+states+", tensor<fp16, [1, 1, 12]> per_layer_raw", read+hidden+"tensor<fp16, [1, 1, 12]> per_layer_combined_out = relu(x = per_layer_raw);", "hidden_states_out, per_layer_combined_out")(m)
	part("chunk_2.mlmodelc", common+states+", tensor<fp16, [1, 1, 12]> per_layer_combined", read+hidden+
		"tensor<fp16, [1, 2, 16, 32]> kv13_k = slice_by_index(begin = tensor<int32, [4]>([0, 0, 0, 0]), end = tensor<int32, [4]>([1, 2, 16, 32]), x = s); tensor<fp16, [1, 2, 64, 64]> kv14_k = slice_by_index(begin = tensor<int32, [4]>([0, 0, 0, 0]), end = tensor<int32, [4]>([1, 2, 64, 64]), x = f);", "hidden_states_out, kv13_k, kv14_k")(m)
	part("chunk_3.mlmodelc", common+shared, hidden, "hidden_states_out")(m)
	part("chunk_4.mlmodelc", common+shared, hidden+"tensor<int32, [1, 1]> token_id = reduce_argmax(axis = int32(-1), keep_dims = bool(false), x = hidden_states_out);", "token_id, hidden_states_out")(m)
}

// TestOtherLayouts: layouts without a sample, made by hand after the dossier,
// are recognised whole and give no error beyond tables that are not made.
func TestOtherLayouts(t *testing.T) {
	const vision = "qwen3_vl_2b_stateful_chunks"
	for _, c := range []struct {
		name   string
		make   func(fstest.MapFS)
		layout manifest.Layout
		chunks int
		allow  []string
	}{
		{"Qwen3-VL with states", visionChunks(vision, "tensor<fp16, [1, 1, 1, 64]> causal_mask, tensor<fp16, [1, 1, 8]> cos, tensor<int32, [1]> current_pos, tensor<fp16, [1, 1, 16]> hidden_in, state<tensor<fp16, [4, 2, 64, 32]>> kv_cache_0, tensor<fp16, [1, 1, 8]> sin",
			"tensor<fp16, [4, 2, 64, 32]> r = read_state(input = kv_cache_0); tensor<fp16, [1, 1, 16]> hidden = relu(x = hidden_in);", "hidden"), manifest.StatefulChunks, 4, nil},
		{"Qwen3-VL without states", visionChunks("qwen3_vl_2b_decode_chunks", "tensor<fp16, [1, 1, 8]> cos, tensor<fp16, [1, 1, 16]> hidden_in, tensor<fp16, [1, 2, 64, 32]> k_0, tensor<fp32, [1]> position, tensor<fp16, [1, 1, 8]> sin",
			"tensor<fp16, [1, 1, 16]> hidden = relu(x = hidden_in); tensor<fp16, [1, 2, 64, 32]> new_k_0 = relu(x = k_0);", "hidden, new_k_0"), manifest.StatefulChunks, 4, nil},
		{"Qwen3.5 without states", statelessChunks, manifest.MLKV, 4, nil},
		{"Gemma 4 in four chunks with states", statefulFour, manifest.StatefulChunks, 4, []string{"PKG013"}},
		{"Gemma 4 in three chunks", kvioChunks, manifest.KVIO, 3, []string{"PKG013"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := fstest.MapFS{}
			c.make(m)
			p := open(t, m, "pkg")
			if p.Layout != c.layout || len(p.PartsOf(manifest.Chunk)) != c.chunks {
				t.Errorf("got layout %s with %d chunks (%s), want %s with %d", p.Layout, len(p.PartsOf(manifest.Chunk)), p.Reason, c.layout, c.chunks)
			}
			r, err := inspect.Validate(context.Background(), p, inspect.Options{})
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range r.Findings {
				if f.ID == "MIL026" { // part writes a coremldata.bin of one byte
					continue
				}
				if f.Severity == inspect.Error && !slices.Contains(c.allow, f.ID) {
					t.Errorf("%s at %v: %s", f.ID, f.Where, f.Message)
				}
			}
		})
	}
}
