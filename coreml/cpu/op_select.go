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
	floats, ints := &pickJob[float32]{}, &pickJob[int32]{}
	return func(c *call) error {
		if c.in[cond].dtype != tensor.Bool {
			return fmt.Errorf("cond is %s, want bool", c.in[cond].dtype)
		}
		if err := sameTypes(c.in[x], c.in[y]); err != nil {
			return err
		}
		shape, err := c.m.broadcastShape(c.in[x].shape, c.in[y].shape)
		if err == nil {
			shape, err = c.m.broadcastShape(shape, c.in[cond].shape)
		}
		if err != nil {
			return err
		}
		mask, ms, xs, ys := c.ints(cond), c.in[cond].shape, c.in[x].shape, c.in[y].shape
		if c.in[x].isFloat() {
			floats.of(c, shape, c.newFloat(0, shape), mask, ms, c.f32(x), xs, c.f32(y), ys)
			return nil
		}
		ints.of(c, shape, c.newInt(0, shape), mask, ms, c.ints(x), xs, c.ints(y), ys)
		return nil
	}
}

// pickJob writes x or y by mask, each with its own shape.
type pickJob[T any] struct {
	shape      []int
	dst        []T
	mask       []int32
	x, y       []T
	sm, sx, sy []int // strides along shape
}

func (j *pickJob[T]) of(c *call, shape []int, dst []T, mask []int32, ms []int, x []T, xs []int, y []T, ys []int) {
	if len(dst) == 0 {
		return
	}
	*j = pickJob[T]{shape: shape, dst: dst, mask: mask, x: x, y: y,
		sm: c.m.broadcastStrides(ms, shape), sx: c.m.broadcastStrides(xs, shape), sy: c.m.broadcastStrides(ys, shape)}
	n := dimFromEnd(shape, 1)
	c.run(len(dst)/n, max(1, parallelGrain/n), j)
}

func (j *pickJob[T]) run(lo, hi int) {
	n := dimFromEnd(j.shape, 1)
	dm, dx, dy := 0, 0, 0
	if last := len(j.shape) - 1; last >= 0 {
		dm, dx, dy = j.sm[last], j.sx[last], j.sy[last]
	}
	for r := lo; r < hi; r++ {
		om, ox, oy := 0, 0, 0
		for d, rest := len(j.shape)-2, r; d >= 0; d-- {
			i := rest % j.shape[d]
			rest /= j.shape[d]
			om, ox, oy = om+i*j.sm[d], ox+i*j.sx[d], oy+i*j.sy[d]
		}
		out := j.dst[r*n : (r+1)*n]
		for k := range out {
			if j.mask[om] != 0 {
				out[k] = j.x[ox]
			} else {
				out[k] = j.y[oy]
			}
			om, ox, oy = om+dm, ox+dx, oy+dy
		}
	}
}

// broadcastStrides returns the strides of a shape inside a larger one; 0
// where it repeats.
func (m *memory) broadcastStrides(from, to []int) []int {
	out := m.newDims(len(to))
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
