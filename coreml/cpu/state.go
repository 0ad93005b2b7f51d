package cpu

import (
	"slices"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/coreml/mil"
	"github.com/anepkg/anepkg/coreml/tensor"
)

// State implements coreml.State: one cell per name, shared by every session
// that declares it.
type State struct {
	cells map[string]*stateCell
	names []string
}

// stateCell holds the current contents of one state. Its buffer is counted
// like any other: a reader shares it, so that an update in place is possible
// exactly when nobody else looks.
type stateCell struct {
	typ mil.Type
	v   *value
}

// newBuffer returns memory for the state's contents, which are undefined.
func (cell *stateCell) newBuffer(a *arena) *buffer {
	n := product(cell.typ.Shape)
	switch d := cell.typ.DType; {
	case d == tensor.FP16:
		return a.half(n)
	case d.IsFloat():
		return a.float(n)
	default:
		return a.ints(n)
	}
}

// take makes b, of which the cell becomes a holder, the state's memory. What
// it had goes to the session's arena when its last reader is done.
func (cell *stateCell) take(s *session, b *buffer) {
	old, n := cell.v.buf, product(cell.typ.Shape)
	b.arena, old.arena = nil, &s.arena
	old.release()
	cell.v.buf, cell.v.h, cell.v.f, cell.v.i = b, nil, nil, nil
	switch {
	case b.h != nil:
		cell.v.h = b.h[:n]
	case b.f != nil:
		cell.v.f = b.f[:n]
	default:
		cell.v.i = b.i[:n]
	}
}

// NewState makes a zero state for every distinct name in features.
func (*Backend) NewState(features []coreml.Feature) (coreml.State, error) {
	s := &State{cells: map[string]*stateCell{}}
	for _, f := range features {
		typ := mil.TensorOf(f.DType, f.Shape...)
		if c := s.cells[f.Name]; c != nil {
			if !c.typ.Equal(typ) {
				return nil, diag.Errorf(diag.Pos{}, diag.Mismatch, "state %q is declared %s in one place and %s in another", f.Name, c.typ, typ)
			}
			continue
		}
		if n, err := tensor.NumElements(f.Shape); err != nil {
			return nil, diag.Errorf(diag.Pos{}, diag.Unsupported, "state %q has type %s: %w", f.Name, typ, err)
		} else if n > maxElements {
			return nil, diag.Errorf(diag.Pos{}, diag.TooLarge, "state %q has %d elements, the limit is %d", f.Name, n, maxElements)
		}
		if !f.DType.IsFloat() && !f.DType.IsInt() && f.DType != tensor.Bool {
			return nil, diag.Errorf(diag.Pos{}, diag.Unsupported, "state %q has element type %s", f.Name, f.DType)
		}
		s.cells[f.Name] = &stateCell{typ: typ, v: stateValue(f.DType, f.Shape)}
		s.names = append(s.names, f.Name)
	}
	slices.Sort(s.names)
	return s, nil
}

// stateValue makes a zero value with a buffer of its own, outside any arena.
func stateValue(d tensor.DType, shape []int) *value {
	n := product(shape)
	v := &value{dtype: d, shape: shape}
	b := &buffer{refs: 1}
	switch {
	case d == tensor.FP16:
		b.h = make([]uint16, n)
		v.h = b.h
	case d.IsFloat():
		b.f = make([]float32, n)
		v.f = b.f
	default:
		b.i = make([]int32, n)
		v.i = b.i
	}
	v.buf = b
	return v
}

// Names returns the state names, sorted.
func (s *State) Names() []string { return slices.Clone(s.names) }

func (s *State) cell(name string) (*stateCell, error) {
	if c := s.cells[name]; c != nil {
		return c, nil
	}
	return nil, diag.Errorf(diag.Pos{}, diag.NotFound, "no state %q; there are %v", name, s.names)
}

// Read copies a state out.
func (s *State) Read(name string) (*tensor.Tensor, error) {
	c, err := s.cell(name)
	if err != nil {
		return nil, err
	}
	return c.v.toTensor()
}

// Write replaces a state's contents.
func (s *State) Write(name string, t *tensor.Tensor) error {
	c, err := s.cell(name)
	if err != nil {
		return err
	}
	if got := mil.TensorOf(t.DType, t.Shape...); !got.Equal(c.typ) {
		return diag.Errorf(diag.Pos{}, diag.Usage, "state %q is %s, got %s", name, c.typ, got)
	}
	if err := t.Check(); err != nil {
		return diag.Errorf(diag.Pos{}, diag.Usage, "state %q: %w", name, err)
	}
	v := stateValue(c.typ.DType, c.typ.Shape)
	src := fromBytes(t.DType, t.Shape, t.Data)
	copy(v.h, src.h)
	copy(v.f, src.f)
	copy(v.i, src.i)
	c.v = v
	return nil
}

// Snapshot copies every state.
func (s *State) Snapshot() (coreml.Snapshot, error) {
	snap := make(coreml.Snapshot, len(s.cells))
	for name, c := range s.cells {
		t, err := c.v.toTensor()
		if err != nil {
			return nil, err
		}
		snap[name] = t
	}
	return snap, nil
}

// Restore brings a snapshot back. It must hold exactly the states of s.
func (s *State) Restore(snap coreml.Snapshot) error { return snap.WriteAll(s) }

// Reset sets every state to zero.
func (s *State) Reset() error {
	for _, c := range s.cells {
		c.v = stateValue(c.typ.DType, c.typ.Shape)
	}
	return nil
}

// Close does nothing; memory is collected.
func (s *State) Close() error { return nil }

// bindState checks that state has what the function declares.
func (s *session) bindState(state coreml.State) error {
	s.state = nil
	if len(s.fn.States) == 0 {
		return nil
	}
	st, ok := state.(*State)
	if !ok || st == nil {
		return s.usage("function %s has states (%s), so Predict needs a state object of the CPU engine, got %T", s.fn.Name, featureNames(s.fn.States), state)
	}
	for _, id := range s.params {
		if !s.types[id].IsState() {
			continue
		}
		c := st.cells[s.names[id]]
		if c == nil {
			return s.usage("function %s wants state %q; the state object has %v", s.fn.Name, s.names[id], st.names)
		}
		if want := s.types[id].State(); !c.typ.Equal(mil.TensorOf(want.DType, want.Shape...)) {
			return diag.Errorf(diag.In(s.model.ProgramFile), diag.Mismatch, "state %q is %s here, the state object has %s", s.names[id], want, c.typ)
		}
	}
	s.state = st
	return nil
}
