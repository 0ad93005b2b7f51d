package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"sort"
	"strconv"

	"github.com/anepkg/anepkg/coreml/diag"
)

// Bounds for JSON description files.
const (
	maxJSONDepth = 200
	maxJSONNodes = 2 << 20
)

// jsonDoc is a cursor over a JSON text that knows its positions. Callers
// either read a whole value as a Param or walk objects and arrays and skip
// what they do not need, so that a tokenizer of 30 MB is never held as maps.
type jsonDoc struct {
	file  string
	data  []byte
	i     int
	nodes int
	lines []int         // offsets of line starts, built on first use
	dups  []*diag.Error // keys that stand twice in one object, a byte order mark, the first NaN
}

func newJSONDoc(file string, data []byte) *jsonDoc {
	d := &jsonDoc{file: file, data: data}
	if bytes.HasPrefix(data, []byte("\xef\xbb\xbf")) {
		d.i = 3
		d.dups = append(d.dups, &diag.Error{Pos: diag.Pos{File: file, Line: 1, Col: 1}, Code: diag.Malformed, Err: ErrBOM,
			Msg: "the file begins with a byte order mark; Python's json and Rust's serde_json refuse it", Hint: "save the file as UTF-8 without the mark"})
	}
	return d
}

// parseJSON reads one value and nothing after it.
func parseJSON(file string, data []byte) (Param, []*diag.Error, error) {
	d := newJSONDoc(file, data)
	v, err := d.value(0)
	if err == nil {
		err = d.end()
	}
	return v, d.dups, err
}

// pos turns an offset into a position with line and column.
func (d *jsonDoc) pos(off int) diag.Pos {
	if d.lines == nil {
		d.lines = []int{0}
		for k, b := range d.data {
			if b == '\n' {
				d.lines = append(d.lines, k+1)
			}
		}
	}
	n := sort.SearchInts(d.lines, off+1)
	return diag.Pos{File: d.file, Line: n, Col: off - d.lines[n-1] + 1}
}

func (d *jsonDoc) fail(off int, format string, args ...any) error {
	return &diag.Error{Pos: d.pos(min(off, len(d.data))), Code: diag.Malformed, Msg: fmt.Sprintf(format, args...), Err: ErrSyntax}
}

func (d *jsonDoc) space() {
	for d.i < len(d.data) {
		switch d.data[d.i] {
		case ' ', '\t', '\r', '\n':
			d.i++
		default:
			return
		}
	}
}

// peek skips blanks and returns the next byte, 0 at the end.
func (d *jsonDoc) peek() byte {
	d.space()
	if d.i >= len(d.data) {
		return 0
	}
	return d.data[d.i]
}

func (d *jsonDoc) expect(b byte) error {
	if got := d.peek(); got != b {
		return d.fail(d.i, "got %s, want %q", d.describe(), string(b))
	}
	d.i++
	return nil
}

func (d *jsonDoc) describe() string {
	if d.i >= len(d.data) {
		return "the end of the file"
	}
	return strconv.QuoteRune(rune(d.data[d.i]))
}

func (d *jsonDoc) end() error {
	if d.peek() != 0 || d.i < len(d.data) {
		return d.fail(d.i, "got %s after the value, want the end of the file", d.describe())
	}
	return nil
}

// object calls fn for every member with the cursor before the value; fn must
// read or skip it.
func (d *jsonDoc) object(depth int, fn func(key string, at int) error) error {
	return d.list(depth, '{', '}', func(int) error {
		at := d.i
		key, err := d.str()
		if err != nil {
			return err
		}
		if err := d.expect(':'); err != nil {
			return err
		}
		d.space()
		return fn(key, at)
	})
}

// array calls fn for every element with the cursor before it.
func (d *jsonDoc) array(depth int, fn func(i int) error) error { return d.list(depth, '[', ']', fn) }

func (d *jsonDoc) list(depth int, opening, closing byte, fn func(i int) error) error {
	if depth > maxJSONDepth {
		return d.fail(d.i, "nested deeper than %d levels", maxJSONDepth)
	}
	if err := d.expect(opening); err != nil {
		return err
	}
	if d.peek() == closing {
		d.i++
		return nil
	}
	for n := 0; ; n++ {
		d.space()
		if err := fn(n); err != nil {
			return err
		}
		switch d.peek() {
		case ',':
			d.i++
		case closing:
			d.i++
			return nil
		default:
			return d.fail(d.i, "got %s, want \",\" or %q", d.describe(), string(closing))
		}
	}
}

// rawString moves over a string and returns it with its quotes.
func (d *jsonDoc) rawString() (raw []byte, plain bool, err error) {
	if d.peek() != '"' {
		return nil, false, d.fail(d.i, "got %s, want a string", d.describe())
	}
	start := d.i
	plain = true
	for k := start + 1; k < len(d.data); k++ {
		switch b := d.data[k]; {
		case b == '"':
			d.i = k + 1
			return d.data[start : k+1], plain, nil
		case b == '\\':
			plain = false
			k++
		case b < 0x20:
			return nil, false, d.fail(k, "control character %#02x inside a string", b)
		}
	}
	return nil, false, d.fail(start, "string is not closed")
}

func (d *jsonDoc) str() (string, error) {
	raw, plain, err := d.rawString()
	if err != nil {
		return "", err
	}
	if plain {
		return string(raw[1 : len(raw)-1]), nil
	}
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		return "", d.fail(d.i-len(raw), "bad escape in a string")
	}
	return s, nil
}

// scalar returns the text of a number or word.
func (d *jsonDoc) scalar() (string, error) {
	start := d.i
	for d.i < len(d.data) {
		b := d.data[d.i]
		if b == '-' || b == '+' || b == '.' || b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' {
			d.i++
			continue
		}
		break
	}
	if start == d.i {
		return "", d.fail(start, "got %s, want a value", d.describe())
	}
	return string(d.data[start:d.i]), nil
}

// skip moves over one value.
func (d *jsonDoc) skip(depth int) error {
	switch d.peek() {
	case '{':
		return d.object(depth, func(string, int) error { return d.skip(depth + 1) })
	case '[':
		return d.array(depth, func(int) error { return d.skip(depth + 1) })
	case '"':
		_, _, err := d.rawString()
		return err
	}
	at := d.i
	s, err := d.scalar()
	if err != nil {
		return err
	}
	_, err = d.word(s, at)
	return err
}

// word gives the value of a number, true, false or null. Python writers
// also produce NaN and Infinity.
func (d *jsonDoc) word(s string, at int) (any, error) {
	switch s {
	case "null":
		return nil, nil
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	if n, err := strconv.Atoi(s); err == nil && s[0] != '+' {
		return n, nil
	}
	if f, err := strconv.ParseFloat(s, 64); err == nil {
		if math.IsNaN(f) || math.IsInf(f, 0) {
			d.noNumber(s, at)
		}
		return f, nil
	}
	return nil, d.fail(at, "got %q, want a value", s)
}

// noNumber notes the first NaN or Infinity.
func (d *jsonDoc) noNumber(s string, at int) {
	for _, e := range d.dups {
		if errors.Is(e, ErrNaN) {
			return
		}
	}
	d.dups = append(d.dups, &diag.Error{Pos: d.pos(at), Code: diag.Malformed, Err: ErrNaN,
		Msg: fmt.Sprintf("got %s, which JSON does not have: Swift's JSONSerialization and Rust's serde_json refuse the file, Python's json takes it", s), Hint: "write a number or null"})
}

// value reads one value with the positions of its members.
func (d *jsonDoc) value(depth int) (Param, error) {
	d.space()
	if d.nodes++; d.nodes > maxJSONNodes {
		return Param{}, d.fail(d.i, "more than %d values", maxJSONNodes)
	}
	at := d.i
	p := Param{Pos: d.pos(at)}
	switch d.peek() {
	case '{':
		err := d.members(&p, depth)
		return p, err
	case '[':
		list := []any{}
		err := d.array(depth, func(int) error {
			e, err := d.value(depth + 1)
			p.Elems = append(p.Elems, e)
			list = append(list, e.Value)
			return err
		})
		p.Value = list
		return p, err
	case '"':
		s, err := d.str()
		p.Value, p.Raw, p.Quoted = s, s, true
		return p, err
	}
	s, err := d.scalar()
	if err != nil {
		return p, err
	}
	p.Raw = s
	p.Value, err = d.word(s, at)
	return p, err
}

func (d *jsonDoc) members(p *Param, depth int) error {
	m := map[string]any{}
	index := map[string]int{}
	err := d.object(depth, func(key string, keyAt int) error {
		e, err := d.value(depth + 1)
		e.Key, e.KeyPos = key, d.pos(keyAt)
		if k, dup := index[key]; dup {
			d.dups = append(d.dups, &diag.Error{Pos: e.KeyPos, Code: diag.Malformed, Err: ErrDuplicateKey,
				Msg: fmt.Sprintf("key %q stands twice, first at line %d; readers take the last", key, p.Elems[k].KeyPos.Line)})
			p.Elems[k] = e
		} else {
			index[key] = len(p.Elems)
			p.Elems = append(p.Elems, e)
		}
		m[key] = e.Value
		return err
	})
	p.Value = m
	return err
}
