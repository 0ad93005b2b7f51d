package inspect

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/manifest"
)

// Options choose what Validate does. The zero value runs every rule.
type Options struct {
	Only []string // ids or families ("WGT"); empty = all
	Skip []string // ids or families
	Fast bool     // leave out rules that read weight files
	// Targets are what the package is meant for (see Targets()): findings
	// that name one of them become errors, those that name only others of
	// the same kind notes. Without any, the systems from the package's own
	// minimum on are assumed, which makes nothing an error.
	Targets []string
	// Baseline holds fingerprints (Finding.Fingerprint) of findings that are
	// known and accepted; they are left out and counted in Suppressed.
	Baseline []string
	// Suppress accepts findings for stated reasons (see Suppressions).
	Suppress []Suppression
}

// ValidateReport is the result of Validate. It marshals to the JSON of
// "anepkg validate".
type ValidateReport struct {
	Schema     string         `json:"schema"` // "anepkg.validate/1"
	Package    PackageRef     `json:"package"`
	Target     TargetInfo     `json:"target"`
	Summary    Summary        `json:"summary"`
	Findings   []*Finding     `json:"findings"`
	Run        []string       `json:"checks_run"`
	Skipped    []SkippedCheck `json:"checks_skipped"`
	Suppressed int            `json:"suppressed"`
	// Suppressions lists Options.Suppress with the number of findings that
	// each took away.
	Suppressions []SuppressionUse `json:"suppressions"`

	excerpts excerpts
}

// PackageRef names the package that was judged.
type PackageRef struct {
	Path   string `json:"path"`
	Kind   string `json:"kind"`
	Layout string `json:"layout"`
	Name   string `json:"name"`
}

// Summary counts findings.
type Summary struct {
	Error   int `json:"error"`
	Warning int `json:"warning"`
	Note    int `json:"note"`
}

// SkippedCheck is a rule that did not run, or could not look at everything.
type SkippedCheck struct {
	ID     string `json:"id"`
	Reason string `json:"reason"`
}

// Validate runs the rules over a package. Whatever is wrong with the package
// is a finding; an error is returned for a cancelled ctx and for options
// that name no rule (class diag.Usage).
func Validate(ctx context.Context, pkg *manifest.Package, opts Options) (*ValidateReport, error) {
	rules := Catalogue()
	for _, list := range [][]string{opts.Only, opts.Skip} {
		for _, id := range list {
			if !slices.ContainsFunc(rules, func(r Rule) bool { return matchesRule(&r, id) }) {
				return nil, diag.Errorf(diag.Pos{}, diag.Usage, "no check is called %q", id).WithHint("anepkg checks lists them all")
			}
		}
	}
	if !slices.ContainsFunc(rules, func(r Rule) bool { return selected(&r, opts) }) {
		return nil, diag.Errorf(diag.Pos{}, diag.Usage, "no check is left to run: what --only names, --skip leaves out")
	}
	var err error
	if opts.Targets, err = expandTargets(opts.Targets); err != nil {
		return nil, err
	}
	v, err := look(ctx, pkg)
	if err != nil {
		return nil, err
	}
	r := &ValidateReport{Schema: "anepkg.validate/1", Findings: []*Finding{}, Run: []string{}, Skipped: []SkippedCheck{},
		Package: PackageRef{pkg.Path, string(pkg.Kind), string(pkg.Layout), pkg.Name},
		Target:  TargetInfo{Names: opts.Targets, Reason: "named by the caller"}}
	if len(opts.Targets) == 0 {
		r.Target = v.assumeTarget()
	}
	for i := range rules {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		r.run(v, &rules[i], opts)
	}
	r.finish(opts)
	r.excerpts = collectExcerpts(pkg, r.Findings)
	return r, nil
}

func matchesRule(r *Rule, id string) bool {
	return strings.EqualFold(r.ID, id) || strings.EqualFold(r.Family(), id)
}

func selected(r *Rule, opts Options) bool {
	match := func(id string) bool { return matchesRule(r, id) }
	if len(opts.Only) > 0 && !slices.ContainsFunc(opts.Only, match) {
		return false
	}
	return !slices.ContainsFunc(opts.Skip, match)
}

func (r *ValidateReport) skip(id, reason string) {
	r.Skipped = append(r.Skipped, SkippedCheck{id, reason})
}

func (r *ValidateReport) run(v *view, rule *Rule, opts Options) {
	switch {
	case !selected(rule, opts):
		r.skip(rule.ID, "not selected")
		return
	case opts.Fast && rule.Needs&NeedsWeights != 0:
		r.skip(rule.ID, "reads weight files; left out in fast mode")
		return
	case v.pkg.Truncated && v.pkg.Kind == manifest.Unknown && rule.ID != "PKG001":
		r.skip(rule.ID, "the folder is no package")
		return
	case rule.For != nil && !slices.Contains(rule.For, v.pkg.Kind):
		r.skip(rule.ID, "not for packages of kind "+string(v.pkg.Kind))
		return
	case rule.Needs&NeedsConfig != 0 && len(v.pkg.Params) == 0:
		r.skip(rule.ID, "the package has no readable description file")
		return
	case rule.Needs&NeedsPrograms != 0 && !v.anyProgram():
		r.skip(rule.ID, "no program of the package can be read")
		return
	}
	p := &Pass{view: v, Rule: rule, target: r.Target}
	p.guard()
	if p.skipped != "" && len(p.out) == 0 {
		r.skip(rule.ID, p.skipped)
		return
	}
	for _, f := range p.out {
		if f.Hint == "" {
			f.Hint = rule.Fix()
		}
	}
	r.Run = append(r.Run, rule.ID)
	r.Findings = append(r.Findings, p.out...)
}

// guard runs the check. A panic is our own bug, not the package's: it
// becomes a finding that says so.
func (p *Pass) guard() {
	defer func() {
		if e := recover(); e != nil {
			where := ""
			for line := range strings.SplitSeq(string(debug.Stack()), "\n") {
				if i := strings.Index(line, "/inspect/rules_"); i >= 0 {
					where = " at " + strings.TrimPrefix(strings.Fields(line[i+1:])[0], "inspect/")
					break
				}
			}
			p.Report(diag.Pos{}, "the check itself failed%s: %v", where, e).As(Error).Fix("this is a bug of anepkg; report it with the package's name")
		}
	}()
	p.Rule.Check(p)
}

func (v *view) anyProgram() bool {
	return slices.ContainsFunc(v.parts, func(p *partView) bool { return p.model != nil && p.err == nil })
}

// finish raises severities for the targets, drops repeats and baseline
// findings, sorts and counts.
func (r *ValidateReport) finish(opts Options) {
	for _, f := range r.Findings {
		r.Target.judge(f)
	}
	slices.SortStableFunc(r.Findings, compareFindings)
	r.Findings = slices.CompactFunc(r.Findings, func(a, b *Finding) bool {
		return a.ID == b.ID && a.Message == b.Message && a.Severity == b.Severity && reflect.DeepEqual(a.Where, b.Where)
	})
	r.Findings = slices.DeleteFunc(r.Findings, func(f *Finding) bool {
		known := slices.Contains(opts.Baseline, f.Fingerprint())
		if known {
			r.Suppressed++
		}
		return known
	})
	r.suppress(opts)
	for _, f := range r.Findings {
		switch f.Severity {
		case Error:
			r.Summary.Error++
		case Warning:
			r.Summary.Warning++
		default:
			r.Summary.Note++
		}
	}
}

func rank(s Severity) int {
	switch s {
	case Error:
		return 0
	case Warning:
		return 1
	}
	return 2
}

func compareFindings(a, b *Finding) int {
	return cmp.Or(cmp.Compare(rank(a.Severity), rank(b.Severity)), strings.Compare(a.ID, b.ID), compareWhere(a.Where, b.Where), strings.Compare(a.Message, b.Message))
}

func compareWhere(a, b []Where) int {
	if len(a) == 0 || len(b) == 0 {
		return cmp.Compare(len(a), len(b))
	}
	num := func(n *int) int {
		if n == nil {
			return 0
		}
		return *n
	}
	off := func(n *int64) int64 {
		if n == nil {
			return 0
		}
		return *n
	}
	x, y := a[0], b[0]
	return cmp.Or(strings.Compare(x.File, y.File), cmp.Compare(num(x.Line), num(y.Line)), cmp.Compare(num(x.Column), num(y.Column)), cmp.Compare(off(x.Offset), off(y.Offset)))
}

// Fingerprint identifies a finding across runs: its id, file and message,
// not its line, so that edits elsewhere in the file do not change it.
func (f *Finding) Fingerprint() string {
	file := ""
	if len(f.Where) > 0 {
		file = f.Where[0].File
	}
	h := sha256.Sum256([]byte(f.ID + "\x00" + file + "\x00" + f.Message))
	return hex.EncodeToString(h[:12])
}

// ReadBaseline reads fingerprints out of the JSON that "anepkg validate
// --json" wrote.
func ReadBaseline(data []byte) ([]string, error) {
	var r ValidateReport
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, diag.Errorf(diag.Pos{}, diag.Malformed, "baseline is not the JSON of validate: %w", err)
	}
	if r.Schema != "anepkg.validate/1" {
		return nil, diag.Errorf(diag.Pos{}, diag.Malformed, "baseline: got schema %q, want anepkg.validate/1", r.Schema).WithHint("write one with anepkg validate --json")
	}
	out := make([]string, 0, len(r.Findings))
	for i, f := range r.Findings {
		if f == nil {
			return nil, diag.Errorf(diag.Pos{}, diag.Malformed, "baseline: finding %d is null", i).WithHint("write one with anepkg validate --json")
		}
		out = append(out, f.Fingerprint())
	}
	return out, nil
}

// Explain returns the rule called id.
func Explain(id string) (Rule, error) {
	for _, r := range Catalogue() {
		if strings.EqualFold(r.ID, id) {
			return r, nil
		}
	}
	return Rule{}, diag.Errorf(diag.Pos{}, diag.NotFound, "no check is called %q", id).WithHint("anepkg checks lists them all")
}

func (s SkippedCheck) String() string { return fmt.Sprintf("%s: %s", s.ID, s.Reason) }
