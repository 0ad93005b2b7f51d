package hf_test

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/coreml/sharedtest"
	"github.com/anepkg/anepkg/runner/tokenizer"
	"github.com/anepkg/anepkg/runner/tokenizer/hf"
)

// TestUnavailable: a build without the library says how to get one.
func TestUnavailable(t *testing.T) {
	if hf.Available {
		t.Skip("this build has the library")
	}
	if _, err := hf.Load(nil); diag.CodeOf(err) != diag.Unsupported {
		t.Errorf("got %v, want an error of class %s", err, diag.Unsupported)
	}
}

// TestAgree encodes and decodes random text with both readers.
func TestAgree(t *testing.T) {
	if !hf.Available {
		t.Skip("this build has no Rust tokenizers (tag hftokenizers, \"make tokenizers\")")
	}
	files, err := filepath.Glob(filepath.Join("..", "..", "..", "runner", "testdata", "packages", "*", "tokenizer.json"))
	if err != nil {
		t.Fatal(err)
	}
	shared := sharedtest.Root(t)
	for _, pattern := range []string{"models/demo/*/tokenizer.json", "tokenizers/*/tokenizer.json", "models/tiny/*/compiled/tokenizer.json"} {
		more, err := filepath.Glob(filepath.Join(shared, filepath.FromSlash(pattern)))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, more...)
	}
	seen := map[string]bool{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		key := string(data[:min(len(data), 1<<16)])
		if seen[key] || !json.Valid(data) {
			continue
		}
		seen[key] = true
		t.Run(filepath.ToSlash(file), func(t *testing.T) { agree(t, data) })
	}
	if len(seen) == 0 {
		t.Fatal("no tokenizer.json was found")
	}
}

func agree(t *testing.T, data []byte) {
	own, err := tokenizer.Load(data)
	if err != nil {
		t.Skip(err)
	}
	rust, err := hf.Load(data)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	words := []string{" ", "the", "Hello", "1234", "naïve", "こんにちは", "🙂", "\n\n", "don't", "ẞ", "e\u0301", "\t", "<|im_start|>", "  ", "x=1;"}
	for range 300 {
		text := ""
		for range r.IntN(12) {
			if r.IntN(3) == 0 {
				text += string(rune(1 + r.IntN(0x2ff0)))
				continue
			}
			text += words[r.IntN(len(words))]
		}
		for _, special := range []bool{false, true} {
			a, err1 := own.Encode(text, special)
			b, err2 := rust.Encode(text, special)
			if err1 != nil || err2 != nil {
				t.Fatalf("%q: %v, %v", text, err1, err2)
			}
			if !slices.Equal(a, b) {
				t.Fatalf("%q, special %v: %v, the Rust library gives %v", text, special, a, b)
			}
			if x, y := own.Decode(a, special), rust.Decode(a, special); x != y {
				t.Fatalf("%v: %q, the Rust library gives %q", a, x, y)
			}
		}
	}
}

// TestNUL: what a C string cannot hold is refused or left to the other reader.
func TestNUL(t *testing.T) {
	if !hf.Available {
		t.Skip("this build has no Rust tokenizers")
	}
	data, err := os.ReadFile(filepath.Join("..", "..", "testdata", "packages", "seed-qwen3-lut6", "tokenizer.json"))
	if err != nil {
		t.Skip(err)
	}
	tok, err := hf.Load(data)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tok.Encode("a\x00b", false); err == nil {
		t.Error("a NUL character is accepted")
	}
}
