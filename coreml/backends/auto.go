package backends

import (
	"context"
	"fmt"
	"sync"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/coreml/cpu"
	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/coreml/native"
)

// checker is a backend that can tell without loading whether it runs a model.
type checker interface {
	coreml.Backend
	Check(m *coreml.Model) error
}

// auto is Core ML where it runs a package, else the CPU engine.
type auto struct {
	best    checker // Core ML; nil when it is not there
	missing error   // why best is nil
	cpu     coreml.Backend

	mu   sync.Mutex
	last coreml.Backend // what Load used last
}

func newAuto(o Options) *auto {
	a := &auto{cpu: cpu.New()}
	b, err := newNative(o)
	if err != nil {
		a.missing = err
	} else {
		a.best = b
	}
	a.last = a.cpu
	if a.best != nil {
		a.last = a.best
	}
	return a
}

// Name is that of the backend in use: the one of the last Load.
func (a *auto) Name() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.last.Name()
}

// Choose implements coreml.Chooser.
func (a *auto) Choose(models []*coreml.Model, opts coreml.LoadOptions) []coreml.Choice {
	only := func(format string, args ...any) []coreml.Choice {
		return []coreml.Choice{{Backend: a.cpu, Reason: fmt.Sprintf(format, args...)}}
	}
	switch {
	case a.best == nil:
		return only("%v", a.missing)
	case opts.Observer != nil || opts.Profile != nil:
		return only("only the CPU engine shows single ops")
	case opts.WithoutWeights:
		return only("only the CPU engine loads without weights")
	case opts.Precision != "" && opts.Precision != coreml.Fast:
		return only("precision %s is one of the CPU engine", opts.Precision)
	}
	for _, m := range models {
		if err := a.best.Check(m); err != nil {
			return only("%v", err)
		}
	}
	return []coreml.Choice{
		{Backend: a.best, Reason: "Core ML runs every part of the package on this system"},
		{Backend: a.cpu, Reason: "Core ML did not load the package"},
	}
}

// Load loads one function with the best backend that takes its model. Who
// loads a whole package asks Choose instead.
func (a *auto) Load(ctx context.Context, m *coreml.Model, function string, opts coreml.LoadOptions) (coreml.Session, error) {
	choices := a.Choose([]*coreml.Model{m}, opts)
	for i, c := range choices {
		s, err := c.Backend.Load(ctx, m, function, opts)
		if err != nil && i+1 < len(choices) && coreml.Refused(err) {
			if opts.Logger != nil {
				opts.Logger.Warn("a backend refuses the model; the next is tried", "backend", c.Backend.Name(), "error", err)
			}
			continue
		}
		if err == nil {
			a.mu.Lock()
			a.last = c.Backend
			a.mu.Unlock()
			if opts.Logger != nil {
				opts.Logger.Info("backend chosen", "backend", c.Backend.Name(), "reason", c.Reason)
			}
		}
		return s, err
	}
	return nil, diag.Errorf(diag.In(m.Path), diag.Unsupported, "no backend")
}

// NewState makes a state object for the sessions of the last Load.
func (a *auto) NewState(features []coreml.Feature) (coreml.State, error) {
	a.mu.Lock()
	b := a.last
	a.mu.Unlock()
	return b.NewState(features)
}

var _ checker = (*native.Backend)(nil)
