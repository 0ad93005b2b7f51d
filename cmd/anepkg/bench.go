package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/coreml/backends"
	"github.com/anepkg/anepkg/inspect"
	"github.com/anepkg/anepkg/manifest"
	"github.com/anepkg/anepkg/runner"
)

const benchText = `  Loads a package and generates, --rounds times, and reports medians and ranges.
  The prompt is made up of token ids; the text means nothing. --profile adds the
  time spent in each type of op.`

type benchJSON struct {
	Rounds       int              `json:"rounds"`
	Threads      int              `json:"threads"`
	CPU          backends.CPUInfo `json:"cpu"`
	PromptTokens int              `json:"prompt_tokens"`
	MaxTokens    int              `json:"max_tokens"`
	Load         spread           `json:"load_s"`
	FirstToken   spread           `json:"first_token_s"`
	Prefill      spread           `json:"prefill_tok_s"`
	Decode       spread           `json:"decode_tok_s"`
	PeakRSS      int64            `json:"peak_rss_bytes"`
	WeightBytes  int64            `json:"weight_bytes"`
	Profile      []opTimeJSON     `json:"profile,omitempty"`
}

// spread is what several rounds gave.
type spread struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

type opTimeJSON struct {
	Op      string  `json:"op"`
	Calls   int     `json:"calls"`
	Seconds float64 `json:"s"`
	Share   float64 `json:"share"`
}

func spreadOf(x []float64) spread {
	s := slices.Sorted(slices.Values(x))
	if len(s) == 0 {
		return spread{}
	}
	n := len(s)
	return spread{(s[(n-1)/2] + s[n/2]) / 2, s[0], s[n-1]}
}

func (t *tool) benchCommand() *cli.Command {
	return &cli.Command{
		Name:        "bench",
		Usage:       "measure loading, prefill, decode and memory",
		ArgsUsage:   targetUsage,
		Description: benchText,
		Flags: append([]cli.Flag{
			&cli.IntFlag{Name: "prompt-tokens", Usage: "a prompt of `N` tokens; 0 = one full batch and one token more"},
			&cli.IntFlag{Name: "max-tokens", Aliases: []string{"n"}, Usage: "generate `N` tokens", Value: 16},
			&cli.IntFlag{Name: "rounds", Usage: "measure `N` times", Value: 3},
			&cli.BoolFlag{Name: "profile", Usage: "add the time of each type of op"},
		}, engineFlags()...),
		Action: func(c *cli.Context) error {
			backend, opts, err := t.engine(c)
			if err != nil {
				return err
			}
			for _, f := range []string{"max-tokens", "rounds"} {
				if c.Int(f) < 1 {
					return usagef("--%s %d: want 1 or more", f, c.Int(f))
				}
			}
			if c.Int("prompt-tokens") < 0 {
				return usagef("--prompt-tokens %d: want 0 or more", c.Int("prompt-tokens"))
			}
			return t.withPackage(c, func(ctx context.Context, pkg *manifest.Package) error {
				return t.bench(ctx, c, pkg, backend, opts)
			})
		},
	}
}

func (t *tool) bench(ctx context.Context, c *cli.Context, pkg *manifest.Package, backend coreml.Backend, opts runner.Options) error {
	out := benchJSON{Rounds: c.Int("rounds"), Threads: opts.Threads, CPU: backends.CPU(), MaxTokens: c.Int("max-tokens"), PromptTokens: c.Int("prompt-tokens")}
	if out.Threads == 0 {
		out.Threads = runtime.GOMAXPROCS(0)
	}
	rep, err := inspect.Inspect(ctx, pkg)
	if err != nil {
		return err
	}
	for _, p := range rep.Parts {
		out.WeightBytes += p.Weights.Bytes
	}
	if out.PromptTokens == 0 {
		out.PromptTokens = 2
		if b := rep.Package.BatchSize; b != nil {
			out.PromptTokens = *b + 1
		}
	}
	if c.Bool("profile") {
		opts.Profile = &coreml.Profile{}
	}
	var load, first, prefill, decode []float64
	for range out.Rounds {
		start := time.Now()
		r, err := runner.Open(ctx, pkg, backend, opts)
		if err != nil {
			return err
		}
		load = append(load, time.Since(start).Seconds())
		res, firstAt, err := benchRound(ctx, r, out.PromptTokens, out.MaxTokens)
		err = errors.Join(err, r.Close())
		if err != nil {
			return err
		}
		first = append(first, firstAt)
		prefill = append(prefill, perSecond(res.Timings.PrefillTokens, res.Timings.Prefill))
		if res.Timings.DecodeTokens > 0 {
			decode = append(decode, perSecond(res.Timings.DecodeTokens, res.Timings.Decode))
		}
	}
	out.Load, out.FirstToken, out.Prefill, out.Decode = spreadOf(load), spreadOf(first), spreadOf(prefill), spreadOf(decode)
	out.PeakRSS = peakRSS()
	if opts.Profile != nil {
		out.Profile = profileOf(opts.Profile)
	}
	if t.global.json {
		t.writeJSON("anepkg.bench/1", out)
		return nil
	}
	t.benchText(out)
	return nil
}

func perSecond(tokens int, seconds float64) float64 {
	if seconds <= 0 {
		return 0
	}
	return float64(tokens) / seconds
}

// benchRound generates once; ids go round the smaller vocabulary of 97 words.
func benchRound(ctx context.Context, r *runner.Runner, prompt, maxTokens int) (*runner.Result, float64, error) {
	ids := make([]int, prompt)
	for i := range ids {
		ids[i] = 1 + i*31%97
	}
	start := time.Now()
	res, err := r.Generate(ctx, runner.Request{PromptIDs: ids, MaxTokens: maxTokens, IgnoreEOS: true}, nil)
	if err != nil {
		return nil, 0, err
	}
	return res, time.Since(start).Seconds() - res.Timings.Decode, nil
}

func profileOf(p *coreml.Profile) []opTimeJSON {
	total := time.Duration(0)
	for _, o := range p.Ops() {
		total += o.Total
	}
	var out []opTimeJSON
	for _, o := range p.Ops() {
		out = append(out, opTimeJSON{o.Op, o.Calls, o.Total.Seconds(), o.Total.Seconds() / max(1e-9, total.Seconds())})
	}
	return out
}

func (t *tool) benchText(out benchJSON) {
	st := t.style(t.stdoutTTY)
	t.printf("%s, %s kernels, %s\n", out.CPU.Model, out.CPU.Kernels, plural(out.Threads, "thread"))
	t.printf("%s, prompt %s, generating %d\n\n", plural(out.Rounds, "round"), plural(out.PromptTokens, "token"), out.MaxTokens)
	tb := table{indent: "  ", right: map[int]bool{1: true, 2: true, 3: true}}
	tb.head(st, "", "median", "least", "most")
	for _, r := range []struct {
		name, format string
		s            spread
	}{
		{"load", "%.3f s", out.Load}, {"first token", "%.3f s", out.FirstToken},
		{"prefill", "%.1f tokens/s", out.Prefill}, {"decode", "%.1f tokens/s", out.Decode},
	} {
		tb.row(r.name, fmt.Sprintf(r.format, r.s.Median), fmt.Sprintf(r.format, r.s.Min), fmt.Sprintf(r.format, r.s.Max))
	}
	tb.write(t.stdout)
	t.printf("\nweights %s", inspect.Bytes(out.WeightBytes))
	if out.PeakRSS > 0 {
		t.printf(", peak memory %s", inspect.Bytes(out.PeakRSS))
	}
	t.printf("\n")
	if out.Profile == nil {
		return
	}
	t.printf("\n")
	tb = table{indent: "  ", right: map[int]bool{1: true, 2: true, 3: true}}
	tb.head(st, "op", "calls", "seconds", "share")
	for _, o := range out.Profile {
		tb.row(o.Op, thousands(int64(o.Calls)), fmt.Sprintf("%.3f", o.Seconds), fmt.Sprintf("%.1f %%", 100*o.Share))
	}
	tb.write(t.stdout)
}
