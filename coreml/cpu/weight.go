package cpu

import (
	"fmt"

	"github.com/anepkg/anepkg/coreml/tensor"
)

// weight is a compressed constant seen as a matrix: dimension 0 is the rows,
// the others together the columns (a scalar or vector is one row). Kernels
// that multiply by it take rows one by one; nothing else expands it.
type weight interface {
	dims() (rows, cols int)
	// row writes row r, decompressed and rounded to the constant's element
	// type, to dst, which has cols elements. It may be called from several
	// goroutines at once.
	row(dst []float32, r int)
}

// matrixDims splits a shape the way weight.dims does.
func matrixDims(shape []int) (rows, cols int) {
	if len(shape) < 2 {
		return 1, product(shape)
	}
	return shape[0], product(shape[1:])
}

// packed is an integer constant of up to 8 bits as it lies in the file.
type packed struct {
	dtype tensor.DType
	shape []int
	data  []byte
}

func (p packed) dims() (int, int) { return matrixDims(p.shape) }

func (p packed) row(dst []float32, r int) {
	unpackRow(dst, p.data, p.dtype, r*len(dst))
}

// unpackRow widens len(dst) integers from element first of a packed stream.
func unpackRow(dst []float32, data []byte, d tensor.DType, first int) {
	switch d {
	case tensor.Int8:
		cvtInt8(dst, data[first:first+len(dst)])
	case tensor.UInt8, tensor.Bool:
		cvtUint8(dst, data[first:first+len(dst)])
	case tensor.Int4, tensor.UInt4:
		bias := int32(0)
		if d == tensor.Int4 {
			bias = 8 // (x ^ 8) - 8 extends the sign
		}
		k := 0
		if first&1 == 1 && len(dst) > 0 {
			dst[0] = float32(subByte(d, data, first))
			k = 1
		}
		src := data[(first+k)>>1:]
		for ; k+1 < len(dst); k += 2 {
			x := int32(src[0])
			src = src[1:]
			dst[k] = float32(x&15 ^ bias - bias)
			dst[k+1] = float32(x>>4 ^ bias - bias)
		}
		if k < len(dst) {
			dst[k] = float32(subByte(d, data, first+k))
		}
	default:
		for k := range dst {
			dst[k] = float32(subByte(d, data, first+k))
		}
	}
}

// stream returns an integer constant of up to 8 bits as a packed stream.
func (v *value) stream() (packed, error) {
	if p, ok := v.w.(packed); ok {
		return p, nil
	}
	if v.i == nil || v.dtype.Bits() > 8 {
		return packed{}, fmt.Errorf("want integers of up to 8 bits, got %s", v.dtype)
	}
	data := make([]byte, len(v.i))
	for k, x := range v.i {
		data[k] = byte(x)
	}
	d := tensor.UInt8
	if v.dtype == tensor.Int4 || v.dtype == tensor.Int8 {
		d = tensor.Int8
	}
	return packed{d, v.shape, data}, nil
}

// groups says which entry of a small array (tables, scales) belongs to each
// element of a large one whose every dimension is cut into equal blocks.
type groups struct {
	block0, stride0 int   // along the rows
	segs            []seg // along the columns, the same for every row
}

// seg is a run of columns, up to end, that share an entry.
type seg struct{ end, off int }

// newGroups relates an array of shape n to one of shape g; every n[i] must
// be a multiple of g[i].
func newGroups(n, g []int) (*groups, error) {
	if len(n) != len(g) {
		return nil, fmt.Errorf("%s is grouped by %s, which has another rank", tensor.ShapeString(n), tensor.ShapeString(g))
	}
	for i := range n {
		if g[i] <= 0 || n[i]%g[i] != 0 {
			return nil, fmt.Errorf("dimension %d of %s is not a multiple of %d groups", i, tensor.ShapeString(n), g[i])
		}
	}
	switch len(n) {
	case 0:
		n, g = []int{1, 1}, []int{1, 1}
	case 1:
		n, g = []int{1, n[0]}, []int{1, g[0]}
	}
	gr := &groups{block0: max(1, n[0]/g[0]), stride0: product(g[1:])}
	gr.columns(n[1:], g[1:], 0, 0)
	return gr, nil
}

// columns appends the runs of the dimensions n, grouped by g.
func (gr *groups) columns(n, g []int, start, off int) int {
	if product(g) == 1 || len(n) == 0 {
		end := start + product(n)
		if k := len(gr.segs); k > 0 && gr.segs[k-1].off == off {
			gr.segs[k-1].end = end
		} else {
			gr.segs = append(gr.segs, seg{end, off})
		}
		return end
	}
	inner := product(g[1:])
	block := n[0] / g[0]
	for i := range n[0] {
		start = gr.columns(n[1:], g[1:], start, off+i/block*inner)
	}
	return start
}

func (gr *groups) base(r int) int { return r / gr.block0 * gr.stride0 }

// dense is an uncompressed matrix behind the weight interface.
type dense struct {
	v          *value
	rows, cols int
}

func (d dense) dims() (int, int) { return d.rows, d.cols }

func (d dense) row(dst []float32, r int) {
	if d.v.f != nil {
		copy(dst, d.v.f[r*d.cols:(r+1)*d.cols])
		return
	}
	cvtHalf(dst, d.v.h[r*d.cols:(r+1)*d.cols])
}

// matrix views v as rows of floats.
func (v *value) matrix() weight {
	if v.w != nil {
		return v.w
	}
	if v.mat == nil {
		rows, cols := matrixDims(v.shape)
		v.mat = dense{v, rows, cols}
	}
	return v.mat
}
