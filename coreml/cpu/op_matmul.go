package cpu

import (
	"errors"
	"fmt"
	"math"

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

func (m *memory) newMatmul(xs, ys []int, tx, ty bool) (p matmulPlan, err error) {
	if len(xs) == 0 || len(ys) == 0 {
		return p, errors.New("an operand is a scalar")
	}
	p = matmulPlan{tx: tx, ty: ty}
	xv, yv := len(xs) == 1, len(ys) == 1
	if xv {
		xs, p.tx = m.copyDims(scalarAsVector, xs), false
	}
	if yv {
		ys, p.ty = m.copyDims(ys, scalarAsVector), false
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
		return p, fmt.Errorf("x has shape %s, y %s (transpose_x %v, transpose_y %v): %d against %d", tensor.ShapeString(xs), tensor.ShapeString(ys), tx, ty, p.k, k2)
	}
	if p.batch, err = m.broadcastShape(xs[:lx], ys[:ly]); err != nil {
		return p, err
	}
	p.xstep, p.ystep = m.broadcastStrides(xs[:lx], p.batch), m.broadcastStrides(ys[:ly], p.batch)
	n = len(p.batch)
	p.shape = m.newDims(n + 2)[:n]
	copy(p.shape, p.batch)
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
	j := &matmulJob{}
	return func(c *call) error {
		p, err := c.m.newMatmul(c.in[x].shape, c.in[y].shape, tx, ty)
		if err != nil {
			return err
		}
		if err := sameTypes(c.in[x], c.in[y]); err != nil {
			return err
		}
		if !c.in[x].isFloat() {
			intMatmul(&p, c.newInt(0, p.shape), c.ints(x), c.ints(y))
			return nil
		}
		xv := c.in[x]
		if xv.view != nil {
			xv = c.dense(xv)
			c.tmp = append(c.tmp, xv.buf)
		}
		dst := c.newFloat(0, p.shape)
		if w := c.in[y].w; w != nil && p.ty && c.in[y].rank() == 2 {
			c.matmulWeight(&p, dst, c.wide(xv), w)
			return nil
		}
		right := c.rightSide(&p, c.in[y])
		p.live = c.liveColumns(p.n)
		c.matmul(j, &p, dst, c.wide(xv), right)
		return nil
	}
}

// matmulWeight multiplies by a compressed y whose rows are output features.
func (c *call) matmulWeight(p *matmulPlan, dst, x []float32, w weight) {
	n := p.m * product(p.batch)
	if p.tx {
		xs := c.scratch(len(x))
		c.turn(xs, x, product(p.batch), p.m, p.k)
		x = xs
	}
	if n == 1 {
		c.mulRows(dst, w, 0, p.n, x, 1, nil)
		return
	}
	xt, yt := c.scratch(len(x)), c.scratch(len(dst))
	c.turn(xt, x, 1, p.k, n)
	c.mulRows(yt, w, 0, p.n, xt, n, nil)
	c.turn(dst, yt, 1, n, p.n)
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
	r := rightSide{row: cols, byOutput: p.ty, off: c.m.newDims(product(p.batch))}
	steps := c.m.newDims(len(p.batch))
	for d := range steps {
		steps[d] = p.ystep[d] * rows * cols
	}
	if v.view != nil && v.rank() >= 2 {
		rs, cs, dims, st, ok := v.view.matrices(c.m, v.shape)
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

// matmul multiplies x, dense but perhaps transposed, by y, with the help of j.
func (c *call) matmul(j *matmulJob, p *matmulPlan, dst, x []float32, y rightSide) {
	m, k, n := p.m, p.k, p.n
	if len(dst) == 0 {
		return
	}
	if p.tx && m > 1 && k > 1 {
		t := c.scratch(len(x))
		c.turn(t, x, len(x)/(m*k), m, k)
		x = t
	}
	xoff := c.m.newDims(len(y.off))
	for b := range xoff {
		xoff[b] = rowOffset(b, p.batch, p.xstep) * m * k
	}
	// Batches that share y, as the heads of a group do, are done together.
	groups := c.m.newDims(len(y.off) + 1)[:1]
	for b := 0; b < len(y.off); {
		e := b + 1
		for m > few && e < len(y.off) && y.off[e] == y.off[b] {
			e++
		}
		groups = append(groups, e)
		b = e
	}
	if p.live < n {
		for r := 0; r < len(dst); r += n {
			clear(dst[r+p.live : r+n])
		}
	}
	skip := c.s.opts.Precision == coreml.Fast && c.s.opts.Observer == nil
	*j = matmulJob{groups: groups, cols: (p.live + blockCols - 1) / blockCols, live: p.live,
		task: matmulTask{m: m, k: k, n: n, x: x, y: y, xoff: xoff, dst: dst, skipZeros: skip}}
	work := m * k * min(n, blockCols)
	c.run((len(groups)-1)*j.cols, max(1, (1<<15)/max(1, work)), j)
}

// turn writes count transposed matrices: dst has rows rows of cols columns.
func (c *call) turn(dst, src []float32, count, rows, cols int) {
	shape, strides := c.m.newDims(3), c.m.newDims(3)
	shape[0], shape[1], shape[2] = count, rows, cols
	strides[0], strides[1], strides[2] = rows*cols, 1, rows
	copyStrided(c, &c.copyF, dst, src, 0, shape, strides)
}

// matmulJob computes blocks of columns of groups of products.
type matmulJob struct {
	task   matmulTask
	groups []int // where each group of batches begins, and the end of the last
	cols   int   // blocks in a row
	live   int
}

func (j *matmulJob) run(lo, hi int) {
	t := j.task
	t.buf = takeRow(0)
	defer giveRow(t.buf)
	for q := lo; q < hi; q++ {
		g, col := q/j.cols, q%j.cols*blockCols
		t.block(j.groups[g], j.groups[g+1], col, min(blockCols, j.live-col))
	}
}

// matmulTask computes blocks of columns of some products.
type matmulTask struct {
	m, k, n   int
	x         []float32
	y         rightSide
	xoff      []int
	dst       []float32
	skipZeros bool
	buf       *row // part of y, packed
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
			mulAdd(t.dst[i*t.m*t.n+j:], t.n, t.x[t.xoff[i]+q:], t.k, t.buf.x, d, cols, 0, d, t.m)
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
	if cap(t.buf.x) < size {
		t.buf.x = make([]float32, packedSize(panelDepth, blockCols)+panelDepth)
	}
	buf := t.buf.x[:size]
	t.buf.x = buf
	if !y.byOutput && y.f != nil {
		pack(buf, y.f[off+q*row+j:], row, d, cols)
		return
	}
	var wide [panelDepth]float32
	if !y.byOutput {
		for i := range d {
			src := y.h[off+(q+i)*row+j:][:cols]
			cvtHalf(wide[:cols], src)
			clear(wide[cols:])
			for c := 0; c < cols; c += tileCols {
				copy(buf[(c*d)+i*tileCols:][:tileCols], wide[c:c+tileCols])
			}
		}
		return
	}
	clear(buf[size-d*tileCols:])
	for c := range cols {
		src := wide[:d]
		at := off + (j+c)*row + q
		if y.h != nil {
			cvtHalf(src, y.h[at:at+d])
		} else {
			src = y.f[at : at+d]
		}
		out := buf[c/tileCols*tileCols*d+c%tileCols:]
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
