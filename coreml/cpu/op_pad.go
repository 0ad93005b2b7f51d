package cpu

import (
	"fmt"

	"github.com/anepkg/anepkg/coreml/tensor"
)

// edge gives the index of x, of n elements, that a position outside takes;
// -1 for the constant.
type edge func(i, n int) int

func constantEdge(i, n int) int {
	if i < 0 || i >= n {
		return -1
	}
	return i
}

func replicateEdge(i, n int) int { return min(max(i, 0), n-1) }

func reflectEdge(i, n int) int {
	if i < 0 {
		i = -i
	}
	if i >= n {
		i = 2*(n-1) - i
	}
	return i
}

func buildPad(b *builder) kernel {
	x, pad := b.input("x"), b.input("pad")
	fillWith := b.constant("constant_val")
	mode := b.strConst("mode", "constant")
	edges := map[string]edge{"constant": constantEdge, "reflect": reflectEdge, "replicate": replicateEdge}
	rule, ok := edges[mode]
	if !ok {
		b.failf("mode is %q, want constant, reflect or replicate", mode)
	}
	b.results(1)
	return func(c *call) error {
		v, p := c.in[x], c.dims(pad)
		before, shape, err := padShape(c.m, v.shape, p, mode)
		if err != nil {
			return err
		}
		bounded(shape)
		if v.isFloat() {
			val := float32(0)
			if fillWith != nil && fillWith.size() > 0 {
				val = float32(fillWith.num(0))
			}
			padInto(c.m, c.newFloat(0, shape), c.f32(x), v.shape, shape, before, rule, val)
			return nil
		}
		val := int32(0)
		if fillWith != nil && fillWith.size() > 0 {
			val = int32(fillWith.num(0))
		}
		padInto(c.m, c.newInt(0, shape), c.ints(x), v.shape, shape, before, rule, val)
		return nil
	}
}

// padShape applies pairs (before, after) to the last dimensions of a shape.
func padShape(m *memory, in, pad []int, mode string) (before, shape []int, err error) {
	if len(pad)%2 != 0 || len(pad) > 2*len(in) {
		return nil, nil, fmt.Errorf("pad is %v, want pairs for at most %d dimensions", pad, len(in))
	}
	before, shape = m.newDims(len(in)), m.copyDims(in)
	first := len(in) - len(pad)/2
	for i := range len(pad) / 2 {
		b, a, n := pad[2*i], pad[2*i+1], in[first+i]
		switch {
		case b < 0 || a < 0 || b > maxElements || a > maxElements:
			return nil, nil, fmt.Errorf("pad is %v, want numbers from 0 to %d", pad, maxElements)
		case mode == "reflect" && (b >= n || a >= n) && b+a > 0:
			return nil, nil, fmt.Errorf("pad is %v: reflect needs less than the %d elements of dimension %d of %s", pad, n, first+i, tensor.ShapeString(in))
		case mode == "replicate" && n == 0 && b+a > 0:
			return nil, nil, fmt.Errorf("dimension %d of x is empty", first+i)
		}
		before[first+i] = b
		shape[first+i] = b + n + a
	}
	return before, shape, nil
}

// padInto fills dst, of shape to, with src, of shape from, that begins at
// before, and what the rule gives around it.
func padInto[T any](m *memory, dst, src []T, from, to, before []int, rule edge, val T) {
	if len(dst) == 0 {
		return
	}
	rank := len(to)
	if rank == 0 {
		copy(dst, src)
		return
	}
	// For each dimension, the offset in src of each position in dst, or -1.
	total := 0
	for _, n := range to {
		total += n
	}
	tables, strides := m.newDims(total), m.rowMajor(from)
	at := 0
	for d, n := range to {
		for i := range n {
			tables[at] = -1
			if k := rule(i-before[d], from[d]); k >= 0 {
				tables[at] = k * strides[d]
			}
			at++
		}
	}
	n := to[rank-1]
	last := tables[total-n:]
	for r := 0; r*n < len(dst); r++ {
		base, inside, start := 0, true, total-n
		for d, rest := rank-2, r; d >= 0; d-- {
			start -= to[d]
			at := tables[start+rest%to[d]]
			rest /= to[d]
			inside = inside && at >= 0
			base += at
		}
		for k, at := range last {
			if inside && at >= 0 {
				dst[r*n+k] = src[base+at]
			} else {
				dst[r*n+k] = val
			}
		}
	}
}
