package manifest_test

import (
	"context"
	"testing"

	"github.com/anepkg/anepkg/manifest"
)

// fuzzFile opens a folder that holds the bytes under each name.
func fuzzFile(f *testing.F, names []string, seeds ...string) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		files := folder(map[string]string{"meta.yaml": meta})
		for _, n := range names {
			files[n].Data = data
		}
		p, err := manifest.Open(context.Background(), files, "pkg")
		if err != nil {
			t.Fatalf("bad bytes in a file are an error: %v", err)
		}
		_ = p.Close()
	})
}

func FuzzMetaYAML(f *testing.F) {
	fuzzFile(f, []string{"meta.yaml"}, meta, "", "a: &a [*a]", "\ufeff{model_info: {parameters: {states: [1]}}}", "model_info:\n  parameters:\n\tx: 1\n", "--- !!binary |\n x", "? a\n: b", "%YAML 9.9\n---\n1")
}

func FuzzModelConfig(f *testing.F) {
	f.Add([]byte(`{"model_name": "x", "layer_types": ["a"], "parts": {"model": "m"}}`))
	f.Add([]byte("{\"a\": \"\\ud800\"}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		files := folder(map[string]string{"model_config.json": "x"})
		files["model_config.json"].Data = data
		p, err := manifest.Open(context.Background(), files, "pkg")
		if err != nil {
			t.Fatalf("bad bytes in a file are an error: %v", err)
		}
		_ = p.Close()
	})
}

func FuzzTokenizerJSON(f *testing.F) {
	for _, s := range []string{
		`{"added_tokens":[{"id":1,"content":"<eos>","special":true}],"model":{"type":"BPE","vocab":{"a":0},"merges":[]}}`,
		`{"model":{"type":"Unigram","vocab":[["a",-1.5],["b",0]]}}`,
		`{"eos_token":{"content":"x"},"eos_token_id":[1,"2",null],"chat_template":[{"name":"default","template":"t"}],"added_tokens_decoder":{"3":{"content":"x"}}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		files := folder(map[string]string{"meta.yaml": meta})
		for _, n := range []string{"tokenizer.json", "tokenizer_config.json", "generation_config.json", "special_tokens_map.json", "config.json"} {
			files[n] = folder(map[string]string{n: "x"})[n]
			files[n].Data = data
		}
		p, err := manifest.Open(context.Background(), files, "pkg")
		if err != nil {
			t.Fatalf("bad bytes in a file are an error: %v", err)
		}
		_ = p.Close()
	})
}
