package cpu

import (
	"errors"
	"fmt"
	"slices"

	"github.com/anepkg/anepkg/coreml/tensor"
)

// joined describes the operands of concat and stack.
type joined struct {
	vals  []*value
	axis  int
	shape []int // of the result

	// the elements of vals, in one of these
	halves [][]uint16
	floats [][]float32
	ints   [][]int32
}

// scalarAsVector is the shape of a scalar that is joined.
var scalarAsVector = []int{1}

func buildConcat(b *builder) kernel {
	vals := b.variadic("values")
	axis := b.intConst("axis", 0)
	inter := b.boolConst("interleave", false)
	b.results(1)
	j := &joined{}
	return func(c *call) error {
		j.vals = j.vals[:0]
		for _, s := range vals {
			v := c.in[s]
			if v.rank() == 0 { // scalars make a vector, as converters write shapes
				v = c.m.newValue(*v)
				v.shape = scalarAsVector
			}
			j.vals = append(j.vals, v)
		}
		first := j.vals[0]
		a, err := axisOf(axis, first.rank())
		if err != nil {
			return err
		}
		j.axis, j.shape = a, c.m.copyDims(first.shape)
		j.shape[a] = 0
		for i, v := range j.vals {
			if v.rank() != first.rank() {
				return fmt.Errorf("values have shapes %s and %s", tensor.ShapeString(first.shape), tensor.ShapeString(v.shape))
			}
			for d := range v.shape {
				if d != a && v.shape[d] != first.shape[d] {
					return fmt.Errorf("value %d has shape %s, value 0 %s: they may differ only along axis %d", i, tensor.ShapeString(v.shape), tensor.ShapeString(first.shape), a)
				}
			}
			if inter && v.shape[a] != first.shape[a] {
				return errors.New("interleave wants values of one length along axis")
			}
			j.shape[a] += v.shape[a]
		}
		return c.join(j, inter)
	}
}

// join copies the operands to their places in result 0.
func (c *call) join(j *joined, interleave bool) error {
	first := j.vals[0]
	for _, v := range j.vals {
		if v.dtype != first.dtype {
			return fmt.Errorf("values are %s and %s, want one type", first.dtype, v.dtype)
		}
	}
	allHalf := true
	for _, v := range j.vals {
		allHalf = allHalf && v.h != nil
	}
	switch {
	case allHalf:
		j.halves = j.halves[:0]
		for _, v := range j.vals {
			j.halves = append(j.halves, v.h)
		}
		joinParts(c.newHalf(j.shape), j.halves, j, interleave)
	case first.isFloat():
		j.floats = j.floats[:0]
		for _, v := range j.vals {
			j.floats = append(j.floats, c.wide(v))
		}
		joinParts(c.newFloat(0, j.shape), j.floats, j, interleave)
	case first.s != nil:
		return errors.New("strings cannot be joined")
	default:
		j.ints = j.ints[:0]
		for _, v := range j.vals {
			j.ints = append(j.ints, v.whole())
		}
		joinParts(c.newInt(0, j.shape), j.ints, j, interleave)
	}
	c.out[0].dtype = first.dtype
	return nil
}

func joinParts[T any](dst []T, parts [][]T, j *joined, interleave bool) {
	outer, n, inner := around(j.shape, j.axis)
	at := 0
	for o := range outer {
		if interleave {
			each := n / len(parts)
			for k := range each {
				for _, p := range parts {
					at += copy(dst[at:], p[(o*each+k)*inner:(o*each+k+1)*inner])
				}
			}
			continue
		}
		for i, p := range parts {
			m := j.vals[i].shape[j.axis] * inner
			at += copy(dst[at:], p[o*m:(o+1)*m])
		}
	}
}

func buildStack(b *builder) kernel {
	vals := b.variadic("values")
	axis := b.intConst("axis", 0)
	b.results(1)
	j := &joined{}
	return func(c *call) error {
		j.vals = j.vals[:0]
		first := c.in[vals[0]]
		a, err := axisOf(axis, first.rank()+1)
		if err != nil {
			return err
		}
		for i, s := range vals {
			v := c.m.newValue(*c.in[s])
			if !slices.Equal(v.shape, first.shape) {
				return fmt.Errorf("value %d has shape %s, value 0 %s", i, tensor.ShapeString(v.shape), tensor.ShapeString(first.shape))
			}
			v.shape = c.m.copyDims(v.shape[:a], scalarAsVector, v.shape[a:])
			j.vals = append(j.vals, v)
		}
		j.axis, j.shape = a, c.m.copyDims(j.vals[0].shape)
		j.shape[a] = len(vals)
		return c.join(j, false)
	}
}

func buildSplit(b *builder) kernel {
	x := b.input("x")
	axis := b.intConst("axis", 0)
	num := b.intConst("num_splits", 0)
	sizes, given := b.intsConst("split_sizes")
	return func(c *call) error {
		v := c.in[x]
		a, err := axisOf(axis, v.rank())
		if err != nil {
			return err
		}
		parts := sizes
		if !given {
			if num <= 0 || v.shape[a]%num != 0 {
				return fmt.Errorf("x has %d elements along axis %d, which is no multiple of num_splits %d", v.shape[a], a, num)
			}
			parts = c.m.newDims(num)
			for i := range parts {
				parts[i] = v.shape[a] / num
			}
		}
		sum := 0
		for _, n := range parts {
			if n < 0 {
				return fmt.Errorf("split_sizes %v has a negative size", parts)
			}
			sum += n
		}
		if sum != v.shape[a] || len(parts) != len(c.out) {
			return fmt.Errorf("split_sizes %v for %d results, x has %d elements along axis %d", parts, len(c.out), v.shape[a], a)
		}
		at := 0
		for i, n := range parts {
			begin, size := c.m.newDims(v.rank()), c.m.copyDims(v.shape)
			begin[a], size[a] = at, n
			c.slice(i, v, begin, size, nil)
			at += n
		}
		return nil
	}
}
