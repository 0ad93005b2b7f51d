package sample

import (
	"math"

	"github.com/anepkg/anepkg/coreml/diag"
)

// Logprob is a token and the natural logarithm of its probability; -Inf for
// a probability of 0.
type Logprob struct {
	ID      int     `json:"id"`
	Logprob float64 `json:"logprob"`
}

// Logprobs returns the log probability of each of ids and the n best tokens,
// best first, the lowest id of equals first. The distribution is the model's
// own: the softmax of logits as they are, before bias, penalties and
// temperature. An id outside logits has the probability 0. Empty logits or a
// NaN are an error of class diag.RunFailed, a negative n one of class
// diag.Usage.
func Logprobs(logits []float32, n int, ids ...int) (of []float64, top []Logprob, err error) {
	if n < 0 {
		return nil, nil, diag.Errorf(diag.Pos{}, diag.Usage, "%d best tokens, want 0 or more", n)
	}
	best, err := Greedy(logits)
	if err != nil {
		return nil, nil, err
	}
	highest := float64(logits[best])
	cands := weigh(nil, logits, highest, 1)
	total := 0.0
	for _, c := range cands {
		total += c.weight
	}
	lse := log(total)
	value := func(id int) float64 {
		if id < 0 || id >= len(logits) {
			return math.Inf(-1)
		}
		v := float64(logits[id])
		switch {
		case v == highest: // also when both are infinite
			return -lse
		case math.IsInf(highest, 1):
			return math.Inf(-1)
		}
		return v - highest - lse
	}
	of = make([]float64, len(ids))
	for i, id := range ids {
		of[i] = value(id)
	}
	top = make([]Logprob, 0, min(n, len(cands)))
	for _, id := range highestIDs(logits, n) {
		top = append(top, Logprob{id, value(id)})
	}
	return of, top, nil
}

// highestIDs returns the n ids with the highest logits, best first.
func highestIDs(logits []float32, n int) []int {
	if n = min(n, len(logits)); n == 0 {
		return nil
	}
	all := make([]candidate, len(logits))
	for i, v := range logits {
		all[i] = candidate{id: i, weight: float64(v)}
	}
	kept := take(all, n, 0)
	out := make([]int, len(kept))
	for i, c := range kept {
		out[i] = c.id
	}
	return out
}
