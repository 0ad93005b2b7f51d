package runner

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/runner/chattmpl"
)

// answerMark is a template whose later turns leave out the first character
// of an answer, as templates of thinking models leave out the thinking.
const answerMark = "{% for m in messages %}{% if m.role == 'user' %}{{ m.content }}{% else %}\x09{{ m.content[1:] }}{% endif %}{% endfor %}{% if add_generation_prompt %}\x09{% endif %}"

// TestChatSnapshot: a recurrent state goes back to where the answer began,
// and what it then says is what a fresh run says.
func TestChatSnapshot(t *testing.T) {
	for _, tc := range []struct {
		name   string
		states string
		kind   fakeKind
		fed    int // of the second turn
	}{
		// Held: 1 2 3 | 9 and one token of the answer. The second prompt is
		// 1 2 3 | 9, the second token of the answer, 4 | 9.
		{"recurrent, from the snapshot before the opening", fakeGDN, fakeRecurrent, 4},
		{"plain, from where the prompts part", fakeKV, fakePlain, 3},
	} {
		fsys := fakeFiles(tc.states, lastOutClaim, false)
		fsys["tokenizer.json"] = file(string(byteTokenizer()))
		fsys["chat_template.jinja"] = file(answerMark)
		r := openFake(t, fsys, &fakeBackend{kind: tc.kind, lastOut: true}, Options{})
		c := r.NewChat("", nil)
		prompt := []int{1, 2, 3, 9}
		first, _, err := c.Send(t.Context(), "\x01\x02\x03", Request{MaxTokens: 2}, nil)
		if want := fakeGreedy(prompt, 2); err != nil || !slices.Equal(first.GeneratedIDs, want) {
			t.Fatalf("%s: first turn %+v, %v, want %v", tc.name, first, err, want)
		}
		prompt = append(prompt, first.GeneratedIDs[1], 4, 9)
		second, _, err := c.Send(t.Context(), "\x04", Request{MaxTokens: 2}, nil)
		if err != nil {
			t.Fatalf("%s: %v", tc.name, err)
		}
		if want := fakeGreedy(prompt, 2); !slices.Equal(second.PromptIDs, prompt) || !slices.Equal(second.GeneratedIDs, want) || second.Timings.PrefillTokens != tc.fed {
			t.Errorf("%s: second turn %v after %v, %d fed, want %v after %v, %d fed", tc.name, second.GeneratedIDs, second.PromptIDs, second.Timings.PrefillTokens, want, prompt, tc.fed)
		}
	}
}

func TestChatRestore(t *testing.T) {
	r := openFake(t, fakeWithText(map[string]string{"chat_template.jinja": "{% for m in messages %}{{ m.content }}{% endfor %}"}), &fakeBackend{}, Options{})
	msg := func(role, text string) chattmpl.Message { return chattmpl.Message{Role: role, Content: text} }
	c := r.NewChat("", nil)
	if err := c.Restore([]chattmpl.Message{msg("system", "\x01"), msg("user", "\x02"), msg("assistant", "\x03")}); err != nil {
		t.Fatal(err)
	}
	res, _, err := c.Send(t.Context(), "\x04", Request{MaxTokens: 1}, nil)
	if err != nil || !slices.Equal(res.PromptIDs, []int{1, 2, 3, 4}) || c.System() != "\x01" {
		t.Errorf("got %+v, %v, system %q", res, err, c.System())
	}
	for _, bad := range [][]chattmpl.Message{
		{msg("assistant", "a")}, {msg("user", "a")}, {msg("user", "a"), msg("user", "b")}, {msg("user", "a"), msg("system", "b")},
	} {
		if err := c.Restore(bad); diag.CodeOf(err) != diag.Usage || len(c.Messages()) != 4 {
			t.Errorf("%v: got %v, want an error of class usage", bad, err)
		}
	}
}

// TestChatInterrupted: the part of an answer that was said stays.
func TestChatInterrupted(t *testing.T) {
	r := openFake(t, fakeWithText(map[string]string{"chat_template.jinja": "{% for m in messages %}{{ m.content }}{% endfor %}"}), &fakeBackend{}, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	said := 0
	c := r.NewChat("", nil)
	res, _, err := c.Send(ctx, "\x01", Request{}, func(string) {
		if said++; said == 3 {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) || len(c.Messages()) != 2 || c.Messages()[1].Content != res.Text || len(res.Text) != 3 {
		t.Fatalf("got %+v, %v, messages %q", res, err, c.Messages())
	}
	next, _, err := c.Send(t.Context(), "\x02", Request{MaxTokens: 1}, nil)
	if want := fakeGreedy(next.PromptIDs, 1); err != nil || !slices.Equal(next.GeneratedIDs, want) {
		t.Errorf("the turn after it: %+v, %v, want %v", next, err, want)
	}
}

// TestShift: after a shift the model says what it says of the later half
// alone, whatever kind of state it has.
func TestShift(t *testing.T) {
	for _, tc := range []struct {
		name   string
		states string
		kind   fakeKind
	}{{"plain", fakeKV, fakePlain}, {"recurrent", fakeGDN, fakeRecurrent}} {
		r := openFake(t, fakeFiles(tc.states, lastOutClaim, false), &fakeBackend{kind: tc.kind, lastOut: true}, Options{})
		prompt := randomIDs(3, 4)
		res, err := r.Generate(t.Context(), Request{PromptIDs: prompt, MaxTokens: 30, Shift: true}, nil)
		if err != nil {
			t.Fatalf("%s: %v", tc.name, err)
		}
		all := slices.Clone(prompt)
		held := len(prompt)
		for len(all) < len(prompt)+30 {
			all = append(all, fakeNext(all[len(all)-held:]))
			if held++; held > fakeCtx {
				held = fakeCtx / 2
			}
		}
		if !slices.Equal(res.GeneratedIDs, all[len(prompt):]) || res.Shifts == 0 {
			t.Errorf("%s: got %v with %d shifts, want %v", tc.name, res.GeneratedIDs, res.Shifts, all[len(prompt):])
		}
	}
}

func TestKeepLogprobs(t *testing.T) {
	r := openFake(t, fakeFiles(fakeKV, "", false), &fakeBackend{}, Options{})
	prompt := randomIDs(3, 4)
	want := fakeGreedy(prompt, 4)
	res, err := r.Generate(t.Context(), Request{PromptIDs: prompt, MaxTokens: 4, KeepLogprobs: true, TopLogprobs: 2, StopIDs: []int{want[3]}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	n := slices.Index(want, want[3])
	if len(res.Logprobs) != n+1 {
		t.Fatalf("%d entries, want %d and one for the stop id", len(res.Logprobs), n)
	}
	for i, lp := range res.Logprobs {
		if lp.ID != want[i] || len(lp.Top) != 2 || lp.Top[0] != lp.Logprob || lp.Top[1].Logprob > lp.Top[0].Logprob {
			t.Errorf("entry %d is %+v, want token %d, the best", i, lp, want[i])
		}
	}
	if _, err := r.Generate(t.Context(), Request{PromptIDs: prompt, KeepLogprobs: true, TopLogprobs: -1}, nil); diag.CodeOf(err) != diag.Usage {
		t.Errorf("a negative number: got %v", err)
	}
}

func TestStopStringIsASpecialToken(t *testing.T) {
	fsys := fakeWithText(nil)
	fsys["tokenizer.json"] = file(strings.Replace(string(byteTokenizer("<|end|>")), `"id":256`, `"id":21`, 1))
	r := openFake(t, fsys, &fakeBackend{}, Options{})
	for seed := range 50 {
		prompt := randomIDs(3, seed)
		at := slices.Index(fakeGreedy(prompt, 8), 21)
		if at < 0 {
			continue
		}
		res, err := r.Generate(t.Context(), Request{PromptIDs: prompt, MaxTokens: 8, StopStrings: []string{"<|end|>"}, IgnoreEOS: true}, nil)
		if err != nil || res.StopID == nil || *res.StopID != 21 || len(res.GeneratedIDs) != at {
			t.Errorf("got %+v, %v, want a stop by id 21 after %d tokens", res, err, at)
		}
		return
	}
	t.Fatal("no prompt leads to the token")
}

func TestThinking(t *testing.T) {
	for _, tc := range []struct{ name, prompt, text, thought, answer string }{
		{"none", "hi", "plain <b> text\n", "", "plain <b> text\n"},
		{"thinking first", "hi", "<think>\nhm, 1 < 2\n</think>\n\nYes.", "hm, 1 < 2", "Yes."},
		{"opened by the template", "hi<think>\n", "hm\n</think>\n\nYes.", "hm", "Yes."},
		{"closed by the template", "hi<think>\n\n</think>\n\n", "Yes.", "", "Yes."},
		{"an older thought in the prompt", "<think>x</think>hi", "Yes.", "", "Yes."},
		{"a mark that the user wrote", "what is <think>?", "Yes.", "", "Yes."},
		{"never closed", "hi", "<think>hm </thin", "hm </thin", ""},
		{"empty", "hi", "<think>\n\n</think>\n\nYes.\n\nNo.", "", "Yes.\n\nNo."},
		{"twice", "hi", "<think>a</think>b<think>c</think>d", "ac", "bd"},
		{"a false start", "hi", "a <th b", "", "a <th b"},
		{"wide characters", "hi", "<think>思考</think>答え", "思考", "答え"},
	} {
		for size := 1; size <= len(tc.text); size++ {
			var thought, answer string
			th := NewThinking(tc.prompt, func(s string, thinking bool) {
				if s == "" {
					t.Errorf("%s: an empty piece", tc.name)
				}
				if thinking {
					thought += s
				} else {
					answer += s
				}
			})
			for rest := tc.text; rest != ""; {
				n := min(size, len(rest))
				th.Push(rest[:n])
				rest = rest[n:]
			}
			th.Flush()
			if thought != tc.thought || answer != tc.answer {
				t.Errorf("%s, pieces of %d: thought %q, answer %q, want %q and %q", tc.name, size, thought, answer, tc.thought, tc.answer)
			}
		}
	}
}

func TestRecommended(t *testing.T) {
	const sampling = "    recommended_sampling: "
	for _, tc := range []struct {
		name, meta, gen string
		want            string // of the configuration
		values          []string
		problems        int
	}{
		{"nothing", "", "", "greedy", nil, 0},
		{"meta.yaml", sampling + "{do_sample: true, temperature: 0.6, top_p: 0.95, top_k: 20}\n", `{"do_sample": true, "temperature": 2}`,
			"temperature 0.6, top-k 20, top-p 0.95, min-p 0, seed 0",
			[]string{"do_sample=1 meta.yaml: recommended_sampling.do_sample", "temperature=0.6 meta.yaml: recommended_sampling.temperature", "top_k=20 meta.yaml: recommended_sampling.top_k", "top_p=0.95 meta.yaml: recommended_sampling.top_p"}, 0},
		{"as Swift spells it, quoted", sampling + "{do_sample: 'true', temperature: '0.5', topP: '0.9', topK: '7'}\n", "", "temperature 0.5, top-k 7, top-p 0.9, min-p 0, seed 0", nil, 0},
		{"greedy by meta.yaml", sampling + "{do_sample: false, temperature: 0.6}\n", `{"do_sample": true, "temperature": 2, "repetition_penalty": 1.1}`,
			"greedy, repeat penalty 1.1", []string{"do_sample=0 meta.yaml: recommended_sampling.do_sample", "repetition_penalty=1.1 generation_config.json: repetition_penalty"}, 0},
		{"a temperature implies it", sampling + "{temperature: 0.6}\n", "", "temperature 0.6, top-k 0, top-p 0, min-p 0, seed 0", nil, 0},
		{"generation_config.json", "", `{"do_sample": true, "top_k": 64, "top_p": 0.95, "min_p": 0.05, "typical_p": 0.9}`,
			"temperature 1, top-k 64, top-p 0.95, min-p 0.05, seed 0, typical-p 0.9", []string{"do_sample=1 generation_config.json: do_sample", "top_k=64 generation_config.json: top_k", "top_p=0.95 generation_config.json: top_p", "min_p=0.05 generation_config.json: min_p", "typical_p=0.9 generation_config.json: typical_p"}, 0},
		{"generation_config.json without do_sample", "", `{"temperature": 0.6}`, "greedy", nil, 0},
		{"each key from the first that has it", sampling + "{do_sample: true, temperature: 0.6}\n", `{"top_k": 9}`, "temperature 0.6, top-k 9, top-p 0, min-p 0, seed 0", nil, 0},
		{"values without meaning", sampling + "{do_sample: true, temperature: -1, top_k: 2.5, top_p: 7}\n", `{"top_p": 0.5, "min_p": "x"}`, "temperature 1, top-k 0, top-p 0.5, min-p 0, seed 0", nil, 4},
		{"null", sampling + "{do_sample: true, temperature: null}\n", "", "temperature 1, top-k 0, top-p 0, min-p 0, seed 0", nil, 0},
		{"no map", sampling + "warm\n", `[1]`, "greedy", nil, 0},
	} {
		fsys := fakeWithText(nil)
		fsys["meta.yaml"] = file(string(fsys["meta.yaml"].Data) + tc.meta)
		if tc.gen != "" {
			fsys["generation_config.json"] = file(tc.gen)
		}
		r := openFake(t, fsys, &fakeBackend{}, Options{})
		rec := Recommended(r.Package())
		if got := rec.Config().String(); got != tc.want || len(rec.Problems) != tc.problems {
			t.Errorf("%s: got %s, problems %q, want %s", tc.name, got, rec.Problems, tc.want)
		}
		if tc.values != nil {
			var got []string
			for _, v := range rec.Values {
				got = append(got, v.String())
			}
			if !slices.Equal(got, tc.values) {
				t.Errorf("%s: values %q, want %q", tc.name, got, tc.values)
			}
		}
	}
}

func TestTemplateErrorHasItsLine(t *testing.T) {
	r := openFake(t, fakeWithText(map[string]string{"chat_template.jinja": "{# a #}\n\n{{ raise_exception('no') }}"}), &fakeBackend{}, Options{})
	_, err := r.Prompt(PromptInput{Text: "hi"})
	var e *diag.Error
	if !errors.As(err, &e) || e.Pos.File != "chat_template.jinja" || e.Pos.Line != 3 {
		t.Errorf("got %v, want an error at chat_template.jinja:3", err)
	}
}

// TestThinkingTokens: Gemma 4's marks are special tokens, which the text
// leaves out.
func TestThinkingTokens(t *testing.T) {
	var thought, answer string
	th := NewThinking("hi", func(s string, thinking bool) {
		if thinking {
			thought += s
		} else {
			answer += s
		}
	})
	th.Mark(true)
	for _, s := range []string{"thou", "ght\n", "hm\n"} {
		th.Push(s)
	}
	th.Mark(false)
	th.Push("Yes.\n")
	th.Flush()
	if thought != "hm" || answer != "Yes.\n" {
		t.Errorf("thought %q, answer %q", thought, answer)
	}

	fsys := fakeWithText(nil)
	data := strings.Replace(string(byteTokenizer("<|channel>", "<channel|>")), `"id":256`, `"id":21`, 1)
	fsys["tokenizer.json"] = file(strings.Replace(data, `"id":257`, `"id":20`, 1))
	r := openFake(t, fsys, &fakeBackend{}, Options{})
	for seed := range 200 {
		prompt := randomIDs(3, seed)
		said := fakeGreedy(prompt, 10)
		var want, got []bool
		for _, id := range said {
			if id == 20 || id == 21 {
				want = append(want, id == 21)
			}
		}
		if len(want) < 2 {
			continue
		}
		if _, err := r.Generate(t.Context(), Request{PromptIDs: prompt, MaxTokens: 10, OnThinking: func(open bool) { got = append(got, open) }}, nil); err != nil || !slices.Equal(got, want) {
			t.Errorf("got %v, %v, want %v", got, err, want)
		}
		return
	}
	t.Fatal("no prompt leads to the tokens")
}
