package main

import (
	"fmt"
	"strings"
)

// The pages docs/ops.md and docs/rules.md are what "anepkg ops --format
// markdown" and "anepkg checks --format markdown" print; a test holds that.

// mdCell makes text safe inside a Markdown table.
func mdCell(s string) string {
	return strings.NewReplacer("|", "\\|", "\n", " ", "<", "&lt;", "*", "\\*", "_", "\\_").Replace(s)
}

func opsMarkdown(ops []opJSON) string {
	var b strings.Builder
	b.WriteString("# Operations of the CPU engine\n\n")
	b.WriteString("Printed by `anepkg ops --format markdown` from the engine's own table. Broadcasting is NumPy's; results of type fp16 are\n" +
		"rounded to the nearest fp16 after each op, sums accumulate in float32 or wider. *since* is the first opset that has the op.\n\n")
	b.WriteString("| op | since | element types | computes | left out |\n|---|---|---|---|---|\n")
	for _, o := range ops {
		limit := mdCell(o.Limits)
		if limit == "" {
			limit = "-"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", o.Name, o.Opset, mdCell(o.Types), mdCell(o.Doc), limit)
	}
	return b.String()
}

func checksMarkdown(checks []checkJSON) string {
	var b strings.Builder
	b.WriteString("# Checks\n\n")
	b.WriteString("Printed by `anepkg checks --format markdown` from the catalogue that `anepkg validate` runs. Ids are stable and never reused.\n\n")
	b.WriteString("| id | severity | finds |\n|---|---|---|\n")
	for _, k := range checks {
		fmt.Fprintf(&b, "| [%s](#%s) | %s | %s |\n", k.ID, strings.ToLower(k.ID), k.Severity, mdCell(k.Title))
	}
	for _, k := range checks {
		facts := []string{k.Severity, "since " + k.Since}
		if k.Weights {
			facts = append(facts, "reads weight files, left out by `--fast`")
		}
		if len(k.Kinds) > 0 {
			facts = append(facts, "for "+strings.Join(k.Kinds, ", "))
		}
		fmt.Fprintf(&b, "\n## %s\n\n**%s** (%s)\n\n%s\n", k.ID, mdCell(k.Title), strings.Join(facts, "; "), strings.Join(wrap(mdCell(k.Doc), 118), "\n"))
		if len(k.Targets) > 0 {
			fmt.Fprintf(&b, "\nAn error with `--target` %s.\n", strings.Join(k.Targets, ", "))
		}
		fmt.Fprintf(&b, "\n```text\n%s```\n", k.Example)
	}
	return b.String()
}
