package main

import (
	"context"

	"github.com/urfave/cli/v2"

	"github.com/anepkg/anepkg/coreml/backends"
	"github.com/anepkg/anepkg/inspect"
	"github.com/anepkg/anepkg/manifest"
	"github.com/anepkg/anepkg/runner"
)

const demoText = `  Runs a package that is part of this program: a trained toy of 0.7 million
  weights. It needs no network and no files. --extract writes the package into
  a folder, for the other commands.`

type extractJSON struct {
	Path  string   `json:"path"`
	Files []string `json:"files"` // written; none when all were there
}

func (t *tool) demoCommand() *cli.Command {
	return &cli.Command{
		Name:        "demo",
		Usage:       "run the embedded demo package",
		Description: demoText,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "extract", Usage: "write the package into the folder `DIR` instead"},
		},
		Action: func(c *cli.Context) error {
			if c.NArg() > 0 {
				return usagef("demo takes no arguments, got %q", c.Args().First())
			}
			if c.IsSet("extract") {
				return t.extractDemo(c.String("extract"))
			}
			return t.runDemo(c.Context)
		},
	}
}

func (t *tool) extractDemo(dir string) error {
	if dir == "" {
		return usagef("--extract needs the name of a folder")
	}
	written, err := extract(demoPackage(), dir)
	if err != nil {
		return err
	}
	switch {
	case t.global.json:
		t.writeJSON("anepkg.demo/1", extractJSON{dir, written})
	case t.global.quiet:
	case len(written) == 0:
		t.printf("%s holds the demo package already\n", dir)
	default:
		t.printf("wrote %s into %s; try\n", plural(len(written), "file"), dir)
		for _, next := range []string{"inspect", "validate", "states", "layers"} {
			t.printf("  anepkg %s %s\n", next, shellQuote(dir))
		}
	}
	return nil
}

// demoNote is what a user must know about the model.
const demoNote = "The model is a toy of 0.7 million weights, trained on made-up stories and on questions about this field. It drifts on everything else."

// demoRuns are what the demo does: a story that the model goes on with, and
// a question that it answers.
var demoRuns = []struct {
	kind, prompt string
	raw          bool
}{
	{"story", "Once there was a little robot", true},
	{"chat", "What is a KV cache?", false},
}

type demoJSON struct {
	Package inspect.PackageInfo `json:"package"`
	Parts   []demoPartJSON      `json:"parts"`
	States  []inspect.StateInfo `json:"states"`
	Runs    []demoRunJSON       `json:"runs"`
	Note    string              `json:"note"`
	Next    []string            `json:"next"`
}

type demoPartJSON struct {
	Role        string   `json:"role"`
	Path        string   `json:"path"`
	Functions   []string `json:"functions"`
	WeightBytes int64    `json:"weight_bytes"`
	Weights     int      `json:"weights"`
}

type demoRunJSON struct {
	Kind   string `json:"kind"`
	Prompt string `json:"prompt"`
	runner.Result
}

// demoNext are the commands to try after the demo.
var demoNext = []string{
	"anepkg demo --extract demo",
	"anepkg inspect demo",
	"anepkg validate demo",
	"anepkg layers demo",
	"anepkg run demo --prompt 'What is a Git LFS pointer?'",
	"anepkg run demo",
}

// runDemo opens the embedded package and runs it.
func (t *tool) runDemo(ctx context.Context) error {
	tg := &target{fsys: demoPackage(), path: "demo"}
	return t.openPackage(ctx, tg, func(pkg *manifest.Package) error {
		out, err := describeDemo(ctx, pkg)
		if err != nil {
			return err
		}
		backend, err := t.backend(backends.Auto)
		if err != nil {
			return err
		}
		opts := runner.Options{Logger: t.logger()}
		bar := t.progress(&opts)
		r, err := runner.Open(ctx, pkg, backend, opts)
		bar.done()
		if err != nil {
			return err
		}
		defer r.Close() //nolint:errcheck // only read from
		t.demoHead(out, r)
		for _, d := range demoRuns {
			res, err := t.demoRun(ctx, r, d.kind, runner.PromptInput{Text: d.prompt, Raw: d.raw})
			if err != nil {
				return err
			}
			out.Runs = append(out.Runs, demoRunJSON{d.kind, d.prompt, *res})
		}
		if t.global.json {
			t.writeJSON("anepkg.demo/1", out)
			return nil
		}
		t.demoTail(out)
		return nil
	})
}

// describeDemo collects what the demo shows about its package.
func describeDemo(ctx context.Context, pkg *manifest.Package) (*demoJSON, error) {
	report, err := inspect.Inspect(ctx, pkg)
	if err != nil {
		return nil, err
	}
	states, err := inspect.States(ctx, pkg)
	if err != nil {
		return nil, err
	}
	out := &demoJSON{Package: report.Package, States: states.States, Note: demoNote, Next: demoNext}
	for _, p := range report.Parts {
		part := demoPartJSON{Role: p.Role, Path: p.Path, WeightBytes: p.Weights.Bytes}
		for _, f := range p.Functions {
			part.Functions = append(part.Functions, f.Name)
		}
		for _, s := range p.Weights.Schemes {
			part.Weights += int(s.Elements)
		}
		out.Parts = append(out.Parts, part)
	}
	return out, nil
}
