package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/inspect"
	"github.com/anepkg/anepkg/manifest"
)

// contradictions are the checks that find parts which cannot belong together,
// are missing or have weight files of the wrong size. A run of such a package
// would give a wrong answer in silence.
var contradictions = []string{"PKG004", "WGT001", "MIL002", "MIL003", "MIL004", "MIL005", "MIL006", "MIL008", "MIL009", "MIL010", "MIL011"}

// claims are the checks that hold the description against the programs. The
// programs win, so that a false claim changes nothing, but it is told.
var claims = []string{"CFG010", "CFG011", "CFG012", "CFG013", "CFG014", "CFG015", "CFG016"}

// preflight refuses a package that contradicts itself, with the finding that
// validate gives, and warns of false claims.
func (t *tool) preflight(ctx context.Context, pkg *manifest.Package) error {
	report, err := inspect.Validate(ctx, pkg, inspect.Options{Only: slices.Concat(contradictions, claims), Fast: true})
	if err != nil {
		return err
	}
	for _, f := range report.Findings {
		if f.Severity != inspect.Error {
			continue
		}
		if slices.Contains(claims, f.ID) {
			t.notef("warning: %s %s: %s; the program's value is used\n", f.ID, f.Title, f.Message)
			continue
		}
		e := diag.Errorf(diag.In(pkg.Path), diag.Mismatch, "%s %s: %s", f.ID, f.Title, f.Message)
		if len(f.Where) > 0 {
			w := f.Where[0]
			e.Pos = diag.In(w.File)
			if w.Line != nil {
				e.Pos.Line = *w.Line
			}
			if w.Column != nil {
				e.Pos.Col = *w.Column
			}
		}
		return e.WithHint("%s", fmt.Sprintf("\"anepkg validate\" tells more; --force runs the package all the same (%s)", f.Hint))
	}
	return nil
}
