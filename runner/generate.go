package runner

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/runner/sample"
	"github.com/anepkg/anepkg/runner/tokenizer"
)

// Request asks for text. The zero value of every field but PromptIDs works.
type Request struct {
	PromptIDs []int
	// MaxTokens bounds the generated tokens; 0 = until the context ends.
	MaxTokens int
	// Sampler chooses tokens; nil = greedy.
	Sampler *sample.Sampler
	// StopIDs end generation in addition to the package's own. IgnoreEOS
	// leaves the package's own out; StopIDs still count.
	StopIDs   []int
	IgnoreEOS bool
	// StopStrings end generation when the text holds one; the text ends
	// before it. One that is a special token works as its id.
	StopStrings []string
	// KeepLogits fills Result.Logits; an error of class diag.Usage when the
	// head gives none.
	KeepLogits bool
	// KeepLogprobs fills Result.Logprobs, with the TopLogprobs best tokens of
	// each choice; an error of class diag.Usage when the head gives no logits.
	KeepLogprobs bool
	TopLogprobs  int
	// Reuse keeps the positions that PromptIDs share with what the state
	// holds, where the contract allows it; by default the state is emptied.
	Reuse bool
	// Stable is how many leading ids of PromptIDs a later prompt will begin
	// with, as far as is known; 0 = not known. Where the contract cannot go
	// back, a snapshot is kept there for Reuse.
	Stable int
	// Prefill overrides Options.Prefill; "" = as opened.
	Prefill PrefillMode
	// Shift goes on when the context is full: the state is emptied and the
	// later half of the tokens fed again, which every contract allows (the
	// package format's rule for dropping context).
	Shift bool
	// Continues says that PromptIDs go on with a conversation that was loaded:
	// with Shift they may be longer than the context.
	Continues bool
	// Raw keeps special tokens in the text.
	Raw bool
	// OnThinking, if not nil, is told when a special token, which the text
	// leaves out, opens or closes what the model thinks (Gemma 4).
	OnThinking func(open bool)
}

func (q Request) mode(o Options) PrefillMode {
	if q.Prefill != "" {
		return q.Prefill
	}
	return o.Prefill
}

// FinishReason says why generation ended.
type FinishReason string

// The reasons.
const (
	FinishStop    FinishReason = "stop"    // a stop id or a stop string
	FinishLength  FinishReason = "length"  // MaxTokens
	FinishContext FinishReason = "context" // no position is left to feed the last token at
)

// Timings are in seconds. Loading counts once per Runner. PrefillTokens were
// fed before the first choice; DecodeTokens are the tokens fed after it, one
// call each, choosing included. The last generated token is not fed.
type Timings struct {
	Load          float64 `json:"load_s"`
	PrefillTokens int     `json:"prefill_tokens"`
	Prefill       float64 `json:"prefill_s"`
	DecodeTokens  int     `json:"decode_tokens"`
	Decode        float64 `json:"decode_s"`
}

// Result is what Generate returns. GeneratedIDs leaves the stop id out; row
// i of Logits chose GeneratedIDs[i], and when a stop id was chosen its row
// stands last.
type Result struct {
	Backend string `json:"backend"`
	// BackendReason says why, when the backend was chosen and not given.
	BackendReason string       `json:"backend_reason,omitempty"`
	ComputeUnits  string       `json:"compute_units"`
	Contract      string       `json:"contract"`
	PromptIDs     []int        `json:"prompt_ids"`
	GeneratedIDs  []int        `json:"generated_ids"`
	Text          string       `json:"text"`
	FinishReason  FinishReason `json:"finish_reason"`
	Timings       Timings      `json:"timings"`
	StopID        *int         `json:"stop_id"`
	StopString    string       `json:"stop_string,omitempty"`
	Shifts        int          `json:"shifts,omitempty"` // how often the window was shifted
	Logits        [][]float32  `json:"-"`
	// Logprobs has an entry for each of GeneratedIDs and, when a stop id was
	// chosen, one for it at the end.
	Logprobs []TokenLogprob `json:"-"`
}

// TokenLogprob is a chosen token and the best ones at its place, by the
// model's own distribution: see sample.Logprobs.
type TokenLogprob struct {
	sample.Logprob
	Top []sample.Logprob // best first
}

// Generate feeds the prompt and generates until a stop, MaxTokens, or the
// context's end. onText, if not nil, gets the text as it comes, always whole
// UTF-8; the pieces joined are Result.Text. Without a tokenizer the text is
// empty.
//
// When generation fails or ctx is done half way, the Result so far is
// returned with the error (class diag.RunFailed, diag.Interrupted, or
// diag.Context under StrictContext). A prompt that is empty, has ids outside
// the vocabulary, or does not fit the context gives no Result.
func (r *Runner) Generate(ctx context.Context, req Request, onText func(string)) (*Result, error) {
	if err := r.checkRequest(req); err != nil {
		return nil, err
	}
	g := &generation{r: r, req: req, onText: onText, stops: map[int]bool{}}
	if g.req.Sampler == nil {
		g.req.Sampler, _ = sample.New(sample.Config{})
	}
	if err := g.prepare(); err != nil {
		return nil, err
	}
	err := g.run(ctx)
	g.finish()
	var e *diag.Error
	if errors.As(err, &e) && e.Code == diag.RunFailed && e.Hint == "" {
		e.Hint = "find the op with: anepkg trace " + r.pkg.Path + ", and the same prompt"
	}
	return g.res, err
}

func (r *Runner) checkRequest(req Request) error {
	if r.contract == nil {
		return diag.Errorf(diag.In(r.pkg.Path), diag.Usage, "the package is an encoder: it gives an embedding, not text")
	}
	if req.MaxTokens < 0 {
		return diag.Errorf(diag.Pos{}, diag.Usage, "max tokens is %d, want 0 (no limit) or more", req.MaxTokens)
	}
	if req.TopLogprobs < 0 {
		return diag.Errorf(diag.Pos{}, diag.Usage, "%d log probabilities of each token, want 0 or more", req.TopLogprobs)
	}
	if !r.HasLogits() {
		if req.KeepLogits || req.KeepLogprobs {
			return diag.Errorf(diag.In(r.pkg.Path), diag.Usage, "the head gives only the best token, so there are no logits to keep")
		}
		if req.Sampler != nil && !req.Sampler.Config().Plain() {
			return diag.Errorf(diag.In(r.pkg.Path), diag.Usage, "the head gives only the best token, so sampling is not possible (asked: %s)", req.Sampler.Config()).
				WithHint("use --greedy without penalties and bias")
		}
	}
	if err := r.checkBias(req.Sampler); err != nil {
		return err
	}
	if n := r.ContextLength(); req.Continues && req.Shift && len(req.PromptIDs) > n {
		return r.checkPrompt(req.PromptIDs[len(req.PromptIDs)-n:])
	}
	return r.checkPrompt(req.PromptIDs)
}

// checkBias refuses a bias of a token that the model cannot choose.
func (r *Runner) checkBias(s *sample.Sampler) error {
	if s == nil || r.VocabSize() == 0 {
		return nil
	}
	for _, id := range slices.Sorted(maps.Keys(s.Config().LogitBias)) {
		if id >= r.VocabSize() {
			return diag.Errorf(diag.In(r.pkg.Path), diag.Usage, "logit bias of token %d, want an id from 0 to %d", id, r.VocabSize()-1)
		}
	}
	return nil
}

func (r *Runner) checkPrompt(ids []int) error {
	if len(ids) == 0 {
		return diag.Errorf(diag.Pos{}, diag.Usage, "the prompt has no tokens")
	}
	if n := r.ContextLength(); len(ids) > n {
		return diag.Errorf(diag.In(r.pkg.Path), diag.Context, "the prompt has %d tokens, the context holds %d", len(ids), n).
			WithHint("shorten the prompt, or use a package with a longer context")
	}
	vocab := r.VocabSize()
	for i, id := range ids {
		if id < 0 || vocab > 0 && id >= vocab {
			return diag.Errorf(diag.Pos{}, diag.Usage, "prompt token %d is %d, want an id from 0 to %d", i, id, vocab-1)
		}
	}
	return nil
}

// generation is one run of Generate.
type generation struct {
	r      *Runner
	req    Request
	onText func(string)
	res    *Result
	stops  map[int]bool
	out    *textStream
	marks  map[int]bool // special tokens that open (true) and close thinking
	ids    []int        // prompt and generated, for a shift
}

func (g *generation) prepare() error {
	g.res = &Result{
		Backend: g.r.Backend(), BackendReason: g.r.BackendReason(), ComputeUnits: g.r.computeUnits(), Contract: g.r.Contract(),
		PromptIDs: append([]int{}, g.req.PromptIDs...), GeneratedIDs: []int{},
		Timings: Timings{Load: g.r.loadTime.Seconds()},
	}
	g.ids = append([]int{}, g.req.PromptIDs...)
	for _, id := range g.req.StopIDs {
		g.stops[id] = true
	}
	if !g.req.IgnoreEOS {
		for _, s := range g.r.StopSources() {
			g.stops[s.ID] = true
		}
	}
	tok, err := g.r.Tokenizer()
	if err != nil {
		if len(g.req.StopStrings) > 0 {
			return err
		}
		g.r.opts.Logger.Warn("no text: the tokenizer cannot be read", "error", err)
	}
	if tok != nil && !g.req.Raw {
		g.marks = marksOf(tok)
		// The text leaves special tokens out, so that a stop string which is
		// one would never be found.
		for _, st := range g.req.StopStrings {
			if id, ok := tok.ID(st); ok && tok.IsSpecial(id) {
				g.stops[id] = true
			}
		}
	}
	g.out = newTextStream(tok, !g.req.Raw, g.req.StopStrings, g.emit)
	return nil
}

// marksOf finds the special tokens that enclose thinking.
func marksOf(tok tokenizer.Tokenizer) map[int]bool {
	marks := map[int]bool{}
	for name, open := range thinkTokens {
		if id, ok := tok.ID(name); ok && tok.IsSpecial(id) {
			marks[id] = open
		}
	}
	return marks
}

func (g *generation) emit(s string) {
	g.res.Text += s
	if g.onText != nil {
		g.onText(s)
	}
}

func (g *generation) run(ctx context.Context) error {
	start := time.Now()
	feed := feeding{ids: g.req.PromptIDs, mode: g.req.mode(g.r.opts), reuse: g.req.Reuse, stable: g.req.Stable}
	if len(feed.ids) > g.r.ContextLength() { // of a conversation that goes on with Shift
		feed.ids, feed.reuse, feed.stable = g.later(), false, 0
		g.res.Shifts++
	}
	sc, fed, err := g.r.seq.prompt(ctx, feed, func(n, total int) {
		g.r.progress(Event{Phase: Prefilling, Done: n, Total: total})
	})
	g.res.Timings.PrefillTokens, g.res.Timings.Prefill = fed, time.Since(start).Seconds()
	if err != nil {
		return err
	}
	start = time.Now()
	defer func() { g.res.Timings.Decode = time.Since(start).Seconds() }()
	for {
		id, err := g.choose(sc)
		if err != nil {
			return err
		}
		if g.take(id) {
			return nil
		}
		if g.r.seq.full() && g.req.Shift {
			if sc, err = g.shift(ctx); err != nil {
				return err
			}
			continue
		}
		if g.r.seq.full() {
			g.res.FinishReason = FinishContext
			if g.r.opts.StrictContext {
				return diag.Errorf(diag.In(g.r.pkg.Path), diag.Context, "the context of %d positions is full after %d prompt and %d generated tokens",
					g.r.ContextLength(), len(g.req.PromptIDs), len(g.res.GeneratedIDs))
			}
			return nil
		}
		if sc, err = g.r.seq.next(ctx, id); err != nil {
			return err
		}
		g.res.Timings.DecodeTokens++
	}
}

// shift feeds the later half of a full context again, from an empty state.
func (g *generation) shift(ctx context.Context) (Scores, error) {
	sc, _, err := g.r.seq.prompt(ctx, feeding{ids: g.later(), mode: g.req.mode(g.r.opts)}, nil)
	g.res.Shifts++
	return sc, err
}

// later is the part of the tokens that a shift keeps.
func (g *generation) later() []int { return g.ids[len(g.ids)-max(1, g.r.ContextLength()/2):] }

func (g *generation) choose(sc Scores) (int, error) {
	if g.req.KeepLogits {
		g.res.Logits = append(g.res.Logits, append([]float32{}, sc.Logits...))
	}
	if sc.Logits == nil {
		return sc.Token, nil
	}
	id, err := g.req.Sampler.Next(sc.Logits, g.req.PromptIDs, g.res.GeneratedIDs)
	if err != nil || !g.req.KeepLogprobs {
		return id, err
	}
	of, top, err := sample.Logprobs(sc.Logits, g.req.TopLogprobs, id)
	if err != nil {
		return 0, err
	}
	g.res.Logprobs = append(g.res.Logprobs, TokenLogprob{sample.Logprob{ID: id, Logprob: of[0]}, top})
	return id, nil
}

// take adds a token and reports whether generation ends with it.
func (g *generation) take(id int) bool {
	if g.stops[id] {
		g.res.FinishReason, g.res.StopID = FinishStop, &id
		return true
	}
	if open, mark := g.marks[id]; mark && g.req.OnThinking != nil {
		g.req.OnThinking(open)
	}
	g.ids = append(g.ids, id)
	g.res.GeneratedIDs = append(g.res.GeneratedIDs, id)
	if found := g.out.push(id); found != "" {
		g.res.FinishReason, g.res.StopString = FinishStop, found
		return true
	}
	if g.req.MaxTokens > 0 && len(g.res.GeneratedIDs) >= g.req.MaxTokens {
		g.res.FinishReason = FinishLength
		return true
	}
	return false
}

func (g *generation) finish() {
	if found := g.out.flush(); found != "" && g.res.StopString == "" {
		g.res.FinishReason, g.res.StopString = FinishStop, found
	}
}

// computeUnits is what the run used: the CPU engine has one answer.
func (r *Runner) computeUnits() string {
	switch {
	case r.backend.Name() == "cpu":
		return "cpuOnly"
	case r.opts.ComputeUnits == "":
		return "all"
	}
	return r.opts.ComputeUnits
}
