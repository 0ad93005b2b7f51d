package backendtest

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/coreml/tensor"
)

// Options choose what Run does.
type Options struct {
	Precision coreml.Precision
	Threads   int
	// Tight holds the backend to the tolerances of engines that accumulate in
	// fp32.
	Tight bool
	// Ops limits the run to some files of cases; nil = all.
	Ops []string
	// Skip gives the reason to leave a case out; "" = run it. nil = run all.
	Skip func(op, name string) string
	// Report, if not nil, counts how the cases end. It is complete when the
	// test that was given to Run has ended.
	Report *Report
}

// Run executes every case as a subtest op/case. The ops run in parallel, so
// they end after Run returns, with t.
func Run(t *testing.T, b coreml.Backend, o Options) {
	t.Helper()
	ops, err := Ops()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range o.Ops {
		if !slices.Contains(ops, want) {
			t.Fatalf("there are no cases for %q", want)
		}
	}
	for _, op := range ops {
		if o.Ops != nil && !slices.Contains(o.Ops, op) {
			continue
		}
		t.Run(op, func(t *testing.T) {
			t.Parallel()
			cases, err := Cases(op)
			if err != nil {
				t.Fatal(err)
			}
			if len(cases) == 0 {
				t.Fatal("no cases")
			}
			for i := range cases {
				c := &cases[i]
				t.Run(c.Name, func(t *testing.T) {
					defer func() { o.Report.add(op, t) }()
					if o.Skip != nil {
						if why := o.Skip(op, c.Name); why != "" {
							t.Skip(why)
						}
					}
					if err := Check(t.Context(), b, c, o); err != nil {
						t.Errorf("%s/%s: %v\n%s", op, c.Name, err, numbered(c.Program))
					}
				})
			}
		})
	}
}

// numbered puts line numbers, as errors name them, before the lines.
func numbered(program string) string {
	var b strings.Builder
	for i, line := range strings.Split(strings.TrimSuffix(program, "\n"), "\n") {
		fmt.Fprintf(&b, "%4d  %s\n", i+1, line)
	}
	return b.String()
}

// Check runs one case and tells what is wrong; nil when nothing is. A case
// that must fail passes when loading or running gives an error.
func Check(ctx context.Context, b coreml.Backend, c *Case, o Options) error {
	err := check(ctx, b, c, o)
	if !c.Error {
		return err
	}
	var m mismatch
	switch {
	case err == nil:
		return errors.New("got no error, want one")
	case errors.As(err, &m):
		return fmt.Errorf("got a result (%w), want an error", err)
	}
	return nil
}

// mismatch is a wrong result, or a defect of the case, as opposed to an error
// of the backend. It never makes a case pass that wants an error.
type mismatch struct{ error }

func (m mismatch) Unwrap() error { return m.error }

func check(ctx context.Context, b coreml.Backend, c *Case, o Options) error {
	m, err := openCase(ctx, c)
	if err != nil {
		return err
	}
	defer m.Close() //nolint:errcheck // in memory
	r := runner{backend: b, model: m, opts: o, sessions: map[string]coreml.Session{}}
	defer r.close()
	if err := r.newState(c); err != nil {
		return err
	}
	for i, s := range c.steps() {
		if err := r.step(ctx, c, s); err != nil {
			return fmt.Errorf("call %d: %w", i, err)
		}
		if !c.Error && len(s.Outputs)+len(s.StatesAfter) == 0 {
			return mismatch{fmt.Errorf("call %d: the case expects nothing", i)}
		}
	}
	return nil
}

func openCase(ctx context.Context, c *Case) (*coreml.Model, error) {
	fsys := fstest.MapFS{"case.mlmodelc/model.mil": {Data: []byte(c.Program)}}
	if c.Weights != "" {
		data, err := base64.StdEncoding.DecodeString(c.Weights)
		if err != nil {
			return nil, mismatch{fmt.Errorf("weights: %w", err)}
		}
		fsys["case.mlmodelc/weights/weight.bin"] = &fstest.MapFile{Data: data}
	}
	return coreml.Open(ctx, fsys, "case.mlmodelc")
}

type runner struct {
	backend  coreml.Backend
	model    *coreml.Model
	opts     Options
	state    coreml.State
	sessions map[string]coreml.Session
}

func (r *runner) close() {
	for _, s := range r.sessions {
		_ = s.Close()
	}
	if r.state != nil {
		_ = r.state.Close()
	}
}

// newState makes one state object for all functions and fills it.
func (r *runner) newState(c *Case) error {
	var features []coreml.Feature
	for _, f := range r.model.Functions {
		features = append(features, f.States...)
	}
	if len(features) == 0 {
		return nil
	}
	var err error
	if r.state, err = r.backend.NewState(features); err != nil {
		return err
	}
	initial, err := tensorsOf(c.States)
	if err != nil {
		return mismatch{err}
	}
	for name, t := range initial {
		if err := r.state.Write(name, t); err != nil {
			return err
		}
	}
	return nil
}

func (r *runner) step(ctx context.Context, c *Case, s Step) error {
	sess := r.sessions[s.Function]
	if sess == nil {
		var err error
		sess, err = r.backend.Load(ctx, r.model, s.Function, coreml.LoadOptions{Precision: r.opts.Precision, Threads: r.opts.Threads})
		if err != nil {
			return err
		}
		r.sessions[s.Function] = sess
	}
	inputs, err := tensorsOf(s.Inputs)
	if err != nil {
		return mismatch{err}
	}
	got, err := sess.Predict(ctx, inputs, r.state)
	if err != nil {
		return err
	}
	if c.Error {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if _, ok := s.Outputs[name]; !ok {
			return mismatch{fmt.Errorf("got a result %s that the program does not return", name)}
		}
	}
	if err := compareAll(got, s.Outputs, c.tolerance(r.opts.Tight), c.UnorderedAxis); err != nil {
		return err
	}
	if len(s.StatesAfter) == 0 {
		return nil
	}
	if r.state == nil {
		return mismatch{errors.New("states are expected of a program without states")}
	}
	after := map[string]*tensor.Tensor{}
	for name := range s.StatesAfter {
		if after[name], err = r.state.Read(name); err != nil {
			return err
		}
	}
	return compareAll(after, s.StatesAfter, Tolerance{}, nil)
}

func compareAll(got map[string]*tensor.Tensor, want map[string]Array, tol Tolerance, unordered *int) error {
	expect, err := tensorsOf(want)
	if err != nil {
		return mismatch{err}
	}
	for _, name := range slices.Sorted(maps.Keys(expect)) {
		g, w := got[name], expect[name]
		if unordered != nil && g != nil && g.DType == w.DType && slices.Equal(g.Shape, w.Shape) && g.Check() == nil {
			g, w = sorted(g, *unordered), sorted(w, *unordered)
		}
		if err := Diff(g, w, tol); err != nil {
			return mismatch{fmt.Errorf("%s %w", name, err)}
		}
	}
	return nil
}
