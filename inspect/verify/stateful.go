package verify

import (
	"github.com/anepkg/anepkg/coreml/mil"
	"github.com/anepkg/anepkg/coreml/tensor"
)

var statefulOps = map[string]func(*call){
	"read_state": readState, "write_state": writeState, "coreml_update_state": updateState,
	"while_loop": whileLoop, "cond": condition,
}

// state returns the tensor type of a state operand.
func (c *call) state(name string) (mil.Type, bool) {
	bs := c.op.Operand(name)
	if len(bs) != 1 {
		return mil.Type{}, false
	}
	t, ok := c.typeOf(bs[0])
	if !ok {
		return mil.Type{}, false
	}
	if !t.IsState() {
		c.problem(DType, c.at(name), t.String(), "a state", "%s is %s, want a state", name, t)
		return mil.Type{}, false
	}
	return t.State(), true
}

func readState(c *call) {
	if t, ok := c.state("input"); ok && c.results(1) {
		c.result(0, t.DType, t.Shape)
	}
}

func writeState(c *call) { c.store("input", "data") }

func updateState(c *call) {
	t, ok := c.store("state", "value")
	if ok && len(c.op.Outputs) == 1 {
		c.result(0, t.DType, t.Shape)
	}
}

// store demands that the stored value has the state's type.
func (c *call) store(state, data string) (mil.Type, bool) {
	t, ok1 := c.state(state)
	d, ok2 := c.in(data)
	if !ok1 || !ok2 {
		return t, false
	}
	c.same(data, d, t.DType, "the state")
	if !tensor.Compatible(d.Shape, t.Shape) {
		c.problem(Shape, c.at(data), d.Shape, t.Shape, "%s has shape %s, the state %s", data, tensor.ShapeString(d.Shape), tensor.ShapeString(t.Shape))
	}
	return t, !c.failed
}

// whileLoop: the two blocks take the loop variables, the second gives them.
func whileLoop(c *call) {
	n := len(c.op.Operand("loop_vars"))
	for _, b := range c.op.Blocks {
		if len(b.Params) > 0 && len(b.Params) != n {
			c.problem(Argument, c.op.Pos, len(b.Params), n, "a block takes %d values, the loop has %d", len(b.Params), n)
		}
	}
	if len(c.op.Blocks) == 2 && len(c.op.Blocks[1].Outputs) != n {
		c.problem(Argument, c.op.Pos, len(c.op.Blocks[1].Outputs), n, "the body gives %d values, the loop has %d", len(c.op.Blocks[1].Outputs), n)
	}
	c.results(n)
}

func condition(c *call) {
	for _, b := range c.op.Blocks {
		if len(b.Outputs) != len(c.op.Outputs) {
			c.problem(Argument, c.op.Pos, len(b.Outputs), len(c.op.Outputs), "a block gives %d values, the op has %d results", len(b.Outputs), len(c.op.Outputs))
		}
	}
	if t, ok := c.in("pred"); ok && t.DType != tensor.Bool {
		c.problem(DType, c.at("pred"), t.DType.Long(), "bool", "pred is %s, want bool", t.DType)
	}
}
