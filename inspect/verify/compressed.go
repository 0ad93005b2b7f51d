package verify

import (
	"slices"

	"github.com/anepkg/anepkg/coreml/mil"
	"github.com/anepkg/anepkg/coreml/tensor"
)

var compressedOps = map[string]func(*call){
	"constexpr_lut_to_dense": lutToDense, "constexpr_affine_dequantize": affine, "constexpr_blockwise_shift_scale": blockwise,
	"constexpr_sparse_to_dense": sparseToDense, "constexpr_cast": constexprCast, "constexpr_lut_to_sparse": lutToSparse,
	"constexpr_sparse_blockwise_shift_scale": sparseScale,
}

// lutToDense in the form of ios16 has a flat stream of bytes and a shape, in
// that of ios18 indices in the weight's own shape and tables
// [groups..., entries, vector].
func lutToDense(c *call) {
	ix, ok1 := c.in("indices")
	lut, ok2 := c.in("lut")
	if !ok1 || !ok2 || !c.results(1) {
		return
	}
	if c.has("shape") {
		c.flatLUT(ix, lut)
		return
	}
	n := len(ix.Shape)
	if len(lut.Shape) != n+2 {
		c.problem(Shape, c.at("lut"), lut.Shape, n+2, "lut has rank %d, indices %d: want two more", len(lut.Shape), n)
		return
	}
	c.entries(ix.DType, lut)
	for i, d := range ix.Shape {
		if g := lut.Shape[i]; d >= 0 && g > 0 && d%g != 0 || g == 0 {
			c.problem(Shape, c.at("lut"), lut.Shape, ix.Shape, "%d groups do not divide the %d indices of axis %d", g, d, i)
		}
	}
	out := slices.Clone(ix.Shape)
	if v := lut.Shape[n+1]; v > 1 {
		axis, ok := c.axis("vector_axis", 0, n)
		if !ok {
			return
		}
		if !c.has("vector_axis") {
			c.problem(Argument, c.op.Pos, "absent", "vector_axis", "vectors of %d want a vector_axis", v)
			return
		}
		out[axis] = times(out[axis], v)
	}
	c.result(0, lut.DType, out)
}

// entries demands a table entry for each value of an index.
func (c *call) entries(d tensor.DType, lut mil.Type) {
	if !d.IsUnsigned() || d.Bits() > 8 {
		c.problem(DType, c.at("indices"), d.Long(), "uint1 to uint8", "indices are %s", d)
		return
	}
	if n := lut.Shape[len(lut.Shape)-2]; differ(n, 1<<d.Bits()) {
		c.problem(Shape, c.at("lut"), n, 1<<d.Bits(), "tables have %d entries, %s wants %d", n, d, 1<<d.Bits())
	}
}

func (c *call) flatLUT(ix, lut mil.Type) {
	if len(lut.Shape) != 1 || len(ix.Shape) != 1 {
		c.problem(Shape, c.at("lut"), lut.Shape, []int{unknown}, "indices %s and lut %s, want vectors", tensor.ShapeString(ix.Shape), tensor.ShapeString(lut.Shape))
		return
	}
	bits := 0
	for b := 1; b <= 8; b++ {
		if lut.Shape[0] == 1<<b {
			bits = b
		}
	}
	if bits == 0 && lut.Shape[0] >= 0 {
		c.problem(Shape, c.at("lut"), lut.Shape[0], []int{2, 4, 16, 64, 256}, "the table has %d entries", lut.Shape[0])
		return
	}
	shape, known := c.ints("shape")
	if !known {
		return
	}
	if n, err := tensor.NumElements(shape); err == nil && ix.Shape[0] >= 0 && int64(ix.Shape[0]) != (n*int64(bits)+7)/8 {
		c.problem(Shape, c.at("indices"), ix.Shape[0], (n*int64(bits)+7)/8, "%d bytes of indices, %s at %d bits takes %d", ix.Shape[0], tensor.ShapeString(shape), bits, (n*int64(bits)+7)/8)
	}
	c.result(0, lut.DType, shape)
}

// affine has one scale, or one for each index of axis.
func affine(c *call) {
	q, ok1 := c.in("quantized_data")
	s, ok2 := c.in("scale")
	if !ok1 || !ok2 || !c.results(1) {
		return
	}
	axis, ok := c.axis("axis", 0, max(1, len(q.Shape)))
	if !ok {
		return
	}
	for _, name := range []string{"scale", "zero_point"} {
		if t, ok := c.in(name); ok && len(t.Shape) > 0 && len(q.Shape) > 0 && tensor.Count(t.Shape) != 1 {
			c.fit(name, t, []int{q.Shape[axis]}, "one for each index of axis")
		}
	}
	c.result(0, s.DType, q.Shape)
}

// blockwise has a scale for each block; every dimension of the data is a
// multiple of the scale's.
func blockwise(c *call) {
	d, ok1 := c.in("data")
	s, ok2 := c.in("scale")
	if !ok1 || !ok2 || !c.results(1) {
		return
	}
	c.blocks(d.Shape, s)
	c.result(0, s.DType, d.Shape)
}

func (c *call) blocks(data []int, s mil.Type) {
	if len(s.Shape) != len(data) {
		c.problem(Shape, c.at("scale"), s.Shape, data, "scale has rank %d, data %d", len(s.Shape), len(data))
		return
	}
	for i, n := range data {
		if g := s.Shape[i]; n >= 0 && g > 0 && n%g != 0 || g == 0 {
			c.problem(Shape, c.at("scale"), s.Shape, data, "%d scales do not divide the %d elements of axis %d", g, n, i)
		}
	}
	if o, ok := c.in("offset"); ok {
		c.fit("offset", o, s.Shape, "as scale")
	}
}

func sparseToDense(c *call) {
	x, ok1 := c.in("nonzero_data")
	m, ok2 := c.in("mask")
	if !ok1 || !ok2 || !c.results(1) {
		return
	}
	if !c.has("shape") {
		if m.DType != tensor.UInt1 {
			c.problem(DType, c.at("mask"), m.DType.Long(), "uint1", "mask is %s", m.DType)
		}
		c.result(0, x.DType, m.Shape)
		return
	}
	shape, known := c.ints("shape")
	if !known {
		return
	}
	if n, err := tensor.NumElements(shape); err == nil && len(m.Shape) == 1 && m.Shape[0] >= 0 && int64(m.Shape[0]) != (n+7)/8 {
		c.problem(Shape, c.at("mask"), m.Shape[0], (n+7)/8, "mask has %d bytes, %s takes %d", m.Shape[0], tensor.ShapeString(shape), (n+7)/8)
	}
	c.result(0, x.DType, shape)
}

func constexprCast(c *call) {
	x, ok := c.in("source_val")
	s, known := c.value("output_dtype").Str()
	if !ok || !known || !c.results(1) {
		return
	}
	d, _ := tensor.ParseDType(s)
	c.result(0, d, x.Shape)
}

// lutToSparse gives the mask and the nonzero values.
func lutToSparse(c *call) {
	m, ok1 := c.in("indices_mask")
	lut, ok2 := c.in("lut")
	ix, ok3 := c.in("indices_nonzero_data")
	if !ok1 || !ok2 || !ok3 || !c.results(2) {
		return
	}
	if len(lut.Shape) != len(m.Shape)+2 {
		c.problem(Shape, c.at("lut"), lut.Shape, len(m.Shape)+2, "lut has rank %d, the mask %d: want two more", len(lut.Shape), len(m.Shape))
		return
	}
	c.entries(ix.DType, lut)
	mask, data, v := slices.Clone(m.Shape), slices.Clone(ix.Shape), lut.Shape[len(lut.Shape)-1]
	if v != 1 && len(data) == 1 {
		axis, ok := c.axis("vector_axis", 0, len(mask))
		if !ok {
			return
		}
		mask[axis], data[0] = times(mask[axis], v), times(data[0], v)
	}
	c.result(0, tensor.UInt1, mask)
	c.result(1, lut.DType, data)
}

func sparseScale(c *call) {
	m, ok1 := c.in("data_mask")
	x, ok2 := c.in("nonzero_data")
	s, ok3 := c.in("scale")
	if !ok1 || !ok2 || !ok3 || !c.results(2) {
		return
	}
	c.blocks(m.Shape, s)
	c.result(0, tensor.UInt1, m.Shape)
	c.result(1, s.DType, x.Shape)
}
