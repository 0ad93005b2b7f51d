package tokenizer

import "unicode/utf8"

// byteRunes is the byte-level alphabet: a visible character for every byte.
var byteRunes = func() (out [256]rune) {
	next := rune(256)
	for b := range out {
		if b >= '!' && b <= '~' || b >= 0xA1 && b <= 0xAC || b >= 0xAE {
			out[b] = rune(b)
		} else {
			out[b] = next
			next++
		}
	}
	return out
}()

// runeBytes is the inverse of byteRunes; -1 for runes that stand for no byte.
var runeBytes = func() (out [324]int16) {
	for i := range out {
		out[i] = -1
	}
	for b, r := range byteRunes {
		out[r] = int16(b)
	}
	return out
}()

// appendByteLevel appends the byte-level form of s.
func appendByteLevel(dst []byte, s string) []byte {
	for i := range len(s) {
		dst = utf8.AppendRune(dst, byteRunes[s[i]])
	}
	return dst
}

// appendFromByteLevel appends the bytes that s stands for, or s itself if it is not all byte-level.
func appendFromByteLevel(dst []byte, s string) []byte {
	out := dst
	for _, r := range s {
		if int(r) >= len(runeBytes) || runeBytes[r] < 0 {
			out = nil
			break
		}
		out = append(out, byte(runeBytes[r]))
	}
	if out == nil {
		return append(dst, s...)
	}
	return out
}
