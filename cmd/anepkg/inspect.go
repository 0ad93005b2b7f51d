package main

import (
	"context"
	"io"

	"github.com/urfave/cli/v2"

	"github.com/anepkg/anepkg/inspect"
	"github.com/anepkg/anepkg/manifest"
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
	return t.describing("inspect", "show what a package is", inspectText, "anepkg.inspect/1",
		func(ctx context.Context, pkg *manifest.Package) (report, error) { return inspect.Inspect(ctx, pkg) })
}

func (t *tool) statesCommand() *cli.Command {
	return t.describing("states", "list the states of a package", statesText, "anepkg.states/1",
		func(ctx context.Context, pkg *manifest.Package) (report, error) { return inspect.States(ctx, pkg) })
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
