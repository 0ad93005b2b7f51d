package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/coreml/tensor"
	"github.com/anepkg/anepkg/manifest"
	"github.com/anepkg/anepkg/runner"
	"github.com/anepkg/anepkg/runner/optrace"
)

const traceText = `  Runs a package on a prompt, or one model on the --input values of predict, and
  reports the range of every result, and the first op that makes NaN, infinity
  or an fp16 overflow out of sound operands. With --against the run is repeated
  in another precision and the first op where the two part is named. The exit
  status is 1 when there is a first trouble or a parting.`

type traceJSON struct {
	Ops   []optrace.Stats `json:"ops"`
	First *optrace.First  `json:"first"`
	// Parting is only there with --against.
	Against string           `json:"against,omitempty"`
	Parting *optrace.Parting `json:"parting,omitempty"`
}

func (t *tool) traceCommand() *cli.Command {
	return &cli.Command{
		Name:        "trace",
		Usage:       "watch a run op by op: ranges, NaN, infinities, overflows",
		ArgsUsage:   targetUsage,
		Description: traceText,
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "prompt", Aliases: []string{"p"}, Usage: "the prompt's `TEXT`"},
			&cli.StringFlag{Name: "prompt-ids", Usage: "token `IDS` as the prompt: 1,2,3; without a prompt one token, id 0"},
			&cli.BoolFlag{Name: "raw", Usage: "no chat template: the text as it is"},
			&cli.IntFlag{Name: "max-tokens", Aliases: []string{"n"}, Usage: "generate `N` tokens", Value: 1},
			&cli.StringFlag{Name: "part", Usage: "one `PART` alone, fed by --input: a path, a role, or the number of a chunk"},
			&cli.StringFlag{Name: "function", Usage: "the part's function `NAME`; the default one without"},
			&cli.StringSliceFlag{Name: "input", Usage: "`NAME=VALUES` of an input of one part; once for each"},
			&cli.StringFlag{Name: "state-in", Usage: "read the part's states from `DIR`"},
			&cli.StringFlag{Name: "against", Usage: "repeat in `PRECISION` (fast, strict or ane) and name the op where the runs part"},
			&cli.Float64Flag{Name: "tolerance", Usage: "what --against allows, as a `PART` of a result's largest element", Value: 0.01},
			&cli.StringSliceFlag{Name: "dump", Usage: "write the result `NAME` to NAME.npy, or to NAME=FILE"},
		}, engineFlags()...),
		Action: func(c *cli.Context) error {
			backend, opts, err := t.engine(c)
			if err != nil {
				return err
			}
			against := c.String("against")
			if against != "" && !contains(flagWords["precision"], against) {
				return usagef("--against %s: want %s", against, orList(flagWords["precision"]))
			}
			return t.withPackage(c, func(ctx context.Context, pkg *manifest.Package) error {
				once := func(o coreml.Observer, p coreml.Precision) error {
					opts := opts
					opts.Observer = o
					if p != "" {
						opts.Precision = p
					}
					if pkg.Kind == manifest.SingleModel || c.IsSet("part") || c.IsSet("input") {
						return t.traceModel(ctx, c, pkg, backend, opts)
					}
					return t.tracePackage(ctx, c, pkg, backend, opts)
				}
				return t.trace(c, once, coreml.Precision(against))
			})
		},
	}
}

// trace runs once or twice and prints what was seen.
func (t *tool) trace(c *cli.Context, once func(coreml.Observer, coreml.Precision) error, against coreml.Precision) error {
	tr := optrace.New()
	files := map[string]string{}
	tr.Keep = map[string]bool{}
	for _, spec := range c.StringSlice("dump") {
		name, file, ok := strings.Cut(spec, "=")
		if !ok {
			file = fileName(name) + ".npy"
		}
		files[name], tr.Keep[name] = file, true
	}
	var rec optrace.Recorder
	observe := tr.Observe
	if against != "" {
		observe = func(ev coreml.OpEvent) error {
			if err := tr.Observe(ev); err != nil {
				return err
			}
			return rec.Observe(ev)
		}
	}
	failed := once(observe, "")
	if failed != nil && (diag.CodeOf(failed) != diag.RunFailed || len(tr.Ops()) == 0) {
		return failed
	}
	if failed != nil { // a NaN that reached the logits is what a trace is for
		t.notef("the run ended early: %v\n", failed)
	}
	out := traceJSON{Ops: tr.Ops(), First: tr.First(), Against: string(against)}
	for name, file := range files {
		v := tr.Kept(name)
		if v == nil {
			return usagef("--dump %s: no executed op has this result", name)
		}
		if err := replaceFile(file, func(f *os.File) error { return tensor.WriteNPY(f, v) }); err != nil {
			return err
		}
	}
	if against != "" && failed == nil {
		d := rec.Against(c.Float64("tolerance"))
		if err := once(d.Observe, against); err != nil {
			return err
		}
		out.Parting = d.Parting()
	}
	if t.global.json {
		t.writeJSON("anepkg.trace/1", out)
	} else {
		t.traceText(out)
	}
	if out.First != nil || out.Parting != nil {
		return errFindings
	}
	return failed
}

// tracePackage generates with a package.
func (t *tool) tracePackage(ctx context.Context, c *cli.Context, pkg *manifest.Package, backend coreml.Backend, opts runner.Options) error {
	bar := t.progress(&opts)
	r, err := runner.Open(ctx, pkg, backend, opts)
	bar.done()
	if err != nil {
		return err
	}
	defer r.Close() //nolint:errcheck // only read from
	req := runner.Request{MaxTokens: c.Int("max-tokens")}
	if req.PromptIDs, err = shortPrompt(c, r); err != nil {
		return err
	}
	_, err = r.Generate(ctx, req, nil)
	return err
}

// traceModel predicts once with one model.
func (t *tool) traceModel(ctx context.Context, c *cli.Context, pkg *manifest.Package, backend coreml.Backend, opts runner.Options) error {
	_, m, err := openPart(ctx, pkg, c.String("part"))
	if err != nil {
		return err
	}
	if m.Function(c.String("function")) == nil {
		_, err := onlyFunction(m, c.String("function"))
		return err
	}
	s, err := backend.Load(ctx, m, c.String("function"), coreml.LoadOptions{
		ComputeUnits: opts.ComputeUnits, Precision: opts.Precision, Threads: opts.Threads, Logger: opts.Logger, Observer: opts.Observer,
	})
	if err != nil {
		return err
	}
	defer s.Close() //nolint:errcheck // only read from
	inputs, err := readInputs(s.Function(), c.StringSlice("input"))
	if err != nil {
		return err
	}
	state, err := readStates(backend, s.Function(), c.String("state-in"))
	if err != nil {
		return err
	}
	_, err = s.Predict(ctx, inputs, state)
	return err
}

func (t *tool) traceText(out traceJSON) {
	st := t.style(t.stdoutTTY)
	tb := table{right: map[int]bool{4: true, 5: true, 6: true}}
	file := ""
	for _, o := range out.Ops {
		if o.File != file {
			tb.write(t.stdout)
			if file != "" {
				t.printf("\n")
			}
			file = o.File
			t.printf("%s\n", st.bold(file))
			tb = table{indent: "  ", right: map[int]bool{4: true, 5: true, 6: true}}
			tb.head(st, "line", "op", "result", "shape", "min", "max", "mean", "")
		}
		var odd []string
		for _, e := range []struct {
			n    int
			what string
		}{{o.NaN, "NaN"}, {o.Inf, "infinite"}, {o.Subnormal, "subnormal"}} {
			if e.n > 0 {
				odd = append(odd, fmt.Sprintf("%s %s", thousands(int64(e.n)), e.what))
			}
		}
		tb.row(fmt.Sprint(o.Line), o.Op, o.Name, tensor.ShapeString(o.Shape), fmt.Sprintf("%.4g", o.Min), fmt.Sprintf("%.4g", o.Max), fmt.Sprintf("%.4g", o.Mean), strings.Join(odd, ", "))
	}
	tb.write(t.stdout)
	if f := out.First; f != nil {
		t.printf("\n%s %s of %q makes the first %s, at %s\n", st.red("first trouble"), f.Op, f.Name, kindText(f.Kind), diag.Pos{File: f.File, Line: f.Line})
	} else {
		t.printf("\nno op makes NaN, infinity or an overflow\n")
	}
	switch p := out.Parting; {
	case p != nil:
		t.printf("%s from %s at %s of %q, %s: element %d is %.6g, there %.6g\n", st.red("parts"), out.Against, p.Op, p.Name, diag.Pos{File: p.File, Line: p.Line}, p.Index, p.Want, p.Got)
	case out.Against != "":
		t.printf("the same in precision %s, within the tolerance\n", out.Against)
	}
}

func kindText(k optrace.Kind) string {
	switch k {
	case optrace.NaN:
		return "NaN"
	case optrace.Overflow:
		return "fp16 overflow"
	}
	return "infinity"
}
