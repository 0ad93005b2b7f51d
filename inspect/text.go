package inspect

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Bytes prints a size with a binary unit, for example "5.6 MiB".
func Bytes(n int64) string {
	const unit = 1024
	if n < unit {
		return fmt.Sprintf("%d B", n)
	}
	v, k := float64(n)/unit, 0
	for v >= unit && k < 4 {
		v /= unit
		k++
	}
	return fmt.Sprintf("%.1f %ciB", v, "KMGTP"[k])
}

// style adds colour when it is wanted.
type style struct{ color bool }

const (
	bold   = "1"
	dim    = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
	blue   = "34"
	cyan   = "36"
)

func (s style) in(code, text string) string {
	if !s.color || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// table prints rows with aligned columns. Columns named in right are aligned
// at their right side.
type table struct {
	head  []string
	right map[int]bool
	rows  [][]string
}

func (t *table) add(cells ...string) {
	for i := range cells {
		cells[i] = printable(cells[i])
	}
	t.rows = append(t.rows, cells)
}

func width(s string) int { return utf8.RuneCountInString(s) }

func (t *table) write(w io.Writer, s style, indent string) {
	n := len(t.head)
	sizes := make([]int, n)
	for i, h := range t.head {
		sizes[i] = width(h)
	}
	for _, r := range t.rows {
		for i := range min(n, len(r)) {
			sizes[i] = max(sizes[i], width(r[i]))
		}
	}
	line := func(cells []string, code string) {
		var b strings.Builder
		b.WriteString(indent)
		for i := range n {
			c := ""
			if i < len(cells) {
				c = cells[i]
			}
			pad := strings.Repeat(" ", sizes[i]-width(c))
			switch {
			case t.right[i]:
				b.WriteString(pad + c)
			case i == n-1:
				b.WriteString(c)
			default:
				b.WriteString(c + pad)
			}
			if i < n-1 {
				b.WriteString("  ")
			}
		}
		fmt.Fprintln(w, s.in(code, strings.TrimRight(b.String(), " ")))
	}
	line(t.head, dim)
	for _, r := range t.rows {
		line(r, "")
	}
}

// plural prints "1 error" or "3 errors".
func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}

func numberOr(n *int, none string) string {
	if n == nil {
		return none
	}
	return fmt.Sprint(*n)
}

// errWriter keeps the first write error, so that rendering code stays free
// of checks.
type errWriter struct {
	w   io.Writer
	err error
}

func (e *errWriter) Write(b []byte) (int, error) {
	if e.err != nil {
		return 0, e.err
	}
	n, err := e.w.Write(b)
	e.err = err
	return n, err
}
