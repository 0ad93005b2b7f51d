package mil

// tokKind is the class of a token.
type tokKind uint8

const (
	tokEOF    tokKind = iota
	tokIdent          // letters, digits, underscores
	tokNumber         // decimal or hex, with its sign; also -inf
	tokString         // quotes included
	tokArrow          // ->
	tokPunct          // one of ( ) [ ] { } < > , ; = ? *
	tokBad            // a byte that starts no token, or an unclosed string
)

// token is a piece of the source. Its text is src[start:end].
type token struct {
	kind       tokKind
	punct      byte // the byte of a tokPunct, else 0
	start, end int
	pos        Pos
}

// scanner cuts text MIL into tokens. There are no comments in the format.
type scanner struct {
	src       []byte
	off       int
	line      int32
	lineStart int
}

// charClass tells what a byte may be part of.
type charClass uint8

const (
	classSpace charClass = 1 << iota
	classIdentStart
	classDigit
	classPunct
	classWord // identifier or number, after the first byte
)

var classes = func() (t [256]charClass) {
	for _, c := range " \t\r\n" {
		t[c] |= classSpace
	}
	for c := 'a'; c <= 'z'; c++ {
		t[c] |= classIdentStart | classWord
		t[c-'a'+'A'] |= classIdentStart | classWord
	}
	t['_'] |= classIdentStart | classWord
	for c := '0'; c <= '9'; c++ {
		t[c] |= classDigit | classWord
	}
	for _, c := range "()[]{}<>,;=?*" {
		t[c] |= classPunct
	}
	return t
}()

// next returns the next token; at the end it returns tokEOF forever.
func (s *scanner) next() token {
	src, i := s.src, s.off
	for i < len(src) && classes[src[i]]&classSpace != 0 {
		if src[i] == '\n' {
			s.line++
			s.lineStart = i + 1
		}
		i++
	}
	t := token{start: i, end: i, pos: Pos{Line: s.line, Col: int32(i - s.lineStart + 1)}}
	if i >= len(src) {
		s.off = i
		return t
	}
	c := src[i]
	switch class := classes[c]; {
	case class&classPunct != 0:
		t.kind, t.punct = tokPunct, c
		i++
	case class&classIdentStart != 0:
		t.kind = tokIdent
		for i < len(src) && classes[src[i]]&classWord != 0 {
			i++
		}
	case c == '"':
		t.kind, i = s.scanString(i)
	case c == '-' && i+1 < len(src) && src[i+1] == '>':
		t.kind = tokArrow
		i += 2
	case class&classDigit != 0 || c == '-' || c == '+':
		t.kind = tokNumber
		i = scanNumber(src, i)
	default:
		t.kind = tokBad
		i++
	}
	t.end = i
	s.off = i
	return t
}

// scanString returns the end of the string that starts at i. A string does
// not go past the end of its line.
func (s *scanner) scanString(i int) (tokKind, int) {
	for j := i + 1; j < len(s.src); j++ {
		switch s.src[j] {
		case '"':
			return tokString, j + 1
		case '\n':
			return tokBad, j
		case '\\':
			j++
			if j < len(s.src) && s.src[j] == '\n' {
				return tokBad, j
			}
		}
	}
	return tokBad, len(s.src)
}

// scanNumber returns the end of the number that starts at i: a sign, then
// letters, digits and dots, and a second sign right after an exponent mark
// (p in a hex number, e in a decimal one). What it means is checked later.
func scanNumber(src []byte, i int) int {
	if src[i] == '-' || src[i] == '+' {
		i++
	}
	hex := i+1 < len(src) && src[i] == '0' && src[i+1]|0x20 == 'x'
	for ; i < len(src); i++ {
		c := src[i]
		if classes[c]&classWord != 0 || c == '.' {
			continue
		}
		if c == '-' || c == '+' {
			if prev := src[i-1] | 0x20; prev == 'p' && hex || prev == 'e' && !hex {
				continue
			}
		}
		break
	}
	return i
}
