package runner

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"unicode/utf8"

	"github.com/anepkg/anepkg/runner/chattmpl"
	"github.com/anepkg/anepkg/runner/tokenizer"
)

// byteTokenizer is a tokenizer.json whose token i is byte i, with special
// tokens from 256 on. The alphabet is that of GPT-2: printable bytes stand
// for themselves, the others for U+0100 and up.
func byteTokenizer(special ...string) []byte {
	vocab := map[string]int{}
	next := rune(0x100)
	for b := range 256 {
		c := rune(b)
		if b < '!' || b > '~' && b < 0xA1 || b == 0xAD {
			c = next
			next++
		}
		vocab[string(c)] = b
	}
	added := []map[string]any{}
	for i, s := range special {
		added = append(added, map[string]any{"id": 256 + i, "content": s, "special": true, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false})
	}
	data, err := json.Marshal(map[string]any{
		"version": "1.0", "added_tokens": added, "normalizer": nil, "post_processor": nil,
		"pre_tokenizer": map[string]any{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": false},
		"decoder":       map[string]any{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": false},
		"model":         map[string]any{"type": "BPE", "vocab": vocab, "merges": []string{}},
	})
	if err != nil {
		panic(err)
	}
	return data
}

func TestTextStream(t *testing.T) {
	tok, err := tokenizer.Load(byteTokenizer("<|end|>"))
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name  string
		text  string
		stops []string
		want  string
		found string
	}{
		{"plain", "hello", nil, "hello", ""},
		{"characters of several bytes", "aé€😀z", nil, "aé€😀z", ""},
		{"stop string across tokens", "one STOP two", []string{"STOP"}, "one ", "STOP"},
		{"earliest of several", "ab cd ef", []string{"ef", "cd"}, "ab ", "cd"},
		{"beginning of a stop string at the end", "one STO", []string{"STOP"}, "one STO", ""},
		{"false start", "STSTOP", []string{"STOP"}, "ST", "STOP"},
		{"overlapping start", "aaab", []string{"aab"}, "a", "aab"},
		{"stop string with wide characters", "x – y € z", []string{"€"}, "x – y ", "€"},
		{"empty stop string is ignored", "abc", []string{""}, "abc", ""},
		{"stop at once", "STOP", []string{"STOP"}, "", "STOP"},
		{"incomplete character at the end", "ab\xe2\x82", nil, "ab\uFFFD", ""},
	} {
		var pieces []string
		s := newTextStream(tok, true, tc.stops, func(p string) { pieces = append(pieces, p) })
		found := ""
		for _, b := range []byte(tc.text) {
			if found = s.push(int(b)); found != "" {
				break
			}
		}
		if f := s.flush(); found == "" {
			found = f
		}
		if got := strings.Join(pieces, ""); got != tc.want || found != tc.found {
			t.Errorf("%s: got %q, stop %q, want %q, stop %q", tc.name, got, found, tc.want, tc.found)
		}
		for _, p := range pieces {
			if !utf8.ValidString(p) || p == "" {
				t.Errorf("%s: piece %q is empty or not whole UTF-8", tc.name, p)
			}
		}
	}
	s := newTextStream(tok, true, []string{"b"}, func(string) { t.Error("text after the end") })
	s.push('b')
	s.push('c')
	s.flush()
}

// TestTextStreamAgainstSearch: whatever the tokens and the stop strings are,
// what is emitted is the text before the first stop string, as a search in
// the whole text finds it, and never more, piece by piece.
func TestTextStreamAgainstSearch(t *testing.T) {
	tok, err := tokenizer.Load(byteTokenizer())
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(5, 6))
	alphabet := []string{"a", "b", "ab", "é", "€", "😀", "e\u0301", "\n"}
	word := func(n int) string {
		s := ""
		for range n {
			s += alphabet[rng.IntN(len(alphabet))]
		}
		return s
	}
	for range 20000 {
		text := word(1 + rng.IntN(12))
		var stops []string
		for range rng.IntN(4) {
			stops = append(stops, word(1+rng.IntN(3)))
		}
		// The first stop string that is complete ends it; of several that
		// the same byte completes, the one that begins first.
		want, found := text, ""
		for end := 1; end <= len(text) && found == ""; end++ {
			for _, st := range stops {
				if i := strings.Index(text[:end], st); i >= 0 && (found == "" || i < len(want)) {
					want, found = text[:i], st
				}
			}
		}
		got, stopped := "", ""
		s := newTextStream(tok, true, stops, func(p string) {
			if got += p; !strings.HasPrefix(want, got) {
				t.Fatalf("%q with stops %q: emitted %q, want %q", text, stops, got, want)
			}
		})
		for _, b := range []byte(text) {
			if stopped = s.push(int(b)); stopped != "" {
				break
			}
		}
		if f := s.flush(); stopped == "" {
			stopped = f
		}
		if got != want || (stopped == "") != (found == "") {
			t.Fatalf("%q with stops %q: got %q, stop %q, want %q, stop %q", text, stops, got, stopped, want, found)
		}
	}
}

func fakeWithText(more map[string]string, special ...string) fstest.MapFS {
	fsys := fakeFiles(fakeKV, "", false)
	fsys["tokenizer.json"] = &fstest.MapFile{Data: byteTokenizer(special...)}
	for name, s := range more {
		fsys[name] = file(s)
	}
	return fsys
}

func TestPrompt(t *testing.T) {
	const chatml = `{"eos_token": "<|im_end|>", "chat_template": "{% for m in messages %}[{{ m['role'] }}]{{ m['content'] }}{% endfor %}{% if add_generation_prompt %}>{{ eos_token }}{% endif %}"}`
	for _, tc := range []struct {
		name    string
		files   map[string]string
		special []string
		in      PromptInput
		want    string
		format  string
		note    bool
	}{
		{"raw", map[string]string{"tokenizer_config.json": chatml}, nil, PromptInput{Text: "hi", Raw: true}, "hi", "raw", false},
		{"template", map[string]string{"tokenizer_config.json": chatml}, nil, PromptInput{Text: "hi", System: "be"}, "[system]be[user]hi><|im_end|>", "chat template (tokenizer_config.json)", false},
		{"messages", map[string]string{"tokenizer_config.json": chatml}, nil,
			PromptInput{Messages: []chattmpl.Message{{Role: "user", Content: "a"}, {Role: "assistant", Content: "b"}, {Role: "user", Content: "c"}}}, "[user]a[assistant]b[user]c><|im_end|>", "chat template (tokenizer_config.json)", false},
		{"template file", map[string]string{"chat_template.jinja": "{{ messages[0].content }}!{{ x }}"}, nil, PromptInput{Text: "hi", Extra: map[string]any{"x": 5}}, "hi!5", "chat template (chat_template.jinja)", false},
		{"ChatML by its tokens", nil, []string{"<|im_start|>", "<|im_end|>"}, PromptInput{Text: "hi", System: "be"},
			"<|im_start|>system\nbe<|im_end|>\n<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n", "ChatML", true},
		{"Llama 3 by its tokens", map[string]string{"tokenizer_config.json": `{"bos_token": "<|begin_of_text|>"}`}, []string{"<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"}, PromptInput{Text: "hi"},
			"<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\nhi<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n", "Llama 3", true},
		{"Gemma by its tokens", map[string]string{"tokenizer_config.json": `{"bos_token": "<bos>"}`}, []string{"<bos>", "<start_of_turn>", "<end_of_turn>"}, PromptInput{Text: "hi", System: "be"},
			"<bos><start_of_turn>user\nbe\n\nhi<end_of_turn>\n<start_of_turn>model\n", "Gemma", true},
		{"nothing known", nil, nil, PromptInput{Text: "hi"}, "hi", "raw", true},
	} {
		r := openFake(t, fakeWithText(tc.files, tc.special...), &fakeBackend{}, Options{})
		p, err := r.Prompt(tc.in)
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
			continue
		}
		if p.Text != tc.want || p.Format != tc.format || (p.Note != "") != tc.note {
			t.Errorf("%s: got %q as %s (%s), want %q as %s", tc.name, p.Text, p.Format, p.Note, tc.want, tc.format)
		}
		tok, _ := r.Tokenizer()
		if got := tok.Decode(p.IDs, false); got != tc.want {
			t.Errorf("%s: ids decode to %q", tc.name, got)
		}
	}
	r := openFake(t, fakeFiles(fakeKV, "", false), &fakeBackend{}, Options{})
	if p, err := r.Prompt(PromptInput{IDs: []int{3, 4}}); err != nil || !slices.Equal(p.IDs, []int{3, 4}) {
		t.Errorf("ids: got %+v, %v", p, err)
	}
	if _, err := r.Prompt(PromptInput{Text: "hi"}); err == nil || !strings.Contains(err.Error(), "tokenizer.json") {
		t.Errorf("text without a tokenizer: got %v", err)
	}
	r = openFake(t, fakeWithText(map[string]string{"chat_template.jinja": "{{ raise_exception('no system role') }}"}), &fakeBackend{}, Options{})
	if _, err := r.Prompt(PromptInput{Text: "hi"}); err == nil || !strings.Contains(err.Error(), "no system role") {
		t.Errorf("template that refuses: got %v", err)
	}
}

// TestGeneratedText: what the fake says are the bytes 0 to 22; the text is
// streamed in pieces that join to the whole.
func TestGeneratedText(t *testing.T) {
	r := openFake(t, fakeWithText(nil), &fakeBackend{}, Options{})
	prompt := randomIDs(3, 4)
	want := fakeGreedy(prompt, 6)
	var text strings.Builder
	res, err := r.Generate(t.Context(), Request{PromptIDs: prompt, MaxTokens: 6}, func(s string) { text.WriteString(s) })
	wantText := ""
	for _, id := range want {
		wantText += string(rune(id))
	}
	if err != nil || res.Text != wantText || text.String() != wantText {
		t.Errorf("got %q and %q, %v, want %q", res.Text, text.String(), err, wantText)
	}
	stop := string(rune(want[3])) + string(rune(want[4]))
	at := strings.Index(wantText, stop)
	res, err = r.Generate(t.Context(), Request{PromptIDs: prompt, MaxTokens: 6, StopStrings: []string{stop}}, nil)
	if err != nil || res.Text != wantText[:at] || res.FinishReason != FinishStop || res.StopString != stop || res.StopID != nil {
		t.Errorf("stop string: got %+v, %v", res, err)
	}
	if !slices.Equal(res.GeneratedIDs, want[:at+2]) {
		t.Errorf("stop string: ids %v, want those up to the one that completed it, %v", res.GeneratedIDs, want[:at+2])
	}
}

func TestResultJSON(t *testing.T) {
	r := openFake(t, fakeFiles(fakeKV, "", false), &fakeBackend{}, Options{})
	res, err := r.Generate(t.Context(), Request{PromptIDs: []int{1}, MaxTokens: 1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(res)
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"backend", "compute_units", "prompt_ids", "generated_ids", "text", "finish_reason", "timings", "stop_id"} {
		if _, ok := got[key]; !ok {
			t.Errorf("%s is missing in %s", key, data)
		}
	}
	for _, key := range []string{"load_s", "prefill_tokens", "prefill_s", "decode_tokens", "decode_s"} {
		if _, ok := got["timings"].(map[string]any)[key].(float64); !ok {
			t.Errorf("timings.%s is missing in %s", key, data)
		}
	}
	if got["stop_id"] != nil || fmt.Sprint(got["generated_ids"]) == "<nil>" {
		t.Errorf("stop_id %v, generated_ids %v", got["stop_id"], got["generated_ids"])
	}
}

func TestChat(t *testing.T) {
	fsys := fakeWithText(map[string]string{"chat_template.jinja": "{% for m in messages %}{{ m.content }}{% endfor %}"})
	b := &fakeBackend{}
	r := openFake(t, fsys, b, Options{})
	c := r.NewChat("", nil)
	send := func(text string) (*Result, int) {
		t.Helper()
		res, dropped, err := c.Send(t.Context(), text, Request{MaxTokens: 2}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return res, dropped
	}
	ids := func() (out []int) {
		for _, m := range c.Messages() {
			for _, ch := range m.Content {
				out = append(out, int(ch))
			}
		}
		return out
	}
	first, _ := send("\x01\x02\x03")
	if want := fakeGreedy([]int{1, 2, 3}, 2); !slices.Equal(first.GeneratedIDs, want) || first.Timings.PrefillTokens != 3 {
		t.Fatalf("first turn: %+v, want %v", first, want)
	}
	history := append(ids(), 4, 5)
	second, _ := send("\x04\x05")
	if want := fakeGreedy(history, 2); !slices.Equal(second.GeneratedIDs, want) || second.Timings.PrefillTokens != 3 {
		t.Fatalf("second turn: %v after feeding %d tokens, want %v after 3 (the last answer's last token and two new ones)", second.GeneratedIDs, second.Timings.PrefillTokens, want)
	}
	if n := len(c.Messages()); n != 4 {
		t.Errorf("%d messages, want 4", n)
	}
	if _, dropped := send("\x01\x02\x03\x04\x05\x06\x07\x08"); dropped != 1 {
		t.Errorf("third turn dropped %d turns, want 1", dropped)
	}
	if m := c.Messages(); len(m) != 4 || m[0].Content != "\x04\x05" {
		t.Errorf("messages after dropping: %q", m)
	}
	before := len(c.Messages())
	if _, _, err := c.Send(t.Context(), strings.Repeat("x", 40), Request{}, nil); err == nil || len(c.Messages()) != before {
		t.Errorf("message beyond the context: %v, %d messages", err, len(c.Messages()))
	}
	if err := c.Clear(); err != nil || len(c.Messages()) != 0 || r.Position() != 0 {
		t.Errorf("clear: %v", err)
	}
}

// TestTokenizerModel: a package without tokenizer.json is read through
// SentencePiece's file, and tokenizer_config.json says whether BOS is added.
func TestTokenizerModel(t *testing.T) {
	model, err := os.ReadFile("tokenizer/testdata/sentencepiece/plain.model")
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		config string
		want   []int
	}{
		{"", []int{311, 272}}, // the ids of the Python package sentencepiece
		{`{"add_bos_token": true}`, []int{1, 311, 272}},
		{`{"add_bos_token": true, "add_eos_token": true}`, []int{1, 311, 272, 2}},
	} {
		fsys := fakeFiles(fakeKV, "", false)
		fsys["tokenizer.model"] = file(string(model))
		if tc.config != "" {
			fsys["tokenizer_config.json"] = file(tc.config)
		}
		r := openFake(t, fsys, &fakeBackend{}, Options{})
		if p, err := r.Prompt(PromptInput{Text: "the lake", Raw: true}); err != nil || !slices.Equal(p.IDs, tc.want) {
			t.Errorf("%s: got %+v, %v, want %v", tc.config, p, err, tc.want)
		}
	}
	fsys := fakeFiles(fakeKV, "", false)
	fsys["tokenizer.model"] = file("<html>")
	r := openFake(t, fsys, &fakeBackend{}, Options{})
	if _, err := r.Prompt(PromptInput{Text: "a"}); err == nil || !strings.Contains(err.Error(), "tokenizer.model: SentencePiece model") {
		t.Errorf("a broken file: got %v", err)
	}
}
