// Package cpu executes ML Programs on any processor: it is the engine behind
// "anepkg run" off Apple hardware. What each op means is documented in
// docs/ops.md; results of type fp16 are rounded to fp16 after each op and
// sums accumulate in fp32.
//
// Loading a function lowers its ops to nodes with a prepared kernel each,
// folds constants, and works out where each value dies. Running walks the
// nodes in file order. Shapes are computed as the program runs, since
// printed types may hold unknown dimensions; every result is checked against
// the type that the program declares.
//
// Files: cpu.go (Backend), lower.go (program to nodes), plan.go (lifetimes,
// updates in place, masks), builder.go (what an op's constructor sees),
// exec.go (Session), call.go (what a kernel sees), value.go, view.go and
// convert.go (run-time arrays, buffers), memory.go (shapes and headers of one
// run), state.go (states), pool.go (workers),
// optable.go (every op), op_<family>.go (the ops), operand.go and broadcast.go
// (what they share), weight*.go (compressed weights), gemm.go,
// half_portable.go and halftable.go (inner loops), simd_amd64.* and lut*.s
// (their vector versions), info.go (the processor).
package cpu

import (
	"context"
	"log/slog"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/coreml/diag"
)

// Backend is the CPU engine. It has no state of its own; the zero value
// works.
type Backend struct{}

// New returns the CPU engine.
func New() *Backend { return &Backend{} }

// Name returns "cpu".
func (*Backend) Name() string { return "cpu" }

// Load lowers one function of m ("" = the default one). Ops without an entry
// in the table are an error of class diag.Unsupported that lists all of
// them with line and count.
func (*Backend) Load(ctx context.Context, m *coreml.Model, function string, opts coreml.LoadOptions) (coreml.Session, error) {
	f := m.Function(function)
	if f == nil {
		return nil, diag.Errorf(diag.In(m.Path), diag.NotFound, "no function %q; the model has %s", function, functionNames(m))
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	switch opts.Precision {
	case "":
		opts.Precision = coreml.Fast
	case coreml.Fast, coreml.Strict, coreml.ANE:
	default:
		return nil, diag.Errorf(diag.Pos{}, diag.Usage, "precision %q: want fast, strict or ane", opts.Precision)
	}
	return lower(ctx, m, f, opts)
}

func functionNames(m *coreml.Model) string {
	s := ""
	for i, f := range m.Functions {
		if i > 0 {
			s += ", "
		}
		s += f.Name
	}
	if s == "" {
		return "none"
	}
	return s
}
