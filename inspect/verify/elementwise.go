package verify

import (
	"github.com/anepkg/anepkg/coreml/tensor"
)

// unary ops keep type and shape of x.
func unary(c *call) {
	x, ok := c.in("x")
	if ok && c.results(1) {
		c.result(0, x.DType, x.Shape)
	}
}

// pair returns the joined shape of x and y; both must have one element type.
func (c *call) pair() (d tensor.DType, shape []int, ok bool) {
	x, ok1 := c.in("x")
	y, ok2 := c.in("y")
	if !ok1 || !ok2 || !c.results(1) {
		return anything, nil, false
	}
	if c.op.Type != "pow" || !x.DType.IsInt() || !y.DType.IsInt() { // powers of integers are printed with mixed widths
		c.same("y", y, x.DType, "x")
	}
	shape, ok = broadcast(x.Shape, y.Shape)
	if !ok {
		c.problem(Shape, c.at("y"), y.Shape, x.Shape, "shapes %s and %s do not broadcast", tensor.ShapeString(x.Shape), tensor.ShapeString(y.Shape))
	}
	return x.DType, shape, !c.failed
}

// binary ops give the type of their operands; the quotient and the power of
// integers are printed in several types.
func binary(c *call) {
	d, shape, ok := c.pair()
	if !ok {
		return
	}
	if d.IsInt() && (c.op.Type == "real_div" || c.op.Type == "pow") {
		d = anything
	}
	c.result(0, d, shape)
}

func comparison(c *call) {
	if _, shape, ok := c.pair(); ok {
		c.result(0, tensor.Bool, shape)
	}
}

func logical(c *call) {
	d, shape, ok := c.pair()
	if !ok {
		return
	}
	if d != tensor.Bool {
		c.problem(DType, c.at("x"), d.Long(), "bool", "x is %s, want bool", d)
	}
	c.result(0, tensor.Bool, shape)
}

func logicalNot(c *call) {
	x, ok := c.in("x")
	if !ok {
		return
	}
	if x.DType != tensor.Bool {
		c.problem(DType, c.at("x"), x.DType.Long(), "bool", "x is %s, want bool", x.DType)
	}
	c.result(0, tensor.Bool, x.Shape)
}

// cast gives the type that dtype names.
func cast(c *call) {
	x, ok := c.in("x")
	if !ok || !c.results(1) {
		return
	}
	d := anything
	if s, ok := c.value("dtype").Str(); ok {
		if d, ok = tensor.ParseDType(s); !ok {
			c.problem(Argument, c.at("dtype"), s, "an element type", "dtype %q is no element type", s)
		}
	}
	c.result(0, d, x.Shape)
}

func selection(c *call) {
	cond, ok1 := c.in("cond")
	a, ok2 := c.in("a")
	b, ok3 := c.in("b")
	if !ok1 || !ok2 || !ok3 || !c.results(1) {
		return
	}
	c.same("b", b, a.DType, "a")
	if cond.DType != tensor.Bool {
		c.problem(DType, c.at("cond"), cond.DType.Long(), "bool", "cond is %s, want bool", cond.DType)
	}
	shape, ok := broadcast(a.Shape, b.Shape)
	if ok {
		shape, ok = broadcast(shape, cond.Shape)
	}
	if !ok {
		c.problem(Shape, c.op.Pos, cond.Shape, a.Shape, "shapes %s, %s and %s do not broadcast", tensor.ShapeString(cond.Shape), tensor.ShapeString(a.Shape), tensor.ShapeString(b.Shape))
		return
	}
	c.result(0, a.DType, shape)
}

func identity(c *call) {
	if x, ok := c.in("x"); ok {
		c.result(0, x.DType, x.Shape)
	}
}
