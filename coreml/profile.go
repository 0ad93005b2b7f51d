package coreml

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// Profile collects the time spent in each type of op. It may be shared by
// sessions. The zero value is ready.
type Profile struct {
	mu  sync.Mutex
	ops map[string]*OpTime
}

// OpTime is the time spent in one type of op.
type OpTime struct {
	Op    string
	Calls int
	Total time.Duration
}

// Add counts one execution of an op.
func (p *Profile) Add(op string, d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ops == nil {
		p.ops = map[string]*OpTime{}
	}
	t := p.ops[op]
	if t == nil {
		t = &OpTime{Op: op}
		p.ops[op] = t
	}
	t.Calls++
	t.Total += d
}

// Ops returns the times, the longest first.
func (p *Profile) Ops() []OpTime {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := make([]OpTime, 0, len(p.ops))
	for _, t := range p.ops {
		out = append(out, *t)
	}
	slices.SortFunc(out, func(a, b OpTime) int {
		return cmp.Or(cmp.Compare(b.Total, a.Total), cmp.Compare(a.Op, b.Op))
	})
	return out
}
