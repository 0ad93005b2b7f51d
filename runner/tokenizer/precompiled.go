package tokenizer

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// charsmap is the compiled normalization table of SentencePiece: a double-array trie whose values are offsets
// of NUL-terminated replacements.
type charsmap struct {
	trie []uint32
	repl []byte
	// longest asks for SentencePiece's own rule instead of that of the Rust tokenizers.
	longest bool
}

func newPrecompiled(encoded string) (normalizer, error) {
	data, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return nil, fmt.Errorf("precompiled_charsmap: %w", err)
	}
	if len(data) < 4 {
		return nil, fmt.Errorf("precompiled_charsmap has %d bytes, want at least 4", len(data))
	}
	n := binary.LittleEndian.Uint32(data)
	data = data[4:]
	if n%4 != 0 || uint64(n) > uint64(len(data)) {
		return nil, fmt.Errorf("precompiled_charsmap: trie has %d bytes, want a multiple of 4 up to %d", n, len(data))
	}
	c := &charsmap{trie: make([]uint32, n/4), repl: data[n:]}
	for i := range c.trie {
		c.trie[i] = binary.LittleEndian.Uint32(data[4*i:])
	}
	return c, nil
}

// normalize implements normalizer: as the Rust tokenizers do it, by clusters, or as SentencePiece does.
func (c *charsmap) normalize(s string) (string, error) {
	if c.longest {
		return c.byLongest(s), nil
	}
	return c.byClusters(s), nil
}

// byLongest replaces the longest key at each place.
func (c *charsmap) byLongest(s string) string {
	var b strings.Builder
	for s != "" {
		r, n := c.lookUp(s, true)
		if n == 0 {
			_, n = utf8.DecodeRuneInString(s)
			r = []byte(s[:n])
		}
		b.Write(r)
		s = s[n:]
	}
	return b.String()
}

func (c *charsmap) byClusters(s string) string {
	var b strings.Builder
	state := -1
	for rest := s; rest != ""; {
		var g string
		g, rest, _, state = uniseg.FirstGraphemeClusterInString(rest, state)
		if len(g) < 6 {
			if r, ok := c.replacement(g); ok {
				b.Write(r)
				continue
			}
		}
		for _, r := range g {
			ch := string(r)
			if x, ok := c.replacement(ch); ok {
				b.Write(x)
			} else {
				b.WriteString(ch)
			}
		}
	}
	return b.String()
}

// replacement returns what the shortest key that s starts with stands for.
func (c *charsmap) replacement(s string) ([]byte, bool) {
	r, n := c.lookUp(s, false)
	return r, n > 0
}

// lookUp walks the trie and returns what the shortest or the longest key that s starts with stands for, and the
// length of the key, 0 for none.
func (c *charsmap) lookUp(s string, longest bool) (out []byte, n int) {
	if len(c.trie) == 0 {
		return nil, 0
	}
	at := offset(c.trie[0])
	for i := range len(s) {
		if s[i] == 0 {
			break
		}
		at ^= uint32(s[i])
		if uint64(at) >= uint64(len(c.trie)) {
			break
		}
		unit := c.trie[at]
		if unit&(1<<31|0xFF) != uint32(s[i]) {
			break
		}
		at ^= offset(unit)
		if unit>>8&1 == 1 { // it has a value
			if uint64(at) >= uint64(len(c.trie)) {
				break
			}
			if r, ok := c.at(c.trie[at] & (1<<31 - 1)); ok {
				out, n = r, i+1
			}
			if !longest {
				break
			}
		}
	}
	return out, n
}

// offset returns the distance to the children that a trie unit holds.
func offset(unit uint32) uint32 { return unit >> 10 << (unit >> 6 & 8) }

func (c *charsmap) at(i uint32) ([]byte, bool) {
	if uint64(i) > uint64(len(c.repl)) {
		return nil, false
	}
	r := c.repl[i:]
	if n := bytes.IndexByte(r, 0); n >= 0 {
		r = r[:n]
	}
	return r, true
}
