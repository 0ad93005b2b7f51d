package runner

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/coreml/tensor"
	"github.com/anepkg/anepkg/manifest"
)

// part is one decoder chunk, or another part, with its loaded functions. A
// chunk may come from two files: the one with infer and prefill and the _rot
// one.
type part struct {
	name  string // for messages: path, with the chunk number
	units map[string]*unit
	order []string
}

// unit is one loaded function.
type unit struct {
	part *part
	path string
	fn   *coreml.Function
	sess coreml.Session
}

func (p *part) add(fn string, u *unit) {
	if p.units == nil {
		p.units = map[string]*unit{}
	}
	u.part = p
	p.units[fn] = u
	p.order = append(p.order, fn)
}

// unit returns a loaded function.
func (p *part) unit(fn string) (*unit, error) {
	if u := p.units[fn]; u != nil {
		return u, nil
	}
	return nil, diag.Errorf(diag.Pos{}, diag.Usage, "%s: function %s was not loaded for the prefill mode that Open was given", p.name, fn)
}

// stateFeatures are the states of all functions, each name once per shape.
func (p *part) stateFeatures() []coreml.Feature {
	var out []coreml.Feature
	for _, fn := range p.order {
		for _, f := range p.units[fn].fn.States {
			if known := featureNamed(out, f.Name); known == nil || !slices.Equal(known.Shape, f.Shape) {
				out = append(out, f)
			}
		}
	}
	return out
}

func (p *part) close() error {
	var errs []error
	for _, fn := range p.order {
		errs = append(errs, p.units[fn].close())
	}
	return errors.Join(errs...)
}

func (u *unit) close() error { return u.sess.Close() }

func (u *unit) pos() diag.Pos { return diag.In(u.path) }

// label names the part and function for messages.
func (u *unit) label() string { return u.part.name + " function " + u.fn.Name }

// predict runs the function. Cancellation becomes class diag.Interrupted;
// an error without a class becomes diag.RunFailed at the part.
func (u *unit) predict(ctx context.Context, in map[string]*tensor.Tensor, st coreml.State) (map[string]*tensor.Tensor, error) {
	if err := ctx.Err(); err != nil {
		return nil, interrupted(err)
	}
	out, err := u.sess.Predict(ctx, in, st)
	switch {
	case err == nil:
		return out, nil
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return nil, interrupted(err)
	case diag.CodeOf(err) == "":
		return nil, diag.Errorf(u.pos(), diag.RunFailed, "function %s: %w", u.fn.Name, err)
	}
	return nil, fmt.Errorf("%s: %w", u.label(), err)
}

func interrupted(err error) error {
	return diag.Errorf(diag.Pos{}, diag.Interrupted, "stopped: %w", err)
}

// output returns the output called name, or the only one.
func (u *unit) output(out map[string]*tensor.Tensor, name string) (*tensor.Tensor, error) {
	if t := out[name]; t != nil {
		return t, nil
	}
	if len(out) == 1 {
		for _, t := range out {
			return t, nil
		}
	}
	return nil, diag.Errorf(u.pos(), diag.Mismatch, "function %s gave no output %s", u.fn.Name, name)
}

// firstNaN returns the index of the first NaN, or -1.
func firstNaN(t *tensor.Tensor) int {
	if t == nil || !t.DType.IsFloat() {
		return -1
	}
	for i, n := 0, t.Len(); i < n; i++ {
		if math.IsNaN(t.Float64(i)) {
			return i
		}
	}
	return -1
}

// loader opens sessions and counts them for progress.
type loader struct {
	pkg     *manifest.Package
	backend coreml.Backend
	opts    Options
	reuse   bool // outputs are used before the function runs again
	done    int
	total   int
	open    []coreml.Session
}

func (l *loader) progress(part, fn string) {
	if l.opts.Progress != nil {
		l.opts.Progress(Event{Phase: Loading, Part: part, Function: fn, Done: l.done, Total: l.total})
	}
}

func (l *loader) model(ctx context.Context, pt *manifest.Part) (*coreml.Model, error) {
	return l.pkg.Model(ctx, pt)
}

// load makes a unit of one function of pt.
func (l *loader) load(ctx context.Context, pt *manifest.Part, m *coreml.Model, fn string) (*unit, error) {
	if err := ctx.Err(); err != nil {
		return nil, interrupted(err)
	}
	l.progress(pt.Path, fn)
	load := l.opts.load()
	load.ReuseOutputs = l.reuse
	sess, err := l.backend.Load(ctx, m, fn, load)
	if err != nil {
		if ctx.Err() != nil {
			return nil, interrupted(err)
		}
		return nil, err
	}
	l.open = append(l.open, sess)
	l.done++
	l.progress(pt.Path, fn)
	return &unit{path: pt.Path, fn: sess.Function(), sess: sess}, nil
}

// close closes every session; for a failed Open.
func (l *loader) close() error {
	var errs []error
	for _, s := range l.open {
		errs = append(errs, s.Close())
	}
	return errors.Join(errs...)
}
