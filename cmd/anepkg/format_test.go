package main

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"strings"
	"testing"

	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/inspect"
)

// sampleReport has findings with every sort of place and awkward characters.
func sampleReport() *inspect.ValidateReport {
	line, column, offset := 41, 17, int64(0x4c0)
	rules := inspect.Catalogue()
	r := &inspect.ValidateReport{
		Package: inspect.PackageRef{Path: "models/my package"},
		Summary: inspect.Summary{Error: 1, Warning: 1, Note: 1},
		Findings: []*inspect.Finding{
			{ID: rules[0].ID, Severity: inspect.Error, Title: "a: b, c", Message: "100% wrong | <b>\nsecond\rline", Hint: "do this",
				Where: []inspect.Where{{File: "model.mil", Line: &line, Column: &column}, {File: "weights/weight.bin", Offset: &offset}}},
			{ID: rules[1].ID, Severity: inspect.Warning, Title: "t", Message: "only a file \x1b[31m", Where: []inspect.Where{{File: "meta.yaml"}}},
			{ID: rules[1].ID, Severity: inspect.Note, Title: "t", Message: "no place"},
		},
		Suppressed:   1,
		Suppressions: []inspect.SuppressionUse{{Suppression: inspect.Suppression{ID: "TOK003", Reason: "old", Pos: diag.Pos{File: ".anepkg.yaml", Line: 4, Col: 5}}}, {Suppression: inspect.Suppression{ID: "WGT001"}, Used: 1}},

		Run:     []string{rules[0].ID, rules[1].ID},
		Skipped: []inspect.SkippedCheck{{ID: rules[2].ID, Reason: "not selected"}},
	}
	return r
}

func render(t *testing.T, format string) string {
	t.Helper()
	var b bytes.Buffer
	if err := reportFormats[format](&b, sampleReport(), inspect.Error); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestGitHubFormat(t *testing.T) {
	got := render(t, "github")
	id0, id1 := inspect.Catalogue()[0].ID, inspect.Catalogue()[1].ID
	want := "::error file=models/my package/model.mil,line=41,col=17,title=" + id0 + " a%3A b%2C c::100%25 wrong | <b>%0Asecond%0Dline" +
		"%0Amodels/my package/model.mil:41:17%0Amodels/my package/weights/weight.bin:0x4c0%0Ahint: do this\n" +
		"::warning file=models/my package/meta.yaml,title=" + id1 + " t::only a file \x1b[31m%0Amodels/my package/meta.yaml\n" +
		"::notice title=" + id1 + " t::no place\n" +
		"::notice file=models/my package/.anepkg.yaml,line=4,title=unused suppression::the suppression of TOK003 matches nothing and can be deleted (old)\n"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestMarkdownFormat(t *testing.T) {
	got := render(t, "markdown")
	for _, want := range []string{
		"The suppression of TOK003 (.anepkg.yaml:4:5) matches nothing", "1 finding left out by the baseline",
		"## models/my package fails\n", "1 error, 1 warning, 1 note; 2 checks run, 1 skipped.",
		`| error | ` + inspect.Catalogue()[0].ID + ` | 100% wrong \| &lt;b&gt; second line<br>*do this* | ` + "`model.mil:41:17`<br>`weights/weight.bin:0x4c0` |\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

func TestJUnitFormat(t *testing.T) {
	var suites junitSuites
	if err := xml.Unmarshal([]byte(render(t, "junit")), &suites); err != nil {
		t.Fatal(err)
	}
	s := suites.Suites[0]
	if s.Tests != 3 || s.Failures != 1 || s.Skipped != 1 || len(s.Cases) != 3 {
		t.Fatalf("got %d tests, %d failures, %d skipped, %d cases; want 3, 1, 1, 3", s.Tests, s.Failures, s.Skipped, len(s.Cases))
	}
	if f := s.Cases[0].Failure; len(f) != 1 || f[0].Message != "100% wrong | <b>\nsecond\rline" || !strings.Contains(f[0].Text, "model.mil:41:17") {
		t.Errorf("got failure %+v", f)
	}
	if out := s.Cases[1].Out; !strings.Contains(out, "warning: only a file") || !strings.Contains(out, "note: no place") {
		t.Errorf("got output %q", out)
	}
}

func TestSARIFFormat(t *testing.T) {
	var log sarifLog
	if err := json.Unmarshal([]byte(render(t, "sarif")), &log); err != nil {
		t.Fatal(err)
	}
	run := log.Runs[0]
	if log.Version != "2.1.0" || len(run.Results) != 3 || len(run.Tool.Driver.Rules) != len(inspect.Catalogue()) {
		t.Fatalf("got version %s, %d results, %d rules", log.Version, len(run.Results), len(run.Tool.Driver.Rules))
	}
	for i, res := range run.Results {
		if run.Tool.Driver.Rules[res.RuleIndex].ID != res.RuleID {
			t.Errorf("result %d: rule index %d is %s, want %s", i, res.RuleIndex, run.Tool.Driver.Rules[res.RuleIndex].ID, res.RuleID)
		}
		if len(res.Locations) != 1 || res.Locations[0].Physical.Artifact.URI == "" {
			t.Errorf("result %d: locations %+v, want one", i, res.Locations)
		}
	}
	first := run.Results[0]
	if got := first.Locations[0].Physical; got.Artifact.URI != "models/my%20package/model.mil" || got.Region.StartLine != 41 || got.Region.StartColumn != 17 {
		t.Errorf("got place %+v", got)
	}
	if off := first.Related[0].Physical.Region.ByteOffset; off == nil || *off != 0x4c0 {
		t.Errorf("got related places %+v", first.Related)
	}
}

func TestFileURI(t *testing.T) {
	for _, tt := range []struct{ path, want string }{
		{"a b/c.mil", "a%20b/c.mil"}, {"/abs/c.mil", "file:///abs/c.mil"}, {"c%d", "c%25d"},
	} {
		if got := fileURI(tt.path); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.path, got, tt.want)
		}
	}
}
