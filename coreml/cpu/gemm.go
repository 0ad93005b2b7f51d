package cpu

import "sync"

// The inner loops of matrix products; vector versions replace them where the
// processor has them. All sums are in float32, rows are independent, and the
// order of additions does not depend on the number of workers.
var (
	dot      = dotPortable
	dotHalf  = dotHalfPortable
	tile4    = tile4Portable
	axpyHalf = axpyHalfPortable
	kernels  = "portable" // which loops are in use, for reports
)

// dotPortable returns the sum of a[k]*b[k].
func dotPortable(a, b []float32) float32 {
	var s0, s1, s2, s3 float32
	b = b[:len(a)]
	k := 0
	for ; k+4 <= len(a); k += 4 {
		x, y := a[k:k+4:k+4], b[k:k+4:k+4]
		s0 += x[0] * y[0]
		s1 += x[1] * y[1]
		s2 += x[2] * y[2]
		s3 += x[3] * y[3]
	}
	for ; k < len(a); k++ {
		s0 += a[k] * b[k]
	}
	return (s0 + s1) + (s2 + s3)
}

// dotHalfPortable is dot with a in fp16.
func dotHalfPortable(a []uint16, b []float32) float32 {
	var buf [256]float32
	var s float32
	for len(a) > 0 {
		n := min(len(a), len(buf))
		halfPortable(buf[:n], a[:n])
		s += dotPortable(buf[:n], b[:n])
		a, b = a[n:], b[n:]
	}
	return s
}

// tileCols is the number of columns that a tile works on at a time. The right
// side of a product is packed for it: for each tileCols columns all its rows
// one after the other, the last columns filled up with zeros.
const tileCols = 16

// tile4Portable adds four rows of w times x to four rows of y:
// y[i][t] += sum over q of w[i][q]*x[q][t] for tileCols columns t and q < k.
// ys and ws are the distances of rows; x is packed.
func tile4Portable(y []float32, ys int, w []float32, ws int, x []float32, k int) {
	const n = tileCols
	y0, y1, y2, y3 := y[:n], y[ys:ys+n], y[2*ys:2*ys+n], y[3*ys:3*ys+n]
	w0, w1, w2, w3 := w[:k], w[ws:ws+k], w[2*ws:2*ws+k], w[3*ws:3*ws+k]
	for i, a0 := range w0 {
		a1, a2, a3 := w1[i], w2[i], w3[i]
		row := x[i*n : i*n+n]
		for t, v := range row {
			y0[t] += a0 * v
			y1[t] += a1 * v
			y2[t] += a2 * v
			y3[t] += a3 * v
		}
	}
}

// axpyHalfPortable adds w[k]*x[k] to y for rows x[k] of fp16 that lie xs
// apart and are as long as y.
func axpyHalfPortable(y, w []float32, x []uint16, xs int) {
	var buf [256]float32
	for t := 0; t < len(y); t += len(buf) {
		n := min(len(y)-t, len(buf))
		for k, a := range w {
			halfPortable(buf[:n], x[k*xs+t:k*xs+t+n])
			axpy(y[t:t+n], a, buf[:n])
		}
	}
}

// axpy adds a*x to y.
func axpy(y []float32, a float32, x []float32) {
	y = y[:len(x)]
	for t, v := range x {
		y[t] += a * v
	}
}

// packedSize is the number of elements of k rows of n columns when packed.
func packedSize(k, n int) int { return (n + tileCols - 1) / tileCols * tileCols * k }

// pack writes k rows of n columns of x, xs apart, as tile4 wants them.
func pack(dst, x []float32, xs, k, n int) {
	for t := 0; t < n; t += tileCols {
		m := min(tileCols, n-t)
		for q := range k {
			row := dst[q*tileCols : (q+1)*tileCols]
			clear(row[copy(row, x[q*xs+t:q*xs+t+m]):])
		}
		dst = dst[k*tileCols:]
	}
}

// mulAdd adds m rows of w times x to m rows of y: columns [0, n), terms
// [from, to) of x, which is packed and has k terms; w begins at term from.
func mulAdd(y []float32, ys int, w []float32, ws int, x []float32, k, n, from, to, m int) {
	var edge []float32 // for the last columns, when they are no whole tile
	if n%tileCols != 0 {
		scratch := takeRow(4 * tileCols)
		defer giveRow(scratch)
		edge = scratch.x
	}
	for t := 0; t < n; t += tileCols {
		xt := x[t*k+from*tileCols : t*k+to*tileCols]
		cols := min(tileCols, n-t)
		i := 0
		for ; i+4 <= m; i += 4 {
			if cols == tileCols {
				tile4(y[i*ys+t:], ys, w[i*ws:], ws, xt, to-from)
				continue
			}
			clear(edge)
			tile4(edge, tileCols, w[i*ws:], ws, xt, to-from)
			for r := range 4 {
				axpy(y[(i+r)*ys+t:], 1, edge[r*tileCols:r*tileCols+cols])
			}
		}
		for ; i < m; i++ {
			for q, a := range w[i*ws : i*ws+to-from] {
				axpy(y[i*ys+t:], a, xt[q*tileCols:q*tileCols+cols])
			}
		}
	}
}

// mulRows computes rows [first, first+rows) of w times x: w has k columns, x
// is [k][n], and row r of the product goes to y[(r-first)*n:]. bias (nil = 0)
// has an element per row of w.
func (c *call) mulRows(y []float32, w weight, first, rows int, x []float32, n int, bias []float32) {
	_, k := w.dims()
	grain := max(1, (1<<15)/max(1, k*n))
	if n > 1 {
		grain = (grain + panelRows - 1) / panelRows * panelRows
		xp := c.scratch(packedSize(k, n))
		pack(xp, x, n, k, n)
		x = xp
	}
	c.rows = rowsJob{y: y, w: w, first: first, x: x, n: n, bias: bias}
	c.run(rows, grain, &c.rows)
}

// rowsJob multiplies rows of a weight.
type rowsJob struct {
	y, x, bias []float32
	w          weight
	first, n   int
}

func (j *rowsJob) run(lo, hi int) {
	if j.n == 1 {
		mulVec(j.y, j.w, j.first, lo, hi, j.x, j.bias)
		return
	}
	mulPanel(j.y, j.w, j.first, lo, hi, j.x, j.n, j.bias)
}

// dotter is a weight that multiplies a row without writing it out.
type dotter interface {
	dotRow(x []float32, r int, buf []float32) float32
}

func (d dense) dotRow(x []float32, r int, _ []float32) float32 {
	if d.v.f != nil {
		return dot(d.v.f[r*d.cols:(r+1)*d.cols], x)
	}
	return dotHalf(d.v.h[r*d.cols:(r+1)*d.cols], x)
}

// rowPool keeps the workers' scratch rows.
var rowPool = sync.Pool{New: func() any { return new(row) }}

// row is memory of one worker.
type row struct{ x []float32 }

// takeRow returns n float32 of undefined content.
func takeRow(n int) *row {
	p := rowPool.Get().(*row)
	if cap(p.x) < n {
		p.x = make([]float32, n)
	}
	p.x = p.x[:n]
	return p
}

func giveRow(p *row) { rowPool.Put(p) }

func mulVec(y []float32, w weight, first, lo, hi int, x []float32, bias []float32) {
	_, k := w.dims()
	d, direct := w.(dotter)
	scratch := takeRow(max(1, k))
	defer giveRow(scratch)
	buf := scratch.x
	if m, ok := w.(*lutWeight); ok && m.vec == 1 {
		m.dotRows(y[lo:hi], x, first+lo, buf)
		if bias != nil {
			axpy(y[lo:hi], 1, bias[first+lo:first+hi])
		}
		return
	}
	for r := lo; r < hi; r++ {
		var s float32
		if direct {
			s = d.dotRow(x, first+r, buf)
		} else {
			w.row(buf[:k], first+r)
			s = dot(buf[:k], x)
		}
		if bias != nil {
			s += bias[first+r]
		}
		y[r] = s
	}
}

// A panel is this many rows of a weight, written out; it meets panelDepth
// packed rows of x at a time, which the first-level cache holds.
const (
	panelRows  = 8
	panelDepth = 256
)

// mulPanel computes rows [lo, hi) of y; x is packed.
func mulPanel(y []float32, w weight, first, lo, hi int, x []float32, n int, bias []float32) {
	_, k := w.dims()
	d, isDense := w.(dense)
	stored := isDense && d.v.f != nil
	var buf []float32
	if !stored {
		scratch := takeRow(panelRows * k)
		defer giveRow(scratch)
		buf = scratch.x
	}
	for r := lo; r < hi; r += panelRows {
		m := min(panelRows, hi-r)
		rows := buf
		if stored {
			rows = d.v.f[(first+r)*k:]
		}
		for i := range m {
			if !stored {
				w.row(buf[i*k:(i+1)*k], first+r+i)
			}
			b := float32(0)
			if bias != nil {
				b = bias[first+r+i]
			}
			fill(y[(r+i)*n:(r+i+1)*n], b)
		}
		for q := 0; q < k; q += panelDepth {
			mulAdd(y[r*n:], n, rows[q:], k, x, k, n, q, min(q+panelDepth, k), m)
		}
	}
}

func fill(x []float32, v float32) {
	for k := range x {
		x[k] = v
	}
}
