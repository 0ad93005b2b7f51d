package main

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"github.com/anepkg/anepkg/inspect"
)

// The elements of the JUnit report format that CI servers read.
type (
	junitSuites struct {
		XMLName xml.Name     `xml:"testsuites"`
		Suites  []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Skipped  int         `xml:"skipped,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Class   string         `xml:"classname,attr"`
		Name    string         `xml:"name,attr"`
		Failure []junitMessage `xml:"failure,omitempty"`
		Skipped *junitMessage  `xml:"skipped,omitempty"`
		Out     string         `xml:"system-out,omitempty"`
	}
	junitMessage struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr,omitempty"`
		Text    string `xml:",chardata"`
	}
)

// writeJUnit writes a test case for each check; findings at or above level
// are its failures, those below are its output.
func writeJUnit(w io.Writer, r *inspect.ValidateReport, level inspect.Severity) error {
	titles := map[string]string{}
	for _, rule := range inspect.Catalogue() {
		titles[rule.ID] = rule.Title
	}
	suite := junitSuite{Name: "anepkg validate " + r.Package.Path}
	for _, id := range r.Run {
		c := junitCase{Class: "anepkg." + strings.TrimRight(id, "0123456789"), Name: id + ": " + titles[id]}
		var out []string
		for _, f := range r.Findings {
			switch {
			case f.ID != id:
			case reaches(f.Severity, level):
				c.Failure = append(c.Failure, junitMessage{Message: f.Message, Type: string(f.Severity), Text: places(r, f)})
			default:
				out = append(out, fmt.Sprintf("%s: %s%s", f.Severity, findingText(f), places(r, f)))
			}
		}
		if len(c.Failure) > 0 {
			suite.Failures++
		}
		c.Out = strings.Join(out, "\n")
		suite.Cases = append(suite.Cases, c)
	}
	for _, s := range r.Skipped {
		suite.Skipped++
		suite.Cases = append(suite.Cases, junitCase{Class: "anepkg." + strings.TrimRight(s.ID, "0123456789"), Name: s.ID + ": " + titles[s.ID],
			Skipped: &junitMessage{Message: s.Reason}})
	}
	suite.Tests = len(suite.Cases)
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	enc := xml.NewEncoder(w)
	enc.Indent("", "  ")
	if err := enc.Encode(junitSuites{Suites: []junitSuite{suite}}); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// places lists where a finding is, one place a line, each after a newline.
func places(r *inspect.ValidateReport, f *inspect.Finding) string {
	var b strings.Builder
	for _, where := range f.Where {
		b.WriteString("\n" + placeText(reportPath(r, where.File), where))
	}
	if f.Hint != "" {
		b.WriteString("\nhint: " + f.Hint)
	}
	return b.String()
}

// placeText prints file:line:column or file:0xoffset.
func placeText(file string, where inspect.Where) string {
	switch {
	case where.Offset != nil:
		return fmt.Sprintf("%s:%#x", file, *where.Offset)
	case where.Line != nil && where.Column != nil:
		return fmt.Sprintf("%s:%d:%d", file, *where.Line, *where.Column)
	case where.Line != nil:
		return fmt.Sprintf("%s:%d", file, *where.Line)
	}
	return file
}
