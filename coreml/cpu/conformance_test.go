package cpu_test

import (
	"flag"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/coreml/backendtest"
	"github.com/anepkg/anepkg/coreml/cpu"
	"github.com/anepkg/anepkg/coreml/sharedtest"
)

// -ops limits TestConformance to some files of vectors: go test -run
// Conformance -ops add,conv.
var onlyOps = flag.String("ops", "", "ops to run, separated by commas")

// TestConformance runs every case of the shared suite, within the tolerances
// of engines that accumulate in fp32. With -v it prints a table of the counts.
// Unless -ops or -run choose some, leaving a case out fails.
func TestConformance(t *testing.T) {
	for _, p := range []coreml.Precision{coreml.Strict, coreml.Fast} {
		var report backendtest.Report
		ran := false
		t.Run(string(p), func(t *testing.T) {
			ran = true
			o := backendtest.Options{Precision: p, Threads: 2, Tight: true, Report: &report}
			if *onlyOps != "" {
				o.Ops = strings.Split(*onlyOps, ",")
			}
			backendtest.Run(t, cpu.New(), o)
		})
		if !ran { // not what -run names
			continue
		}
		t.Logf("precision %s\n%s", p, &report)
		if *onlyOps == "" && !selects("test.run") && !selects("test.skip") {
			if missing, err := report.Missing(); err != nil || len(missing) > 0 {
				t.Errorf("precision %s: cases did not run: %q (%v)", p, missing, err)
			}
		}
	}
}

// selects reports whether a flag of go test picks among subtests.
func selects(name string) bool { return strings.Contains(flag.Lookup(name).Value.String(), "/") }

// TestModels runs the real networks of the shared vectors.
func TestModels(t *testing.T) {
	if testing.Short() {
		t.Skip("runs whole networks")
	}
	shared := sharedtest.Path(t, "vectors", "models")
	for _, p := range []coreml.Precision{coreml.Strict, coreml.Fast} {
		t.Run(string(p), func(t *testing.T) {
			backendtest.RunModels(t, cpu.New(), backendtest.Options{Precision: p, Threads: 2}, filepath.Dir(filepath.Dir(shared)))
		})
	}
}
