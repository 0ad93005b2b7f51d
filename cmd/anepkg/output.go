package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
)

// output is standard output; it remembers the first write that failed, so
// that a full disk is reported and a closed pipe ends quietly.
type output struct {
	w   io.Writer
	err error
}

// Write writes to the stream unless an earlier write failed.
func (o *output) Write(p []byte) (int, error) {
	if o.err != nil {
		return 0, o.err
	}
	n, err := o.w.Write(p)
	if err != nil {
		o.err = err
	}
	return n, err
}

// printf prints to standard output; a failure is kept in t.stdout.
func (t *tool) printf(format string, args ...any) { fmt.Fprintf(t.stdout, format, args...) }

// notef prints a remark to stderr unless --quiet.
func (t *tool) notef(format string, args ...any) {
	if !t.global.quiet {
		fmt.Fprintf(t.stderr, format, args...)
	}
}

// debugf prints a remark to stderr with --verbose.
func (t *tool) debugf(format string, args ...any) {
	if t.global.verbose {
		fmt.Fprintf(t.stderr, format, args...)
	}
}

// style paints text for a terminal; the zero style does not.
type style struct{ on bool }

// style returns the style of a stream.
func (t *tool) style(tty bool) style {
	return style{on: tty && !t.global.noColor && t.getenv("NO_COLOR") == "" && t.getenv("TERM") != "dumb"}
}

func (s style) paint(code, text string) string {
	if !s.on || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (s style) bold(text string) string   { return s.paint("1", text) }
func (s style) dim(text string) string    { return s.paint("2", text) }
func (s style) red(text string) string    { return s.paint("31", text) }
func (s style) green(text string) string  { return s.paint("32", text) }
func (s style) yellow(text string) string { return s.paint("33", text) }
func (s style) cyan(text string) string   { return s.paint("36", text) }

// severity paints text in the colour of a severity.
func (s style) severity(severity, text string) string {
	switch severity {
	case "error":
		return s.red(text)
	case "warning":
		return s.yellow(text)
	}
	return s.cyan(text)
}

// thousands prints 1,234,567.
func thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	sign := ""
	if s[0] == '-' {
		sign, s = "-", s[1:]
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return sign + s
}

// shellQuote writes an argument so that a shell reads it as one word.
func shellQuote(arg string) string {
	if arg != "" && !strings.ContainsAny(arg, " \t\n'\"\\$`&|;<>()*?[]{}#~!") {
		return arg
	}
	return "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
}

// plural prints "1 layer", "2 layers".
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

// ranges prints sorted numbers as 0-3, 5, 7-8.
func ranges(ns []int) string {
	var parts []string
	for i := 0; i < len(ns); {
		j := i
		for j+1 < len(ns) && ns[j+1] == ns[j]+1 {
			j++
		}
		if i == j {
			parts = append(parts, strconv.Itoa(ns[i]))
		} else {
			parts = append(parts, fmt.Sprintf("%d-%d", ns[i], ns[j]))
		}
		i = j + 1
	}
	return strings.Join(parts, ", ")
}
