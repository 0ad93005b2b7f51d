package runner

import (
	"context"

	"github.com/anepkg/anepkg/coreml"
)

// network is a package's parts wired together: it executes one step.
type network interface {
	// run feeds ids, the tokens of st, and returns scores if st.want.
	run(ctx context.Context, st step, ids []int) (Scores, error)
	head() HeadInfo
	states() *states
	close() error
}

// stepper is the contract of every package that is fed by rules.
type stepper struct {
	name  string
	rules rules
	net   network
	one   [1]int // the id of a decode step
}

func (s *stepper) Name() string           { return s.name }
func (s *stepper) Limit() int             { return s.rules.limit }
func (s *stepper) Head() HeadInfo         { return s.net.head() }
func (s *stepper) States() []coreml.State { return s.net.states().all }
func (s *stepper) Reset() error           { return s.net.states().reset() }
func (s *stepper) Close() error           { return s.net.close() }

func (s *stepper) Rewindable(fed, to int) bool { return s.rules.rewindable(fed, to) }

func (s *stepper) Snapshot() ([]coreml.Snapshot, error) { return s.net.states().snapshot() }
func (s *stepper) Restore(snap []coreml.Snapshot) error { return s.net.states().restore(snap) }

func (s *stepper) Prefill(ctx context.Context, ids []int, pos int, mode PrefillMode, done func(int)) (Scores, error) {
	var out Scores
	for _, st := range s.rules.plan(pos, len(ids), mode) {
		sc, err := s.net.run(ctx, st, ids[st.pos-pos:st.pos-pos+st.n])
		if err != nil {
			return Scores{}, err
		}
		if st.want {
			out = sc
		}
		if done != nil {
			done(st.pos - pos + st.n)
		}
	}
	return out, nil
}

func (s *stepper) Decode(ctx context.Context, id, pos int) (Scores, error) {
	s.one[0] = id
	return s.net.run(ctx, step{fn: s.rules.singleAt(pos), pos: pos, n: 1, want: true}, s.one[:])
}
