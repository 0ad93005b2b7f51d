package cpu

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// pool is a fixed set of workers that split loops. The caller takes part, so
// a pool of one has no goroutines. A pool serves one caller at a time.
type pool struct {
	n     int
	tasks chan *task
	once  sync.Once
}

type task struct {
	fn    func(lo, hi int)
	n     int
	step  int
	next  atomic.Int64
	done  sync.WaitGroup
	panic atomic.Pointer[any]
}

func newPool(n int) *pool {
	if n <= 0 {
		n = runtime.GOMAXPROCS(0)
	}
	p := &pool{n: n}
	if n > 1 {
		p.tasks = make(chan *task, n)
		for range n - 1 {
			go p.work()
		}
	}
	return p
}

func (p *pool) work() {
	for t := range p.tasks {
		t.run()
		t.done.Done()
	}
}

func (p *pool) close() {
	p.once.Do(func() {
		if p.tasks != nil {
			close(p.tasks)
		}
	})
}

func (t *task) run() {
	defer func() {
		if r := recover(); r != nil {
			t.panic.CompareAndSwap(nil, &r)
		}
	}()
	for {
		hi := int(t.next.Add(int64(t.step)))
		lo := hi - t.step
		if lo >= t.n {
			return
		}
		t.fn(lo, min(hi, t.n))
	}
}

// each calls fn over [0, n) in pieces of at least grain items, on all
// workers when there is enough to do. fn must not call each.
func (p *pool) each(n, grain int, fn func(lo, hi int)) {
	if n <= 0 {
		return
	}
	grain = max(grain, 1)
	workers := min(p.n, (n+grain-1)/grain)
	if workers <= 1 {
		fn(0, n)
		return
	}
	// Four pieces per worker even out a noisy machine.
	step := max(grain, (n+4*workers-1)/(4*workers))
	t := &task{fn: fn, n: n, step: step}
	t.done.Add(workers - 1)
	for range workers - 1 {
		p.tasks <- t
	}
	t.run()
	t.done.Wait()
	if r := t.panic.Load(); r != nil {
		panic(*r)
	}
}
