package backendtest

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/anepkg/anepkg/coreml/tensor"
)

// Diff tells why got does not count as want; nil when it does. Type and shape
// must be equal, NaN equals NaN, infinities must have one sign, strings and
// keys must be equal. The message names the first element that differs, by its
// index in each dimension.
func Diff(got, want *tensor.Tensor, tol Tolerance) error {
	if got == nil {
		return fmt.Errorf("is missing, want %s %s", want.DType, tensor.ShapeString(want.Shape))
	}
	if got.DType != want.DType || !slices.Equal(got.Shape, want.Shape) {
		return fmt.Errorf("is %s %s, want %s %s", got.DType, tensor.ShapeString(got.Shape), want.DType, tensor.ShapeString(want.Shape))
	}
	if !slices.Equal(got.Strings, want.Strings) {
		return fmt.Errorf("is %q, want %q", got.Strings, want.Strings)
	}
	if !slices.Equal(got.Keys, want.Keys) {
		return fmt.Errorf("has the keys %q, want %q", got.Keys, want.Keys)
	}
	if want.DType == tensor.String {
		return nil
	}
	if err := got.Check(); err != nil {
		return err
	}
	bad, first, worst := 0, "", 0.0
	for i := range want.Len() {
		if same(got, want, i, tol) {
			continue
		}
		if bad == 0 {
			first = fmt.Sprintf("element %s is %s, want %s", tensor.ShapeString(indices(i, want.Shape)), text(got, i), text(want, i))
		}
		bad++
		worst = max(worst, math.Abs(got.Float64(i)-want.Float64(i)))
	}
	if bad > 0 {
		return fmt.Errorf("%s (%d of %d differ, by up to %g; allowed %g + %g*|want|)", first, bad, want.Len(), worst, tol.Abs, tol.Rel)
	}
	return nil
}

// wide reports whether float64 cannot hold every value of d.
func wide(d tensor.DType) bool { return d == tensor.Int64 || d == tensor.UInt64 }

// same compares element i of two tensors of one type.
func same(got, want *tensor.Tensor, i int, tol Tolerance) bool {
	if wide(want.DType) && tol == (Tolerance{}) {
		return got.Int(i) == want.Int(i)
	}
	return sameNumber(got.Float64(i), want.Float64(i), tol)
}

// text prints element i.
func text(t *tensor.Tensor, i int) string {
	switch {
	case t.DType == tensor.UInt64:
		return strconv.FormatUint(uint64(t.Int(i)), 10)
	case t.DType.IsFloat():
		return fmt.Sprint(t.Float64(i))
	}
	return strconv.Itoa(t.Int(i))
}

// indices splits a row-major offset into one index per dimension.
func indices(offset int, shape []int) []int {
	idx := make([]int, len(shape))
	for i := len(shape) - 1; i >= 0; i-- {
		idx[i] = offset % shape[i]
		offset /= shape[i]
	}
	return idx
}

func sameNumber(g, w float64, tol Tolerance) bool {
	switch {
	case math.IsNaN(w):
		return math.IsNaN(g)
	case math.IsInf(w, 0) || math.IsInf(g, 0):
		return g == w
	}
	return math.Abs(g-w) <= tol.Abs+tol.Rel*math.Abs(w)
}

// sorted returns a copy with the elements along an axis in rising order, NaN
// first, for ops that may give them in any.
func sorted(t *tensor.Tensor, axis int) *tensor.Tensor {
	if axis < 0 {
		axis += len(t.Shape)
	}
	if axis < 0 || axis >= len(t.Shape) {
		return t
	}
	out := t.Clone()
	inner := 1
	for _, d := range t.Shape[axis+1:] {
		inner *= d
	}
	n, size := t.Shape[axis], t.DType.Bits()/8
	outer := 0
	if n*inner > 0 {
		outer = t.Len() / (n * inner)
	}
	for o := range outer {
		for k := range inner {
			idx := make([]int, n)
			for j := range idx {
				idx[j] = (o*n+j)*inner + k
			}
			order := slices.Clone(idx)
			slices.SortFunc(order, func(a, b int) int { return cmp.Compare(t.Float64(a), t.Float64(b)) })
			for j := range idx {
				copy(out.Data[idx[j]*size:(idx[j]+1)*size], t.Data[order[j]*size:(order[j]+1)*size])
			}
		}
	}
	return out
}
