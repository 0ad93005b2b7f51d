package cpu

// view makes a value out of elements that lie strides apart in other memory,
// so that a cache can be sliced, repeated for grouped heads and turned around
// without being copied. The dims are those of the memory walk: their
// row-major order is the value's, but the value's shape may group them
// otherwise. Ops that cannot walk a view get a dense copy.
type view struct {
	h             []uint16
	f             []float32
	off           int
	dims, strides []int
}

// lazyElements is the size from which a copy is worth putting off.
const lazyElements = 1 << 12

// lazy makes result i a view of v's memory when that is worthwhile, and
// reports whether it did. Only fp16 as stored, which states and their slices
// are, is viewed: computed values are small and read many times.
func (c *call) lazy(i int, v *value, off int, dims, strides, shape []int) bool {
	if v.h == nil || product(dims) < lazyElements {
		return false
	}
	d, s := c.m.mergeDims(dims, strides)
	w := c.m.newView(view{h: v.h, off: off, dims: d, strides: s})
	c.out[i] = c.m.newValue(value{dtype: v.dtype, shape: shape, buf: v.buf, view: w})
	v.buf.retain()
	return true
}

// dense replaces a view by a copy of its elements; other values are returned
// as they are. The copy is the caller's.
func (c *call) dense(v *value) *value {
	w := v.view
	if w == nil {
		return v
	}
	n := bounded(v.shape)
	out := c.m.newValue(value{dtype: v.dtype, shape: v.shape})
	if w.h != nil {
		out.buf = c.s.arena.half(n)
		out.h = out.buf.h[:n]
		copyStrided(c, &c.copyH, out.h, w.h, w.off, w.dims, w.strides)
		return out
	}
	out.buf = c.s.arena.float(n)
	out.f = out.buf.f[:n]
	copyStrided(c, &c.copyF, out.f, w.f, w.off, w.dims, w.strides)
	return out
}

// settle gives an op that cannot walk views dense operands. The copies stay
// in place of the views, so that each is made once.
func (c *call) settle() {
	for i, v := range c.in {
		if v == nil || v.view == nil {
			continue
		}
		d := c.dense(v)
		id := c.n.ins[i]
		if c.s.vals[id] == v {
			c.s.vals[id] = d
		}
		v.buf.release()
		for k := i; k < len(c.in); k++ {
			if c.in[k] == v {
				c.in[k] = d
			}
		}
	}
}

// matrices finds the last two dimensions of a shape in a view: their strides,
// and the dims and strides before them, which number the matrices. It fails
// when one of the two is walked in unequal steps.
func (w *view) matrices(m *memory, shape []int) (rows, cols int, dims, strides []int, ok bool) {
	dims, strides = m.copyDims(w.dims), m.copyDims(w.strides)
	take := func(n int) (stride int, ok bool) {
		k := len(dims) - 1
		if n == 1 {
			return 0, true
		}
		if k < 0 || dims[k]%n != 0 {
			return 0, false
		}
		stride = strides[k]
		if dims[k] == n {
			dims, strides = dims[:k], strides[:k]
		} else { // the rest belongs to the dimension before, n steps on
			dims[k] /= n
			strides[k] *= n
		}
		return stride, true
	}
	a := len(shape) - 2
	if cols, ok = take(shape[a+1]); !ok {
		return 0, 0, nil, nil, false
	}
	rows, ok = take(shape[a])
	return rows, cols, dims, strides, ok
}

// copy returns a dense copy of v, which w describes, outside any arena.
func (w *view) copy(v *value) *value {
	out := &value{dtype: v.dtype, shape: v.shape}
	n := v.size()
	if w.h != nil {
		out.h = make([]uint16, n)
	} else {
		out.f = make([]float32, n)
	}
	for k := range n {
		at := w.off + rowOffset(k, w.dims, w.strides)
		if w.h != nil {
			out.h[k] = w.h[at]
		} else {
			out.f[k] = w.f[at]
		}
	}
	return out
}
