package cpu

import (
	"fmt"
	"math/bits"

	"github.com/anepkg/anepkg/coreml/tensor"
)

// sparseWeight has a bit for every element and the values of the set ones.
type sparseWeight struct {
	rows, cols int
	mask       []byte // bit i, least significant first, is element i
	start      []int  // values before each row
	nonzero    []float32
}

// newSparse makes a sparse constant of the given shape. nonzero must hold as
// many values as mask has bits set.
func newSparse(nonzero *value, mask []byte, shape []int) (*sparseWeight, error) {
	n := product(shape)
	if len(mask)*8 < n {
		return nil, fmt.Errorf("mask has %d bits, shape %s wants %d", len(mask)*8, tensor.ShapeString(shape), n)
	}
	w := &sparseWeight{mask: mask, nonzero: nonzero.wide()}
	w.rows, w.cols = matrixDims(shape)
	w.start = make([]int, w.rows+1)
	for r := range w.rows {
		w.start[r+1] = w.start[r] + countBits(mask, r*w.cols, (r+1)*w.cols)
	}
	if got := nonzero.size(); got != w.start[w.rows] {
		return nil, fmt.Errorf("has %d values, its mask sets %d", got, w.start[w.rows])
	}
	return w, nil
}

// countBits counts the bits set in [lo, hi) of a stream.
func countBits(data []byte, lo, hi int) int {
	n := 0
	for ; lo < hi && lo&7 != 0; lo++ {
		n += int(data[lo>>3] >> (lo & 7) & 1)
	}
	for ; lo+8 <= hi; lo += 8 {
		n += bits.OnesCount8(data[lo>>3])
	}
	for ; lo < hi; lo++ {
		n += int(data[lo>>3] >> (lo & 7) & 1)
	}
	return n
}

func (w *sparseWeight) dims() (int, int) { return w.rows, w.cols }

func (w *sparseWeight) row(dst []float32, r int) {
	next := w.start[r]
	bit := r * w.cols
	for k := range dst {
		if w.mask[(bit+k)>>3]>>((bit+k)&7)&1 == 0 {
			dst[k] = 0
			continue
		}
		dst[k] = w.nonzero[next]
		next++
	}
}
