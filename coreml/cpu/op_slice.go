package cpu

import (
	"fmt"
	"slices"

	"github.com/anepkg/anepkg/coreml/tensor"
)

var sliceOps = []opDef{
	{name: "slice_by_index", since: 15, types: "every type", exact: true, build: buildSliceByIndex,
		doc: "x[begin:end:stride] as in Python; begin_mask and end_mask leave an end open, squeeze_mask takes one index and drops the dimension"},
	{name: "slice_by_size", since: 15, types: "every type", exact: true, build: buildSliceBySize,
		doc: "size[i] elements from begin[i] on; -1 goes to the end"},
	{name: "slice_update", since: 18, types: "every type", exact: true, build: buildSliceUpdate,
		doc: "x with x[begin:end:stride] replaced by update; done in the state itself when x was read from it and goes back to it"},
}

// indexing are the arguments that slice_by_index and slice_update share.
type indexing struct {
	begin, end         slot
	stride             []int
	beginMask, endMask []bool
	squeeze            []bool
}

func (b *builder) indexing() indexing {
	ix := indexing{begin: b.input("begin"), end: b.input("end")}
	ix.stride, _ = b.intsConst("stride")
	ix.beginMask, ix.endMask, ix.squeeze = b.boolsConst("begin_mask"), b.boolsConst("end_mask"), b.boolsConst("squeeze_mask")
	return ix
}

// window is a resolved slice: per dimension the first index, how many, and
// the step between them.
type window struct {
	begin, size, step []int
	shape             []int // without squeezed dimensions
}

func flag(mask []bool, i int) bool { return i < len(mask) && mask[i] }

// resolve clamps the ends as Python does.
func (ix indexing) resolve(c *call, shape []int) (w window, err error) {
	begin, end := c.dims(ix.begin), c.dims(ix.end)
	rank := len(shape)
	if len(begin) != rank || len(end) != rank || ix.stride != nil && len(ix.stride) != rank {
		return w, fmt.Errorf("begin %v, end %v and stride %v for x of rank %d", begin, end, ix.stride, rank)
	}
	w = window{c.m.newDims(rank), c.m.newDims(rank), c.m.newDims(rank), c.m.newDims(rank)[:0]}
	for i, n := range shape {
		step := 1
		if ix.stride != nil {
			step = ix.stride[i]
		}
		if flag(ix.squeeze, i) {
			at := begin[i]
			if flag(ix.beginMask, i) {
				at = 0
			}
			if at < 0 {
				at += n
			}
			if at < 0 || at >= n {
				return w, fmt.Errorf("begin[%d] is %d, dimension %d of x has %d elements", i, begin[i], i, n)
			}
			w.begin[i], w.size[i], w.step[i] = at, 1, 1
			continue
		}
		if step == 0 {
			return w, fmt.Errorf("stride[%d] is 0", i)
		}
		b, e := pythonRange(begin[i], end[i], step, n, flag(ix.beginMask, i), flag(ix.endMask, i))
		w.begin[i], w.step[i] = b, step
		if step > 0 && e > b {
			w.size[i] = (e - b + step - 1) / step
		} else if step < 0 && e < b {
			w.size[i] = (b - e - step - 1) / -step
		}
		w.shape = append(w.shape, w.size[i])
	}
	return w, nil
}

// pythonRange turns a slice's ends into indices of an axis of n elements.
func pythonRange(b, e, step, n int, openBegin, openEnd bool) (int, int) {
	low, high := 0, n
	if step < 0 {
		low, high = -1, n-1
	}
	clamp := func(i int) int {
		if i < 0 {
			i += n
		}
		return min(max(i, low), high)
	}
	b, e = clamp(b), clamp(e)
	if openBegin {
		b = low
		if step < 0 {
			b = high
		}
	}
	if openEnd {
		e = high
		if step < 0 {
			e = low
		}
	}
	return b, e
}

func buildSliceByIndex(b *builder) kernel {
	x := b.input("x")
	ix := b.indexing()
	b.results(1)
	return func(c *call) error {
		w, err := ix.resolve(c, c.in[x].shape)
		if err != nil {
			return err
		}
		c.slice(0, c.in[x], w.begin, w.size, w.step)
		c.out[0].shape = w.shape
		return nil
	}
}

func buildSliceBySize(b *builder) kernel {
	x, begin, size := b.input("x"), b.input("begin"), b.input("size")
	b.results(1)
	return func(c *call) error {
		v := c.in[x]
		from, n := c.dims(begin), c.dims(size)
		if len(from) != v.rank() || len(n) != v.rank() {
			return fmt.Errorf("begin %v and size %v for x of rank %d", from, n, v.rank())
		}
		for i, d := range v.shape {
			if from[i] < 0 {
				from[i] += d
			}
			if n[i] == -1 {
				n[i] = d - from[i]
			}
			if from[i] < 0 || n[i] < 0 || from[i]+n[i] > d {
				return fmt.Errorf("begin %v and size %v reach outside x of shape %s", from, n, tensor.ShapeString(v.shape))
			}
		}
		c.slice(0, v, from, n, nil)
		return nil
	}
}

// slice makes result i: size[d] elements of dimension d from begin[d] on,
// step[d] apart (nil = 1). Elements that lie together are not copied.
func (c *call) slice(i int, v *value, begin, size, step []int) {
	strides := c.m.rowMajor(v.shape)
	off, st := 0, c.m.newDims(len(size))
	empty := false
	for d := range size {
		s := 1
		if step != nil {
			s = step[d]
		}
		off += begin[d] * strides[d]
		st[d] = strides[d] * s
		empty = empty || size[d] == 0
	}
	if v.w == nil && (empty || together(size, st)) {
		if empty {
			off = 0
		}
		c.alias(i, v, off, size)
		return
	}
	if c.lazy(i, v, off, size, st, size) {
		return
	}
	keep := c.out[0]
	c.strided(v, off, size, st)
	if i != 0 {
		c.out[i], c.out[0] = c.out[0], keep
	}
}

// together reports whether a strided window is one run of memory.
func together(size, strides []int) bool {
	n := 1
	for d := len(size) - 1; d >= 0; d-- {
		if size[d] != 1 && strides[d] != n {
			return false
		}
		n *= size[d]
	}
	return true
}

func buildSliceUpdate(b *builder) kernel {
	x, upd := b.input("x"), b.input("update")
	ix := b.indexing()
	b.results(1)
	return func(c *call) error {
		v, u := c.in[x], c.in[upd]
		w, err := ix.resolve(c, v.shape)
		if err != nil {
			return err
		}
		if !slices.Equal(u.shape, w.shape) {
			return fmt.Errorf("update has shape %s, the slice of x %s", tensor.ShapeString(u.shape), tensor.ShapeString(w.shape))
		}
		if u.dtype != v.dtype {
			return fmt.Errorf("update is %s, x is %s", u.dtype, v.dtype)
		}
		c.copyForUpdate(x)
		switch o := c.out[0]; {
		case o.h != nil && u.h != nil:
			putWindow(c, o.h, u.h, v.shape, w)
		case o.h != nil:
			src := c.wide(u)
			half := c.s.arena.half(len(src))
			c.tmp = append(c.tmp, half)
			narrowHalf(half.h[:len(src)], src)
			putWindow(c, o.h, half.h[:len(src)], v.shape, w)
		case o.f != nil:
			putWindow(c, o.f, c.wide(u), v.shape, w)
		default:
			putWindow(c, o.i, u.whole(), v.shape, w)
		}
		return nil
	}
}

// copyForUpdate makes result 0 a value with x's contents that may be
// written: x itself when nobody else will look, else a copy.
func (c *call) copyForUpdate(x slot) {
	v := c.in[x]
	holders := 1
	if c.n.toState != "" && c.s.state != nil {
		if cell := c.s.state.cells[c.n.toState]; cell != nil && cell.v.buf == v.buf {
			holders = 2 // the state cell and x
		}
	}
	if v.buf != nil && v.w == nil && c.n.last[x] && v.buf.refs <= holders {
		c.alias(0, v, 0, v.shape)
		return
	}
	switch {
	case v.h != nil:
		copy(c.newHalf(v.shape), v.h)
	case v.isFloat():
		copy(c.newFloat(0, v.shape), c.wide(v))
	default:
		copy(c.newInt(0, v.shape), v.whole())
	}
	c.out[0].dtype = v.dtype
}

// putWindow writes src, dense, to a window of dst, which has the given shape.
func putWindow[T any](c *call, dst, src []T, shape []int, w window) {
	if len(src) == 0 {
		return
	}
	strides := c.m.rowMajor(shape)
	off := 0
	for d := range shape {
		off += w.begin[d] * strides[d]
		strides[d] *= w.step[d]
	}
	size, st := c.m.mergeDims(w.size, strides)
	last := len(size) - 1
	n, step := size[last], st[last]
	for r := 0; r*n < len(src); r++ {
		at := off + rowOffset(r, size[:last], st)
		if step == 1 {
			copy(dst[at:at+n], src[r*n:(r+1)*n])
			continue
		}
		for _, e := range src[r*n : (r+1)*n] {
			dst[at] = e
			at += step
		}
	}
}
