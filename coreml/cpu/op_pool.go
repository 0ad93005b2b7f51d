package cpu

import (
	"fmt"
	"math"

	"github.com/anepkg/anepkg/coreml/tensor"
)

var poolOps = []opDef{
	{name: "max_pool", since: 15, types: "fp16 fp32", build: buildPool(maxWindow), exact: true,
		doc: "largest element of each window of x [N, C, *D]; padding never wins"},
	{name: "avg_pool", since: 15, types: "fp16 fp32", build: buildPool(meanWindow),
		doc: "mean of each window of x [N, C, *D]; padding counts as zeros unless exclude_padding_from_average"},
	{name: "l2_pool", since: 15, types: "fp16 fp32", build: buildPool(normWindow),
		doc: "square root of the sum of squares of each window of x [N, C, *D]"},
}

// windowSum reduces a window: the elements inside x, and how many positions
// count when padding does.
type windowSum func(x []float32, padded int) float32

func maxWindow(x []float32, _ int) float32 { return maxFold(x) }

func meanWindow(x []float32, n int) float32 {
	if n == 0 {
		return 0
	}
	return float32(sumFold(x) / float64(n))
}

func normWindow(x []float32, _ int) float32 { return float32(math.Sqrt(squareFold(x))) }

// pooling are the constant arguments of a pool.
type pooling struct {
	spatial
	kernel  []int
	ceil    bool
	exclude bool
}

func buildPool(reduce windowSum) func(*builder) kernel {
	return func(b *builder) kernel {
		x := b.input("x")
		p := pooling{spatial: b.spatial(), ceil: b.boolConst("ceil_mode", false)}
		if p.dilations != nil {
			b.failf("does not know argument \"dilations\"")
		}
		var ok bool
		if p.kernel, ok = b.intsConst("kernel_sizes"); !ok {
			b.failf("argument \"kernel_sizes\" is missing")
		}
		if b.op.Type == "avg_pool" {
			p.exclude = b.boolConst("exclude_padding_from_average", false)
		}
		if p.ceil && (p.padType == "same" || p.padType == "same_lower") {
			b.failf("ceil_mode does not go with pad_type %q", p.padType)
		}
		b.results(1)
		return func(c *call) error {
			v := c.in[x]
			if v.rank() < 3 || v.rank() > 5 {
				return fmt.Errorf("x has shape %s, want rank 3 to 5", tensor.ShapeString(v.shape))
			}
			r, after, err := p.windows(c.m, v.shape[2:])
			if err != nil {
				return err
			}
			dst := c.newFloat(0, c.m.copyDims(v.shape[:2], r.out))
			c.pool(dst, c.f32(x), &r, after, p.exclude, reduce)
			return nil
		}
	}
}

// windows resolves the pool for an input; after is the padding at the end of
// each dimension.
func (p pooling) windows(m *memory, in []int) (r resolved, after []int, err error) {
	if len(p.kernel) != len(in) {
		return r, nil, fmt.Errorf("kernel_sizes is %v for %d spatial dimensions", p.kernel, len(in))
	}
	for _, k := range p.kernel {
		if k < 1 {
			return r, nil, fmt.Errorf("kernel_sizes is %v, want numbers above 0", p.kernel)
		}
	}
	if r, err = p.resolve(m, in, p.kernel); err != nil {
		return r, nil, err
	}
	after = m.newDims(len(in))
	for i := range in {
		switch p.padType {
		case "custom":
			after[i] = p.pad[2*i+1]
		case "same", "same_lower":
			after[i] = max(0, (r.out[i]-1)*r.strides[i]+p.kernel[i]-in[i]) - r.before[i]
		}
		if !p.ceil {
			continue
		}
		room := in[i] + r.before[i] + after[i] - p.kernel[i]
		r.out[i] = (room+r.strides[i]-1)/r.strides[i] + 1
		if (r.out[i]-1)*r.strides[i] >= in[i]+r.before[i] { // would see nothing of x
			r.out[i]--
		}
	}
	return r, after, nil
}

// pool reduces every window of every channel.
func (c *call) pool(dst, src []float32, r *resolved, after []int, exclude bool, reduce windowSum) {
	if len(dst) == 0 {
		return
	}
	pin, pout, taps := product(r.in), product(r.out), 1
	for d, k := range r.kernel { // pad_type same allows kernels of any size
		taps *= min(k, r.in[d])
	}
	strides := rowMajor(r.in)
	c.each(len(dst)/pout, max(1, parallelGrain/max(1, pout*taps)), func(lo, hi int) {
		run := make([]float32, 0, taps)
		for ch := lo; ch < hi; ch++ {
			x := src[ch*pin : (ch+1)*pin]
			for o := range pout {
				var padded int
				run, padded = gatherWindow(run[:0], x, r, after, strides, o)
				n := padded
				if exclude {
					n = len(run)
				}
				dst[ch*pout+o] = reduce(run, n)
			}
		}
	})
}

// gatherWindow appends the elements of x in window o, and counts the
// positions inside x and its padding.
func gatherWindow(run, x []float32, r *resolved, after, strides []int, o int) ([]float32, int) {
	n := len(r.in)
	var lo, hi [3]int
	padded, empty := 1, false
	for d, rest := n-1, o; d >= 0; d-- {
		start := rest%r.out[d]*r.strides[d] - r.before[d]
		rest /= r.out[d]
		padded *= min(start+r.kernel[d], r.in[d]+after[d]) - start
		lo[d], hi[d] = max(start, 0), min(start+r.kernel[d], r.in[d])
		empty = empty || lo[d] >= hi[d]
	}
	if empty {
		return run, padded
	}
	idx := lo
	for {
		at := 0
		for d := range n - 1 {
			at += idx[d] * strides[d]
		}
		run = append(run, x[at+lo[n-1]:at+hi[n-1]]...)
		d := n - 2
		for ; d >= 0; d-- {
			if idx[d]++; idx[d] < hi[d] {
				break
			}
			idx[d] = lo[d]
		}
		if d < 0 {
			return run, padded
		}
	}
}
