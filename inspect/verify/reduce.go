package verify

import (
	"slices"

	"github.com/anepkg/anepkg/coreml/tensor"
)

var reduceOps = map[string]func(*call){
	"reduce_argmax": argReduction, "reduce_argmin": argReduction, "softmax": alongAxis, "cumsum": alongAxis, "argsort": argsort,
	"topk": topk, "layer_norm": layerNorm, "batch_norm": batchNorm,
}

// reduction over axes, all of them when there is none.
func reduction(c *call) {
	x, ok := c.in("x")
	keep, known := c.flag("keep_dims")
	if !ok || !known || !c.results(1) {
		return
	}
	gone := slices.Repeat([]bool{!c.has("axes")}, len(x.Shape))
	if c.has("axes") {
		axes, known := c.ints("axes")
		if !known {
			return
		}
		for _, a := range axes {
			k, ok := c.wrap("axes", a, len(x.Shape))
			if !ok {
				return
			}
			gone[k] = true
		}
		if len(axes) == 0 {
			return
		}
	}
	out := []int{}
	for i, d := range x.Shape {
		switch {
		case !gone[i]:
			out = append(out, d)
		case keep:
			out = append(out, 1)
		}
	}
	c.result(0, x.DType, out)
}

func argReduction(c *call) {
	x, ok := c.in("x")
	keep, known := c.flag("keep_dims")
	if !ok || !known || len(x.Shape) == 0 || !c.results(1) {
		return
	}
	axis, ok := c.axis("axis", -1, len(x.Shape))
	if !ok {
		return
	}
	out := without(x.Shape, axis)
	if keep {
		out = with(x.Shape, axis, 1)
	}
	c.result(0, c.indexType("output_dtype"), out)
}

// indexType is the element type of computed indices: int32 when the argument
// is absent.
func (c *call) indexType(name string) tensor.DType {
	if !c.has(name) {
		return tensor.Int32
	}
	s, ok := c.value(name).Str()
	if !ok {
		return anything
	}
	d, _ := tensor.ParseDType(s)
	return d
}

// alongAxis ops keep the type; their axis must exist.
func alongAxis(c *call) {
	x, ok := c.in("x")
	if !ok || !c.results(1) {
		return
	}
	def := -1
	if c.op.Type == "cumsum" {
		def = 0
	}
	if len(x.Shape) > 0 {
		c.axis("axis", def, len(x.Shape))
	}
	c.result(0, x.DType, x.Shape)
}

func argsort(c *call) {
	x, ok := c.in("x")
	if ok && c.results(1) {
		c.result(0, tensor.Int32, x.Shape)
	}
}

// topk gives values and, unless return_indices is false, indices.
func topk(c *call) {
	x, ok := c.in("x")
	if !ok || len(x.Shape) == 0 {
		return
	}
	axis, ok := c.axis("axis", -1, len(x.Shape))
	if !ok {
		return
	}
	k, known := c.intOr("k", -1)
	switch {
	case !known, !c.has("k"): // the default differs between opsets and writers
		k = unknown
	case k < 0:
		k = x.Shape[axis]
	}
	if k > 0 && x.Shape[axis] >= 0 && k > x.Shape[axis] {
		c.problem(Argument, c.at("k"), k, x.Shape[axis], "k is %d, axis %d has %d", k, axis, x.Shape[axis])
		return
	}
	c.result(0, x.DType, with(x.Shape, axis, k))
	c.result(1, c.indexType("output_indices_dtype"), with(x.Shape, axis, k))
}

// layerNorm: gamma and beta have the dimensions of the normalised axes.
func layerNorm(c *call) {
	x, ok := c.in("x")
	if !ok || !c.results(1) {
		return
	}
	if axes, known := c.ints("axes"); known {
		want := make([]int, 0, len(axes))
		for _, a := range axes {
			k, ok := c.wrap("axes", a, len(x.Shape))
			if !ok {
				return
			}
			want = append(want, x.Shape[k])
		}
		for _, name := range []string{"gamma", "beta"} {
			if t, ok := c.in(name); ok {
				c.fit(name, t, want, "the normalised axes")
			}
		}
	}
	c.result(0, x.DType, x.Shape)
}

// batchNorm: one value for each channel.
func batchNorm(c *call) {
	x, ok := c.in("x")
	if !ok || len(x.Shape) < 2 || !c.results(1) {
		return
	}
	for _, name := range []string{"mean", "variance", "gamma", "beta"} {
		if t, ok := c.in(name); ok {
			c.fit(name, t, []int{x.Shape[1]}, "one for each channel")
		}
	}
	c.result(0, x.DType, x.Shape)
}
