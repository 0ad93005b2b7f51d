package cpu

import (
	"fmt"
	"math"
	"slices"

	"github.com/anepkg/anepkg/coreml/tensor"
)

var resizeOps = []opDef{
	{name: "upsample_nearest_neighbor", since: 15, types: "fp16 fp32", exact: true, build: buildUpsampleNearest,
		doc: "x [..., H, W] enlarged by two factors; element i of the result is element floor(i*in/out)"},
	{name: "resize_nearest_neighbor", since: 15, types: "fp16 fp32", exact: true, build: buildResizeNearest,
		doc: "x [..., H, W] to a target size; element i of the result is element floor(i*in/out)"},
	{name: "upsample_bilinear", since: 15, types: "fp16 fp32", build: buildUpsampleBilinear,
		doc: "x [..., H, W] enlarged by two factors, linear between neighbours; align_corners or pixel centres"},
	{name: "resize_bilinear", since: 15, types: "fp16 fp32", build: buildResizeBilinear,
		doc: "x [..., H, W] to a target size, linear between neighbours; five sampling modes"},
	{name: "resize", since: 17, types: "fp16 fp32 int32", build: buildResize,
		doc:   "the last resized_dims dimensions of x to shape (0 keeps one), LINEAR or NEAREST_NEIGHBOR",
		limit: "one or two dimensions; int32 only NEAREST_NEIGHBOR"},
}

// grid returns the positions in an axis of n elements that the out elements
// of a result are taken from.
type grid func(n, out int) []float64

// linearGrid makes positions start + i*step, kept inside the axis.
func linearGrid(n, out int, start, step float64) []float64 {
	g := make([]float64, out)
	for i := range g {
		g[i] = min(float64(n-1), max(0, start+float64(i)*step))
	}
	return g
}

// samplingGrids are the sampling modes of coremltools' documentation.
var samplingGrids = map[string]grid{
	"STRICT_ALIGN_CORNERS": func(n, out int) []float64 {
		return linearGrid(n, out, 0, float64(n-1)/float64(max(1, out-1)))
	},
	"ALIGN_CORNERS": func(n, out int) []float64 {
		if out == 1 {
			return linearGrid(n, 1, float64(n-1)/2, 0)
		}
		return linearGrid(n, out, 0, float64(n-1)/float64(out-1))
	},
	"DEFAULT": func(n, out int) []float64 {
		return linearGrid(n, out, 0, (float64(n)-float64(n)/float64(out))/float64(max(1, out-1)))
	},
	"OFFSET_CORNERS": func(n, out int) []float64 {
		d := float64(max(1, n-1)) / float64(out)
		return linearGrid(n, out, d/2, d)
	},
	"UNALIGN_CORNERS": func(n, out int) []float64 {
		d := float64(n) / float64(out)
		return linearGrid(n, out, d/2-0.5, d)
	},
}

func nearestGrid(n, out int) []float64 {
	g := make([]float64, out)
	for i := range g {
		g[i] = float64(min(n-1, i*n/out))
	}
	return g
}

// resizePlanes makes result 0, [..., th, tw], from x [..., H, W].
func (c *call) resizePlanes(x slot, th, tw int, mode grid) error {
	v := c.in[x]
	if err := wantFloat("x", v); err != nil {
		return err
	}
	h, w, err := planes(v)
	if err != nil {
		return err
	}
	dst := c.newFloat(0, planeShape(v, th, tw))
	if len(dst) == 0 {
		return nil
	}
	gh, gw := mode(h, th), mode(w, tw)
	src := c.f32(x)
	plane := th * tw
	c.each(len(dst)/plane, max(1, parallelGrain/plane), func(lo, hi int) {
		for p := lo; p < hi; p++ {
			bilinearPlane(dst[p*plane:(p+1)*plane], src[p*h*w:(p+1)*h*w], w, gh, gw)
		}
	})
	return nil
}

// nearestInts is resizePlanes for integers, which are picked and never mixed.
func (c *call) nearestInts(x slot, th, tw int) error {
	v := c.in[x]
	h, w, err := planes(v)
	if err != nil {
		return err
	}
	src, dst := c.ints(x), c.newInt(0, planeShape(v, th, tw))
	for k := range dst {
		p, i, j := k/(th*tw), k/tw%th, k%tw
		dst[k] = src[(p*h+min(h-1, i*h/th))*w+min(w-1, j*w/tw)]
	}
	return nil
}

// planeShape is the shape of v with planes of another size. One that is too
// large ends the op.
func planeShape(v *value, th, tw int) []int {
	shape := slices.Clone(v.shape)
	shape[v.rank()-2], shape[v.rank()-1] = th, tw
	bounded(shape)
	bounded([]int{th, tw}) // even when other dimensions are empty
	return shape
}

// bilinearPlane samples one plane of w columns at rows gh and columns gw.
func bilinearPlane(dst, src []float32, w int, gh, gw []float64) {
	h := len(src) / w
	for i, y := range gh {
		y0 := int(y)
		y1 := min(y0+1, h-1)
		fy := y - float64(y0)
		for j, x := range gw {
			x0 := int(x)
			x1 := min(x0+1, w-1)
			fx := x - float64(x0)
			top := mix(src[y0*w+x0], src[y0*w+x1], fx)
			if fy == 0 {
				dst[i*len(gw)+j] = float32(top)
				continue
			}
			bottom := mix(src[y1*w+x0], src[y1*w+x1], fx)
			dst[i*len(gw)+j] = float32(top*(1-fy) + bottom*fy)
		}
	}
}

func mix(a, b float32, f float64) float64 {
	if f == 0 {
		return float64(a)
	}
	return float64(a)*(1-f) + float64(b)*f
}

// planes checks that x has two spatial dimensions with something in them.
func planes(v *value) (h, w int, err error) {
	if v.rank() < 2 {
		return 0, 0, errRank("x", v, 2)
	}
	h, w = v.shape[v.rank()-2], v.shape[v.rank()-1]
	if h < 1 || w < 1 {
		return 0, 0, fmt.Errorf("x has shape %s, which has no elements", tensor.ShapeString(v.shape))
	}
	return h, w, nil
}

// factors reads scale_factor_height and scale_factor_width.
func (b *builder) factors() (fh, fw float64) {
	fh, fw = b.floatConst("scale_factor_height", 1), b.floatConst("scale_factor_width", 1)
	if !(fh > 0 && fw > 0 && fh < maxElements && fw < maxElements) {
		b.failf("scale factors are %g and %g, want numbers above 0", fh, fw)
		return 1, 1
	}
	return fh, fw
}

// scaled is the length of an axis of n elements times a factor.
func scaled(n int, factor float64) int { return max(1, int(math.Floor(float64(n)*factor))) }

func buildUpsampleNearest(b *builder) kernel {
	x := b.input("x")
	fh, fw := b.factors()
	b.results(1)
	return func(c *call) error {
		h, w, err := planes(c.in[x])
		if err != nil {
			return err
		}
		return c.resizePlanes(x, scaled(h, fh), scaled(w, fw), nearestGrid)
	}
}

// targets reads a target size.
func (b *builder) targets() (h, w int) {
	h, w = b.intConst("target_size_height", 1), b.intConst("target_size_width", 1)
	if h < 1 || w < 1 || h > maxElements || w > maxElements {
		b.failf("target size is %d by %d, want numbers above 0", h, w)
		return 1, 1
	}
	return h, w
}

func buildResizeNearest(b *builder) kernel {
	x := b.input("x")
	th, tw := b.targets()
	b.results(1)
	return func(c *call) error { return c.resizePlanes(x, th, tw, nearestGrid) }
}

func buildUpsampleBilinear(b *builder) kernel {
	x := b.input("x")
	fh, fw := b.factors()
	aligned := b.boolConst("align_corners", true)
	centres := b.boolConst("half_pixel_centers", !aligned)
	b.results(1)
	if aligned && centres {
		b.failf("align_corners and half_pixel_centers exclude each other")
	}
	mode := samplingGrids["DEFAULT"]
	switch {
	case aligned:
		mode = samplingGrids["STRICT_ALIGN_CORNERS"]
	case centres:
		mode = samplingGrids["UNALIGN_CORNERS"]
	}
	return func(c *call) error {
		h, w, err := planes(c.in[x])
		if err != nil {
			return err
		}
		return c.resizePlanes(x, scaled(h, fh), scaled(w, fw), mode)
	}
}

// sampling reads sampling_mode.
func (b *builder) sampling() grid {
	name := b.strConst("sampling_mode", "DEFAULT")
	g := samplingGrids[name]
	if g == nil {
		b.failf("sampling_mode is %q, want DEFAULT, ALIGN_CORNERS, STRICT_ALIGN_CORNERS, OFFSET_CORNERS or UNALIGN_CORNERS", name)
	}
	return g
}

func buildResizeBilinear(b *builder) kernel {
	x := b.input("x")
	th, tw := b.targets()
	mode := b.sampling()
	b.results(1)
	return func(c *call) error { return c.resizePlanes(x, th, tw, mode) }
}

func buildResize(b *builder) kernel {
	x, shape := b.input("x"), b.input("shape")
	n := b.intConst("resized_dims", 0)
	mode, nearest := b.sampling(), false
	switch how := b.strConst("interpolation_mode", "LINEAR"); how {
	case "LINEAR":
	case "NEAREST_NEIGHBOR":
		mode, nearest = nearestGrid, true
	default:
		b.failf("interpolation_mode is %q, want LINEAR or NEAREST_NEIGHBOR", how)
	}
	if n < 1 || n > 2 {
		b.failf("resized_dims is %d, want 1 or 2", n)
	}
	b.results(1)
	return func(c *call) error {
		h, w, err := planes(c.in[x])
		if err != nil {
			return err
		}
		to := c.dims(shape)
		if len(to) < n || len(to) > c.in[x].rank() {
			return fmt.Errorf("shape is %v, want %d to %d sizes", to, n, c.in[x].rank())
		}
		size := []int{h, w}
		for i := range n {
			if t := to[len(to)-1-i]; t != 0 {
				size[1-i] = t
			}
		}
		if size[0] < 1 || size[1] < 1 {
			return fmt.Errorf("shape is %v, want sizes from 0 on", to)
		}
		if nearest && !c.in[x].isFloat() {
			return c.nearestInts(x, size[0], size[1])
		}
		return c.resizePlanes(x, size[0], size[1], mode)
	}
}
