package cpu

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/anepkg/anepkg/coreml/tensor"
)

var sortOps = []opDef{
	{name: "topk", since: 15, types: "fp16 fp32 int8 int16 int32 uint8 uint16; indices int32 uint16", exact: true, build: buildTopK,
		doc: "the k largest (ascending: smallest) elements along axis in order, and their indices; equals come lowest index first, NaN counts as the largest; k = -1 is all"},
	{name: "argsort", since: 15, types: "int32; x fp16 fp32 int32", exact: true, build: buildArgsort,
		doc: "indices that sort x along axis, the largest first unless ascending; equals come lowest index first, NaN counts as the largest"},
	{name: "non_zero", since: 15, types: "int32; x fp16 fp32 int32 bool", exact: true, build: buildNonZero,
		doc: "positions of the elements that are not 0, one row of rank(x) indices for each, in row-major order"},
}

// sortable are the types that arrays are sorted in.
type sortable interface{ float32 | int32 }

// order ranks the elements of run: the best first, of equals the first.
func order[T sortable](run []T, ascending bool) func(a, b int32) int {
	return func(a, b int32) int {
		// NaN is the largest in both directions, unlike in cmp.Compare.
		x, y := run[a], run[b]
		r := cmp.Compare(x, y)
		if nx, ny := math.IsNaN(float64(x)), math.IsNaN(float64(y)); nx || ny {
			r = cmp.Compare(bit(nx), bit(ny))
		}
		if !ascending {
			r = -r
		}
		if r == 0 {
			r = cmp.Compare(a, b)
		}
		return r
	}
}

// best returns the indices of the k best elements of run in order. For small
// k it keeps a sorted list of candidates, else it sorts everything.
func best[T sortable](run []T, k int, ascending bool, buf []int32) []int32 {
	if k == 0 {
		return nil
	}
	by := order(run, ascending)
	if k > 64 || k > len(run)/4 {
		buf = buf[:0]
		for i := range run {
			buf = append(buf, int32(i))
		}
		slices.SortFunc(buf, by)
		return buf[:k]
	}
	buf = buf[:0]
	for i := range run {
		x := int32(i)
		if len(buf) == k && by(buf[k-1], x) < 0 {
			continue
		}
		at, _ := slices.BinarySearchFunc(buf, x, by)
		if len(buf) == k {
			buf = buf[:k-1]
		}
		buf = slices.Insert(buf, at, x)
	}
	return buf
}

// ranked calls put with the k best indices of each run of x along axis a; at
// is the position of the run's first element in an array with k elements
// along the axis, step the distance of the next.
func ranked[T sortable](x []T, shape []int, a, k int, ascending bool, put func(run []T, idx []int32, at, step int)) {
	outer, n, inner := around(shape, a)
	run, buf := make([]T, n), make([]int32, 0, n)
	for r := range outer * inner {
		o, i := r/inner, r%inner
		for j := range run {
			run[j] = x[(o*n+j)*inner+i]
		}
		put(run, best(run, k, ascending, buf), o*k*inner+i, inner)
	}
}

func buildTopK(b *builder) kernel {
	x := b.input("x")
	k := b.intConst("k", 1)
	axis := b.intConst("axis", -1)
	ascending := b.boolConst("ascending", false)
	b.boolConst("sort", true)
	withIndices := b.boolConst("return_indices", true)
	b.strConst("output_indices_dtype", "")
	if withIndices {
		b.results(2)
	} else {
		b.results(1)
	}
	return func(c *call) error {
		v := c.in[x]
		a, err := axisOf(axis, v.rank())
		if err != nil {
			return err
		}
		n := k
		if k == -1 {
			n = v.shape[a]
		}
		if n < 0 || n > v.shape[a] {
			return fmt.Errorf("k is %d, x has %d elements along axis %d", k, v.shape[a], a)
		}
		shape := slices.Clone(v.shape)
		shape[a] = n
		var idx []int32
		if withIndices {
			idx = c.newInt(1, shape)
		}
		switch {
		case v.s != nil:
			return errors.New("x holds strings")
		case v.isFloat():
			dst := c.newFloat(0, shape)
			ranked(c.wide(v), v.shape, a, n, ascending, putBest(dst, idx))
		default:
			dst := c.newInt(0, shape)
			ranked(v.whole(), v.shape, a, n, ascending, putBest(dst, idx))
		}
		c.out[0].dtype = v.dtype
		return nil
	}
}

// putBest stores values, and indices when idx is not nil.
func putBest[T any](dst []T, idx []int32) func(run []T, best []int32, at, step int) {
	return func(run []T, best []int32, at, step int) {
		for j, i := range best {
			dst[at+j*step] = run[i]
			if idx != nil {
				idx[at+j*step] = i
			}
		}
	}
}

func buildArgsort(b *builder) kernel {
	x := b.input("x")
	axis := b.intConst("axis", -1)
	ascending := b.boolConst("ascending", false)
	b.results(1)
	return func(c *call) error {
		v := c.in[x]
		a, err := axisOf(axis, v.rank())
		if err != nil {
			return err
		}
		dst := c.newInt(0, v.shape)
		c.out[0].dtype = tensor.Int32
		if v.isFloat() {
			ranked(c.wide(v), v.shape, a, v.shape[a], ascending, putIndices[float32](dst))
			return nil
		}
		if err := wantInts("x", v); err != nil {
			return err
		}
		ranked(v.whole(), v.shape, a, v.shape[a], ascending, putIndices[int32](dst))
		return nil
	}
}

func putIndices[T any](dst []int32) func(run []T, best []int32, at, step int) {
	return func(_ []T, best []int32, at, step int) {
		for j, i := range best {
			dst[at+j*step] = i
		}
	}
}

func buildNonZero(b *builder) kernel {
	x := b.input("x")
	b.results(1)
	return func(c *call) error {
		v := c.in[x]
		if v.rank() == 0 {
			return errRank("x", v, 1)
		}
		var hits []int
		if v.isFloat() {
			hits = whereNot(c.wide(v))
		} else {
			hits = whereNot(v.whole())
		}
		dst := c.newInt(0, []int{len(hits), v.rank()})
		c.out[0].dtype = tensor.Int32
		for r, k := range hits {
			for d := v.rank() - 1; d >= 0; d-- {
				dst[r*v.rank()+d] = int32(k % v.shape[d])
				k /= v.shape[d]
			}
		}
		return nil
	}
}

// whereNot returns the positions of the elements that are not 0.
func whereNot[T float32 | int32](x []T) []int {
	var hits []int
	for k, e := range x {
		if e != 0 {
			hits = append(hits, k)
		}
	}
	return hits
}
