package cpu

import (
	"errors"
	"fmt"
	"slices"

	"github.com/anepkg/anepkg/coreml/tensor"
)

var gatherOps = []opDef{
	{name: "gather", since: 15, types: "every type; indices of any integer type", exact: true, build: buildGather,
		doc: "result shape x[:axis] + indices[batch_dims:] + x[axis+1:]; an index out of range is an error with validate_indices, else it is clamped (from ios17 on; before, negative indices count from the end)"},
	{name: "gather_along_axis", since: 15, types: "every type; indices of any integer type", exact: true, build: buildGatherAlong,
		doc: "as numpy.take_along_axis: indices has the shape of the result"},
	{name: "gather_nd", since: 15, types: "every type; indices of any integer type", exact: true, build: buildGatherND,
		doc: "x at the positions indices[i..., :]; result shape indices[:-1] + x[batch_dims+indices[-1]:]; indices out of range are handled as in gather"},
}

// indexRule says what happens to an index outside [0, n).
type indexRule struct {
	wrap     bool // negative indices count from the end (before ios17)
	validate bool // others are an error
}

func (b *builder) indexRule() indexRule {
	return indexRule{wrap: !b.opsetAtLeast(17), validate: b.boolConst("validate_indices", false)}
}

// fix checks indices against an axis of n elements and returns them usable.
func (r indexRule) fix(m *memory, idx []int32, d tensor.DType, n int) ([]int, error) {
	out := m.newDims(len(idx))
	for k, i := range idx {
		x := int(i)
		if d == tensor.UInt32 {
			x = int(uint32(i))
		}
		if x < 0 && r.wrap {
			x += n
		}
		if x < 0 || x >= n {
			if r.validate || n == 0 {
				return nil, fmt.Errorf("index %d (at %d) is outside [0, %d)", i, k, n)
			}
			x = min(max(x, 0), n-1)
		}
		out[k] = x
	}
	return out, nil
}

func buildGather(b *builder) kernel {
	x, indices := b.input("x"), b.input("indices")
	axis, batch := b.intConst("axis", 0), b.intConst("batch_dims", 0)
	rule := b.indexRule()
	b.results(1)
	return func(c *call) error {
		v, iv := c.in[x], c.in[indices]
		if v.rank() == 0 {
			return errRank("x", v, 1)
		}
		a, err := axisOf(axis, v.rank())
		if err != nil {
			return err
		}
		nb := batch
		if nb < 0 {
			nb += iv.rank()
		}
		if nb < 0 || nb > a || nb > iv.rank() || !slices.Equal(iv.shape[:nb], v.shape[:nb]) {
			return fmt.Errorf("batch_dims is %d, axis %d, x %s, indices %s", batch, axis, tensor.ShapeString(v.shape), tensor.ShapeString(iv.shape))
		}
		if err := wantInts("indices", iv); err != nil {
			return err
		}
		idx, err := rule.fix(c.m, iv.whole(), iv.dtype, v.shape[a])
		if err != nil {
			return err
		}
		shape := c.m.copyDims(v.shape[:a], iv.shape[nb:], v.shape[a+1:])
		bounded(shape)
		g := gatherPlan{batches: product(v.shape[:nb]), outer: product(v.shape[nb:a]), n: v.shape[a], inner: product(v.shape[a+1:]), idx: idx}
		return c.gather(v, shape, g)
	}
}

// gatherPlan says which elements go where: for each batch and each of outer
// blocks, the rows idx (of that batch) out of n, each of inner elements.
type gatherPlan struct {
	batches, outer, n, inner int
	idx                      []int
}

func (c *call) gather(v *value, shape []int, g gatherPlan) error {
	switch {
	case v.w != nil && v.dtype.IsFloat() && g.batches == 1 && g.outer == 1 && v.rank() >= 2:
		dst := c.newFloat(0, shape)
		for k, i := range g.idx { // rows of a compressed table
			v.w.row(dst[k*g.inner:(k+1)*g.inner], i)
		}
	case v.h != nil:
		dst := c.newFloat(0, shape)
		gatherRows(g, func(to, from int) { cvtHalf(dst[to:to+g.inner], v.h[from:from+g.inner]) })
	case v.isFloat():
		src, dst := c.wide(v), c.newFloat(0, shape)
		gatherRows(g, func(to, from int) { copy(dst[to:to+g.inner], src[from:from+g.inner]) })
	case v.s != nil:
		return errors.New("x holds strings")
	default:
		src, dst := v.whole(), c.newInt(0, shape)
		gatherRows(g, func(to, from int) { copy(dst[to:to+g.inner], src[from:from+g.inner]) })
	}
	c.out[0].dtype = v.dtype
	return nil
}

func gatherRows(g gatherPlan, move func(to, from int)) {
	if g.batches == 0 {
		return
	}
	per := len(g.idx) / g.batches
	to := 0
	for b := range g.batches {
		for o := range g.outer {
			base := (b*g.outer + o) * g.n
			for _, i := range g.idx[b*per : (b+1)*per] {
				move(to, (base+i)*g.inner)
				to += g.inner
			}
		}
	}
}

func buildGatherAlong(b *builder) kernel {
	x, indices := b.input("x"), b.input("indices")
	axis := b.intConst("axis", 0)
	rule := b.indexRule()
	b.results(1)
	return func(c *call) error {
		v, iv := c.in[x], c.in[indices]
		a, err := axisOf(axis, v.rank())
		if err != nil {
			return err
		}
		if err := wantInts("indices", iv); err != nil {
			return err
		}
		if err := sameButAxis(iv, v, a); err != nil {
			return err
		}
		idx, err := rule.fix(c.m, iv.whole(), iv.dtype, v.shape[a])
		if err != nil {
			return err
		}
		_, n, inner := around(v.shape, a)
		m := iv.shape[a]
		for k, i := range idx {
			idx[k] = (k/(m*inner)*n+i)*inner + k%inner
		}
		return c.moveAt(v, iv.shape, 1, idx)
	}
}

func buildGatherND(b *builder) kernel {
	x, indices := b.input("x"), b.input("indices")
	batch := b.intConst("batch_dims", 0)
	rule := b.indexRule()
	b.results(1)
	return func(c *call) error {
		v, iv := c.in[x], c.in[indices]
		if err := wantInts("indices", iv); err != nil {
			return err
		}
		if batch < 0 || batch >= iv.rank() || batch > v.rank() || !slices.Equal(iv.shape[:batch], v.shape[:batch]) {
			return fmt.Errorf("batch_dims is %d, x %s, indices %s", batch, tensor.ShapeString(v.shape), tensor.ShapeString(iv.shape))
		}
		depth, err := indexDepth(iv, v, batch)
		if err != nil {
			return err
		}
		at, err := rule.positions(iv, v.shape[batch:batch+depth])
		if err != nil {
			return err
		}
		rest := v.shape[batch+depth:]
		inner, block := product(rest), product(v.shape[batch:batch+depth])
		per := max(1, product(iv.shape[batch:iv.rank()-1])) // tuples in a batch
		shape := slices.Concat(iv.shape[:iv.rank()-1], rest)
		return c.move(v, shape, inner, func(k int) int { return (k/per*block + at[k]) * inner })
	}
}
