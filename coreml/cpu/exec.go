package cpu

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/coreml/mil"
	"github.com/anepkg/anepkg/coreml/tensor"
)

// session is a loaded function. It owns its workers and its memory.
type session struct {
	*graph
	opts   coreml.LoadOptions
	pool   *pool
	arena  arena
	mem    memory
	calls  []*call  // by depth of nested blocks
	depth  int      // of the block that runs
	vals   []*value // by value id, during a run
	state  *State   // during a run
	closed bool
	// results are what the last run returned, with LoadOptions.ReuseOutputs.
	results map[string]*tensor.Tensor
}

func newSession(g *graph, opts coreml.LoadOptions) *session {
	return &session{graph: g, opts: opts, pool: newPool(opts.Threads)}
}

// prepare readies the session for its first run.
func (s *session) prepare() {
	s.vals = make([]*value, len(s.types))
}

// Function describes the loaded function.
func (s *session) Function() *coreml.Function { return s.fn }

// Close stops the workers. The session cannot be used after it.
func (s *session) Close() error {
	if !s.closed {
		s.closed = true
		s.pool.close()
	}
	return nil
}

// Predict runs the function once.
func (s *session) Predict(ctx context.Context, inputs map[string]*tensor.Tensor, state coreml.State) (map[string]*tensor.Tensor, error) {
	if s.closed {
		return nil, diag.Errorf(diag.In(s.model.Path), diag.Usage, "the session of function %s is closed", s.fn.Name)
	}
	defer s.clear()
	if err := s.bind(inputs, state); err != nil {
		return nil, err
	}
	if err := s.runNodes(ctx, s.nodes); err != nil {
		return nil, err
	}
	outs := s.results
	if outs == nil || !s.opts.ReuseOutputs {
		outs = make(map[string]*tensor.Tensor, len(s.outs))
	}
	for i, id := range s.outs {
		v := s.value(id)
		if v == nil {
			return nil, diag.Errorf(diag.In(s.model.ProgramFile), diag.Malformed, "function %s returns the state %q, which is no value", s.fn.Name, s.names[id])
		}
		name := s.fn.Program.Body.Outputs[i].Name
		t, err := v.copyTo(outs[name])
		if err != nil {
			return nil, diag.Errorf(diag.In(s.model.ProgramFile), diag.Unsupported, "result %q: %w", s.names[id], err)
		}
		outs[name] = t
	}
	if s.opts.ReuseOutputs {
		s.results = outs
	}
	return outs, nil
}

// bind checks the inputs and the state and puts them in place.
func (s *session) bind(inputs map[string]*tensor.Tensor, state coreml.State) error {
	used := 0
	for _, id := range s.params {
		name, typ := s.names[id], s.types[id]
		if typ.IsState() {
			continue
		}
		t, ok := inputs[name]
		if !ok || t == nil {
			return s.usage("input %q is missing: %s wants %s", name, s.fn.Name, typ)
		}
		used++
		if err := s.checkInput(name, typ, t); err != nil {
			return err
		}
		s.vals[id] = s.fromTensor(t)
	}
	if used != len(inputs) {
		for _, name := range sortedNames(inputs) {
			if s.fn.Input(name) == nil {
				return s.usage("function %s has no input %q; it has %s", s.fn.Name, name, featureNames(s.fn.Inputs))
			}
		}
	}
	return s.bindState(state)
}

func (s *session) usage(format string, args ...any) error {
	return diag.Errorf(diag.In(s.model.Path), diag.Usage, format, args...)
}

func (s *session) checkInput(name string, typ mil.Type, t *tensor.Tensor) error {
	got := mil.TensorOf(t.DType, t.Shape...)
	if t.DType != typ.DType || !fits(t.Shape, typ.Shape) {
		return s.usage("input %q is %s, function %s wants %s", name, got, s.fn.Name, typ)
	}
	if err := t.Check(); err != nil {
		return s.usage("input %q: %w", name, err)
	}
	if !t.DType.IsFloat() && !t.DType.IsInt() && t.DType != tensor.Bool {
		return s.usage("input %q is of type %s, which the CPU engine does not take", name, t.DType)
	}
	if f := s.fn.Input(name); f != nil && len(f.Enumerated) > 0 {
		if !slices.ContainsFunc(f.Enumerated, func(e []int) bool { return slices.Equal(e, t.Shape) }) {
			return s.usage("input %q has shape %s, function %s allows %v", name, tensor.ShapeString(t.Shape), s.fn.Name, f.Enumerated)
		}
	}
	return nil
}

// fits reports whether a concrete shape matches a declared one.
func fits(got, declared []int) bool {
	if len(got) != len(declared) {
		return false
	}
	for i, d := range declared {
		if d != mil.Unknown && d != got[i] {
			return false
		}
	}
	return true
}

// value returns a constant or what the run has computed.
func (s *session) value(id int) *value {
	if v := s.consts[id]; v != nil {
		return v
	}
	return s.vals[id]
}

// clear lets go of everything a run left behind.
func (s *session) clear() {
	for id, v := range s.vals {
		if v != nil {
			v.buf.release()
			s.vals[id] = nil
		}
	}
	s.state = nil
	s.mem.reset()
}

// nextCall returns the call of the block that is about to run.
func (s *session) nextCall() *call {
	if s.depth == len(s.calls) {
		s.calls = append(s.calls, &call{s: s, m: &s.mem})
	}
	s.depth++
	return s.calls[s.depth-1]
}

// runNodes executes nodes in file order.
func (s *session) runNodes(ctx context.Context, nodes []*node) error {
	c := s.nextCall()
	defer func() { s.depth-- }()
	for _, n := range nodes {
		if err := ctx.Err(); err != nil {
			return err
		}
		c.n, c.rounded = n, false
		c.in = resize(c.in, len(n.ins))
		c.out = resize(c.out, len(n.outs))
		for i, id := range n.ins {
			c.in[i] = s.value(id)
		}
		if len(n.blocks) > 0 {
			c.ctx = ctx
		}
		var start time.Time
		if s.opts.Profile != nil {
			start = time.Now()
		}
		if err := s.exec(c); err != nil {
			return err
		}
		if s.opts.Profile != nil {
			s.opts.Profile.Add(n.op.Type, time.Since(start))
		}
		for i, id := range n.outs {
			s.vals[id] = c.out[i]
		}
		if s.opts.Observer != nil {
			if err := s.observe(n); err != nil {
				return err
			}
		}
		for i, id := range n.ins {
			if n.last[i] {
				s.drop(id)
			}
		}
		for i, id := range n.outs {
			if n.dead[i] {
				s.drop(id)
			}
		}
	}
	return nil
}

func (s *session) drop(id int) {
	if v := s.vals[id]; v != nil {
		v.buf.release()
		s.vals[id] = nil
	}
}

func resize(x []*value, n int) []*value {
	if cap(x) < n {
		return make([]*value, n)
	}
	x = x[:n]
	clear(x)
	return x
}

// exec runs one kernel, rounds its results and checks them.
func (s *session) exec(c *call) (err error) {
	defer func() {
		if r := recover(); r != nil {
			code := diag.Malformed
			if e, ok := r.(error); ok && diag.CodeOf(e) != "" {
				code = diag.CodeOf(e)
			}
			e := s.opErrorf(c.n.op, code, "%v", r)
			s.opts.Logger.Debug("kernel panic", "op", c.n.op.Type, "value", r, "stack", string(debug.Stack()))
			err = e
		}
		for _, b := range c.tmp {
			b.release()
		}
		c.tmp = c.tmp[:0]
	}()
	if !c.n.def.views {
		c.settle()
	}
	if err := c.n.kern(c); err != nil {
		var de *diag.Error
		if errors.As(err, &de) && !de.Pos.IsZero() || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			return err
		}
		return s.opErrorf(c.n.op, diag.Malformed, "%w", err)
	}
	for i, v := range c.out {
		if v == nil {
			return s.opErrorf(c.n.op, diag.Malformed, "result %d was not computed", i)
		}
		if !c.n.def.exact && !c.rounded && v.f != nil {
			c.round(v)
		}
		if t := c.n.op.Outputs[i].Type; t.Kind == mil.TensorType {
			if v.dtype != t.DType || !fits(v.shape, t.Shape) {
				return s.opErrorf(c.n.op, diag.Mismatch, "result %q is %s, the program declares %s", c.n.op.Outputs[i].Name, mil.TensorOf(v.dtype, v.shape...), t)
			}
		}
	}
	return nil
}

// round brings a computed result to the precision of its type.
func (c *call) round(v *value) {
	switch v.dtype {
	case tensor.FP16:
		c.rounding = roundJob{x: v.f, flush: c.s.opts.Precision == coreml.ANE}
		c.run(len(v.f), 1<<14, &c.rounding)
	case tensor.BF16:
		for k, x := range v.f {
			v.f[k] = tensor.BF16ToF32(tensor.F32ToBF16(x))
		}
	}
}

// roundJob rounds to fp16.
type roundJob struct {
	x     []float32
	flush bool
}

func (j *roundJob) run(lo, hi int) {
	if j.flush {
		roundHalfFlush(j.x[lo:hi])
		return
	}
	roundHalf(j.x[lo:hi])
}

// roundHalfFlush rounds to fp16 and turns subnormal results into zero, as
// the Neural Engine does.
func roundHalfFlush(x []float32) {
	roundHalf(x)
	for k, v := range x {
		if v > -0x1p-14 && v < 0x1p-14 {
			x[k] = 0
		}
	}
}

func (s *session) opErrorf(op *mil.Op, code diag.Code, format string, args ...any) *diag.Error {
	pos := s.model.Program.At(op.Pos)
	if pos.Line == 0 {
		pos.File = s.model.ProgramFile
	}
	e := diag.Errorf(pos, code, format, args...)
	e.Msg = op.Type + " " + quoteName(op) + ": " + e.Msg
	return e
}

func (s *session) observe(n *node) error {
	pos := s.model.Program.At(n.op.Pos)
	if pos.File == "" {
		pos.File = s.model.ProgramFile
	}
	ev := coreml.OpEvent{Function: s.fn.Name, Op: n.op.Type, File: pos.File, Line: pos.Line, Name: n.op.Name()}
	ev.Operands = func() ([]*tensor.Tensor, error) { return s.operands(n) }
	if len(n.outs) == 0 {
		return s.opts.Observer(ev)
	}
	for i, id := range n.outs {
		v := s.vals[id]
		ev.Name = n.op.Outputs[i].Name
		ev.Value = func() (*tensor.Tensor, error) { return v.toTensor() }
		if err := s.opts.Observer(ev); err != nil {
			return err
		}
	}
	return nil
}

// operands copies the operands of a node that has just run.
func (s *session) operands(n *node) ([]*tensor.Tensor, error) {
	var out []*tensor.Tensor
	for _, id := range n.ins {
		v := s.value(id)
		if v == nil { // a state
			continue
		}
		t, err := v.toTensor()
		if err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, nil
}

func sortedNames[V any](m map[string]V) []string {
	names := make([]string, 0, len(m))
	for n := range m {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

func featureNames(fs []coreml.Feature) string {
	if len(fs) == 0 {
		return "none"
	}
	names := make([]string, len(fs))
	for i, f := range fs {
		names[i] = fmt.Sprintf("%q", f.Name)
	}
	return strings.Join(names, ", ")
}
