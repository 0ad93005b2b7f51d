package native

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/coreml/backendtest"
	"github.com/anepkg/anepkg/coreml/sharedtest"
)

// onMac skips tests that ask Apple's Core ML, unless "make mac-check" runs
// them: a machine of a CI service may have none that works.
func onMac(t *testing.T) *Backend {
	t.Helper()
	if os.Getenv("ANEPKG_MAC_CHECK") != "1" {
		t.Skip("make mac-check runs this")
	}
	b, err := New(Options{CacheDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestMembersOnThisMac asks the system for every method of the table that its
// version should have.
func TestMembersOnThisMac(t *testing.T) {
	b := onMac(t)
	ofClass, ofInstances := registerSelector("respondsToSelector:"), registerSelector("instancesRespondToSelector:")
	for _, m := range members {
		if b.host.Before(m.since) {
			continue
		}
		c := lookUpClass(m.class)
		if c == 0 {
			t.Errorf("macOS %s has no class %s, which the table has from macOS %s on", b.host, m.class, m.since)
			continue
		}
		ask := ofInstances
		if m.static {
			ask = ofClass
		}
		if !truth(message(c, ask, []uintptr{registerSelector(m.selector)})) {
			t.Errorf("macOS %s: %s has no method %s, which the table has from macOS %s on", b.host, m.class, m.selector, m.since)
		}
	}
	for name, since := range kinds {
		if !b.host.Before(since) && lookUpClass(name) == 0 {
			t.Errorf("macOS %s has no class %s", b.host, name)
		}
	}
}

// TestCasesOnThisMac runs the cases of the conformance suite on Core ML's CPU
// within the suite's tolerances for any engine. Ops that Core ML refuses or
// computes otherwise fail; the counts are printed.
func TestCasesOnThisMac(t *testing.T) {
	b := onMac(t)
	var report backendtest.Report
	t.Cleanup(func() { t.Logf("\n%s", &report) })
	d := &describing{Backend: b, dir: t.TempDir(), units: "cpuOnly", made: map[*coreml.Model]*coreml.Model{}}
	t.Cleanup(d.close)
	backendtest.Run(t, d, backendtest.Options{Report: &report, Skip: func(op, name string) string {
		if flexible(t.Context(), op, name) {
			return "an input is flexible"
		}
		return notInCoreML(t.Context(), op, name)
	}})
}

// TestModelsOnThisMac runs the real networks of the conformance suite, whose
// outputs an outside oracle computed.
func TestModelsOnThisMac(t *testing.T) {
	b := onMac(t)
	shared := sharedtest.Path(t, "vectors", "models")
	backendtest.RunModels(t, b, backendtest.Options{}, filepath.Dir(filepath.Dir(shared)))
}
