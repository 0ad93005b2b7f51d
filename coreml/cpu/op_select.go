package cpu

import (
	"fmt"

	"github.com/anepkg/anepkg/coreml/tensor"
)

var selectOps = []opDef{
	{name: "select", since: 15, types: "fp16 fp32 int32 bool", exact: true, doc: "a where cond is true, else b; broadcast as in NumPy", build: buildSelect},
}

func errRank(name string, v *value, want int) error {
	return fmt.Errorf("%s has shape %s, want rank %d or more", name, tensor.ShapeString(v.shape), want)
}

func errCount(name string, v *value, want int) error {
	return fmt.Errorf("%s has shape %s, want %d elements", name, tensor.ShapeString(v.shape), want)
}

func buildSelect(b *builder) kernel {
	cond, x, y := b.input("cond"), b.input("a"), b.input("b")
	b.results(1)
	return func(c *call) error {
		if c.in[cond].dtype != tensor.Bool {
			return fmt.Errorf("cond is %s, want bool", c.in[cond].dtype)
		}
		if err := sameTypes(c.in[x], c.in[y]); err != nil {
			return err
		}
		shape, err := broadcastShape(c.in[x].shape, c.in[y].shape)
		if err == nil {
			shape, err = broadcastShape(shape, c.in[cond].shape)
		}
		if err != nil {
			return err
		}
		mask := c.ints(cond)
		if c.in[x].isFloat() {
			pick(c, shape, c.newFloat(0, shape), mask, c.in[cond].shape, c.f32(x), c.in[x].shape, c.f32(y), c.in[y].shape)
			return nil
		}
		pick(c, shape, c.newInt(0, shape), mask, c.in[cond].shape, c.ints(x), c.in[x].shape, c.ints(y), c.in[y].shape)
		return nil
	}
}

// pick writes x or y by mask, each with its own shape.
func pick[T any](c *call, shape []int, dst []T, mask []int32, ms []int, x []T, xs []int, y []T, ys []int) {
	sm, sx, sy := broadcastStrides(ms, shape), broadcastStrides(xs, shape), broadcastStrides(ys, shape)
	n := 1
	if len(shape) > 0 {
		n = shape[len(shape)-1]
	}
	if n == 0 {
		return
	}
	rows := len(dst) / n
	last := func(s []int) int {
		if len(s) == 0 {
			return 0
		}
		return s[len(s)-1]
	}
	dm, dx, dy := last(sm), last(sx), last(sy)
	c.each(rows, max(1, parallelGrain/n), func(lo, hi int) {
		for r := lo; r < hi; r++ {
			om, ox, oy := 0, 0, 0
			for d, rest := len(shape)-2, r; d >= 0; d-- {
				i := rest % shape[d]
				rest /= shape[d]
				om, ox, oy = om+i*sm[d], ox+i*sx[d], oy+i*sy[d]
			}
			out := dst[r*n : (r+1)*n]
			for k := range out {
				if mask[om] != 0 {
					out[k] = x[ox]
				} else {
					out[k] = y[oy]
				}
				om, ox, oy = om+dm, ox+dx, oy+dy
			}
		}
	})
}

// broadcastStrides returns the strides of a shape inside a larger one; 0
// where it repeats.
func broadcastStrides(from, to []int) []int {
	out := make([]int, len(to))
	stride := 1
	for i := len(to) - 1; i >= 0; i-- {
		d := dimFromEnd(from, len(to)-i)
		if d > 1 {
			out[i] = stride
		}
		stride *= d
	}
	return out
}
