package cpu

import (
	"fmt"
	"slices"
	"strings"

	"github.com/anepkg/anepkg/coreml/tensor"
)

var einsumOps = []opDef{
	{name: "einsum", since: 15, types: "fp16 fp32", build: buildEinsum, limit: "two operands; no ellipsis",
		doc: "the product of two arrays summed over the labels of equation that the result lacks; a dimension of length 1 repeats"},
}

// equation is "ab,bc->ac": the labels of both operands and of the result.
type equation struct {
	in  [2]string
	out string
}

func parseEquation(s string) (*equation, error) {
	s = strings.ReplaceAll(s, " ", "")
	left, out, ok := strings.Cut(s, "->")
	a, c, two := strings.Cut(left, ",")
	if !ok || !two || strings.Contains(c, ",") {
		return nil, fmt.Errorf("equation is %q, want two operands and a result, like \"ab,bc->ac\"", s)
	}
	e := &equation{[2]string{a, c}, out}
	for _, r := range a + c + out {
		if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') {
			return nil, fmt.Errorf("equation %q has the label %q, want letters", s, r)
		}
	}
	for i := range len(out) {
		if strings.IndexByte(out[i+1:], out[i]) >= 0 {
			return nil, fmt.Errorf("equation %q has the label %c twice in its result", s, out[i])
		}
		if strings.IndexByte(a+c, out[i]) < 0 {
			return nil, fmt.Errorf("equation %q has the label %c in its result only", s, out[i])
		}
	}
	return e, nil
}

// sizes gives each label its length and each operand its strides by label.
func (e *equation) sizes(shapes [2][]int) (size map[byte]int, strides [2]map[byte]int, err error) {
	size = map[byte]int{}
	for o, labels := range e.in {
		shape := shapes[o]
		if len(labels) != len(shape) {
			return nil, strides, fmt.Errorf("values[%d] has shape %s, equation gives it the labels %q", o, tensor.ShapeString(shape), labels)
		}
		for d, n := range shape {
			l := labels[d]
			if have, ok := size[l]; !ok || have == 1 {
				size[l] = n
			} else if n != have && n != 1 {
				return nil, strides, fmt.Errorf("label %c has %d elements in one place and %d in another", l, have, n)
			}
		}
	}
	for o, labels := range e.in {
		strides[o] = map[byte]int{}
		for d, st := range rowMajor(shapes[o]) {
			if shapes[o][d] > 1 {
				strides[o][labels[d]] += st
			}
		}
	}
	return size, strides, nil
}

// groups sorts the labels: of both operands and the result, summed over, of
// one operand and the result.
func (e *equation) groups() (batch, sum, left, right []byte) {
	seen := map[byte]bool{}
	for _, l := range []byte(e.in[0] + e.in[1]) {
		if seen[l] {
			continue
		}
		seen[l] = true
		a, b, out := strings.IndexByte(e.in[0], l) >= 0, strings.IndexByte(e.in[1], l) >= 0, strings.IndexByte(e.out, l) >= 0
		switch {
		case !out:
			sum = append(sum, l)
		case a && b:
			batch = append(batch, l)
		case a:
			left = append(left, l)
		default:
			right = append(right, l)
		}
	}
	return batch, sum, left, right
}

func buildEinsum(b *builder) kernel {
	vals := b.variadic("values")
	eq, err := parseEquation(b.strConst("equation", ""))
	b.results(1)
	if err != nil {
		b.failf("%w", err)
	}
	if len(vals) != 2 {
		b.failf("has %d values, want 2", len(vals))
	}
	return func(c *call) error {
		x, y := c.in[vals[0]], c.in[vals[1]]
		if !x.isFloat() || !y.isFloat() {
			return fmt.Errorf("values are %s and %s, want floats", x.dtype, y.dtype)
		}
		size, strides, err := eq.sizes([2][]int{x.shape, y.shape})
		if err != nil {
			return err
		}
		c.einsum(eq, size, strides, c.wide(x), c.wide(y))
		return nil
	}
}

// einsum lays the operands out as matrices, multiplies, and puts the result
// in the order that the equation asks for.
func (c *call) einsum(eq *equation, size map[byte]int, strides [2]map[byte]int, x, y []float32) {
	dims := func(labels []byte) []int {
		out := make([]int, len(labels))
		for i, l := range labels {
			out[i] = size[l]
		}
		return out
	}
	arrange := func(src []float32, st map[byte]int, labels []byte) []float32 {
		shape, steps := dims(labels), make([]int, len(labels))
		for i, l := range labels {
			steps[i] = st[l]
		}
		dst := c.scratch(bounded(shape))
		copyStrided(c, &c.copyF, dst, src, 0, shape, steps)
		return dst
	}
	batch, sum, left, right := eq.groups()
	xs := arrange(x, strides[0], slices.Concat(batch, left, sum))
	ys := arrange(y, strides[1], slices.Concat(batch, sum, right))
	p := &matmulPlan{m: product(dims(left)), k: product(dims(sum)), n: product(dims(right)), batch: []int{product(dims(batch))}, xstep: []int{1}, ystep: []int{1}}
	p.live = p.n
	have := slices.Concat(batch, left, right)
	dst := c.newFloat(0, dims([]byte(eq.out)))
	prod := c.scratch(len(dst))
	if p.k == 0 {
		clear(prod)
	} else {
		c.matmul(&matmulJob{}, p, prod, xs, p.denseSide(ys))
	}
	st := rowMajor(dims(have))
	steps := make([]int, len(eq.out))
	for i := range steps {
		steps[i] = st[slices.Index(have, eq.out[i])]
	}
	copyStrided(c, &c.copyF, dst, prod, 0, dims([]byte(eq.out)), steps)
}
