package inspect

import (
	"fmt"
	"strings"

	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/manifest"
)

// Severity says how bad a finding is.
type Severity string

// The severities (design.md section 4).
const (
	Error   Severity = "error"   // the package contradicts itself or its contract, or no runtime can use it
	Warning Severity = "warning" // a named runtime or target will fail or give wrong output
	Note    Severity = "note"    // worth knowing
)

// Needs says what a rule must be able to read.
type Needs uint8

// What a rule may need. A rule without Programs still runs when no program
// can be read.
const (
	NeedsNothing  Needs = 0
	NeedsPrograms Needs = 1 << iota
	NeedsWeights        // reads weight files; left out by Options.Fast
	NeedsConfig         // compares with the description file's parameters
)

// Rule is one check: what it means and the function that makes it.
type Rule struct {
	ID       string   // family (PKG, CFG, MIL, WGT, TOK, RUN) and three digits, never reused
	Title    string   // what is wrong when it fires, a short sentence
	Doc      string   // what it means, why it matters and where that is known from, how to fix it
	Since    string   // version of anepkg that has it first
	Severity Severity // of its findings, unless a finding says otherwise
	Needs    Needs
	For      []manifest.Kind // nil = every kind
	Targets  []string        // asked for one of them, some of the findings are errors
	Check    func(*Pass)
}

// Family returns the letters of the id.
func (r *Rule) Family() string { return strings.TrimRight(r.ID, "0123456789") }

// Fix returns the action that Doc ends with.
func (r *Rule) Fix() string {
	_, fix, _ := strings.Cut(r.Doc, "\nFix: ")
	return strings.TrimSuffix(fix, ".")
}

// Where is a place in a file of the package. Line and Column count from 1,
// Column in bytes; Offset is for binary files. What is not known is null.
type Where struct {
	File   string `json:"file"`
	Line   *int   `json:"line"`
	Column *int   `json:"column"`
	Offset *int64 `json:"offset"`
}

func whereOf(p diag.Pos) Where {
	w := Where{File: p.File}
	if p.Binary {
		w.Offset = ptr(p.Offset)
		return w
	}
	w.Line, w.Column = known(p.Line), known(p.Col)
	return w
}

// Finding is one thing that a rule found.
type Finding struct {
	ID       string   `json:"id"`
	Severity Severity `json:"severity"`
	Title    string   `json:"title"`
	Message  string   `json:"message"`
	Where    []Where  `json:"where"`
	Got      any      `json:"got"`
	Want     any      `json:"want"`
	Hint     string   `json:"hint"`
	// Targets are where it fails or gives wrong output (see Targets()):
	// asked for one of them, the finding is an error.
	Targets []string `json:"targets,omitempty"`
}

// Pass is one run of one rule over one package.
type Pass struct {
	*view
	Rule *Rule

	target  TargetInfo
	out     []*Finding
	skipped string
}

// Report adds a finding at pos; a zero pos means the whole package.
func (p *Pass) Report(pos diag.Pos, format string, args ...any) *Finding {
	f := &Finding{ID: p.Rule.ID, Severity: p.Rule.Severity, Title: p.Rule.Title, Message: fmt.Sprintf(format, args...), Where: []Where{}}
	if pos.File != "" {
		f.Where = append(f.Where, whereOf(pos))
	}
	p.out = append(p.out, f)
	return f
}

// ReportError adds a finding made from an error with a position.
func (p *Pass) ReportError(err *diag.Error) *Finding {
	f := p.Report(err.Pos, "%s", err.Msg)
	f.Hint = err.Hint
	return f
}

// Skip says why the rule could not look at everything. It is listed under
// checks_skipped when the rule found nothing.
func (p *Pass) Skip(format string, args ...any) {
	if p.skipped == "" {
		p.skipped = fmt.Sprintf(format, args...)
	}
}

// Compare sets both sides of a contradiction.
func (f *Finding) Compare(got, want any) *Finding {
	f.Got, f.Want = got, want
	return f
}

// Also adds another place.
func (f *Finding) Also(pos diag.Pos) *Finding {
	if pos.File != "" {
		f.Where = append(f.Where, whereOf(pos))
	}
	return f
}

// Fix sets the hint: one action.
func (f *Finding) Fix(format string, args ...any) *Finding {
	f.Hint = fmt.Sprintf(format, args...)
	return f
}

// As sets another severity than the rule's.
func (f *Finding) As(s Severity) *Finding {
	f.Severity = s
	return f
}

// On names the targets on which the finding is an error.
func (f *Finding) On(targets ...string) *Finding {
	f.Targets = append(f.Targets, targets...)
	return f
}

// anemllLike reports whether the package has a meta.yaml.
func (v *view) anemllLike() bool {
	return v.pkg.Kind == manifest.Seed || v.pkg.Kind == manifest.ANEMLL
}
