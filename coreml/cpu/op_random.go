package cpu

import (
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/anepkg/anepkg/coreml/tensor"
)

// ownNumbers is a limit of all random ops.
const ownNumbers = "the generator is not Core ML's, so a seed gives other numbers than there; without a seed every load gives the same ones"

var randomOps = []opDef{
	{name: "random_bernoulli", since: 15, types: "fp16 fp32", impure: true, exact: true, build: buildBernoulli, limit: ownNumbers,
		doc: "an array of the given shape: 1 with probability prob, else 0; with a seed the sequence over all calls is the same after each load"},
	{name: "random_categorical", since: 15, types: "fp16 fp32", impure: true, exact: true, build: buildCategorical, limit: ownNumbers,
		doc: "size indices for each vector of the last dimension of x, drawn with probabilities x (mode probs) or softmax(x) (mode logits); result shape x[:-1] + size"},
	{name: "random_normal", since: 15, types: "fp16 fp32", impure: true, build: buildNormal, limit: ownNumbers,
		doc: "an array of the given shape, normally distributed with mean and stddev"},
	{name: "random_uniform", since: 15, types: "fp16 fp32", impure: true, build: buildUniform, limit: ownNumbers,
		doc: "an array of the given shape, uniform in [low, high)"},
}

// random returns the op's generator. A seed below 0, or none, stands for one
// made of the op's name, so that runs repeat and ops differ.
func (b *builder) random() *rand.Rand {
	seed := uint64(b.intConst("seed", -1))
	if int64(seed) < 0 {
		h := fnv.New64a()
		_, _ = h.Write([]byte(b.op.Name()))
		seed = h.Sum64()
	}
	return rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15)) //nolint:gosec // the program asks for chance, not for secrets
}

// drawn makes a kernel that fills the array of operand "shape" with draws.
// The element type is that of the parameter like, fp32 without it.
func (b *builder) drawn(like string, draw func() float64) kernel {
	shape := b.input("shape")
	dtype := tensor.FP32
	if v := b.constant(like); v != nil {
		dtype = v.dtype
		if !v.isFloat() {
			b.failf("%s is %s, want fp16 or fp32", like, v.dtype)
		}
	}
	b.results(1)
	return func(c *call) error {
		if err := wantInts("shape", c.in[shape]); err != nil {
			return err
		}
		dst := c.newFloat(0, c.dims(shape))
		c.out[0].dtype = dtype
		for k := range dst {
			dst[k] = float32(draw())
		}
		return nil
	}
}

func buildBernoulli(b *builder) kernel {
	r, p := b.random(), b.floatConst("prob", 0.5)
	return b.drawn("prob", func() float64 { return float64(bit(r.Float64() < p)) })
}

func buildNormal(b *builder) kernel {
	r, mean, dev := b.random(), b.floatConst("mean", 0), b.floatConst("stddev", 1)
	return b.drawn("mean", func() float64 { return mean + dev*r.NormFloat64() })
}

func buildUniform(b *builder) kernel {
	r, low, high := b.random(), b.floatConst("low", 0), b.floatConst("high", 1)
	return b.drawn("low", func() float64 { return low + r.Float64()*(high-low) })
}

func buildCategorical(b *builder) kernel {
	x, r := b.input("x"), b.random()
	size := b.intConst("size", 1)
	mode := b.strConst("mode", "logits")
	b.results(1)
	if mode != "logits" && mode != "probs" {
		b.failf("mode is %q, want logits or probs", mode)
	}
	if size < 0 {
		b.failf("size is %d, want 0 or more", size)
	}
	return func(c *call) error {
		v := c.in[x]
		if err := wantFloat("x", v); err != nil {
			return err
		}
		if v.rank() == 0 || v.shape[v.rank()-1] == 0 {
			return fmt.Errorf("x has shape %s, want a last dimension of 1 or more", tensor.ShapeString(v.shape))
		}
		n := v.shape[v.rank()-1]
		src := c.wide(v)
		dst := c.newFloat(0, append(slices.Clone(v.shape[:v.rank()-1]), size))
		c.out[0].dtype = v.dtype
		sums := make([]float64, n)
		for row := range len(src) / n {
			total := cumulate(sums, src[row*n:(row+1)*n], mode == "logits")
			if !(total > 0) || math.IsInf(total, 0) {
				return fmt.Errorf("row %d of x holds no probabilities", row)
			}
			for k := range size {
				at, _ := slices.BinarySearchFunc(sums, r.Float64()*total, func(sum, u float64) int {
					if sum <= u {
						return -1
					}
					return 1
				})
				dst[row*size+k] = float32(min(at, n-1))
			}
		}
		return nil
	}
}

// cumulate writes the running sums of the weights in x, or of their
// exponentials, and returns the last.
func cumulate(sums []float64, x []float32, logits bool) float64 {
	top := float64(maxFold(x))
	total := 0.0
	for k, v := range x {
		w := max(float64(v), 0)
		if logits {
			w = math.Exp(float64(v) - top)
		}
		total += w
		sums[k] = total
	}
	return total
}
