package inspect

import (
	"bufio"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/anepkg/anepkg/manifest"
)

// excerpts are the lines that findings point at, by file and line.
type excerpts map[string]map[int]string

const (
	maxExcerptFile = 64 << 20
	maxExcerptLine = 4096
	excerptWidth   = 100
)

// collectExcerpts reads the lines of text files that findings name.
func collectExcerpts(pkg *manifest.Package, findings []*Finding) excerpts {
	want := map[string]map[int]bool{}
	for _, f := range findings {
		for _, w := range f.Where {
			if w.Line == nil || !isText(w.File) {
				continue
			}
			if want[w.File] == nil {
				want[w.File] = map[int]bool{}
			}
			want[w.File][*w.Line] = true
		}
	}
	out := excerpts{}
	for file, lines := range want {
		if got := readLines(pkg, file, lines); len(got) > 0 {
			out[file] = got
		}
	}
	return out
}

func isText(name string) bool {
	for _, suffix := range []string{".yaml", ".yml", ".json", ".mil", ".jinja", ".txt"} {
		if strings.HasSuffix(name, suffix) {
			return true
		}
	}
	return false
}

func readLines(pkg *manifest.Package, file string, want map[int]bool) map[int]string {
	f, err := pkg.FS.Open(file)
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }()
	r := bufio.NewReaderSize(io.LimitReader(f, maxExcerptFile), maxExcerptLine)
	out := map[int]string{}
	for no := 1; len(out) < len(want); no++ {
		line, isPrefix, err := r.ReadLine()
		if err != nil {
			break
		}
		if want[no] {
			out[no] = string(line)
		}
		for isPrefix && err == nil {
			_, isPrefix, err = r.ReadLine()
		}
	}
	return out
}

// excerpt returns the line that w names, cut to a window around the column,
// and the column of the caret in it; ok is false when there is none.
func (e excerpts) excerpt(w Where) (line string, caret int, ok bool) {
	if w.Line == nil {
		return "", 0, false
	}
	line, ok = e[w.File][*w.Line]
	if !ok || strings.TrimSpace(line) == "" {
		return "", 0, false
	}
	col := 0
	if w.Column != nil {
		col = min(*w.Column-1, len(line))
	}
	start := 0
	if col > excerptWidth-20 {
		start = col - excerptWidth/2
		for start > 0 && !utf8.RuneStart(line[start]) {
			start--
		}
	}
	prefix := printable(line[start:col])
	rest := printable(line[col:])
	caret = utf8.RuneCountInString(prefix)
	text := []rune(prefix + rest)
	if len(text) > excerptWidth {
		text = append(text[:excerptWidth-3], []rune("...")...)
	}
	trimmed := strings.TrimLeft(string(text), " ")
	if cut := len(string(text)) - len(trimmed); start == 0 && cut <= caret {
		return trimmed, caret - cut, true
	}
	return string(text), caret, true
}

// printable makes a text safe for a terminal: control characters, which a
// hostile file may hold, become dots.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t':
			return ' '
		case r < 0x20 || r >= 0x7f && r < 0xa0 || r == utf8.RuneError || r == 0x2028 || r == 0x2029 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069:
			return '.'
		}
		return r
	}, s)
}
