package cpu

import (
	"fmt"
	"slices"

	"github.com/anepkg/anepkg/coreml/tensor"
)

var shapeOps = []opDef{
	{name: "reshape", since: 15, types: "every type", exact: true, views: true, build: buildReshape,
		doc: "the same elements in another shape; -1 is inferred, 0 keeps the dimension"},
	{name: "expand_dims", since: 15, types: "every type", exact: true, views: true, build: buildExpandDims,
		doc: "dimensions of length 1 put in at axes, which index the result"},
	{name: "squeeze", since: 15, types: "every type", exact: true, views: true, build: buildSqueeze,
		doc: "dimensions of length 1 removed: those at axes, or all"},
	{name: "transpose", since: 15, types: "every type", exact: true, build: buildTranspose,
		doc: "result dimension i is dimension perm[i] of x"},
	{name: "concat", since: 15, types: "every type", exact: true, build: buildConcat,
		doc: "values one after the other along axis; interleave takes one slice of each in turn"},
	{name: "stack", since: 15, types: "every type", exact: true, build: buildStack,
		doc: "values along a new axis"},
	{name: "split", since: 15, types: "every type", exact: true, build: buildSplit,
		doc: "num_splits equal parts, or parts of split_sizes, along axis"},
	{name: "tile", since: 15, types: "every type", exact: true, build: buildTile,
		doc: "x repeated reps[i] times along dimension i"},
	{name: "shape", since: 15, types: "int32 int16 uint16", exact: true, build: buildShape,
		doc: "the dimensions of x"},
}

// dims reads an integer operand that may be computed at run time.
func (c *call) dims(s slot) []int { return c.m.toInts(c.ints(s)) }

func buildReshape(b *builder) kernel {
	x, shape := b.input("x"), b.input("shape")
	b.results(1)
	return func(c *call) error {
		v := c.in[x]
		want, err := c.m.inferShape(v.shape, c.dims(shape))
		if err != nil {
			return err
		}
		c.alias(0, v, 0, want)
		return nil
	}
}

// inferShape resolves -1 and 0 in a reshape.
func (m *memory) inferShape(from, to []int) ([]int, error) {
	out := m.copyDims(to)
	n, hole := 1, -1
	for i, d := range out {
		switch {
		case d == 0 && i < len(from) && len(from) == len(to):
			out[i] = from[i]
		case d == -1 && hole < 0:
			hole = i
			continue
		case d < 0:
			return nil, fmt.Errorf("shape %v has the dimension %d", to, d)
		}
		n *= out[i]
	}
	total := product(from)
	if hole >= 0 {
		if n == 0 || total%n != 0 {
			return nil, fmt.Errorf("x has shape %s, which does not fit %v", tensor.ShapeString(from), to)
		}
		out[hole] = total / n
		return out, nil
	}
	if n != total {
		return nil, fmt.Errorf("x has shape %s with %d elements, %v has %d", tensor.ShapeString(from), total, to, n)
	}
	return out, nil
}

func buildExpandDims(b *builder) kernel {
	x := b.input("x")
	axes, ok := b.intsConst("axes")
	if !ok {
		b.failf("argument \"axes\" is missing")
	}
	b.results(1)
	return func(c *call) error {
		v := c.in[x]
		rank := v.rank() + len(axes)
		over, err := c.m.reduceAxes(axes, rank)
		if err != nil {
			return err
		}
		out := c.m.newDims(rank)[:0]
		next := 0
		for i := range rank {
			if len(axes) > 0 && over[i] {
				out = append(out, 1)
				continue
			}
			out = append(out, v.shape[next])
			next++
		}
		c.alias(0, v, 0, out)
		return nil
	}
}

func buildSqueeze(b *builder) kernel {
	x := b.input("x")
	axes, ok := b.intsConst("axes")
	axes = append([]int{}, axes...) // none is not all
	b.results(1)
	return func(c *call) error {
		v := c.in[x]
		over := c.m.newFlags(v.rank())
		if ok {
			var err error
			if over, err = c.m.reduceAxes(axes, v.rank()); err != nil {
				return err
			}
		}
		out := c.m.newDims(v.rank())[:0]
		for i, d := range v.shape {
			switch {
			case ok && over[i] && d != 1:
				return fmt.Errorf("dimension %d of %s is not 1", i, tensor.ShapeString(v.shape))
			case ok && over[i], !ok && d == 1:
			default:
				out = append(out, d)
			}
		}
		c.alias(0, v, 0, out)
		return nil
	}
}

func buildTranspose(b *builder) kernel {
	x := b.input("x")
	perm, ok := b.intsConst("perm")
	if !ok {
		b.failf("argument \"perm\" is missing")
	}
	b.results(1)
	return func(c *call) error {
		v := c.in[x]
		if len(perm) != v.rank() {
			return fmt.Errorf("perm is %v, x has rank %d", perm, v.rank())
		}
		p, shape := c.m.newDims(len(perm)), c.m.newDims(len(perm))
		seen := c.m.newFlags(len(perm))
		for i, a := range perm {
			a, err := axisOf(a, v.rank())
			if err != nil {
				return err
			}
			if seen[a] {
				return fmt.Errorf("perm %v names dimension %d twice", perm, a)
			}
			seen[a], p[i], shape[i] = true, a, v.shape[a]
		}
		if keepsOrder(v.shape, p) {
			c.alias(0, v, 0, shape)
			return nil
		}
		strides, ps := c.m.rowMajor(v.shape), c.m.newDims(len(p))
		for i, a := range p {
			ps[i] = strides[a]
		}
		if !c.lazy(0, v, 0, shape, ps, shape) {
			c.strided(v, 0, shape, ps)
		}
		return nil
	}
}

// keepsOrder reports whether a permutation moves only dimensions of length 1.
func keepsOrder(shape, perm []int) bool {
	last := -1
	for _, a := range perm {
		if shape[a] == 1 {
			continue
		}
		if a < last {
			return false
		}
		last = a
	}
	return true
}

// strided makes result 0 of the given shape from the elements of v that
// start at off and lie strides apart.
func (c *call) strided(v *value, off int, shape, strides []int) {
	switch {
	case v.f != nil || v.w != nil && v.dtype.IsFloat():
		src := c.wide(v)
		dst := c.newFloat(0, shape)
		copyStrided(c, &c.copyF, dst, src, off, shape, strides)
	case v.h != nil:
		copyStrided(c, &c.copyH, c.newHalf(shape), v.h, off, shape, strides)
	case v.s != nil:
		s := make([]string, product(shape))
		copyStrided(c, &copyJob[string]{}, s, v.s, off, shape, strides)
		c.out[0] = &value{shape: shape, s: s}
	default:
		copyStrided(c, &c.copyI, c.newInt(0, shape), v.whole(), off, shape, strides)
	}
	c.out[0].dtype = v.dtype
}

// copyJob fills dst, row-major, from elements of src that lie strides apart.
type copyJob[T any] struct {
	dst, src       []T
	off            int
	shape, strides []int // merged
	tiles          bool  // the last two dimensions are turned around
}

// copyStrided fills dst, row-major of the given shape, with the help of j.
func copyStrided[T any](c *call, j *copyJob[T], dst, src []T, off int, shape, strides []int) {
	if len(dst) == 0 {
		return
	}
	shape, strides = c.m.mergeDims(shape, strides)
	*j = copyJob[T]{dst: dst, src: src, off: off, shape: shape, strides: strides}
	last := len(shape) - 1
	n, step := shape[last], strides[last]
	if step != 1 && last > 0 && strides[last-1] == 1 && n*shape[last-1] >= 64 {
		j.tiles = true
		bands := (shape[last-1] + copyTile - 1) / copyTile
		c.run(len(dst)/(shape[last-1]*n)*bands, max(1, parallelGrain/(copyTile*n)), j)
		return
	}
	c.run(len(dst)/n, max(1, parallelGrain/n), j)
}

func (j *copyJob[T]) run(lo, hi int) {
	if j.tiles {
		j.runTiles(lo, hi)
		return
	}
	last := len(j.shape) - 1
	n, step := j.shape[last], j.strides[last]
	for r := lo; r < hi; r++ {
		at := j.off + rowOffset(r, j.shape[:last], j.strides)
		d := j.dst[r*n : (r+1)*n]
		if step == 1 {
			copy(d, j.src[at:at+n])
			continue
		}
		for k := range d {
			d[k] = j.src[at]
			at += step
		}
	}
}

// copyTile is the side of the squares in which a matrix is turned around.
const copyTile = 16

// runTiles transposes the last two dimensions in small squares, so that both
// sides are read and written along cache lines.
func (j *copyJob[T]) runTiles(lo, hi int) {
	last := len(j.shape) - 1
	m, n, step := j.shape[last-1], j.shape[last], j.strides[last]
	bands := (m + copyTile - 1) / copyTile
	for t := lo; t < hi; t++ {
		p, i0 := t/bands, t%bands*copyTile
		base := j.off + rowOffset(p, j.shape[:last-1], j.strides)
		i1 := min(m, i0+copyTile)
		for k0 := 0; k0 < n; k0 += copyTile {
			k1 := min(n, k0+copyTile)
			for i := i0; i < i1; i++ {
				d := j.dst[(p*m+i)*n:]
				at := base + i + k0*step
				for k := k0; k < k1; k++ {
					d[k] = j.src[at]
					at += step
				}
			}
		}
	}
}

// rowOffset is where row r, counted over the dimensions shape, begins.
func rowOffset(r int, shape, strides []int) int {
	at := 0
	for d := len(shape) - 1; d >= 0; d-- {
		at += r % shape[d] * strides[d]
		r /= shape[d]
	}
	return at
}

// mergeDims drops dimensions of length 1 and joins neighbours that are
// walked in equal steps.
func (m *memory) mergeDims(shape, strides []int) (s, st []int) {
	s, st = m.newDims(len(shape) + 1)[:0], m.newDims(len(shape) + 1)[:0]
	for i, d := range shape {
		if d == 1 {
			continue
		}
		if k := len(s) - 1; k >= 0 && st[k] == strides[i]*d {
			s[k] *= d
			st[k] = strides[i]
			continue
		}
		s, st = append(s, d), append(st, strides[i])
	}
	if len(s) == 0 {
		return append(s, 1), append(st, 1)
	}
	return s, st
}

func buildTile(b *builder) kernel {
	x, reps := b.input("x"), b.input("reps")
	b.results(1)
	return func(c *call) error {
		v, r := c.in[x], c.dims(reps)
		if len(r) != v.rank() {
			return fmt.Errorf("reps is %v, x has rank %d", r, v.rank())
		}
		shape, big, strides := c.m.newDims(len(r))[:0], c.m.newDims(2 * len(r))[:0], c.m.newDims(2 * len(r))[:0]
		st := c.m.rowMajor(v.shape)
		for i, n := range r {
			if n <= 0 {
				return fmt.Errorf("reps is %v, want numbers above 0", r)
			}
			shape = append(shape, n*v.shape[i])
			big = append(big, n, v.shape[i])
			strides = append(strides, 0, st[i])
		}
		bounded(shape)
		if slices.Equal(shape, v.shape) {
			c.alias(0, v, 0, shape)
			return nil
		}
		if !c.lazy(0, v, 0, big, strides, shape) {
			c.strided(v, 0, big, strides)
			c.out[0].shape = shape
		}
		return nil
	}
}

func buildShape(b *builder) kernel {
	x := b.input("x")
	b.results(1)
	return func(c *call) error {
		shape := c.m.newDims(1)
		shape[0] = c.in[x].rank()
		dst := c.newInt(0, shape)
		for i, d := range c.in[x].shape {
			dst[i] = int32(d)
		}
		return nil
	}
}
