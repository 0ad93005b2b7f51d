package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/anepkg/anepkg/inspect"
)

// writeGitHub writes workflow commands of GitHub Actions, which show findings
// as annotations of files.
func writeGitHub(w io.Writer, r *inspect.ValidateReport, _ inspect.Severity) error {
	command := map[inspect.Severity]string{inspect.Error: "error", inspect.Warning: "warning", inspect.Note: "notice"}
	var b strings.Builder
	for _, f := range r.Findings {
		var props []string
		if len(f.Where) > 0 {
			where := f.Where[0]
			props = append(props, "file="+githubProperty(reportPath(r, where.File)))
			if where.Line != nil {
				props = append(props, fmt.Sprintf("line=%d", *where.Line))
			}
			if where.Column != nil {
				props = append(props, fmt.Sprintf("col=%d", *where.Column))
			}
		}
		props = append(props, "title="+githubProperty(f.ID+" "+f.Title))
		fmt.Fprintf(&b, "::%s %s::%s\n", command[f.Severity], strings.Join(props, ","), githubData(f.Message+places(r, f)))
	}
	for i := range r.Suppressions {
		if u := &r.Suppressions[i]; u.Used == 0 {
			props := []string{"file=" + githubProperty(reportPath(r, u.Pos.File)), fmt.Sprintf("line=%d", u.Pos.Line), "title=unused suppression"}
			fmt.Fprintf(&b, "::notice %s::%s\n", strings.Join(props, ","), githubData("the suppression of "+u.ID+" matches nothing and can be deleted ("+u.Reason+")"))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

var (
	githubDataEscapes     = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	githubPropertyEscapes = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)

func githubData(s string) string     { return githubDataEscapes.Replace(s) }
func githubProperty(s string) string { return githubPropertyEscapes.Replace(s) }
