package cpu

import (
	"testing"

	"github.com/anepkg/anepkg/coreml/diag"
)

// TestNearestOp holds the hint of an unknown op to the nearest names there
// are: a letter too many always leads to an op one edit away, and the answer
// does not depend on the order in which the table is walked.
func TestNearestOp(t *testing.T) {
	for name := range opTable {
		wrong := name + "x"
		first := nearestOp(wrong)
		if d := diag.Distance(first, wrong, 5); d != 1 {
			t.Errorf("%s: got %q at distance %d, want an op at distance 1", wrong, first, d)
		}
		for range 10 {
			if again := nearestOp(wrong); again != first {
				t.Errorf("%s: got %q and then %q", wrong, first, again)
			}
		}
	}
	if got := nearestOp("conv_of_something_else"); got != "" {
		t.Errorf("a far name: got %q, want none", got)
	}
}
