package cpu

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/anepkg/anepkg/coreml/tensor"
)

var sampleOps = []opDef{
	{name: "crop", since: 15, types: "every type", exact: true, build: buildCrop,
		doc: "x [..., H, W] without crop_height = [top, bottom] rows and crop_width = [left, right] columns"},
	{name: "crop_resize", since: 15, types: "fp16 fp32", build: buildCropResize,
		doc: "boxes of x [B, C, H, W], each resized to a target size: [N, C, h, w]; before ios17 [N, B, C, h, w] of every image, or [N, 1, C, h, w] when a box names its image"},
	{name: "resample", since: 15, types: "fp16 fp32", build: buildResample,
		doc: "x [N, C, H, W] sampled at coordinates [N, h, w, 2], each (column, row)"},
	{name: "affine", since: 15, types: "fp16 fp32", build: buildAffineSample,
		doc: "x [N, C, H, W] sampled on a grid that transform_matrix [N or 1, 6] moves"},
}

func buildCrop(b *builder) kernel {
	x := b.input("x")
	ch, _ := b.intsConst("crop_height")
	cw, _ := b.intsConst("crop_width")
	if len(ch) != 2 || len(cw) != 2 || slices.Min(slices.Concat(ch, cw, []int{0})) < 0 {
		b.failf("crop_height is %v and crop_width %v, want two numbers each", ch, cw)
		ch, cw = []int{0, 0}, []int{0, 0}
	}
	b.results(1)
	return func(c *call) error {
		v := c.in[x]
		if v.rank() < 2 {
			return errRank("x", v, 2)
		}
		begin, size := make([]int, v.rank()), slices.Clone(v.shape)
		for i, e := range [][]int{ch, cw} {
			d := v.rank() - 2 + i
			begin[d], size[d] = e[0], size[d]-e[0]-e[1]
			if size[d] < 0 {
				return fmt.Errorf("crops %v and %v are larger than x of shape %s", ch, cw, tensor.ShapeString(v.shape))
			}
		}
		c.slice(0, v, begin, size, nil)
		return nil
	}
}

// boxes are the constant arguments of crop_resize.
type boxes struct {
	h, w       int
	normalized bool
	scale      float64
	coords     string
	pad        float32
	mode       string
}

func buildCropResize(b *builder) kernel {
	x := b.input("x")
	old := len(b.op.Operand("roi")) > 0
	var rois, index slot
	if old {
		rois, index = b.input("roi"), absent
	} else {
		rois, index = b.input("boxes"), b.optional("box_indices")
	}
	p := boxes{h: b.intConst("target_height", 1), w: b.intConst("target_width", 1), normalized: b.boolConst("normalized_coordinates", false),
		scale: b.floatConst("spatial_scale", 1), coords: b.strConst("box_coordinate_mode", "CORNERS_HEIGHT_FIRST"),
		pad: float32(b.floatConst("pad_value", 0)), mode: b.strConst("sampling_mode", "DEFAULT")}
	if p.h < 1 || p.w < 1 || p.h > maxElements || p.w > maxElements {
		b.failf("target size is %d by %d, want numbers above 0", p.h, p.w)
	}
	if _, ok := samplingGrids[p.mode]; !ok {
		b.failf("sampling_mode is %q", p.mode)
	}
	if _, ok := boxOrder[strings.TrimSuffix(strings.TrimSuffix(p.coords, "_HEIGHT_FIRST"), "_WIDTH_FIRST")]; !ok {
		b.failf("box_coordinate_mode is %q, want CORNERS or CENTER_SIZE, HEIGHT_FIRST or WIDTH_FIRST", p.coords)
	}
	b.results(1)
	return func(c *call) error {
		v, rv := c.in[x], c.in[rois]
		if v.rank() != 4 || product(v.shape[2:]) == 0 {
			return fmt.Errorf("x has shape %s, want rank 4", tensor.ShapeString(v.shape))
		}
		rows, which, err := readBoxes(rv, c.get(index), v.shape[0], old)
		if err != nil {
			return err
		}
		ch, h, w := v.shape[1], v.shape[2], v.shape[3]
		shape := []int{len(rows), ch, p.h, p.w}
		if old {
			shape = []int{rv.shape[0], len(rows) / rv.shape[0], ch, p.h, p.w}
		}
		bounded([]int{p.h, p.w}) // even when x has no channels
		src, dst := c.f32(x), c.newFloat(0, shape)
		plane := p.h * p.w
		for i, box := range rows {
			gh, gw := p.grids(box, h, w)
			for k := range ch {
				p.sample(dst[(i*ch+k)*plane:(i*ch+k+1)*plane], src[(which[i]*ch+k)*h*w:(which[i]*ch+k+1)*h*w], w, gh, gw)
			}
		}
		return nil
	}
}

// boxOrder names the two ways to give a box.
var boxOrder = map[string]bool{"CORNERS": true, "CENTER_SIZE": true}

// readBoxes returns four coordinates and the image of each crop. Before ios17
// boxes are [N, 1, 4, 1, 1], each cropped from every image in turn, or
// [N, 1, 5, 1, 1] with the image first; since then [N, 4].
func readBoxes(rv, index *value, batch int, old bool) (rows [][4]float64, which []int, err error) {
	if rv.rank() == 0 || rv.shape[0] == 0 {
		return nil, nil, fmt.Errorf("boxes have shape %s", tensor.ShapeString(rv.shape))
	}
	n := rv.shape[0]
	each := rv.size() / n
	if each != 4 && (each != 5 || !old) {
		return nil, nil, fmt.Errorf("boxes have shape %s, want four coordinates each", tensor.ShapeString(rv.shape))
	}
	if index != nil && index.size() != n {
		return nil, nil, errCount("box_indices", index, n)
	}
	bounded([]int{n, max(1, batch)})
	for i := range n {
		at, first, last := i*each, i, i
		switch {
		case each == 5:
			first = int(rv.num(at))
			last = first
			at++
		case old:
			first, last = 0, batch-1
		case index != nil:
			first = int(index.num(i))
			last = first
		}
		if first < 0 || last >= batch {
			return nil, nil, fmt.Errorf("box %d is in image %d, x has %d", i, first, batch)
		}
		for b := first; b <= last; b++ {
			which = append(which, b)
			rows = append(rows, [4]float64{rv.num(at), rv.num(at + 1), rv.num(at + 2), rv.num(at + 3)})
		}
	}
	return rows, which, nil
}

// grids returns the rows and columns at which a box of an h by w image is
// sampled.
func (p boxes) grids(box [4]float64, h, w int) (gh, gw []float64) {
	if strings.HasSuffix(p.coords, "_WIDTH_FIRST") {
		box[0], box[1], box[2], box[3] = box[1], box[0], box[3], box[2]
	}
	if strings.HasPrefix(p.coords, "CENTER_SIZE") {
		box = [4]float64{box[0] - box[2]/2, box[1] - box[3]/2, box[0] + box[2]/2, box[1] + box[3]/2}
	}
	for i, n := range []int{h, w, h, w} {
		if p.normalized {
			box[i] *= float64(n - 1)
		}
		box[i] *= p.scale
	}
	return p.line(box[0], box[2], p.h), p.line(box[1], box[3], p.w)
}

// line spreads out positions between two ends as the sampling mode says.
func (p boxes) line(from, to float64, out int) []float64 {
	g := make([]float64, out)
	span := to - from
	for i := range g {
		x := float64(i)
		switch p.mode {
		case "STRICT_ALIGN_CORNERS":
			g[i] = from + x*span/float64(max(1, out-1))
		case "ALIGN_CORNERS":
			g[i] = (from + to) / 2
			if out > 1 {
				g[i] = from + x*span/float64(out-1)
			}
		case "DEFAULT":
			n := span + 1
			g[i] = from + x*(n-n/float64(out))/float64(max(1, out-1))
		case "OFFSET_CORNERS":
			d := max(1, span) / float64(out)
			g[i] = from + d/2 + x*d
		case "UNALIGN_CORNERS":
			d := (span + 1) / float64(out)
			g[i] = from + x*d + d/2 - 0.5
		}
	}
	return g
}

// sample is bilinearPlane with a value for positions outside the image.
func (p boxes) sample(dst, src []float32, w int, gh, gw []float64) {
	h := len(src) / w
	for i, y := range gh {
		for j, x := range gw {
			at := i*len(gw) + j
			if !(y >= 0 && y <= float64(h-1) && x >= 0 && x <= float64(w-1)) {
				dst[at] = p.pad
				continue
			}
			bilinearPlane(dst[at:at+1], src, w, []float64{y}, []float64{x})
		}
	}
}

// sampler are the constant arguments of resample and affine.
type sampler struct {
	nearest, aligned bool
	padding, coords  string
	pad              float32
}

func (b *builder) sampler() sampler {
	s := sampler{aligned: b.boolConst("align_corners", true), padding: b.strConst("padding_mode", "constant"),
		coords: b.strConst("coordinates_mode", "normalized_minus_one_to_one"), pad: float32(b.floatConst("padding_value", 0))}
	switch m := b.strConst("sampling_mode", "bilinear"); m {
	case "bilinear":
	case "nearest":
		s.nearest = true
	default:
		b.failf("sampling_mode is %q, want bilinear or nearest", m)
	}
	if !slices.Contains([]string{"constant", "border", "reflection", "symmetric"}, s.padding) {
		b.failf("padding_mode is %q, want constant, border, reflection or symmetric", s.padding)
	}
	if !slices.Contains([]string{"unnormalized", "normalized_minus_one_to_one", "normalized_zero_to_one"}, s.coords) {
		b.failf("coordinates_mode is %q", s.coords)
	}
	return s
}

// pixel turns a coordinate into a position on an axis of n elements.
func (s sampler) pixel(v float64, n int) float64 {
	switch s.coords {
	case "unnormalized":
		return v
	case "normalized_zero_to_one":
		v = 2*v - 1
	}
	if s.aligned {
		return (v + 1) / 2 * float64(n-1)
	}
	return ((v+1)*float64(n) - 1) / 2
}

// coordinate is the inverse of pixel: where element i of n lies.
func (s sampler) coordinate(i, n int) float64 {
	if s.coords == "unnormalized" {
		return float64(i)
	}
	v := 0.0
	switch {
	case !s.aligned:
		v = (2*float64(i)+1)/float64(n) - 1
	case n > 1:
		v = 2*float64(i)/float64(n-1) - 1
	}
	if s.coords == "normalized_zero_to_one" {
		return (v + 1) / 2
	}
	return v
}

// inside brings a position outside the axis back, as the padding mode says.
func (s sampler) inside(x float64, n int) float64 {
	last := float64(n - 1)
	switch s.padding {
	case "border":
		x = min(max(x, 0), last)
	case "reflection":
		x = mirror(x, 0, last)
	case "symmetric":
		x = min(max(mirror(x, -0.5, last+0.5), 0), last)
	}
	if math.IsNaN(x) {
		return 0
	}
	return x
}

// mirror folds x into [lo, hi].
func mirror(x, lo, hi float64) float64 {
	span := hi - lo
	if span <= 0 {
		return lo
	}
	x = math.Mod(math.Abs(x-lo), 2*span)
	if x > span {
		x = 2*span - x
	}
	return x + lo
}

// at samples one plane at a position.
func (s sampler) at(src []float32, h, w int, y, x float64) float32 {
	y, x = s.inside(y, h), s.inside(x, w)
	tap := func(i, j float64) float64 {
		if !(i >= 0 && i < float64(h) && j >= 0 && j < float64(w)) {
			return float64(s.pad)
		}
		return float64(src[int(i)*w+int(j)])
	}
	if s.nearest {
		return float32(tap(math.RoundToEven(y), math.RoundToEven(x)))
	}
	y0, x0 := math.Floor(y), math.Floor(x)
	fy, fx := y-y0, x-x0
	sum := 0.0
	for _, t := range [4][3]float64{{0, 0, (1 - fy) * (1 - fx)}, {0, 1, (1 - fy) * fx}, {1, 0, fy * (1 - fx)}, {1, 1, fy * fx}} {
		if t[2] != 0 {
			sum += t[2] * tap(y0+t[0], x0+t[1])
		}
	}
	return float32(sum)
}

func buildResample(b *builder) kernel {
	x, coords := b.input("x"), b.input("coordinates")
	s := b.sampler()
	b.results(1)
	return func(c *call) error {
		v, cv := c.in[x], c.in[coords]
		if v.rank() != 4 || cv.rank() != 4 || cv.shape[0] != v.shape[0] || cv.shape[3] != 2 {
			return fmt.Errorf("x has shape %s, coordinates %s, want [N, C, H, W] and [N, h, w, 2]", tensor.ShapeString(v.shape), tensor.ShapeString(cv.shape))
		}
		c.sampleImages(x, cv.shape[1], cv.shape[2], s, func(n, k int) (float64, float64) {
			at := (n*cv.shape[1]*cv.shape[2] + k) * 2
			return s.pixel(cv.num(at+1), v.shape[2]), s.pixel(cv.num(at), v.shape[3])
		})
		return nil
	}
}

// sampleImages makes result 0, [N, C, h, w]; where gives the row and column
// in x of element k of image n.
func (c *call) sampleImages(x slot, h, w int, s sampler, where func(n, k int) (y, x float64)) {
	v := c.in[x]
	ch, ih, iw := v.shape[1], v.shape[2], v.shape[3]
	src, dst := c.f32(x), c.newFloat(0, []int{v.shape[0], ch, h, w})
	for n := range v.shape[0] {
		for k := range h * w {
			y, xx := where(n, k)
			for q := range ch {
				dst[(n*ch+q)*h*w+k] = s.at(src[(n*ch+q)*ih*iw:(n*ch+q+1)*ih*iw], ih, iw, y, xx)
			}
		}
	}
}

func buildAffineSample(b *builder) kernel {
	x, matrix := b.input("x"), b.input("transform_matrix")
	h, w := b.intConst("output_height", 1), b.intConst("output_width", 1)
	if h < 1 || w < 1 {
		b.failf("output size is %d by %d, want numbers above 0", h, w)
	}
	s := b.sampler()
	b.results(1)
	return func(c *call) error {
		v, m := c.in[x], c.in[matrix]
		if v.rank() != 4 || m.size() != 6 && m.size() != 6*v.shape[0] {
			return fmt.Errorf("x has shape %s, transform_matrix %s, want [N, C, H, W] and [N or 1, 6]", tensor.ShapeString(v.shape), tensor.ShapeString(m.shape))
		}
		c.sampleImages(x, h, w, s, func(n, k int) (float64, float64) {
			o := n * 6 % m.size()
			px, py := s.coordinate(k%w, w), s.coordinate(k/w, h)
			cx := m.num(o)*px + m.num(o+1)*py + m.num(o+2)
			cy := m.num(o+3)*px + m.num(o+4)*py + m.num(o+5)
			return s.pixel(cy, v.shape[2]), s.pixel(cx, v.shape[3])
		})
		return nil
	}
}
