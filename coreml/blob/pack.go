package blob

// Sub-byte elements are packed least significant bit first into a continuous
// stream: element i takes the bits [i*width, (i+1)*width) counted from bit 0
// of byte 0, and may straddle two bytes (apple/coremltools,
// mlmodel/src/MILBlob/SubByteTypes.cpp).

// PackedSize returns the bytes that n elements of width bits take.
func PackedSize(n, width int) int { return (n*width + 7) / 8 }

// Unpack returns the n elements of width 1 to 8 bits that src packs. It
// returns nil when src is too short, n is negative or width is out of range.
func Unpack(src []byte, width, n int) []uint8 {
	if width < 1 || width > 8 || n < 0 || n > len(src)*8/width {
		return nil
	}
	out := make([]uint8, n)
	mask := uint32(1)<<width - 1
	var acc uint32
	have, at := 0, 0
	for i := range out {
		if have < width {
			acc |= uint32(src[at]) << have
			at++
			have += 8
		}
		out[i] = uint8(acc & mask)
		acc >>= width
		have -= width
	}
	return out
}

// UnpackSigned is Unpack for two's complement elements such as int4.
func UnpackSigned(src []byte, width, n int) []int8 {
	u := Unpack(src, width, n)
	if u == nil {
		return nil
	}
	out := make([]int8, n)
	shift := 8 - width
	for i, v := range u {
		out[i] = int8(v<<shift) >> shift
	}
	return out
}

// Pack is the inverse of Unpack; bits above width are dropped. It returns nil
// when width is out of range. For two's complement pass the low bits.
func Pack(values []uint8, width int) []byte {
	if width < 1 || width > 8 {
		return nil
	}
	out := make([]byte, PackedSize(len(values), width))
	mask := uint32(1)<<width - 1
	for i, v := range values {
		bit := i * width
		w := (uint32(v) & mask) << (bit % 8)
		out[bit/8] |= byte(w)
		if w > 0xff {
			out[bit/8+1] |= byte(w >> 8)
		}
	}
	return out
}
