package mil

import (
	"math"
	"strconv"

	"github.com/anepkg/anepkg/coreml/tensor"
)

// parseFloat reads a float literal: hex as C's %a prints it, decimal, inf or
// nan, with an optional sign.
func parseFloat(b []byte) (float64, bool) {
	if f, ok := parseHexFloat(b); ok {
		return f, true
	}
	t := b
	if len(t) > 0 && (t[0] == '-' || t[0] == '+') {
		t = t[1:]
	}
	switch {
	case string(t) == "inf":
		if b[0] == '-' {
			return math.Inf(-1), true
		}
		return math.Inf(1), true
	case string(t) == "nan":
		return math.NaN(), true
	case len(t) == 0 || classes[t[0]]&classDigit == 0:
		return 0, false
	}
	for _, c := range t {
		if c == '_' { // Go's own separator, no part of the format
			return 0, false
		}
	}
	f, err := strconv.ParseFloat(string(b), 64)
	return f, err == nil
}

// parseHexFloat reads the common form, up to 53 significant bits and an
// exponent of up to three digits, exactly and without allocating.
func parseHexFloat(b []byte) (float64, bool) {
	neg := false
	if len(b) > 0 && b[0] == '-' {
		neg, b = true, b[1:]
	}
	if len(b) < 5 || b[0] != '0' || b[1] != 'x' {
		return 0, false
	}
	var man uint64
	exp, i, digits := 0, 2, 0
	frac := false
	for ; i < len(b) && b[i] != 'p'; i++ {
		if b[i] == '.' && !frac {
			frac = true
			continue
		}
		d, ok := hexDigit(b[i])
		if !ok || digits == 13 {
			return 0, false
		}
		if man != 0 || d != 0 {
			digits++
		}
		man = man<<4 | uint64(d)
		if frac {
			exp -= 4
		}
	}
	e, ok := smallInt(b[min(i+1, len(b)):])
	if !ok {
		return 0, false
	}
	f := math.Ldexp(float64(man), exp+e)
	if neg {
		f = -f
	}
	return f, true
}

func hexDigit(c byte) (byte, bool) {
	switch {
	case c >= '0' && c <= '9':
		return c - '0', true
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10, true
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}

// smallInt reads a signed number of up to four digits.
func smallInt(b []byte) (int, bool) {
	neg := false
	if len(b) > 0 && (b[0] == '-' || b[0] == '+') {
		neg, b = b[0] == '-', b[1:]
	}
	if len(b) == 0 || len(b) > 4 {
		return 0, false
	}
	n := 0
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	if neg {
		n = -n
	}
	return n, true
}

// parseInt reads a decimal integer of up to 64 bits. Values from 2^63 on come
// back as their two's complement with big set.
func parseInt(b []byte) (v int64, big, ok bool) {
	neg := false
	if len(b) > 0 && (b[0] == '-' || b[0] == '+') {
		neg, b = b[0] == '-', b[1:]
	}
	if len(b) == 0 || len(b) > 20 {
		return 0, false, false
	}
	var n uint64
	for _, c := range b {
		d := uint64(c - '0')
		if d > 9 || n > (math.MaxUint64-d)/10 {
			return 0, false, false
		}
		n = n*10 + d
	}
	switch {
	case neg && n > 1<<63:
		return 0, false, false
	case neg:
		return -int64(n), false, true
	}
	return int64(n), n > math.MaxInt64, true
}

// intFits reports whether an integer literal is in the range of d.
func intFits(d tensor.DType, v int64, big bool) bool {
	bits := d.Bits()
	switch {
	case d == tensor.UInt64:
		return big || v >= 0
	case big:
		return false
	case d.IsUnsigned():
		return v >= 0 && v < 1<<bits
	case bits == 64:
		return true
	}
	return v >= -1<<(bits-1) && v < 1<<(bits-1)
}

// roundFloat rounds f to a value of d that float32 holds exactly. ok is false
// when a finite f is beyond the range of d.
func roundFloat(d tensor.DType, f float64) (v float32, ok bool) {
	v = float32(f)
	switch d {
	case tensor.FP16:
		v = tensor.F16ToF32(tensor.F32ToF16(v))
	case tensor.BF16:
		v = tensor.BF16ToF32(tensor.F32ToBF16(v))
	}
	return v, !math.IsInf(float64(v), 0) || math.IsInf(f, 0)
}

// appendHexFloat prints f as text MIL does: C's %a with a mantissa that
// starts with 1, also for subnormal numbers.
func appendHexFloat(b []byte, f float64) []byte {
	bits := math.Float64bits(f)
	if f != f {
		return append(b, "nan"...)
	}
	if bits>>63 != 0 {
		b = append(b, '-')
	}
	exp := int(bits>>52) & 0x7ff
	man := bits & (1<<52 - 1)
	switch {
	case exp == 0x7ff:
		return append(b, "inf"...)
	case exp == 0 && man == 0:
		return append(b, "0x0p+0"...)
	case exp == 0:
		exp = -1022
		for man&(1<<52) == 0 {
			man <<= 1
			exp--
		}
		man &= 1<<52 - 1
	default:
		exp -= 1023
	}
	b = append(b, "0x1"...)
	if man != 0 {
		b = append(b, '.')
		for ; man != 0; man = man << 4 & (1<<52 - 1) {
			b = append(b, "0123456789abcdef"[man>>48])
		}
	}
	b = append(b, 'p')
	if exp >= 0 {
		b = append(b, '+')
	}
	return strconv.AppendInt(b, int64(exp), 10)
}
