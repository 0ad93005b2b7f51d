package cpu

import (
	"fmt"

	"github.com/anepkg/anepkg/coreml/tensor"
)

// scaledWeight is scale * (data - offset) with one scale and offset for each
// block of data.
type scaledWeight struct {
	data          weight // what is scaled: packed integers or another constant
	groups        *groups
	scale, offset []float32 // offset nil = 0
	half          bool      // round results to fp16
}

// newScaled makes a block-wise scaled constant; scale has the rank of data
// and each of its dimensions divides data's.
func newScaled(data *value, scale, offset *value, out tensor.DType) (*scaledWeight, error) {
	shape := scale.shape
	if scale.rank() == 0 { // one scale for everything
		shape = make([]int, data.rank())
		for i := range shape {
			shape[i] = 1
		}
	}
	g, err := newGroups(data.shape, shape)
	if err != nil {
		return nil, fmt.Errorf("scale: %w", err)
	}
	w := &scaledWeight{data: data.floatMatrix(), groups: g, scale: scale.wide(), half: out == tensor.FP16}
	if offset != nil {
		if offset.size() != scale.size() {
			return nil, fmt.Errorf("offset has shape %s, scale %s", tensor.ShapeString(offset.shape), tensor.ShapeString(scale.shape))
		}
		w.offset = offset.wide()
	}
	return w, nil
}

// floatMatrix views v, of any numeric type, as rows of floats.
func (v *value) floatMatrix() weight {
	if v.w == nil && v.f == nil && v.h == nil {
		rows, cols := matrixDims(v.shape)
		return dense{&value{dtype: tensor.FP32, shape: v.shape, f: v.wide()}, rows, cols}
	}
	return v.matrix()
}

func (w *scaledWeight) dims() (int, int) { return w.data.dims() }

func (w *scaledWeight) row(dst []float32, r int) {
	w.data.row(dst, r)
	base, start := w.groups.base(r), 0
	for _, s := range w.groups.segs {
		scale, off := w.scale[base+s.off], float32(0)
		if w.offset != nil {
			off = w.offset[base+s.off]
		}
		scaleRow(dst[start:s.end], scale, off)
		start = s.end
	}
	if w.half {
		roundHalf(dst)
	}
}

// castWeight rounds another constant to a type.
type castWeight struct {
	weight
	half bool
}

func (w castWeight) row(dst []float32, r int) {
	w.weight.row(dst, r)
	if w.half {
		roundHalf(dst)
	}
}
