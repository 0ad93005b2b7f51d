package main

import (
	"errors"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// lineEditor edits lines at a terminal, with a history. It is the Terminal
// of golang.org/x/term, which counts a column for every rune; so that wide
// characters, emoji and combining marks move the cursor rightly, the
// Terminal gets a rune for each column instead (see cells), and the keys
// that work on single characters are handled here.
type lineEditor struct {
	file  *os.File // nil in tests: no raw mode
	out   io.Writer
	term  *term.Terminal
	keys  *keyReader
	cells cells
}

// newLineEditor edits on the terminal of standard input. It draws on
// standard output, or on standard error when the answers go elsewhere.
func newLineEditor(t *tool) *lineEditor {
	out := t.stderr
	if t.stdoutTTY {
		out = t.stdout
	}
	return makeLineEditor(t.terminal, t.stdin, out)
}

func makeLineEditor(file *os.File, in io.Reader, out io.Writer) *lineEditor {
	e := &lineEditor{file: file, out: out}
	e.keys = &keyReader{in: in}
	e.term = term.NewTerminal(&screen{keys: e.keys, out: out, cells: &e.cells}, "")
	e.term.AutoCompleteCallback = e.key
	return e
}

// ReadLine implements lineReader. Line ends that are pasted, or typed
// with Alt-Enter, stay in the line.
func (e *lineEditor) ReadLine(prompt string) (string, error) {
	if e.file != nil {
		fd := int(e.file.Fd())
		old, err := term.MakeRaw(fd)
		if err != nil {
			return "", err
		}
		restore := enableEscapes()
		defer func() {
			_, _ = io.WriteString(e.out, "\x1b[?2004l")
			restore()
			_ = term.Restore(fd, old)
		}()
		_, _ = io.WriteString(e.out, "\x1b[?2004h") // pastes come in brackets
		if w, h, err := term.GetSize(fd); err == nil && w > 0 {
			_ = e.term.SetSize(w, h)
		}
	}
	e.term.SetPrompt(prompt)
	line, err := e.term.ReadLine()
	if e.keys.discarded {
		e.keys.discarded = false
		return "", errDiscarded
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	return e.cells.text(line), err
}

// key handles a key that the Terminal does not know: those of keyReader, and
// characters that are not one rune in one column. pos counts bytes.
func (e *lineEditor) key(line string, pos int, key rune) (string, int, bool) {
	before, after := line[:pos], line[pos:]
	switch key {
	case keyLeft:
		return line, pos - len(lastCell(before)), true
	case keyRight:
		return line, pos + len(firstCell(after)), true
	case keyBackspace:
		before = strings.TrimSuffix(before, lastCell(before))
		return before + after, len(before), true
	case keyDelete, keyEndOrDelete:
		e.keys.end = key == keyEndOrDelete && line == ""
		return before + strings.TrimPrefix(after, firstCell(after)), pos, true
	case keyDiscard:
		e.keys.discarded = true
		return line, len(line), true
	case keyInsert:
		return e.insert(before, after, e.keys.take())
	}
	if key >= ' ' && key < 0x7f && len(line) < 4000 {
		return "", 0, false // the Terminal writes just this one
	}
	if key < ' ' || key >= firstPrivate || key >= 0xD800 && key < 0xE000 { // the last are the Terminal's own
		return line, pos, true
	}
	return e.insert(before, after, string(key))
}

func (e *lineEditor) insert(before, after, text string) (string, int, bool) {
	before = e.cells.of(e.cells.text(before) + text)
	return before + after, len(before), true
}

// Keys that keyReader makes of what the terminal sends, as runes that no
// text has (plane 15).
const (
	firstPrivate rune = 0xF0000
	filler       rune = 0xFFFF0 // the second column of a wide character

	keyLeft rune = 0xFFF80 + iota
	keyRight
	keyBackspace
	keyDelete
	keyEndOrDelete // Ctrl-D
	keyDiscard     // Ctrl-C
	keyInsert      // the text in keyReader.pasted
)

// screen joins the two directions for the Terminal.
type screen struct {
	keys  *keyReader
	out   io.Writer
	cells *cells
}

// Read implements io.Reader.
func (s *screen) Read(p []byte) (int, error) { return s.keys.Read(p) }

// Write implements io.Writer: cells become what they stand for.
func (s *screen) Write(p []byte) (int, error) {
	if _, err := io.WriteString(s.out, s.cells.shown(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}
