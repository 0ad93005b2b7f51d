package cpu

import (
	"math"
	"testing"

	"github.com/anepkg/anepkg/coreml/tensor"
)

// TestHalfTable: a table gives for every fp16 number what computing gives.
func TestHalfTable(t *testing.T) {
	for name, f := range map[string]func(float64) float64{"silu": silu, "exp": math.Exp, "tanh": math.Tanh, "sqrt": math.Sqrt} {
		var table halfTable
		table.fill(f)
		src, got := make([]float32, 1<<16), make([]float32, 1<<16)
		for h := range src {
			src[h] = tensor.F16ToF32(uint16(h))
		}
		table.apply(got, src)
		for h, x := range src {
			want := tensor.RoundF16(float32(f(float64(x))))
			if got[h] != want && (got[h] == got[h] || want == want) {
				t.Fatalf("%s(%g) is %g, computed %g", name, x, got[h], want)
			}
		}
	}
}
