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
	task  task // the one that runs
	once  sync.Once
}

// job is a loop whose iterations are independent. Kernels of a decode step
// keep theirs from call to call; a func in its place is allocated each time.
type job interface {
	run(lo, hi int) // iterations [lo, hi)
}

type jobFunc func(lo, hi int)

func (f jobFunc) run(lo, hi int) { f(lo, hi) }

type task struct {
	job   job
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
			first := r // &r would move r to the heap in every run
			t.panic.CompareAndSwap(nil, &first)
		}
	}()
	for {
		hi := int(t.next.Add(int64(t.step)))
		lo := hi - t.step
		if lo >= t.n {
			return
		}
		t.job.run(lo, min(hi, t.n))
	}
}

// run does j over [0, n) in pieces of at least grain items, on all workers
// when there is enough to do. A job must not run another.
func (p *pool) run(n, grain int, j job) {
	if n <= 0 {
		return
	}
	grain = max(grain, 1)
	workers := min(p.n, (n+grain-1)/grain)
	if workers <= 1 {
		j.run(0, n)
		return
	}
	// Four pieces per worker even out a noisy machine.
	step := max(grain, (n+4*workers-1)/(4*workers))
	t := &p.task
	t.job, t.n, t.step = j, n, step
	t.next.Store(0)
	t.panic.Store(nil)
	t.done.Add(workers - 1)
	for range workers - 1 {
		p.tasks <- t
	}
	t.run()
	t.done.Wait()
	t.job = nil
	if r := t.panic.Load(); r != nil {
		panic(*r)
	}
}
