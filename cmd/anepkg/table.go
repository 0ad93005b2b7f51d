package main

import (
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// cell is one field of a table; paint, if not nil, colours the padded text.
type cell struct {
	text  string
	paint func(string) string
}

// table lays out rows in columns of equal width.
type table struct {
	indent string
	right  map[int]bool // columns of numbers
	rows   [][]cell
}

// row adds a row of strings and cells.
func (tb *table) row(fields ...any) {
	cells := make([]cell, len(fields))
	for i, f := range fields {
		switch f := f.(type) {
		case cell:
			cells[i] = f
		case string:
			cells[i] = cell{text: f}
		}
	}
	tb.rows = append(tb.rows, cells)
}

// head adds a row of column titles.
func (tb *table) head(st style, titles ...string) {
	cells := make([]cell, len(titles))
	for i, t := range titles {
		cells[i] = cell{t, st.dim}
	}
	tb.rows = append(tb.rows, cells)
}

// write prints the table; the last column is not padded.
func (tb *table) write(w io.Writer) {
	var widths []int
	for _, r := range tb.rows {
		for i, c := range r {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], width(c.text))
		}
	}
	var b strings.Builder
	for _, r := range tb.rows {
		line := tb.indent
		for i, c := range r {
			pad := strings.Repeat(" ", widths[i]-width(c.text))
			text := c.text
			if c.paint != nil {
				text = c.paint(text)
			}
			switch {
			case tb.right[i]:
				line += pad + text
			case i < len(r)-1:
				line += text + pad
			default:
				line += text
			}
			if i < len(r)-1 {
				line += "  "
			}
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	_, _ = io.WriteString(w, b.String())
}

// width is the number of terminal columns of s: wide for East Asian scripts
// and emoji, none for combining marks.
func width(s string) int {
	n := 0
	for _, r := range s {
		switch {
		case r < 0x300:
			n++
		case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		case unicode.In(r, unicode.Han, unicode.Hangul, unicode.Hiragana, unicode.Katakana) || r >= 0x1f300 && r <= 0x1faff || r >= 0xff01 && r <= 0xff60:
			n += 2
		default:
			n++
		}
	}
	return n
}

// wrap breaks text into lines of at most limit columns at spaces.
func wrap(text string, limit int) []string {
	var lines []string
	for para := range strings.SplitSeq(text, "\n") {
		line := ""
		for word := range strings.FieldsSeq(para) {
			if line != "" && width(line)+1+width(word) > limit {
				lines = append(lines, line)
				line = ""
			}
			if line != "" {
				line += " "
			}
			line += word
		}
		lines = append(lines, line)
	}
	return lines
}

// visible replaces control characters and broken UTF-8, so that names out of
// a file cannot steer the terminal.
func visible(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\t' && r != '\n' || r == utf8.RuneError {
			return '\ufffd'
		}
		return r
	}, s)
}
