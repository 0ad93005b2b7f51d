package cpu

import (
	"fmt"
	"math"
	"slices"

	"github.com/anepkg/anepkg/coreml/tensor"
)

var quantOps = []opDef{
	{name: "quantize", since: 17, types: "int8 uint8; input fp16 fp32", exact: true, build: buildQuantize,
		doc: "input / scale rounded to the nearest integer (halves to the even one) plus zero_point, kept within output_dtype; one scale, or one for each index of axis"},
	{name: "dequantize", since: 17, types: "fp16 fp32; input int8 uint8", build: buildDequantize,
		doc: "scale * (input - zero_point); one scale, or one for each index of axis"},
}

// quantParams are the scales and zero points of quantize and dequantize.
type quantParams struct {
	scale, zero []float64 // of one element, or as many as axis has
	axis        int
	vector      bool
}

func (b *builder) quantParams() quantParams {
	scale, zero := b.need("scale"), b.constant("zero_point")
	q := quantParams{axis: b.intConst("axis", 0), vector: scale.rank() == 1, zero: []float64{0}}
	if !scale.isFloat() || scale.rank() > 1 || scale.size() == 0 {
		b.failf("scale is %s %s, want one float or a vector", scale.dtype, tensor.ShapeString(scale.shape))
		return q
	}
	q.scale = make([]float64, scale.size())
	for k := range q.scale {
		q.scale[k] = scale.num(k)
	}
	if zero != nil {
		if !slices.Equal(zero.shape, scale.shape) || zero.isFloat() || zero.s != nil {
			b.failf("zero_point is %s %s, want integers of the shape of scale, %s", zero.dtype, tensor.ShapeString(zero.shape), tensor.ShapeString(scale.shape))
			return q
		}
		q.zero = make([]float64, zero.size())
		for k := range q.zero {
			q.zero[k] = zero.num(k)
		}
	}
	return q
}

// each calls fn for runs [lo, hi) of elements of v that share a scale and a
// zero point, on the session's workers.
func (q quantParams) each(c *call, v *value, fn func(lo, hi int, scale, zero float64)) error {
	n, inner := 1, v.size()
	if q.vector {
		a, err := axisOf(q.axis, v.rank())
		if err != nil {
			return err
		}
		if _, n, inner = around(v.shape, a); n != len(q.scale) {
			return fmt.Errorf("scale has %d elements, input has %d along axis %d", len(q.scale), n, a)
		}
	}
	c.each(v.size(), parallelGrain, func(lo, hi int) {
		for lo < hi {
			g, end := lo/inner%n, min(hi, (lo/inner+1)*inner)
			fn(lo, end, q.scale[g], q.zero[min(g, len(q.zero)-1)])
			lo = end
		}
	})
	return nil
}

func buildQuantize(b *builder) kernel {
	x, q := b.input("input"), b.quantParams()
	name := b.strConst("output_dtype", "")
	to, _ := tensor.ParseDType(name)
	b.results(1)
	lo, hi := -128.0, 127.0
	switch to {
	case tensor.Int8:
	case tensor.UInt8:
		lo, hi = 0, 255
	default:
		b.failf("output_dtype is %q, want int8 or uint8", name)
	}
	for _, s := range q.scale {
		if s == 0 {
			b.failf("a scale is 0")
		}
	}
	return func(c *call) error {
		v := c.in[x]
		if err := wantFloat("input", v); err != nil {
			return err
		}
		src, dst := c.wide(v), c.newInt(0, v.shape)
		c.out[0].dtype = to
		return q.each(c, v, func(from, to int, scale, zero float64) {
			for k, x := range src[from:to] {
				r := math.RoundToEven(float64(x)/scale) + zero
				if math.IsNaN(r) { // no integer stands for it
					r = 0
				}
				dst[from+k] = int32(min(max(r, lo), hi))
			}
		})
	}
}

func buildDequantize(b *builder) kernel {
	x, q := b.input("input"), b.quantParams()
	b.results(1)
	return func(c *call) error {
		v := c.in[x]
		if err := wantInts("input", v); err != nil {
			return err
		}
		src, dst := v.whole(), c.newFloat(0, v.shape)
		return q.each(c, v, func(from, to int, scale, zero float64) {
			for k, x := range src[from:to] {
				dst[from+k] = float32(scale * (float64(x) - zero))
			}
		})
	}
}
