package cpu

import (
	"fmt"
	"slices"

	"github.com/anepkg/anepkg/coreml/tensor"
)

var convTransposeOps = []opDef{
	{name: "conv_transpose", since: 15, types: "fp16 fp32", build: buildConvTranspose,
		doc: "transposed convolution of x [N, Cin, *D] with weight [Cin, Cout/groups, *K]; what pad or output_shape leave out is cut off at the borders"},
}

func buildConvTranspose(b *builder) kernel {
	x, weight, bias := b.input("x"), b.input("weight"), b.optional("bias")
	sp := b.spatial()
	groups := b.intConst("groups", 1)
	want, _ := b.intsConst("output_shape")
	b.results(1)
	return func(c *call) error {
		v, w := c.in[x], c.in[weight]
		if v.rank() < 3 || v.rank() > 5 || w.rank() != v.rank() {
			return fmt.Errorf("x has shape %s, weight %s, want one rank of 3 to 5", tensor.ShapeString(v.shape), tensor.ShapeString(w.shape))
		}
		cin := v.shape[1]
		if groups < 1 || cin%groups != 0 || w.shape[0] != cin {
			return fmt.Errorf("x has %d channels, weight has shape %s with %d groups", cin, tensor.ShapeString(w.shape), groups)
		}
		cout := w.shape[1] * groups
		r, err := sp.resolveTransposed(v.shape[2:], w.shape[2:], want)
		if err != nil {
			return err
		}
		bv, err := c.bias(bias, cout)
		if err != nil {
			return err
		}
		dst := c.newFloat(0, append([]int{v.shape[0], cout}, r.out...))
		c.convTranspose(dst, c.f32(x), c.f32(weight), bv, r, cin, cout, groups)
		return nil
	}
}

// resolveTransposed is resolve for the transposed convolution: before is what
// is cut off at the start of the full result.
func (s spatial) resolveTransposed(in, kernel, want []int) (*resolved, error) {
	n := len(in)
	r := &resolved{in: in, kernel: kernel, out: make([]int, n), before: make([]int, n)}
	var err error
	if r.strides, err = onesIfNil(s.strides, n); err != nil {
		return nil, fmt.Errorf("strides: %w", err)
	}
	if r.dilations, err = onesIfNil(s.dilations, n); err != nil {
		return nil, fmt.Errorf("dilations: %w", err)
	}
	if s.padType == "custom" && (len(s.pad) != 2*n || slices.Min(s.pad) < 0) {
		return nil, fmt.Errorf("pad is %v, want %d numbers from 0 on for pad_type custom", s.pad, 2*n)
	}
	if want != nil && len(want) >= n {
		want = want[len(want)-n:]
	} else if want != nil {
		return nil, fmt.Errorf("output_shape is %v, want %d spatial dimensions", want, n)
	}
	for i := range n {
		full := max(0, in[i]-1)*r.strides[i] + (kernel[i]-1)*r.dilations[i] + 1
		r.out[i] = full
		switch s.padType {
		case "custom":
			r.before[i] = s.pad[2*i]
			r.out[i] = full - s.pad[2*i] - s.pad[2*i+1]
		case "same", "same_lower":
			r.out[i] = in[i] * r.strides[i]
			cut := max(0, full-r.out[i])
			r.before[i] = cut / 2
			if s.padType == "same_lower" {
				r.before[i] = cut - cut/2
			}
		}
		if want != nil {
			r.out[i] = want[i]
		}
		if r.out[i] < 1 {
			return nil, fmt.Errorf("dimension %d of the result would have %d elements", i, r.out[i])
		}
	}
	return r, nil
}

// convTranspose multiplies each group's channels by the weight and adds the
// products to the places where they overlap.
func (c *call) convTranspose(dst, src, w, bias []float32, r *resolved, cin, cout, groups int) {
	pin, pout, taps := product(r.in), product(r.out), product(r.kernel)
	cg, og := cin/groups, cout/groups
	wt := c.scratch(bounded([]int{og * taps, cg}))
	cols := c.scratch(bounded([]int{og * taps, pin}))
	full := dense{&value{dtype: tensor.FP32, shape: []int{og * taps, cg}, f: wt}, og * taps, cg}
	for n := range len(src) / max(1, cin*pin) {
		for g := range groups {
			copyStrided(c, &c.copyF, wt, w, g*cg*og*taps, []int{og * taps, cg}, []int{1, og * taps})
			c.mulRows(cols, full, 0, og*taps, src[(n*cin+g*cg)*pin:(n*cin+(g+1)*cg)*pin], pin, nil)
			c.each(og, 1, func(lo, hi int) {
				for o := lo; o < hi; o++ {
					y := dst[(n*cout+g*og+o)*pout : (n*cout+g*og+o+1)*pout]
					b := float32(0)
					if bias != nil {
						b = bias[g*og+o]
					}
					fill(y, b)
					foldBack(y, cols[o*taps*pin:(o+1)*taps*pin], r)
				}
			})
		}
	}
}

// foldBack adds the products of each tap to the output positions it reaches.
func foldBack(y, cols []float32, r *resolved) {
	n := len(r.in)
	pin := product(r.in)
	strides := rowMajor(r.out)
	for t := range product(r.kernel) {
		var tap [3]int
		for d, rest := n-1, t; d >= 0; d-- {
			tap[d] = rest%r.kernel[d]*r.dilations[d] - r.before[d]
			rest /= r.kernel[d]
		}
		for p := range pin {
			at, inside := 0, true
			for d, rest := n-1, p; d >= 0; d-- {
				i := rest%r.in[d]*r.strides[d] + tap[d]
				rest /= r.in[d]
				inside = inside && i >= 0 && i < r.out[d]
				at += i * strides[d]
			}
			if inside {
				y[at] += cols[t*pin+p]
			}
		}
	}
}
