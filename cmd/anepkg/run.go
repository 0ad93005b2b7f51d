package main

import (
	"context"
	"runtime"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/manifest"
	"github.com/anepkg/anepkg/runner"
	"github.com/anepkg/anepkg/runner/sample"
)

const runText = `  The prompt is --prompt, --prompt-file, --prompt-ids, or standard input; on a
  terminal without any of them a chat begins. Text goes through the package's
  chat template unless --raw. Tokens are chosen as the package recommends
  (recommended_sampling in meta.yaml, then generation_config.json) where no flag
  says otherwise; --greedy always takes the best. A package that recommends
  nothing runs greedily, and so do --prompt-ids, --logits and
  the flags for states.`

// runFlags are the flags of run that are not of the engine.
func runFlags() []cli.Flag {
	return append([]cli.Flag{
		&cli.StringFlag{Name: "prompt", Aliases: []string{"p"}, Usage: "the prompt's `TEXT`"},
		&cli.StringFlag{Name: "prompt-file", Usage: "read the prompt from `FILE` (- is standard input)"},
		&cli.StringFlag{Name: "prompt-ids", Usage: "token `IDS` as the prompt: 1,2,3"},
		&cli.StringFlag{Name: "system", Usage: "a system message's `TEXT`"},
		tokenizerFlag(),
		&cli.BoolFlag{Name: "raw", Usage: "no chat template: the text as it is"},
		templateArgFlag(),
		&cli.StringFlag{Name: "tools", Usage: "tools for the chat template: `FILE` with a JSON list"},
		&cli.BoolFlag{Name: "batch", Usage: "every line of standard input, or of --prompt-file, is a prompt; one JSON object a line"},
		&cli.IntFlag{Name: "max-tokens", Aliases: []string{"n"}, Usage: "generate at most `N` tokens; 0 = to the context's end"},
		&cli.StringSliceFlag{Name: "stop", Usage: "end before this `TEXT`; may be repeated"},
		&cli.BoolFlag{Name: "ignore-eos", Usage: "go on at the package's stop ids"},
		&cli.BoolFlag{Name: "hide-thinking", Usage: "leave out what stands between <think> and </think>"},
		&cli.IntFlag{Name: "logprobs", Usage: "show each token's log probability and those of the `N` best"},
		&cli.StringFlag{Name: "logits", Usage: "write the logits to `FILE` in .npy form: float32 [steps, vocabulary]"},
		&cli.StringFlag{Name: "save-state", Usage: "write the states to `DIR` afterwards, one .npy each"},
		&cli.StringFlag{Name: "load-state", Usage: "go on from the states in `DIR`, which --save-state wrote; a prompt is then optional and raw"},
		&cli.BoolFlag{Name: "shift", Usage: "go on when the context is full: drop the older half of the tokens"},
		&cli.BoolFlag{Name: "force", Usage: "run a package that contradicts itself"},
		&cli.BoolFlag{Name: "strict-context", Usage: "a full context is an error (status 6)"},
	}, samplingFlags()...)
}

func backendFlag() cli.Flag {
	return &cli.StringFlag{Name: "backend", Usage: "`NAME` of the engine: auto, cpu or coreml", Value: "auto"}
}

func unitsFlag() cli.Flag {
	return &cli.StringFlag{Name: "compute-units", Usage: "Core ML's `UNITS`: all, cpuAndNeuralEngine, cpuAndGPU or cpuOnly"}
}

// engineFlags are the flags of commands that run models.
func engineFlags() []cli.Flag {
	return []cli.Flag{
		backendFlag(), unitsFlag(),
		&cli.BoolFlag{Name: "isolate", Usage: "load in a second process first, so that its end is reported and not shared"},
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
	if err == nil && c.Bool("isolate") && c.Command.Name != "validate" {
		b, err = t.isolated(c, b)
	}
	return b, opts, err
}

// maxThreads is far above what any machine gains from.
const maxThreads = 1024

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
	if opts.Threads > maxThreads {
		return opts, usagef("--threads %d: want at most %d", opts.Threads, maxThreads).WithHint("more threads than processors are no faster; this machine has %d", runtime.NumCPU())
	}
	if opts.Threads < 0 {
		return opts, usagef("--threads %d: want 0 or more", opts.Threads)
	}
	return opts, nil
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
			if err := samplingOf(c); err != nil {
				return err
			}
			if err := runUsage(c); err != nil {
				return err
			}
			if dir := c.String("save-state"); dir != "" {
				if err := mayHoldState(dir); err != nil {
					return err
				}
			}
			if err := present(c); err != nil {
				return err
			}
			in, chat, err := t.promptOf(c)
			if err != nil {
				return err
			}
			return t.withPackage(c, func(ctx context.Context, pkg *manifest.Package) error {
				if !c.Bool("force") {
					if err := t.preflight(ctx, pkg); err != nil {
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
				s, err := t.resolveSampling(c, r)
				if err != nil {
					return err
				}
				req, err := requestOf(c, s)
				if err != nil {
					return err
				}
				switch {
				case c.Bool("batch"):
					return t.batch(ctx, c, r, in, req, s)
				case chat:
					return t.chat(ctx, c, r, req, in, s, bar)
				}
				return t.generate(ctx, c, r, in, req, s, bar)
			})
		},
	}
}

// runUsage refuses flags that exclude each other.
func runUsage(c *cli.Context) error {
	if c.Bool("shift") && c.Bool("strict-context") {
		return usagef("--shift and --strict-context exclude each other")
	}
	if c.Int("logprobs") < 0 {
		return usagef("--logprobs %d: want 0 or more", c.Int("logprobs"))
	}
	if c.Bool("batch") {
		for _, f := range []string{"prompt", "prompt-ids", "logits", "save-state", "load-state", "hide-thinking"} {
			if c.IsSet(f) {
				return usagef("--batch and --%s exclude each other", f)
			}
		}
	}
	for _, f := range []string{"template-arg", "tools"} {
		if c.IsSet(f) && (c.Bool("raw") || c.IsSet("prompt-ids")) {
			return usagef("--%s is for the chat template, which --raw and --prompt-ids leave out", f)
		}
	}
	return nil
}

func requestOf(c *cli.Context, s sampling) (runner.Request, error) {
	sampler, err := sample.New(s.cfg)
	return runner.Request{
		MaxTokens: c.Int("max-tokens"), Sampler: sampler, IgnoreEOS: c.Bool("ignore-eos"), StopStrings: c.StringSlice("stop"),
		KeepLogits: c.IsSet("logits"), KeepLogprobs: c.IsSet("logprobs"), TopLogprobs: c.Int("logprobs"), Shift: c.Bool("shift"),
	}, err
}

// promptOf finds the prompt. chat reports that there is none and the user
// sits at a terminal.
func (t *tool) promptOf(c *cli.Context) (in runner.PromptInput, chat bool, err error) {
	in = runner.PromptInput{System: c.String("system"), Raw: c.Bool("raw") || c.IsSet("load-state")}
	if in.Extra, err = templateArgs(c); err != nil {
		return in, false, err
	}
	if c.Bool("batch") {
		return in, false, nil
	}
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
		case in.Raw:
			return in, false, usagef("a chat goes through the chat template; give a prompt with --raw")
		}
		for _, f := range []string{"logits", "logprobs", "save-state"} {
			if c.IsSet(f) {
				return in, false, usagef("--%s is of one run; give a prompt with it", f)
			}
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
