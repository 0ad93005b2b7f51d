package sample

import "math"

// exp is e**x for x <= 0, with the same bits on every platform: each product
// is rounded by an explicit conversion, so that no compiler fuses it with
// the addition that follows. It is within 2 units in the last place.
func exp(x float64) float64 {
	const (
		log2e = 1.4426950408889634
		ln2Hi = 0.6931471803691238 // high bits of ln 2: k*ln2Hi is exact
		ln2Lo = 1.9082149292705877e-10
	)
	if x != x || x < -708 {
		return 0 // below the smallest normal number: no chance worth counting
	}
	k := math.Floor(float64(x*log2e) + 0.5)
	r := x - float64(k*ln2Hi)
	r -= float64(k * ln2Lo)
	// Taylor series of e**r for |r| <= ln(2)/2, by Horner's rule; the first
	// term left out is below 2**-57.
	p := 1.0
	for n := 14; n >= 1; n-- {
		p = 1 + float64(float64(r/float64(n))*p)
	}
	return math.Ldexp(p, int(k))
}
