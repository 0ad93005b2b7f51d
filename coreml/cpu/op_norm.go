package cpu

import (
	"fmt"
	"math"

	"github.com/anepkg/anepkg/coreml/tensor"
)

var normOps = []opDef{
	{name: "batch_norm", since: 15, types: "fp16 fp32", build: buildBatchNorm,
		doc: "gamma * (x - mean) / sqrt(variance + epsilon) + beta for each channel, dimension 1 of x"},
	{name: "instance_norm", since: 15, types: "fp16 fp32", build: buildInstanceNorm,
		doc: "gamma * (x - mean) / sqrt(variance + epsilon) + beta, mean and population variance of each channel of each x[n]"},
	{name: "l2_norm", since: 15, types: "fp16 fp32", build: buildL2Norm,
		doc: "x / sqrt(sum of squares over the last three dimensions + epsilon)"},
	{name: "local_response_norm", since: 15, types: "fp16 fp32", build: buildLRN,
		doc: "x / (k + alpha/size * sum of squares over size neighbouring channels)^beta"},
	{name: "layer_norm", since: 15, types: "fp16 fp32", build: buildLayerNorm,
		doc: "gamma * (x - mean) / sqrt(variance + epsilon) + beta over axes, population variance; gamma and beta have the shape of axes"},
}

func buildLayerNorm(b *builder) kernel {
	x := b.input("x")
	axes, _ := b.intsConst("axes")
	gamma, beta := b.constant("gamma"), b.constant("beta")
	eps := b.floatConst("epsilon", defaultOf(b.outDType(), 1e-5))
	b.results(1)
	j := &normJob{eps: eps}
	return func(c *call) error {
		v := c.in[x]
		over, err := c.m.reduceAxes(axes, v.rank())
		if err != nil {
			return err
		}
		n := 1
		for i, d := range v.shape {
			if over[i] {
				n *= d
			}
		}
		if j.gamma, err = normParam("gamma", gamma, n); err != nil {
			return err
		}
		if j.beta, err = normParam("beta", beta, n); err != nil {
			return err
		}
		src := c.f32(x)
		dst := c.newFloat(0, v.shape)
		if len(src) == 0 {
			return nil
		}
		j.dst, j.src, j.runs = dst, src, c.m.newRuns(v.shape, over)
		c.run(len(src)/n, max(1, mathGrain/n), j)
		return nil
	}
}

// normParam returns a scale or shift of n elements; nil when it is left out.
func normParam(name string, v *value, n int) ([]float32, error) {
	if v == nil {
		return nil, nil
	}
	if v.size() != n {
		return nil, fmt.Errorf("%s has shape %s, the normalized axes have %d elements", name, tensor.ShapeString(v.shape), n)
	}
	return v.wide(), nil
}

// normalize brings one run to mean 0 and variance 1, then scales and shifts.
func normalize(dst, src, gamma, beta []float32, eps float64) {
	n := float64(len(src))
	mean := sumFold(src) / n
	var sq float64
	for _, v := range src {
		d := float64(v) - mean
		sq += d * d
	}
	inv := 1 / math.Sqrt(sq/n+eps)
	for k, v := range src {
		y := (float64(v) - mean) * inv
		if gamma != nil {
			y *= float64(gamma[k])
		}
		if beta != nil {
			y += float64(beta[k])
		}
		dst[k] = float32(y)
	}
}

// normJob normalizes the elements of every run over the flagged axes.
type normJob struct {
	runs
	dst, src, gamma, beta []float32
	eps                   float64
}

func (j *normJob) run(lo, hi int) {
	if j.dense {
		for r := lo; r < hi; r++ {
			normalize(j.dst[r*j.n:(r+1)*j.n], j.src[r*j.n:(r+1)*j.n], j.gamma, j.beta, j.eps)
		}
		return
	}
	scratch := takeRow(2 * j.n)
	defer giveRow(scratch)
	in, out := scratch.x[:j.n], scratch.x[j.n:]
	for r := lo; r < hi; r++ {
		base := j.base(r)
		for k := range in {
			in[k] = j.src[base+j.at(k)]
		}
		normalize(out, in, j.gamma, j.beta, j.eps)
		for k, v := range out {
			j.dst[base+j.at(k)] = v
		}
	}
}

func buildBatchNorm(b *builder) kernel {
	x := b.input("x")
	mean, variance := b.need("mean"), b.need("variance")
	gamma, beta := b.constant("gamma"), b.constant("beta")
	eps := b.floatConst("epsilon", defaultOf(b.outDType(), 1e-5))
	b.results(1)
	return func(c *call) error {
		v := c.in[x]
		if v.rank() < 2 {
			return errRank("x", v, 2)
		}
		_, n, inner := around(v.shape, 1)
		for i, p := range []*value{mean, variance, gamma, beta} {
			if p != nil && p.size() != n {
				return errCount([]string{"mean", "variance", "gamma", "beta"}[i], p, n)
			}
		}
		src, dst := c.f32(x), c.newFloat(0, v.shape)
		for r := 0; r*inner < len(src); r++ {
			ch := r % n
			scale, shift := 1/math.Sqrt(variance.num(ch)+eps), 0.0
			if gamma != nil {
				scale *= gamma.num(ch)
			}
			if beta != nil {
				shift = beta.num(ch)
			}
			for k := r * inner; k < (r+1)*inner; k++ {
				dst[k] = float32((float64(src[k])-mean.num(ch))*scale + shift)
			}
		}
		return nil
	}
}

func buildInstanceNorm(b *builder) kernel {
	x := b.input("x")
	gamma, beta := b.constant("gamma"), b.constant("beta")
	eps := b.floatConst("epsilon", defaultOf(b.outDType(), 1e-5))
	b.results(1)
	return func(c *call) error {
		v := c.in[x]
		if v.rank() < 3 {
			return errRank("x", v, 3)
		}
		_, n, inner := around(v.shape, 1)
		for i, p := range []*value{gamma, beta} {
			if p != nil && p.size() != n {
				return errCount([]string{"gamma", "beta"}[i], p, n)
			}
		}
		src, dst := c.f32(x), c.newFloat(0, v.shape)
		g, s := make([]float32, inner), make([]float32, inner)
		for r := 0; r*inner < len(src); r++ {
			fill(g, 1)
			if gamma != nil {
				fill(g, float32(gamma.num(r%n)))
			}
			if beta != nil {
				fill(s, float32(beta.num(r%n)))
			}
			normalize(dst[r*inner:(r+1)*inner], src[r*inner:(r+1)*inner], g, s, eps)
		}
		return nil
	}
}

func buildL2Norm(b *builder) kernel {
	x := b.input("x")
	eps := b.floatConst("epsilon", defaultOf(b.outDType(), 1e-6))
	b.results(1)
	return func(c *call) error {
		v := c.in[x]
		if v.rank() < 3 {
			return errRank("x", v, 3)
		}
		n := product(v.shape[v.rank()-3:])
		src, dst := c.f32(x), c.newFloat(0, v.shape)
		for r := 0; r*n < len(src); r++ {
			run := src[r*n : (r+1)*n]
			scale := 1 / math.Sqrt(squareFold(run)+eps)
			for k, e := range run {
				dst[r*n+k] = float32(float64(e) * scale)
			}
		}
		return nil
	}
}

func buildLRN(b *builder) kernel {
	x := b.input("x")
	size := b.intConst("size", 0)
	alpha := b.floatConst("alpha", defaultOf(b.outDType(), 1e-4))
	beta := b.floatConst("beta", defaultOf(b.outDType(), 0.75))
	k := b.floatConst("k", 1)
	if size < 1 {
		b.failf("size is %d, want 1 or more", size)
	}
	b.results(1)
	return func(c *call) error {
		v := c.in[x]
		if v.rank() < 3 {
			return errRank("x", v, 3)
		}
		outer, n, inner := around(v.shape, 1)
		src, dst := c.f32(x), c.newFloat(0, v.shape)
		for o := range outer {
			for ch := range n {
				for p := range inner {
					sum := 0.0
					for q := max(0, ch-(size-1)/2); q < min(n, ch-(size-1)/2+size); q++ {
						e := float64(src[(o*n+q)*inner+p])
						sum += e * e
					}
					at := (o*n+ch)*inner + p
					dst[at] = float32(float64(src[at]) / math.Pow(k+alpha/float64(size)*sum, beta))
				}
			}
		}
		return nil
	}
}
