package cpu

import (
	"fmt"
	"slices"

	"github.com/anepkg/anepkg/coreml/tensor"
)

var spaceOps = []opDef{
	{name: "depth_to_space", since: 15, types: "every type", exact: true, build: buildBlocks("block_size", depthToSpace),
		doc: "[N, C*b*b, H, W] to [N, C, H*b, W*b]; the block's row and column are the outer part of the channel"},
	{name: "space_to_depth", since: 15, types: "every type", exact: true, build: buildBlocks("block_size", spaceToDepth),
		doc: "[N, C, H*b, W*b] to [N, C*b*b, H, W]; the block's row and column are the outer part of the channel"},
	{name: "pixel_shuffle", since: 15, types: "every type", exact: true, build: buildBlocks("upscale_factor", pixelShuffle),
		doc: "[N, C*b*b, H, W] to [N, C, H*b, W*b]; the block's row and column are the inner part of the channel"},
	{name: "pixel_unshuffle", since: 16, types: "every type", exact: true, build: buildBlocks("downscale_factor", pixelUnshuffle),
		doc: "[N, C, H*b, W*b] to [N, C*b*b, H, W]; the block's row and column are the inner part of the channel"},
	{name: "space_to_batch", since: 15, types: "fp16 fp32", exact: true, build: buildSpaceToBatch,
		doc: "x [N, C, H, W], padded with zeros by paddings, cut into blocks of block_shape that go to the batch dimension"},
	{name: "batch_to_space", since: 15, types: "fp16 fp32", exact: true, build: buildBatchToSpace,
		doc: "the inverse of space_to_batch, with crops cut off"},
	{name: "sliding_windows", since: 15, types: "every type", exact: true, build: buildSlidingWindows,
		doc: "every window of size elements along axis, stride apart: the axis becomes [windows, size]"},
	{name: "flatten2d", since: 15, types: "every type", exact: true, build: buildFlatten2D,
		doc: "two dimensions: those before axis together, and the others"},
	{name: "pad", since: 15, types: "fp16 fp32 int32", exact: true, build: buildPad,
		doc: "the last dimensions of x enlarged by pairs (before, after) of pad: constant_val, reflect (without the edge) or replicate"},
}

// rearrange says how a block op walks x: dims of the result's memory and the
// strides of x for them, and the result's shape.
type rearrange struct{ dims, strides, shape []int }

func buildBlocks(arg string, plan func(s []int, b int) (rearrange, bool)) func(*builder) kernel {
	return func(b *builder) kernel {
		x := b.input("x")
		b.need(arg)
		size := b.intConst(arg, 1)
		if size < 1 {
			b.failf("%s is %d, want 1 or more", arg, size)
		}
		b.results(1)
		return func(c *call) error {
			v := c.in[x]
			if v.rank() != 4 {
				return fmt.Errorf("x has shape %s, want rank 4", tensor.ShapeString(v.shape))
			}
			r, ok := plan(v.shape, size)
			if !ok {
				return fmt.Errorf("x has shape %s, which blocks of %d do not divide", tensor.ShapeString(v.shape), size)
			}
			c.strided(v, 0, r.dims, r.strides)
			c.out[0].shape = r.shape
			return nil
		}
	}
}

func depthToSpace(s []int, b int) (rearrange, bool) {
	n, c, h, w := s[0], s[1]/(b*b), s[2], s[3]
	p := h * w
	return rearrange{[]int{n, c, h, b, w, b}, []int{s[1] * p, p, w, b * c * p, 1, c * p}, []int{n, c, h * b, w * b}}, s[1]%(b*b) == 0
}

func pixelShuffle(s []int, b int) (rearrange, bool) {
	n, c, h, w := s[0], s[1]/(b*b), s[2], s[3]
	p := h * w
	return rearrange{[]int{n, c, h, b, w, b}, []int{s[1] * p, b * b * p, w, b * p, 1, p}, []int{n, c, h * b, w * b}}, s[1]%(b*b) == 0
}

func spaceToDepth(s []int, b int) (rearrange, bool) {
	n, c, h, w := s[0], s[1], s[2]/b, s[3]/b
	p := s[2] * s[3]
	return rearrange{[]int{n, b, b, c, h, w}, []int{c * p, s[3], 1, p, b * s[3], b}, []int{n, c * b * b, h, w}}, s[2]%b == 0 && s[3]%b == 0
}

func pixelUnshuffle(s []int, b int) (rearrange, bool) {
	n, c, h, w := s[0], s[1], s[2]/b, s[3]/b
	p := s[2] * s[3]
	return rearrange{[]int{n, c, b, b, h, w}, []int{c * p, p, s[3], 1, b * s[3], b}, []int{n, c * b * b, h, w}}, s[2]%b == 0 && s[3]%b == 0
}

// blockArgs reads block_shape and the pairs of paddings or crops.
func (b *builder) blockArgs(pairs string) (block, edges []int) {
	block, _ = b.intsConst("block_shape")
	e := b.need(pairs)
	if b.err != nil {
		return []int{1, 1}, make([]int, 4)
	}
	edges = toInts(e.whole())
	if len(block) != 2 || len(edges) != 4 || block[0] < 1 || block[1] < 1 || slices.Min(edges) < 0 {
		b.failf("block_shape is %v and %s %v, want two sizes and two pairs", block, pairs, edges)
		return []int{1, 1}, make([]int, 4)
	}
	return block, edges
}

func buildSpaceToBatch(b *builder) kernel {
	x := b.input("x")
	block, edges := b.blockArgs("paddings")
	b.results(1)
	return func(c *call) error {
		v := c.in[x]
		if v.rank() != 4 || !v.isFloat() {
			return fmt.Errorf("x is %s %s, want floats of rank 4", v.dtype, tensor.ShapeString(v.shape))
		}
		s := slices.Clone(v.shape)
		s[2], s[3] = s[2]+edges[0]+edges[1], s[3]+edges[2]+edges[3]
		if s[2]%block[0] != 0 || s[3]%block[1] != 0 {
			return fmt.Errorf("x has shape %s with padding, which blocks of %v do not divide", tensor.ShapeString(s), block)
		}
		wide := c.scratch(bounded(s))
		padInto(c.m, wide, c.f32(x), v.shape, s, []int{0, 0, edges[0], edges[2]}, constantEdge, 0)
		h, w := s[2]/block[0], s[3]/block[1]
		dst := c.newFloat(0, []int{block[0] * block[1] * s[0], s[1], h, w})
		p := s[2] * s[3]
		copyStrided(c, &c.copyF, dst, wide, 0, []int{block[0], block[1], s[0], s[1], h, w}, []int{s[3], 1, s[1] * p, p, block[0] * s[3], block[1]})
		return nil
	}
}

func buildBatchToSpace(b *builder) kernel {
	x := b.input("x")
	block, edges := b.blockArgs("crops")
	b.results(1)
	return func(c *call) error {
		v := c.in[x]
		nb := block[0] * block[1]
		if v.rank() != 4 || !v.isFloat() || v.shape[0]%nb != 0 {
			return fmt.Errorf("x is %s %s, want floats of rank 4 and a batch that blocks of %v divide", v.dtype, tensor.ShapeString(v.shape), block)
		}
		n, ch, h, w := v.shape[0]/nb, v.shape[1], v.shape[2], v.shape[3]
		full := []int{n, ch, h * block[0], w * block[1]}
		wide := c.scratch(bounded(full))
		p := h * w
		copyStrided(c, &c.copyF, wide, c.f32(x), 0, []int{n, ch, h, block[0], w, block[1]}, []int{ch * p, p, w, block[1] * n * ch * p, 1, n * ch * p})
		size := []int{n, ch, full[2] - edges[0] - edges[1], full[3] - edges[2] - edges[3]}
		if size[2] < 0 || size[3] < 0 {
			return fmt.Errorf("crops %v are larger than %s", edges, tensor.ShapeString(full))
		}
		copyStrided(c, &c.copyF, c.newFloat(0, size), wide, edges[0]*full[3]+edges[2], size, rowMajor(full))
		return nil
	}
}

func buildSlidingWindows(b *builder) kernel {
	x := b.input("x")
	axis, size, stride := b.intConst("axis", 0), b.intConst("size", 0), b.intConst("stride", 1)
	if size < 1 || stride < 1 {
		b.failf("size is %d and stride %d, want numbers above 0", size, stride)
	}
	b.results(1)
	return func(c *call) error {
		v := c.in[x]
		a, err := axisOf(axis, v.rank())
		if err != nil {
			return err
		}
		if v.shape[a] < size {
			return fmt.Errorf("x has %d elements along axis %d, a window %d", v.shape[a], a, size)
		}
		st := rowMajor(v.shape)
		shape := slices.Concat(v.shape[:a], []int{(v.shape[a]-size)/stride + 1, size}, v.shape[a+1:])
		steps := slices.Concat(st[:a], []int{st[a] * stride, st[a]}, st[a+1:])
		bounded(shape)
		c.strided(v, 0, shape, steps)
		return nil
	}
}

func buildFlatten2D(b *builder) kernel {
	x := b.input("x")
	axis := b.intConst("axis", 1)
	b.results(1)
	return func(c *call) error {
		v := c.in[x]
		a := axis
		if a < 0 {
			a += v.rank()
		}
		if a < 0 || a > v.rank() {
			return fmt.Errorf("axis %d is out of range for rank %d", axis, v.rank())
		}
		c.alias(0, v, 0, []int{product(v.shape[:a]), product(v.shape[a:])})
		return nil
	}
}
