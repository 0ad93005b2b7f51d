package main

import (
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/anepkg/anepkg/inspect"
)

type checksJSON struct {
	Checks []checkJSON `json:"checks"`
}

type checkJSON struct {
	ID       string   `json:"id"`
	Family   string   `json:"family"`
	Title    string   `json:"title"`
	Severity string   `json:"severity"`
	Since    string   `json:"since"`
	Weights  bool     `json:"reads_weights"`
	Kinds    []string `json:"kinds"`   // of packages; empty means every kind
	Targets  []string `json:"targets"` // asked for one of them, some of its findings are errors
	Doc      string   `json:"doc"`
	Example  string   `json:"example"`
}

func describeCheck(r inspect.Rule) checkJSON {
	c := checkJSON{ID: r.ID, Family: r.Family(), Title: r.Title, Severity: string(r.Severity), Since: r.Since,
		Weights: r.Needs&inspect.NeedsWeights != 0, Doc: r.Doc, Targets: r.Targets, Example: inspect.Example(r.ID)}
	for _, k := range r.For {
		c.Kinds = append(c.Kinds, string(k))
	}
	return c
}

func (t *tool) checksCommand() *cli.Command {
	return &cli.Command{
		Name:        "checks",
		Usage:       "list the checks of validate, or explain one",
		ArgsUsage:   "[ID]",
		Description: "  Without an ID every check is listed; with one or more, each is explained,\n  with an example that fails.",
		Action: func(c *cli.Context) error {
			if c.NArg() > 0 {
				return t.explainChecks(c.Args().Slice())
			}
			var out checksJSON
			for _, r := range inspect.Catalogue() {
				out.Checks = append(out.Checks, describeCheck(r))
			}
			if t.global.json {
				t.writeJSON("anepkg.checks/1", out)
				return nil
			}
			if t.global.format == "markdown" {
				t.printf("%s", checksMarkdown(out.Checks))
				return nil
			}
			st := t.style(t.stdoutTTY)
			tb := table{}
			tb.head(st, "id", "severity", "finds")
			for _, k := range out.Checks {
				tb.row(cell{k.ID, st.bold}, cell{k.Severity, func(s string) string { return st.severity(k.Severity, s) }}, k.Title)
			}
			tb.write(t.stdout)
			if !t.global.quiet {
				t.printf("\n%s; \"anepkg checks ID\" explains one.\n", plural(len(out.Checks), "check"))
			}
			return nil
		},
	}
}

func (t *tool) explainChecks(ids []string) error {
	var out checksJSON
	for _, id := range ids {
		r, err := inspect.Explain(id)
		if err != nil {
			var known []string
			for _, k := range inspect.Catalogue() {
				known = append(known, k.ID)
			}
			return usagef("no check is called %q", id).WithHint("%s", didYouMean(id, known, `"anepkg checks" lists them all`))
		}
		out.Checks = append(out.Checks, describeCheck(r))
	}
	if t.global.json {
		t.writeJSON("anepkg.checks/1", out)
		return nil
	}
	st := t.style(t.stdoutTTY)
	for i, k := range out.Checks {
		if i > 0 {
			t.printf("\n")
		}
		t.printf("%s  %s\n", st.bold(k.ID), k.Title)
		facts := []string{st.severity(k.Severity, k.Severity), "since " + k.Since}
		if k.Weights {
			facts = append(facts, "reads weight files (left out by --fast)")
		}
		if len(k.Kinds) > 0 {
			facts = append(facts, "for "+strings.Join(k.Kinds, ", "))
		}
		t.printf("%s\n", strings.Join(facts, " · "))
		if len(k.Targets) > 0 {
			t.printf("an error with --target %s\n", strings.Join(k.Targets, ", "))
		}
		t.printf("\n")
		for _, line := range wrap(k.Doc, 78) {
			t.printf("%s\n", line)
		}
		t.printf("\n%s\n", st.bold("Example"))
		for line := range strings.Lines(k.Example) {
			t.printf("  %s", line)
		}
	}
	return nil
}
