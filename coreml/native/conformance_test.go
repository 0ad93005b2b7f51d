//go:build gnustep

package native

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/coreml/backendtest"
	"github.com/anepkg/anepkg/coreml/native/fakecoreml"
)

// TestConformance runs the suite of every backend through the bridge, with
// odd strides. Cases that no array of Core ML can carry are left out; how
// many, is held here, so that none goes missing unseen.
func TestConformance(t *testing.T) {
	b := newBackend(t, fakecoreml.Padded|fakecoreml.IgnoreBackings)
	var report backendtest.Report
	t.Run("cases", func(t *testing.T) {
		backendtest.Run(t, b, backendtest.Options{Precision: coreml.Strict, Tight: true, Report: &report, Skip: func(op, name string) string {
			return notInCoreML(t.Context(), op, name)
		}})
	})
	if f := fakecoreml.Faults(); f != "" {
		t.Errorf("the fake saw:\n%s", f)
	}
	passed, skipped := 0, 0
	for _, n := range report.Ops() {
		passed += n.Passed
		skipped += n.Skipped
	}
	t.Logf("%d cases passed, %d have no arrays of Core ML", passed, skipped)
	if passed < 2100 {
		t.Errorf("only %d cases ran", passed)
	}
}

// caseTable finds cases by op, read once.
var caseTable = struct {
	sync.Mutex
	ops map[string][]backendtest.Case
}{ops: map[string][]backendtest.Case{}}

func caseNamed(op, name string) *backendtest.Case {
	caseTable.Lock()
	defer caseTable.Unlock()
	if caseTable.ops[op] == nil {
		cases, err := backendtest.Cases(op)
		if err != nil {
			return nil
		}
		caseTable.ops[op] = cases
	}
	cases := caseTable.ops[op]
	i := slices.IndexFunc(cases, func(c backendtest.Case) bool { return c.Name == name })
	if i < 0 {
		return nil
	}
	return &cases[i]
}

// notInCoreML says why a case cannot be passed through arrays of Core ML.
func notInCoreML(ctx context.Context, op, name string) string {
	c := caseNamed(op, name)
	if c == nil || c.Error {
		return ""
	}
	m, err := coreml.Open(ctx, fstest.MapFS{"m.mlmodelc/model.mil": {Data: []byte(c.Program)}}, "m.mlmodelc")
	if err != nil {
		return ""
	}
	defer m.Close() //nolint:errcheck // in memory
	for _, f := range m.Functions {
		if err := checkFeatures(m, f, Version{15, 0}); err != nil {
			return err.Error()
		}
	}
	for _, s := range append(c.Steps, c.Step) {
		for _, arrays := range []map[string]backendtest.Array{s.Inputs, s.Outputs} {
			for n, a := range arrays {
				if slices.Contains(a.Shape, 0) || len(a.Shape) == 0 {
					return n + " has no dimensions or no elements, which no array of Core ML has"
				}
			}
		}
	}
	return ""
}
