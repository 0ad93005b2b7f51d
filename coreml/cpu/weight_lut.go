package cpu

import (
	"fmt"
	"math/bits"

	"github.com/anepkg/anepkg/coreml/tensor"
)

// lutWeight is a palettized constant: indices into tables of 2^n entries,
// one table for each block of indices. An entry is one number, or a vector
// of them laid out along one axis of the result.
type lutWeight struct {
	idx        packed
	bits       int // of an index
	rows, cols int // of the result
	idxCols    int // indices in a row of idx
	groups     *groups
	table      []float32 // [group][2^n][vec]; nil with loops
	size       int       // entries in a table
	vec        int       // length of a vector
	axis       int       // along which vectors lie
	inner      int       // elements after the vector axis, when it is not 0
	loops      *lutLoops // vector loops; nil when there are none for this form
	halves     []byte    // for loops: [group] low bytes of the entries, then high ones
}

// lutLoops are vector loops over blocks of 32 indices. A table is the low
// bytes of its fp16 entries, then the high bytes; or, when plain, the entries.
type lutLoops struct {
	bytes int // of indices in a block
	reads int // bytes that the loops read for the last block
	plain bool
	// dot multiplies rows of blocks, one after the other in memory, by x.
	dot    func(y *float32, idx *byte, table *byte, x *float32, blocks, rows int)
	lookup func(dst *float32, idx *byte, table *byte, blocks int)
}

// vectorLUT returns the loops for n-bit indices, or nil.
var vectorLUT = func(int) *lutLoops { return nil }

// newLUT makes a palettized constant. The table has the shape
// [g0, ..., gk-1, 2^n, vec] for indices [s0, ..., sk-1], si a multiple of gi.
func newLUT(idx packed, table *value, axis int) (*lutWeight, []int, error) {
	k := len(idx.shape)
	if table.rank() != k+2 {
		return nil, nil, fmt.Errorf("lut has shape %s, want rank %d for indices %s", tensor.ShapeString(table.shape), k+2, tensor.ShapeString(idx.shape))
	}
	g, err := newGroups(idx.shape, table.shape[:k])
	if err != nil {
		return nil, nil, err
	}
	n := table.shape[k]
	if n < 2 || n > 256 || n&(n-1) != 0 {
		return nil, nil, fmt.Errorf("lut has %d entries, want 2, 4, 8, 16, 64 or 256", n)
	}
	w := &lutWeight{idx: idx, bits: idx.dtype.Bits(), groups: g, size: n, vec: table.shape[k+1]}
	if w.vec < 1 {
		return nil, nil, fmt.Errorf("lut has vectors of %d numbers", w.vec)
	}
	if entry := entryBits(n); entry != w.bits {
		if w.bits != 8 || !idx.below(n) {
			return nil, nil, fmt.Errorf("indices have %d bits, a lut of %d entries wants %d", w.bits, n, entry)
		}
	}
	shape := append([]int{}, idx.shape...)
	if w.vec > 1 {
		if w.axis, err = axisOf(axis, k); err != nil {
			return nil, nil, fmt.Errorf("vector_axis: %w", err)
		}
		shape[w.axis] *= w.vec
		w.inner = product(shape[w.axis+1:])
	}
	w.rows, w.cols = matrixDims(shape)
	_, w.idxCols = matrixDims(idx.shape)
	if w.vec == 1 && table.dtype == tensor.FP16 && w.bits == entryBits(n) {
		w.loops = vectorLUT(w.bits)
	}
	if w.loops != nil {
		w.halves = w.loops.tables(table, n)
	} else {
		w.table = table.wide()
	}
	return w, shape, nil
}

func entryBits(n int) int { return bits.Len(uint(n)) - 1 }

// tables lays out tables of n fp16 entries as the loops want them.
func (l *lutLoops) tables(table *value, n int) []byte {
	out := make([]byte, 2*table.size())
	for k := range table.size() {
		var h uint16
		switch {
		case table.h != nil:
			h = table.h[k]
		default:
			h = tensor.F32ToF16(table.f[k])
		}
		low, high := k/n*2*n+k%n, k/n*2*n+k%n+n
		if l.plain {
			low, high = 2*k, 2*k+1
		}
		out[low], out[high] = byte(h), byte(h>>8)
	}
	return out
}

// entries returns table g; buf is used when only its bytes are kept.
func (w *lutWeight) entries(g int, buf *[256]float32) []float32 {
	if w.loops == nil {
		return w.table[g*w.size:][:w.size]
	}
	t := w.halves[g*2*w.size:]
	for k := range w.size {
		low, high := t[k], t[w.size+k]
		if w.loops.plain {
			low, high = t[2*k], t[2*k+1]
		}
		buf[k] = tensor.F16ToF32(uint16(low) | uint16(high)<<8)
	}
	return buf[:w.size]
}

// proven runs the loops for n-bit indices on numbers whose results are known.
func (l *lutLoops) proven(n int) bool {
	const blocks = 3
	idx := make([]byte, blocks*l.bytes+l.reads)
	seed := uint32(1)
	next := func() uint32 { seed = seed*1664525 + 1013904223; return seed >> 8 }
	for i := range idx {
		idx[i] = byte(next())
	}
	table := &value{dtype: tensor.FP16, shape: []int{1 << n}, h: make([]uint16, 1<<n)}
	for i := range table.h {
		table.h[i] = tensor.F32ToF16(float32(int(next()%2048)-1024) / 64)
	}
	bytes := l.tables(table, 1<<n)
	x, got := make([]float32, 32*blocks), make([]float32, 32*blocks)
	want := float32(0)
	for k := range x {
		x[k] = float32(int(next()%16) - 8)
		want += x[k] * tensor.F16ToF32(table.h[index(idx, n, k)]) // exact: few bits each
	}
	l.lookup(&got[0], &idx[0], &bytes[0], blocks)
	for k := range got {
		if got[k] != tensor.F16ToF32(table.h[index(idx, n, k)]) {
			return false
		}
	}
	var sums [2]float32
	l.dot(&sums[0], &idx[0], &bytes[0], &x[0], blocks, 1)
	ok := sums[0] == want
	l.dot(&sums[0], &idx[0], &bytes[0], &x[0], 1, 2) // two rows of one block
	for r := range sums {
		want = 0
		for k := range 32 {
			want += x[k] * tensor.F16ToF32(table.h[index(idx, n, 32*r+k)])
		}
		ok = ok && sums[r] == want
	}
	return ok
}

// blocks returns how many whole blocks of 32 indices, from index first on,
// the vector loops may take, and where they lie.
func (w *lutWeight) blocks(first, n int) (src []byte, count int) {
	if w.loops == nil || first*w.bits&7 != 0 {
		return nil, 0
	}
	src = w.idx.data[first*w.bits>>3:]
	count = n / 32
	if over := (count-1)*w.loops.bytes + w.loops.reads - len(src); over > 0 {
		count -= (over + w.loops.bytes - 1) / w.loops.bytes
	}
	return src, max(count, 0)
}

// below reports whether every 8-bit index is less than n.
func (p packed) below(n int) bool {
	for _, x := range p.data {
		if int(x) >= n {
			return false
		}
	}
	return true
}

func (w *lutWeight) dims() (int, int) { return w.rows, w.cols }

func (w *lutWeight) row(dst []float32, r int) {
	if w.vec > 1 {
		w.vectorRow(dst, r)
		return
	}
	base, start := w.groups.base(r), 0
	for _, s := range w.groups.segs {
		g := base + s.off
		if src, n := w.blocks(r*w.cols+start, s.end-start); n > 0 {
			w.loops.lookup(&dst[start], &src[0], &w.halves[g*2*w.size], n)
			start += 32 * n
		}
		if start < s.end {
			var buf [256]float32
			lookup(dst[start:s.end], w.idx.data, w.bits, r*w.cols+start, w.entries(g, &buf))
			start = s.end
		}
	}
}

// dotRows writes the products of rows [r, r+len(y)) and x. Rows that share a
// table and have no columns left over go to the vector loops together.
func (w *lutWeight) dotRows(y, x []float32, r int, buf []float32) {
	whole := w.loops != nil && len(w.groups.segs) == 1 && w.cols%32 == 0 && w.cols > 0
	for len(y) > 0 {
		n := 1
		if whole {
			n = min(len(y), w.groups.block0-r%w.groups.block0)
			if src, blocks := w.blocks(r*w.cols, n*w.cols); blocks == n*w.cols/32 {
				g := w.groups.base(r) + w.groups.segs[0].off
				w.loops.dot(&y[0], &src[0], &w.halves[g*2*w.size], &x[0], w.cols/32, n)
				y, r = y[n:], r+n
				continue
			}
			n = 1
		}
		y[0] = w.dotRow(x, r, buf)
		y, r = y[n:], r+n
	}
}

// dotRow returns the product of row r and x; buf has room for a row.
func (w *lutWeight) dotRow(x []float32, r int, buf []float32) float32 {
	if w.loops == nil {
		w.row(buf[:w.cols], r)
		return dot(buf[:w.cols], x)
	}
	var sum float32
	base, start := w.groups.base(r), 0
	for _, s := range w.groups.segs {
		g := base + s.off
		if src, n := w.blocks(r*w.cols+start, s.end-start); n > 0 {
			w.loops.dot(&buf[0], &src[0], &w.halves[g*2*w.size], &x[start], n, 1)
			sum += buf[0]
			start += 32 * n
		}
		if start < s.end {
			rest := buf[:s.end-start]
			var tab [256]float32
			lookup(rest, w.idx.data, w.bits, r*w.cols+start, w.entries(g, &tab))
			sum += dot(rest, x[start:s.end])
		}
		start = s.end
	}
	return sum
}

// vectorRow writes a row of a constant whose table entries are vectors.
func (w *lutWeight) vectorRow(dst []float32, r int) {
	along := w.axis == 0 && len(w.idx.shape) > 1 // vectors lie across rows
	ir, comp := r, 0
	if along {
		ir, comp = r/w.vec, r%w.vec
	}
	base, start := w.groups.base(ir), 0
	for _, s := range w.groups.segs {
		t := w.table[(base+s.off)*w.size*w.vec:]
		for k := start; k < s.end; k++ {
			x := int(index(w.idx.data, w.bits, ir*w.idxCols+k)) * w.vec
			if along {
				dst[k] = t[x+comp]
				continue
			}
			at := k/w.inner*w.vec*w.inner + k%w.inner
			for v := range w.vec {
				dst[at+v*w.inner] = t[x+v]
			}
		}
		start = s.end
	}
}

// index reads one n-bit index of a stream, least significant bit first.
func index(data []byte, n, k int) uint32 {
	bit := k * n
	x := uint32(data[bit>>3])
	if bit&7+n > 8 {
		x |= uint32(data[bit>>3+1]) << 8
	}
	return x >> (bit & 7) & (1<<n - 1)
}

// lookup writes t[index] for len(dst) indices from index first on.
func lookup(dst []float32, data []byte, n, first int, t []float32) {
	k := 0
	for k < len(dst) && (first+k)*n&7 != 0 {
		dst[k] = t[index(data, n, first+k)]
		k++
	}
	if k == len(dst) {
		return
	}
	src := data[(first+k)*n>>3:]
	switch n {
	case 8:
		if len(t) == 256 {
			t := (*[256]float32)(t)
			for j, x := range src[:len(dst)] {
				dst[j] = t[x]
			}
			return
		}
		for j, x := range src[:len(dst)] {
			dst[j] = t[x]
		}
		return
	case 6:
		t := (*[64]float32)(t)
		for ; k+4 <= len(dst); k += 4 {
			x := uint32(src[0]) | uint32(src[1])<<8 | uint32(src[2])<<16
			src = src[3:]
			d := dst[k : k+4 : k+4]
			d[0], d[1], d[2], d[3] = t[x&63], t[x>>6&63], t[x>>12&63], t[x>>18&63]
		}
	case 4:
		t := (*[16]float32)(t)
		for ; k+2 <= len(dst); k += 2 {
			x := src[0]
			src = src[1:]
			dst[k], dst[k+1] = t[x&15], t[x>>4]
		}
	case 2:
		t := (*[4]float32)(t)
		for ; k+4 <= len(dst); k += 4 {
			x := src[0]
			src = src[1:]
			d := dst[k : k+4 : k+4]
			d[0], d[1], d[2], d[3] = t[x&3], t[x>>2&3], t[x>>4&3], t[x>>6]
		}
	}
	for ; k < len(dst); k++ {
		dst[k] = t[index(data, n, first+k)]
	}
}
