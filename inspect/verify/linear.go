package verify

import (
	"slices"

	"github.com/anepkg/anepkg/coreml/mil"
	"github.com/anepkg/anepkg/coreml/tensor"
)

var linearOps = map[string]func(*call){"linear": linear, "matmul": matmul, "einsum": einsum, "scaled_dot_product_attention": attention}

// linear: x [..., in], weight [out, in], bias [out].
func linear(c *call) {
	x, ok1 := c.in("x")
	w, ok2 := c.in("weight")
	if !ok1 || !ok2 || len(x.Shape) == 0 {
		return
	}
	if len(w.Shape) != 2 {
		c.problem(Shape, c.at("weight"), w.Shape, []int{unknown, unknown}, "weight has shape %s, want rank 2", tensor.ShapeString(w.Shape))
		return
	}
	if last := x.Shape[len(x.Shape)-1]; differ(last, w.Shape[1]) {
		c.problem(Shape, c.at("weight"), w.Shape, x.Shape, "weight takes %d features, x has %d", w.Shape[1], last)
	}
	if b, ok := c.in("bias"); ok && len(b.Shape) > 0 {
		c.fit("bias", b, []int{w.Shape[0]}, "one for each row of weight")
	}
	c.result(0, x.DType, with(x.Shape, len(x.Shape)-1, w.Shape[0]))
}

// matmul follows numpy; a vector is a row on the left and a column on the
// right.
func matmul(c *call) {
	x, ok1 := c.in("x")
	y, ok2 := c.in("y")
	tx, ok3 := c.flag("transpose_x")
	ty, ok4 := c.flag("transpose_y")
	if !ok1 || !ok2 || !ok3 || !ok4 || len(x.Shape) == 0 || len(y.Shape) == 0 || !c.results(1) {
		return
	}
	if c.v.opset > 0 && c.v.opset < 17 {
		c.same("y", y, x.DType, "x")
	}
	a, b := slices.Clone(x.Shape), slices.Clone(y.Shape)
	if len(a) == 1 {
		a = []int{1, a[0]}
	} else if tx {
		a[len(a)-1], a[len(a)-2] = a[len(a)-2], a[len(a)-1]
	}
	if len(b) == 1 {
		b = []int{b[0], 1}
	} else if ty {
		b[len(b)-1], b[len(b)-2] = b[len(b)-2], b[len(b)-1]
	}
	if differ(a[len(a)-1], b[len(b)-2]) {
		c.problem(Shape, c.at("y"), y.Shape, x.Shape, "x %s gives %d columns, y %s takes %d", tensor.ShapeString(x.Shape), a[len(a)-1], tensor.ShapeString(y.Shape), b[len(b)-2])
		return
	}
	batch, ok := broadcast(a[:len(a)-2], b[:len(b)-2])
	if !ok {
		c.problem(Shape, c.at("y"), y.Shape, x.Shape, "batch dimensions of %s and %s do not broadcast", tensor.ShapeString(x.Shape), tensor.ShapeString(y.Shape))
		return
	}
	out := slices.Concat(batch, []int{a[len(a)-2], b[len(b)-1]})
	if len(y.Shape) == 1 {
		out = out[:len(out)-1]
	}
	if len(x.Shape) == 1 {
		out = slices.Delete(out, len(batch), len(batch)+1)
	}
	c.result(0, x.DType, out)
}

// einsum contracts the last dimension of the first operand with the third
// last of the second; only the element type is compared.
func einsum(c *call) {
	vals, ok := c.many("values")
	if !ok {
		return
	}
	if len(vals) != 2 {
		c.problem(Argument, c.at("values"), len(vals), 2, "it has %d operands, want 2", len(vals))
		return
	}
	if vals[0].DType != vals[1].DType {
		c.problem(DType, c.at("values"), vals[1].DType.Long(), vals[0].DType.Long(), "the operands are %s and %s", vals[0].DType, vals[1].DType)
	}
	c.result(0, vals[0].DType, nil)
}

// attention: query [..., L, E], key [..., S, E], value [..., S, V].
func attention(c *call) {
	q, ok1 := c.in("query")
	k, ok2 := c.in("key")
	v, ok3 := c.in("value")
	if !ok1 || !ok2 || !ok3 || len(q.Shape) < 2 {
		return
	}
	n := len(q.Shape)
	for _, o := range []struct {
		name string
		t    mil.Type
	}{{"key", k}, {"value", v}} {
		c.same(o.name, o.t, q.DType, "query")
		if len(o.t.Shape) != n {
			c.problem(Shape, c.at(o.name), o.t.Shape, q.Shape, "%s has rank %d, query %d", o.name, len(o.t.Shape), n)
		}
	}
	if c.failed {
		return
	}
	c.fit("key", k, append(slices.Clone(q.Shape[:n-2]), unknown, q.Shape[n-1]), "batch and width of query")
	c.fit("value", v, append(slices.Clone(q.Shape[:n-2]), k.Shape[n-2], unknown), "batch of query, length of key")
	if m, ok := c.in("attn_mask"); ok && m.DType != tensor.Bool && !m.DType.IsFloat() {
		c.problem(DType, c.at("attn_mask"), m.DType.Long(), "bool or a float type", "attn_mask is %s", m.DType)
	}
	c.result(0, q.DType, with(q.Shape, n-1, v.Shape[n-1]))
}
