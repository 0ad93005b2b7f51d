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

func broadcastShape(x, y []int) ([]int, error) {
	n := max(len(x), len(y))
	out := make([]int, n)
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

func newBroadcast(x, y []int) (*broadcast, error) {
	shape, err := broadcastShape(x, y)
	if err != nil {
		return nil, err
	}
	p := &broadcast{shape: shape}
	sa, sb := 1, 1
	for i := len(shape) - 1; i >= 0; i-- {
		k := len(shape) - i
		n, dx, dy := shape[i], dimFromEnd(x, k), dimFromEnd(y, k)
		a, b := 0, 0
		if dx > 1 {
			a = sa
		}
		if dy > 1 {
			b = sb
		}
		sa, sb = sa*dx, sb*dy
		if n == 1 {
			continue
		}
		// The dimension to the right, now first in dims, continues this one
		// when both operands walk through both in equal steps.
		if len(p.dims) > 0 && a == p.a[0]*p.dims[0] && b == p.b[0]*p.dims[0] {
			p.dims[0] *= n
			continue
		}
		p.dims = append([]int{n}, p.dims...)
		p.a = append([]int{a}, p.a...)
		p.b = append([]int{b}, p.b...)
	}
	if len(p.dims) == 0 {
		p.dims, p.a, p.b = []int{1}, []int{0}, []int{0}
	}
	return p, nil
}

// parallelGrain is the number of elements worth a worker for cheap loops.
const parallelGrain = 1 << 14

// runBroadcast applies fn to runs along the last merged dimension.
func runBroadcast[T, R any](c *call, p *broadcast, dst []R, x, y []T, fn loop[T, R]) {
	if len(dst) == 0 {
		return
	}
	last := len(p.dims) - 1
	n := p.dims[last]
	sa, sb := p.a[last], p.b[last]
	run := func(row, lo, hi int) {
		oa, ob, rest := 0, 0, row
		for d := last - 1; d >= 0; d-- {
			i := rest % p.dims[d]
			rest /= p.dims[d]
			oa += i * p.a[d]
			ob += i * p.b[d]
		}
		fn(dst[row*n+lo:row*n+hi], span(x, oa, sa, lo, hi), span(y, ob, sb, lo, hi))
	}
	rows := len(dst) / n
	if rows == 1 {
		c.each(n, parallelGrain, func(lo, hi int) { run(0, lo, hi) })
		return
	}
	c.each(rows, max(1, parallelGrain/n), func(lo, hi int) {
		for r := lo; r < hi; r++ {
			run(r, 0, n)
		}
	})
}

// span returns the elements [lo, hi) of a run, or its only element.
func span[T any](x []T, off, stride, lo, hi int) []T {
	if stride == 0 {
		return x[off : off+1]
	}
	return x[off+lo : off+hi]
}
