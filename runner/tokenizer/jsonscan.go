package tokenizer

import (
	"bytes"
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// maxDepth bounds the nesting of the file.
const maxDepth = 100

// scanner walks JSON bytes without building values.
type scanner struct {
	b   []byte
	i   int
	buf []byte // unescaped text of the last string with escapes
}

func (s *scanner) errorf(format string, args ...any) error {
	return fmt.Errorf("byte %d: %s", s.i, fmt.Sprintf(format, args...))
}

// got describes the byte at the cursor.
func (s *scanner) got() string {
	if s.i >= len(s.b) {
		return "the end of the file"
	}
	return strconv.QuoteRune(rune(s.b[s.i]))
}

// peek skips white space and returns the next byte, 0 at the end.
func (s *scanner) peek() byte {
	for s.i < len(s.b) {
		c := s.b[s.i]
		if c > ' ' {
			return c
		}
		if c != ' ' && c != '\n' && c != '\t' && c != '\r' {
			return c
		}
		s.i++
	}
	return 0
}

func (s *scanner) expect(c byte) error {
	if s.peek() != c {
		return s.errorf("got %s, want %q", s.got(), c)
	}
	s.i++
	return nil
}

// object calls f with each key, the cursor at the value; f must consume the value.
func (s *scanner) object(f func(key []byte) error) error {
	return s.list('{', '}', func() error {
		key, err := s.str()
		if err != nil {
			return err
		}
		if err := s.expect(':'); err != nil {
			return err
		}
		return f(key)
	})
}

// array calls f at each element; f must consume it.
func (s *scanner) array(f func() error) error { return s.list('[', ']', f) }

func (s *scanner) list(open, end byte, f func() error) error {
	if err := s.expect(open); err != nil {
		return err
	}
	if s.peek() == end {
		s.i++
		return nil
	}
	for {
		if err := f(); err != nil {
			return err
		}
		switch s.peek() {
		case ',':
			s.i++
		case end:
			s.i++
			return nil
		default:
			return s.errorf("got %s, want ',' or %q", s.got(), end)
		}
	}
}

// str reads a string. The result is valid until the next call.
func (s *scanner) str() ([]byte, error) {
	if err := s.expect('"'); err != nil {
		return nil, err
	}
	rest := s.b[s.i:]
	n := bytes.IndexByte(rest, '"')
	if n < 0 {
		return nil, s.errorf("string has no end")
	}
	if bytes.IndexByte(rest[:n], '\\') < 0 {
		s.i += n + 1
		return rest[:n], nil
	}
	return s.escaped()
}

var simpleEscapes = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// escaped reads a string with escapes, the cursor after its opening quote.
func (s *scanner) escaped() ([]byte, error) {
	buf := s.buf[:0]
	for s.i < len(s.b) {
		c := s.b[s.i]
		s.i++
		switch c {
		case '"':
			s.buf = buf
			return buf, nil
		case '\\':
			if s.i >= len(s.b) {
				return nil, s.errorf("string has no end")
			}
			e := s.b[s.i]
			s.i++
			if e == 'u' {
				r, err := s.unicodeEscape()
				if err != nil {
					return nil, err
				}
				buf = utf8.AppendRune(buf, r)
			} else if x := simpleEscapes[e]; x != 0 {
				buf = append(buf, x)
			} else {
				return nil, s.errorf("got escape \\%c, want one of \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\u", e)
			}
		default:
			buf = append(buf, c)
		}
	}
	return nil, s.errorf("string has no end")
}

// unicodeEscape reads the digits after \u and, for a surrogate, the second half.
func (s *scanner) unicodeEscape() (rune, error) {
	r, err := s.hex4()
	if err != nil || !utf16.IsSurrogate(r) {
		return r, err
	}
	if s.i+1 < len(s.b) && s.b[s.i] == '\\' && s.b[s.i+1] == 'u' {
		s.i += 2
		r2, err := s.hex4()
		if err != nil {
			return 0, err
		}
		if full := utf16.DecodeRune(r, r2); full != utf8.RuneError {
			return full, nil
		}
	}
	return 0, s.errorf("got lone surrogate \\u%04x, want a pair", r)
}

func (s *scanner) hex4() (rune, error) {
	if s.i+4 > len(s.b) {
		return 0, s.errorf("string has no end")
	}
	n, err := strconv.ParseUint(string(s.b[s.i:s.i+4]), 16, 16)
	if err != nil {
		return 0, s.errorf("got \\u%s, want four hexadecimal digits", s.b[s.i:s.i+4])
	}
	s.i += 4
	return rune(n), nil
}

// literal reads a number, true, false or null and returns its bytes.
func (s *scanner) literal() []byte {
	s.peek()
	start := s.i
	for s.i < len(s.b) {
		switch c := s.b[s.i]; {
		case c >= '0' && c <= '9', c >= 'a' && c <= 'z', c == '-', c == '+', c == '.', c == 'E':
			s.i++
			continue
		}
		break
	}
	return s.b[start:s.i]
}

// integer reads a non-negative integer that fits in 31 bits.
func (s *scanner) integer() (int, error) {
	s.peek()
	start, n := s.i, 0
	for s.i < len(s.b) && s.b[s.i] >= '0' && s.b[s.i] <= '9' {
		if n > (1<<31-10)/10 {
			return 0, s.errorf("got an integer over 31 bits, want a token id")
		}
		n = n*10 + int(s.b[s.i]-'0')
		s.i++
	}
	if s.i == start {
		return 0, s.errorf("got %s, want an integer from 0", s.got())
	}
	return n, nil
}

// value skips a value and returns its bytes. Literals are not checked; whoever decodes the bytes does that.
func (s *scanner) value() ([]byte, error) {
	s.peek()
	start := s.i
	if err := s.skip(0); err != nil {
		return nil, err
	}
	return s.b[start:s.i], nil
}

func (s *scanner) skip(depth int) error {
	if depth > maxDepth {
		return s.errorf("nesting is over %d levels", maxDepth)
	}
	switch s.peek() {
	case '{':
		return s.object(func([]byte) error { return s.skip(depth + 1) })
	case '[':
		return s.array(func() error { return s.skip(depth + 1) })
	case '"':
		_, err := s.str()
		return err
	}
	if len(s.literal()) == 0 {
		return s.errorf("got %s, want a value", s.got())
	}
	return nil
}
