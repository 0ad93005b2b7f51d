package cpu

import (
	"fmt"
	"slices"

	"github.com/anepkg/anepkg/coreml/tensor"
)

var scatterOps = []opDef{
	{name: "scatter", since: 15, types: "fp16 fp32 int32; indices of any integer type", build: buildScatter,
		doc: "data with updates combined in at the rows that indices name along axis; updates has the shape data[:axis] + indices + data[axis+1:]; mode is add (default), sub, mul, div, max, min or update; indices out of range are handled as in gather"},
	{name: "scatter_along_axis", since: 15, types: "fp16 fp32 int32; indices of any integer type", build: buildScatterAlong,
		doc: "data with element updates[i] combined in at indices[i] along axis, as numpy.put_along_axis; modes as in scatter"},
	{name: "scatter_nd", since: 15, types: "fp16 fp32 int32; indices of any integer type", build: buildScatterND,
		doc: "data with the slices updates[i...] combined in at the positions indices[i..., :]; updates has the shape indices[:-1] + data[indices[-1]:]; modes as in scatter"},
}

// scatterMode combines an old element with an update.
type scatterMode struct {
	f func(old, upd float32) float32
	i func(old, upd int32) int32
}

var scatterModes = map[string]scatterMode{
	"add":    {func(a, b float32) float32 { return a + b }, func(a, b int32) int32 { return a + b }},
	"sub":    {func(a, b float32) float32 { return a - b }, func(a, b int32) int32 { return a - b }},
	"mul":    {func(a, b float32) float32 { return a * b }, func(a, b int32) int32 { return a * b }},
	"div":    {func(a, b float32) float32 { return a / b }, truncDiv},
	"max":    {func(a, b float32) float32 { return max(a, b) }, func(a, b int32) int32 { return max(a, b) }},
	"min":    {func(a, b float32) float32 { return min(a, b) }, func(a, b int32) int32 { return min(a, b) }},
	"update": {func(_, b float32) float32 { return b }, func(_, b int32) int32 { return b }},
}

// scatterArgs are what the three ops share.
type scatterArgs struct {
	data, indices, updates slot
	mode                   scatterMode
	rule                   indexRule
}

func (b *builder) scatterArgs() scatterArgs {
	a := scatterArgs{data: b.input("data"), indices: b.input("indices"), updates: b.input("updates"), rule: b.indexRule()}
	name := b.strConst("mode", "add")
	var ok bool
	if a.mode, ok = scatterModes[name]; !ok {
		b.failf("mode is %q, want add, sub, mul, div, max, min or update", name)
	}
	b.results(1)
	return a
}

// check compares types and the shape of updates.
func (a scatterArgs) check(c *call, want []int) error {
	d, u := c.in[a.data], c.in[a.updates]
	if d.dtype != u.dtype || d.s != nil {
		return fmt.Errorf("data is %s and updates is %s, want one number type", d.dtype, u.dtype)
	}
	if err := wantInts("indices", c.in[a.indices]); err != nil {
		return err
	}
	return wantShape("updates", u, want...)
}

// apply combines runs of n elements: run k of updates goes to element at(k)
// of data.
func (a scatterArgs) apply(c *call, n int, at func(k int) int) {
	if n == 0 {
		return
	}
	d := c.in[a.data].dtype
	if d.IsFloat() {
		upd := c.f32(a.updates)
		dst, _ := c.writable(a.data)
		for k := range len(upd) / n {
			o := at(k)
			for j, u := range upd[k*n : (k+1)*n] {
				dst[o+j] = a.mode.f(dst[o+j], u)
			}
		}
		return
	}
	upd := c.ints(a.updates)
	_, dst := c.writable(a.data)
	for k := range len(upd) / n {
		o := at(k)
		for j, u := range upd[k*n : (k+1)*n] {
			dst[o+j] = wrapInt(d, a.mode.i(dst[o+j], u))
		}
	}
}

func buildScatter(b *builder) kernel {
	a := b.scatterArgs()
	axis := b.intConst("axis", 0)
	return func(c *call) error {
		d, iv := c.in[a.data], c.in[a.indices]
		ax, err := axisOf(axis, d.rank())
		if err != nil {
			return err
		}
		if err := a.check(c, slices.Concat(d.shape[:ax], iv.shape, d.shape[ax+1:])); err != nil {
			return err
		}
		_, n, inner := around(d.shape, ax)
		idx, err := a.rule.fix(c.m, iv.whole(), iv.dtype, n)
		if err != nil {
			return err
		}
		if len(idx) == 0 {
			c.writable(a.data)
			return nil
		}
		a.apply(c, inner, func(k int) int { return (k/len(idx)*n + idx[k%len(idx)]) * inner })
		return c.scattered(a)
	}
}

// scattered copies data when nothing had to be combined.
func (c *call) scattered(a scatterArgs) error {
	if c.out[0] == nil {
		c.writable(a.data)
	}
	return nil
}

func buildScatterAlong(b *builder) kernel {
	a := b.scatterArgs()
	axis := b.intConst("axis", 0)
	return func(c *call) error {
		d, iv := c.in[a.data], c.in[a.indices]
		ax, err := axisOf(axis, d.rank())
		if err != nil {
			return err
		}
		if err := a.check(c, iv.shape); err != nil {
			return err
		}
		if err := sameButAxis(iv, d, ax); err != nil {
			return err
		}
		_, n, inner := around(d.shape, ax)
		idx, err := a.rule.fix(c.m, iv.whole(), iv.dtype, n)
		if err != nil {
			return err
		}
		m := iv.shape[ax]
		a.apply(c, 1, func(k int) int { return (k/(m*inner)*n+idx[k])*inner + k%inner })
		return c.scattered(a)
	}
}

// sameButAxis reports indices whose shape differs from that of x in more
// than the axis.
func sameButAxis(indices, x *value, axis int) error {
	if indices.rank() != x.rank() {
		return fmt.Errorf("indices have shape %s, x %s, want one rank", tensor.ShapeString(indices.shape), tensor.ShapeString(x.shape))
	}
	for d := range x.shape {
		if d != axis && x.shape[d] != indices.shape[d] {
			return fmt.Errorf("indices have shape %s, x %s: they may differ only along axis %d", tensor.ShapeString(indices.shape), tensor.ShapeString(x.shape), axis)
		}
	}
	return nil
}

func buildScatterND(b *builder) kernel {
	a := b.scatterArgs()
	return func(c *call) error {
		d, iv := c.in[a.data], c.in[a.indices]
		depth, err := indexDepth(iv, d, 0)
		if err != nil {
			return err
		}
		if err := a.check(c, slices.Concat(iv.shape[:iv.rank()-1], d.shape[depth:])); err != nil {
			return err
		}
		at, err := a.rule.positions(iv, d.shape[:depth])
		if err != nil {
			return err
		}
		inner := product(d.shape[depth:])
		a.apply(c, inner, func(k int) int { return at[k] * inner })
		return c.scattered(a)
	}
}

// indexDepth returns how many dimensions of x the last dimension of indices
// addresses, after batch leading ones.
func indexDepth(indices, x *value, batch int) (int, error) {
	if indices.rank() == 0 {
		return 0, errRank("indices", indices, 1)
	}
	depth := indices.shape[indices.rank()-1]
	if depth < 1 || batch+depth > x.rank() {
		return 0, fmt.Errorf("indices have shape %s and address %d dimensions, x has shape %s (batch_dims %d)", tensor.ShapeString(indices.shape), depth, tensor.ShapeString(x.shape), batch)
	}
	return depth, nil
}

// positions flattens the index tuples of the last dimension against dims.
func (r indexRule) positions(indices *value, dims []int) ([]int, error) {
	depth := len(dims)
	raw := indices.whole()
	out := make([]int, len(raw)/depth)
	for d, n := range dims {
		col := make([]int32, len(out))
		for k := range col {
			col[k] = raw[k*depth+d]
		}
		idx, err := r.fix(nil, col, indices.dtype, n)
		if err != nil {
			return nil, fmt.Errorf("dimension %d: %w", d, err)
		}
		for k := range out {
			out[k] = out[k]*n + idx[k]
		}
	}
	return out, nil
}
