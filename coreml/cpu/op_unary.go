package cpu

import (
	"math"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/coreml/tensor"
)

var unaryOps = []opDef{
	unary("acos", "arc cosine in radians", math.Acos),
	unary("asin", "arc sine in radians", math.Asin),
	unary("atan", "arc tangent in radians", math.Atan),
	unary("atanh", "inverse hyperbolic tangent", math.Atanh),
	unary("ceil", "the smallest integer not less than x", math.Ceil),
	unary("cos", "cosine of radians", math.Cos),
	unary("cosh", "hyperbolic cosine", math.Cosh),
	unary("erf", "the error function", math.Erf),
	unary("exp", "e to the power of x", math.Exp),
	unary("floor", "the largest integer not greater than x", math.Floor),
	unary("round", "the nearest integer, halves to the even one", math.RoundToEven),
	unary("silu", "x * sigmoid(x)", silu),
	unary("sin", "sine of radians", math.Sin),
	unary("sinh", "hyperbolic sine", math.Sinh),
	unary("softplus", "log(1 + exp(x))", softplus),
	unary("softsign", "x / (1 + |x|)", func(x float64) float64 { return x / (1 + math.Abs(x)) }),
	unary("sqrt", "square root; NaN below 0", math.Sqrt),
	unary("tan", "tangent of radians", math.Tan),
	unary("tanh", "hyperbolic tangent", math.Tanh),
	{name: "sigmoid", since: 15, types: "fp16 fp32", doc: "1 / (1 + exp(-x))", build: buildSigmoid},
	{name: "relu", since: 15, types: "fp16 fp32", doc: "max(x, 0)", exact: true, build: simple32(func(x float32) float32 { return max(x, 0) })},
	{name: "relu6", since: 15, types: "fp16 fp32", doc: "min(max(x, 0), 6)", exact: true, build: simple32(func(x float32) float32 { return min(max(x, 0), 6) })},
	unaryInt("abs", "|x|", func(x float32) float32 { return float32(math.Abs(float64(x))) }, func(x int32) int32 { return max(x, -x) }),
	unaryInt("sign", "-1, 0 or 1", signFloat, func(x int32) int32 { return min(1, max(-1, x)) }),
	unaryInt("square", "x * x", func(x float32) float32 { return x * x }, func(x int32) int32 { return x * x }),
	unaryInt("exp2", "2 to the power of x", func(x float32) float32 { return float32(math.Exp2(float64(x))) }, func(x int32) int32 { return powInt(2, x) }),
	param("inverse", "1 / (x + epsilon)", []string{"epsilon"}, []float64{1e-4}, func(x float64, p []float64) float64 { return 1 / (x + p[0]) }),
	param("log", "natural logarithm of x + epsilon", []string{"epsilon"}, []float64{1e-45}, func(x float64, p []float64) float64 { return math.Log(x + p[0]) }),
	param("rsqrt", "1 / sqrt(x + epsilon)", []string{"epsilon"}, []float64{1e-12}, func(x float64, p []float64) float64 { return 1 / math.Sqrt(x+p[0]) }),
	param("clip", "x between alpha and beta", []string{"alpha", "beta"}, nil, func(x float64, p []float64) float64 { return min(max(x, p[0]), p[1]) }),
	param("clamped_relu", "min(beta, x) above 0, min(beta, alpha*x) below", []string{"alpha", "beta"}, nil, func(x float64, p []float64) float64 {
		if x >= 0 {
			return min(x, p[1])
		}
		return min(x*p[0], p[1])
	}),
	param("elu", "x above 0, alpha * (exp(x) - 1) below", []string{"alpha"}, nil, func(x float64, p []float64) float64 {
		if x > 0 {
			return x
		}
		return p[0] * math.Expm1(x)
	}),
	param("leaky_relu", "x above 0, alpha * x below", []string{"alpha"}, nil, func(x float64, p []float64) float64 {
		if x >= 0 {
			return x
		}
		return p[0] * x
	}),
	param("linear_activation", "alpha * x + beta", []string{"alpha", "beta"}, nil, func(x float64, p []float64) float64 { return p[0]*x + p[1] }),
	param("scaled_tanh", "alpha * tanh(beta * x)", []string{"alpha", "beta"}, nil, func(x float64, p []float64) float64 { return p[0] * math.Tanh(p[1]*x) }),
	param("sigmoid_hard", "min(max(alpha * x + beta, 0), 1)", []string{"alpha", "beta"}, nil, func(x float64, p []float64) float64 { return min(max(p[0]*x+p[1], 0), 1) }),
	param("thresholded_relu", "x where x >= alpha, else 0", []string{"alpha"}, nil, func(x float64, p []float64) float64 {
		if x >= p[0] {
			return x
		}
		return 0
	}),
	{name: "threshold", since: 15, types: "fp16 fp32 int32", doc: "max(x, alpha)", build: buildThreshold},
	{name: "gelu", since: 15, types: "fp16 fp32", doc: "x times the normal distribution; mode EXACT, TANH_APPROXIMATION or SIGMOID_APPROXIMATION", build: buildGelu},
	{name: "prelu", since: 15, types: "fp16 fp32", doc: "x above 0, alpha[channel] * x below; channel is dimension 1", build: perChannel(func(x float64, p []float64) float64 {
		if x >= 0 {
			return x
		}
		return p[0] * x
	}, "alpha")},
	{name: "softplus_parametric", since: 15, types: "fp16 fp32", doc: "alpha[channel] * log(1 + exp(beta[channel] * x)); channel is dimension 1", build: perChannel(func(x float64, p []float64) float64 {
		return p[0] * softplus(p[1]*x)
	}, "alpha", "beta")},
	{name: "logical_not", since: 15, types: "bool", doc: "true where x is false", exact: true, build: buildNot},
	{name: "cast", since: 15, types: "fp16 fp32 int8 uint8 int16 uint16 int32 bool", exact: true, build: buildCast,
		doc: "x as another type: toward zero from float to integer, to the nearest fp16, != 0 for bool"},
	{name: "identity", since: 15, types: "every type", doc: "x itself", exact: true, build: buildIdentity},
}

func silu(x float64) float64 { return x / (1 + math.Exp(-x)) }

func softplus(x float64) float64 { return math.Log1p(math.Exp(-math.Abs(x))) + max(x, 0) }

func signFloat(x float32) float32 {
	switch {
	case x > 0:
		return 1
	case x < 0:
		return -1
	}
	return x
}

// mapFloat applies f to every element of x, in place when allowed.
func (c *call) mapFloat(x slot, grain int, f func(dst, src []float32)) {
	src := c.f32(x)
	var dst []float32
	if c.mayOverwrite(x) {
		dst = c.overwrite(x)
	} else {
		dst = c.newFloat(0, c.in[x].shape)
	}
	c.mapping = mapJob{f, dst, src}
	c.run(len(dst), grain, &c.mapping)
}

// mapJob applies f to pieces of src.
type mapJob struct {
	f        func(dst, src []float32)
	dst, src []float32
}

func (j *mapJob) run(lo, hi int) { j.f(j.dst[lo:hi], j.src[lo:hi]) }

// loop32 and loop64 apply f to each element.
func loop32(f func(float32) float32) func(dst, src []float32) {
	return func(dst, src []float32) {
		for k, v := range src {
			dst[k] = f(v)
		}
	}
}

func loop64(f func(float64) float64) func(dst, src []float32) {
	return func(dst, src []float32) {
		for k, v := range src {
			dst[k] = float32(f(float64(v)))
		}
	}
}

// mathGrain is the number of elements worth a worker for slow functions.
const mathGrain = 1 << 11

// simple64 builds an op that applies f to each element.
func simple64(f func(float64) float64) func(*builder) kernel {
	table := &halfTable{} // shared by all ops of this kind
	apply, each := table.apply, loop64(f)
	return func(b *builder) kernel {
		x := b.input("x")
		b.results(1)
		half := b.outDType() == tensor.FP16
		return func(c *call) error {
			if half && c.in[x].dtype == tensor.FP16 && c.in[x].size() >= halfTableMin {
				table.fill(f)
				c.mapFloat(x, parallelGrain, apply)
				c.rounded = c.s.opts.Precision != coreml.ANE // which also flushes
				return nil
			}
			c.mapFloat(x, mathGrain, each)
			return nil
		}
	}
}

func simple32(f func(float32) float32) func(*builder) kernel {
	each := loop32(f)
	return func(b *builder) kernel {
		x := b.input("x")
		b.results(1)
		return func(c *call) error {
			c.mapFloat(x, parallelGrain, each)
			return nil
		}
	}
}

func unary(name, doc string, f func(float64) float64) opDef {
	return opDef{name: name, since: 15, types: "fp16 fp32", doc: doc, build: simple64(f)}
}

// unaryInt makes an op that also exists for integers.
func unaryInt(name, doc string, ff func(float32) float32, fi func(int32) int32) opDef {
	build := func(b *builder) kernel {
		if b.outDType().IsFloat() {
			return simple32(ff)(b)
		}
		x := b.input("x")
		b.results(1)
		d := b.outDType()
		return func(c *call) error {
			dst := c.newInt(0, c.in[x].shape)
			for k, v := range c.ints(x) {
				dst[k] = wrapInt(d, fi(v))
			}
			return nil
		}
	}
	return opDef{name: name, since: 15, types: "fp16 fp32 int32", doc: doc, build: build}
}

// param makes an op with constant scalar parameters; def holds their
// defaults, nil when they are required. A default counts as the type of x.
func param(name, doc string, args []string, def []float64, f func(x float64, p []float64) float64) opDef {
	build := func(b *builder) kernel {
		x := b.input("x")
		b.results(1)
		p := make([]float64, len(args))
		for i, a := range args {
			if def != nil {
				p[i] = b.floatConst(a, defaultOf(b.outDType(), def[i]))
			} else {
				b.need(a)
				p[i] = b.floatConst(a, 0)
			}
		}
		each := loop64(func(x float64) float64 { return f(x, p) })
		return func(c *call) error {
			c.mapFloat(x, mathGrain, each)
			return nil
		}
	}
	return opDef{name: name, since: 15, types: "fp16 fp32", doc: doc, build: build}
}

// defaultOf is a default value as the type of x holds it.
func defaultOf(d tensor.DType, v float64) float64 {
	if d == tensor.FP16 {
		return float64(tensor.RoundF16(float32(v)))
	}
	return float64(float32(v))
}

var (
	plainSigmoid  = simple64(func(x float64) float64 { return 1 / (1 + math.Exp(-x)) })
	coarseSigmoid = simple64(func(x float64) float64 { return math.Round(2048/(1+math.Exp(-x))) / 2048 })
)

// buildSigmoid also serves the ane precision, in which the result is coarse:
// the Neural Engine computes it with a step of about 2^-11.
func buildSigmoid(b *builder) kernel {
	if b.lo.sess.opts.Precision == coreml.ANE {
		return coarseSigmoid(b)
	}
	return plainSigmoid(b)
}

func buildThreshold(b *builder) kernel {
	alpha := b.need("alpha")
	if b.err != nil {
		return nil
	}
	a := float32(alpha.num(0))
	if b.outDType().IsFloat() {
		return simple32(func(x float32) float32 { return max(x, a) })(b)
	}
	x := b.input("x")
	return func(c *call) error {
		dst := c.newInt(0, c.in[x].shape)
		for k, v := range c.ints(x) {
			dst[k] = max(v, int32(alpha.num(0)))
		}
		return nil
	}
}

// root2pi is sqrt(2/pi).
const root2pi = 0.7978845608028654

var geluModes = map[string]func(*builder) kernel{
	"EXACT":                 simple64(func(x float64) float64 { return x / 2 * (1 + math.Erf(x/math.Sqrt2)) }),
	"TANH_APPROXIMATION":    simple64(func(x float64) float64 { return x / 2 * (1 + math.Tanh(root2pi*(x+0.044715*x*x*x))) }),
	"SIGMOID_APPROXIMATION": simple64(func(x float64) float64 { return x / (1 + math.Exp(-1.702*x)) }),
}

func buildGelu(b *builder) kernel {
	mode := b.strConst("mode", "EXACT")
	build := geluModes[mode]
	if build == nil {
		b.failf("mode is %q, want EXACT, TANH_APPROXIMATION or SIGMOID_APPROXIMATION", mode)
		build = geluModes["EXACT"]
	}
	return build(b)
}

// perChannel builds an op whose parameters are vectors over dimension 1.
func perChannel(f func(x float64, p []float64) float64, args ...string) func(*builder) kernel {
	return func(b *builder) kernel {
		x := b.input("x")
		b.results(1)
		params := make([]*value, len(args))
		for i, a := range args {
			params[i] = b.need(a)
		}
		return func(c *call) error {
			v := c.in[x]
			if v.rank() < 2 {
				return errRank("x", v, 2)
			}
			outer, n, inner := around(v.shape, 1)
			src, dst := c.f32(x), c.newFloat(0, v.shape)
			p := make([]float64, len(params))
			for o := range outer {
				for ch := range n {
					for i, q := range params {
						if q.size() != n && q.size() != 1 {
							return errCount(args[i], q, n)
						}
						p[i] = q.num(ch % q.size())
					}
					at := (o*n + ch) * inner
					for k := at; k < at+inner; k++ {
						dst[k] = float32(f(float64(src[k]), p))
					}
				}
			}
			return nil
		}
	}
}

func buildNot(b *builder) kernel {
	x := b.input("x")
	b.results(1)
	return func(c *call) error {
		dst := c.newInt(0, c.in[x].shape)
		for k, v := range c.ints(x) {
			dst[k] = 1 - v&1
		}
		return nil
	}
}

func buildIdentity(b *builder) kernel {
	x := b.input("x")
	b.results(1)
	return func(c *call) error {
		if v := c.in[x]; v.list != nil || v.keys != nil {
			c.out[0] = v
			return nil
		}
		c.alias(0, c.in[x], 0, c.in[x].shape)
		return nil
	}
}

func buildCast(b *builder) kernel {
	x := b.input("x")
	b.results(1)
	name := b.strConst("dtype", "")
	to, ok := tensor.ParseDType(name)
	if !ok || to == tensor.String {
		b.failf("dtype is %q, want the name of a number type", name)
	}
	return func(c *call) error {
		v := c.in[x]
		switch {
		case to.IsFloat() && v.dtype == to:
			c.alias(0, v, 0, v.shape)
		case to.IsFloat():
			dst := c.newFloat(0, v.shape)
			c.out[0].dtype = to
			if v.isFloat() {
				copy(dst, c.wide(v))
			} else {
				v.whole()
				v.widenInto(dst)
			}
			if to == tensor.FP16 && v.dtype != tensor.FP16 {
				roundHalf(dst)
			}
		default:
			castInts(c, v, to)
		}
		return nil
	}
}

func castInts(c *call, v *value, to tensor.DType) {
	dst := c.newInt(0, v.shape)
	c.out[0].dtype = to
	if v.isFloat() {
		for k, f := range c.wide(v) {
			switch to {
			case tensor.Bool:
				dst[k] = bit(f != 0)
			case tensor.UInt32:
				dst[k] = int32(uint32(int64(f)))
			default:
				dst[k] = wrapInt(to, saturate(f))
			}
		}
		return
	}
	for k, n := range v.whole() {
		dst[k] = wrapInt(to, n)
	}
}

// saturate truncates toward zero; what does not fit becomes the nearest
// int32, and NaN becomes 0, on every processor alike.
func saturate(f float32) int32 {
	switch {
	case f != f:
		return 0
	case f >= math.MaxInt32:
		return math.MaxInt32
	case f <= math.MinInt32:
		return math.MinInt32
	}
	return int32(f)
}
