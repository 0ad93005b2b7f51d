package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/anepkg/anepkg/runner"
)

// runJSON is the result of run with what was chosen for it.
type runJSON struct {
	runner.Result
	PromptFormat   string          `json:"prompt_format"`
	Sampling       string          `json:"sampling"`
	Seed           uint64          `json:"seed"`
	SamplingValues []samplingValue `json:"sampling_values"`
	Logprobs       []logprobJSON   `json:"logprobs,omitempty"`
}

// logprobJSON is a token with its log probability.
type logprobJSON struct {
	ID      int           `json:"id"`
	Token   string        `json:"token"`
	Logprob float64       `json:"logprob"`
	Top     []logprobJSON `json:"top,omitempty"`
}

func (t *tool) runJSON(r *runner.Runner, res *runner.Result, req runner.Request, p *runner.Prompt, s sampling) runJSON {
	cfg := req.Sampler.Config()
	return runJSON{*res, p.Format, cfg.String(), cfg.Seed, s.json(), logprobsOf(r, res)}
}

// logprobsOf adds the vocabulary's strings, where there is a tokenizer.
func logprobsOf(r *runner.Runner, res *runner.Result) []logprobJSON {
	name := func(int) string { return "" }
	if tok, err := r.Tokenizer(); err == nil {
		name = func(id int) string {
			s, _ := tok.Token(id)
			return s
		}
	}
	out := make([]logprobJSON, 0, len(res.Logprobs))
	for _, lp := range res.Logprobs {
		entry := logprobJSON{ID: lp.ID, Token: name(lp.ID), Logprob: lp.Logprob.Logprob}
		for _, top := range lp.Top {
			entry.Top = append(entry.Top, logprobJSON{ID: top.ID, Token: name(top.ID), Logprob: top.Logprob})
		}
		out = append(out, entry)
	}
	return out
}

// printLogprobs prints a line for each token: its log probability, and the
// best ones at its place.
func (t *tool) printLogprobs(r *runner.Runner, res *runner.Result) {
	tb := table{right: map[int]bool{0: true, 2: true}}
	tb.head(t.style(t.stdoutTTY), "id", "token", "logprob", "best")
	for _, e := range logprobsOf(r, res) {
		var best []string
		for _, b := range e.Top {
			best = append(best, fmt.Sprintf("%d %s %s", b.ID, visible(b.Token), logprobText(b.Logprob)))
		}
		tb.row(fmt.Sprint(e.ID), visible(e.Token), logprobText(e.Logprob), strings.Join(best, "  "))
	}
	t.printf("\n")
	tb.write(t.stdout)
}

// answerWriter prints generated text as it comes. What a model thinks is
// dimmed on a terminal; with hide it is left out everywhere.
type answerWriter struct {
	t     *tool
	parts *runner.Thinking // nil: text is printed as it is
	hide  bool
	last  string
	began bool // thinking was printed, the answer not yet
}

func (t *tool) answerWriter(prompt string, hide bool) *answerWriter {
	w := &answerWriter{t: t, hide: hide}
	if hide || t.stdoutTTY {
		w.parts = runner.NewThinking(prompt, w.part)
	}
	return w
}

func (w *answerWriter) push(piece string) {
	if w.parts != nil {
		w.parts.Push(piece)
		return
	}
	w.last = piece
	w.t.say(piece)
}

// mark is a runner.Request's OnThinking.
func (w *answerWriter) mark(open bool) {
	if w.parts != nil {
		w.parts.Mark(open)
	}
}

func (w *answerWriter) part(text string, thinking bool) {
	switch {
	case thinking && w.hide:
		return
	case thinking:
		w.t.printf("%s", w.t.style(w.t.stdoutTTY).dim(visible(text)))
		w.began = true
	default:
		if w.began {
			w.t.printf("\n\n")
			w.began = false
		}
		w.t.say(text)
	}
	w.last = text
}

// end ends the text with a line end; always also after an empty one.
func (w *answerWriter) end(always bool) {
	if w.parts != nil {
		w.parts.Flush()
	}
	if !strings.HasSuffix(w.last, "\n") && (w.last != "" || always) {
		w.t.printf("\n")
	}
}

// generate runs one prompt and prints the result.
func (t *tool) generate(ctx context.Context, c *cli.Context, r *runner.Runner, in runner.PromptInput, req runner.Request, s sampling, bar *progress) error {
	p := &runner.Prompt{Format: "none"}
	if in.IDs == nil || len(in.IDs) > 0 {
		var err error
		if p, err = r.Prompt(in); err != nil {
			return err
		}
	}
	if p.Note != "" {
		t.notef("note: %s\n", p.Note)
	}
	if in.Extra != nil && !strings.HasPrefix(p.Format, "chat template") {
		t.notef("note: there is no chat template, so --template-arg and --tools have no effect\n")
	}
	t.debugf("prompt: %d tokens, %s\n", len(p.IDs), p.Format)
	if p.Text != "" {
		t.debugf("prompt text: %s\n", strconv.Quote(p.Text))
	}
	if r.IsEncoder() {
		bar.done()
		return t.embed(ctx, c, r, p)
	}
	req.PromptIDs = p.IDs
	if dir := c.String("load-state"); dir != "" {
		before, err := loadState(dir, r)
		if err != nil {
			return err
		}
		req.PromptIDs, req.Reuse, req.Continues = slices.Concat(before, p.IDs), true, true
	}
	show := t.answerWriter(p.Text, c.Bool("hide-thinking"))
	req.OnThinking = show.mark
	res, err := r.Generate(ctx, req, func(piece string) {
		bar.done()
		if !t.global.json {
			show.push(piece)
		}
	})
	bar.done()
	if !t.global.json && res != nil {
		show.end(err == nil)
	}
	if err != nil {
		return err
	}
	if dir := c.String("save-state"); dir != "" {
		if err := saveState(dir, r, slices.Concat(req.PromptIDs, res.GeneratedIDs)); err != nil {
			return err
		}
	}
	if c.IsSet("logits") {
		if err := writeLogits(c.String("logits"), res.Logits); err != nil {
			return err
		}
	}
	if t.global.json {
		t.writeJSON("anepkg.run/1", t.runJSON(r, res, req, p, s))
		return nil
	}
	if res.Text == "" && res.StopString == "" && len(res.GeneratedIDs) > 0 {
		t.printf("%s\n", joinIDs(res.GeneratedIDs))
	}
	if req.KeepLogprobs {
		t.printLogprobs(r, res)
	}
	t.notef("%s\n", t.style(t.stderrTTY).dim(summary(res)))
	if text := s.String(); text != "" {
		t.notef("%s\n", t.style(t.stderrTTY).dim(text))
	}
	return nil
}

// embed runs an encoder and prints its vector, a number a line.
func (t *tool) embed(ctx context.Context, c *cli.Context, r *runner.Runner, p *runner.Prompt) error {
	for _, f := range []string{"logits", "logprobs", "save-state", "load-state", "max-tokens"} {
		if c.IsSet(f) {
			return usagef("--%s: the package is an encoder, it gives an embedding and no text", f)
		}
	}
	e, err := r.EmbedResult(ctx, p.IDs)
	if err != nil {
		return err
	}
	if t.global.json {
		t.writeJSON("anepkg.run/1", e)
		return nil
	}
	for _, x := range e.Embedding {
		t.printf("%g\n", x)
	}
	t.notef("%s\n", t.style(t.stderrTTY).dim(fmt.Sprintf("embedding of %d numbers from %s in %s", len(e.Embedding), plural(len(p.IDs), "token"), seconds(e.Timings.Prefill))))
	return nil
}

// say prints generated text as it comes; on a terminal it cannot steer it.
func (t *tool) say(piece string) {
	if t.stdoutTTY {
		piece = visible(piece)
	}
	t.printf("%s", piece)
}

// summary tells in one line what a run took and why it ended.
func summary(res *runner.Result) string {
	tm := res.Timings
	s := fmt.Sprintf("prompt %s in %s", plural(tm.PrefillTokens, "token"), seconds(tm.Prefill))
	s += fmt.Sprintf(" · generated %d in %s", len(res.GeneratedIDs), seconds(tm.Decode))
	if tm.DecodeTokens > 0 && tm.Decode > 0 {
		s += fmt.Sprintf(" (%s tokens/s)", rate(float64(tm.DecodeTokens)/tm.Decode))
	}
	switch {
	case res.StopID != nil:
		s += fmt.Sprintf(" · stopped by id %d", *res.StopID)
	case res.StopString != "":
		s += fmt.Sprintf(" · stopped by %q", res.StopString)
	case res.FinishReason == runner.FinishContext:
		s += " · the context is full"
	case res.FinishReason == runner.FinishLength:
		s += " · reached --max-tokens"
	}
	return s
}

// seconds prints a duration with a fitting unit.
func seconds(s float64) string {
	switch {
	case s < 1:
		return fmt.Sprintf("%.0f ms", s*1000)
	case s < 60:
		return fmt.Sprintf("%.1f s", s)
	}
	whole := int(s + 0.5)
	return fmt.Sprintf("%d min %d s", whole/60, whole%60)
}

// rate prints tokens per second.
func rate(r float64) string {
	if r < 10 {
		return fmt.Sprintf("%.1f", r)
	}
	return thousands(int64(r + 0.5))
}

func logprobText(v float64) string {
	return strings.Replace(fmt.Sprintf("%.4f", v), "-0.0000", "0.0000", 1)
}
