package inspect

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// WriteText prints the findings for people, grouped by the file of their
// first place, the file with the worst finding first, each with the lines
// that it points at.
func (r *ValidateReport) WriteText(w io.Writer, color bool) error {
	ew := &errWriter{w: w}
	s := style{color}
	for _, g := range r.byFile() {
		fmt.Fprintf(ew, "%s  %s\n", s.in(bold, printable(g.file)), s.in(dim, plural(len(g.findings), "finding")))
		for i, f := range g.findings {
			if i > 0 {
				fmt.Fprintln(ew)
			}
			r.writeFinding(ew, s, f)
		}
		fmt.Fprintln(ew)
	}
	sum := []string{
		s.in(pick(r.Summary.Error > 0, red), plural(r.Summary.Error, "error")),
		s.in(pick(r.Summary.Warning > 0, yellow), plural(r.Summary.Warning, "warning")),
		plural(r.Summary.Note, "note"),
	}
	fmt.Fprintf(ew, "%s: %s  %s\n", s.in(bold, printable(cmp.Or(r.Package.Name, r.Package.Path))), strings.Join(sum, ", "),
		s.in(dim, fmt.Sprintf("(%s, %d left out)", plural(len(r.Run), "check"), len(r.Skipped))))
	if what := r.Target.String(); what != "" {
		fmt.Fprintf(ew, "judged for %s\n", printable(what))
	}
	if r.Suppressed > 0 {
		fmt.Fprintf(ew, "%s left out by the baseline or by suppressions\n", plural(r.Suppressed, "finding"))
	}
	for i := range r.Suppressions {
		if u := &r.Suppressions[i]; u.Used == 0 {
			fmt.Fprintf(ew, "%s: the suppression of %s matches nothing and can be deleted (%s)\n", u.Pos, printable(u.ID), printable(u.Reason))
		}
	}
	return ew.err
}

// fileGroup is the findings of one file.
type fileGroup struct {
	file     string
	findings []*Finding
}

// byFile groups the findings, which are sorted by severity.
func (r *ValidateReport) byFile() []*fileGroup {
	var groups []*fileGroup
	index := map[string]*fileGroup{}
	for _, f := range r.Findings {
		file := "the package"
		if len(f.Where) > 0 {
			file = f.Where[0].File
		}
		g := index[file]
		if g == nil {
			g = &fileGroup{file: file}
			index[file] = g
			groups = append(groups, g)
		}
		g.findings = append(g.findings, f)
	}
	return groups
}

func pick(when bool, code string) string {
	if when {
		return code
	}
	return ""
}

func severityCode(sev Severity) string {
	switch sev {
	case Error:
		return red
	case Warning:
		return yellow
	}
	return blue
}

func (r *ValidateReport) writeFinding(w io.Writer, s style, f *Finding) {
	code := severityCode(f.Severity)
	fmt.Fprintf(w, "%s %s\n", s.in(code, fmt.Sprintf("%-7s %s", f.Severity, f.ID)), s.in(bold, f.Title))
	fmt.Fprintf(w, "  %s\n", printable(f.Message))
	for _, place := range f.Where {
		fmt.Fprintf(w, "  %s %s\n", s.in(dim, "at"), printable(place.String()))
		if line, caret, ok := r.excerpts.excerpt(place); ok {
			fmt.Fprintf(w, "    %s %s\n", s.in(dim, "|"), line)
			if place.Column != nil {
				fmt.Fprintf(w, "    %s %s%s\n", s.in(dim, "|"), strings.Repeat(" ", caret), s.in(code, "^"))
			}
		}
	}
	if f.Got != nil || f.Want != nil {
		fmt.Fprintf(w, "  %s %s, %s %s\n", s.in(dim, "got"), plain(f.Got), s.in(dim, "want"), plain(f.Want))
	}
	if f.Hint != "" {
		fmt.Fprintf(w, "  %s %s\n", s.in(green, "fix:"), printable(f.Hint))
	}
}

// String prints file:line:column, file:0xoffset or file.
func (w Where) String() string {
	switch {
	case w.Offset != nil:
		return fmt.Sprintf("%s:%#x", w.File, *w.Offset)
	case w.Line != nil && w.Column != nil:
		return fmt.Sprintf("%s:%d:%d", w.File, *w.Line, *w.Column)
	case w.Line != nil:
		return fmt.Sprintf("%s:%d", w.File, *w.Line)
	}
	return w.File
}

// plain prints a value of Got or Want.
func plain(v any) string {
	switch x := v.(type) {
	case nil:
		return "nothing"
	case string:
		if x == "" {
			return "nothing"
		}
		return printable(x)
	}
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	if len(b) > 120 {
		return printable(string(b[:117])) + "..."
	}
	return printable(string(b))
}
