//go:build gnustep

package native

import (
	"testing"

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

// TestConformanceDescribed runs cases as TestCasesOnThisMac does: each is
// completed with the coremldata.bin that Core ML wants, and loaded from a
// folder.
func TestConformanceDescribed(t *testing.T) {
	d := &describing{Backend: newBackend(t, 0), dir: t.TempDir(), units: "cpuOnly", made: map[*coreml.Model]*coreml.Model{}}
	t.Cleanup(d.close)
	backendtest.Run(t, d, backendtest.Options{Precision: coreml.Strict, Ops: []string{"add", "conv", "slice_update", "constexpr_lut_to_dense"}, Skip: func(op, name string) string {
		return notInCoreML(t.Context(), op, name)
	}})
}
