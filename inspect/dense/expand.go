package dense

import (
	"slices"

	"github.com/anepkg/anepkg/coreml/blob"
	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/coreml/mil"
	"github.com/anepkg/anepkg/coreml/tensor"
)

func (d *decoder) op(op *mil.Op, depth int) ([]*Array, error) {
	one := func(a *Array, err error) ([]*Array, error) {
		if err != nil {
			return nil, err
		}
		return []*Array{a}, nil
	}
	switch op.Type {
	case "const":
		v := op.Attr("val")
		if v == nil {
			return nil, malformed(op, "attribute val is missing")
		}
		return one(d.value(op, v))
	case "constexpr_lut_to_dense":
		if len(op.Operand("shape")) > 0 {
			return one(d.flatLUT(op, depth))
		}
		return one(d.lut(op, depth))
	case "constexpr_affine_dequantize":
		return one(d.affine(op, depth))
	case "constexpr_blockwise_shift_scale":
		return one(d.blockwise(op, depth))
	case "constexpr_sparse_to_dense":
		return one(d.sparse(op, depth))
	case "constexpr_cast":
		a, err := d.need(op, "source_val", depth)
		if err != nil {
			return nil, err
		}
		out := *a
		out.DType = tensor.FP32
		return []*Array{&out}, nil
	case "constexpr_lut_to_sparse":
		return d.lutSparse(op, depth)
	case "constexpr_sparse_blockwise_shift_scale":
		return d.sparseScale(op, depth)
	}
	return nil, diag.Errorf(diag.Pos{Line: int(op.Pos.Line), Col: int(op.Pos.Col)}, diag.Unsupported, "%s is no constant", op.Type)
}

// operands decodes several operands that must be there.
func (d *decoder) operands(op *mil.Op, depth int, names ...string) ([]*Array, error) {
	out := make([]*Array, len(names))
	for i, name := range names {
		var err error
		if out[i], err = d.need(op, name, depth); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func dims(a *Array) []int {
	out := make([]int, a.Len())
	for i := range out {
		out[i] = int(a.at(i))
	}
	return out
}

// flatLUT is the form of ios16: a stream of indices packed into bytes and one
// table, whose length tells the width of an index.
func (d *decoder) flatLUT(op *mil.Op, depth int) (*Array, error) {
	in, err := d.operands(op, depth, "indices", "lut", "shape")
	if err != nil {
		return nil, err
	}
	ix, lut, shape := in[0], in[1], dims(in[2])
	n, err := count(op, shape)
	if err != nil {
		return nil, err
	}
	bits := 0
	for b := 1; b <= 8; b++ {
		if lut.Len() == 1<<b {
			bits = b
		}
	}
	if bits == 0 {
		return nil, malformed(op, "the table has %d entries, want 2 to 256", lut.Len())
	}
	packed := make([]byte, ix.Len())
	for i := range packed {
		packed[i] = byte(ix.I[i])
	}
	idx := blob.Unpack(packed, bits, n)
	if idx == nil {
		return nil, malformed(op, "%d bytes of indices for %d elements of %d bits", len(packed), n, bits)
	}
	out := &Array{DType: lut.DType, Shape: shape}
	out.alloc(n)
	for i, k := range idx {
		out.set(i, lut, int(k))
	}
	return out, nil
}

// set copies an element of another array of the same type.
func (a *Array) set(i int, from *Array, k int) {
	if a.F != nil {
		a.F[i] = from.F[k]
		return
	}
	a.I[i] = from.I[k]
}

// blocks walks the elements of shape in order with the flat index of the
// block that each lies in; groups has the number of blocks along each axis.
func blocks(shape, groups []int, fn func(i, block int)) {
	n := tensor.Count(shape)
	at := make([]int, len(shape))
	for i := range n {
		b := 0
		for k, g := range groups {
			b = b*g + at[k]/(shape[k]/g)
		}
		fn(i, b)
		for k := len(shape) - 1; k >= 0; k-- {
			if at[k]++; at[k] < shape[k] {
				break
			}
			at[k] = 0
		}
	}
}

// divides reports whether groups splits shape evenly.
func divides(shape, groups []int) bool {
	if len(shape) != len(groups) {
		return false
	}
	for i, g := range groups {
		if g <= 0 || shape[i]%g != 0 {
			return false
		}
	}
	return true
}

// tableOf takes a lut [groups..., entries, vector] apart.
func tableOf(op *mil.Op, ix, lut *Array, shape []int) (groups []int, entries, vector int, err error) {
	n := len(shape)
	if len(lut.Shape) != n+2 || !divides(shape, lut.Shape[:n]) {
		return nil, 0, 0, malformed(op, "lut %s does not fit indices %s", tensor.ShapeString(lut.Shape), tensor.ShapeString(shape))
	}
	entries, vector = lut.Shape[n], lut.Shape[n+1]
	if ix.DType.IsSubByte() && entries != 1<<ix.DType.Bits() {
		return nil, 0, 0, malformed(op, "the table has %d entries, %s wants %d", entries, ix.DType, 1<<ix.DType.Bits())
	}
	for _, k := range ix.I {
		if k < 0 || int(k) >= entries {
			return nil, 0, 0, malformed(op, "index %d, the table has %d entries", k, entries)
		}
	}
	return lut.Shape[:n], entries, vector, nil
}

func (d *decoder) lut(op *mil.Op, depth int) (*Array, error) {
	in, err := d.operands(op, depth, "indices", "lut")
	if err != nil {
		return nil, err
	}
	ix, lut := in[0], in[1]
	groups, entries, vector, err := tableOf(op, ix, lut, ix.Shape)
	if err != nil {
		return nil, err
	}
	axis, err := d.vectorAxis(op, depth, vector, len(ix.Shape))
	if err != nil {
		return nil, err
	}
	out := &Array{DType: lut.DType, Shape: slices.Clone(ix.Shape)}
	stride := 1 // elements of the result between the members of a vector
	if vector > 1 {
		out.Shape[axis] *= vector
		stride = tensor.Count(ix.Shape[axis+1:])
	}
	n, err := count(op, out.Shape)
	if err != nil {
		return nil, err
	}
	out.alloc(n)
	blocks(ix.Shape, groups, func(i, b int) {
		base := i/stride*stride*vector + i%stride
		row := (b*entries + int(ix.I[i])) * vector
		for v := range vector {
			out.set(base+v*stride, lut, row+v)
		}
	})
	return out, nil
}

// vectorAxis is the axis that vectors of a lut extend; 0 for scalars.
func (d *decoder) vectorAxis(op *mil.Op, depth, vector, rank int) (int, error) {
	if vector == 1 {
		return 0, nil
	}
	a, err := d.need(op, "vector_axis", depth)
	if err != nil {
		return 0, err
	}
	axis := int(a.at(0))
	if axis < 0 {
		axis += rank
	}
	if axis < 0 || axis >= rank {
		return 0, malformed(op, "vector_axis is %d, the rank %d", axis, rank)
	}
	return axis, nil
}

func (d *decoder) affine(op *mil.Op, depth int) (*Array, error) {
	in, err := d.operands(op, depth, "quantized_data", "scale", "zero_point", "axis")
	if err != nil {
		return nil, err
	}
	q, scale, zero, axis := in[0], in[1], in[2], int(in[3].at(0))
	if axis < 0 {
		axis += len(q.Shape)
	}
	groups := slices.Repeat([]int{1}, len(q.Shape))
	for _, s := range []*Array{scale, zero} {
		if s.Len() == 1 {
			continue
		}
		if axis < 0 || axis >= len(q.Shape) || s.Len() != q.Shape[axis] {
			return nil, malformed(op, "%d scales or offsets for axis %d of %s", s.Len(), axis, tensor.ShapeString(q.Shape))
		}
		groups[axis] = q.Shape[axis]
	}
	out := &Array{Shape: q.Shape, F: make([]float32, q.Len())}
	if q.Len() > 0 {
		blocks(q.Shape, groups, func(i, b int) {
			out.F[i] = scale.at(min(b, scale.Len()-1)) * (q.at(i) - zero.at(min(b, zero.Len()-1)))
		})
	}
	return out.round(scale.DType), nil
}

func (d *decoder) blockwise(op *mil.Op, depth int) (*Array, error) {
	in, err := d.operands(op, depth, "data", "scale")
	if err != nil {
		return nil, err
	}
	offset, err := d.operand(op, "offset", depth)
	if err != nil {
		return nil, err
	}
	data, scale := in[0], in[1]
	if !divides(data.Shape, scale.Shape) || offset != nil && offset.Len() != scale.Len() {
		return nil, malformed(op, "scale %s does not fit data %s", tensor.ShapeString(scale.Shape), tensor.ShapeString(data.Shape))
	}
	out := &Array{Shape: data.Shape, F: make([]float32, data.Len())}
	blocks(data.Shape, scale.Shape, func(i, b int) {
		v := data.at(i)
		if offset != nil {
			v -= offset.at(b)
		}
		out.F[i] = scale.at(b) * v
	})
	return out.round(scale.DType), nil
}

func (d *decoder) sparse(op *mil.Op, depth int) (*Array, error) {
	in, err := d.operands(op, depth, "nonzero_data", "mask")
	if err != nil {
		return nil, err
	}
	x, mask := in[0], in[1]
	shape, bit := mask.Shape, func(i int) bool { return mask.I[i] != 0 }
	s, err := d.operand(op, "shape", depth)
	if err != nil {
		return nil, err
	}
	if s != nil { // ios16: a stream of bits in bytes
		shape = dims(s)
		bit = func(i int) bool { return mask.I[i/8]>>(i%8)&1 != 0 }
	}
	n, err := count(op, shape)
	if err != nil {
		return nil, err
	}
	if s != nil && mask.Len() < (n+7)/8 {
		return nil, malformed(op, "the mask has %d bytes for %d elements", mask.Len(), n)
	}
	out := &Array{DType: x.DType, Shape: shape}
	out.alloc(n)
	next := 0
	for i := range n {
		if !bit(i) {
			continue
		}
		if next >= x.Len() {
			return nil, malformed(op, "the mask has more than %d ones", x.Len())
		}
		out.set(i, x, next)
		next++
	}
	return out, nil
}

// lutSparse gives the mask, widened along the vector axis, and the values at
// its ones in order.
func (d *decoder) lutSparse(op *mil.Op, depth int) ([]*Array, error) {
	in, err := d.operands(op, depth, "indices_mask", "indices_nonzero_data", "lut")
	if err != nil {
		return nil, err
	}
	mask, ix, lut := in[0], in[1], in[2]
	groups, entries, vector, err := tableOf(op, ix, lut, mask.Shape)
	if err != nil {
		return nil, err
	}
	axis, err := d.vectorAxis(op, depth, vector, len(mask.Shape))
	if err != nil {
		return nil, err
	}
	shape, stride := slices.Clone(mask.Shape), 1
	if vector > 1 {
		shape[axis] *= vector
		stride = tensor.Count(mask.Shape[axis+1:])
	}
	n, err := count(op, shape)
	if err != nil {
		return nil, err
	}
	wide := &Array{DType: tensor.UInt1, Shape: shape, I: make([]int64, n)}
	all := &Array{DType: lut.DType, Shape: shape}
	all.alloc(n)
	next, short := 0, false
	blocks(mask.Shape, groups, func(i, b int) {
		if mask.I[i] == 0 {
			return
		}
		if short = short || next >= ix.Len(); short {
			return
		}
		base, row := i/stride*stride*vector+i%stride, (b*entries+int(ix.I[next]))*vector
		next++
		for v := range vector {
			wide.I[base+v*stride] = 1
			all.set(base+v*stride, lut, row+v)
		}
	})
	if short {
		return nil, malformed(op, "the mask has more than %d ones", ix.Len())
	}
	out := &Array{DType: lut.DType, Shape: []int{next * vector}}
	out.alloc(next * vector)
	k := 0
	for i, m := range wide.I {
		if m != 0 {
			out.set(k, all, i)
			k++
		}
	}
	return []*Array{wide, out}, nil
}

func (d *decoder) sparseScale(op *mil.Op, depth int) ([]*Array, error) {
	in, err := d.operands(op, depth, "data_mask", "nonzero_data", "scale")
	if err != nil {
		return nil, err
	}
	offset, err := d.operand(op, "offset", depth)
	if err != nil {
		return nil, err
	}
	mask, x, scale := in[0], in[1], in[2]
	if !divides(mask.Shape, scale.Shape) || offset != nil && offset.Len() != scale.Len() {
		return nil, malformed(op, "scale %s does not fit the mask %s", tensor.ShapeString(scale.Shape), tensor.ShapeString(mask.Shape))
	}
	out := &Array{Shape: x.Shape, F: make([]float32, x.Len())}
	next, short := 0, false
	blocks(mask.Shape, scale.Shape, func(i, b int) {
		if mask.I[i] == 0 {
			return
		}
		if short = short || next >= x.Len(); short {
			return
		}
		v := x.at(next)
		if offset != nil {
			v -= offset.at(b)
		}
		out.F[next] = scale.at(b) * v
		next++
	})
	if short {
		return nil, malformed(op, "the mask has more than %d ones", x.Len())
	}
	return []*Array{mask, out.round(scale.DType)}, nil
}
