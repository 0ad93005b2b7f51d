package tokenizer_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/anepkg/anepkg/coreml/sharedtest"
	"github.com/anepkg/anepkg/runner/tokenizer"
)

// small is a byte-fallback tokenizer with one special and one plain added token.
const small = `{
 "added_tokens": [
  {"id": 7, "content": "<end>", "special": true, "normalized": false},
  {"id": 9, "content": "[x]", "special": false, "normalized": false}],
 "normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
 "decoder": {"type": "Sequence", "decoders": [
  {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"}]},
 "model": {"type": "BPE", "unk_token": "<unk>", "byte_fallback": true,
  "vocab": {"<unk>": 0, "a": 1, "b": 2, "ab": 3, "▁": 4, "▁ab": 5, "<0xC3>": 6, "<0xA9>": 8},
  "merges": ["a b", ["▁", "ab"]]}}`

func TestSmall(t *testing.T) {
	tok := load(t, []byte(small))
	ids, err := tok.Encode("ab ab[x]é<end>?", false)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int{3, 5, 9, 6, 8, 7, 0}, ids); diff != "" {
		t.Errorf("ids (-want +got)\n%s", diff)
	}
	if got := tok.Decode(ids, true); got != "ab ab[x]é<unk>" {
		t.Errorf("decoded without specials: %q", got)
	}
	if tok.Kind() != "BPE" || tok.VocabSize() != 10 || !tok.IsSpecial(7) || tok.IsSpecial(9) || tok.IsSpecial(3) {
		t.Errorf("got kind %s, size %d, special %t %t %t, want BPE, 10, true false false", tok.Kind(), tok.VocabSize(),
			tok.IsSpecial(7), tok.IsSpecial(9), tok.IsSpecial(3))
	}
}

func TestTokenAndID(t *testing.T) {
	tok := load(t, []byte(small))
	tests := []struct {
		name  string
		id    int
		token string
		ok    bool
	}{
		{"vocabulary", 5, "▁ab", true},
		{"added", 9, "[x]", true},
		{"negative", -1, "", false},
		{"past the end", 10, "", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			token, ok := tok.Token(tt.id)
			if token != tt.token || ok != tt.ok {
				t.Errorf("Token(%d) = %q, %t, want %q, %t", tt.id, token, ok, tt.token, tt.ok)
			}
			if id, found := tok.ID(tt.token); tt.ok && (id != tt.id || !found) {
				t.Errorf("ID(%q) = %d, %t, want %d", tt.token, id, found, tt.id)
			}
		})
	}
	if id, ok := tok.ID("nope"); ok {
		t.Errorf("ID of an unknown token is %d", id)
	}
}

// TestStreamHoldsBack checks when text comes out.
func TestStreamHoldsBack(t *testing.T) {
	s := tokenizer.NewStream(load(t, []byte(small)), true)
	var got []string
	for _, id := range []int{3, 6, 8, 5, 7, 6, 1} {
		got = append(got, s.Push(id))
	}
	got = append(got, s.Flush())
	want := []string{"ab", "", "", "é ab", "", "", "\uFFFDa", ""}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// foreign hides what NewStream knows of the tokenizers of this package.
type foreign struct{ tokenizer.Tokenizer }

func TestStreamOfForeignTokenizer(t *testing.T) {
	tok := foreign{load(t, []byte(small))}
	s := tokenizer.NewStream(tok, false)
	ids := []int{3, 6, 8, 5, 7, 6}
	got := ""
	for _, id := range ids {
		got += s.Push(id)
	}
	if got += s.Flush(); got != tok.Decode(ids, false) {
		t.Errorf("got %q, want %q", got, tok.Decode(ids, false))
	}
}

func TestInvalidUTF8(t *testing.T) {
	tok := load(t, []byte(small))
	bad, err := tok.Encode("a\xffb", false)
	if err != nil {
		t.Fatal(err)
	}
	want, err := tok.Encode("a\uFFFDb", false)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, bad); diff != "" {
		t.Errorf("(-replaced +raw)\n%s", diff)
	}
}

func TestConcurrentUse(t *testing.T) {
	tok := load(t, []byte(small))
	text := strings.Repeat("ab é ba ", 50)
	want, err := tok.Encode(text, true)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 20 {
				got, err := tok.Encode(text, true)
				if err != nil || !cmp.Equal(want, got) || tok.Decode(got, false) != tok.Decode(want, false) {
					t.Errorf("got %v, error %v", got, err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// with returns small with a part replaced.
func with(old, replacement string) string {
	if !strings.Contains(small, old) {
		panic("no " + old)
	}
	return strings.Replace(small, old, replacement, 1)
}

func TestLoadErrors(t *testing.T) {
	pre := func(s string) string { return with(`"decoder":`, `"pre_tokenizer": `+s+`, "decoder":`) }
	post := func(s string) string { return with(`"decoder":`, `"post_processor": `+s+`, "decoder":`) }
	tests := []struct{ name, data, want string }{
		{"empty", "", "got the end of the file, want '{'"},
		{"not JSON", "version https", "got 'v', want '{'"},
		{"not UTF-8", "{\"\xff\": 1}", "not UTF-8"},
		{"cut", small[:len(small)-3], "got the end of the file"},
		{"trailing", small + "x", "got 'x' after the end"},
		{"no model", `{"version": "1.0"}`, `no "model"`},
		{"no vocabulary", `{"model": {"type": "BPE"}}`, `no "vocab"`},
		{"model type", with(`"BPE"`, `"Magic"`), `model type is "Magic", want one of BPE,`},
		{"normalizer type", with(`"type": "Replace"`, `"type": "Magic"`), `normalizer type is "Magic"`},
		{"decoder type", with(`{"type": "Fuse"}`, `{"type": "Magic"}`), `decoder: decoders[2]: decoder type is "Magic"`},
		{"pre-tokenizer type", pre(`{"type": "Sequence", "pretokenizers": [{"type": "Magic"}]}`), `pretokenizers[0]: pre-tokenizer type is "Magic"`},
		{"post-processor type", post(`{"type": "Magic"}`), `post-processor type is "Magic"`},
		{"behavior", pre(`{"type": "Split", "pattern": {"String": "x"}, "behavior": "Odd"}`), `behavior is "Odd"`},
		{"regex", pre(`{"type": "Split", "pattern": {"Regex": "("}, "behavior": "Isolated"}`), "regular expression"},
		{"pattern", pre(`{"type": "Split", "pattern": {}, "behavior": "Isolated"}`), "neither String nor Regex"},
		{"delimiter", pre(`{"type": "CharDelimiterSplit", "delimiter": "xy"}`), `delimiter is "xy"`},
		{"template token", post(`{"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "s"}}]}`), `"s" is not in special_tokens`},
		{"template part", post(`{"type": "TemplateProcessing", "single": [{"Odd": {"id": "s"}}]}`), "neither Sequence nor SpecialToken"},
		{"id", with(`"a": 1`, `"a": -1`), "got '-', want an integer"},
		{"huge id", with(`"a": 1`, `"a": 99999999999`), "over 31 bits"},
		{"large id", with(`"a": 1`, `"a": 16777216`), "want at most 16777215"},
		{"lone id", with(`"a": 1`, `"a": 9000000`), "want ids under"},
		{"added id", with(`"id": 9`, `"id": -9`), "has id -9"},
		{"added type", with(`"id": 9`, `"id": "9"`), "added_tokens"},
		{"merge of an unknown token", with(`"a b"`, `"a c"`), `"c" is not in the vocabulary`},
		{"merge to an unknown token", with(`"a b"`, `"b a"`), `"ba" is not in the vocabulary`},
		{"merge of three", with(`"a b"`, `"a b c"`), "want two tokens"},
		{"merge of a number", with(`"a b"`, `1`), "got '1', want '['"},
		{"escape", with(`"a": 1`, `"\q": 1`), `got escape \q`},
		{"surrogate", with(`"a": 1`, `"\ud800": 1`), "lone surrogate"},
		{"deep", with(`"model":`, `"x": `+strings.Repeat("[", 200)+strings.Repeat("]", 200)+`, "model":`), "nesting is over"},
		{"dropout", with(`"byte_fallback"`, `"dropout": 0.1, "byte_fallback"`), "dropout is 0.1"},
		{"charsmap", with(`{"type": "Replace", "pattern": {"String": " "}, "content": "▁"}`, `{"type": "Precompiled", "precompiled_charsmap": "/////w=="}`), "trie has"},
		{"unigram unk", `{"model": {"type": "Unigram", "unk_id": 5, "vocab": [["a", -1]]}}`, "unk_id is 5"},
		{"unigram vocabulary", `{"model": {"type": "Unigram", "vocab": {"a": 1}}}`, "want a list"},
		{"unigram score", `{"model": {"type": "Unigram", "vocab": [["a", "x"]]}}`, "want a number"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := tokenizer.Load([]byte(tt.data))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got error %v, want one with %q", err, tt.want)
			}
		})
	}
}

func TestEncodeErrors(t *testing.T) {
	tests := []struct{ name, data, want string }{
		{"WordPiece", `{"model": {"type": "WordPiece", "vocab": {"a": 0}}}`, `unk_token "[UNK]"`},
		{"WordLevel", `{"model": {"type": "WordLevel", "vocab": {"a": 0}}}`, `unk_token "<unk>"`},
		{"Unigram", `{"model": {"type": "Unigram", "vocab": [["a", -1]]}}`, "no unk_id"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := load(t, []byte(tt.data)).Encode("b", false)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got error %v, want one with %q", err, tt.want)
			}
		})
	}
}

// TestPackages loads the tokenizer of every small package beside the checkout and takes text there and back.
func TestPackages(t *testing.T) {
	root := filepath.Dir(sharedtest.Path(t, "models/demo/package/tokenizer.json"))
	root = filepath.Dir(filepath.Dir(root))
	files := []string{filepath.Join(root, "demo", "package", "tokenizer.json")}
	for _, pattern := range []string{"tiny/*/package/tokenizer.json", "tiny/*/package/hf_model/tokenizer.json"} {
		more, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pattern)))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, more...)
	}
	if len(files) < 15 {
		t.Fatalf("got %d files, want at least 15", len(files))
	}
	const text = "Once upon a time, there was 1 robot.\n"
	for _, f := range files {
		t.Run(strings.TrimPrefix(filepath.ToSlash(f), filepath.ToSlash(root)), func(t *testing.T) {
			data, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			tok := load(t, data)
			ids, err := tok.Encode(text, true)
			if err != nil {
				t.Fatal(err)
			}
			if got := tok.Decode(ids, true); got != text {
				t.Errorf("got %q, want %q", got, text)
			}
			checkStream(t, tok, ids)
		})
	}
}

// TestNormalizerLimit: a few replacements after each other do not take the
// memory of the machine.
func TestNormalizerLimit(t *testing.T) {
	for name, pattern := range map[string]string{"text": `{"String": "a"}`, "regex": `{"Regex": "a"}`} {
		one := `{"type": "Replace", "pattern": ` + pattern + `, "content": "` + strings.Repeat("a", 1000) + `"}`
		file := strings.Replace(small, `{"type": "Replace", "pattern": {"String": " "}, "content": "▁"}`,
			`{"type": "Sequence", "normalizers": [`+strings.Repeat(one+", ", 5)+one+`]}`, 1)
		tok := load(t, []byte(file))
		if _, err := tok.Encode("aaaaaaaaaa", true); err == nil || !strings.Contains(err.Error(), "more than") {
			t.Errorf("%s: got %v, want an error about the length", name, err)
		}
	}
}
