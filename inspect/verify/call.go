package verify

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/anepkg/anepkg/coreml/mil"
	"github.com/anepkg/anepkg/coreml/tensor"
)

// call is one op under examination. After the first problem the rest of the
// op is passed over.
type call struct {
	v      *verifier
	op     *mil.Op
	failed bool
}

// at is the place of an operand, else of the op.
func (c *call) at(name string) mil.Pos {
	if a := c.op.Arg(name); a != nil {
		if len(a.Bindings) == 1 && a.Bindings[0].Pos.Line > 0 {
			return a.Bindings[0].Pos
		}
		if a.Pos.Line > 0 {
			return a.Pos
		}
	}
	return c.op.Pos
}

// label names the op in messages by its first result.
func (c *call) label() string {
	if len(c.op.Outputs) > 0 {
		return c.op.Type + " " + c.op.Outputs[0].Name
	}
	return c.op.Type
}

func (c *call) problem(class Class, pos mil.Pos, got, want any, format string, args ...any) {
	if c.failed {
		return
	}
	c.failed = true
	c.v.report(Problem{Class: class, Op: c.op, Pos: pos, Got: got, Want: want, Msg: c.label() + ": " + fmt.Sprintf(format, args...)})
}

// signature compares the arguments with the op's definition. It returns
// false when the op is not known.
func (c *call) signature() bool {
	sig, ok := ops[c.op.Type]
	if !ok {
		if c.v.opset > 0 && c.v.opset <= newestKnown {
			c.problem(Unknown, c.op.Pos, c.op.Type, "an op of "+c.v.fn.Opset, "no opset up to ios%d has this op", newestKnown)
		}
		return false
	}
	if c.v.opset > 0 && c.v.opset < sig.since {
		c.problem(Opset, c.op.Pos, c.v.fn.Opset, "ios"+strconv.Itoa(sig.since), "the function's opset %s lacks the op, which ios%d brought", c.v.fn.Opset, sig.since)
	}
	for _, name := range sig.required {
		if len(c.op.Operand(name)) == 0 {
			c.problem(Argument, c.op.Pos, "absent", name, "argument %s is missing", name)
		}
	}
	if c.v.opset > newestKnown {
		return !c.failed
	}
	for i := range c.op.Args {
		if a := &c.op.Args[i]; !sig.allowed[a.Name] {
			c.problem(Argument, a.Pos, a.Name, strings.Join(sig.names, ", "), "no opset gives it an argument %s", a.Name)
		}
	}
	return !c.failed
}

// constant checks that a const's value is of the type of its result.
func (c *call) constant() {
	val := c.op.Attr("val")
	if val == nil || len(c.op.Outputs) != 1 {
		c.problem(Argument, c.op.Pos, "absent", "val", "want one result and an attribute val")
		return
	}
	got, want := c.op.Outputs[0].Type, val.Type
	if got.Kind != want.Kind || got.Kind != mil.TensorType {
		return
	}
	if got.DType != want.DType {
		c.problem(DType, c.op.Outputs[0].Pos, got.DType.Long(), want.DType.Long(), "the result is %s, the value %s", got.DType, want.DType)
	}
	if !tensor.Compatible(got.Shape, want.Shape) {
		c.problem(Shape, c.op.Outputs[0].Pos, got.Shape, want.Shape, "the result has shape %s, the value %s", tensor.ShapeString(got.Shape), tensor.ShapeString(want.Shape))
	}
}

func (c *call) has(name string) bool { return len(c.op.Operand(name)) > 0 }

// typeOf is the type of a binding; ok is false when it is not known.
func (c *call) typeOf(b mil.Binding) (mil.Type, bool) {
	if b.Value != nil {
		return b.Value.Type, true
	}
	t, ok := c.v.types[b.Ref]
	return t, ok
}

// in returns the type of a tensor operand; ok is false when it is absent, of
// another kind or not known.
func (c *call) in(name string) (mil.Type, bool) {
	bs := c.op.Operand(name)
	if len(bs) != 1 {
		return mil.Type{}, false
	}
	t, ok := c.typeOf(bs[0])
	if t.Shape == nil {
		t.Shape = []int{} // a scalar, which is not "no shape"
	}
	return t, ok && t.Kind == mil.TensorType
}

// many returns the types of a variadic operand.
func (c *call) many(name string) ([]mil.Type, bool) {
	bs := c.op.Operand(name)
	out := make([]mil.Type, 0, len(bs))
	for _, b := range bs {
		t, ok := c.typeOf(b)
		if !ok || t.Kind != mil.TensorType {
			return nil, false
		}
		out = append(out, t)
	}
	return out, len(out) > 0
}

// value resolves an operand to a constant in the program's text; nil when it
// is computed, lies in a weight file or is absent.
func (c *call) value(name string) *mil.Value {
	bs := c.op.Operand(name)
	if len(bs) != 1 {
		return nil
	}
	val := bs[0].Value
	if val == nil {
		val = c.v.consts[bs[0].Ref]
	}
	if val == nil || val.Blob != nil {
		return nil
	}
	return val
}

// ints returns the elements of an integer operand. known is false when they
// are computed at run time or lie in a weight file.
func (c *call) ints(name string) (vals []int, known bool) {
	val := c.value(name)
	if val == nil || val.Ints == nil && val.Len() != 0 {
		return nil, false
	}
	vals = make([]int, len(val.Ints))
	for i, n := range val.Ints {
		vals[i] = int(n)
	}
	return vals, true
}

// intOr returns a scalar operand, def when it is absent.
func (c *call) intOr(name string, def int) (n int, known bool) {
	if !c.has(name) {
		return def, true
	}
	return c.value(name).Int()
}

// flag returns a bool operand, false when it is absent.
func (c *call) flag(name string) (on, known bool) {
	if !c.has(name) {
		return false, true
	}
	return c.value(name).Bool()
}

// flags returns a vector of n bools, all false when it is absent.
func (c *call) flags(name string, n int) (vals []bool, known bool) {
	if !c.has(name) {
		return make([]bool, n), true
	}
	val := c.value(name)
	if val == nil || len(val.Bools) != n {
		return nil, false
	}
	return val.Bools, true
}

// axis brings an axis operand into 0..rank-1. A bad one is a problem.
func (c *call) axis(name string, def, rank int) (int, bool) {
	n, known := c.intOr(name, def)
	if !known {
		return 0, false
	}
	return c.wrap(name, n, rank)
}

func (c *call) wrap(name string, n, rank int) (int, bool) {
	if n < -rank || n >= rank {
		c.problem(Argument, c.at(name), n, []int{-rank, rank - 1}, "%s is %d, the rank is %d", name, n, rank)
		return 0, false
	}
	if n < 0 {
		n += rank
	}
	return n, true
}

// anything stands for an element type or shape that the operands do not
// determine.
const anything = tensor.Invalid

// result compares result i with what the operands give. A nil shape and the
// type anything are not compared.
func (c *call) result(i int, d tensor.DType, shape []int) {
	if i >= len(c.op.Outputs) || c.failed {
		return
	}
	out := &c.op.Outputs[i]
	if out.Type.Kind != mil.TensorType {
		return
	}
	pos := out.Pos
	if pos.Line == 0 {
		pos = c.op.Pos
	}
	if d != anything && out.Type.DType != d {
		c.problem(DType, pos, out.Type.DType.Long(), d.Long(), "result %s is %s, the operands give %s", out.Name, out.Type.DType, d)
	}
	if shape != nil && !tensor.Compatible(out.Type.Shape, shape) {
		c.problem(Shape, pos, out.Type.Shape, shape, "result %s has shape %s, the operands give %s", out.Name, tensor.ShapeString(out.Type.Shape), tensor.ShapeString(shape))
	}
}

// results checks the number of results.
func (c *call) results(n int) bool {
	if len(c.op.Outputs) != n {
		c.problem(Argument, c.op.Pos, len(c.op.Outputs), n, "it has %d results, want %d", len(c.op.Outputs), n)
	}
	return !c.failed
}

// same demands that an operand has the element type d.
func (c *call) same(name string, t mil.Type, d tensor.DType, whose string) {
	if t.DType != d {
		c.problem(DType, c.at(name), t.DType.Long(), d.Long(), "%s is %s, %s is %s", name, t.DType, whose, d)
	}
}

// fit demands that an operand has a shape compatible with want.
func (c *call) fit(name string, t mil.Type, want []int, why string) {
	if !tensor.Compatible(t.Shape, want) {
		c.problem(Shape, c.at(name), t.Shape, want, "%s has shape %s, want %s (%s)", name, tensor.ShapeString(t.Shape), tensor.ShapeString(want), why)
	}
}

// integers demands an integer operand.
func (c *call) integers(name string) {
	if t, ok := c.in(name); ok && !t.DType.IsInt() {
		c.problem(DType, c.at(name), t.DType.Long(), "an integer type", "%s is %s, want integers", name, t.DType)
	}
}
