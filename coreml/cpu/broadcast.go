package cpu

import (
	"fmt"

	"github.com/anepkg/anepkg/coreml/tensor"
)

// broadcast is how two operands line up, as NumPy does it: dimensions are
// compared from the last, and one of length 1 repeats.
type broadcast struct {
	shape []int // of the result
	dims  []int // the same with neighbours merged where both operands allow
	a, b  []int // strides along dims; 0 repeats
}

func (m *memory) broadcastShape(x, y []int) ([]int, error) {
	n := max(len(x), len(y))
	out := m.newDims(n)
	for i := range n {
		dx, dy := dimFromEnd(x, n-i), dimFromEnd(y, n-i)
		switch {
		case dx == dy || dy == 1:
			out[i] = dx
		case dx == 1:
			out[i] = dy
		default:
			return nil, fmt.Errorf("shapes %s and %s do not broadcast: %d against %d", tensor.ShapeString(x), tensor.ShapeString(y), dx, dy)
		}
	}
	return out, nil
}

// dimFromEnd returns the k-th dimension from the end, 1 where there is none.
func dimFromEnd(s []int, k int) int {
	if k > len(s) {
		return 1
	}
	return s[len(s)-k]
}

func (m *memory) newBroadcast(x, y []int) (p broadcast, err error) {
	if p.shape, err = m.broadcastShape(x, y); err != nil {
		return p, err
	}
	// dims, a and b are filled from their ends.
	rank := len(p.shape)
	dims, a, b := m.newDims(rank+1), m.newDims(rank+1), m.newDims(rank+1)
	at := rank + 1
	sa, sb := 1, 1
	for k := 1; k <= rank; k++ {
		n, dx, dy := p.shape[rank-k], dimFromEnd(x, k), dimFromEnd(y, k)
		stepA, stepB := 0, 0
		if dx > 1 {
			stepA = sa
		}
		if dy > 1 {
			stepB = sb
		}
		sa, sb = sa*dx, sb*dy
		if n == 1 {
			continue
		}
		// The dimension to the right, now first in dims, continues this one
		// when both operands walk through both in equal steps.
		if at <= rank && stepA == a[at]*dims[at] && stepB == b[at]*dims[at] {
			dims[at] *= n
			continue
		}
		at--
		dims[at], a[at], b[at] = n, stepA, stepB
	}
	if at > rank {
		at--
		dims[at] = 1
	}
	p.dims, p.a, p.b = dims[at:], a[at:], b[at:]
	return p, nil
}

// parallelGrain is the number of elements worth a worker for cheap loops.
const parallelGrain = 1 << 14

// broadcastJob applies fn to runs along the last merged dimension.
type broadcastJob[T, R any] struct {
	broadcast
	fn   loop[T, R]
	dst  []R
	x, y []T
	n    int  // elements of a run
	one  bool // there is one run, and it is split
}

// of runs the job on the session's workers.
func (j *broadcastJob[T, R]) of(c *call, p broadcast, dst []R, x, y []T) {
	if len(dst) == 0 {
		return
	}
	j.broadcast, j.dst, j.x, j.y, j.n = p, dst, x, y, p.dims[len(p.dims)-1]
	rows := len(dst) / j.n
	j.one = rows == 1
	if j.one {
		c.run(j.n, parallelGrain, j)
		return
	}
	c.run(rows, max(1, parallelGrain/j.n), j)
}

func (j *broadcastJob[T, R]) run(lo, hi int) {
	if j.one {
		j.part(0, lo, hi)
		return
	}
	for r := lo; r < hi; r++ {
		j.part(r, 0, j.n)
	}
}

// part does the elements [lo, hi) of a run.
func (j *broadcastJob[T, R]) part(row, lo, hi int) {
	last := len(j.dims) - 1
	oa, ob, rest := 0, 0, row
	for d := last - 1; d >= 0; d-- {
		i := rest % j.dims[d]
		rest /= j.dims[d]
		oa += i * j.a[d]
		ob += i * j.b[d]
	}
	j.fn(j.dst[row*j.n+lo:row*j.n+hi], span(j.x, oa, j.a[last], lo, hi), span(j.y, ob, j.b[last], lo, hi))
}

// span returns the elements [lo, hi) of a run, or its only element.
func span[T any](x []T, off, stride, lo, hi int) []T {
	if stride == 0 {
		return x[off : off+1]
	}
	return x[off+lo : off+hi]
}
