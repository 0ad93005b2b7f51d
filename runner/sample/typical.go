package sample

import (
	"math"
	"slices"
)

// typical keeps the candidates whose information -ln(p) is nearest to the
// entropy of all, the nearest first, until their probability reaches p; those
// as near as the last stay too (the rule of transformers' typical_p). It
// reorders c; the result is a part of it. At least one candidate stays.
func typical(c []candidate, p float64) []candidate {
	if p <= 0 || p >= 1 || len(c) < 2 {
		return c
	}
	total := 0.0
	for _, x := range c {
		total += x.weight
	}
	entropy := 0.0
	info := make(map[int]float64, len(c))
	for _, x := range c {
		share := x.weight / total
		info[x.id] = -log(share)
		entropy += float64(share * info[x.id])
	}
	far := func(x candidate) float64 { return math.Abs(info[x.id] - entropy) }
	slices.SortFunc(c, func(a, b candidate) int {
		switch fa, fb := far(a), far(b); {
		case fa < fb:
			return -1
		case fa > fb:
			return 1
		}
		return a.id - b.id
	})
	sum := 0.0
	for i, x := range c {
		if sum += x.weight; sum < p*total {
			continue
		}
		end := i + 1
		for end < len(c) && far(c[end]) == far(x) {
			end++
		}
		return c[:end]
	}
	return c
}
