package sample

import "math"

// candidate is a token that may be chosen and its weight: exp of its scaled
// logit relative to the best.
type candidate struct {
	id     int
	weight float64
}

// draw chooses by chance. best is the id of the highest logit, none is NaN.
func (s *Sampler) draw(logits []float32, best int) int {
	s.cands = weigh(s.cands[:0], logits, float64(logits[best]), s.cfg.Temperature)
	kept := keep(s.cands, s.cfg.TopK, s.cfg.TopP, s.cfg.MinP)
	kept = typical(kept, s.cfg.TypicalP)
	return pick(kept, s.rng.Float64())
}

// weigh appends a candidate for each logit that has any chance. The weights
// are relative to the best, so none overflows; if the best is +Inf only its
// equals count.
func weigh(out []candidate, logits []float32, best, temperature float64) []candidate {
	for i, v := range logits {
		w := 1.0
		if x := float64(v); x != best {
			if math.IsInf(best, 1) {
				continue
			}
			if w = exp((x - best) / temperature); w == 0 {
				continue
			}
		}
		out = append(out, candidate{i, w})
	}
	return out
}

// keep narrows the candidates to the k best, then to the fewest best whose
// share of those reaches topP, then to those of at least minP times the
// best's weight. It reorders c; the result is a part of it. At least one
// candidate stays.
func keep(c []candidate, topK int, topP, minP float64) []candidate {
	if topK <= 0 && (topP <= 0 || topP >= 1) {
		return atLeast(c, minP)
	}
	n := len(c)
	if topK > 0 && topK < n {
		n = topK
	}
	return atLeast(take(c, n, topP), minP)
}

// take moves candidates to the front of c, best first, until there are n of
// them, or until their share of the n best reaches topP.
func take(c []candidate, n int, topP float64) []candidate {
	nucleus := topP > 0 && topP < 1
	total := 0.0
	if nucleus && n == len(c) {
		for _, x := range c {
			total += x.weight
		}
	}
	heap := c
	for i := len(heap)/2 - 1; i >= 0; i-- {
		sink(heap, i)
	}
	var out []candidate
	sum := 0.0
	for len(out) < n && len(heap) > 0 {
		top := heap[0]
		last := len(heap) - 1
		heap[0] = heap[last]
		heap = heap[:last]
		sink(heap, 0)
		out = append(out, top)
		sum += top.weight
		if total > 0 && sum >= topP*total {
			return out
		}
	}
	if !nucleus || total > 0 {
		return out
	}
	part := 0.0
	for i, x := range out { // top-p among the k best
		if part += x.weight; part >= topP*sum {
			return out[:i+1]
		}
	}
	return out
}

// atLeast filters in place; weights are relative to the best, which has 1.
func atLeast(c []candidate, minP float64) []candidate {
	if minP <= 0 {
		return c
	}
	out := c[:0]
	for _, x := range c {
		if x.weight >= minP {
			out = append(out, x)
		}
	}
	return out
}

// pick returns the id whose share of the weights holds u, from [0, 1).
func pick(c []candidate, u float64) int {
	total := 0.0
	for _, x := range c {
		total += x.weight
	}
	rest := u * total
	for _, x := range c {
		if rest -= x.weight; rest < 0 {
			return x.id
		}
	}
	return c[len(c)-1].id
}

func better(a, b candidate) bool {
	return a.weight > b.weight || a.weight == b.weight && a.id < b.id
}

// sink restores the heap order (best at the root) below i.
func sink(h []candidate, i int) {
	for {
		child := 2*i + 1
		if child >= len(h) {
			return
		}
		if r := child + 1; r < len(h) && better(h[r], h[child]) {
			child = r
		}
		if !better(h[child], h[i]) {
			return
		}
		h[i], h[child] = h[child], h[i]
		i = child
	}
}
