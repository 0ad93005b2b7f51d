package main

import (
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/inspect"
	"github.com/anepkg/anepkg/manifest"
)

// validateFormats are the values of --format that validate knows.
var validateFormats = []string{"text", "json", "sarif", "junit", "github", "markdown"}

// reportFormats are the writers of the formats that are neither text nor
// JSON.
var reportFormats = map[string]func(io.Writer, *inspect.ValidateReport, inspect.Severity) error{
	"sarif":    writeSARIF,
	"junit":    writeJUnit,
	"github":   writeGitHub,
	"markdown": writeMarkdown,
}

// severities are the values of --fail-level, the worst first.
var severities = []string{string(inspect.Error), string(inspect.Warning), string(inspect.Note)}

const validateText = `  Compares what the files of a package claim with what its programs say, and
  both with what the known runtimes need. Exit status 1 means findings at or
  above --fail-level. "anepkg checks" lists the checks.
  --target names the systems, chips or runtimes that the package is meant for:
  what fails there is an error, what fails only elsewhere a note. Without it the
  systems from the package's own minimum on are assumed.
  --load loads every function too, with the backend of --backend, in a process
  of its own: one that the system kills is a finding.`

func (t *tool) validateCommand() *cli.Command {
	return &cli.Command{
		Name:        "validate",
		Usage:       "find what is wrong with a package",
		ArgsUsage:   targetUsage,
		Description: validateText,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "fail-level", Usage: "the least `SEVERITY` that fails: error, warning or note", Value: "error"},
			&cli.StringSliceFlag{Name: "only", Usage: "only these checks: `IDS` or families such as WGT, with commas"},
			&cli.StringSliceFlag{Name: "skip", Usage: "leave out these checks: `IDS` or families"},
			&cli.BoolFlag{Name: "fast", Usage: "read no weight data"},
			&cli.StringSliceFlag{Name: "target", Usage: "judge for these `TARGETS`, whose findings become errors: " + strings.Join(inspect.Targets(), ", ")},
			&cli.BoolFlag{Name: "no-suppress", Usage: "ignore the package's " + inspect.SuppressionFile},
			&cli.StringFlag{Name: "baseline", Usage: "leave out the findings in `FILE`, an earlier output with --json"},
			&cli.BoolFlag{Name: "load", Usage: "load every function of every part too"},
			backendFlag(), unitsFlag(),
			&cli.BoolFlag{Name: "isolate", Usage: "let a second process do the loads of --load; --isolate=false uses this one", Value: true},
		},
		Action: func(c *cli.Context) error {
			level := c.String("fail-level")
			if !slices.Contains(severities, level) {
				return usagef("--fail-level %s: want %s", level, orList(severities)).WithHint("%s", didYouMean(level, severities, ""))
			}
			opts := inspect.Options{Only: listFlag(c, "only"), Skip: listFlag(c, "skip"), Fast: c.Bool("fast"), Targets: listFlag(c, "target")}
			if name := c.String("baseline"); c.IsSet("baseline") {
				var err error
				if opts.Baseline, err = readBaseline(name); err != nil {
					return err
				}
			}
			if err := loadFlags(c); err != nil {
				return err
			}
			return t.withTarget(c, func(tg *target) error {
				return t.openPackage(c.Context, tg, func(pkg *manifest.Package) error {
					if !c.Bool("no-suppress") {
						var err error
						if opts.Suppress, err = inspect.Suppressions(pkg); err != nil {
							return err
						}
					}
					report, err := inspect.Validate(c.Context, pkg, opts)
					if err != nil {
						return err
					}
					if !c.Bool("load") {
						return t.printReport(report, nil, inspect.Severity(level))
					}
					loads, err := t.addLoads(c, pkg, report)
					if err != nil {
						return err
					}
					return t.printReport(report, loads, inspect.Severity(level))
				})
			})
		},
	}
}

// listFlag returns the values of a flag that may be repeated and holds lists
// with commas.
func listFlag(c *cli.Context, name string) []string {
	var out []string
	for _, v := range c.StringSlice(name) {
		for _, item := range strings.Split(v, ",") {
			if item = strings.TrimSpace(item); item != "" {
				out = append(out, item)
			}
		}
	}
	return out
}

func readBaseline(name string) ([]string, error) {
	text, err := readFileBounded(name)
	if err != nil {
		return nil, err
	}
	known, err := inspect.ReadBaseline([]byte(text))
	if err != nil {
		var e *diag.Error
		if errors.As(err, &e) && e.Pos.IsZero() {
			e.Pos = diag.In(name)
		}
		return nil, err
	}
	return known, nil
}

// loadFlags refuses flags of --load without it.
func loadFlags(c *cli.Context) error {
	if c.Bool("load") {
		if c.Bool("fast") {
			return usagef("--fast and --load exclude each other: a load reads the weights")
		}
		return nil
	}
	for _, f := range []string{"backend", "compute-units", "isolate"} {
		if c.IsSet(f) {
			return usagef("--%s goes with --load", f)
		}
	}
	return nil
}

// printReport writes the report and returns errFindings when it fails. loads
// are those of --load, nil without it.
func (t *tool) printReport(r *inspect.ValidateReport, loads []loadResult, level inspect.Severity) error {
	var err error
	switch t.global.format {
	case "json":
		if loads == nil {
			t.writeJSON(r.Schema, r)
			break
		}
		t.writeJSON(r.Schema, loadReport{*r, loads})
	case "text":
		err = r.WriteText(t.stdout, t.style(t.stdoutTTY).on)
		if loads != nil {
			t.loadsText(loads)
		}
	default:
		err = reportFormats[t.global.format](t.stdout, r, level)
	}
	if err != nil {
		return err
	}
	if failures(r, level) > 0 {
		return errFindings
	}
	return nil
}

// failures counts the findings at or above level.
func failures(r *inspect.ValidateReport, level inspect.Severity) int {
	n := 0
	for _, f := range r.Findings {
		if reaches(f.Severity, level) {
			n++
		}
	}
	return n
}

// reaches reports whether a severity is at or above level.
func reaches(s, level inspect.Severity) bool {
	return slices.Index(severities, string(s)) <= slices.Index(severities, string(level))
}
