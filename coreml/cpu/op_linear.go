package cpu

import (
	"fmt"
	"slices"

	"github.com/anepkg/anepkg/coreml/tensor"
)

var linearOps = []opDef{
	{name: "linear", since: 15, types: "fp16 fp32 int32", build: buildLinear,
		doc: "x [..., Din] times the transpose of weight [Dout, Din], plus bias [Dout]"},
	{name: "matmul", since: 15, types: "fp16 fp32 int32", views: true, build: buildMatmul,
		doc: "matrix product over the last two dimensions, the others broadcast; a vector counts as one row (x) or column (y)"},
}

func buildLinear(b *builder) kernel {
	x, weight, bias := b.input("x"), b.input("weight"), b.optional("bias")
	b.results(1)
	return func(c *call) error {
		v, w := c.in[x], c.in[weight]
		if w.rank() != 2 || v.rank() < 1 || v.shape[v.rank()-1] != w.shape[1] {
			return fmt.Errorf("x has shape %s, weight %s", tensor.ShapeString(v.shape), tensor.ShapeString(w.shape))
		}
		if err := sameTypes(v, w); err != nil {
			return err
		}
		out, in := w.shape[0], w.shape[1]
		if !v.isFloat() {
			return c.intLinear(v, w, bias)
		}
		bv, err := c.bias(bias, out)
		if err != nil {
			return err
		}
		shape := c.m.copyDims(v.shape)
		shape[len(shape)-1] = out
		dst, src := c.newFloat(0, shape), c.f32(x)
		n := 0
		if in > 0 {
			n = len(src) / in
		}
		if n <= 1 {
			c.mulRows(dst, w.floatMatrix(), 0, out, src, n, bv)
			return nil
		}
		// Columns are cheaper than rows: turn x around, and the result back.
		xt, yt := c.scratch(len(src)), c.scratch(len(dst))
		c.turn(xt, src, 1, in, n)
		c.mulRows(yt, w.floatMatrix(), 0, out, xt, n, bv)
		c.turn(dst, yt, 1, n, out)
		return nil
	}
}

// intLinear is linear for integers; sums wrap.
func (c *call) intLinear(x, w *value, bias slot) error {
	out, in := w.shape[0], w.shape[1]
	shape := slices.Clone(x.shape)
	shape[len(shape)-1] = out
	dst := c.newInt(0, shape)
	p := &matmulPlan{m: product(shape[:len(shape)-1]), k: in, n: out, ty: true}
	intMatmul(p, dst, x.whole(), w.whole())
	v := c.get(bias)
	switch {
	case v == nil:
		return nil
	case v.size() != out || v.isFloat():
		return fmt.Errorf("bias is %s %s, want %d integers", v.dtype, tensor.ShapeString(v.shape), out)
	}
	for k := range dst {
		dst[k] += v.whole()[k%out]
	}
	return nil
}

// bias returns an optional vector of n elements.
func (c *call) bias(s slot, n int) ([]float32, error) {
	v := c.get(s)
	if v == nil {
		return nil, nil
	}
	if v.size() != n {
		return nil, errCount("bias", v, n)
	}
	return c.wide(v), nil
}
