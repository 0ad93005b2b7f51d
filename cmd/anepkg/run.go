package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/manifest"
	"github.com/anepkg/anepkg/runner"
	"github.com/anepkg/anepkg/runner/sample"
)

const runText = `  The prompt is --prompt, --prompt-file, --prompt-ids, or standard input; on a
  terminal without any of them a chat begins. Text goes through the package's
  chat template unless --raw. The choice of tokens is greedy unless
  --temperature, --top-k, --top-p or --min-p asks for chance.`

// runFlags are the flags of run that are not of the engine.
func runFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "prompt", Aliases: []string{"p"}, Usage: "the prompt's `TEXT`"},
		&cli.StringFlag{Name: "prompt-file", Usage: "read the prompt from `FILE` (- is standard input)"},
		&cli.StringFlag{Name: "prompt-ids", Usage: "token `IDS` as the prompt: 1,2,3"},
		&cli.StringFlag{Name: "system", Usage: "a system message's `TEXT`"},
		tokenizerFlag(),
		&cli.BoolFlag{Name: "raw", Usage: "no chat template: the text as it is"},
		&cli.IntFlag{Name: "max-tokens", Aliases: []string{"n"}, Usage: "generate at most `N` tokens; 0 = to the context's end"},
		&cli.Float64Flag{Name: "temperature", Usage: "divide logits by `T`; 0 = greedy; 1 when only --top-k, --top-p or --min-p is given"},
		&cli.IntFlag{Name: "top-k", Usage: "choose among the `K` best; 0 = all"},
		&cli.Float64Flag{Name: "top-p", Usage: "choose among the fewest that reach probability `P`; 0 = all"},
		&cli.Float64Flag{Name: "min-p", Usage: "choose among those with `P` times the best's probability; 0 = all"},
		&cli.Float64Flag{Name: "repeat-penalty", Usage: "lower the logits of the latest tokens by factor `R`; 1 = off"},
		&cli.Uint64Flag{Name: "seed", Usage: "`SEED` of the chance; a random one is shown by --json and -v"},
		&cli.BoolFlag{Name: "greedy", Usage: "always take the best token"},
		&cli.StringSliceFlag{Name: "stop", Usage: "end before this `TEXT`; may be repeated"},
		&cli.BoolFlag{Name: "ignore-eos", Usage: "go on at the package's stop ids"},
		&cli.StringFlag{Name: "logits", Usage: "write the logits to `FILE` in .npy form: float32 [steps, vocabulary]"},
		&cli.StringFlag{Name: "save-state", Usage: "write the states to `DIR` afterwards, one .npy each"},
		&cli.StringFlag{Name: "load-state", Usage: "go on from the states in `DIR`, which --save-state wrote; a prompt is then optional and raw"},
		&cli.BoolFlag{Name: "shift", Usage: "go on when the context is full: drop the older half of the tokens"},
		&cli.BoolFlag{Name: "force", Usage: "run a package that contradicts itself"},
		&cli.BoolFlag{Name: "strict-context", Usage: "a full context is an error (status 6)"},
	}
}

// engineFlags are the flags of commands that run models.
func engineFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "backend", Usage: "`NAME` of the engine: auto, cpu or coreml", Value: "auto"},
		&cli.StringFlag{Name: "compute-units", Usage: "Core ML's `UNITS`: all, cpuAndNeuralEngine, cpuAndGPU or cpuOnly"},
		&cli.StringFlag{Name: "precision", Usage: "`HOW` the CPU engine rounds: fast, strict or ane", Value: "fast"},
		&cli.StringFlag{Name: "prefill", Usage: "`HOW` the prompt is fed: auto, batch or single", Value: "auto"},
		&cli.IntFlag{Name: "threads", Usage: "use `N` threads; 0 = one for each processor"},
	}
}

// engine reads the engine's flags.
func (t *tool) engine(c *cli.Context) (coreml.Backend, runner.Options, error) {
	opts, err := t.engineOptions(c)
	if err != nil {
		return nil, opts, err
	}
	b, err := t.backend(c.String("backend"))
	return b, opts, err
}

// engineOptions reads the engine's flags other than --backend.
func (t *tool) engineOptions(c *cli.Context) (runner.Options, error) {
	opts := runner.Options{
		Precision:    coreml.Precision(c.String("precision")),
		ComputeUnits: c.String("compute-units"),
		Threads:      c.Int("threads"),
		Prefill:      runner.PrefillMode(c.String("prefill")),
		Logger:       t.logger(),
	}
	for _, name := range []string{"compute-units", "precision", "prefill"} {
		if v := c.String(name); c.IsSet(name) && !contains(flagWords[name], v) {
			return opts, usagef("--%s %s: want %s", name, v, orList(flagWords[name])).WithHint("%s", didYouMean(v, flagWords[name], ""))
		}
	}
	if opts.Threads < 0 {
		return opts, usagef("--threads %d: want 0 or more", opts.Threads)
	}
	return opts, nil
}

// runJSON is the result of run with what was chosen for it.
type runJSON struct {
	runner.Result
	PromptFormat string `json:"prompt_format"`
	Sampling     string `json:"sampling"`
	Seed         uint64 `json:"seed"`
}

func (t *tool) runCommand() *cli.Command {
	return &cli.Command{
		Name:        "run",
		Usage:       "generate text with a package, or chat with it",
		ArgsUsage:   targetUsage,
		Description: runText,
		Flags:       append(runFlags(), engineFlags()...),
		Action: func(c *cli.Context) error {
			if _, err := oneTarget(c); err != nil {
				return err // before standard input is read
			}
			backend, opts, err := t.engine(c)
			if err != nil {
				return err
			}
			opts.StrictContext = c.Bool("strict-context")
			if opts.Tokenizer, err = readerOf(c); err != nil {
				return err
			}
			cfg, err := samplingOf(c)
			if err != nil {
				return err
			}
			in, chat, err := t.promptOf(c)
			if err != nil {
				return err
			}
			return t.withPackage(c, func(ctx context.Context, pkg *manifest.Package) error {
				if !c.Bool("force") {
					if err := preflight(ctx, pkg); err != nil {
						return err
					}
				}
				bar := t.progress(&opts)
				r, err := runner.Open(ctx, pkg, backend, opts)
				bar.done()
				if err != nil {
					return err
				}
				defer r.Close() //nolint:errcheck // only read from
				req, err := requestOf(c, cfg)
				if err != nil {
					return err
				}
				if chat {
					return t.chat(ctx, r, req, c.String("system"))
				}
				return t.generate(ctx, c, r, in, req, bar)
			})
		},
	}
}

// samplingOf reads the sampling flags.
func samplingOf(c *cli.Context) (sample.Config, error) {
	cfg := sample.Config{
		Temperature: c.Float64("temperature"), TopK: c.Int("top-k"), TopP: c.Float64("top-p"), MinP: c.Float64("min-p"),
		RepeatPenalty: c.Float64("repeat-penalty"), Seed: c.Uint64("seed"),
	}
	chance := c.IsSet("top-k") || c.IsSet("top-p") || c.IsSet("min-p")
	switch {
	case c.IsSet("repeat-penalty") && cfg.RepeatPenalty == 0:
		return cfg, usagef("--repeat-penalty 0: want a number above 0 (1 = off)")
	case c.Bool("shift") && c.Bool("strict-context"):
		return cfg, usagef("--shift and --strict-context exclude each other")
	case c.Bool("greedy") && cfg.Temperature > 0:
		return cfg, usagef("--greedy and --temperature %g contradict each other", cfg.Temperature)
	case c.Bool("greedy"):
		cfg.Temperature, cfg.TopK, cfg.TopP, cfg.MinP = 0, 0, 0, 0
	case chance && !c.IsSet("temperature"):
		cfg.Temperature = 1
	}
	if !c.IsSet("seed") && !cfg.Greedy() {
		cfg.Seed = uint64(rand.Uint32()) //nolint:gosec // chance for text, not for secrets
	}
	return cfg, cfg.Check()
}

func requestOf(c *cli.Context, cfg sample.Config) (runner.Request, error) {
	s, err := sample.New(cfg)
	return runner.Request{
		MaxTokens: c.Int("max-tokens"), Sampler: s, IgnoreEOS: c.Bool("ignore-eos"), StopStrings: c.StringSlice("stop"),
		KeepLogits: c.IsSet("logits"), Shift: c.Bool("shift"),
	}, err
}

// promptOf finds the prompt. chat reports that there is none and the user
// sits at a terminal.
func (t *tool) promptOf(c *cli.Context) (in runner.PromptInput, chat bool, err error) {
	in = runner.PromptInput{System: c.String("system"), Raw: c.Bool("raw") || c.IsSet("load-state")}
	given := 0
	for _, name := range []string{"prompt", "prompt-file", "prompt-ids"} {
		if c.IsSet(name) {
			given++
		}
	}
	switch {
	case given > 1:
		return in, false, usagef("--prompt, --prompt-file and --prompt-ids exclude each other")
	case in.System != "" && (in.Raw || c.IsSet("prompt-ids")):
		return in, false, usagef("--system needs the chat template, which --raw and --prompt-ids leave out")
	case c.IsSet("prompt"):
		in.Text = c.String("prompt")
	case c.IsSet("prompt-ids"):
		if in.IDs, err = parseIDs(c.String("prompt-ids")); err == nil && len(in.IDs) == 0 {
			err = usagef("--prompt-ids names no token")
		}
	case c.IsSet("prompt-file") && c.String("prompt-file") != "-":
		in.Text, err = readFileBounded(c.String("prompt-file"))
		in.Text = trimNewline(in.Text)
	case c.IsSet("load-state") && t.stdinTTY, c.IsSet("load-state") && given == 0:
		in.IDs = []int{} // go on where the saved conversation ended
	case t.stdinTTY && !c.IsSet("prompt-file"):
		switch {
		case t.global.json:
			return in, false, usagef("--json needs a prompt: a chat has no single result")
		case c.IsSet("logits") || in.Raw:
			return in, false, usagef("a chat takes neither --raw nor --logits; give a prompt")
		}
		return in, true, nil
	default:
		in.Text, err = readBounded(t.stdin, "standard input")
		in.Text = trimNewline(in.Text)
		if err == nil && in.Text == "" {
			err = usagef("the prompt on standard input is empty").WithHint("give one with --prompt, --prompt-file or --prompt-ids")
		}
	}
	return in, false, err
}

// trimNewline removes the line end that editors and echo put after a text.
func trimNewline(s string) string {
	return strings.TrimSuffix(strings.TrimSuffix(s, "\n"), "\r")
}

// generate runs one prompt and prints the result.
func (t *tool) generate(ctx context.Context, c *cli.Context, r *runner.Runner, in runner.PromptInput, req runner.Request, bar *progress) error {
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
	t.debugf("prompt: %d tokens, %s\n", len(p.IDs), p.Format)
	if r.IsEncoder() {
		bar.done()
		return t.embed(ctx, c, r, p)
	}
	t.debugf("sampling: %s\n", req.Sampler.Config())
	req.PromptIDs = p.IDs
	if dir := c.String("load-state"); dir != "" {
		before, err := loadState(dir, r)
		if err != nil {
			return err
		}
		req.PromptIDs, req.Reuse = slices.Concat(before, p.IDs), true
	}
	last := ""
	onText := func(piece string) {
		bar.done()
		if !t.global.json {
			last = piece
			t.say(piece)
		}
	}
	res, err := r.Generate(ctx, req, onText)
	bar.done()
	if !t.global.json && res != nil && !strings.HasSuffix(last, "\n") && (last != "" || err == nil) {
		t.printf("\n")
	}
	if err != nil {
		return err
	}
	if dir := c.String("save-state"); dir != "" {
		// What was generated last, or after a rollback, was not fed.
		all := append(slices.Clone(req.PromptIDs), res.GeneratedIDs...)
		if err := saveState(dir, r, all[min(len(all), r.Position()):]); err != nil {
			return err
		}
	}
	if c.IsSet("logits") {
		if err := writeLogits(c.String("logits"), res.Logits); err != nil {
			return err
		}
	}
	if t.global.json {
		cfg := req.Sampler.Config()
		t.writeJSON("anepkg.run/1", runJSON{*res, p.Format, cfg.String(), cfg.Seed})
		return nil
	}
	if res.Text == "" && len(res.GeneratedIDs) > 0 {
		t.printf("%s\n", joinIDs(res.GeneratedIDs))
	}
	t.notef("%s\n", t.style(t.stderrTTY).dim(summary(res)))
	return nil
}

// embed runs an encoder and prints its vector, a number a line.
func (t *tool) embed(ctx context.Context, c *cli.Context, r *runner.Runner, p *runner.Prompt) error {
	for _, f := range []string{"logits", "save-state", "load-state", "max-tokens"} {
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
