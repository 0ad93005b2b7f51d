package cpu_test

import (
	"flag"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/coreml/backendtest"
	"github.com/anepkg/anepkg/coreml/cpu"
)

// -ops limits TestConformance to some files of vectors: go test -run
// Conformance -ops add,conv.
var onlyOps = flag.String("ops", "", "ops to run, separated by commas")

// TestConformance runs every case of the shared suite, within the tolerances
// of engines that accumulate in fp32.
func TestConformance(t *testing.T) {
	for _, p := range []coreml.Precision{coreml.Strict, coreml.Fast} {
		t.Run(string(p), func(t *testing.T) {
			o := backendtest.Options{Precision: p, Threads: 2, Tight: true}
			if *onlyOps != "" {
				o.Ops = strings.Split(*onlyOps, ",")
			}
			backendtest.Run(t, cpu.New(), o)
		})
	}
}

// TestModels runs the real networks of the shared vectors.
func TestModels(t *testing.T) {
	if testing.Short() {
		t.Skip("runs whole networks")
	}
	shared := sharedFolder(t, "vectors", "models")
	for _, p := range []coreml.Precision{coreml.Strict, coreml.Fast} {
		t.Run(string(p), func(t *testing.T) {
			backendtest.RunModels(t, cpu.New(), backendtest.Options{Precision: p, Threads: 2}, filepath.Dir(filepath.Dir(shared)))
		})
	}
}
