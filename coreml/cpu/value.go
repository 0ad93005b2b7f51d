package cpu

import (
	"fmt"
	"math/bits"

	"github.com/anepkg/anepkg/coreml/tensor"
)

// value is a dense, row-major array at run time, or a compressed constant.
// Exactly one storage field is used:
//
//	f  fp16, bf16, fp32 and fp64, widened (or narrowed) to float32; an fp16
//	   value in f holds only numbers that fp16 can represent
//	h  fp16 as stored: states, weights and slices of them
//	i  bool and every integer type up to 32 bits (uint32 as its bit pattern)
//	s  strings
//	w  a compressed weight
//	view  elements that lie elsewhere
//	list  the elements of a list
//	keys  the names that go with f in the dictionary of classify
//
// Values are immutable once produced, except that an op may overwrite an
// operand that nobody else can see (see call.mayOverwrite).
type value struct {
	dtype tensor.DType
	shape []int
	f     []float32
	h     []uint16
	i     []int32
	s     []string
	w     weight
	view  *view
	list  *listValue
	keys  []string // of a dictionary (classify), whose values are in f

	buf     *buffer // owner of f, h or i; nil for constants and inputs
	scratch *value  // widened copy of a constant, kept
	brief   bool    // of a run: nothing is kept in it
	mat     weight  // f or h as a matrix, once somebody asked
}

// buffer counts who can see a piece of memory. It returns to the arena when
// the last holder lets go.
type buffer struct {
	refs  int
	f     []float32
	h     []uint16
	i     []int32
	arena *arena
}

func (b *buffer) retain() {
	if b != nil {
		b.refs++
	}
}

func (b *buffer) release() {
	if b == nil {
		return
	}
	b.refs--
	if b.refs == 0 && b.arena != nil {
		b.arena.put(b)
	}
}

// arena hands out buffers by size class and takes them back. It is used by
// one session at a time.
type arena struct {
	f [48][]*buffer
	h [48][]*buffer
	i [48][]*buffer
}

func sizeClass(n int) int {
	if n <= 64 {
		return 6
	}
	return bits.Len(uint(n - 1))
}

func (a *arena) take(list *[48][]*buffer, n int) *buffer {
	c := sizeClass(n)
	l := list[c]
	if len(l) == 0 {
		return nil
	}
	b := l[len(l)-1]
	list[c] = l[:len(l)-1]
	b.refs = 1
	return b
}

func (a *arena) float(n int) *buffer {
	if b := a.take(&a.f, n); b != nil {
		return b
	}
	return &buffer{refs: 1, f: make([]float32, capOf(n)), arena: a}
}

func (a *arena) half(n int) *buffer {
	if b := a.take(&a.h, n); b != nil {
		return b
	}
	return &buffer{refs: 1, h: make([]uint16, capOf(n)), arena: a}
}

func (a *arena) ints(n int) *buffer {
	if b := a.take(&a.i, n); b != nil {
		return b
	}
	return &buffer{refs: 1, i: make([]int32, capOf(n)), arena: a}
}

// capOf rounds a request up to its size class, but wastes at most an eighth
// of a large one.
func capOf(n int) int {
	if n > 1<<20 {
		return n
	}
	return 1 << sizeClass(n)
}

func (a *arena) put(b *buffer) {
	switch {
	case b.f != nil:
		a.keep(&a.f, b, cap(b.f))
	case b.h != nil:
		a.keep(&a.h, b, cap(b.h))
	case b.i != nil:
		a.keep(&a.i, b, cap(b.i))
	}
}

// keep files b under the largest class that it can serve whole.
func (a *arena) keep(list *[48][]*buffer, b *buffer, capacity int) {
	c := bits.Len(uint(capacity)) - 1
	if c >= len(list) {
		return
	}
	list[c] = append(list[c], b)
}

func (v *value) rank() int { return len(v.shape) }

// size returns the element count.
func (v *value) size() int {
	n := 1
	for _, d := range v.shape {
		n *= d
	}
	return n
}

// isFloat reports whether the elements are numbers with a fraction.
func (v *value) isFloat() bool { return v.dtype.IsFloat() }

// wide returns the elements of a float value as float32, or of an integer
// one converted. Compressed and half values are widened; when the value is a
// constant of moderate size the result is kept.
func (v *value) wide() []float32 {
	switch {
	case v.f != nil:
		return v.f
	case v.scratch != nil:
		return v.scratch.f
	}
	out := make([]float32, v.size())
	v.widenInto(out)
	if v.buf == nil && len(out) <= keepWide {
		v.scratch = &value{f: out}
	}
	return out
}

// keepWide is the largest constant (in elements) whose float32 form is kept
// beside the stored one.
const keepWide = 1 << 20

func (v *value) widenInto(out []float32) {
	switch {
	case v.f != nil:
		copy(out, v.f)
	case v.h != nil:
		widenHalf(out, v.h)
	case v.w != nil:
		rows, cols := v.w.dims()
		for r := range rows {
			v.w.row(out[r*cols:(r+1)*cols], r)
		}
	case v.i != nil:
		unsigned := v.dtype == tensor.UInt32
		for k, x := range v.i {
			if unsigned {
				out[k] = float32(uint32(x))
			} else {
				out[k] = float32(x)
			}
		}
	default:
		panic(fmt.Errorf("an operand is %s, want numbers", v.dtype))
	}
}

// num returns element k as a float64.
func (v *value) num(k int) float64 {
	switch {
	case v.f != nil:
		return float64(v.f[k])
	case v.h != nil:
		return float64(tensor.F16ToF32(v.h[k]))
	case v.i != nil:
		if v.dtype == tensor.UInt32 {
			return float64(uint32(v.i[k]))
		}
		return float64(v.i[k])
	}
	return float64(v.wide()[k])
}

func widenHalf(dst []float32, src []uint16) { cvtHalf(dst, src) }

// wrapInt keeps the low bits of x that dtype has, as stored integers do.
func wrapInt(d tensor.DType, x int32) int32 {
	switch d {
	case tensor.Int8:
		return int32(int8(x))
	case tensor.UInt8:
		return int32(uint8(x))
	case tensor.Int16:
		return int32(int16(x))
	case tensor.UInt16:
		return int32(uint16(x))
	case tensor.Bool:
		if x != 0 {
			return 1
		}
		return 0
	}
	return x
}

func product(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}
