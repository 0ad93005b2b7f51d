package cpu

// The inner loops of matrix products; vector versions replace them where the
// processor has them. All sums are in float32, rows are independent, and the
// order of additions does not depend on the number of workers.
var (
	dot     = dotPortable
	panel4  = panel4Portable
	panel1  = panel1Portable
	dotHalf = dotHalfPortable
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
		cvtHalf(buf[:n], a[:n])
		s += dot(buf[:n], b[:n])
		a, b = a[n:], b[n:]
	}
	return s
}

// panel4Portable adds four rows of w times x to four rows of y:
// y[i][t] += sum over k of w[i][k]*x[k][t], where x has rows of n elements.
func panel4Portable(y0, y1, y2, y3, w0, w1, w2, w3, x []float32, n int) {
	y0, y1, y2, y3 = y0[:n], y1[:n], y2[:n], y3[:n]
	w1, w2, w3 = w1[:len(w0)], w2[:len(w0)], w3[:len(w0)]
	for k, a0 := range w0 {
		a1, a2, a3 := w1[k], w2[k], w3[k]
		row := x[k*n : k*n+n]
		for t, v := range row {
			y0[t] += a0 * v
			y1[t] += a1 * v
			y2[t] += a2 * v
			y3[t] += a3 * v
		}
	}
}

// panel1Portable is panel4 for one row.
func panel1Portable(y, w, x []float32, n int) {
	y = y[:n]
	for k, a := range w {
		row := x[k*n : k*n+n]
		for t, v := range row {
			y[t] += a * v
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
		grain = (grain + 3) &^ 3
	}
	c.each(rows, grain, func(lo, hi int) {
		if n == 1 {
			mulVec(y, w, first, lo, hi, x, bias)
			return
		}
		mulPanel(y, w, first, lo, hi, x, n, bias)
	})
}

// rowOf returns row r of w: the stored elements when they are float32, else
// buf filled with them.
func rowOf(w weight, r int, buf []float32) []float32 {
	if d, ok := w.(dense); ok && d.v.f != nil {
		return d.v.f[r*d.cols : (r+1)*d.cols]
	}
	w.row(buf, r)
	return buf
}

func mulVec(y []float32, w weight, first, lo, hi int, x []float32, bias []float32) {
	_, k := w.dims()
	d, isDense := w.(dense)
	half := isDense && d.v.h != nil
	var buf []float32
	if !isDense {
		buf = make([]float32, k)
	}
	for r := lo; r < hi; r++ {
		var s float32
		if half {
			s = dotHalf(d.v.h[(first+r)*k:(first+r+1)*k], x)
		} else {
			s = dot(rowOf(w, first+r, buf), x)
		}
		if bias != nil {
			s += bias[first+r]
		}
		y[r] = s
	}
}

func mulPanel(y []float32, w weight, first, lo, hi int, x []float32, n int, bias []float32) {
	_, k := w.dims()
	buf := make([]float32, 4*k)
	for r := lo; r < hi; r += 4 {
		m := min(4, hi-r)
		var rows [4][]float32
		for i := range m {
			rows[i] = rowOf(w, first+r+i, buf[i*k:(i+1)*k])
			b := float32(0)
			if bias != nil {
				b = bias[first+r+i]
			}
			fill(y[(r+i)*n:(r+i+1)*n], b)
		}
		if m == 4 {
			panel4(y[r*n:(r+1)*n], y[(r+1)*n:(r+2)*n], y[(r+2)*n:(r+3)*n], y[(r+3)*n:(r+4)*n], rows[0], rows[1], rows[2], rows[3], x, n)
			continue
		}
		for i := range m {
			panel1(y[(r+i)*n:(r+i+1)*n], rows[i], x, n)
		}
	}
}

func fill(x []float32, v float32) {
	for k := range x {
		x[k] = v
	}
}
