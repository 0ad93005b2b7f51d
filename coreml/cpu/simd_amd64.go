//go:build !noasm

package cpu

import "golang.org/x/sys/cpu"

// The vector versions need AVX2, FMA and F16C, which every x86-64 processor
// since 2013 (Intel) and 2015 (AMD) has.

//go:noescape
func cvtHalfAVX2(dst *float32, src *uint16, n int)

//go:noescape
func roundHalfAVX2(x *float32, n int)

//go:noescape
func narrowHalfAVX2(dst *uint16, src *float32, n int)

//go:noescape
func dotAVX2(a, b *float32, n int) float32

//go:noescape
func dotHalfAVX2(a *uint16, b *float32, n int) float32

//go:noescape
func tile4AVX2(y *float32, ys int, w *float32, ws int, x *float32, k int)

//go:noescape
func axpyHalfAVX2(y *float32, w *float32, x *uint16, xs int, k int)

//go:noescape
func scaleAVX2(x *float32, n int, scale, offset float32)

//go:noescape
func cvtInt8AVX2(dst *float32, src *byte, n int)

//go:noescape
func cvtUint8AVX2(dst *float32, src *byte, n int)

//go:noescape
func dotLUT6AVX2(y *float32, idx *byte, table *byte, x *float32, blocks, rows int)

//go:noescape
func dotLUT4AVX2(y *float32, idx *byte, table *byte, x *float32, blocks, rows int)

//go:noescape
func lookupLUT6AVX2(dst *float32, idx *byte, table *byte, blocks int)

//go:noescape
func lookupLUT4AVX2(dst *float32, idx *byte, table *byte, blocks int)

//go:noescape
func dotLUT6AVX512(y *float32, idx *byte, table *byte, x *float32, blocks, rows int)

//go:noescape
func dotLUT4AVX512(y *float32, idx *byte, table *byte, x *float32, blocks, rows int)

//go:noescape
func dotLUT8AVX512(y *float32, idx *byte, table *byte, x *float32, blocks, rows int)

//go:noescape
func lookupLUT6AVX512(dst *float32, idx *byte, table *byte, blocks int)

//go:noescape
func lookupLUT4AVX512(dst *float32, idx *byte, table *byte, blocks int)

//go:noescape
func lookupLUT8AVX512(dst *float32, idx *byte, table *byte, blocks int)

func init() {
	if cpu.X86.HasAVX2 && cpu.X86.HasFMA && cpu.X86.HasF16C {
		useAVX2()
		if cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512VL {
			useAVX512()
		}
	}
}

// useAVX512 takes the AVX-512 loops for palettized weights, those that prove
// right on this processor: they were written without one at hand.
func useAVX512() {
	loops := map[int]*lutLoops{
		4: {bytes: 16, reads: 16, plain: true, dot: dotLUT4AVX512, lookup: lookupLUT4AVX512},
		6: {bytes: 24, reads: 32, plain: true, dot: dotLUT6AVX512, lookup: lookupLUT6AVX512},
		8: {bytes: 32, reads: 32, plain: true, dot: dotLUT8AVX512, lookup: lookupLUT8AVX512},
	}
	for n, l := range loops {
		if !l.proven(n) {
			delete(loops, n)
		}
	}
	if len(loops) == 0 {
		return
	}
	kernels = "avx512"
	vectorLUT = func(n int) *lutLoops {
		if l := loops[n]; l != nil {
			return l
		}
		return vectorLUTAVX2(n)
	}
}

// useAVX2 replaces the portable loops.
func useAVX2() {
	kernels = "avx2"
	cvtHalf = func(dst []float32, src []uint16) {
		n := len(src) &^ 15
		if n > 0 {
			cvtHalfAVX2(&dst[:n][0], &src[0], n)
		}
		halfPortable(dst[n:], src[n:])
	}
	roundHalf = func(x []float32) {
		n := len(x) &^ 15
		if n > 0 {
			roundHalfAVX2(&x[0], n)
		}
		roundPortable(x[n:])
	}
	narrowHalf = func(dst []uint16, src []float32) {
		n := len(src) &^ 15
		if n > 0 {
			narrowHalfAVX2(&dst[:n][0], &src[0], n)
		}
		narrowPortable(dst[n:], src[n:])
	}
	dot = func(a, b []float32) float32 {
		n := len(a) &^ 31
		var s float32
		if n > 0 {
			s = dotAVX2(&a[0], &b[:n][0], n)
		}
		if n < len(a) {
			s += dotPortable(a[n:], b[n:len(a)])
		}
		return s
	}
	dotHalf = func(a []uint16, b []float32) float32 {
		n := len(a) &^ 31
		var s float32
		if n > 0 {
			s = dotHalfAVX2(&a[0], &b[:n][0], n)
		}
		if n < len(a) {
			s += dotHalfPortable(a[n:], b[n:len(a)])
		}
		return s
	}
	tile4 = tile4Vector
	axpyHalf = axpyHalfVector
	scaleRow = func(x []float32, scale, offset float32) {
		n := len(x) &^ 7
		if n > 0 {
			scaleAVX2(&x[0], n, scale, offset)
		}
		scalePortable(x[n:], scale, offset)
	}
	cvtInt8 = func(dst []float32, src []byte) {
		n := len(src) &^ 15
		if n > 0 {
			cvtInt8AVX2(&dst[:n][0], &src[0], n)
		}
		int8Portable(dst[n:], src[n:])
	}
	cvtUint8 = func(dst []float32, src []byte) {
		n := len(src) &^ 15
		if n > 0 {
			cvtUint8AVX2(&dst[:n][0], &src[0], n)
		}
		uint8Portable(dst[n:], src[n:])
	}
	vectorLUT = vectorLUTAVX2
}

func tile4Vector(y []float32, ys int, w []float32, ws int, x []float32, k int) {
	if k == 0 {
		return
	}
	_, _, _ = y[3*ys+tileCols-1], w[3*ws+k-1], x[k*tileCols-1]
	tile4AVX2(&y[0], 4*ys, &w[0], 4*ws, &x[0], k)
}

func axpyHalfVector(y, w []float32, x []uint16, xs int) {
	if len(w) == 0 || len(y) == 0 {
		return
	}
	_ = x[(len(w)-1)*xs+len(y)-1]
	t := 0
	for ; t+64 <= len(y); t += 64 {
		axpyHalfAVX2(&y[t], &w[0], &x[t], 2*xs, len(w))
	}
	if t < len(y) {
		axpyHalfPortable(y[t:], w, x[t:], xs)
	}
}

// vectorLUTAVX2 returns the loops for n-bit indices; nil when there is none.
func vectorLUTAVX2(n int) *lutLoops {
	switch n {
	case 4:
		return &lutLoops{bytes: 16, reads: 16, dot: dotLUT4AVX2, lookup: lookupLUT4AVX2}
	case 6:
		return &lutLoops{bytes: 24, reads: 28, dot: dotLUT6AVX2, lookup: lookupLUT6AVX2}
	}
	return nil
}
