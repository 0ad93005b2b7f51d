package cpu

import (
	"fmt"

	"github.com/anepkg/anepkg/coreml/tensor"
)

var constOps = []opDef{
	{name: "const", since: 15, types: "every type", exact: true, constant: true, build: buildConst,
		doc: "a constant, in the text or in a weight file"},
	{name: "constexpr_lut_to_dense", since: 16, types: "fp16 fp32 int8 uint8", exact: true, constant: true, build: buildLUT,
		doc: "palettized weight: lut[index], tables grouped along any axis; entries may be vectors (ios18)"},
	{name: "constexpr_affine_dequantize", since: 16, types: "fp16 fp32", exact: true, constant: true, build: buildAffine,
		doc: "scale * (quantized_data - zero_point), one scale or one for each index of axis"},
	{name: "constexpr_blockwise_shift_scale", since: 18, types: "fp16 fp32", exact: true, constant: true, build: buildBlockwise,
		doc: "scale * (data - offset), a scale for each block; data may be another constexpr"},
	{name: "constexpr_sparse_to_dense", since: 16, types: "fp16 fp32 int8 uint8", exact: true, constant: true, build: buildSparse,
		doc: "zeros where the mask is 0, the next of nonzero_data where it is 1"},
	{name: "constexpr_cast", since: 16, types: "fp32", exact: true, constant: true, build: buildConstCast,
		doc: "an fp16 constant widened to fp32"},
	{name: "constexpr_lut_to_sparse", since: 18, types: "fp16 fp32 int8 uint8", exact: true, constant: true, build: buildLUTSparse,
		doc: "palettized values of a sparse weight: results are the mask and the nonzero values"},
	{name: "constexpr_sparse_blockwise_shift_scale", since: 18, types: "fp16 fp32", exact: true, constant: true, build: buildSparseScale,
		doc: "scaled values of a sparse weight: results are the mask and the nonzero values"},
}

// smallWeight is the element count up to which a compressed constant is
// expanded at load time.
const smallWeight = 1 << 12

func buildConst(b *builder) kernel {
	b.used = map[string]bool{"val": true}
	b.results(1)
	val := b.op.Attr("val")
	if val == nil {
		b.failf("attribute \"val\" is missing")
		return nil
	}
	v, err := b.literal(val)
	if err != nil {
		b.failf("%w", err)
		return nil
	}
	return constKernel(v)
}

func constKernel(outs ...*value) kernel {
	return func(c *call) error {
		copy(c.out, outs)
		return nil
	}
}

// weightValue makes the result of a constexpr op.
func weightValue(d tensor.DType, shape []int, w weight) *value {
	v := &value{dtype: d, shape: shape, w: w}
	if n := v.size(); n <= smallWeight || !d.IsFloat() {
		f := make([]float32, n)
		v.widenInto(f)
		v.w = nil
		if d.IsFloat() {
			v.f = f
			return v
		}
		v.i = make([]int32, n)
		for k, x := range f {
			v.i[k] = int32(x)
		}
	}
	return v
}

// need returns a constant operand that must be there.
func (b *builder) need(name string) *value {
	v := b.constant(name)
	if v == nil {
		b.failf("argument %q is missing", name)
		return &value{dtype: tensor.FP32, shape: []int{0}, f: []float32{}, i: []int32{}}
	}
	return v
}

func buildLUT(b *builder) kernel {
	b.results(1)
	indices, lut := b.need("indices"), b.need("lut")
	shape := b.constant("shape")
	axis := b.intConst("vector_axis", 0)
	if b.err != nil {
		return nil
	}
	idx, err := indices.stream()
	switch {
	case err == nil && shape != nil:
		idx, lut, err = flatLUT(idx, lut, toInts(shape.whole()))
	case err == nil:
		err = lutFits(indices.dtype, lut)
	}
	if err != nil {
		b.failf("indices: %w", err)
		return nil
	}
	w, out, err := newLUT(idx, lut, axis)
	if err != nil {
		b.failf("%w", err)
		return nil
	}
	return constKernel(weightValue(lut.dtype, out, w))
}

// lutFits reports a table [..., entries, vector] that has not an entry for
// each index of the type d. Bytes may use a part of their range.
func lutFits(d tensor.DType, lut *value) error {
	if lut.rank() < 2 || !d.IsSubByte() {
		return nil
	}
	if n := lut.shape[lut.rank()-2]; n != 1<<d.Bits() {
		return fmt.Errorf("%s wants a lut of %d entries, lut has shape %s", d, 1<<d.Bits(), tensor.ShapeString(lut.shape))
	}
	return nil
}

// flatLUT brings the form of ios16, a flat stream of bytes and a table of one
// dimension, into that of ios18.
func flatLUT(idx packed, lut *value, shape []int) (packed, *value, error) {
	types := map[int]tensor.DType{2: tensor.UInt1, 4: tensor.UInt2, 8: tensor.UInt3, 16: tensor.UInt4, 64: tensor.UInt6, 256: tensor.UInt8}
	d, ok := types[lut.size()]
	if !ok || lut.rank() != 1 {
		return idx, lut, fmt.Errorf("lut has shape %s, want 2, 4, 16, 64 or 256 entries", tensor.ShapeString(lut.shape))
	}
	n, err := tensor.NumElements(shape)
	if err != nil {
		return idx, lut, err
	}
	if want := d.ByteSize(n); int64(len(idx.data)) != want {
		return idx, lut, fmt.Errorf("%d bytes, shape %s at %d bits wants %d", len(idx.data), tensor.ShapeString(shape), d.Bits(), want)
	}
	g := make([]int, len(shape), len(shape)+2)
	for i := range g {
		g[i] = 1
	}
	table := &value{dtype: lut.dtype, shape: append(g, lut.size(), 1), f: lut.wide()}
	return packed{d, shape, idx.data}, table, nil
}

func buildAffine(b *builder) kernel {
	b.results(1)
	q, scale := b.need("quantized_data"), b.need("scale")
	zero := b.constant("zero_point")
	axis := b.intConst("axis", 0)
	if b.err != nil {
		return nil
	}
	axis, err := axisOf(axis, max(1, q.rank()))
	if err != nil {
		b.failf("%w", err)
		return nil
	}
	shape := make([]int, q.rank())
	for i := range shape {
		shape[i] = 1
	}
	n := max(scale.size(), 1)
	if zero != nil {
		n = max(n, zero.size())
	}
	if n > 1 {
		shape[axis] = n
	}
	w, err := newScaled(q, spread(scale, n, shape), spread(zero, n, shape), scale.dtype)
	if err != nil {
		b.failf("%w", err)
		return nil
	}
	return constKernel(weightValue(scale.dtype, q.shape, w))
}

// spread repeats a scalar n times and gives the result a shape.
func spread(v *value, n int, shape []int) *value {
	if v == nil {
		return nil
	}
	src := v.wide()
	out := &value{dtype: v.dtype, shape: shape, f: make([]float32, n)}
	for k := range out.f {
		out.f[k] = src[k%len(src)]
	}
	return out
}

func buildBlockwise(b *builder) kernel {
	b.results(1)
	data, scale := b.need("data"), b.need("scale")
	offset := b.constant("offset")
	if b.err != nil {
		return nil
	}
	w, err := newScaled(data, scale, offset, scale.dtype)
	if err != nil {
		b.failf("%w", err)
		return nil
	}
	return constKernel(weightValue(scale.dtype, data.shape, w))
}

func buildConstCast(b *builder) kernel {
	b.results(1)
	src := b.need("source_val")
	to, ok := tensor.ParseDType(b.strConst("output_dtype", ""))
	if b.err != nil {
		return nil
	}
	if !ok || !to.IsFloat() {
		b.failf("output_dtype is %q, want fp32 or fp16", b.strConst("output_dtype", ""))
		return nil
	}
	out := *src
	out.dtype = to
	if src.f != nil || src.h != nil || src.w != nil {
		if to != tensor.FP16 && src.h != nil {
			out = value{dtype: to, shape: src.shape, w: src.matrix()}
		} else if to == tensor.FP16 && src.dtype != tensor.FP16 {
			out = value{dtype: to, shape: src.shape, w: castWeight{src.matrix(), true}}
		}
	}
	if out.w != nil {
		return constKernel(weightValue(to, src.shape, out.w))
	}
	return constKernel(&out)
}

// maskBits returns a mask as a stream of bits, least significant first. A
// uint1 mask has an element per bit; that of ios16 is bytes of bits.
func (v *value) maskBits() ([]byte, error) {
	if p, ok := v.w.(packed); ok && (p.dtype == tensor.UInt1 || p.dtype == tensor.UInt8) {
		return p.data, nil
	}
	if v.i == nil {
		return nil, fmt.Errorf("mask is %s, want uint1 or uint8", v.dtype)
	}
	if v.dtype == tensor.UInt8 {
		out := make([]byte, len(v.i))
		for k, x := range v.i {
			out[k] = byte(x)
		}
		return out, nil
	}
	out := make([]byte, (len(v.i)+7)/8)
	for k, x := range v.i {
		out[k>>3] |= byte(x&1) << (k & 7)
	}
	return out, nil
}

func buildSparse(b *builder) kernel {
	b.results(1)
	data, mask := b.need("nonzero_data"), b.need("mask")
	shape := mask.shape
	if s := b.constant("shape"); s != nil {
		shape = toInts(s.whole())
	}
	if b.err != nil {
		return nil
	}
	if b.lo.sess.opts.WithoutWeights { // the mask is not known
		data = &value{dtype: data.dtype, shape: []int{0}, f: []float32{}}
	}
	bits, err := mask.maskBits()
	if err == nil {
		_, err = tensor.NumElements(shape)
	}
	var w *sparseWeight
	if err == nil {
		w, err = newSparse(data, bits, shape)
	}
	if err != nil {
		b.failf("%w", err)
		return nil
	}
	return constKernel(weightValue(data.dtype, shape, w))
}

// scatterMask spreads values over the elements whose mask bit is set.
func scatterMask(mask []byte, values []float32, shape []int) (*value, error) {
	w, err := newSparse(&value{dtype: tensor.FP32, shape: []int{len(values)}, f: values}, mask, shape)
	if err != nil {
		return nil, err
	}
	out := &value{dtype: tensor.FP32, shape: shape, f: make([]float32, product(shape))}
	for r := range w.rows {
		w.row(out.f[r*w.cols:(r+1)*w.cols], r)
	}
	return out, nil
}

// pickMask returns the elements whose mask element is set.
func pickMask(mask []int32, dense []float32, d tensor.DType) *value {
	out := &value{dtype: d, f: []float32{}}
	for k, m := range mask {
		if m != 0 {
			out.f = append(out.f, dense[k])
		}
	}
	out.shape = []int{len(out.f)}
	if !d.IsFloat() {
		out.i = make([]int32, len(out.f))
		for k, x := range out.f {
			out.i[k] = int32(x)
		}
		out.f = nil
	}
	return out
}

func buildLUTSparse(b *builder) kernel {
	b.results(2)
	mask, data, lut := b.need("indices_mask"), b.need("indices_nonzero_data"), b.need("lut")
	axis := b.intConst("vector_axis", 0)
	if b.err != nil {
		return nil
	}
	if b.lo.sess.opts.WithoutWeights {
		return constKernel(b.zeroResult(0), b.zeroResult(1))
	}
	bits, err := mask.maskBits()
	var full *value
	if err == nil {
		err = lutFits(data.dtype, lut)
	}
	if err == nil {
		full, err = scatterMask(bits, data.wide(), mask.shape)
	}
	if err != nil {
		b.failf("indices: %w", err)
		return nil
	}
	idx := packed{tensor.UInt8, mask.shape, make([]byte, len(full.f))}
	for k, x := range full.f {
		idx.data[k] = byte(x)
	}
	w, shape, err := newLUT(idx, lut, axis)
	if err != nil {
		b.failf("%w", err)
		return nil
	}
	dense := make([]float32, product(shape))
	for r := range w.rows {
		w.row(dense[r*w.cols:(r+1)*w.cols], r)
	}
	wide := expandMask(mask.whole(), w.vec, w.inner)
	return constKernel(&value{dtype: tensor.UInt1, shape: shape, i: wide}, pickMask(wide, dense, lut.dtype))
}

// expandMask repeats every element vec times along the axis that has inner
// elements after it.
func expandMask(mask []int32, vec, inner int) []int32 {
	if vec == 1 {
		return mask
	}
	out := make([]int32, len(mask)*vec)
	for k, m := range mask {
		at := k/inner*vec*inner + k%inner
		for v := range vec {
			out[at+v*inner] = m
		}
	}
	return out
}

func buildSparseScale(b *builder) kernel {
	b.results(2)
	mask, data, scale := b.need("data_mask"), b.need("nonzero_data"), b.need("scale")
	offset := b.constant("offset")
	if b.err != nil {
		return nil
	}
	if b.lo.sess.opts.WithoutWeights {
		return constKernel(b.zeroResult(0), b.zeroResult(1))
	}
	bits, err := mask.maskBits()
	var full *value
	if err == nil {
		full, err = scatterMask(bits, data.wide(), mask.shape)
	}
	var w *scaledWeight
	if err == nil {
		w, err = newScaled(full, scale, offset, scale.dtype)
	}
	if err != nil {
		b.failf("%w", err)
		return nil
	}
	dense := make([]float32, full.size())
	rows, cols := w.dims()
	for r := range rows {
		w.row(dense[r*cols:(r+1)*cols], r)
	}
	return constKernel(&value{dtype: tensor.UInt1, shape: mask.shape, i: mask.whole()}, pickMask(mask.whole(), dense, scale.dtype))
}

// zeroResult is a result of the declared type when the weights are not known.
func (b *builder) zeroResult(i int) *value {
	t := b.outType(i)
	n, err := tensor.NumElements(t.Shape)
	if err != nil || n > maxElements {
		b.failf("result %d has type %s", i, t)
		n = 0
	}
	v := &value{dtype: t.DType, shape: t.Shape}
	if t.DType.IsFloat() {
		v.f = make([]float32, n)
	} else {
		v.i = make([]int32, n)
	}
	return v
}
