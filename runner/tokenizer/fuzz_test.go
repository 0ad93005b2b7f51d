package tokenizer_test

import (
	"encoding/json"
	"path/filepath"
	"testing"
	"unicode/utf8"

	"github.com/anepkg/anepkg/coreml/sharedtest"
	"github.com/anepkg/anepkg/runner/tokenizer"
)

// componentFiles are the small tokenizers of the component test.
func componentFiles(t testing.TB) [][]byte {
	t.Helper()
	var file struct {
		Tests []struct{ Tokenizer map[string]json.RawMessage }
	}
	readJSON(t, filepath.Join("testdata", "components.json"), &file)
	out := [][]byte{[]byte(small)}
	for _, tt := range file.Tests {
		if string(tt.Tokenizer["model"]) == `"wordpiece"` {
			tt.Tokenizer["model"] = json.RawMessage(`{"type": "WordPiece", "unk_token": "u", "vocab": {"u": 0, "a": 1, "##a": 2, "##b": 3}}`)
		}
		data, err := json.Marshal(tt.Tokenizer)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, data)
	}
	return out
}

// FuzzLoad checks that no file makes Load or what it returns panic, and that streaming agrees with decoding.
func FuzzLoad(f *testing.F) {
	for _, data := range componentFiles(f) {
		f.Add(data, "a b<end> é1")
	}
	f.Fuzz(func(t *testing.T, data []byte, text string) {
		if len(text) > 200 || len(data) > 1<<16 {
			return
		}
		tok, err := tokenizer.Load(data)
		if err != nil {
			return
		}
		ids, err := tok.Encode(text, true)
		if err != nil {
			return
		}
		for _, id := range ids {
			tok.Token(id)
			tok.IsSpecial(id)
		}
		checkStream(t, tok, append(ids, -1, 0, tok.VocabSize(), 1))
	})
}

// FuzzEncodeDecode checks that text survives encoding and decoding where the tokenizer is lossless, that every id is
// within the vocabulary, and that streaming agrees with decoding for ids in any order.
func FuzzEncodeDecode(f *testing.F) {
	for _, s := range []string{"", "Hello, world!", " a  b\n", "日本語 é 👍🏽", "<|im_start|>x", "\xff\x00", "▁ ▁"} {
		f.Add(s, []byte(s))
	}
	demo := load(f, read(f, sharedtest.Path(f, "models/demo/package/tokenizer.json")))
	bytewise := load(f, []byte(small))
	f.Fuzz(func(t *testing.T, text string, order []byte) {
		if len(text) > 1000 || len(order) > 1000 {
			return
		}
		ids, err := demo.Encode(text, false)
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range ids {
			if id < 0 || id >= demo.VocabSize() {
				t.Errorf("%q has id %d, want 0 to %d", text, id, demo.VocabSize()-1)
			}
		}
		again, err := demo.Encode(demo.Decode(ids, false), false)
		if err != nil {
			t.Fatal(err)
		}
		if utf8.ValidString(text) && demo.Decode(again, false) != demo.Decode(ids, false) {
			t.Errorf("%q decodes to %q, then to %q", text, demo.Decode(ids, false), demo.Decode(again, false))
		}
		var mixed []int
		for _, b := range order {
			mixed = append(mixed, int(b))
		}
		checkStream(t, demo, mixed)
		checkStream(t, bytewise, mixed)
	})
}
