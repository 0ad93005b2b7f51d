package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/manifest"
	"github.com/anepkg/anepkg/runner"
)

const compareText = `  With --golden the package is fed the prompts and tokens of a golden.json, and
  its logits are compared with the reference's, row by row. With two packages
  the first is the reference: it chooses tokens, both are fed them. With two
  backends, --backend coreml,cpu, one package runs on both: the outputs of every
  part are compared too, and the first part that differs is named. Exit status 1
  means that they differ by more than the tolerance.`

func (t *tool) compareCommand() *cli.Command {
	return &cli.Command{
		Name:        "compare",
		Usage:       "compare a package's logits with a reference",
		ArgsUsage:   "TARGET --golden FILE | REFERENCE TARGET | TARGET --backend coreml,cpu",
		Description: compareText,
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "golden", Usage: "reference outputs in `FILE`"},
		}, engineFlags()...),
		Action: func(c *cli.Context) error {
			if strings.Contains(c.String("backend"), ",") {
				return t.compareBackends(c)
			}
			backend, opts, err := t.engine(c)
			if err != nil {
				return err
			}
			switch {
			case c.IsSet("golden"):
				return t.withPackage(c, func(ctx context.Context, pkg *manifest.Package) error {
					bar := t.progress(&opts)
					file := c.String("golden")
					if _, err := os.Stat(file); err != nil {
						return diag.Errorf(diag.In(file), diag.NotFound, "%w", errors.Unwrap(err)).WithHint("--golden names a file that holds prompts and expected logits")
					}
					r, err := runner.CompareGolden(ctx, pkg, backend, opts, dirFS(filepath.Dir(file)), filepath.Base(file))
					bar.done()
					if err != nil {
						return err
					}
					return t.printComparison(r)
				})
			case c.NArg() == 2:
				return t.comparePackages(c, backend, opts)
			}
			return usagef("compare needs a TARGET and --golden FILE, or two packages; got %s", plural(c.NArg(), "argument"))
		},
	}
}

// comparePackages compares the second argument with the first.
func (t *tool) comparePackages(c *cli.Context, backend coreml.Backend, opts runner.Options) error {
	return t.withPackages(c, c.Args().Slice(), nil, func(pkgs []*manifest.Package) error {
		bar := t.progress(&opts)
		r, err := runner.ComparePackages(c.Context, pkgs[0], pkgs[1], backend, opts, runner.PackagePair{})
		bar.done()
		if err != nil {
			return err
		}
		return t.printComparison(r)
	})
}

// withPackages opens every argument as a package and calls fn with them.
func (t *tool) withPackages(c *cli.Context, args []string, opened []*manifest.Package, fn func([]*manifest.Package) error) error {
	if len(opened) == len(args) {
		return fn(opened)
	}
	tg, err := t.open(c, args[len(opened)])
	if err != nil {
		return err
	}
	defer tg.Close() //nolint:errcheck // only read from
	return t.openPackage(c.Context, tg, func(pkg *manifest.Package) error {
		if err := refuse(pkg); err != nil {
			return err
		}
		return t.withPackages(c, args, append(opened, pkg), fn)
	})
}

// printComparison prints a table of cases; it returns errFindings when one
// failed.
func (t *tool) printComparison(r *runner.Comparison) error {
	if t.global.json {
		t.writeJSON("anepkg.compare/1", r)
	} else {
		t.comparisonText(r)
	}
	if !r.Pass {
		return errFindings
	}
	return nil
}

func (t *tool) comparisonText(r *runner.Comparison) {
	st := t.style(t.stdoutTTY)
	tb := table{indent: "  ", right: map[int]bool{1: true, 2: true, 3: true}}
	tb.head(st, "case", "rows", "cosine", "max diff", "best token", "")
	failed := 0
	for _, c := range r.Cases {
		cos := "-"
		if c.CosineMin != nil {
			cos = fmt.Sprintf("%.6f", *c.CosineMin)
		}
		top, verdict, paint := "same", "pass", st.green
		if !c.Top1Agree {
			top = "differs"
		}
		if !c.Pass {
			failed++
			verdict, paint = "FAIL", st.red
			if c.FirstRow >= 0 {
				verdict += fmt.Sprintf(" at row %d", c.FirstRow)
			}
		}
		tb.row(c.Name, fmt.Sprint(c.Rows), cos, fmt.Sprintf("%.4f", c.MaxAbs), top, cell{verdict, paint})
	}
	t.printf("compared with %s (%s%s, %s)\n", r.Reference, r.Backend, strings.TrimRight(" "+string(r.Precision), " "), r.Contract)
	tb.write(t.stdout)
	if len(r.Parts) > 0 {
		t.partsText(r)
	}
	for _, c := range r.Cases {
		if c.Error != "" {
			t.printf("  %s: %s\n", c.Name, c.Error)
		}
	}
	tolerance := fmt.Sprintf("cosine at least %g", r.Tolerance.CosineMin)
	if r.Tolerance.MaxAbs > 0 {
		tolerance += fmt.Sprintf(", differences at most %g", r.Tolerance.MaxAbs)
	}
	if failed > 0 {
		t.printf("%s of %d cases differ (%s)\n", st.red(fmt.Sprint(failed)), len(r.Cases), tolerance)
		return
	}
	t.printf("%s agree (%s)\n", st.green(plural(len(r.Cases), "case")), tolerance)
}
