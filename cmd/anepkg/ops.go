package main

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/anepkg/anepkg/coreml/backends"
)

type opsJSON struct {
	Ops []opJSON `json:"ops"`
}

type opJSON struct {
	Name   string `json:"name"`
	Opset  string `json:"opset"` // the first that has it
	Types  string `json:"types"`
	Doc    string `json:"doc"`
	Limits string `json:"limits"` // what the engine leaves out; "" = nothing
}

func describeOp(o backends.OpInfo) opJSON {
	return opJSON{o.Name, fmt.Sprintf("ios%d", o.Opset), o.Types, o.Doc, o.Limits}
}

func (t *tool) opsCommand() *cli.Command {
	return &cli.Command{
		Name:        "ops",
		Usage:       "list the operations that the CPU engine executes, or explain one",
		ArgsUsage:   "[NAME]",
		Description: "  Without a NAME every op is listed; with one or more, each is explained.",
		Action: func(c *cli.Context) error {
			out, err := pickOps(c.Args().Slice())
			if err != nil {
				return err
			}
			st := t.style(t.stdoutTTY)
			switch {
			case t.global.json:
				t.writeJSON("anepkg.ops/1", out)
			case t.global.format == "markdown":
				t.printf("%s", opsMarkdown(out.Ops))
			case c.NArg() > 0:
				t.explainOps(out.Ops)
			default:
				tb := table{}
				tb.head(st, "op", "since", "computes")
				for _, o := range out.Ops {
					tb.row(cell{o.Name, st.bold}, o.Opset, o.Doc)
				}
				tb.write(t.stdout)
				if !t.global.quiet {
					t.printf("\n%s; \"anepkg ops NAME\" explains one.\n", plural(len(out.Ops), "op"))
				}
			}
			return nil
		},
	}
}

// pickOps returns the named ops, or all.
func pickOps(names []string) (opsJSON, error) {
	var out opsJSON
	var known []string
	byName := map[string]opJSON{}
	for _, o := range backends.Ops() {
		known = append(known, o.Name)
		byName[o.Name] = describeOp(o)
		if len(names) == 0 {
			out.Ops = append(out.Ops, describeOp(o))
		}
	}
	for _, n := range names {
		o, ok := byName[n]
		if !ok {
			return out, usagef("the CPU engine has no op %q", n).WithHint("%s", didYouMean(n, known, `"anepkg ops" lists them all`))
		}
		out.Ops = append(out.Ops, o)
	}
	return out, nil
}

func (t *tool) explainOps(ops []opJSON) {
	st := t.style(t.stdoutTTY)
	for i, o := range ops {
		if i > 0 {
			t.printf("\n")
		}
		t.printf("%s  since %s\n\n", st.bold(o.Name), o.Opset)
		for _, line := range wrap(o.Doc, 78) {
			t.printf("%s\n", line)
		}
		t.printf("\ntypes: %s\n", o.Types)
		if o.Limits != "" {
			t.printf("limits: %s\n", o.Limits)
		}
	}
}
