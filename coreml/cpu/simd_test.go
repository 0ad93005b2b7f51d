package cpu

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/anepkg/anepkg/coreml/tensor"
)

// The vector loops are held to the portable ones, which the conformance
// vectors test when the build has no assembly.

func randomFloats(r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return x
}

func randomHalves(r *rand.Rand, n int) []uint16 {
	x := make([]uint16, n)
	for i := range x {
		x[i] = tensor.F32ToF16(float32(r.NormFloat64()))
	}
	return x
}

var lengths = []int{0, 1, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100, 128, 257}

func TestConversions(t *testing.T) {
	t.Logf("kernels: %s", kernels)
	all := make([]uint16, 1<<16)
	for i := range all {
		all[i] = uint16(i)
	}
	got, want := make([]float32, len(all)), make([]float32, len(all))
	cvtHalf(got, all)
	halfPortable(want, all)
	compareBits(t, "cvtHalf", got, want)

	// Every fp16 value, its neighbours in float32 and the midpoints.
	var x []float32
	for _, f := range want {
		b := math.Float32bits(f)
		for _, d := range []uint32{0, 1, 0xfff, 0x1000, 0x1001, 0x1fff} {
			x = append(x, math.Float32frombits(b+d))
		}
	}
	a, b := append([]float32{}, x...), append([]float32{}, x...)
	roundHalf(a)
	roundPortable(b)
	compareBits(t, "roundHalf", a, b)
	na, nb := make([]uint16, len(x)), make([]uint16, len(x))
	narrowHalf(na, x)
	narrowPortable(nb, x)
	halfPortable(a[:len(na)], na)
	halfPortable(b[:len(nb)], nb)
	compareBits(t, "narrowHalf", a, b)
}

func compareBits(t *testing.T, name string, got, want []float32) {
	t.Helper()
	for i := range want {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) && (got[i] == got[i] || want[i] == want[i]) {
			t.Fatalf("%s: element %d is %g, the portable loop gives %g", name, i, got[i], want[i])
		}
	}
}

func TestVectorLoops(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range lengths {
		a, b, h := randomFloats(r, n), randomFloats(r, n), randomHalves(r, n)
		near(t, fmt.Sprintf("dot %d", n), dot(a, b), dotPortable(a, b), 1e-4)
		near(t, fmt.Sprintf("dotHalf %d", n), dotHalf(h, b), dotHalfPortable(h, b), 1e-4)
		bytes := make([]byte, n)
		for i := range bytes {
			bytes[i] = byte(r.Uint32())
		}
		got, want := make([]float32, n), make([]float32, n)
		cvtInt8(got, bytes)
		int8Portable(want, bytes)
		compareBits(t, "cvtInt8", got, want)
		cvtUint8(got, bytes)
		uint8Portable(want, bytes)
		compareBits(t, "cvtUint8", got, want)
		scaleRow(got, 0.3, 7)
		scalePortable(want, 0.3, 7)
		compareBits(t, "scaleRow", got, want)
		for _, k := range []int{0, 1, 5} {
			w, x := randomFloats(r, 4*(k+2)), randomFloats(r, k*tileCols)
			y1, y2 := randomFloats(r, 4*(n+tileCols)), make([]float32, 4*(n+tileCols))
			copy(y2, y1)
			tile4(y1, n+tileCols, w, k+2, x, k)
			tile4Portable(y2, n+tileCols, w, k+2, x, k)
			for i := range y1 {
				near(t, fmt.Sprintf("tile4 ys=%d k=%d", n+tileCols, k), y1[i], y2[i], 1e-5)
			}
			xh := randomHalves(r, k*(n+3))
			axpyHalf(y1[:n], w[:k], xh, n+3)
			axpyHalfPortable(y2[:n], w[:k], xh, n+3)
			for i := range y1 {
				near(t, fmt.Sprintf("axpyHalf n=%d k=%d", n, k), y1[i], y2[i], 1e-4)
			}
		}
	}
}

func near(t *testing.T, name string, got, want float32, tol float64) {
	t.Helper()
	if d := math.Abs(float64(got - want)); d > tol*(1+math.Abs(float64(want))) || d != d {
		t.Fatalf("%s: %g, the portable loop gives %g", name, got, want)
	}
}

// TestLUTLoops looks up every index through the vector loops, at every place
// in a row and for rows that begin inside a byte.
func TestLUTLoops(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, tc := range []struct {
		d    tensor.DType
		rows int
		cols int
		g    []int
	}{
		{tensor.UInt6, 8, 256, []int{2, 1}}, {tensor.UInt6, 3, 100, []int{1, 1}}, {tensor.UInt6, 4, 33, []int{1, 1}},
		{tensor.UInt6, 4, 192, []int{1, 3}}, {tensor.UInt4, 8, 256, []int{8, 1}}, {tensor.UInt4, 5, 65, []int{1, 1}},
		{tensor.UInt4, 4, 128, []int{2, 4}}, {tensor.UInt2, 4, 64, []int{1, 1}}, {tensor.UInt8, 4, 64, []int{1, 1}},
		{tensor.UInt3, 4, 64, []int{1, 1}}, {tensor.UInt1, 4, 70, []int{1, 1}},
	} {
		t.Run(fmt.Sprintf("%s/%dx%d/%v", tc.d, tc.rows, tc.cols, tc.g), func(t *testing.T) {
			n := 1 << tc.d.Bits()
			data := make([]byte, tc.d.ByteSize(int64(tc.rows*tc.cols)))
			for i := range data {
				data[i] = byte(r.Uint32())
			}
			tables := tc.g[0] * tc.g[1]
			lut := &value{dtype: tensor.FP16, shape: append(append([]int{}, tc.g...), n, 1), h: randomHalves(r, tables*n)}
			w, _, err := newLUT(packed{tc.d, []int{tc.rows, tc.cols}, data}, lut, 0)
			if err != nil {
				t.Fatal(err)
			}
			x := randomFloats(r, tc.cols)
			all := make([]float32, tc.rows)
			w.dotRows(all, x, 0, make([]float32, tc.cols))
			got, buf := make([]float32, tc.cols), make([]float32, tc.cols)
			for row := range tc.rows {
				want := make([]float32, tc.cols)
				for k := range want {
					g := row/(tc.rows/tc.g[0])*tc.g[1] + k/(tc.cols/tc.g[1])
					want[k] = lut.wide()[g*n+int(index(data, tc.d.Bits(), row*tc.cols+k))]
				}
				w.row(got, row)
				compareBits(t, "row", got, want)
				near(t, "dotRow", w.dotRow(x, row, buf), dotPortable(want, x), 1e-4)
				near(t, "dotRows", all[row], dotPortable(want, x), 1e-4)
			}
		})
	}
}

func BenchmarkKernels(b *testing.B) {
	r := rand.New(rand.NewPCG(5, 6))
	const rows, cols = 256, 2048
	x, buf := randomFloats(r, cols), make([]float32, cols)
	for _, d := range []tensor.DType{tensor.UInt4, tensor.UInt6, tensor.UInt8} {
		data := make([]byte, d.ByteSize(rows*cols))
		for i := range data {
			data[i] = byte(r.Uint32())
		}
		n := 1 << d.Bits()
		lut := &value{dtype: tensor.FP16, shape: []int{1, 1, n, 1}, h: randomHalves(r, n)}
		w, _, err := newLUT(packed{d, []int{rows, cols}, data}, lut, 0)
		if err != nil {
			b.Fatal(err)
		}
		b.Run("lut"+d.String(), func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				for row := range rows {
					w.dotRow(x, row, buf)
				}
			}
		})
	}
	h := dense{&value{dtype: tensor.FP16, shape: []int{rows, cols}, h: randomHalves(r, rows*cols)}, rows, cols}
	b.Run("fp16", func(b *testing.B) {
		b.SetBytes(2 * rows * cols)
		for b.Loop() {
			for row := range rows {
				h.dotRow(x, row, nil)
			}
		}
	})
	b.Run("tile", func(b *testing.B) {
		const n = 64
		xs, y := randomFloats(r, cols*n), make([]float32, 8*n)
		b.SetBytes(8 * cols * n)
		for b.Loop() {
			for q := 0; q < cols; q += panelDepth {
				mulAdd(y, n, h.v.wide()[q:], cols, xs, cols, n, q, q+panelDepth, 8)
			}
		}
	})
}

// TestProven: loops that are wrong are found out before they are used.
func TestProven(t *testing.T) {
	for _, n := range []int{4, 6} {
		l := vectorLUT(n)
		if l == nil {
			t.Skip("this build has no vector loops")
		}
		if !l.proven(n) {
			t.Errorf("the %d-bit loops are not right", n)
		}
		bad := *l
		bad.dot = func(*float32, *byte, *byte, *float32, int, int) {}
		if bad.proven(n) {
			t.Errorf("%d bits: a dot product of 0 passes", n)
		}
		bad = *l
		bad.lookup = func(*float32, *byte, *byte, int) {}
		if bad.proven(n) {
			t.Errorf("%d bits: a look-up that does nothing passes", n)
		}
	}
}
