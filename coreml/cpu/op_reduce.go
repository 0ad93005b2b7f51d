package cpu

import (
	"fmt"
	"math"
	"slices"
	"sync"
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
func (m *memory) reduceAxes(axes []int, rank int) ([]bool, error) {
	over := m.newFlags(rank)
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
func (m *memory) reducedShape(shape []int, over []bool, keep bool) []int {
	out := m.newDims(len(shape))[:0]
	for i, d := range shape {
		if !over[i] {
			out = append(out, d)
		} else if keep {
			out = append(out, 1)
		}
	}
	return out
}

// runs are the elements of an array in groups: those that differ only in the
// flagged axes make a run. Runs and their elements are in row-major order.
type runs struct {
	n          int // elements of a run
	count      int
	kept, gone []int // lengths of the axes that number the runs, and of the flagged ones
	ks, gs     []int // strides
	dense      bool  // the elements of a run lie one after the other
}

func (m *memory) newRuns(shape []int, over []bool) runs {
	r := runs{n: 1, count: 1}
	rank := len(shape)
	r.kept, r.gone = m.newDims(rank)[:0], m.newDims(rank)[:0]
	r.ks, r.gs = m.newDims(rank)[:0], m.newDims(rank)[:0]
	strides := m.rowMajor(shape)
	lastKept, firstGone := -1, rank
	for i, d := range shape {
		switch {
		case d == 1:
		case over[i]:
			r.n *= d
			r.gone, r.gs = append(r.gone, d), append(r.gs, strides[i])
			firstGone = min(firstGone, i)
		default:
			r.count *= d
			r.kept, r.ks = append(r.kept, d), append(r.ks, strides[i])
			lastKept = i
		}
	}
	r.dense = lastKept < firstGone
	return r
}

// base is where run k begins.
func (r *runs) base(k int) int { return rowOffset(k, r.kept, r.ks) }

// at is how far element k lies from the start of its run.
func (r *runs) at(k int) int {
	if len(r.gone) == 1 {
		return k * r.gs[0]
	}
	return rowOffset(k, r.gone, r.gs)
}

// reduceJob makes one element of each run.
type reduceJob[T, R any] struct {
	runs
	fn  func(run []T) R
	dst []R
	x   []T

	gathered *sync.Pool // of *[]T, the elements of a run
}

// floatRuns and intRuns serve every reduction.
var floatRuns, intRuns sync.Pool

// of runs the job on the session's workers.
func (j *reduceJob[T, R]) of(c *call, dst []R, x []T, shape []int, over []bool) {
	j.runs, j.dst, j.x = c.m.newRuns(shape, over), dst, x
	c.run(j.count, max(1, parallelGrain/max(1, j.n)), j)
}

func (j *reduceJob[T, R]) run(lo, hi int) {
	if j.dense {
		for k := lo; k < hi; k++ {
			j.dst[k] = j.fn(j.x[k*j.n : (k+1)*j.n])
		}
		return
	}
	p, _ := j.gathered.Get().(*[]T)
	if p == nil {
		p = new([]T)
	}
	defer j.gathered.Put(p)
	*p = slices.Grow((*p)[:0], j.n)[:j.n]
	run := *p
	for k := lo; k < hi; k++ {
		base := j.base(k)
		for i := range run {
			run[i] = j.x[base+j.at(i)]
		}
		j.dst[k] = j.fn(run)
	}
}

// rowMajor returns the strides of a dense array.
func rowMajor(shape []int) []int { return (*memory)(nil).rowMajor(shape) }

func (m *memory) rowMajor(shape []int) []int {
	s := m.newDims(len(shape))
	n := 1
	for i := len(shape) - 1; i >= 0; i-- {
		s[i] = n
		n *= shape[i]
	}
	return s
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
		floats := &reduceJob[float32, float32]{gathered: &floatRuns, fn: func(run []float32) float32 { return float32(ff(run)) }}
		ints := &reduceJob[int32, int32]{gathered: &intRuns, fn: fi}
		return func(c *call) error {
			v := c.in[x]
			over, err := c.m.reduceAxes(axes, v.rank())
			if err != nil {
				return err
			}
			shape := c.m.reducedShape(v.shape, over, keep)
			if v.isFloat() {
				floats.of(c, c.newFloat(0, shape), c.f32(x), v.shape, over)
				return nil
			}
			ints.of(c, c.newInt(0, shape), c.ints(x), v.shape, over)
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
		floats := &reduceJob[float32, int32]{gathered: &floatRuns, fn: func(run []float32) int32 { return bestFloat(run, better) }}
		ints := &reduceJob[int32, int32]{gathered: &intRuns, fn: func(run []int32) int32 { return bestInt(run, better) }}
		return func(c *call) error {
			v := c.in[x]
			a, err := axisOf(axis, v.rank())
			if err != nil {
				return err
			}
			if v.shape[a] == 0 {
				return fmt.Errorf("axis %d of x is empty", axis)
			}
			over := c.m.newFlags(v.rank())
			over[a] = true
			dst := c.newInt(0, c.m.reducedShape(v.shape, over, keep))
			if v.isFloat() {
				floats.of(c, dst, c.f32(x), v.shape, over)
				return nil
			}
			ints.of(c, dst, c.ints(x), v.shape, over)
			return nil
		}
	}}
}

// bestInt returns the index of the first best element.
func bestInt(run []int32, better func(a, b float64) bool) int32 {
	best := 0
	for j, e := range run {
		if better(float64(e), float64(run[best])) {
			best = j
		}
	}
	return int32(best)
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
	j := &softmaxJob{}
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
		*j = softmaxJob{dst: dst, src: src, n: n, inner: inner}
		c.run(outer*inner, max(1, mathGrain/max(1, n)), j)
		return nil
	}
}

// softmaxJob normalises rows of n elements that lie inner apart.
type softmaxJob struct {
	dst, src []float32
	n, inner int
}

func (j *softmaxJob) run(lo, hi int) {
	n, inner := j.n, j.inner
	if inner == 1 {
		for r := lo; r < hi; r++ {
			softmaxRow(j.dst[r*n:(r+1)*n], j.src[r*n:(r+1)*n])
		}
		return
	}
	scratch := takeRow(n)
	defer giveRow(scratch)
	row := scratch.x
	for r := lo; r < hi; r++ {
		base := r/inner*n*inner + r%inner
		for k := range row {
			row[k] = j.src[base+k*inner]
		}
		softmaxRow(row, row)
		for k, v := range row {
			j.dst[base+k*inner] = v
		}
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
