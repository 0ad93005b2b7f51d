package cpu

import (
	"fmt"
	"math"

	"github.com/anepkg/anepkg/coreml/tensor"
)

var normOps = []opDef{
	{name: "layer_norm", since: 15, types: "fp16 fp32", build: buildLayerNorm,
		doc: "gamma * (x - mean) / sqrt(variance + epsilon) + beta over axes, population variance; gamma and beta have the shape of axes"},
}

func buildLayerNorm(b *builder) kernel {
	x := b.input("x")
	axes, _ := b.intsConst("axes")
	gamma, beta := b.constant("gamma"), b.constant("beta")
	eps := b.floatConst("epsilon", defaultOf(b.outDType(0), 1e-5))
	b.results(1)
	return func(c *call) error {
		v := c.in[x]
		over, err := reduceAxes(axes, v.rank())
		if err != nil {
			return err
		}
		n := 1
		for i, d := range v.shape {
			if over[i] {
				n *= d
			}
		}
		g, err := normParam("gamma", gamma, n)
		if err != nil {
			return err
		}
		bt, err := normParam("beta", beta, n)
		if err != nil {
			return err
		}
		src := c.f32(x)
		dst := c.newFloat(0, v.shape)
		alongRuns(c, dst, src, v.shape, over, func(dst, src []float32) { normalize(dst, src, g, bt, eps) })
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

// alongRuns calls fn with the elements of every run over the flagged axes,
// and stores what it writes at the same places of dst.
func alongRuns(c *call, dst, src []float32, shape []int, over []bool, fn func(dst, src []float32)) {
	var kept, gone []int
	n := 1
	for i, d := range shape {
		if over[i] {
			gone = append(gone, i)
			n *= d
		} else {
			kept = append(kept, i)
		}
	}
	if n == 0 || len(src) == 0 {
		return
	}
	rows := len(src) / n
	grain := max(1, mathGrain/n)
	if len(kept) == 0 || len(gone) == 0 || kept[len(kept)-1] < gone[0] {
		c.each(rows, grain, func(lo, hi int) {
			for r := lo; r < hi; r++ {
				fn(dst[r*n:(r+1)*n], src[r*n:(r+1)*n])
			}
		})
		return
	}
	strides := rowMajor(shape)
	offs, bases := offsets(shape, strides, gone), offsets(shape, strides, kept)
	c.each(rows, grain, func(lo, hi int) {
		in, out := make([]float32, n), make([]float32, n)
		for r := lo; r < hi; r++ {
			for j, o := range offs {
				in[j] = src[bases[r]+o]
			}
			fn(out, in)
			for j, o := range offs {
				dst[bases[r]+o] = out[j]
			}
		}
	})
}
