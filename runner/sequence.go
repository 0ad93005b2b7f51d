package runner

import (
	"context"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/coreml/diag"
)

// sequence tracks which ids the state holds, so that a prompt that extends
// them is not fed from the start again.
type sequence struct {
	contract Contract
	fed      []int
	broken   bool // a call failed half way: the state holds anything
}

// prompt makes the state hold exactly ids and returns the scores of the
// next token. With reuse it keeps what the state already holds of ids where
// the contract allows it. It returns how many tokens were fed.
func (s *sequence) prompt(ctx context.Context, ids []int, mode PrefillMode, reuse bool, done func(n, total int)) (Scores, int, error) {
	keep := 0
	if reuse && !s.broken {
		keep = s.reusable(ids)
	}
	if keep == 0 {
		if err := s.reset(); err != nil {
			return Scores{}, 0, err
		}
	}
	rest := ids[keep:]
	s.broken = true
	sc, err := s.contract.Prefill(ctx, rest, keep, mode, func(n int) {
		if done != nil {
			done(n, len(rest))
		}
	})
	if err != nil {
		return Scores{}, 0, err
	}
	s.broken = false
	s.fed = append(s.fed[:keep], rest...)
	return sc, len(rest), nil
}

// reusable is how many leading ids need not be fed. At least one is fed,
// since the scores come from the call that processes the last.
func (s *sequence) reusable(ids []int) int {
	n := 0
	for n < len(ids)-1 && n < len(s.fed) && ids[n] == s.fed[n] {
		n++
	}
	if n == 0 || !s.contract.Rewindable(len(s.fed), n) {
		return 0
	}
	return n
}

// next feeds one id and returns the scores of the one after it.
func (s *sequence) next(ctx context.Context, id int) (Scores, error) {
	s.broken = true
	sc, err := s.contract.Decode(ctx, id, len(s.fed))
	if err != nil {
		return Scores{}, err
	}
	s.broken = false
	s.fed = append(s.fed, id)
	return sc, nil
}

// full reports whether no position is left.
func (s *sequence) full() bool { return len(s.fed) >= s.contract.Limit() }

func (s *sequence) reset() error {
	s.fed, s.broken = s.fed[:0], true
	if err := s.contract.Reset(); err != nil {
		return err
	}
	s.broken = false
	return nil
}

// Reset empties the conversation's state.
func (r *Runner) Reset() error {
	if r.contract == nil {
		return nil
	}
	return r.seq.reset()
}

// Position is how many tokens the state holds.
func (r *Runner) Position() int { return len(r.seq.fed) }

// Checkpoint is a copy of a conversation: the states and the ids fed.
type Checkpoint struct {
	states []coreml.Snapshot
	fed    []int
}

// Checkpoint copies the conversation, for going back to it later.
func (r *Runner) Checkpoint() (*Checkpoint, error) {
	if r.contract == nil {
		return &Checkpoint{}, nil
	}
	if r.seq.broken {
		return nil, diag.Errorf(diag.Pos{}, diag.RunFailed, "the last call failed, so the state is not known")
	}
	snap, err := r.contract.Snapshot()
	if err != nil {
		return nil, err
	}
	return &Checkpoint{states: snap, fed: append([]int{}, r.seq.fed...)}, nil
}

// Rollback brings a checkpoint of the same runner back.
func (r *Runner) Rollback(c *Checkpoint) error {
	if r.contract == nil {
		return nil
	}
	r.seq.broken = true
	if err := r.contract.Restore(c.states); err != nil {
		return err
	}
	r.seq.fed, r.seq.broken = append(r.seq.fed[:0], c.fed...), false
	return nil
}
