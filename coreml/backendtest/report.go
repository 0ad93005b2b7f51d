package backendtest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Tally counts the cases of one op by how they ended.
type Tally struct{ Passed, Failed, Skipped int }

// Report counts how the cases of each op ended. The zero value is ready, and
// safe for concurrent use.
type Report struct {
	mu  sync.Mutex
	ops map[string]Tally
}

// add counts a case that ends now; r may be nil.
func (r *Report) add(op string, t *testing.T) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ops == nil {
		r.ops = map[string]Tally{}
	}
	n := r.ops[op]
	switch {
	case t.Failed():
		n.Failed++
	case t.Skipped():
		n.Skipped++
	default:
		n.Passed++
	}
	r.ops[op] = n
}

// Ops returns the tally of every op that has been counted.
func (r *Report) Ops() map[string]Tally {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.ops)
}

// Missing says of which ops not every case ran, and how many did. An empty
// result means that nothing was left out.
func (r *Report) Missing() ([]string, error) {
	ops, err := Ops()
	if err != nil {
		return nil, err
	}
	ran := r.Ops()
	var missing []string
	for _, op := range ops {
		cases, err := Cases(op)
		if err != nil {
			return nil, err
		}
		if n := ran[op]; n.Passed+n.Failed < len(cases) {
			missing = append(missing, fmt.Sprintf("%s: %d of %d", op, n.Passed+n.Failed, len(cases)))
		}
	}
	return missing, nil
}

// String is a table of the ops with their counts, and the sum.
func (r *Report) String() string {
	ops := r.Ops()
	var b strings.Builder
	fmt.Fprintf(&b, "%-40s %6s %6s %7s\n", "op", "passed", "failed", "skipped")
	var sum Tally
	for _, op := range slices.Sorted(maps.Keys(ops)) {
		n := ops[op]
		fmt.Fprintf(&b, "%-40s %6d %6d %7d\n", op, n.Passed, n.Failed, n.Skipped)
		sum.Passed += n.Passed
		sum.Failed += n.Failed
		sum.Skipped += n.Skipped
	}
	fmt.Fprintf(&b, "%-40s %6d %6d %7d", fmt.Sprintf("%d files of cases", len(ops)), sum.Passed, sum.Failed, sum.Skipped)
	return b.String()
}
