package cpu

import (
	"fmt"
	"slices"
	"strings"

	"github.com/anepkg/anepkg/coreml/tensor"
)

var convOps = []opDef{
	{name: "conv", since: 15, types: "fp16 fp32", build: buildConv,
		doc: "cross-correlation of x [N, Cin, *D] with weight [Cout, Cin/groups, *K], 1 to 3 spatial dimensions; pad_type valid, custom, same or same_lower"},
}

// spatial are the constant arguments of convolutions and pools.
type spatial struct {
	strides, dilations []int
	padType            string
	pad                []int
}

// resolved is spatial for one input: per dimension the padding before, and
// the output length.
type resolved struct {
	in, kernel, out, before, strides, dilations []int
}

func (b *builder) spatial() spatial {
	var s spatial
	s.strides, _ = b.intsConst("strides")
	s.dilations, _ = b.intsConst("dilations")
	s.padType = strings.ToLower(b.strConst("pad_type", "valid"))
	s.pad, _ = b.intsConst("pad")
	switch s.padType {
	case "valid", "custom", "same", "same_lower":
	default:
		b.failf("pad_type is %q, want valid, custom, same or same_lower", s.padType)
	}
	return s
}

// threeOnes serves up to three spatial dimensions.
var threeOnes = []int{1, 1, 1}

func onesIfNil(x []int, n int) ([]int, error) {
	if x == nil && n <= len(threeOnes) {
		return threeOnes[:n], nil
	}
	if len(x) != n {
		return nil, fmt.Errorf("%v has %d elements, want one for each of %d spatial dimensions", x, len(x), n)
	}
	for _, v := range x {
		if v < 1 {
			return nil, fmt.Errorf("%v has an element below 1", x)
		}
	}
	return x, nil
}

func (s spatial) resolve(m *memory, in, kernel []int) (r resolved, err error) {
	n := len(in)
	r = resolved{in: in, kernel: kernel, out: m.newDims(n), before: m.newDims(n)}
	if r.strides, err = onesIfNil(s.strides, n); err != nil {
		return r, fmt.Errorf("strides: %w", err)
	}
	if r.dilations, err = onesIfNil(s.dilations, n); err != nil {
		return r, fmt.Errorf("dilations: %w", err)
	}
	if s.padType == "custom" && (len(s.pad) != 2*n || slices.Min(s.pad) < 0) {
		return r, fmt.Errorf("pad is %v, want %d numbers from 0 on for pad_type custom", s.pad, 2*n)
	}
	for i := range n {
		reach := (kernel[i]-1)*r.dilations[i] + 1
		total := 0
		switch s.padType {
		case "custom":
			r.before[i] = s.pad[2*i]
			total = s.pad[2*i] + s.pad[2*i+1]
		case "same", "same_lower":
			out := (in[i] + r.strides[i] - 1) / r.strides[i]
			total = max(0, (out-1)*r.strides[i]+reach-in[i])
			r.before[i] = total / 2
			if s.padType == "same_lower" {
				r.before[i] = total - total/2
			}
		}
		if in[i]+total < reach {
			return r, fmt.Errorf("dimension %d has %d elements with padding, the kernel reaches over %d", i, in[i]+total, reach)
		}
		r.out[i] = (in[i]+total-reach)/r.strides[i] + 1
	}
	return r, nil
}

// pointwise reports a kernel of one element that visits every position.
func (r *resolved) pointwise() bool {
	for i := range r.in {
		if r.kernel[i] != 1 || r.strides[i] != 1 || r.out[i] != r.in[i] || r.before[i] != 0 {
			return false
		}
	}
	return true
}

func buildConv(b *builder) kernel {
	x, weight, bias := b.input("x"), b.input("weight"), b.optional("bias")
	sp := b.spatial()
	groups := b.intConst("groups", 1)
	b.results(1)
	return func(c *call) error {
		v, w := c.in[x], c.in[weight]
		if v.rank() < 3 || v.rank() > 5 || w.rank() != v.rank() {
			return fmt.Errorf("x has shape %s, weight %s, want one rank of 3 to 5", tensor.ShapeString(v.shape), tensor.ShapeString(w.shape))
		}
		batch, cin, cout := v.shape[0], v.shape[1], w.shape[0]
		if groups < 1 || cin != w.shape[1]*groups || cout%groups != 0 {
			return fmt.Errorf("x has %d channels, weight has shape %s with %d groups", cin, tensor.ShapeString(w.shape), groups)
		}
		r, err := sp.resolve(c.m, v.shape[2:], w.shape[2:])
		if err != nil {
			return err
		}
		bv, err := c.bias(bias, cout)
		if err != nil {
			return err
		}
		shape := c.m.copyDims(v.shape[:2], r.out)
		shape[1] = cout
		dst := c.newFloat(0, shape)
		src := c.f32(x)
		m := w.floatMatrix()
		if cin == groups && !r.pointwise() {
			c.depthwise(dst, src, w, bv, &r, batch, cout/groups)
			return nil
		}
		c.convGroups(dst, src, m, bv, &r, batch, cin, cout, groups)
		return nil
	}
}

// convGroups multiplies, for each batch and group, the group's rows of the
// weight by the columns of x that each output position sees.
func (c *call) convGroups(dst, src []float32, w weight, bias []float32, r *resolved, batch, cin, cout, groups int) {
	pin, pout := product(r.in), product(r.out)
	cg, og := cin/groups, cout/groups
	taps := product(r.kernel)
	var cols []float32
	if !r.pointwise() {
		size := c.m.newDims(3)
		size[0], size[1], size[2] = cg, taps, pout
		cols = c.scratch(bounded(size))
	}
	for n := range batch {
		for g := range groups {
			xs := src[(n*cin+g*cg)*pin : (n*cin+(g+1)*cg)*pin]
			if cols != nil {
				c.unfolding = unfoldJob{cols: cols, x: xs, r: *r, strides: c.m.rowMajor(r.in)}
				c.run(cg, 1, &c.unfolding)
				xs = cols
			}
			y := dst[(n*cout+g*og)*pout : (n*cout+(g+1)*og)*pout]
			c.mulRows(y, w, g*og, og, xs, pout, bias)
		}
	}
}

// unfoldJob unfolds channels.
type unfoldJob struct {
	cols, x []float32
	r       resolved
	strides []int // of the input
}

func (j *unfoldJob) run(lo, hi int) {
	pin := product(j.r.in)
	size := product(j.r.kernel) * product(j.r.out)
	for ch := lo; ch < hi; ch++ {
		unfold(j.cols[ch*size:(ch+1)*size], j.x[ch*pin:(ch+1)*pin], &j.r, j.strides)
	}
}

// unfold lays out, for each tap of the kernel, the elements of one channel
// that each output position multiplies with it; 0 in the padding.
func unfold(cols, x []float32, r *resolved, instr []int) {
	n := len(r.in)
	pout := product(r.out)
	last := n - 1
	wout, step := r.out[last], r.strides[last]
	for t := range product(r.kernel) {
		var tap [3]int
		for d, rest := n-1, t; d >= 0; d-- {
			tap[d] = rest%r.kernel[d]*r.dilations[d] - r.before[d]
			rest /= r.kernel[d]
		}
		for row := range pout / max(1, wout) {
			out := cols[t*pout+row*wout : t*pout+(row+1)*wout]
			base, inside := 0, true
			for d, rest := last-1, row; d >= 0; d-- {
				i := rest%r.out[d]*r.strides[d] + tap[d]
				rest /= r.out[d]
				inside = inside && i >= 0 && i < r.in[d]
				base += i * instr[d]
			}
			if !inside {
				fill(out, 0)
				continue
			}
			for k := range out {
				i := k*step + tap[last]
				if i < 0 || i >= r.in[last] {
					out[k] = 0
					continue
				}
				out[k] = x[base+i]
			}
		}
	}
}

// depthwise convolves each channel with its own kernels.
func (c *call) depthwise(dst, src []float32, w *value, bias []float32, r *resolved, batch, mult int) {
	cin := w.shape[0] / mult
	c.depth = depthJob{dst: dst, weights: c.wide(w), bias: bias, cin: cin, mult: mult, unfoldJob: unfoldJob{x: src, r: *r, strides: c.m.rowMajor(r.in)}}
	c.run(batch*cin, max(1, mathGrain/max(1, product(r.kernel)*product(r.out))), &c.depth)
}

// depthJob convolves channels, counted over the batch.
type depthJob struct {
	unfoldJob
	dst, weights, bias []float32
	cin, mult          int
}

func (j *depthJob) run(lo, hi int) {
	r := &j.r
	pin, pout, taps := product(r.in), product(r.out), product(r.kernel)
	cout := j.cin * j.mult
	buf := takeRow(taps * pout)
	defer giveRow(buf)
	cols := buf.x
	for p := lo; p < hi; p++ {
		n, ch := p/j.cin, p%j.cin
		unfold(cols, j.x[p*pin:(p+1)*pin], r, j.strides)
		for o := ch * j.mult; o < (ch+1)*j.mult; o++ {
			y := j.dst[(n*cout+o)*pout : (n*cout+o+1)*pout]
			b := float32(0)
			if j.bias != nil {
				b = j.bias[o]
			}
			fill(y, b)
			for t, a := range j.weights[o*taps : (o+1)*taps] {
				axpy(y, a, cols[t*pout:(t+1)*pout])
			}
		}
	}
}
