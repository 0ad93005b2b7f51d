package verify

import (
	"slices"

	"github.com/anepkg/anepkg/coreml/mil"
	"github.com/anepkg/anepkg/coreml/tensor"
)

// unknown is a dimension that is not known.
const unknown = mil.Unknown

// broadcast joins two shapes by numpy's rule; ok is false when they are at
// odds.
func broadcast(a, b []int) (out []int, ok bool) {
	if len(a) < len(b) {
		a, b = b, a
	}
	out = slices.Clone(a)
	if out == nil {
		out = []int{}
	}
	skip := len(a) - len(b)
	for i, d := range b {
		switch e := a[skip+i]; {
		case e == d || d == 1:
		case e == 1:
			out[skip+i] = d
		case e == unknown:
			out[skip+i] = d // d is not 1, so it is d
		case d == unknown:
		default:
			return nil, false
		}
	}
	return out, true
}

// add and times keep unknown dimensions unknown.
func add(a, b int) int {
	if a < 0 || b < 0 {
		return unknown
	}
	return a + b
}

func times(a, b int) int {
	if a < 0 || b < 0 || a > 0 && int64(b) > tensor.MaxElements/int64(a) {
		return unknown
	}
	return a * b
}

// differ reports whether two dimensions are known and not equal.
func differ(a, b int) bool { return a >= 0 && b >= 0 && a != b }

// with returns shape with dimension i replaced.
func with(shape []int, i, d int) []int {
	out := slices.Clone(shape)
	out[i] = d
	return out
}

// without returns shape with dimension i left out.
func without(shape []int, i int) []int {
	return slices.Delete(slices.Clone(shape), i, i+1)
}

// unknowns is a shape of rank n with nothing known.
func unknowns(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = unknown
	}
	return out
}
