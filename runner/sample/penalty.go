package sample

import "math"

// Penalize lowers, in place, the logit of every distinct id of history: a
// positive one is divided by penalty, any other multiplied. Ids outside
// logits are ignored.
func Penalize(logits []float32, history []int, penalty float64) {
	seen := make(map[int]bool, len(history))
	for _, id := range history {
		if id < 0 || id >= len(logits) || seen[id] {
			continue
		}
		seen[id] = true
		if v := float64(logits[id]); v > 0 {
			logits[id] = float32(v / penalty)
		} else {
			logits[id] = float32(v * penalty)
		}
	}
}

// PenalizeCounts subtracts, in place, frequency times its count and once
// presence from the logit of every id of generated, as OpenAI's API defines
// the two. Ids outside logits are ignored.
func PenalizeCounts(logits []float32, generated []int, frequency, presence float64) {
	counts := make(map[int]int, len(generated))
	for _, id := range generated {
		if id >= 0 && id < len(logits) {
			counts[id]++
		}
	}
	for id, n := range counts {
		logits[id] = float32(float64(logits[id]) - float64(float64(n)*frequency) - presence)
	}
}

// AddBias adds, in place, a number to the logit of each id of bias; -Inf
// forbids a token. Ids outside logits are ignored.
func AddBias(logits []float32, bias map[int]float64) {
	for id, b := range bias {
		switch {
		case id < 0 || id >= len(logits):
		case math.IsInf(b, -1):
			logits[id] = float32(b)
		default:
			logits[id] = float32(float64(logits[id]) + b)
		}
	}
}
