package cpu

import (
	"sync"

	"github.com/anepkg/anepkg/coreml/tensor"
)

// A function of one fp16 number has 65536 results: large operands look them
// up instead of computing them, with the very same outcome.
type halfTable struct {
	once sync.Once
	out  []float32 // by bit pattern, rounded to fp16
}

// halfTableMin is the operand size from which a table is worth making.
const halfTableMin = 1 << 13

// fill computes the table once.
func (t *halfTable) fill(f func(float64) float64) {
	t.once.Do(func() {
		out := make([]float32, 1<<16)
		for h := range out {
			out[h] = tensor.RoundF16(float32(f(float64(tensor.F16ToF32(uint16(h))))))
		}
		t.out = out
	})
}

// apply writes the results for src, whose numbers are all fp16.
func (t *halfTable) apply(dst, src []float32) {
	var bits [256]uint16
	for len(src) > 0 {
		n := min(len(src), len(bits))
		narrowHalf(bits[:n], src[:n])
		for k, h := range bits[:n] {
			dst[k] = t.out[h]
		}
		dst, src = dst[n:], src[n:]
	}
}
