package runner

import (
	"errors"
	"slices"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/coreml/tensor"
)

// states are the state objects of one conversation: usually one that every
// chunk and function shares.
type states struct {
	all    []coreml.State
	byPart map[*part]coreml.State
}

// newStates makes the state objects for the parts. All chunks of a package
// declare the same states and share one object (package format, "States").
// Parts whose states differ in shape under one name get an object each, as
// ANEMLL's runtime does for inconsistent chunks.
func newStates(backend coreml.Backend, parts []*part) (*states, error) {
	s := &states{byPart: map[*part]coreml.State{}}
	var union []coreml.Feature
	agree := true
	for _, p := range parts {
		for _, f := range p.stateFeatures() {
			known := featureNamed(union, f.Name)
			if known == nil {
				union = append(union, f)
			} else if known.DType != f.DType || !slices.Equal(known.Shape, f.Shape) {
				agree = false
			}
		}
	}
	for _, f := range union {
		if !tensor.Known(f.Shape) {
			return nil, diag.Errorf(diag.Pos{}, diag.Unsupported, "state %s has the flexible shape %s", f.Name, tensor.ShapeString(f.Shape))
		}
	}
	if len(union) == 0 {
		return s, nil
	}
	if agree {
		err := s.add(backend, union, parts...)
		return s, err
	}
	for _, p := range parts {
		if f := p.stateFeatures(); len(f) > 0 {
			if err := s.add(backend, f, p); err != nil {
				return nil, errors.Join(err, s.close())
			}
		}
	}
	return s, nil
}

func (s *states) add(backend coreml.Backend, features []coreml.Feature, parts ...*part) error {
	st, err := backend.NewState(features)
	if err != nil {
		return err
	}
	s.all = append(s.all, st)
	for _, p := range parts {
		s.byPart[p] = st
	}
	return nil
}

// of returns the state that function calls of p take; nil without states.
func (s *states) of(p *part, f *coreml.Function) coreml.State {
	if len(f.States) == 0 {
		return nil
	}
	return s.byPart[p]
}

func (s *states) reset() error {
	var errs []error
	for _, st := range s.all {
		errs = append(errs, st.Reset())
	}
	return errors.Join(errs...)
}

func (s *states) snapshot() ([]coreml.Snapshot, error) {
	out := make([]coreml.Snapshot, len(s.all))
	for i, st := range s.all {
		snap, err := st.Snapshot()
		if err != nil {
			return nil, err
		}
		out[i] = snap
	}
	return out, nil
}

func (s *states) restore(snaps []coreml.Snapshot) error {
	if len(snaps) != len(s.all) {
		return diag.Errorf(diag.Pos{}, diag.Usage, "snapshot has %d state objects, want %d", len(snaps), len(s.all))
	}
	for i, st := range s.all {
		if err := st.Restore(snaps[i]); err != nil {
			return err
		}
	}
	return nil
}

func (s *states) close() error {
	var errs []error
	for _, st := range s.all {
		errs = append(errs, st.Close())
	}
	return errors.Join(errs...)
}

func featureNamed(fs []coreml.Feature, name string) *coreml.Feature {
	for i := range fs {
		if fs[i].Name == name {
			return &fs[i]
		}
	}
	return nil
}
