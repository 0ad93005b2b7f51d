package runner

import (
	"slices"

	"github.com/anepkg/anepkg/coreml"
)

// NewCheckpoint makes a checkpoint from parts that were kept elsewhere: the
// snapshots that Snapshots gave, in the same order, and the ids that were
// fed. Rollback checks that the states fit.
func NewCheckpoint(states []coreml.Snapshot, fed []int) *Checkpoint {
	return &Checkpoint{states: states, fed: slices.Clone(fed)}
}

// Snapshots returns the contents of the conversation's state objects.
func (c *Checkpoint) Snapshots() []coreml.Snapshot { return c.states }

// IDs returns the ids whose positions the states hold.
func (c *Checkpoint) IDs() []int { return slices.Clone(c.fed) }
