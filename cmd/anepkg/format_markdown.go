package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/anepkg/anepkg/inspect"
)

// writeMarkdown writes a report for an issue or a job summary.
func writeMarkdown(w io.Writer, r *inspect.ValidateReport, level inspect.Severity) error {
	var b strings.Builder
	verdict := "passes"
	if failures(r, level) > 0 {
		verdict = "fails"
	}
	fmt.Fprintf(&b, "## %s %s\n\n", markdownText(r.Package.Path), verdict)
	fmt.Fprintf(&b, "%s, %s, %s; %s run, %d skipped.\n", plural(r.Summary.Error, "error"), plural(r.Summary.Warning, "warning"),
		plural(r.Summary.Note, "note"), plural(len(r.Run), "check"), len(r.Skipped))
	if what := r.Target.String(); what != "" {
		fmt.Fprintf(&b, "Judged for %s.\n", markdownText(what))
	}
	if len(r.Findings) > 0 {
		b.WriteString("\n| severity | check | finding | where |\n|---|---|---|---|\n")
	}
	for _, f := range r.Findings {
		var where []string
		for _, p := range f.Where {
			where = append(where, "`"+strings.ReplaceAll(placeText(p.File, p), "`", "'")+"`")
		}
		message := markdownText(f.Message)
		if f.Hint != "" {
			message += "<br>*" + markdownText(f.Hint) + "*"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", f.Severity, f.ID, message, strings.Join(where, "<br>"))
	}
	if r.Suppressed > 0 {
		fmt.Fprintf(&b, "\n%s left out by the baseline or by suppressions.\n", plural(r.Suppressed, "finding"))
	}
	for i := range r.Suppressions {
		if u := &r.Suppressions[i]; u.Used == 0 {
			fmt.Fprintf(&b, "\nThe suppression of %s (%s) matches nothing and can be deleted.\n", u.ID, markdownText(u.Pos.String()))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

var markdownEscapes = strings.NewReplacer("|", `\|`, "<", "&lt;", ">", "&gt;", "*", `\*`, "_", `\_`, "`", "\\`", "\n", " ", "\r", " ")

func markdownText(s string) string { return markdownEscapes.Replace(s) }
