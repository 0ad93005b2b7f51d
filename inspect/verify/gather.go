package verify

import (
	"slices"

	"github.com/anepkg/anepkg/coreml/tensor"
)

var gatherOps = map[string]func(*call){
	"gather": gather, "gather_along_axis": gatherAlongAxis, "gather_nd": gatherND,
	"scatter": scatter, "scatter_along_axis": scatter, "scatter_nd": scatter,
}

// gather: x[:axis] + indices[batch_dims:] + x[axis+1:].
func gather(c *call) {
	x, ok1 := c.in("x")
	ix, ok2 := c.in("indices")
	if !ok1 || !ok2 || len(x.Shape) == 0 || !c.results(1) {
		return
	}
	c.integers("indices")
	axis, ok := c.axis("axis", 0, len(x.Shape))
	batch, known := c.intOr("batch_dims", 0)
	if !ok || !known {
		return
	}
	if batch < 0 {
		batch += len(ix.Shape)
	}
	if batch < 0 || batch > axis || batch > len(ix.Shape) {
		c.problem(Argument, c.at("batch_dims"), batch, axis, "batch_dims is %d, axis %d, indices have rank %d", batch, axis, len(ix.Shape))
		return
	}
	c.result(0, x.DType, slices.Concat(x.Shape[:axis], ix.Shape[batch:], x.Shape[axis+1:]))
}

func gatherAlongAxis(c *call) {
	x, ok1 := c.in("x")
	ix, ok2 := c.in("indices")
	if !ok1 || !ok2 || !c.results(1) {
		return
	}
	c.integers("indices")
	axis, ok := c.axis("axis", 0, len(x.Shape))
	if !ok {
		return
	}
	if len(ix.Shape) != len(x.Shape) || !tensor.Compatible(with(ix.Shape, axis, 0), with(x.Shape, axis, 0)) {
		c.problem(Shape, c.at("indices"), ix.Shape, x.Shape, "indices have shape %s, x %s; only axis %d may differ", tensor.ShapeString(ix.Shape), tensor.ShapeString(x.Shape), axis)
		return
	}
	c.result(0, x.DType, ix.Shape)
}

// gatherND: indices[:-1] + x[batch_dims+indices[-1]:].
func gatherND(c *call) {
	x, ok1 := c.in("x")
	ix, ok2 := c.in("indices")
	batch, known := c.intOr("batch_dims", 0)
	if !ok1 || !ok2 || !known || len(ix.Shape) == 0 || !c.results(1) {
		return
	}
	c.integers("indices")
	depth := ix.Shape[len(ix.Shape)-1]
	if depth < 0 || batch < 0 {
		return
	}
	if batch+depth > len(x.Shape) {
		c.problem(Shape, c.at("indices"), ix.Shape, x.Shape, "indices address %d dimensions, x has rank %d", batch+depth, len(x.Shape))
		return
	}
	c.result(0, x.DType, slices.Concat(ix.Shape[:len(ix.Shape)-1], x.Shape[batch+depth:]))
}

// scatter ops give data with some elements replaced.
func scatter(c *call) {
	x, ok1 := c.in("data")
	u, ok2 := c.in("updates")
	if !ok1 || !ok2 || !c.results(1) {
		return
	}
	c.integers("indices")
	c.same("updates", u, x.DType, "data")
	c.result(0, x.DType, x.Shape)
}
