package main

import (
	"bufio"
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/coreml/mil"
	"github.com/anepkg/anepkg/manifest"
)

const milText = `  Prints the program of a part as text MIL: for a .mlmodelc what its model.mil
  holds, for an .mlpackage the same program in that form.`

type milJSON struct {
	Part      string            `json:"part"`
	File      string            `json:"file"`
	Functions []milFunctionJSON `json:"functions"`
	Text      string            `json:"text,omitempty"`
	Line      int               `json:"line,omitempty"`
}

type milFunctionJSON struct {
	Name        string         `json:"name"`
	Default     bool           `json:"default"`
	Opset       string         `json:"opset"`
	Ops         int            `json:"ops"` // operations, constants left out
	OpHistogram map[string]int `json:"op_histogram"`
}

func (t *tool) milCommand() *cli.Command {
	return &cli.Command{
		Name:        "mil",
		Usage:       "print the program of a part as text MIL",
		ArgsUsage:   targetUsage,
		Description: milText,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "part", Usage: "which `PART`: a path, a role such as lm_head, or the number of a chunk"},
			&cli.StringFlag{Name: "function", Usage: "print only the function `NAME`"},
			&cli.BoolFlag{Name: "ops", Usage: "count the operations instead"},
			&cli.IntFlag{Name: "line", Usage: "print line `N` and what is around it"},
		},
		Action: func(c *cli.Context) error {
			if c.IsSet("line") && c.Int("line") < 1 {
				return usagef("--line %d: lines count from 1", c.Int("line"))
			}
			if c.Bool("ops") && c.IsSet("line") {
				return usagef("--ops and --line exclude each other")
			}
			return t.withPackage(c, func(ctx context.Context, pkg *manifest.Package) error {
				part, m, err := openPart(ctx, pkg, c.String("part"))
				if err != nil {
					return err
				}
				return t.mil(c, part, m)
			})
		},
	}
}

// mil prints what the flags ask for.
func (t *tool) mil(c *cli.Context, part *manifest.Part, m *coreml.Model) error {
	prog, err := onlyFunction(m, c.String("function"))
	if err != nil {
		return err
	}
	out := milJSON{Part: partLabel(part), File: m.ProgramFile, Line: c.Int("line")}
	for _, f := range prog.Functions {
		fj := milFunctionJSON{Name: f.Name, Default: f.Name == m.Default, Opset: f.Opset, OpHistogram: mil.Histogram(f)}
		for _, n := range fj.OpHistogram {
			fj.Ops += n
		}
		out.Functions = append(out.Functions, fj)
	}
	switch {
	case c.Bool("ops"):
		if !t.global.json {
			t.printOps(out.Functions)
			return nil
		}
	case c.IsSet("line"):
		// Lines count in the whole program, whatever --function says.
		if out.Text, err = lineOf(m.Program, out.Line); err != nil {
			return err
		}
		if !t.global.json {
			t.printLines(m.Program, out.Line)
			return nil
		}
	case !t.global.json:
		w := bufio.NewWriterSize(t.stdout, 1<<16)
		if err := mil.Print(w, prog); err != nil {
			return err
		}
		return w.Flush()
	default:
		out.Text = prog.String()
	}
	t.writeJSON("anepkg.mil/1", out)
	return nil
}

// onlyFunction returns the program, or a copy that has only the named
// function.
func onlyFunction(m *coreml.Model, name string) (*mil.Program, error) {
	if name == "" {
		return m.Program, nil
	}
	f := m.Program.Function(name)
	if f == nil {
		var names []string
		for _, f := range m.Program.Functions {
			names = append(names, f.Name)
		}
		return nil, diag.Errorf(diag.In(m.ProgramFile), diag.NotFound, "no function %q; the program has %s", name, strings.Join(names, ", ")).
			WithHint("%s", didYouMean(name, names, ""))
	}
	prog := *m.Program
	prog.Functions = []*mil.Function{f}
	return &prog, nil
}

// printOps prints one column of counts for each function, the most frequent
// operation first.
func (t *tool) printOps(fns []milFunctionJSON) {
	st := t.style(t.stdoutTTY)
	total := map[string]int{}
	titles := []string{"op"}
	for _, f := range fns {
		titles = append(titles, f.Name)
		for op, n := range f.OpHistogram {
			total[op] += n
		}
	}
	var ops []string
	for op := range total {
		ops = append(ops, op)
	}
	slices.SortFunc(ops, func(a, b string) int { return cmp.Or(total[b]-total[a], strings.Compare(a, b)) })
	tb := table{right: map[int]bool{}}
	tb.head(st, titles...)
	sums := make([]int, len(fns))
	for _, op := range ops {
		row := []any{op}
		for i, f := range fns {
			sums[i] += f.OpHistogram[op]
			row = append(row, count(f.OpHistogram[op]))
		}
		tb.row(row...)
	}
	last := []any{cell{"all", st.bold}}
	for i := range fns {
		tb.right[i+1] = true
		last = append(last, cell{thousands(int64(sums[i])), st.bold})
	}
	tb.row(last...)
	tb.write(t.stdout)
}

// count prints a number, a dash for none.
func count(n int) string {
	if n == 0 {
		return "-"
	}
	return thousands(int64(n))
}

func lineOf(prog *mil.Program, line int) (string, error) {
	lines := strings.Split(strings.TrimSuffix(prog.String(), "\n"), "\n")
	if line > len(lines) {
		return "", diag.Errorf(diag.Pos{File: prog.File}, diag.NotFound, "no line %d; the program has %d lines", line, len(lines))
	}
	return lines[line-1], nil
}

// printLines prints a line between its neighbours.
func (t *tool) printLines(prog *mil.Program, line int) {
	const around = 3
	st := t.style(t.stdoutTTY)
	lines := strings.Split(strings.TrimSuffix(prog.String(), "\n"), "\n")
	first, last := max(1, line-around), min(len(lines), line+around)
	tb := table{right: map[int]bool{1: true}}
	for n := first; n <= last; n++ {
		mark, paint := " ", st.dim
		if n == line {
			mark, paint = ">", st.bold
		}
		tb.row(cell{mark, st.cyan}, cell{strconv.Itoa(n), st.dim}, cell{visible(lines[n-1]), paint})
	}
	tb.write(t.stdout)
}
