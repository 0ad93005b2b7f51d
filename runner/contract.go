package runner

import (
	"context"

	"github.com/anepkg/anepkg/coreml"
)

// Contract is a calling convention: how tokens at consecutive positions go
// through a package's parts. Positions are fed in order, from 0 after Reset;
// a contract whose caches allow it (see Rewindable) may be fed an earlier
// position again. The sources of the rules are the package format (plain,
// recurrent and Gemma 4 packages) and the runtimes of ANEMLL (rotate).
type Contract interface {
	// Name is the layout's name, for example "chunked-recurrent".
	Name() string
	// Limit is the number of positions: the last usable one is Limit()-1.
	Limit() int
	// Head says what Scores will hold.
	Head() HeadInfo
	// Prefill feeds ids at pos, pos+1, ... and returns the scores of the
	// token that follows the last. There is at least one id, and all
	// positions are below Limit. mode is one of the three. done, if not nil,
	// is told the number of tokens fed after each call.
	Prefill(ctx context.Context, ids []int, pos int, mode PrefillMode, done func(int)) (Scores, error)
	// Decode feeds one id at pos.
	Decode(ctx context.Context, id, pos int) (Scores, error)
	// Rewindable reports whether, after fed positions 0..fed-1, feeding may
	// go on at position to <= fed as if nothing from to on had been fed.
	Rewindable(fed, to int) bool
	// Reset empties the context.
	Reset() error
	// Snapshot copies the states; Restore brings them back.
	Snapshot() ([]coreml.Snapshot, error)
	Restore([]coreml.Snapshot) error
	States() []coreml.State
	Close() error
}

// Scores is what a head says about the next token. Its slices are good until
// the next call of the contract.
type Scores struct {
	// Logits has one value for each id; nil when the head gives only the
	// best token.
	Logits []float32
	// Token and Value are the best token and its logit; set by argmax heads.
	Token int
	Value float32
	// PartValues are the best logits of each part of an argmax head.
	PartValues []float32
}

// HeadInfo describes a head.
type HeadInfo struct {
	Logits bool  // Scores.Logits is set
	Vocab  int   // number of ids; 0 = not known
	Parts  []int // ids in each part, where known
}
