//go:build darwin || gnustep

package native

import (
	"fmt"
	"slices"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/coreml/mil"
	"github.com/anepkg/anepkg/coreml/tensor"
)

var (
	selNewState   = use("MLModel", "newState")
	selStateArray = use("MLState", "getMultiArrayForStateNamed:handler:")
)

// State implements coreml.State with MLState objects. Only a model can make
// one, so it begins as Go memory and becomes an MLState at the first
// prediction. Functions and chunks that declare the same states share that
// MLState, as ANEMLL's runtime does (anemll.md section 4). A function with
// another set of states gets an MLState of its own; contents that it has in
// common with the others are copied when the latest are elsewhere.
type State struct {
	types map[string]mil.Type
	names []string
	// where says who has the latest contents of a state; nil = no MLState has
	// it yet: the tensor in waiting, or zeros when there is none either.
	where   map[string]*holder
	waiting map[string]*tensor.Tensor
	holders []*holder

	arrays arrays
	lookup *handler // MLMultiArray *
	closed bool
}

// holder is an MLState with the names of its states.
type holder struct {
	obj   id
	names []string // sorted
}

// NewState makes a zero state for every distinct name in features.
func (*Backend) NewState(features []coreml.Feature) (coreml.State, error) {
	s := &State{types: map[string]mil.Type{}}
	for _, f := range features {
		typ := mil.TensorOf(f.DType, f.Shape...)
		if known, ok := s.types[f.Name]; ok {
			if !known.Equal(typ) {
				return nil, diag.Errorf(diag.Pos{}, diag.Mismatch, "state %q is declared %s in one place and %s in another", f.Name, known, typ)
			}
			continue
		}
		if _, err := tensor.NumElements(f.Shape); err != nil {
			return nil, diag.Errorf(diag.Pos{}, diag.Unsupported, "state %q has type %s: %w", f.Name, typ, err)
		}
		if _, ok := arrayType(f.DType); !ok {
			return nil, diag.Errorf(diag.Pos{}, diag.Unsupported, "state %q has element type %s, for which Core ML has no array", f.Name, f.DType)
		}
		s.types[f.Name] = typ
		s.names = append(s.names, f.Name)
	}
	slices.Sort(s.names)
	s.arrays, s.lookup = newArrays(), newHandler(1)
	s.forget()
	return s, nil
}

// forget makes every state zero and gives up the MLStates.
func (s *State) forget() {
	if len(s.holders) > 0 {
		_ = pooled(func() error {
			for _, h := range s.holders {
				release(h.obj)
			}
			return nil
		})
	}
	s.holders, s.where, s.waiting = nil, map[string]*holder{}, map[string]*tensor.Tensor{}
}

// declares tells whether the object has what fn wants.
func (s *State) declares(path string, fn *coreml.Function) error {
	if s.closed {
		return usage(path, "the state object is closed")
	}
	for _, f := range fn.States {
		typ, ok := s.types[f.Name]
		if !ok {
			return usage(path, "function %s wants state %q; the state object has %v", fn.Name, f.Name, s.names)
		}
		if want := mil.TensorOf(f.DType, f.Shape...); !typ.Equal(want) {
			return diag.Errorf(diag.In(path), diag.Mismatch, "state %q is %s here, the state object has %s", f.Name, want, typ)
		}
	}
	return nil
}

// bind returns the MLState for a prediction of sess, with the latest contents,
// and notes that it will have the next ones.
func (s *State) bind(sess *session) (id, error) {
	var names []string
	for _, f := range sess.fn.States {
		names = append(names, f.Name)
	}
	slices.Sort(names)
	i := slices.IndexFunc(s.holders, func(h *holder) bool { return slices.Equal(h.names, names) })
	if i < 0 {
		obj := sendID(sess.model, selNewState)
		if obj == 0 {
			return 0, diag.Errorf(diag.In(sess.path), diag.RunFailed, "no state object for function %s came from Core ML", sess.fn.Name)
		}
		h := &holder{obj, names}
		i = len(s.holders)
		s.holders = append(s.holders, h)
	}
	h := s.holders[i]
	for _, n := range names {
		if s.where[n] == h {
			continue
		}
		var latest *tensor.Tensor
		var err error
		if w := s.where[n]; w != nil {
			latest, err = s.readFrom(w, n)
		} else {
			latest = s.waiting[n]
		}
		if err == nil && latest != nil {
			err = s.writeTo(h, n, latest)
		}
		if err != nil {
			return 0, sess.wrong(fmt.Errorf("state %q: %w", n, err))
		}
		s.where[n] = h
		delete(s.waiting, n)
	}
	return h.obj, nil
}

func (s *State) zero(name string) *tensor.Tensor {
	return tensor.New(s.types[name].DType, s.types[name].Shape...)
}

// withArray calls fn with the array of one state.
func (s *State) withArray(h *holder, name string, fn func(arr id) error) error {
	called, err := false, error(nil)
	s.lookup.during(func(args [3]uintptr) {
		called = true
		if args[0] == 0 {
			err = fmt.Errorf("no array of the state came from Core ML")
			return
		}
		err = fn(id(args[0]))
	}, func(block uintptr) { send(h.obj, selStateArray, uintptr(nsString(name)), block) })
	if err == nil && !called {
		err = fmt.Errorf("no array of the state came from Core ML")
	}
	return err
}

func (s *State) readFrom(h *holder, name string) (t *tensor.Tensor, err error) {
	typ := s.types[name]
	err = s.withArray(h, name, func(arr id) error {
		t, err = s.arrays.read(arr, typ.DType, typ.Shape)
		return err
	})
	return t, err
}

func (s *State) writeTo(h *holder, name string, t *tensor.Tensor) error {
	return s.withArray(h, name, func(arr id) error { return s.arrays.write(arr, t) })
}

// Names returns the state names, sorted.
func (s *State) Names() []string { return slices.Clone(s.names) }

func (s *State) known(name string) error {
	if s.closed {
		return diag.Errorf(diag.Pos{}, diag.Usage, "the state object is closed")
	}
	if _, ok := s.types[name]; !ok {
		return diag.Errorf(diag.Pos{}, diag.NotFound, "no state %q; there are %v", name, s.names)
	}
	return nil
}

// stateError is an error of the bridge about one state.
func stateError(name string, err error) error {
	if err == nil {
		return nil
	}
	return diag.Errorf(diag.Pos{}, diag.RunFailed, "state %q: %w", name, err)
}

// Read copies a state out.
func (s *State) Read(name string) (*tensor.Tensor, error) {
	if err := s.known(name); err != nil {
		return nil, err
	}
	h := s.where[name]
	if h == nil {
		if t := s.waiting[name]; t != nil {
			return t.Clone(), nil
		}
		return s.zero(name), nil
	}
	var t *tensor.Tensor
	err := pooled(func() (err error) {
		t, err = s.readFrom(h, name)
		return err
	})
	return t, stateError(name, err)
}

// Write replaces a state's contents.
func (s *State) Write(name string, t *tensor.Tensor) error {
	if err := s.known(name); err != nil {
		return err
	}
	if got := mil.TensorOf(t.DType, t.Shape...); !got.Equal(s.types[name]) {
		return diag.Errorf(diag.Pos{}, diag.Usage, "state %q is %s, got %s", name, s.types[name], got)
	}
	if err := t.Check(); err != nil {
		return diag.Errorf(diag.Pos{}, diag.Usage, "state %q: %w", name, err)
	}
	h := s.where[name]
	if h == nil {
		s.waiting[name] = t.Clone()
		return nil
	}
	return stateError(name, pooled(func() error { return s.writeTo(h, name, t) }))
}

// Snapshot copies every state.
func (s *State) Snapshot() (coreml.Snapshot, error) {
	snap := make(coreml.Snapshot, len(s.names))
	for _, name := range s.names {
		t, err := s.Read(name)
		if err != nil {
			return nil, err
		}
		snap[name] = t
	}
	return snap, nil
}

// Restore brings a snapshot back. It must hold exactly the states of s.
func (s *State) Restore(snap coreml.Snapshot) error { return snap.WriteAll(s) }

// Reset sets every state to zero: Core ML makes new objects.
func (s *State) Reset() error {
	if s.closed {
		return diag.Errorf(diag.Pos{}, diag.Usage, "the state object is closed")
	}
	s.forget()
	return nil
}

// Close releases the MLStates. It may be called again.
func (s *State) Close() error {
	if s.closed {
		return nil
	}
	s.forget()
	s.closed = true
	s.arrays.close()
	s.lookup.close()
	return nil
}
