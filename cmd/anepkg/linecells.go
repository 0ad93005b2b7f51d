package main

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// cells turns text into one rune for each terminal column and back. A
// character of one rune and one column is itself; others are private runes,
// each followed by a filler for every further column.
type cells struct {
	known map[string]rune
	list  []lineCell
}

type lineCell struct{ text, shown string }

// maxCells bounds the private runes: they end before the keys.
const maxCells = 0xFF00

// of makes cells of a text. Control characters but line ends and tabs are
// left out.
func (c *cells) of(text string) string {
	var b strings.Builder
	state := -1
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	for text != "" {
		var cluster string
		var columns int
		cluster, text, columns, state = uniseg.FirstGraphemeClusterInString(text, state)
		r, n := utf8.DecodeRuneInString(cluster)
		switch {
		case cluster == "\n":
			b.WriteRune(c.private(cluster, "⏎"))
		case cluster == "\t":
			b.WriteRune(c.private(cluster, " "))
		case unicode.IsControl(r) || r >= firstPrivate && r < 0x100000 || r == utf8.RuneError && n < 2:
		case columns == 1 && n == len(cluster):
			b.WriteString(cluster)
		case columns == 0:
			b.WriteRune(c.private(cluster, " "+cluster))
		default:
			b.WriteRune(c.private(cluster, cluster))
			b.WriteString(strings.Repeat(string(filler), columns-1))
		}
	}
	return b.String()
}

func (c *cells) private(text, shown string) rune {
	if r, ok := c.known[text]; ok {
		return r
	}
	if len(c.list) >= maxCells {
		return unicode.ReplacementChar
	}
	if c.known == nil {
		c.known = map[string]rune{}
	}
	r := firstPrivate + rune(len(c.list))
	c.known[text] = r
	c.list = append(c.list, lineCell{text, shown})
	return r
}

// text gives back the text of cells.
func (c *cells) text(line string) string {
	return c.each(line, func(x lineCell) string { return x.text })
}

// shown is what the terminal gets for cells.
func (c *cells) shown(line string) string {
	return c.each(line, func(x lineCell) string { return x.shown })
}

func (c *cells) each(line string, of func(lineCell) string) string {
	if !strings.ContainsFunc(line, func(r rune) bool { return r >= firstPrivate }) {
		return line
	}
	var b strings.Builder
	for _, r := range line {
		switch i := int(r - firstPrivate); {
		case r == filler:
		case i >= 0 && i < len(c.list):
			b.WriteString(of(c.list[i]))
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// lastCell is the last character of a line of cells, with its fillers.
func lastCell(line string) string {
	i := len(line)
	for i > 0 {
		r, n := utf8.DecodeLastRuneInString(line[:i])
		i -= n
		if r != filler {
			break
		}
	}
	return line[i:]
}

// firstCell is the first character, with its fillers.
func firstCell(line string) string {
	if line == "" {
		return ""
	}
	_, i := utf8.DecodeRuneInString(line)
	for {
		r, n := utf8.DecodeRuneInString(line[i:])
		if n == 0 || r != filler {
			return line[:i]
		}
		i += n
	}
}
