package cpu

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/coreml/tensor"
)

// matmulPlan is a product of matrices, once the shapes are sorted out.
type matmulPlan struct {
	m, k, n      int
	tx, ty       bool
	shape        []int // of the result
	batch        []int // leading dimensions
	xstep, ystep []int // strides of x and y along batch, in matrices
	// live is the number of leading columns that matter: a mask of -inf is
	// about to be added to the others, which are left 0.
	live int
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
	p.n, p.live = n, n
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
		xv := c.in[x]
		if xv.view != nil {
			xv = c.dense(xv)
			c.tmp = append(c.tmp, xv.buf)
		}
		dst := c.newFloat(0, p.shape)
		if w := c.in[y].w; w != nil && p.ty && c.in[y].rank() == 2 {
			c.matmulWeight(p, dst, c.wide(xv), w)
			return nil
		}
		right := c.rightSide(p, c.in[y])
		p.live = c.liveColumns(p.n)
		c.matmul(p, dst, c.wide(xv), right)
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

// rightSide is y in memory: rows of float32 or fp16, row apart, which are the
// n columns of the product (byOutput) or the k terms of its sums. off has the
// start for each batch.
type rightSide struct {
	h        []uint16
	f        []float32
	off      []int
	row      int
	byOutput bool
}

// rightSide finds y's rows. A view whose rows do not lie together is copied.
func (c *call) rightSide(p *matmulPlan, v *value) rightSide {
	rows, cols := p.k, p.n
	if p.ty {
		rows, cols = cols, rows
	}
	r := rightSide{row: cols, byOutput: p.ty, off: make([]int, product(p.batch))}
	steps := make([]int, len(p.batch))
	for d := range steps {
		steps[d] = p.ystep[d] * rows * cols
	}
	if v.view != nil && v.rank() >= 2 {
		rs, cs, dims, st, ok := v.view.matrices(v.shape)
		switch {
		case ok && (cs == 1 || cols == 1):
			r.row = rs
		case ok && (rs == 1 || rows == 1): // turned around
			r.row, r.byOutput = cs, !p.ty
		default:
			ok = false
		}
		if ok {
			r.h, r.f = v.view.h, v.view.f
			for b := range r.off {
				r.off[b] = v.view.off + rowOffset(rowOffset(b, p.batch, p.ystep), dims, st)
			}
			return r
		}
	}
	if v.view != nil {
		v = c.dense(v)
		c.tmp = append(c.tmp, v.buf)
	}
	if v.h != nil {
		r.h = v.h
	} else {
		r.f = c.wide(v)
	}
	for b := range r.off {
		r.off[b] = rowOffset(b, p.batch, steps)
	}
	return r
}

// few is the number of rows of x up to which y is used as it lies; beyond,
// it is worth widening and turning around, block by block.
const few = 4

// blockCols is the number of columns in such a block.
const blockCols = 128

// matmul multiplies x, dense but perhaps transposed, by y.
func (c *call) matmul(p *matmulPlan, dst, x []float32, y rightSide) {
	m, k, n := p.m, p.k, p.n
	if len(dst) == 0 {
		return
	}
	if p.tx && m > 1 && k > 1 {
		t := c.scratch(len(x))
		copyStrided(c, t, x, 0, []int{len(x) / (m * k), m, k}, []int{m * k, 1, m})
		x = t
	}
	xoff := make([]int, len(y.off))
	for b := range xoff {
		xoff[b] = rowOffset(b, p.batch, p.xstep) * m * k
	}
	// Batches that share y, as the heads of a group do, are done together.
	var groups [][2]int
	for b := 0; b < len(y.off); {
		e := b + 1
		for m > few && e < len(y.off) && y.off[e] == y.off[b] {
			e++
		}
		groups = append(groups, [2]int{b, e})
		b = e
	}
	if p.live < n {
		for r := 0; r < len(dst); r += n {
			clear(dst[r+p.live : r+n])
		}
	}
	cols := (p.live + blockCols - 1) / blockCols
	work := m * k * min(n, blockCols)
	skip := c.s.opts.Precision == coreml.Fast && c.s.opts.Observer == nil
	c.each(len(groups)*cols, max(1, (1<<15)/max(1, work)), func(lo, hi int) {
		t := matmulTask{m: m, k: k, n: n, x: x, y: y, xoff: xoff, dst: dst, skipZeros: skip}
		defer func() { giveRow(t.buf) }()
		for q := lo; q < hi; q++ {
			g := groups[q/cols]
			j := q % cols * blockCols
			t.block(g[0], g[1], j, min(blockCols, p.live-j))
		}
	})
}

// matmulTask computes blocks of columns of some products.
type matmulTask struct {
	m, k, n   int
	x         []float32
	y         rightSide
	xoff      []int
	dst       []float32
	skipZeros bool
	buf       []float32 // part of y, packed
}

// terms returns how many leading terms of the sums the rows of x need: the
// probabilities of masked positions are 0, so their values are not read.
func (t *matmulTask) terms(b, e int) int {
	if !t.skipZeros || t.y.byOutput {
		return t.k
	}
	last := 0
	for ; b < e; b++ {
		for i := range t.m {
			x := t.x[t.xoff[b]+i*t.k:][:t.k]
			q := t.k
			for q > last && x[q-1] == 0 {
				q--
			}
			last = max(last, q)
		}
	}
	return last
}

// block computes the columns [j, j+cols) for the batches [b, e), which share y.
func (t *matmulTask) block(b, e, j, cols int) {
	k := t.terms(b, e)
	if t.m <= few {
		for ; b < e; b++ {
			for i := range t.m {
				t.oneRow(t.dst[(b*t.m+i)*t.n+j:][:cols], t.x[t.xoff[b]+i*t.k:][:k], b, j)
			}
		}
		return
	}
	for q := b; q < e; q++ {
		for i := range t.m {
			at := (q*t.m+i)*t.n + j
			clear(t.dst[at : at+cols])
		}
	}
	for q := 0; q < k; q += panelDepth {
		d := min(panelDepth, k-q)
		t.load(t.y.off[b], q, d, j, cols)
		for i := b; i < e; i++ {
			mulAdd(t.dst[i*t.m*t.n+j:], t.n, t.x[t.xoff[i]+q:], t.k, t.buf, d, cols, 0, d, t.m)
		}
	}
}

// oneRow computes some columns of one row of a product.
func (t *matmulTask) oneRow(out, x []float32, b, j int) {
	y, row, k := t.y, t.y.row, len(x)
	if y.byOutput {
		at := y.off[b] + j*row
		for q := range out {
			if y.h != nil {
				out[q] = dotHalf(y.h[at:at+k], x)
			} else {
				out[q] = dot(y.f[at:at+k], x)
			}
			at += row
		}
		return
	}
	clear(out)
	at := y.off[b] + j
	if y.h != nil {
		if k > 0 {
			axpyHalf(out, x, y.h[at:], row)
		}
		return
	}
	for _, a := range x {
		axpy(out, a, y.f[at:at+len(out)])
		at += row
	}
}

// load packs terms [q, q+d) of columns [j, j+cols) of y into t.buf.
func (t *matmulTask) load(off, q, d, j, cols int) {
	y, row := t.y, t.y.row
	size := packedSize(d, cols)
	if cap(t.buf) < size {
		giveRow(t.buf)
		t.buf = takeRow(packedSize(panelDepth, blockCols) + panelDepth)
	}
	t.buf = t.buf[:size]
	if !y.byOutput && y.f != nil {
		pack(t.buf, y.f[off+q*row+j:], row, d, cols)
		return
	}
	var wide [panelDepth]float32
	if !y.byOutput {
		for i := range d {
			src := y.h[off+(q+i)*row+j:][:cols]
			cvtHalf(wide[:cols], src)
			clear(wide[cols:])
			for c := 0; c < cols; c += tileCols {
				copy(t.buf[(c*d)+i*tileCols:][:tileCols], wide[c:c+tileCols])
			}
		}
		return
	}
	clear(t.buf[size-d*tileCols:])
	for c := range cols {
		src := wide[:d]
		at := off + (j+c)*row + q
		if y.h != nil {
			cvtHalf(src, y.h[at:at+d])
		} else {
			src = y.f[at : at+d]
		}
		out := t.buf[c/tileCols*tileCols*d+c%tileCols:]
		for i, v := range src {
			out[i*tileCols] = v
		}
	}
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

// denseSide is y when it is dense float32, a matrix for each batch.
func (p *matmulPlan) denseSide(y []float32) rightSide {
	r := rightSide{f: y, row: p.n, byOutput: p.ty, off: make([]int, product(p.batch))}
	if p.ty {
		r.row = p.k
	}
	for b := range r.off {
		r.off[b] = rowOffset(b, p.batch, p.ystep) * p.k * p.n
	}
	return r
}

// liveColumns returns how many leading columns of a product of n matter. When
// the result goes into a softmax after a mask was added, columns where every
// row of the mask is -inf become 0 whatever the product was.
func (c *call) liveColumns(n int) int {
	if c.n.mask < 0 || c.s.opts.Precision != coreml.Fast || c.s.opts.Observer != nil {
		return n
	}
	v := c.s.value(c.n.mask)
	if v == nil || !v.isFloat() || v.w != nil || v.view != nil || v.rank() == 0 || v.shape[v.rank()-1] != n {
		return n
	}
	mask := c.wide(v)
	dead := float32(math.Inf(-1))
	live := 0
	for r := 0; r < len(mask); r += n {
		row := mask[r : r+n]
		q := n
		for q > live && row[q-1] == dead {
			q--
		}
		live = max(live, q)
	}
	return live
}
