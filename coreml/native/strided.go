package native

import (
	"fmt"

	"github.com/anepkg/anepkg/coreml/tensor"
)

// layout is where the elements of an MLMultiArray lie: element (i, j, ...)
// begins at byte (i*strides[0] + j*strides[1] + ...)*size. Core ML returns
// arrays whose rows are padded to 64 bytes, so strides are never assumed.
type layout struct {
	shape, strides []int
	size           int // bytes of an element
}

// maxArrayBytes bounds one array.
const maxArrayBytes = 1 << 40

// span returns the bytes from the first element to the end of the last one.
func (l layout) span() (int, error) {
	if len(l.shape) != len(l.strides) {
		return 0, fmt.Errorf("an array of shape %s has %d strides", tensor.ShapeString(l.shape), len(l.strides))
	}
	if len(l.shape) > tensor.MaxRank {
		return 0, fmt.Errorf("an array has %d dimensions, want at most %d", len(l.shape), tensor.MaxRank)
	}
	last := 0
	for i, d := range l.shape {
		s := l.strides[i]
		if d < 1 || s < 0 {
			return 0, fmt.Errorf("an array has shape %s and strides %v", tensor.ShapeString(l.shape), l.strides)
		}
		if d > 1 && s > (maxArrayBytes/l.size-last)/(d-1) {
			return 0, fmt.Errorf("an array of shape %s and strides %v is larger than %d bytes", tensor.ShapeString(l.shape), l.strides, maxArrayBytes)
		}
		last += (d - 1) * s
	}
	return (last + 1) * l.size, nil
}

// fits tells whether n bytes hold the array.
func (l layout) fits(n int) error {
	want, err := l.span()
	if err == nil && want > n {
		err = fmt.Errorf("an array of shape %s and strides %v has %d bytes, want %d", tensor.ShapeString(l.shape), l.strides, n, want)
	}
	return err
}

// gather copies the elements out of src into dst, row-major without gaps.
func (l layout) gather(dst, src []byte) error {
	if err := l.fits(len(src)); err != nil {
		return err
	}
	l.walk(func(at, i, n int) { copy(dst[i:i+n], src[at:at+n]) })
	return nil
}

// scatter is the reverse of gather. Bytes between the elements stay.
func (l layout) scatter(dst, src []byte) error {
	if err := l.fits(len(dst)); err != nil {
		return err
	}
	l.walk(func(at, i, n int) { copy(dst[at:at+n], src[i:i+n]) })
	return nil
}

// walk calls fn for every run of bytes that lies together in both forms: at
// byte at in the strided one, at byte i in the dense one.
func (l layout) walk(fn func(at, i, n int)) {
	outer, run := len(l.shape), l.size
	for outer > 0 && (l.shape[outer-1] == 1 || l.strides[outer-1]*l.size == run) {
		outer--
		run *= l.shape[outer]
	}
	index := make([]int, outer)
	for i := 0; ; i += run {
		at := 0
		for k, x := range index {
			at += x * l.strides[k]
		}
		fn(at*l.size, i, run)
		k := outer - 1
		for ; k >= 0; k-- {
			if index[k]++; index[k] < l.shape[k] {
				break
			}
			index[k] = 0
		}
		if k < 0 {
			return
		}
	}
}
