package cpu

import (
	"errors"
	"fmt"
	"slices"

	"github.com/anepkg/anepkg/coreml/tensor"
)

// wantInts reports an operand that does not hold integers.
func wantInts(name string, v *value) error {
	if v.i == nil && (v.w == nil || v.isFloat()) {
		return fmt.Errorf("%s is %s, want integers", name, v.dtype)
	}
	return nil
}

// wantFloat reports an operand that holds no numbers with a fraction.
func wantFloat(name string, v *value) error {
	if !v.isFloat() {
		return fmt.Errorf("%s is %s, want fp16 or fp32", name, v.dtype)
	}
	return nil
}

// wantRank reports an operand of another rank.
func wantRank(name string, v *value, rank int) error {
	if v.rank() != rank {
		return fmt.Errorf("%s has shape %s, want rank %d", name, tensor.ShapeString(v.shape), rank)
	}
	return nil
}

// wantShape reports an operand of another shape.
func wantShape(name string, v *value, shape ...int) error {
	if !slices.Equal(v.shape, shape) {
		return fmt.Errorf("%s has shape %s, want %s", name, tensor.ShapeString(v.shape), tensor.ShapeString(shape))
	}
	return nil
}

// oneInt returns the only element of an integer operand.
func (c *call) oneInt(name string, s slot) (int, error) {
	v := c.in[s]
	if err := wantInts(name, v); err != nil {
		return 0, err
	}
	if v.size() != 1 {
		return 0, errCount(name, v, 1)
	}
	return int(v.whole()[0]), nil
}

// move makes result 0 of the given shape from runs of n elements of v: run k
// of the result is the one that starts at element from(k) of v. A negative
// position stands for zeros.
func (c *call) move(v *value, shape []int, n int, from func(k int) int) error {
	return c.moveRuns(v, shape, runMove{n: n, from: from})
}

// moveAt is move with the positions in a list.
func (c *call) moveAt(v *value, shape []int, n int, at []int) error {
	return c.moveRuns(v, shape, runMove{n: n, at: at})
}

func (c *call) moveRuns(v *value, shape []int, m runMove) error {
	switch {
	case v.s != nil || v.keys != nil || v.list != nil:
		return errors.New("an operand is not an array of numbers")
	case v.h != nil:
		c.moveH = moveJob[uint16]{m, c.newHalf(shape), v.h}
		c.moveH.start(c)
	case v.isFloat():
		c.moveF = moveJob[float32]{m, c.newFloat(0, shape), c.wide(v)}
		c.moveF.start(c)
	default:
		c.moveI = moveJob[int32]{m, c.newInt(0, shape), v.whole()}
		c.moveI.start(c)
	}
	c.out[0].dtype = v.dtype
	return nil
}

// runMove says where runs of n elements come from.
type runMove struct {
	n    int
	at   []int           // or
	from func(k int) int // when at is nil
}

// moveJob copies runs of src to dst.
type moveJob[T any] struct {
	runMove
	dst, src []T
}

func (j *moveJob[T]) start(c *call) {
	if j.n > 0 {
		c.run(len(j.dst)/j.n, max(1, parallelGrain/j.n), j)
	}
}

func (j *moveJob[T]) run(lo, hi int) {
	for k := lo; k < hi; k++ {
		var at int
		if j.from != nil {
			at = j.from(k)
		} else {
			at = j.at[k]
		}
		d := j.dst[k*j.n : (k+1)*j.n]
		if at >= 0 {
			copy(d, j.src[at:at+j.n])
		} else {
			clear(d)
		}
	}
}

// writable makes result 0 a copy of the operand in slot s that the kernel may
// change; float operands that nobody else sees are not copied. Exactly one
// of the slices is not nil.
func (c *call) writable(s slot) (f []float32, i []int32) {
	v := c.in[s]
	switch {
	case c.mayOverwrite(s):
		f = c.overwrite(s)
	case v.isFloat():
		src := c.wide(v)
		f = c.newFloat(0, slices.Clone(v.shape))
		copy(f, src)
	default:
		src := v.whole()
		i = c.newInt(0, slices.Clone(v.shape))
		copy(i, src)
	}
	c.out[0].dtype = v.dtype
	return f, i
}

// fillWith makes result 0 of the given shape, every element being the only
// element of v.
func (c *call) fillWith(shape []int, v *value) error {
	if v.size() != 1 || v.s != nil {
		return errCount("value", v, 1)
	}
	if v.isFloat() {
		fill(c.newFloat(0, shape), float32(v.num(0)))
	} else {
		x := v.whole()[0]
		dst := c.newInt(0, shape)
		for k := range dst {
			dst[k] = x
		}
	}
	c.out[0].dtype = v.dtype
	return nil
}
