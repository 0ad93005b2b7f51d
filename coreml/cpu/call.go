package cpu

import (
	"context"
	"fmt"

	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/coreml/tensor"
)

// kernel executes one op: it reads c.in and must set every element of c.out.
// An error is completed with the op's name and position by the session.
type kernel func(c *call) error

// call is what a kernel sees: its operands by slot and a place for results.
type call struct {
	s   *session
	m   *memory         // nil: what is made stays
	ctx context.Context //nolint:containedctx // a call ends with the op; nested blocks need it
	n   *node
	in  []*value
	out []*value
	tmp []*buffer // released after the op
	// rounded: the kernel has rounded its fp16 results itself.
	rounded bool

	// jobs that ops share
	mapping   mapJob
	widening  widenJob
	rounding  roundJob
	rows      rowsJob
	copyF     copyJob[float32]
	copyH     copyJob[uint16]
	copyI     copyJob[int32]
	moveF     moveJob[float32]
	moveH     moveJob[uint16]
	moveI     moveJob[int32]
	unfolding unfoldJob
	depth     depthJob
}

// get returns the operand in a slot, or nil for an optional one left out.
func (c *call) get(s slot) *value {
	if s == absent {
		return nil
	}
	return c.in[s]
}

// f32 returns the elements of an operand as float32. Half and compressed
// operands are widened into memory that lives until the op ends.
func (c *call) f32(s slot) []float32 { return c.wide(c.in[s]) }

func (c *call) wide(v *value) []float32 {
	if v.f != nil {
		return v.f
	}
	if v.scratch != nil || v.buf == nil && !v.brief && v.size() <= keepWide {
		return v.wide()
	}
	out := c.scratch(v.size())
	if v.h != nil && len(out) >= 1<<15 {
		c.widening = widenJob{dst: out, src: v.h}
		c.run(len(out), 1<<14, &c.widening)
		return out
	}
	v.widenInto(out)
	return out
}

// scratch returns n float32 of undefined content that live until the op ends.
func (c *call) scratch(n int) []float32 {
	b := c.s.arena.float(n)
	c.tmp = append(c.tmp, b)
	return b.f[:n]
}

// ints returns the elements of an integer or bool operand.
func (c *call) ints(s slot) []int32 { return c.in[s].whole() }

// whole returns the elements of an integer or bool value; a compressed one
// is unpacked once and kept. Any other value ends the op with an error.
func (v *value) whole() []int32 {
	if v.i == nil && v.w != nil {
		if p, ok := v.w.(packed); ok {
			v.i = make([]int32, v.size())
			intsFromBytes(v.i, p.dtype, p.data)
		}
	}
	if v.i == nil {
		panic(fmt.Errorf("an operand is %s, want integers or bool", v.dtype))
	}
	return v.i
}

// newFloat makes result i of a float type: its float32 elements are
// undefined until the kernel writes them.
func (c *call) newFloat(i int, shape []int) []float32 {
	c.declares(i, true)
	n := bounded(shape)
	b := c.s.arena.float(n)
	c.out[i] = c.m.newValue(value{dtype: c.outDType(i, tensor.FP32), shape: shape, f: b.f[:n], buf: b})
	return b.f[:n]
}

// newHalf makes result 0 of type fp16, stored as such.
func (c *call) newHalf(shape []int) []uint16 {
	n := bounded(shape)
	b := c.s.arena.half(n)
	c.out[0] = c.m.newValue(value{dtype: tensor.FP16, shape: shape, h: b.h[:n], buf: b})
	return b.h[:n]
}

// newInt makes result i of an integer type or bool.
func (c *call) newInt(i int, shape []int) []int32 {
	c.declares(i, false)
	n := bounded(shape)
	b := c.s.arena.ints(n)
	c.out[i] = c.m.newValue(value{dtype: c.outDType(i, tensor.Int32), shape: shape, i: b.i[:n], buf: b})
	return b.i[:n]
}

// declares ends the op with an error when result i is declared as an integer
// but computed as a float, or the other way round.
func (c *call) declares(i int, float bool) {
	d := c.outDType(i, tensor.Invalid)
	if d == tensor.Invalid || d.IsFloat() == float && d != tensor.String {
		return
	}
	kind := "integers"
	if float {
		kind = "floats"
	}
	panic(diag.Errorf(diag.Pos{}, diag.Mismatch, "result %q holds %s, the program declares %s", c.n.op.Outputs[i].Name, kind, d))
}

// outDType is the declared element type of result i.
func (c *call) outDType(i int, def tensor.DType) tensor.DType {
	if i < len(c.n.op.Outputs) {
		if d := c.n.op.Outputs[i].Type.DType; d != tensor.Invalid {
			return d
		}
	}
	return def
}

// alias makes result i share the elements [off, off+product(shape)) of an
// operand; of a view always all of them.
func (c *call) alias(i int, v *value, off int, shape []int) {
	o := c.m.newValue(value{dtype: v.dtype, shape: shape, keys: v.keys})
	if v.view != nil {
		o.view, o.buf = v.view, v.buf
		o.buf.retain()
		c.out[i] = o
		return
	}
	n := product(shape)
	switch {
	case v.f != nil:
		o.f = v.f[off : off+n : off+n]
	case v.h != nil:
		o.h = v.h[off : off+n : off+n]
	case v.i != nil:
		o.i = v.i[off : off+n : off+n]
	case v.s != nil:
		o.s = v.s[off : off+n : off+n]
	case v.w != nil && off == 0 && n == v.size() && keepsRows(v.shape, shape):
		o.w = v.w
	case v.w != nil && !v.dtype.IsFloat():
		o.i = v.whole()[off : off+n : off+n]
	default:
		o.f = c.wide(v)[off : off+n : off+n]
		if len(c.tmp) > 0 { // the widened copy becomes the result's own
			o.buf = c.tmp[len(c.tmp)-1]
			c.tmp = c.tmp[:len(c.tmp)-1]
		}
		c.out[i] = o
		return
	}
	o.buf = v.buf
	o.buf.retain()
	c.out[i] = o
}

// keepsRows reports whether a reshaped compressed weight has the same rows.
func keepsRows(from, to []int) bool {
	r1, c1 := matrixDims(from)
	r2, c2 := matrixDims(to)
	return r1 == r2 && c1 == c2
}

// mayOverwrite reports whether nobody else will look at the float32 elements
// of an operand after this op.
func (c *call) mayOverwrite(s slot) bool {
	v := c.in[s]
	return c.s.opts.Observer == nil && v.f != nil && c.n.last[s] && v.buf != nil && v.buf.refs == 1 && len(v.f) == v.size()
}

// overwrite makes result 0 from the operand in slot s, which the kernel then
// changes in place.
func (c *call) overwrite(s slot) []float32 {
	v := c.in[s]
	v.buf.retain()
	c.out[0] = c.m.newValue(value{dtype: c.outDType(0, v.dtype), shape: v.shape, f: v.f, buf: v.buf})
	return v.f
}

// run does j over [0, n) on the session's workers.
func (c *call) run(n, grain int, j job) { c.s.pool.run(n, grain, j) }

// each runs fn over [0, n) on the session's workers.
func (c *call) each(n, grain int, fn func(lo, hi int)) { c.run(n, grain, jobFunc(fn)) }

// widenJob turns fp16 into float32.
type widenJob struct {
	dst []float32
	src []uint16
}

func (j *widenJob) run(lo, hi int) { cvtHalf(j.dst[lo:hi], j.src[lo:hi]) }

// axisOf turns a possibly negative axis into an index.
func axisOf(axis, rank int) (int, error) {
	a := axis
	if a < 0 {
		a += rank
	}
	if a < 0 || a >= rank {
		return 0, fmt.Errorf("axis %d is out of range for rank %d", axis, rank)
	}
	return a, nil
}

// around splits a shape at an axis: elements before it, its length, and the
// elements after it.
func around(shape []int, axis int) (outer, n, inner int) {
	return product(shape[:axis]), shape[axis], product(shape[axis+1:])
}

// maxElements bounds a result, so that a shape computed by a damaged program
// cannot take the machine down.
const maxElements = 1 << 30

// bounded returns the element count of a result's shape. A shape that makes
// no sense or is too large ends the op with an error.
func bounded(shape []int) int {
	n := 1
	for _, d := range shape {
		if d < 0 {
			panic(fmt.Errorf("a result would have the shape %s", tensor.ShapeString(shape)))
		}
		if d > 0 && n > maxElements/d {
			panic(diag.Errorf(diag.Pos{}, diag.TooLarge, "a result of shape %s has more than %d elements", tensor.ShapeString(shape), maxElements))
		}
		n *= d
	}
	return n
}
