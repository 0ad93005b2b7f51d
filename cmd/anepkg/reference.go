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

// checksIntro stands above the list of checks.
const checksIntro = `A finding is an **error** when the package contradicts itself or its contract, or no runtime can use it, a **warning** when a
named runtime or system fails or gives wrong output, a **note** when it is worth knowing. Claims that the public record
contradicts are notes. ` + "`--target`" + ` names what the package is meant for: findings that fail there are errors, those that fail
only on others of the same kind are notes. Without it the systems from the package's own minimum on are assumed, which makes
nothing an error. Each example below is made and judged by a test, on small packages with random weights.

What the record of this field names and no check looks for:

| what | why not |
|---|---|
| owner and write permission of files (coreml-llm.md A25) | they differ between the machine that checks and the one that runs; PKG021 finds files that cannot be opened |
| memory of expanded palettes, copies for each function, cost of a long context (B3, B39, B41; seed format) | sizes, not faults: ` + "`inspect --memory`" + ` |
| share of ops on the Neural Engine (B44) | only MLComputePlan on a Mac tells it |
| inputs and outputs below 49 KB, casts and selects on the CPU (B28, B33) | every package has them; second-hand |
| concat, softmax in parts, matmul for conv, order of inputs (B34 to B37) | contradicted by packages that are shipped, or of a private interface |
| mask constants, loading in parallel, prefix caches, strides of results, CPU_ONLY (B40, B47 to B50; seed format) | choices of a runtime, which no package tells |
| disk space, caches of compiled models, toolchain (anemll.md 7: 2, 17, 24, 25) | of the machine: ` + "`anepkg doctor`" + ` |
| compiled models that a newer system or chip refuses (7: 20, 21) | no file tells it; compile the .mlpackage on that system |
| prompts longer than the context (7: 12) | of a request: ` + "`anepkg run`" + ` says it with both numbers |
| the sqrt(d) scale of recurrent states, precomputed palettes (seed format) | a program does not tell what it was made from: ` + "`anepkg compare`" + ` |
| contexts below 256 for Gemma 3 (measured-defects.md 5), gather with negative indices (mil.md) | refused while converting; known only while running |

`

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
	b.WriteString(checksIntro)
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
