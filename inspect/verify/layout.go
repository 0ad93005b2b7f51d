package verify

import (
	"slices"

	"github.com/anepkg/anepkg/coreml/mil"
	"github.com/anepkg/anepkg/coreml/tensor"
)

var layoutOps = map[string]func(*call){
	"reshape": reshape, "transpose": transpose, "expand_dims": expandDims, "squeeze": squeeze, "concat": concat, "stack": stack,
	"split": split, "tile": tile, "pad": pad, "shape": shapeOp, "fill": fill, "one_hot": oneHot, "range_1d": range1D, "flatten2d": flatten2D,
}

// reshape: -1 is what is left, 0 takes the dimension of x.
func reshape(c *call) {
	x, ok := c.in("x")
	if !ok || !c.results(1) {
		return
	}
	c.integers("shape")
	want, known := c.ints("shape")
	if !known {
		if t, ok := c.in("shape"); ok && len(t.Shape) == 1 && t.Shape[0] >= 0 {
			c.result(0, x.DType, unknowns(t.Shape[0]))
		}
		c.sameCount(x.Shape, c.op.Outputs[0].Type.Shape)
		return
	}
	out := slices.Clone(want)
	open := -1
	for i, d := range want {
		switch {
		case d == 0 && len(want) == len(x.Shape):
			out[i] = x.Shape[i]
		case d == 0:
			out[i] = unknown
		case d == -1 && open < 0:
			open = i
		case d < 0:
			c.problem(Argument, c.at("shape"), want, "at most one -1", "shape %s has a second unknown dimension", tensor.ShapeString(want))
			return
		}
	}
	out, ok = c.fillOpen(x.Shape, out, open)
	if !ok {
		c.problem(Shape, c.at("shape"), want, x.Shape, "%s cannot become %s: the numbers of elements differ", tensor.ShapeString(x.Shape), tensor.ShapeString(want))
		return
	}
	c.result(0, x.DType, out)
}

// fillOpen computes the open dimension of a reshape and compares the counts.
func (c *call) fillOpen(x, out []int, open int) ([]int, bool) {
	total := tensor.Count(x)
	if open < 0 {
		n := tensor.Count(out)
		return out, total < 0 || n < 0 || total == n
	}
	rest := 1
	for i, d := range out {
		if i != open {
			rest = times(rest, d)
		}
	}
	if total < 0 || rest < 0 {
		return with(out, open, unknown), true
	}
	if rest == 0 || total%rest != 0 {
		return nil, false
	}
	return with(out, open, total/rest), true
}

func (c *call) sameCount(x, out []int) {
	a, b := tensor.Count(x), tensor.Count(out)
	if a >= 0 && b >= 0 && a != b {
		c.problem(Shape, c.op.Outputs[0].Pos, out, x, "result %s has %d elements, x %s has %d", tensor.ShapeString(out), b, tensor.ShapeString(x), a)
	}
}

func transpose(c *call) {
	x, ok := c.in("x")
	perm, known := c.ints("perm")
	if !ok || !known {
		return
	}
	out, seen := make([]int, len(x.Shape)), make([]bool, len(x.Shape))
	for i, p := range perm {
		if p < 0 {
			p += len(x.Shape)
		}
		if p < 0 || p >= len(x.Shape) || len(perm) != len(x.Shape) || seen[p] {
			c.problem(Argument, c.at("perm"), perm, len(x.Shape), "perm %v is no permutation of %d dimensions", perm, len(x.Shape))
			return
		}
		seen[p], out[i] = true, x.Shape[p]
	}
	if len(perm) != len(x.Shape) {
		c.problem(Argument, c.at("perm"), perm, len(x.Shape), "perm %v is no permutation of %d dimensions", perm, len(x.Shape))
		return
	}
	c.result(0, x.DType, out)
}

// expandDims counts axes in the result.
func expandDims(c *call) {
	x, ok := c.in("x")
	axes, known := c.ints("axes")
	if !ok || !known {
		return
	}
	rank := len(x.Shape) + len(axes)
	one := make([]bool, rank)
	for _, a := range axes {
		k, ok := c.wrap("axes", a, rank)
		if !ok {
			return
		}
		if one[k] {
			c.problem(Argument, c.at("axes"), axes, "different axes", "axes %v name one axis twice", axes)
			return
		}
		one[k] = true
	}
	out := make([]int, 0, rank)
	next := 0
	for i := range rank {
		if one[i] {
			out = append(out, 1)
			continue
		}
		out = append(out, x.Shape[next])
		next++
	}
	c.result(0, x.DType, out)
}

func squeeze(c *call) {
	x, ok := c.in("x")
	if !ok {
		return
	}
	drop := make([]bool, len(x.Shape))
	if !c.has("axes") {
		for i, d := range x.Shape {
			if d == unknown {
				return
			}
			drop[i] = d == 1
		}
	} else {
		axes, known := c.ints("axes")
		if !known {
			return
		}
		for _, a := range axes {
			k, ok := c.wrap("axes", a, len(x.Shape))
			if !ok {
				return
			}
			if differ(x.Shape[k], 1) {
				c.problem(Shape, c.at("axes"), x.Shape[k], 1, "axis %d of %s is not 1", a, tensor.ShapeString(x.Shape))
			}
			drop[k] = true
		}
	}
	out := []int{}
	for i, d := range x.Shape {
		if !drop[i] {
			out = append(out, d)
		}
	}
	c.result(0, x.DType, out)
}

func concat(c *call) {
	vals, ok := c.many("values")
	if !ok || len(vals[0].Shape) == 0 {
		return // scalars join to a vector
	}
	first := vals[0]
	axis, ok := c.axis("axis", 0, len(first.Shape))
	if !ok {
		return
	}
	out := slices.Clone(first.Shape)
	for i, t := range vals[1:] {
		if t.DType != first.DType {
			c.problem(DType, c.at("values"), t.DType.Long(), first.DType.Long(), "operand %d is %s, the first %s", i+2, t.DType, first.DType)
		}
		if len(t.Shape) != len(out) || !tensor.Compatible(with(t.Shape, axis, 0), with(out, axis, 0)) {
			c.problem(Shape, c.at("values"), t.Shape, first.Shape, "operand %d has shape %s, the first %s; only axis %d may differ", i+2, tensor.ShapeString(t.Shape), tensor.ShapeString(first.Shape), axis)
			return
		}
		out[axis] = add(out[axis], t.Shape[axis])
	}
	c.result(0, first.DType, out)
}

func stack(c *call) {
	vals, ok := c.many("values")
	if !ok {
		return
	}
	axis, ok := c.axis("axis", 0, len(vals[0].Shape)+1)
	if !ok {
		return
	}
	for i, t := range vals[1:] {
		if t.DType != vals[0].DType {
			c.problem(DType, c.at("values"), t.DType.Long(), vals[0].DType.Long(), "operand %d is %s, the first %s", i+2, t.DType, vals[0].DType)
		}
		if !tensor.Compatible(t.Shape, vals[0].Shape) {
			c.problem(Shape, c.at("values"), t.Shape, vals[0].Shape, "operand %d has shape %s, the first %s", i+2, tensor.ShapeString(t.Shape), tensor.ShapeString(vals[0].Shape))
		}
	}
	c.result(0, vals[0].DType, slices.Insert(slices.Clone(vals[0].Shape), axis, len(vals)))
}

func split(c *call) {
	x, ok := c.in("x")
	if !ok || len(x.Shape) == 0 {
		return
	}
	axis, ok := c.axis("axis", 0, len(x.Shape))
	if !ok {
		return
	}
	d := x.Shape[axis]
	sizes, known := c.ints("split_sizes")
	if !c.has("split_sizes") {
		n, ok := c.intOr("num_splits", 0)
		if !ok || n <= 0 {
			return
		}
		if d >= 0 && d%n != 0 {
			c.problem(Shape, c.at("num_splits"), d, n, "%d does not divide into %d parts", d, n)
			return
		}
		sizes, known = slices.Repeat([]int{part(d, n)}, n), true
	}
	if !known || !c.results(len(sizes)) {
		return
	}
	sum := 0
	for i, s := range sizes {
		sum = add(sum, s)
		c.result(i, x.DType, with(x.Shape, axis, s))
	}
	if differ(sum, d) {
		c.problem(Shape, c.at("split_sizes"), sum, d, "split_sizes give %d, axis %d of %s has %d", sum, axis, tensor.ShapeString(x.Shape), d)
	}
}

func part(d, n int) int {
	if d < 0 {
		return unknown
	}
	return d / n
}

func tile(c *call) {
	x, ok := c.in("x")
	reps, known := c.ints("reps")
	if !ok || !known {
		return
	}
	if len(reps) != len(x.Shape) {
		c.problem(Argument, c.at("reps"), reps, len(x.Shape), "reps %v has %d entries, x has rank %d", reps, len(reps), len(x.Shape))
		return
	}
	out := slices.Clone(x.Shape)
	for i, r := range reps {
		out[i] = times(out[i], r)
	}
	c.result(0, x.DType, out)
}

// pad: pairs (before, after) for the last dimensions.
func pad(c *call) {
	x, ok := c.in("x")
	pads, known := c.ints("pad")
	if !ok || !known {
		return
	}
	if len(pads)%2 != 0 || len(pads) > 2*len(x.Shape) {
		c.problem(Argument, c.at("pad"), pads, 2*len(x.Shape), "pad %v does not fit rank %d", pads, len(x.Shape))
		return
	}
	out := slices.Clone(x.Shape)
	skip := len(x.Shape) - len(pads)/2
	for i := range len(pads) / 2 {
		if out[skip+i] >= 0 {
			out[skip+i] += pads[2*i] + pads[2*i+1]
		}
	}
	c.result(0, x.DType, out)
}

func shapeOp(c *call) {
	x, ok := c.in("x")
	if ok {
		c.result(0, anything, []int{len(x.Shape)})
	}
}

func fill(c *call) {
	if dims, known := c.ints("shape"); known {
		d := anything
		if t, ok := c.in("value"); ok {
			d = t.DType
		}
		c.result(0, d, dims)
	}
}

func oneHot(c *call) {
	x, ok := c.in("indices")
	if !ok {
		return
	}
	c.integers("indices")
	axis, ok := c.axis("axis", -1, len(x.Shape)+1)
	if !ok {
		return
	}
	n, known := c.intOr("one_hot_vector_size", unknown)
	if !known || n < 0 {
		n = unknown
	}
	c.result(0, anything, slices.Insert(slices.Clone(x.Shape), axis, n))
}

func range1D(c *call) {
	if t, ok := c.in("start"); ok {
		c.result(0, t.DType, []int{mil.Unknown})
	}
}

func flatten2D(c *call) {
	x, ok := c.in("x")
	if !ok || len(x.Shape) == 0 {
		return
	}
	c.result(0, x.DType, []int{unknown, unknown})
	c.sameCount(x.Shape, c.op.Outputs[0].Type.Shape)
}
