package main

import (
	"context"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/anepkg/anepkg/coreml/tensor"
	"github.com/anepkg/anepkg/inspect"
	"github.com/anepkg/anepkg/manifest"
)

const weightsText = `  Lists every constant that lies in a weight file: how it is stored, where, and
  which functions share it. --export writes one of them, decompressed, as .npy;
  a name that several parts have is given as PART:NAME.`

type exportJSON struct {
	Name  string `json:"name"`
	Path  string `json:"path"`
	DType string `json:"dtype"`
	Shape []int  `json:"shape"`
}

func (t *tool) weightsCommand() *cli.Command {
	cmd := t.describing("weights", "list the constants of a package, or export one", weightsText, "anepkg.weights/1",
		func(ctx context.Context, pkg *manifest.Package) (report, error) { return inspect.Weights(ctx, pkg) })
	list := cmd.Action
	cmd.Flags = []cli.Flag{
		&cli.StringFlag{Name: "export", Usage: "decompress the constant `NAME`"},
		&cli.StringFlag{Name: "to", Usage: "the .npy `FILE` of --export; NAME.npy without"},
	}
	cmd.Action = func(c *cli.Context) error {
		name := c.String("export")
		switch {
		case name == "" && c.IsSet("to"):
			return usagef("--to goes with --export")
		case name == "":
			return list(c)
		}
		return t.withPackage(c, func(ctx context.Context, pkg *manifest.Package) error {
			v, err := inspect.Export(ctx, pkg, name)
			if err != nil {
				return err
			}
			file := c.String("to")
			if file == "" {
				file = fileName(name) + ".npy"
			}
			if err := replaceFile(file, func(f *os.File) error { return tensor.WriteNPY(f, v) }); err != nil {
				return err
			}
			if t.global.json {
				t.writeJSON("anepkg.weights.export/1", exportJSON{name, file, v.DType.Long(), v.Shape})
				return nil
			}
			t.printf("%s  %s %s\n", file, v.DType.Long(), tensor.ShapeString(v.Shape))
			return nil
		})
	}
	return cmd
}

const diffText = `  Compares two packages: parameters, parts, functions, inputs and outputs,
  states, operations, weights (the same bytes, the same values, or different)
  and the findings of validate. The status is 1 when they differ.`

func (t *tool) diffCommand() *cli.Command {
	return &cli.Command{
		Name:        "diff",
		Usage:       "compare two packages",
		ArgsUsage:   "A B",
		Description: diffText,
		Flags:       []cli.Flag{&cli.BoolFlag{Name: "fast", Usage: "read no weight data"}},
		Action: func(c *cli.Context) error {
			if c.NArg() != 2 {
				return usagef("diff needs two packages, got %s", plural(c.NArg(), "argument"))
			}
			return t.withPackages(c, c.Args().Slice(), nil, func(pkgs []*manifest.Package) error {
				r, err := inspect.Diff(c.Context, pkgs[0], pkgs[1], inspect.Options{Fast: c.Bool("fast")})
				if err != nil {
					return err
				}
				if t.global.json {
					t.writeJSON("anepkg.diff/1", r)
				} else if err := r.WriteText(t.stdout, t.style(t.stdoutTTY).on); err != nil {
					return err
				}
				if !r.Equal {
					return errFindings
				}
				return nil
			})
		},
	}
}
