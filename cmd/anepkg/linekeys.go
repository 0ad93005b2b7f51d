package main

import (
	"bytes"
	"io"
	"strings"
	"unicode/utf8"
)

// keyReader turns what a terminal sends into what the Terminal of
// golang.org/x/term takes: keys that work on single characters become
// private runes for lineEditor.key, and a paste becomes one of them.
type keyReader struct {
	in        io.Reader
	raw       []byte // read, not yet looked at
	out       []byte // for the Terminal
	pasted    []string
	discarded bool // Ctrl-C: the line is given up
	end       bool // Ctrl-D in an empty line
	err       error
}

const (
	pasteBegin = "\x1b[200~"
	pasteEnd   = "\x1b[201~"
	// maxPaste bounds a paste.
	maxPaste = 4 << 20
)

// keySequences are the keys that are handled here or spelled otherwise.
var keySequences = []struct {
	from string
	to   string
}{
	{"\x1b[D", string(keyLeft)}, {"\x1bOD", string(keyLeft)}, {"\x02", string(keyLeft)},
	{"\x1b[C", string(keyRight)}, {"\x1bOC", string(keyRight)}, {"\x06", string(keyRight)},
	{"\x7f", string(keyBackspace)}, {"\x08", string(keyBackspace)},
	{"\x1b[3~", string(keyDelete)}, {"\x04", string(keyEndOrDelete)}, {"\x03", string(keyDiscard)},
	{"\x1bOA", "\x1b[A"}, {"\x1bOB", "\x1b[B"}, {"\x1bOH", "\x1b[H"}, {"\x1bOF", "\x1b[F"}, {"\x1b[1~", "\x1b[H"}, {"\x1b[4~", "\x1b[F"},
	{"\x1b[1;5D", "\x1b[1;3D"}, {"\x1b[1;5C", "\x1b[1;3C"}, {"\x1bb", "\x1b[1;3D"}, {"\x1bf", "\x1b[1;3C"},
	{"\x14", ""}, // transposing two columns would part wide characters
}

// Read implements io.Reader. It gives one key at a time, so that the next
// one sees what the one before did.
func (k *keyReader) Read(p []byte) (int, error) {
	for len(k.out) == 0 {
		switch {
		case k.discarded:
			k.out = []byte("\r") // ends the line that was given up
			continue
		case k.end:
			k.end, k.out = false, []byte("\x04")
			continue
		}
		if k.next() {
			continue
		}
		if k.err != nil {
			return 0, k.err
		}
		k.fill()
	}
	n := copy(p, k.out)
	k.out = k.out[n:]
	return n, nil
}

func (k *keyReader) fill() {
	buf := make([]byte, 4096)
	n, err := k.in.Read(buf)
	k.raw, k.err = append(k.raw, buf[:n]...), err
}

// take returns the text that a keyInsert stands for.
func (k *keyReader) take() string {
	if len(k.pasted) == 0 {
		return ""
	}
	text := k.pasted[0]
	k.pasted = k.pasted[1:]
	return text
}

// next moves one key from raw to out; false when raw holds no whole key.
func (k *keyReader) next() bool {
	if len(k.raw) == 0 {
		return false
	}
	if bytes.HasPrefix(k.raw, []byte(pasteBegin)) {
		return k.paste()
	}
	for _, s := range keySequences {
		if bytes.HasPrefix(k.raw, []byte(s.from)) {
			k.use(len(s.from), s.to)
			return true
		}
	}
	switch c := k.raw[0]; {
	case bytes.HasPrefix(k.raw, []byte("\x1b\r")) || bytes.HasPrefix(k.raw, []byte("\x1b\n")):
		k.pasted = append(k.pasted, "\n")
		k.use(2, string(keyInsert))
	case c == '\n': // an Enter that was typed while an answer came
		k.use(1, "\r")
	case c == 0x1b:
		return k.escape()
	case c < utf8.RuneSelf:
		k.use(1, string(rune(c)))
	default:
		return k.char()
	}
	return true
}

func (k *keyReader) use(n int, out string) {
	k.raw = k.raw[n:]
	k.out = append(k.out, out...)
}

// char moves a character of several bytes; broken ones are dropped.
func (k *keyReader) char() bool {
	if !utf8.FullRune(k.raw) && k.err == nil {
		return false
	}
	r, n := utf8.DecodeRune(k.raw)
	switch {
	case r == utf8.RuneError && n < 2, r >= firstPrivate && r < 0x100000:
		k.use(n, "")
	default:
		k.use(n, string(r))
	}
	return true
}

// escape moves an escape sequence that the Terminal may know; a lone escape
// and what follows it stay together as the terminal sent them.
func (k *keyReader) escape() bool {
	if len(k.raw) == 1 {
		if k.err != nil {
			k.use(1, "")
		}
		return k.err != nil
	}
	n := 2
	switch k.raw[1] {
	case 'O':
		if n = 3; len(k.raw) < n && k.err == nil {
			return false
		}
		n = min(n, len(k.raw))
	case '[':
		for n < len(k.raw) && (k.raw[n] < 0x40 || k.raw[n] > 0x7e) && n < 32 {
			n++
		}
		if n >= len(k.raw) && k.err == nil {
			return false
		}
		n = min(n+1, len(k.raw))
	}
	k.use(n, string(k.raw[:n]))
	return true
}

// paste moves a bracketed paste as a whole.
func (k *keyReader) paste() bool {
	text, rest, found := bytes.Cut(k.raw[len(pasteBegin):], []byte(pasteEnd))
	if !found && k.err == nil && len(k.raw) < maxPaste {
		return false
	}
	k.raw = rest
	k.pasted = append(k.pasted, strings.ToValidUTF8(string(text), ""))
	k.out = append(k.out, string(keyInsert)...)
	return true
}
