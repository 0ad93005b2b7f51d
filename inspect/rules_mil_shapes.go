package inspect

import (
	"slices"

	"github.com/anepkg/anepkg/coreml/mil"
	"github.com/anepkg/anepkg/coreml/tensor"
	"github.com/anepkg/anepkg/manifest"
)

// shapeRule computes the shape of an op's only result; ok is false when the
// operands do not tell it.
type shapeRule func(ix *program, op *mil.Op) (want []int, ok bool)

// shapeRules are the operations whose result shape is checked. Dimensions
// that an operand leaves open are mil.Unknown in the result.
var shapeRules = func() map[string]shapeRule {
	m := map[string]shapeRule{
		"conv": convShape, "linear": linearShape, "matmul": matmulShape, "transpose": transposeShape, "concat": concatShape,
		"expand_dims": sameCount, "squeeze": sameCount, "reshape": sameCount, "select": selectShape,
	}
	for _, name := range []string{"add", "sub", "mul", "real_div", "maximum", "minimum", "pow", "greater", "greater_equal", "less", "less_equal", "equal", "not_equal", "logical_and", "logical_or"} {
		m[name] = broadcastShape
	}
	for _, name := range []string{"silu", "gelu", "relu", "tanh", "sigmoid", "exp", "log", "sqrt", "rsqrt", "softmax", "softplus", "layer_norm", "l2_norm", "identity", "cast", "clip", "abs", "square", "erf", "sin", "cos", "slice_update"} {
		m[name] = sameShape
	}
	return m
}()

const maxShapeFindings = 5

// checkShapes compares the printed types with those that the operands give.
func checkShapes(p *Pass) {
	for _, pt := range p.parts {
		if pt.model == nil || pt.err != nil || pt.model.Program == nil || pt.Role == manifest.Leftover {
			continue
		}
		found := 0
		for _, fn := range pt.model.Program.Functions {
			ix := pt.program(fn.Name)
			for _, op := range ix.ops {
				rule := shapeRules[op.Type]
				if rule == nil || len(op.Outputs) != 1 || found >= maxShapeFindings {
					continue
				}
				got := op.Outputs[0].Type.Shape
				want, ok := rule(ix, op)
				if !ok || compatibleShapes(op.Type, got, want) {
					continue
				}
				found++
				at := pt.model.Program.At(op.Outputs[0].Pos)
				if at.Line == 0 {
					at = pt.model.Program.At(op.Pos)
				}
				at.File = pt.model.ProgramFile
				p.Report(at, "function %s: result %s of %s has shape %s, its operands give %s", fn.Name, op.Outputs[0].Name, op.Type, tensor.ShapeString(got), tensor.ShapeString(want)).
					Compare(got, want)
			}
		}
	}
}

// compatibleShapes compares what is known. Operations that only keep the
// number of elements are compared by that.
func compatibleShapes(op string, got, want []int) bool {
	switch op {
	case "expand_dims", "squeeze", "reshape":
		a, b := tensor.Count(got), tensor.Count(want)
		return a < 0 || b < 0 || a == b
	}
	return tensor.Compatible(got, want)
}

func shapeOf(ix *program, op *mil.Op, name string) ([]int, bool) {
	t, ok := ix.typeOf(op, name)
	if t.IsState() {
		t = t.State()
	}
	return t.Shape, ok && t.Kind == mil.TensorType
}

func sameShape(ix *program, op *mil.Op) ([]int, bool) { return shapeOf(ix, op, "x") }

// sameCount returns the operand's shape; its product is what counts. A
// reshape that takes dimensions from the operand at run time is left out.
func sameCount(ix *program, op *mil.Op) ([]int, bool) { return shapeOf(ix, op, "x") }

func broadcast(a, b []int) ([]int, bool) {
	if len(a) < len(b) {
		a, b = b, a
	}
	out := slices.Clone(a)
	skip := len(a) - len(b)
	for i, d := range b {
		switch e := a[skip+i]; {
		case e == d || d == 1:
		case e == 1:
			out[skip+i] = d
		case e == mil.Unknown || d == mil.Unknown:
			out[skip+i] = mil.Unknown
		default:
			return nil, false // the operands themselves are at odds; another op reports it
		}
	}
	return out, true
}

func broadcastShape(ix *program, op *mil.Op) ([]int, bool) {
	a, ok1 := shapeOf(ix, op, "x")
	b, ok2 := shapeOf(ix, op, "y")
	if !ok1 || !ok2 {
		return nil, false
	}
	return broadcast(a, b)
}

func selectShape(ix *program, op *mil.Op) ([]int, bool) {
	c, ok1 := shapeOf(ix, op, "cond")
	a, ok2 := shapeOf(ix, op, "a")
	b, ok3 := shapeOf(ix, op, "b")
	if !ok1 || !ok2 || !ok3 {
		return nil, false
	}
	ab, ok := broadcast(a, b)
	if !ok {
		return nil, false
	}
	return broadcast(ab, c)
}

// convShape knows batch and channels; the spatial size depends on padding.
func convShape(ix *program, op *mil.Op) ([]int, bool) {
	x, ok1 := shapeOf(ix, op, "x")
	w, ok2 := shapeOf(ix, op, "weight")
	if !ok1 || !ok2 || len(x) < 3 || len(w) != len(x) {
		return nil, false
	}
	out := []int{x[0], w[0]}
	for i := 2; i < len(x); i++ {
		d := mil.Unknown
		if w[i] == 1 && unitStride(ix, op) {
			d = x[i]
		}
		out = append(out, d)
	}
	return out, true
}

// unitStride reports whether a convolution neither strides nor pads.
func unitStride(ix *program, op *mil.Op) bool {
	for _, name := range []string{"strides", "pad"} {
		v := ix.operand(op, name)
		if v == nil {
			if len(op.Operand(name)) > 0 {
				return false
			}
			continue
		}
		for _, n := range v.Ints {
			if name == "strides" && n != 1 || name == "pad" && n != 0 {
				return false
			}
		}
		if v.Blob != nil {
			return false
		}
	}
	return true
}

func linearShape(ix *program, op *mil.Op) ([]int, bool) {
	x, ok1 := shapeOf(ix, op, "x")
	w, ok2 := shapeOf(ix, op, "weight")
	if !ok1 || !ok2 || len(x) == 0 || len(w) != 2 {
		return nil, false
	}
	return append(slices.Clone(x[:len(x)-1]), w[0]), true
}

func matmulShape(ix *program, op *mil.Op) ([]int, bool) {
	x, ok1 := shapeOf(ix, op, "x")
	y, ok2 := shapeOf(ix, op, "y")
	if !ok1 || !ok2 || len(x) < 2 || len(y) < 2 {
		return nil, false
	}
	flag := func(name string) (on, known bool) {
		if len(op.Operand(name)) == 0 {
			return false, true
		}
		return ix.operand(op, name).Bool()
	}
	tx, ok1 := flag("transpose_x")
	ty, ok2 := flag("transpose_y")
	if !ok1 || !ok2 {
		return nil, false
	}
	batch, ok := broadcast(x[:len(x)-2], y[:len(y)-2])
	if !ok {
		return nil, false
	}
	rows, cols := x[len(x)-2], y[len(y)-1]
	if tx {
		rows = x[len(x)-1]
	}
	if ty {
		cols = y[len(y)-2]
	}
	return append(batch, rows, cols), true
}

func transposeShape(ix *program, op *mil.Op) ([]int, bool) {
	x, ok := shapeOf(ix, op, "x")
	perm := ix.operand(op, "perm")
	if !ok || perm == nil || perm.Blob != nil || len(perm.Ints) != len(x) {
		return nil, false
	}
	out := make([]int, len(x))
	for i, p := range perm.Ints {
		if p < 0 {
			p += int64(len(x))
		}
		if p < 0 || p >= int64(len(x)) {
			return nil, false
		}
		out[i] = x[p]
	}
	return out, true
}

func concatShape(ix *program, op *mil.Op) ([]int, bool) {
	axis, ok := ix.operand(op, "axis").Int()
	a := op.Arg("values")
	if !ok || a == nil || len(a.Bindings) == 0 {
		return nil, false
	}
	var out []int
	for i, b := range a.Bindings {
		t, known := ix.typ[b.Ref]
		if b.Value != nil {
			t, known = b.Value.Type, true
		}
		if !known || t.Kind != mil.TensorType || len(t.Shape) == 0 {
			return nil, false
		}
		if i == 0 {
			out = slices.Clone(t.Shape)
			if axis < 0 {
				axis += len(out)
			}
			if axis < 0 || axis >= len(out) {
				return nil, false
			}
			continue
		}
		if len(t.Shape) != len(out) {
			return nil, false
		}
		if out[axis] < 0 || t.Shape[axis] < 0 {
			out[axis] = mil.Unknown
		} else {
			out[axis] += t.Shape[axis]
		}
	}
	return out, true
}
