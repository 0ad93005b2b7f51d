package runner

import (
	"context"
	"slices"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/coreml/diag"
)

// sequence tracks which ids the state holds, so that a prompt that extends
// them is not fed from the start again.
type sequence struct {
	contract Contract
	fed      []int
	broken   bool        // a call failed half way: the state holds anything
	mark     *Checkpoint // the beginning of an earlier prompt; nil = none
}

// feeding is a prompt and how it is fed.
type feeding struct {
	ids    []int
	mode   PrefillMode
	reuse  bool // keep what the state already holds of ids
	stable int  // where a later prompt may part from this one; 0 = not known
}

// prompt makes the state hold exactly f.ids and returns the scores of the
// next token. With reuse it keeps what the state, or the snapshot of an
// earlier prompt, already holds of them where the contract allows it. It
// returns how many tokens were fed; done, if not nil, is told of each step.
func (s *sequence) prompt(ctx context.Context, f feeding, done func(n, total int)) (Scores, int, error) {
	keep, err := s.begin(f)
	if err != nil {
		return Scores{}, 0, err
	}
	total := len(f.ids) - keep
	start := keep
	var sc Scores
	for _, end := range s.stops(f, keep) {
		from := keep
		s.broken = true
		sc, err = s.contract.Prefill(ctx, f.ids[from:end], from, f.mode, func(n int) {
			if done != nil {
				done(from-start+n, total)
			}
		})
		if err != nil {
			return Scores{}, 0, err
		}
		s.broken = false
		s.fed = append(s.fed[:from], f.ids[from:end]...)
		keep = end
		if end < len(f.ids) {
			if s.mark, err = s.checkpoint(); err != nil {
				return Scores{}, 0, err
			}
		}
	}
	return sc, total, nil
}

// begin brings the state to where feeding goes on and returns the position.
func (s *sequence) begin(f feeding) (int, error) {
	keep := 0
	if f.reuse && !s.broken {
		keep = s.reusable(f.ids)
	}
	if n := s.marked(f); n > keep {
		return n, s.restore(s.mark)
	}
	if keep == 0 {
		return 0, s.reset()
	}
	return keep, nil
}

// marked is how many leading ids the snapshot of an earlier prompt holds.
func (s *sequence) marked(f feeding) int {
	if !f.reuse || s.mark == nil {
		return 0
	}
	n := len(s.mark.fed)
	if n >= len(f.ids) || !slices.Equal(s.mark.fed, f.ids[:n]) {
		return 0
	}
	return n
}

// stops lists where feeding pauses: at f.stable, for a snapshot, when the
// contract could not go back there, and at the end.
func (s *sequence) stops(f feeding, keep int) []int {
	end := len(f.ids)
	if f.stable > keep && f.stable < end && !s.contract.Rewindable(s.contract.Limit(), f.stable) {
		return []int{f.stable, end}
	}
	return []int{end}
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
	return r.seq.checkpoint()
}

func (s *sequence) checkpoint() (*Checkpoint, error) {
	snap, err := s.contract.Snapshot()
	if err != nil {
		return nil, err
	}
	return &Checkpoint{states: snap, fed: slices.Clone(s.fed)}, nil
}

func (s *sequence) restore(c *Checkpoint) error {
	s.broken = true
	if err := s.contract.Restore(c.states); err != nil {
		return err
	}
	s.fed, s.broken = append(s.fed[:0], c.fed...), false
	return nil
}

// Rollback brings a checkpoint of the same runner back.
func (r *Runner) Rollback(c *Checkpoint) error {
	if r.contract == nil {
		return nil
	}
	return r.seq.restore(c)
}
