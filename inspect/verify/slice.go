package verify

import (
	"slices"

	"github.com/anepkg/anepkg/coreml/mil"
	"github.com/anepkg/anepkg/coreml/tensor"
)

var sliceOps = map[string]func(*call){"slice_by_index": sliceByIndex, "slice_by_size": sliceBySize, "slice_update": sliceUpdate}

// sliced computes the shape of x[begin:end:stride]; dimensions that run-time
// positions decide are unknown. keep[i] is false for dimensions that the
// squeeze mask drops.
func (c *call) sliced(x mil.Type) (shape []int, ok bool) {
	n := len(x.Shape)
	for _, name := range []string{"begin", "end"} {
		c.integers(name)
		if t, ok := c.in(name); ok && len(t.Shape) == 1 && differ(t.Shape[0], n) {
			c.problem(Argument, c.at(name), t.Shape[0], n, "%s has %d entries, x has rank %d", name, t.Shape[0], n)
			return nil, false
		}
	}
	begin, ok1 := c.ints("begin")
	end, ok2 := c.ints("end")
	stride, ok3 := c.ints("stride")
	if !c.has("stride") {
		stride, ok3 = slices.Repeat([]int{1}, n), true
	}
	fromStart, ok4 := c.flags("begin_mask", n)
	toEnd, ok5 := c.flags("end_mask", n)
	single, ok6 := c.flags("squeeze_mask", n)
	if !ok3 || !ok4 || !ok5 || !ok6 || len(stride) != n || ok1 && len(begin) != n || ok2 && len(end) != n || c.failed {
		return nil, false
	}
	shape = []int{}
	for i, d := range x.Shape {
		if single[i] {
			continue
		}
		if d < 0 || !ok1 && !fromStart[i] || !ok2 && !toEnd[i] || stride[i] == 0 {
			shape = append(shape, unknown)
			continue
		}
		b, e := 0, 0
		if ok1 {
			b = begin[i]
		}
		if ok2 {
			e = end[i]
		}
		shape = append(shape, sliceLength(d, b, e, stride[i], fromStart[i], toEnd[i]))
	}
	return shape, true
}

// sliceLength is the length of a python slice over d elements.
func sliceLength(d, b, e, step int, fromStart, toEnd bool) int {
	low, high := 0, d
	if step < 0 {
		low, high = -1, d-1
	}
	clamp := func(k int) int {
		if k < 0 {
			k += d
		}
		return min(max(k, low), high)
	}
	b, e = clamp(b), clamp(e)
	if fromStart {
		b = low
		if step < 0 {
			b = high
		}
	}
	if toEnd {
		e = high
		if step < 0 {
			e = low
		}
	}
	if step < 0 {
		b, e, step = e, b, -step
	}
	return max(0, (e-b+step-1)/step)
}

func sliceByIndex(c *call) {
	x, ok := c.in("x")
	if !ok || !c.results(1) {
		return
	}
	shape, ok := c.sliced(x)
	if !ok {
		shape = nil
	}
	if c.result(0, x.DType, shape); ok && len(shape) == len(x.Shape) {
		c.within(0, x.Shape)
	}
}

// within: dimensions that run-time positions decide are at most x's.
func (c *call) within(i int, most []int) {
	out := c.op.Outputs[i]
	if out.Type.Kind != mil.TensorType || len(out.Type.Shape) != len(most) {
		return
	}
	for k, d := range out.Type.Shape {
		if most[k] >= 0 && d > most[k] {
			c.problem(Shape, out.Pos, out.Type.Shape, most, "the result has shape %s, a slice of %s is not longer", tensor.ShapeString(out.Type.Shape), tensor.ShapeString(most))
			return
		}
	}
}

func sliceBySize(c *call) {
	x, ok := c.in("x")
	if !ok || !c.results(1) {
		return
	}
	size, known := c.ints("size")
	begin, start := c.ints("begin")
	if !known {
		c.result(0, x.DType, unknowns(len(x.Shape)))
		c.within(0, x.Shape)
		return
	}
	if len(size) != len(x.Shape) || start && len(begin) != len(size) {
		c.problem(Argument, c.at("size"), size, len(x.Shape), "size %v does not fit rank %d", size, len(x.Shape))
		return
	}
	out := slices.Clone(size)
	for i, s := range size {
		if s != -1 {
			continue
		}
		out[i] = unknown
		if start && begin[i] >= 0 && x.Shape[i] >= begin[i] {
			out[i] = x.Shape[i] - begin[i]
		}
	}
	c.result(0, x.DType, out)
	c.within(0, x.Shape)
}

// sliceUpdate: the update has x's element type and the shape of the slice,
// dimensions of one element aside.
func sliceUpdate(c *call) {
	x, ok1 := c.in("x")
	u, ok2 := c.in("update")
	if !ok1 || !ok2 || !c.results(1) {
		return
	}
	c.same("update", u, x.DType, "x")
	if shape, ok := c.sliced(x); ok && len(shape) == len(u.Shape) && !tensor.Compatible(u.Shape, shape) {
		c.problem(Shape, c.at("update"), u.Shape, shape, "update has shape %s, the slice %s", tensor.ShapeString(u.Shape), tensor.ShapeString(shape))
	} else if ok && len(shape) != len(u.Shape) {
		if a, b := tensor.Count(u.Shape), tensor.Count(shape); a >= 0 && b >= 0 && a != b {
			c.problem(Shape, c.at("update"), u.Shape, shape, "update %s has %d elements, the slice %s has %d", tensor.ShapeString(u.Shape), a, tensor.ShapeString(shape), b)
		}
	}
	c.result(0, x.DType, x.Shape)
}
