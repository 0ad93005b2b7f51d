package sample

import "math"

// log is the natural logarithm of x > 0, with the same bits on every
// platform, as exp is. It is within 2 units in the last place.
func log(x float64) float64 {
	const (
		ln2Hi = 0.6931471803691238
		ln2Lo = 1.9082149292705877e-10
	)
	m, k := math.Frexp(x)
	if m < math.Sqrt2/2 {
		m *= 2
		k--
	}
	// ln m = 2 artanh s; |s| <= 0.172, so the first term left out is below
	// 2**-60.
	s := (m - 1) / (m + 1)
	s2 := float64(s * s)
	p := 0.0
	for n := 23; n >= 3; n -= 2 {
		p = float64(s2 * (1/float64(n) + p))
	}
	r := 2 * (s + float64(s*p))
	return float64(float64(k)*ln2Hi) + (r + float64(float64(k)*ln2Lo))
}
