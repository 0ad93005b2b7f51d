package main

import (
	"context"
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"github.com/anepkg/anepkg/coreml/tensor"
	"github.com/anepkg/anepkg/inspect"
	"github.com/anepkg/anepkg/manifest"
	"github.com/anepkg/anepkg/runner"
)

// report is what the describing commands print.
type report interface {
	WriteText(w io.Writer, color bool) error
}

const inspectText = `  Shows the parts, functions, inputs, outputs, states and weights of a package,
  its tokenizer and files, and what the known runtimes would read out of it.
  The numbers come from the programs; weights are not needed.`

const statesText = `  Lists the state objects that a runtime has to make, with their sizes, the
  layers that write them, and the functions that declare them.`

const layersText = `  Lists the layers in each chunk: their kind, their slot in the KV cache, the
  layer whose cache they share, and how their weights are stored.`

func (t *tool) inspectCommand() *cli.Command {
	cmd := t.describing("inspect", "show what a package is", inspectText, "anepkg.inspect/1",
		func(ctx context.Context, pkg *manifest.Package) (report, error) {
			r, err := inspect.Inspect(ctx, pkg)
			if err != nil {
				return nil, err
			}
			return withSampling(r, pkg), nil
		})
	all := cmd.Action
	cmd.Flags = append([]cli.Flag{
		&cli.BoolFlag{Name: "memory", Usage: "estimate instead what it takes at run time, with the formulas"},
		&cli.IntSliceFlag{Name: "context", Usage: "a context length in `TOKENS` for --memory, besides the package's own"},
	}, planFlags()...)
	cmd.Action = func(c *cli.Context) error {
		switch {
		case c.Bool("compute-plan") && c.Bool("memory"):
			return usagef("--compute-plan and --memory exclude each other")
		case c.Bool("compute-plan"):
			if c.IsSet("context") {
				return usagef("--context goes with --memory")
			}
			return t.computePlan(c)
		case c.IsSet("compute-units") || c.IsSet("min-residency"):
			return usagef("--compute-units and --min-residency go with --compute-plan")
		}
		if !c.Bool("memory") {
			if c.IsSet("context") {
				return usagef("--context goes with --memory")
			}
			return all(c)
		}
		for _, n := range c.IntSlice("context") {
			if n < 1 {
				return usagef("--context: got %d, want a number of tokens above 0", n)
			}
		}
		return t.withPackage(c, func(ctx context.Context, pkg *manifest.Package) error {
			r, err := inspect.Memory(ctx, pkg, c.IntSlice("context")...)
			if err != nil {
				return err
			}
			if t.global.json {
				t.writeJSON("anepkg.memory/1", r)
				return nil
			}
			return r.WriteText(t.stdout, t.style(t.stdoutTTY).on)
		})
	}
	return cmd
}

func (t *tool) statesCommand() *cli.Command {
	cmd := t.describing("states", "list the states of a package", statesText, "anepkg.states/1",
		func(ctx context.Context, pkg *manifest.Package) (report, error) { return inspect.States(ctx, pkg) })
	list := cmd.Action
	cmd.Flags = append([]cli.Flag{
		&cli.BoolFlag{Name: "values", Usage: "run a prompt first and show what the states then hold"},
		&cli.StringFlag{Name: "prompt", Aliases: []string{"p"}, Usage: "the `TEXT` for --values"},
		&cli.StringFlag{Name: "prompt-ids", Usage: "token `IDS` for --values: 1,2,3; without a prompt one token, id 0"},
		&cli.BoolFlag{Name: "raw", Usage: "no chat template: the text as it is"},
	}, engineFlags()...)
	cmd.Action = func(c *cli.Context) error {
		if !c.Bool("values") {
			for _, f := range []string{"prompt", "prompt-ids", "raw"} {
				if c.IsSet(f) {
					return usagef("--%s goes with --values", f)
				}
			}
			return list(c)
		}
		return t.statesWithValues(c)
	}
	return cmd
}

// stateValuesJSON is a state with what it holds.
type stateValuesJSON struct {
	Name   string      `json:"name"`
	DType  string      `json:"dtype"`
	Shape  []int       `json:"shape"`
	Values stateValues `json:"values"`
}

// statesWithValues runs a prompt and shows the states.
func (t *tool) statesWithValues(c *cli.Context) error {
	backend, opts, err := t.engine(c)
	if err != nil {
		return err
	}
	return t.withPackage(c, func(ctx context.Context, pkg *manifest.Package) error {
		r, err := runner.Open(ctx, pkg, backend, opts)
		if err != nil {
			return err
		}
		defer r.Close() //nolint:errcheck // only read from
		req := runner.Request{MaxTokens: 1}
		if req.PromptIDs, err = shortPrompt(c, r); err != nil {
			return err
		}
		if _, err := r.Generate(ctx, req, nil); err != nil {
			return err
		}
		var out struct {
			States []stateValuesJSON `json:"states"`
		}
		for _, s := range r.States() {
			for _, name := range s.Names() {
				v, err := s.Read(name)
				if err != nil {
					return err
				}
				out.States = append(out.States, stateValuesJSON{name, v.DType.Long(), v.Shape, measure(v, r.Position())})
			}
		}
		if t.global.json {
			t.writeJSON("anepkg.states/1", out)
			return nil
		}
		tb := table{}
		tb.head(t.style(t.stdoutTTY), "state", "type", "shape", fmt.Sprintf("after %s", plural(r.Position(), "token")))
		for _, s := range out.States {
			tb.row(s.Name, s.DType, tensor.ShapeString(s.Shape), s.Values.String())
		}
		tb.write(t.stdout)
		return nil
	})
}

// shortPrompt reads --prompt and --prompt-ids; without them it is one token.
func shortPrompt(c *cli.Context, r *runner.Runner) ([]int, error) {
	switch {
	case c.IsSet("prompt") && c.IsSet("prompt-ids"):
		return nil, usagef("--prompt and --prompt-ids exclude each other")
	case c.IsSet("prompt-ids"):
		return parseIDs(c.String("prompt-ids"))
	case c.IsSet("prompt"):
		in, err := r.Prompt(runner.PromptInput{Text: c.String("prompt"), Raw: c.Bool("raw")})
		if err != nil {
			return nil, err
		}
		return in.IDs, nil
	}
	return []int{0}, nil
}

func (t *tool) layersCommand() *cli.Command {
	return t.describing("layers", "list the layers of a package", layersText, "anepkg.layers/1",
		func(ctx context.Context, pkg *manifest.Package) (report, error) { return inspect.Layers(ctx, pkg) })
}

// describing makes a command that opens a package and prints one report.
func (t *tool) describing(name, usage, description, schema string, make func(context.Context, *manifest.Package) (report, error)) *cli.Command {
	return &cli.Command{
		Name:        name,
		Usage:       usage,
		ArgsUsage:   targetUsage,
		Description: description,
		Action: func(c *cli.Context) error {
			return t.withPackage(c, func(ctx context.Context, pkg *manifest.Package) error {
				r, err := make(ctx, pkg)
				if err != nil {
					return err
				}
				if err := unreadable(ctx, pkg); err != nil {
					return err
				}
				if t.global.json {
					t.writeJSON(schema, r)
					return nil
				}
				return r.WriteText(t.stdout, t.style(t.stdoutTTY).on)
			})
		},
	}
}

// unreadable returns the reason when a single model cannot be opened: then
// there is nothing to describe. In a package of several parts the report
// lists the reason beside the part.
func unreadable(ctx context.Context, pkg *manifest.Package) error {
	if pkg.Kind != manifest.SingleModel || len(pkg.Parts) != 1 {
		return nil
	}
	_, err := pkg.Model(ctx, pkg.Parts[0])
	return err
}
