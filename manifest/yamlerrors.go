package manifest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/anepkg/anepkg/coreml/diag"
)

// maxYAMLSearch bounds the bytes parsed again to find the line of an error.
const maxYAMLSearch = 8 << 20

var yamlLine = regexp.MustCompile(`line \d+: `)

// syntax gives an error of yaml.v3 a position and, for common faults, a clear
// text. The line that yaml.v3 tells is not used: for some errors it is that
// of the surrounding map, or one too low.
func (d *yamlDoc) syntax(err error, data []byte) error {
	msg := yamlLine.ReplaceAllString(strings.TrimPrefix(err.Error(), "yaml: "), "")
	e := &diag.Error{Pos: diag.In(d.file), Code: diag.Malformed, Err: ErrSyntax, Msg: "not valid YAML: " + msg, Hint: "correct the syntax; indent with spaces"}
	for i, l := range d.lines {
		if k := invalidUTF8(l); k >= 0 {
			return d.fault(e, i, k, fmt.Sprintf("byte %#02x is not UTF-8", l[k]), "save the file as UTF-8")
		}
	}
	for i, l := range d.lines {
		if k := strings.IndexFunc(l, isControl); k >= 0 {
			r, _ := utf8.DecodeRuneInString(l[k:])
			return d.fault(e, i, k, fmt.Sprintf("control character %#02x", r), "delete the character")
		}
	}
	i := badLine(data)
	if i < 0 || i >= len(d.lines) {
		return e
	}
	if i > 0 && nbspIndent(d.lines[i]) < 0 && nbspIndent(d.lines[i-1]) >= 0 {
		i-- // a key that begins with the space shows only by the line after it
	}
	l := d.lines[i]
	text := strings.TrimLeft(l, " \t\u00a0\ufeff")
	indent := l[:len(l)-len(text)]
	if k := strings.IndexByte(indent, '\t'); k >= 0 {
		return d.fault(e, i, k, "a tab stands in the indentation", "replace the tab by spaces, four for a key of parameters")
	}
	if k := nbspIndent(l); k >= 0 {
		return d.fault(e, i, k, "a no-break space stands in the indentation", "replace it by a plain space")
	}
	switch {
	case strings.HasPrefix(msg, "did not find expected ','"):
		return d.fault(e, i, len(indent), msg+" in the list or map that begins on this line", "close the list or map")
	case msg == "did not find expected key":
		return d.fault(e, i, len(indent), msg+"; the line is not indented like those around it", "indent the line like its neighbours, with spaces")
	}
	return d.fault(e, i, len(indent), msg, "correct the syntax at the place shown; indent with spaces")
}

// nbspIndent finds a no-break space in the indentation of a line.
func nbspIndent(l string) int {
	return strings.Index(l[:len(l)-len(strings.TrimLeft(l, " \t\u00a0\ufeff"))], "\u00a0")
}

func (d *yamlDoc) fault(e *diag.Error, line, col int, msg, hint string) error {
	e.Pos = diag.Pos{File: d.file, Line: line + 1, Col: col + 1}
	e.Msg, e.Hint = "not valid YAML: "+msg, hint
	return e
}

// badLine finds the line, from 0, with which the text stops being YAML: the
// one after the longest run of whole lines from the start that parses. In a
// list or text over several lines it is the line where that begins. -1: the
// search would take too long.
func badLine(data []byte) int {
	var starts []int
	for off := 0; off < len(data); {
		starts = append(starts, off)
		n := bytes.IndexByte(data[off:], '\n')
		if n < 0 {
			break
		}
		off += n + 1
	}
	budget := maxYAMLSearch
	for i := len(starts) - 1; i >= 0; i-- {
		if budget -= starts[i]; budget < 0 {
			return -1
		}
		if yamlParses(data[:starts[i]]) {
			return i
		}
	}
	return -1
}

func yamlParses(data []byte) (ok bool) {
	defer func() {
		if recover() != nil { // yaml.v3 panics on some broken inputs
			ok = false
		}
	}()
	_, _, err := yamlDocuments(data)
	return err == nil
}

func invalidUTF8(s string) int {
	if utf8.ValidString(s) {
		return -1
	}
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return -1
}

// isControl reports the characters that YAML forbids.
func isControl(r rune) bool {
	return r < 0x20 && r != '\t' && r != '\r' || r >= 0x7f && r < 0xa0 && r != 0x85
}

// fromUTF16 turns a text that begins with the mark of UTF-16 into UTF-8.
func fromUTF16(data []byte) (text []byte, wide bool) {
	var order binary.ByteOrder = binary.LittleEndian
	switch {
	case bytes.HasPrefix(data, []byte{0xff, 0xfe}):
	case bytes.HasPrefix(data, []byte{0xfe, 0xff}):
		order = binary.BigEndian
	default:
		return data, false
	}
	units := make([]uint16, 0, len(data)/2)
	for i := 2; i+1 < len(data); i += 2 {
		units = append(units, order.Uint16(data[i:]))
	}
	return []byte(string(utf16.Decode(units))), true
}
