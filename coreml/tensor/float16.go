package tensor

import "math"

// F16ToF32 widens one IEEE binary16 value; exact.
func F16ToF32(h uint16) float32 { return f16Table[h] }

var f16Table = func() *[65536]float32 {
	t := new([65536]float32)
	for i := range t {
		t[i] = f16Slow(uint16(i))
	}
	return t
}()

func f16Slow(h uint16) float32 {
	sign := uint32(h&0x8000) << 16
	exp := uint32(h>>10) & 0x1f
	man := uint32(h & 0x3ff)
	switch exp {
	case 0x1f:
		return math.Float32frombits(sign | 0x7f800000 | man<<13)
	case 0:
		f := float32(man) * (1.0 / (1 << 24))
		return math.Float32frombits(math.Float32bits(f) | sign)
	}
	return math.Float32frombits(sign | (exp+112)<<23 | man<<13)
}

// F32ToF16 narrows to IEEE binary16, rounding to nearest, ties to even;
// values beyond the range become infinities, NaN stays NaN.
func F32ToF16(f float32) uint16 {
	b := math.Float32bits(f)
	sign := uint16(b>>16) & 0x8000
	b &= 0x7fffffff
	switch {
	case b >= 0x7f800000:
		if b > 0x7f800000 {
			return sign | 0x7e00 | uint16(b>>13)&0x3ff
		}
		return sign | 0x7c00
	case b >= 0x477ff000: // 65520 and above round to infinity
		return sign | 0x7c00
	case b >= 0x38800000: // normal
		b += 0xfff + (b>>13)&1
		return sign | uint16((b-0x38000000)>>13)
	case b < 0x33000000: // below half of the smallest subnormal
		return sign
	}
	// Subnormal: adding 0.5 aligns the mantissa so that the addition rounds.
	v := math.Float32frombits(b) + 0.5
	return sign | uint16(math.Float32bits(v)-0x3f000000)
}

// RoundF16 rounds f to the nearest fp16 value and returns it as float32.
func RoundF16(f float32) float32 { return f16Table[F32ToF16(f)] }

// RoundF16Slice rounds every element in place as RoundF16 does.
func RoundF16Slice(x []float32) {
	for i, v := range x {
		b := math.Float32bits(v)
		if a := b & 0x7fffffff; a >= 0x38800000 && a < 0x477ff000 {
			b += 0xfff + (b>>13)&1
			x[i] = math.Float32frombits(b &^ 0x1fff)
			continue
		}
		x[i] = f16Table[F32ToF16(v)]
	}
}

// BF16ToF32 widens one bfloat16 value; exact.
func BF16ToF32(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }

// F32ToBF16 narrows to bfloat16, rounding to nearest, ties to even.
func F32ToBF16(f float32) uint16 {
	b := math.Float32bits(f)
	if b&0x7fffffff > 0x7f800000 {
		return uint16(b>>16) | 0x40
	}
	return uint16((b + 0x7fff + (b>>16)&1) >> 16)
}

// F8E4M3FNToF32 widens one fp8 e4m3fn value: no infinities, 0x7f is NaN.
func F8E4M3FNToF32(v uint8) float32 {
	sign, exp, man := uint32(v&0x80)<<24, uint32(v>>3)&0xf, uint32(v&7)
	switch {
	case v&0x7f == 0x7f:
		return float32(math.NaN())
	case exp == 0:
		return math.Float32frombits(math.Float32bits(float32(man)/512) | sign)
	}
	return math.Float32frombits(sign | (exp+120)<<23 | man<<20)
}

// F8E5M2ToF32 widens one fp8 e5m2 value, which is the upper byte of an fp16.
func F8E5M2ToF32(v uint8) float32 { return f16Table[uint16(v)<<8] }
