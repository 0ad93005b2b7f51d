package cpu

import (
	"fmt"
	"math"
)

var reduceOps = []opDef{
	reduction("reduce_sum", "sum", sumFold, func(x []int32) int32 { return foldInts(x, 0, func(a, b int32) int32 { return a + b }) }),
	reduction("reduce_mean", "mean", func(x []float32) float64 { return sumFold(x) / float64(len(x)) }, func(x []int32) int32 {
		return int32(foldWide(x, func(v int64) int64 { return v }) / max(1, int64(len(x))))
	}),
	reduction("reduce_max", "largest element", func(x []float32) float64 { return float64(maxFold(x)) }, func(x []int32) int32 { return foldInts(x, math.MinInt32, func(a, b int32) int32 { return max(a, b) }) }),
	reduction("reduce_min", "smallest element", minFold, func(x []int32) int32 { return foldInts(x, math.MaxInt32, func(a, b int32) int32 { return min(a, b) }) }),
	reduction("reduce_prod", "product", func(x []float32) float64 { return fold(x, 1, func(a, v float64) float64 { return a * v }) }, func(x []int32) int32 { return foldInts(x, 1, func(a, b int32) int32 { return a * b }) }),
	reduction("reduce_l1_norm", "sum of |x|", l1Fold, func(x []int32) int32 { return foldInts(x, 0, func(a, b int32) int32 { return a + max(b, -b) }) }),
	reduction("reduce_l2_norm", "square root of the sum of squares", func(x []float32) float64 { return math.Sqrt(squareFold(x)) }, func(x []int32) int32 {
		return int32(math.Sqrt(float64(foldWide(x, func(v int64) int64 { return v * v }))))
	}),
	reduction("reduce_sum_square", "sum of squares", squareFold, func(x []int32) int32 { return foldInts(x, 0, func(a, b int32) int32 { return a + b*b }) }),
	reduction("reduce_log_sum", "logarithm of the sum", func(x []float32) float64 { return math.Log(sumFold(x)) }, func(x []int32) int32 {
		return int32(math.Log(float64(foldWide(x, func(v int64) int64 { return v }))))
	}),
	reduction("reduce_log_sum_exp", "logarithm of the sum of exp(x)", logSumExp, func(x []int32) int32 {
		f := make([]float32, len(x))
		for k, v := range x {
			f[k] = float32(v)
		}
		return int32(logSumExp(f))
	}),
	argReduction("reduce_argmax", "index of the largest element, the first of equals", func(a, b float64) bool { return a > b }),
	argReduction("reduce_argmin", "index of the smallest element, the first of equals", func(a, b float64) bool { return a < b }),
	{name: "softmax", since: 15, types: "fp16 fp32", doc: "exp(x - max) / sum along axis; NaN where all are -inf", build: buildSoftmax},
}

func fold(x []float32, start float64, f func(a, v float64) float64) float64 {
	for _, v := range x {
		start = f(start, float64(v))
	}
	return start
}

func sumFold(x []float32) float64 {
	var a, b, c, d float64
	for len(x) >= 4 {
		a, b, c, d = a+float64(x[0]), b+float64(x[1]), c+float64(x[2]), d+float64(x[3])
		x = x[4:]
	}
	for _, v := range x {
		a += float64(v)
	}
	return (a + b) + (c + d)
}

func squareFold(x []float32) float64 {
	var a, b float64
	for len(x) >= 2 {
		a, b = a+float64(x[0])*float64(x[0]), b+float64(x[1])*float64(x[1])
		x = x[2:]
	}
	for _, v := range x {
		a += float64(v) * float64(v)
	}
	return a + b
}

func l1Fold(x []float32) float64 {
	return fold(x, 0, func(a, v float64) float64 { return a + math.Abs(v) })
}

// maxFold returns the largest element, NaN when there is one.
func maxFold(x []float32) float32 {
	m := float32(math.Inf(-1))
	for _, v := range x {
		if v > m || v != v {
			m = v
			if v != v {
				return v
			}
		}
	}
	return m
}

func minFold(x []float32) float64 {
	return fold(x, math.Inf(1), math.Min)
}

func logSumExp(x []float32) float64 {
	m := float64(maxFold(x))
	if math.IsInf(m, 0) || math.IsNaN(m) {
		return m
	}
	return m + math.Log(fold(x, 0, func(a, v float64) float64 { return a + math.Exp(v-m) }))
}

func foldInts(x []int32, start int32, f func(a, b int32) int32) int32 {
	for _, v := range x {
		start = f(start, v)
	}
	return start
}

func foldWide(x []int32, f func(int64) int64) int64 {
	var s int64
	for _, v := range x {
		s += f(int64(v))
	}
	return s
}

// reduceAxes returns the axes to reduce (all when none are named), as flags.
func reduceAxes(axes []int, rank int) ([]bool, error) {
	over := make([]bool, rank)
	if axes == nil {
		for i := range over {
			over[i] = true
		}
		return over, nil
	}
	for _, a := range axes {
		a, err := axisOf(a, rank)
		if err != nil {
			return nil, err
		}
		if over[a] {
			return nil, fmt.Errorf("axis %d is named twice", a)
		}
		over[a] = true
	}
	return over, nil
}

// reducedShape is the result's shape.
func reducedShape(shape []int, over []bool, keep bool) []int {
	out := []int{}
	for i, d := range shape {
		if !over[i] {
			out = append(out, d)
		} else if keep {
			out = append(out, 1)
		}
	}
	return out
}

// gatherRuns calls fn for each element of the result with the elements that
// are reduced into it, in row-major order. When those lie together they are
// passed where they are.
func gatherRuns[T any](c *call, x []T, shape []int, over []bool, fn func(k int, run []T)) {
	n, outer := 1, 1
	var kept, gone []int // dimensions
	for i, d := range shape {
		if over[i] {
			n *= d
			gone = append(gone, i)
		} else {
			outer *= d
			kept = append(kept, i)
		}
	}
	if len(kept) == 0 || len(gone) == 0 || kept[len(kept)-1] < gone[0] {
		c.each(outer, max(1, parallelGrain/max(1, n)), func(lo, hi int) {
			for k := lo; k < hi; k++ {
				fn(k, x[k*n:(k+1)*n])
			}
		})
		return
	}
	strides := rowMajor(shape)
	offs := offsets(shape, strides, gone)
	bases := offsets(shape, strides, kept)
	c.each(outer, max(1, parallelGrain/max(1, n)), func(lo, hi int) {
		run := make([]T, n)
		for k := lo; k < hi; k++ {
			for j, o := range offs {
				run[j] = x[bases[k]+o]
			}
			fn(k, run)
		}
	})
}

// rowMajor returns the strides of a dense array.
func rowMajor(shape []int) []int {
	s := make([]int, len(shape))
	n := 1
	for i := len(shape) - 1; i >= 0; i-- {
		s[i] = n
		n *= shape[i]
	}
	return s
}

// offsets lists the positions of all index combinations of some dimensions.
func offsets(shape, strides, dims []int) []int {
	out := []int{0}
	for _, d := range dims {
		next := make([]int, 0, len(out)*shape[d])
		for _, o := range out {
			for i := range shape[d] {
				next = append(next, o+i*strides[d])
			}
		}
		out = next
	}
	return out
}

func reduction(name, doc string, ff func([]float32) float64, fi func([]int32) int32) opDef {
	return opDef{name: name, since: 15, types: "fp16 fp32 int32", doc: doc + " over axes (all when not given)", build: func(b *builder) kernel {
		x := b.input("x")
		axes, ok := b.intsConst("axes")
		if ok && axes == nil || len(axes) == 0 {
			axes = nil
		}
		keep := b.boolConst("keep_dims", false)
		b.results(1)
		return func(c *call) error {
			v := c.in[x]
			over, err := reduceAxes(axes, v.rank())
			if err != nil {
				return err
			}
			shape := reducedShape(v.shape, over, keep)
			if v.isFloat() {
				dst := c.newFloat(0, shape)
				gatherRuns(c, c.f32(x), v.shape, over, func(k int, run []float32) { dst[k] = float32(ff(run)) })
				return nil
			}
			dst := c.newInt(0, shape)
			gatherRuns(c, c.ints(x), v.shape, over, func(k int, run []int32) { dst[k] = fi(run) })
			return nil
		}
	}}
}

func argReduction(name, doc string, better func(a, b float64) bool) opDef {
	return opDef{name: name, since: 15, types: "int32 uint16; x fp16 fp32 int32", exact: true, doc: doc + " along axis", build: func(b *builder) kernel {
		x := b.input("x")
		axis := b.intConst("axis", -1)
		keep := b.boolConst("keep_dims", false)
		b.strConst("output_dtype", "")
		b.results(1)
		return func(c *call) error {
			v := c.in[x]
			a, err := axisOf(axis, v.rank())
			if err != nil {
				return err
			}
			if v.shape[a] == 0 {
				return fmt.Errorf("axis %d of x is empty", axis)
			}
			over := make([]bool, v.rank())
			over[a] = true
			dst := c.newInt(0, reducedShape(v.shape, over, keep))
			if v.isFloat() {
				gatherRuns(c, c.f32(x), v.shape, over, func(k int, run []float32) { dst[k] = bestFloat(run, better) })
				return nil
			}
			gatherRuns(c, c.ints(x), v.shape, over, func(k int, run []int32) {
				best := 0
				for j, e := range run {
					if better(float64(e), float64(run[best])) {
						best = j
					}
				}
				dst[k] = int32(best)
			})
			return nil
		}
	}}
}

// bestFloat returns the index of the first best element; a NaN is best.
func bestFloat(run []float32, better func(a, b float64) bool) int32 {
	best := 0
	for j, e := range run {
		if e != e {
			return int32(j)
		}
		if better(float64(e), float64(run[best])) {
			best = j
		}
	}
	return int32(best)
}

func buildSoftmax(b *builder) kernel {
	x := b.input("x")
	axis := b.intConst("axis", -1)
	b.results(1)
	return func(c *call) error {
		v := c.in[x]
		a, err := axisOf(axis, v.rank())
		if err != nil {
			return err
		}
		outer, n, inner := around(v.shape, a)
		src := c.f32(x)
		var dst []float32
		if c.mayOverwrite(x) {
			dst = c.overwrite(x)
		} else {
			dst = c.newFloat(0, v.shape)
		}
		if inner == 1 {
			c.each(outer, max(1, mathGrain/max(1, n)), func(lo, hi int) {
				for r := lo; r < hi; r++ {
					softmaxRow(dst[r*n:(r+1)*n], src[r*n:(r+1)*n])
				}
			})
			return nil
		}
		c.each(outer*inner, max(1, mathGrain/max(1, n)), func(lo, hi int) {
			row := make([]float32, n)
			for r := lo; r < hi; r++ {
				base := r/inner*n*inner + r%inner
				for j := range row {
					row[j] = src[base+j*inner]
				}
				softmaxRow(row, row)
				for j := range row {
					dst[base+j*inner] = row[j]
				}
			}
		})
		return nil
	}
}

// softmaxRow normalises one row; dst may be src.
func softmaxRow(dst, src []float32) {
	live := len(src) // trailing -inf, masked positions, become 0
	for live > 0 && src[live-1] < -math.MaxFloat32 {
		live--
	}
	if live > 0 {
		clear(dst[live:])
		dst, src = dst[:live], src[:live]
	}
	m := float64(maxFold(src))
	sum := 0.0
	for k, v := range src {
		d := float64(v) - m
		if d < -104 { // exp(d) is 0 in float32
			dst[k] = 0
			continue
		}
		e := float32(math.Exp(d))
		dst[k] = e
		sum += float64(e)
	}
	inv := 1 / sum
	for k, v := range dst {
		dst[k] = float32(float64(v) * inv)
	}
}
