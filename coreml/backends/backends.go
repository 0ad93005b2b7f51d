// Package backends is the table that joins the backends: the only package
// that imports all of them. A program that wants one by name, or the best one
// of the machine, asks here; the packages above and below know only the
// coreml.Backend interface.
//
// Files: backends.go (the table), auto.go (the best backend for a package).
// The test that holds the import directions of the whole module is
// imports_test.go.
package backends

import (
	"context"
	"log/slog"
	"strings"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/coreml/cpu"
	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/coreml/native"
)

// Auto is the name that stands for the best backend of this machine.
const Auto = "auto"

// Options tune a backend. The zero value works.
type Options struct {
	// CacheDir is the folder for what Core ML compiles and for copies of
	// models that are not in a folder of the disk; "" = such models are refused.
	CacheDir string
	Logger   *slog.Logger // nil = discard
}

// Names lists the backends of this build, the best one first.
func Names() []string {
	if native.Linked {
		return []string{native.Name, "cpu"}
	}
	return []string{"cpu"}
}

// OpInfo describes an op of the CPU engine.
type OpInfo = cpu.OpInfo

// Ops lists the ops that the CPU engine executes, sorted by name.
func Ops() []OpInfo { return cpu.Ops() }

// CPUInfo says what the CPU engine runs on.
type CPUInfo = cpu.Info

// CPU describes this processor and the kernels chosen for it.
func CPU() CPUInfo { return cpu.Describe() }

// New makes the backend called name; Auto and "" mean a coreml.Chooser, which
// takes Core ML for the packages that it runs on this machine and the CPU
// engine for others. Core ML where there is none is an error of class
// diag.Unsupported, an unknown name one of class diag.Usage.
func New(name string, o Options) (coreml.Backend, error) {
	switch name {
	case "cpu":
		return cpu.New(), nil
	case native.Name:
		return newNative(o)
	case Auto, "":
		return newAuto(o), nil
	}
	return nil, diag.Errorf(diag.Pos{}, diag.Usage, "unknown backend %q; this build has %s", name, strings.Join(Names(), ", "))
}

func newNative(o Options) (*native.Backend, error) {
	return native.New(native.Options{CacheDir: o.CacheDir, Logger: o.Logger})
}

// ComputePlan asks Core ML where it would run each op of one function of m,
// with the given compute units ("" = all). It needs macOS 14.4; elsewhere it
// is an error of class diag.Unsupported.
func ComputePlan(ctx context.Context, m *coreml.Model, function, units string, o Options) (*coreml.ComputePlan, error) {
	b, err := newNative(o)
	if err != nil {
		return nil, diag.Errorf(diag.Pos{}, diag.Unsupported, "compute plans come from Core ML on macOS 14.4 or later: %w", err).
			WithHint("run the command on a Mac; \"anepkg validate --target ane\" tells here what the Neural Engine refuses")
	}
	return b.ComputePlan(ctx, m, function, units)
}
