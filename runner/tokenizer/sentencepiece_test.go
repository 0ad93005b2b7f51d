package tokenizer_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/anepkg/anepkg/runner/tokenizer"
)

// TestSentencePiece: the models were trained for this test on made-up sentences, the ids come from the Python
// package sentencepiece 0.2.
func TestSentencePiece(t *testing.T) {
	var expected map[string][]struct {
		Text, Back string
		IDs        []int
	}
	if err := json.Unmarshal(read(t, "testdata/sentencepiece/expected.json"), &expected); err != nil {
		t.Fatal(err)
	}
	for name, cases := range expected {
		tok, err := tokenizer.LoadSentencePiece(read(t, "testdata/sentencepiece/"+name+".model"), tokenizer.SentencePieceOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, tc := range cases {
			ids, err := tok.Encode(tc.Text, true)
			if err != nil || !slices.Equal(ids, tc.IDs) {
				t.Errorf("%s: %q gives %v, %v, want %v", name, tc.Text, ids, err, tc.IDs)
			}
			// SentencePiece writes unknown text as " ⁇ ", a tokenizer.json as <unk>.
			if back := tok.Decode(tc.IDs, false); !strings.Contains(tc.Back, "⁇") && back != tc.Back {
				t.Errorf("%s: %v decodes to %q, want %q", name, tc.IDs, back, tc.Back)
			}
		}
		bos, _ := tok.ID("<s>")
		eos, _ := tok.ID("</s>")
		with, err := tokenizer.LoadSentencePiece(read(t, "testdata/sentencepiece/"+name+".model"), tokenizer.SentencePieceOptions{AddBOS: true, AddEOS: true})
		if err != nil {
			t.Fatal(err)
		}
		plain, _ := tok.Encode("the lake", true)
		if ids, err := with.Encode("the lake", true); err != nil || !slices.Equal(ids, slices.Concat([]int{bos}, plain, []int{eos})) {
			t.Errorf("%s with BOS and EOS: %v, %v", name, ids, err)
		}
		if ids, err := with.Encode("<s>the lake", false); err != nil || ids[0] != bos {
			t.Errorf("%s: a special token at the beginning: %v, %v", name, ids, err)
		}
	}
}

func TestSentencePieceRefuses(t *testing.T) {
	good, err := os.ReadFile("testdata/sentencepiece/plain.model")
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name, data, want string
	}{
		{"empty", "", "no pieces"},
		{"text", "<html>not found</html>", "SentencePiece model"},
		{"cut", string(good[:len(good)-3]), "SentencePiece model"},
		{"word model", string(good) + "\x12\x02\x18\x03", "model type is 3, want 1 (Unigram) or 2 (BPE)"},
		{"suffixes", string(good) + "\x12\x03\xc0\x01\x01", "white space as a suffix"},
		{"not escaped", string(good) + "\x1a\x02\x28\x00", "not escaped"},
		{"no unknown piece", "\x0a\x03\x0a\x01a", "no piece stands for unknown text"},
		{"a piece without a text", "\x0a\x00", `piece 0 is ""`},
		{"a score that is no number", "\x0a\x08\x0a\x01a\x15\x00\x00\xc0\x7f", "piece 0 has the score NaN"},
		{"a wrong charsmap", string(good) + "\x1a\x06\x12\x04\xff\xff\xff\xff", "trie has"},
	} {
		if _, err := tokenizer.LoadSentencePiece([]byte(tc.data), tokenizer.SentencePieceOptions{}); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %q in it", tc.name, err, tc.want)
		}
	}
	if _, err := tokenizer.LoadSentencePiece(append(slices.Clone(good), "\x12\x0b\xc8\x02\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"...), tokenizer.SentencePieceOptions{AddBOS: true}); err == nil {
		t.Error("a BOS id of -1 was taken")
	}
}

func FuzzLoadSentencePiece(f *testing.F) {
	for _, name := range []string{"unigram", "bpe", "plain"} {
		data, err := os.ReadFile("testdata/sentencepiece/" + name + ".model")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data, "the robot  saw a lake")
	}
	f.Fuzz(func(_ *testing.T, data []byte, text string) {
		tok, err := tokenizer.LoadSentencePiece(data, tokenizer.SentencePieceOptions{AddBOS: true})
		if err != nil {
			return
		}
		if ids, err := tok.Encode(text, true); err == nil {
			tok.Decode(ids, false)
		}
	})
}
