package verify

import (
	"slices"

	"github.com/anepkg/anepkg/coreml/tensor"
)

var spatialOps = map[string]func(*call){
	"conv": conv, "max_pool": pool, "avg_pool": pool, "l2_pool": pool, "lstm": lstm,
	"space_to_depth": sameVolume, "depth_to_space": sameVolume, "pixel_shuffle": sameVolume, "pixel_unshuffle": sameVolume,
}

// window is a kernel that slides over the spatial dimensions.
type window struct {
	kernel, stride, dilation, pads []int
	padding                        string
}

// windowOf reads strides, pads and dilations; false when they are not known.
func (c *call) windowOf(kernel []int) (window, bool) {
	n := len(kernel)
	w := window{kernel: kernel, padding: "valid"}
	all := true
	list := func(name string, def, count int) []int {
		if !c.has(name) {
			return slices.Repeat([]int{def}, count)
		}
		vals, known := c.ints(name)
		if !known {
			all = false
			return nil
		}
		if len(vals) != count {
			c.problem(Argument, c.at(name), vals, count, "%s %v has %d entries, want %d", name, vals, len(vals), count)
			all = false
		}
		return vals
	}
	w.stride, w.dilation = list("strides", 1, n), list("dilations", 1, n)
	if c.has("pad_type") {
		s, ok := c.value("pad_type").Str()
		if !ok {
			return w, false
		}
		w.padding = s
	}
	switch w.padding {
	case "custom":
		w.pads = list("pad", 0, 2*n)
	case "valid", "same", "same_lower":
	default:
		c.problem(Argument, c.at("pad_type"), w.padding, "valid, same, same_lower or custom", "pad_type is %q", w.padding)
		return w, false
	}
	for i := range n {
		all = all && i < len(w.stride) && i < len(w.dilation) && w.stride[i] > 0 && w.dilation[i] > 0
	}
	return w, all
}

// out is the length that dimension i of d elements shrinks to.
func (w window) out(i, d int) int {
	if d < 0 || w.kernel[i] < 0 {
		return unknown
	}
	s := w.stride[i]
	switch w.padding {
	case "same", "same_lower":
		return (d + s - 1) / s
	case "custom":
		d += w.pads[2*i] + w.pads[2*i+1]
	}
	span := (w.kernel[i]-1)*w.dilation[i] + 1
	if d < span {
		return 0
	}
	return (d-span)/s + 1
}

// conv: x [n, in, ...], weight [out, in/groups, ...], bias [out].
func conv(c *call) {
	x, ok1 := c.in("x")
	w, ok2 := c.in("weight")
	groups, ok3 := c.intOr("groups", 1)
	if !ok1 || !ok2 || !ok3 || !c.results(1) {
		return
	}
	if len(x.Shape) < 3 || len(w.Shape) != len(x.Shape) {
		c.problem(Shape, c.at("weight"), w.Shape, x.Shape, "x has shape %s, weight %s: want equal ranks of 3 to 5", tensor.ShapeString(x.Shape), tensor.ShapeString(w.Shape))
		return
	}
	if groups < 1 || w.Shape[0] >= 0 && w.Shape[0]%groups != 0 {
		c.problem(Argument, c.at("groups"), groups, w.Shape[0], "%d output channels do not divide into %d groups", w.Shape[0], groups)
		return
	}
	if differ(times(w.Shape[1], groups), x.Shape[1]) {
		c.problem(Shape, c.at("weight"), w.Shape, x.Shape, "x has %d channels, weight %s in %d groups takes %d", x.Shape[1], tensor.ShapeString(w.Shape), groups, times(w.Shape[1], groups))
	}
	if b, ok := c.in("bias"); ok && len(b.Shape) > 0 {
		c.fit("bias", b, []int{w.Shape[0]}, "one for each output channel")
	}
	out := append([]int{x.Shape[0], w.Shape[0]}, unknowns(len(x.Shape)-2)...)
	if win, known := c.windowOf(w.Shape[2:]); known {
		for i, d := range x.Shape[2:] {
			out[i+2] = win.out(i, d)
		}
	}
	c.result(0, x.DType, out)
}

func pool(c *call) {
	x, ok := c.in("x")
	kernel, known := c.ints("kernel_sizes")
	if !ok || !known || !c.results(1) {
		return
	}
	if len(kernel) != len(x.Shape)-2 {
		c.problem(Argument, c.at("kernel_sizes"), kernel, len(x.Shape)-2, "kernel_sizes %v do not fit x %s", kernel, tensor.ShapeString(x.Shape))
		return
	}
	out := append([]int{x.Shape[0], x.Shape[1]}, unknowns(len(kernel))...)
	ceil, sure := c.flag("ceil_mode")
	if win, known := c.windowOf(kernel); known && sure && !ceil {
		for i, d := range x.Shape[2:] {
			out[i+2] = win.out(i, d)
		}
	}
	c.result(0, x.DType, out)
}

// sameVolume ops move elements between channels and space.
func sameVolume(c *call) {
	x, ok := c.in("x")
	if ok && c.results(1) {
		c.result(0, x.DType, unknowns(len(x.Shape)))
		c.sameCount(x.Shape, c.op.Outputs[0].Type.Shape)
	}
}

// lstm: x [s, b, in]; results [s or 1, b, D*H], [b, D*H], [b, D*H].
func lstm(c *call) {
	x, ok1 := c.in("x")
	h, ok2 := c.in("initial_h")
	whole, ok3 := c.flag("output_sequence")
	if !ok1 || !ok2 || !ok3 || len(x.Shape) != 3 || len(h.Shape) != 2 || !c.results(3) {
		return
	}
	c.fit("initial_h", h, []int{x.Shape[1], unknown}, "the batch of x")
	if cell, ok := c.in("initial_c"); ok {
		c.fit("initial_c", cell, h.Shape, "as initial_h")
	}
	if w, ok := c.in("weight_ih"); ok && len(w.Shape) == 2 && differ(w.Shape[1], x.Shape[2]) {
		c.problem(Shape, c.at("weight_ih"), w.Shape, x.Shape, "weight_ih takes %d features, x has %d", w.Shape[1], x.Shape[2])
	}
	steps := 1
	if whole {
		steps = x.Shape[0]
	}
	c.result(0, x.DType, []int{steps, h.Shape[0], h.Shape[1]})
	c.result(1, x.DType, h.Shape)
	c.result(2, x.DType, h.Shape)
}
