package tensor

import (
	"fmt"
	"math"
	"strings"
)

// MaxElements bounds the element count of any tensor that is accepted from a
// file: 2^40 elements are more than any model has and far from overflow.
const MaxElements = 1 << 40

// MaxRank bounds the number of dimensions accepted from a file.
const MaxRank = 16

// NumElements multiplies the dimensions. It returns an error for a negative
// dimension (an unknown one, printed "?", is -1) and for a product beyond
// MaxElements. A rank-0 shape has one element.
func NumElements(shape []int) (int64, error) {
	n := int64(1)
	for i, d := range shape {
		if d < 0 {
			return 0, fmt.Errorf("dimension %d of %s is not known", i, ShapeString(shape))
		}
		if d != 0 && n > MaxElements/int64(d) {
			return 0, fmt.Errorf("shape %s has more than 2^40 elements", ShapeString(shape))
		}
		n *= int64(d)
	}
	return n, nil
}

// Count multiplies known dimensions; it returns -1 when NumElements fails.
func Count(shape []int) int {
	n, err := NumElements(shape)
	if err != nil || n > math.MaxInt {
		return -1
	}
	return int(n)
}

// ShapeString prints [1, ?, 64]; unknown dimensions are negative.
func ShapeString(shape []int) string {
	var b strings.Builder
	b.WriteByte('[')
	for i, d := range shape {
		if i > 0 {
			b.WriteString(", ")
		}
		if d < 0 {
			b.WriteByte('?')
		} else {
			fmt.Fprintf(&b, "%d", d)
		}
	}
	b.WriteByte(']')
	return b.String()
}

// Known reports whether no dimension is negative.
func Known(shape []int) bool {
	for _, d := range shape {
		if d < 0 {
			return false
		}
	}
	return true
}

// Compatible reports whether two shapes of equal rank agree in every
// dimension that both know.
func Compatible(a, b []int) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] >= 0 && b[i] >= 0 && a[i] != b[i] {
			return false
		}
	}
	return true
}
