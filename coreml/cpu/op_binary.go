package cpu

import (
	"fmt"
	"math"
	"slices"

	"github.com/anepkg/anepkg/coreml/tensor"
)

var binaryOps = []opDef{
	arith("add", "x + y", addLoop, func(a, b int32) int32 { return a + b }),
	arith("sub", "x - y", subLoop, func(a, b int32) int32 { return a - b }),
	arith("mul", "x * y", mulLoop, func(a, b int32) int32 { return a * b }),
	arith("real_div", "x / y; for integers the quotient truncated toward zero", divLoop, truncDiv),
	arith("floor_div", "floor(x / y)", loopOf(func(a, b float32) float32 { return float32(math.Floor(float64(a) / float64(b))) }), floorDiv),
	arith("mod", "x - y*floor(x / y): the sign of y", loopOf(modFloat), modInt),
	arith("pow", "x to the power of y", loopOf(func(a, b float32) float32 { return float32(math.Pow(float64(a), float64(b))) }), powInt),
	arith("maximum", "the larger of x and y", loopOf(func(a, b float32) float32 { return max(a, b) }), func(a, b int32) int32 { return max(a, b) }),
	arith("minimum", "the smaller of x and y", loopOf(func(a, b float32) float32 { return min(a, b) }), func(a, b int32) int32 { return min(a, b) }),
	compare("equal", "x == y", func(a, b float32) bool { return a == b }, func(a, b int32) bool { return a == b }),
	compare("not_equal", "x != y", func(a, b float32) bool { return a != b }, func(a, b int32) bool { return a != b }),
	compare("less", "x < y", func(a, b float32) bool { return a < b }, func(a, b int32) bool { return a < b }),
	compare("less_equal", "x <= y", func(a, b float32) bool { return a <= b }, func(a, b int32) bool { return a <= b }),
	compare("greater", "x > y", func(a, b float32) bool { return a > b }, func(a, b int32) bool { return a > b }),
	compare("greater_equal", "x >= y", func(a, b float32) bool { return a >= b }, func(a, b int32) bool { return a >= b }),
	logical("logical_and", "x and y", func(a, b int32) int32 { return a & b }),
	logical("logical_or", "x or y", func(a, b int32) int32 { return a | b }),
	logical("logical_xor", "x or y but not both", func(a, b int32) int32 { return a ^ b }),
}

// loop applies an op to a run of elements. An operand of one element stands
// for all.
type loop[T, R any] func(dst []R, a, b []T)

// loopOf makes a loop of a function of two elements.
func loopOf[T, R any](f func(a, b T) R) loop[T, R] {
	return func(dst []R, a, b []T) {
		switch {
		case len(b) == 1 && len(dst) != 1:
			y := b[0]
			for k := range dst {
				dst[k] = f(a[k], y)
			}
		case len(a) == 1 && len(dst) != 1:
			x := a[0]
			for k := range dst {
				dst[k] = f(x, b[k])
			}
		default:
			for k := range dst {
				dst[k] = f(a[k], b[k])
			}
		}
	}
}

func addLoop(dst, a, b []float32) {
	switch {
	case len(b) == 1:
		for k, x := range a[:len(dst)] {
			dst[k] = x + b[0]
		}
	case len(a) == 1:
		for k, x := range b[:len(dst)] {
			dst[k] = x + a[0]
		}
	default:
		a, b = a[:len(dst)], b[:len(dst)]
		for k := range dst {
			dst[k] = a[k] + b[k]
		}
	}
}

func mulLoop(dst, a, b []float32) {
	switch {
	case len(b) == 1:
		y := b[0]
		for k, x := range a[:len(dst)] {
			dst[k] = x * y
		}
	case len(a) == 1:
		y := a[0]
		for k, x := range b[:len(dst)] {
			dst[k] = x * y
		}
	default:
		a, b = a[:len(dst)], b[:len(dst)]
		for k := range dst {
			dst[k] = a[k] * b[k]
		}
	}
}

var (
	subLoop = loopOf(func(a, b float32) float32 { return a - b })
	divLoop = loopOf(func(a, b float32) float32 { return a / b })
)

func truncDiv(a, b int32) int32 {
	if b == 0 {
		return 0
	}
	if a == math.MinInt32 && b == -1 {
		return a
	}
	return a / b
}

func floorDiv(a, b int32) int32 {
	q := truncDiv(a, b)
	if b != 0 && a%b != 0 && (a < 0) != (b < 0) {
		q--
	}
	return q
}

func modInt(a, b int32) int32 {
	if b == 0 || b == -1 {
		return 0
	}
	r := a % b
	if r != 0 && (r < 0) != (b < 0) {
		r += b
	}
	return r
}

func modFloat(a, b float32) float32 {
	r := math.Mod(float64(a), float64(b))
	if r != 0 && (r < 0) != (b < 0) {
		r += float64(b)
	}
	return float32(r)
}

func powInt(a, b int32) int32 {
	if b < 0 {
		switch a {
		case 1:
			return 1
		case -1:
			return 1 - 2*(b&1)
		}
		return 0
	}
	r := int32(1)
	for ; b > 0; b >>= 1 {
		if b&1 == 1 {
			r *= a
		}
		a *= a
	}
	return r
}

// arith makes an op whose result has the type of its operands.
func arith(name, doc string, ff loop[float32, float32], fi func(a, b int32) int32) opDef {
	ii := loopOf(fi)
	return opDef{name: name, since: 15, types: "fp16 fp32 int32", doc: doc + ", broadcast as in NumPy", build: func(b *builder) kernel {
		x, y := b.input("x"), b.input("y")
		b.results(1)
		isFloat, d := b.outDType().IsFloat(), b.outDType()
		floats, ints := &broadcastJob[float32, float32]{fn: ff}, &broadcastJob[int32, int32]{fn: ii}
		return func(c *call) error {
			if err := sameTypes(c.in[x], c.in[y]); err != nil {
				return err
			}
			if c.in[x].isFloat() != isFloat {
				return fmt.Errorf("x is %s and the result is declared as %s", c.in[x].dtype, d)
			}
			p, err := c.m.newBroadcast(c.in[x].shape, c.in[y].shape)
			if err != nil {
				return err
			}
			if !isFloat {
				dst := c.newInt(0, p.shape)
				ints.of(c, p, dst, c.ints(x), c.ints(y))
				if d != tensor.Int32 {
					for k, v := range dst {
						dst[k] = wrapInt(d, v)
					}
				}
				return nil
			}
			xs, ys := c.f32(x), c.f32(y)
			var dst []float32
			switch {
			case c.mayOverwrite(x) && slices.Equal(c.in[x].shape, p.shape):
				dst = c.overwrite(x)
			case c.mayOverwrite(y) && slices.Equal(c.in[y].shape, p.shape):
				dst = c.overwrite(y)
			default:
				dst = c.newFloat(0, p.shape)
			}
			floats.of(c, p, dst, xs, ys)
			return nil
		}
	}}
}

// sameTypes reports operands of which one is a float and the other is not.
func sameTypes(x, y *value) error {
	if x.isFloat() != y.isFloat() {
		return fmt.Errorf("x is %s and y is %s, want one type", x.dtype, y.dtype)
	}
	return nil
}

func compare(name, doc string, ff func(a, b float32) bool, fi func(a, b int32) bool) opDef {
	lf := loopOf(func(a, b float32) int32 { return bit(ff(a, b)) })
	li := loopOf(func(a, b int32) int32 { return bit(fi(a, b)) })
	lu := loopOf(func(a, b int32) int32 { return bit(fi(a^math.MinInt32, b^math.MinInt32)) })
	return opDef{name: name, since: 15, types: "bool; operands fp16 fp32 int32 bool", exact: true, doc: doc + ", broadcast as in NumPy", build: func(b *builder) kernel {
		x, y := b.input("x"), b.input("y")
		b.results(1)
		floats, ints := &broadcastJob[float32, int32]{fn: lf}, &broadcastJob[int32, int32]{}
		return func(c *call) error {
			if err := sameTypes(c.in[x], c.in[y]); err != nil {
				return err
			}
			p, err := c.m.newBroadcast(c.in[x].shape, c.in[y].shape)
			if err != nil {
				return err
			}
			dst := c.newInt(0, p.shape)
			if c.in[x].isFloat() {
				floats.of(c, p, dst, c.f32(x), c.f32(y))
				return nil
			}
			ints.fn = li
			if c.in[x].dtype == tensor.UInt32 {
				ints.fn = lu
			}
			ints.of(c, p, dst, c.ints(x), c.ints(y))
			return nil
		}
	}}
}

func bit(b bool) int32 {
	if b {
		return 1
	}
	return 0
}

func logical(name, doc string, f func(a, b int32) int32) opDef {
	l := loopOf(f)
	return opDef{name: name, since: 15, types: "bool", exact: true, doc: doc + ", broadcast as in NumPy", build: func(b *builder) kernel {
		x, y := b.input("x"), b.input("y")
		b.results(1)
		j := &broadcastJob[int32, int32]{fn: l}
		return func(c *call) error {
			if c.in[x].dtype != tensor.Bool || c.in[y].dtype != tensor.Bool {
				return fmt.Errorf("x is %s and y is %s, want bool", c.in[x].dtype, c.in[y].dtype)
			}
			p, err := c.m.newBroadcast(c.in[x].shape, c.in[y].shape)
			if err != nil {
				return err
			}
			j.of(c, p, c.newInt(0, p.shape), c.ints(x), c.ints(y))
			return nil
		}
	}}
}
