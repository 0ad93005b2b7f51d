package coreml

import (
	"context"
	"errors"
	"log/slog"

	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/coreml/tensor"
)

// Backend runs models: the CPU engine on any system, Core ML on macOS.
type Backend interface {
	// Name is "cpu" or "coreml".
	Name() string
	// Load prepares one function of a model ("" = the default). Loading two
	// functions of one model shares what can be shared. The Session keeps
	// using m until it is closed; m must stay open.
	//
	// A program that the backend cannot run is an error of class
	// diag.Unsupported that lists every such op with line and count.
	Load(ctx context.Context, m *Model, function string, opts LoadOptions) (Session, error)
	// NewState makes one state object, all zeros, that holds every state in
	// features (duplicates by name must agree in type and shape; else an
	// error of class diag.Mismatch names both).
	NewState(features []Feature) (State, error)
}

// Chooser is a backend that stands for several. Who loads a whole package asks
// it once and then uses one of the choices for every part, since states
// belong to one backend.
type Chooser interface {
	Backend
	// Choose returns the backends to try for these models, the best first;
	// there is at least one.
	Choose(models []*Model, opts LoadOptions) []Choice
}

// Choice is a backend with the reason, in one sentence without a full stop,
// why it is where it stands.
type Choice struct {
	Backend Backend
	Reason  string
}

// Refused reports whether err, of a Load, is one after which another backend
// may do: this one cannot run the model, as opposed to a damaged model or a
// user who gave up.
func Refused(err error) bool {
	switch diag.CodeOf(err) {
	case diag.Unsupported, diag.RunFailed, diag.Mismatch:
		return !errors.Is(err, context.Canceled)
	}
	return false
}

// Precision is how the CPU engine rounds.
type Precision string

// The precisions of the CPU engine.
const (
	// Fast may keep fp32 inside a fused group of ops.
	Fast Precision = "fast"
	// Strict rounds every fp16 result to fp16 after each op.
	Strict Precision = "strict"
	// ANE is Strict plus the Neural Engine's known deviations (fp16
	// subnormals flushed to zero, coarse sigmoid), for diagnosis.
	ANE Precision = "ane"
)

// LoadOptions tune Load. The zero value works.
type LoadOptions struct {
	ComputeUnits string       // Core ML only: "all", "cpuAndNeuralEngine", "cpuAndGPU", "cpuOnly"; "" = all
	Precision    Precision    // CPU only; "" = Fast
	Threads      int          // CPU only; 0 = number of CPUs
	Logger       *slog.Logger // nil = discard
	Observer     Observer     // CPU only; nil = none. Called after each op, in program order
	Profile      *Profile     // CPU only; nil = none. Time per op type is added to it
	// ReuseOutputs lets every Predict overwrite and return the tensors that
	// the one before returned, so that a step allocates nothing. Such a
	// tensor may be an input of the next Predict: inputs are read before
	// anything is overwritten. A backend may ignore the option.
	ReuseOutputs bool
	// WithoutWeights takes zeros for everything in weight files, which need
	// not be there: to see that a program can be loaded, not to run it. CPU
	// only.
	WithoutWeights bool
}

// OpEvent is what an Observer sees.
type OpEvent struct {
	Function string
	Op       string // operation type
	Name     string // result identifier
	File     string
	Line     int
	// Value materialises the result; nil for an op without one. It must not
	// be kept after the call returns.
	Value func() (*tensor.Tensor, error)
	// Operands materialises the op's operands, in the program's order,
	// leaving out states. They must not be kept either.
	Operands func() ([]*tensor.Tensor, error)
	// Constant tells of each of Operands whether it is a constant of the
	// program; nil = not known.
	Constant []bool
}

// Observer is told of every executed op. An error stops the prediction.
type Observer func(OpEvent) error

// Session is a loaded function. It is not safe for concurrent use.
type Session interface {
	// Function describes the loaded function.
	Function() *Function
	// Predict runs the function once. Inputs are checked (name, element
	// type, shape) before anything runs. State may be nil when the function
	// has none; it is updated in place. The returned tensors are the
	// caller's; with LoadOptions.ReuseOutputs only until the next call. A missing or extra input is an error of class diag.Usage.
	Predict(ctx context.Context, inputs map[string]*tensor.Tensor, state State) (map[string]*tensor.Tensor, error)
	Close() error
}

// State holds the states of one conversation. It may be shared by the
// sessions of every chunk and function that declare the same names. It is
// not safe for concurrent use.
type State interface {
	Names() []string // sorted
	// Read copies a state out.
	Read(name string) (*tensor.Tensor, error)
	// Write replaces a state's contents; element type and shape must match.
	Write(name string, t *tensor.Tensor) error
	// Snapshot copies everything; Restore brings it back.
	Snapshot() (Snapshot, error)
	Restore(Snapshot) error
	// Reset sets every state to zero.
	Reset() error
	Close() error
}

// Snapshot is a copy of all states, by name.
type Snapshot map[string]*tensor.Tensor

// WriteAll writes every state of the snapshot to s, which must have exactly
// these: else an error of class diag.Usage.
func (snap Snapshot) WriteAll(s State) error {
	names := s.Names()
	if len(snap) != len(names) {
		return diag.Errorf(diag.Pos{}, diag.Usage, "the snapshot has %d states, want %d", len(snap), len(names))
	}
	for _, name := range names {
		t := snap[name]
		if t == nil {
			return diag.Errorf(diag.Pos{}, diag.Usage, "the snapshot lacks state %q", name)
		}
		if err := s.Write(name, t); err != nil {
			return err
		}
	}
	return nil
}
