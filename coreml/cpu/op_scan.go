package cpu

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/anepkg/anepkg/coreml/tensor"
)

var negInf = math.Inf(-1)

var scanOps = []opDef{
	{name: "cumsum", since: 15, types: "fp16 fp32 int32", build: buildCumsum,
		doc: "running sum along axis; exclusive leaves the element itself out, reverse runs from the end"},
	{name: "band_part", since: 15, types: "fp16 fp32 int32 bool", exact: true, build: buildBandPart,
		doc: "x within lower diagonals below and upper above the main one of its last two dimensions (-1 = all), 0 elsewhere"},
	{name: "one_hot", since: 15, types: "fp16 fp32 int32 bool; indices of any integer type", exact: true, build: buildOneHot,
		doc: "a new dimension at axis of one_hot_vector_size elements: on_value at the index, off_value elsewhere; an index out of range gives only off_value"},
	{name: "range_1d", since: 15, types: "fp16 fp32 int32", build: buildRange,
		doc: "start, start+step, ... up to but without end"},
	{name: "fill", since: 15, types: "fp16 fp32 int32 bool", exact: true, build: buildFill,
		doc: "an array of the given shape, every element value (0.0 when not given)"},
	{name: "fill_like", since: 16, types: "fp16 fp32 int32 bool", exact: true, build: buildFillLike,
		doc: "an array of the shape of ref_tensor, every element value (0.0 when not given)"},
	{name: "reverse", since: 15, types: "every type", exact: true, build: buildReverse,
		doc: "x with the order of elements turned round along axes (all when not given)"},
	{name: "reverse_sequence", since: 15, types: "every type", exact: true, build: buildReverseSequence,
		doc: "for each index i of batch_axis the first lengths[i] elements along seq_axis turned round"},
	{name: "reshape_like", since: 16, types: "every type", exact: true, build: buildReshapeLike,
		doc: "x in the shape made of the dimensions begins[i] to ends[i] (to the end with end_masks[i]) of each of ref_tensors"},
}

func buildCumsum(b *builder) kernel {
	x := b.input("x")
	axis := b.intConst("axis", 0)
	exclusive, reverse := b.boolConst("exclusive", false), b.boolConst("reverse", false)
	b.results(1)
	return func(c *call) error {
		v := c.in[x]
		a, err := axisOf(axis, v.rank())
		if err != nil {
			return err
		}
		if v.isFloat() {
			accumulate[float32, float64](c, c.newFloat(0, v.shape), c.wide(v), v.shape, a, exclusive, reverse)
			return nil
		}
		if err := wantInts("x", v); err != nil {
			return err
		}
		accumulate[int32, int32](c, c.newInt(0, v.shape), v.whole(), v.shape, a, exclusive, reverse)
		return nil
	}
}

// accumulate writes running sums, kept in S, along axis a.
func accumulate[T, S float32 | float64 | int32](c *call, dst, src []T, shape []int, a int, exclusive, reverse bool) {
	outer, n, inner := around(shape, a)
	c.each(outer*inner, max(1, parallelGrain/max(1, n)), func(lo, hi int) {
		for r := lo; r < hi; r++ {
			at, step := r/inner*n*inner+r%inner, inner
			if reverse {
				at, step = at+(n-1)*inner, -inner
			}
			var sum S
			for range n {
				e := S(src[at])
				if !exclusive {
					sum += e
				}
				dst[at] = T(sum)
				if exclusive {
					sum += e
				}
				at += step
			}
		}
	})
}

func buildBandPart(b *builder) kernel {
	x := b.input("x")
	lower, upper := b.intConst("lower", -1), b.intConst("upper", -1)
	b.results(1)
	return func(c *call) error {
		v := c.in[x]
		if v.rank() < 2 {
			return errRank("x", v, 2)
		}
		rows, cols := v.shape[v.rank()-2], v.shape[v.rank()-1]
		return c.move(v, v.shape, 1, func(k int) int {
			m, n := k/cols%rows, k%cols
			if lower >= 0 && m-n > lower || upper >= 0 && n-m > upper {
				return -1
			}
			return k
		})
	}
}

func buildOneHot(b *builder) kernel {
	indices, size := b.input("indices"), b.input("one_hot_vector_size")
	axis := b.intConst("axis", -1)
	on, off := b.constant("on_value"), b.constant("off_value")
	b.results(1)
	switch {
	case on == nil && off == nil:
		on, off = &value{dtype: tensor.Int32, i: []int32{1}}, &value{dtype: tensor.Int32, i: []int32{0}}
	case on == nil:
		on = numberLike(off, 1)
	case off == nil:
		off = numberLike(on, 0)
	}
	if on.size() != 1 || off.size() != 1 || on.dtype != off.dtype || on.s != nil {
		b.failf("on_value is %s %s and off_value is %s %s, want one number each, of one type", on.dtype, tensor.ShapeString(on.shape), off.dtype, tensor.ShapeString(off.shape))
	}
	return func(c *call) error {
		iv := c.in[indices]
		if err := wantInts("indices", iv); err != nil {
			return err
		}
		n, err := c.oneInt("one_hot_vector_size", size)
		if err != nil {
			return err
		}
		a, err := axisOf(axis, iv.rank()+1)
		if err != nil {
			return err
		}
		if err := c.fillWith(slices.Insert(slices.Clone(iv.shape), a, n), off); err != nil {
			return err
		}
		inner := product(iv.shape[a:])
		for k, i := range iv.whole() {
			if i < 0 || int(i) >= n {
				continue
			}
			at := (k/inner*n+int(i))*inner + k%inner
			if on.isFloat() {
				c.out[0].f[at] = float32(on.num(0))
			} else {
				c.out[0].i[at] = on.whole()[0]
			}
		}
		return nil
	}
}

// numberLike makes a scalar of the type of v.
func numberLike(v *value, x int32) *value {
	if v.isFloat() {
		return &value{dtype: v.dtype, f: []float32{float32(x)}}
	}
	return &value{dtype: v.dtype, i: []int32{x}}
}

func buildRange(b *builder) kernel {
	start, end, step := b.input("start"), b.input("end"), b.input("step")
	b.results(1)
	return func(c *call) error {
		s, e, d := c.in[start], c.in[end], c.in[step]
		for _, v := range []*value{s, e, d} {
			if v.size() != 1 || v.s != nil || v.dtype != s.dtype {
				return fmt.Errorf("start is %s %s, end %s %s, step %s %s, want one number each, of one type",
					s.dtype, tensor.ShapeString(s.shape), e.dtype, tensor.ShapeString(e.shape), d.dtype, tensor.ShapeString(d.shape))
			}
		}
		from, by := s.num(0), d.num(0)
		n := math.Ceil((e.num(0) - from) / by)
		if by == 0 || math.IsNaN(n) || n > maxElements {
			return fmt.Errorf("from %g to %g by %g is no range, or too long a one", from, e.num(0), by)
		}
		shape := []int{max(0, int(n))}
		if s.isFloat() {
			for k, dst := 0, c.newFloat(0, shape); k < len(dst); k++ {
				dst[k] = float32(from + float64(k)*by)
			}
		} else {
			for k, dst := 0, c.newInt(0, shape); k < len(dst); k++ {
				dst[k] = int32(from + float64(k)*by)
			}
		}
		c.out[0].dtype = s.dtype
		return nil
	}
}

// fillValue returns the constant "value" of fill and fill_like.
func (b *builder) fillValue() *value {
	if v := b.constant("value"); v != nil {
		return v
	}
	return &value{dtype: tensor.FP32, f: []float32{0}}
}

func buildFill(b *builder) kernel {
	shape, v := b.input("shape"), b.fillValue()
	b.results(1)
	return func(c *call) error {
		if err := wantInts("shape", c.in[shape]); err != nil {
			return err
		}
		if err := wantRank("shape", c.in[shape], 1); err != nil {
			return err
		}
		return c.fillWith(c.dims(shape), v)
	}
}

func buildFillLike(b *builder) kernel {
	ref, v := b.input("ref_tensor"), b.fillValue()
	b.results(1)
	return func(c *call) error { return c.fillWith(slices.Clone(c.in[ref].shape), v) }
}

func buildReverse(b *builder) kernel {
	x := b.input("x")
	axes, ok := b.intsConst("axes")
	b.results(1)
	return func(c *call) error {
		v := c.in[x]
		var over []bool
		var err error
		if ok {
			over, err = c.m.reduceAxes(append([]int{}, axes...), v.rank())
		} else {
			over, err = c.m.reduceAxes(nil, v.rank())
		}
		if err != nil {
			return err
		}
		off, strides := 0, rowMajor(v.shape)
		for d, n := range v.shape {
			if over[d] && n > 0 {
				off += (n - 1) * strides[d]
				strides[d] = -strides[d]
			}
		}
		c.strided(v, off, v.shape, strides)
		return nil
	}
}

func buildReverseSequence(b *builder) kernel {
	x, lengths := b.input("x"), b.input("lengths")
	seqAxis, batchAxis := b.intConst("seq_axis", 0), b.intConst("batch_axis", 0)
	b.results(1)
	return func(c *call) error {
		v, lv := c.in[x], c.in[lengths]
		sa, err := axisOf(seqAxis, v.rank())
		if err != nil {
			return err
		}
		ba, err := axisOf(batchAxis, v.rank())
		if err != nil {
			return err
		}
		if sa == ba {
			return fmt.Errorf("seq_axis and batch_axis are both %d", sa)
		}
		if err := errors.Join(wantInts("lengths", lv), wantShape("lengths", lv, v.shape[ba])); err != nil {
			return err
		}
		lens := lv.whole()
		for i, n := range lens {
			if n < 0 || int(n) > v.shape[sa] {
				return fmt.Errorf("lengths[%d] is %d, x has %d elements along axis %d", i, n, v.shape[sa], sa)
			}
		}
		st := rowMajor(v.shape)
		return c.move(v, v.shape, 1, func(k int) int {
			i, n := k/st[sa]%v.shape[sa], int(lens[k/st[ba]%v.shape[ba]])
			if i >= n {
				return k
			}
			return k + (n-1-2*i)*st[sa]
		})
	}
}

func buildReshapeLike(b *builder) kernel {
	x, refs := b.input("x"), b.variadic("ref_tensors")
	begins, ends, masks := b.scalars("begins"), b.scalars("ends"), b.scalars("end_masks")
	b.results(1)
	if len(begins) != len(refs) || len(ends) != len(refs) || len(masks) != len(refs) {
		b.failf("has %d ref_tensors, %d begins, %d ends and %d end_masks, want as many of each", len(refs), len(begins), len(ends), len(masks))
	}
	return func(c *call) error {
		v := c.in[x]
		shape := []int{}
		for i, r := range refs {
			s := c.in[r].shape
			lo, hi := pythonRange(begins[i], ends[i], 1, len(s), false, masks[i] != 0)
			if lo < hi {
				shape = append(shape, s[lo:hi]...)
			}
		}
		if bounded(shape) != v.size() {
			return fmt.Errorf("x has shape %s with %d elements, the shape from ref_tensors is %s", tensor.ShapeString(v.shape), v.size(), tensor.ShapeString(shape))
		}
		c.alias(0, v, 0, shape)
		return nil
	}
}

// scalars returns a list-valued argument of constant integers or bools.
func (b *builder) scalars(name string) []int {
	bs := b.bindings(name)
	out := make([]int, len(bs))
	for i := range bs {
		v := b.constOf(name, bs[i])
		if v == nil || v.i == nil || v.size() != 1 {
			b.failf("argument %q: want constant integers or bools", name)
			return out
		}
		out[i] = int(v.i[0])
	}
	return out
}
