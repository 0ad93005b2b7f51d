package cpu

import (
	"errors"
	"fmt"
	"slices"

	"github.com/anepkg/anepkg/coreml/tensor"
)

var linearOps = []opDef{
	{name: "linear", since: 15, types: "fp16 fp32", build: buildLinear,
		doc: "x [..., Din] times the transpose of weight [Dout, Din], plus bias [Dout]"},
	{name: "matmul", since: 15, types: "fp16 fp32 int32", build: buildMatmul,
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
		out, in := w.shape[0], w.shape[1]
		bv, err := c.bias(bias, out)
		if err != nil {
			return err
		}
		shape := slices.Clone(v.shape)
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
		copyStrided(c, xt, src, 0, []int{in, n}, []int{1, in})
		c.mulRows(yt, w.floatMatrix(), 0, out, xt, n, bv)
		copyStrided(c, dst, yt, 0, []int{n, out}, []int{1, n})
		return nil
	}
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

// product of two matrices, once the shapes are sorted out.
type matmulPlan struct {
	m, k, n        int
	tx, ty         bool
	shape          []int // of the result
	batch          []int // leading dimensions
	xstep, ystep   []int // strides of x and y along batch, in matrices
	xcount, ycount int
}

func newMatmul(xs, ys []int, tx, ty bool) (*matmulPlan, error) {
	if len(xs) == 0 || len(ys) == 0 {
		return nil, errors.New("an operand is a scalar")
	}
	p := &matmulPlan{tx: tx, ty: ty}
	xv, yv := len(xs) == 1, len(ys) == 1
	if xv {
		xs, p.tx = []int{1, xs[0]}, false
	}
	if yv {
		ys, p.ty = []int{ys[0], 1}, false
	}
	lx, ly := len(xs)-2, len(ys)-2
	p.m, p.k = xs[lx], xs[lx+1]
	if p.tx {
		p.m, p.k = p.k, p.m
	}
	k2, n := ys[ly], ys[ly+1]
	if p.ty {
		k2, n = n, k2
	}
	p.n = n
	if p.k != k2 {
		return nil, fmt.Errorf("x has shape %s, y %s (transpose_x %v, transpose_y %v): %d against %d", tensor.ShapeString(xs), tensor.ShapeString(ys), tx, ty, p.k, k2)
	}
	var err error
	if p.batch, err = broadcastShape(xs[:lx], ys[:ly]); err != nil {
		return nil, err
	}
	p.xstep, p.ystep = broadcastStrides(xs[:lx], p.batch), broadcastStrides(ys[:ly], p.batch)
	p.shape = slices.Clone(p.batch)
	if !xv {
		p.shape = append(p.shape, p.m)
	}
	if !yv {
		p.shape = append(p.shape, p.n)
	}
	return p, nil
}

func buildMatmul(b *builder) kernel {
	x, y := b.input("x"), b.input("y")
	tx, ty := b.boolConst("transpose_x", false), b.boolConst("transpose_y", false)
	b.results(1)
	return func(c *call) error {
		p, err := newMatmul(c.in[x].shape, c.in[y].shape, tx, ty)
		if err != nil {
			return err
		}
		if err := sameTypes(c.in[x], c.in[y]); err != nil {
			return err
		}
		if !c.in[x].isFloat() {
			intMatmul(p, c.newInt(0, p.shape), c.ints(x), c.ints(y))
			return nil
		}
		dst := c.newFloat(0, p.shape)
		if w := c.in[y].w; w != nil && p.ty && c.in[y].rank() == 2 {
			c.matmulWeight(p, dst, c.f32(x), w)
			return nil
		}
		c.matmul(p, dst, c.f32(x), c.f32(y))
		return nil
	}
}

// matmulWeight multiplies by a compressed y whose rows are output features.
func (c *call) matmulWeight(p *matmulPlan, dst, x []float32, w weight) {
	n := p.m * product(p.batch)
	if p.tx {
		xs := c.scratch(len(x))
		copyStrided(c, xs, x, 0, []int{product(p.batch), p.m, p.k}, []int{p.m * p.k, 1, p.m})
		x = xs
	}
	if n == 1 {
		c.mulRows(dst, w, 0, p.n, x, 1, nil)
		return
	}
	xt, yt := c.scratch(len(x)), c.scratch(len(dst))
	copyStrided(c, xt, x, 0, []int{p.k, n}, []int{1, p.k})
	c.mulRows(yt, w, 0, p.n, xt, n, nil)
	copyStrided(c, dst, yt, 0, []int{n, p.n}, []int{1, n})
}

// matmul multiplies two float arrays: each row of each product is a task.
func (c *call) matmul(p *matmulPlan, dst, x, y []float32) {
	batches := product(p.batch)
	m, k, n := p.m, p.k, p.n
	if batches*m*n == 0 {
		return
	}
	if p.tx && m > 1 && k > 1 {
		t := c.scratch(len(x))
		copyStrided(c, t, x, 0, []int{len(x) / (m * k), m, k}, []int{m * k, 1, m})
		x = t
	}
	byDot := p.ty && m <= 4 || n == 1
	if p.ty && !byDot && n > 1 && k > 1 {
		t := c.scratch(len(y))
		copyStrided(c, t, y, 0, []int{len(y) / (n * k), k, n}, []int{n * k, 1, k})
		y = t
	}
	c.each(batches*m, max(1, (1<<15)/max(1, k*n)), func(lo, hi int) {
		for r := lo; r < hi; {
			b, i := r/m, r%m
			rows := min(hi-r, m-i, 4)
			if rows < 4 {
				rows = 1
			}
			xo := rowOffset(b, p.batch, p.xstep) * m * k
			yo := rowOffset(b, p.batch, p.ystep) * k * n
			yb := y[yo : yo+k*n]
			xr := x[xo+i*k : xo+(i+rows)*k]
			out := dst[r*n : (r+rows)*n]
			switch {
			case byDot:
				for q := range rows {
					for j := range n {
						out[q*n+j] = dot(xr[q*k:(q+1)*k], yb[j*k:(j+1)*k])
					}
				}
			case rows == 4:
				fill(out, 0)
				panel4(out[:n], out[n:2*n], out[2*n:3*n], out[3*n:4*n], xr[:k], xr[k:2*k], xr[2*k:3*k], xr[3*k:4*k], yb, n)
			default:
				fill(out, 0)
				panel1(out, xr, yb, n)
			}
			r += rows
		}
	})
}

func intMatmul(p *matmulPlan, dst, x, y []int32) {
	m, k, n := p.m, p.k, p.n
	for b := range product(p.batch) {
		xo := rowOffset(b, p.batch, p.xstep) * m * k
		yo := rowOffset(b, p.batch, p.ystep) * k * n
		for i := range m {
			for j := range n {
				var s int32
				for q := range k {
					xi, yi := i*k+q, q*n+j
					if p.tx {
						xi = q*m + i
					}
					if p.ty {
						yi = j*k + q
					}
					s += x[xo+xi] * y[yo+yi]
				}
				dst[(b*m+i)*n+j] = s
			}
		}
	}
}
