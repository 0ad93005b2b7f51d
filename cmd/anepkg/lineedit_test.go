package main

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// TestLineEditor types keys and looks at the lines.
func TestLineEditor(t *testing.T) {
	const left, right, up, home, end, del = "\x1b[D", "\x1b[C", "\x1b[A", "\x01", "\x05", "\x1b[3~"
	for _, tc := range []struct{ name, typed, want string }{
		{"plain", "hello\r", "hello"},
		{"two lines", "a\rb\r", "a|b"},
		{"insert in the middle", "held" + left + left + "l" + "\r", "helld"},
		{"backspace", "abc\x7f\x7fd\r", "ad"},
		{"backspace at the beginning", home + "\x7fa\r", "a"},
		{"wide characters", "今天天气" + left + left + "好\r", "今天好天气"},
		{"backspace over a wide one", "今天\x7f气\r", "今气"},
		{"delete under the cursor", "今天" + home + del + "\r", "天"},
		{"Ctrl-D deletes too", "今天" + home + "\x04\r", "天"},
		{"an emoji sequence is one character", "a👩‍👩‍👧‍👦b" + left + "\x7f\r", "ab"},
		{"a combining mark joins what is before it", "e\u0301x" + left + "\x7f\r", "x"},
		{"a combining mark alone", "\u0301\r", "\u0301"},
		{"to the right again", "今天" + home + right + "x\r", "今x天"},
		{"end", "ab" + home + "x" + end + "y\r", "xaby"},
		{"history", "今天\r" + up + "好\r", "今天|今天好"},
		{"Ctrl-U", "今天abc\x15x\r", "x"},
		{"Ctrl-W", "今天 abc\x17x\r", "今天 x"},
		{"words", "今天 abc" + "\x1bb" + "x\r", "今天 xabc"},
		{"Ctrl-C gives the line up", "abc\x03def\r", "!|def"},
		{"Ctrl-C in the middle", "今天" + left + "\x03x\r", "!|x"},
		{"Alt-Enter", "a\x1b\rb\r", "a\nb"},
		{"typed before the editor listened", "a\nb\n", "a|b"},
		{"a line end is a character", "a\x1b\rb" + left + "\x7f\r", "ab"},
		{"paste", "x\x1b[200~今天\r\nb\tc\x1b[201~y\r", "x今天\nb\tcy"},
		{"control characters in a paste", "\x1b[200~a\x1b[31mb\x07\x1b[201~\r", "a[31mb"},
		{"a paste alone is not sent", "\x1b[200~a\rb\r\x1b[201~\r", "a\nb\n"},
		{"a paste that never ends", "\x1b[200~abc", "."},
		{"private characters are dropped", "a\U000F0001\U000FFFF0\U000FFF83b\r", "ab"},
		{"broken UTF-8 is dropped", "a\xff\xc3b\r", "ab"},
		{"unknown keys do nothing", "a\x1b[15~\x1b[1;2Pb\r", "ab"},
		{"Ctrl-T does nothing", "今天\x14x\r", "今天x"},
		{"Ctrl-D in an empty line", "a\r\x04", "a|."},
		{"end of input", "a\r", "a|."},
	} {
		for _, slow := range []bool{false, true} {
			var in io.Reader = strings.NewReader(tc.typed)
			if slow {
				in = iotest.OneByteReader(in)
			}
			e := makeLineEditor(nil, in, io.Discard)
			var got []string
			for range strings.Count(tc.want, "|") + 1 {
				line, err := e.ReadLine("> ")
				switch {
				case errors.Is(err, errDiscarded):
					line = "!"
				case errors.Is(err, io.EOF):
					line = "."
				case err != nil:
					t.Fatalf("%s: %v", tc.name, err)
				}
				got = append(got, line)
			}
			if want := strings.Split(tc.want, "|"); !slices.Equal(got, want) {
				t.Errorf("%s (a byte at a time: %v): got %q, want %q", tc.name, slow, got, want)
			}
		}
	}
}

// TestCells: a rune for each column, and the text comes back.
func TestCells(t *testing.T) {
	for _, tc := range []struct {
		text    string
		columns int
		shown   string
	}{
		{"abc é", 5, "abc é"},
		{"今天", 4, "今天"},
		{"e\u0301", 1, "e\u0301"},
		{"👩‍👩‍👧‍👦", 2, "👩‍👩‍👧‍👦"},
		{"🇩🇪x", 3, "🇩🇪x"},
		{"a\nb\tc", 5, "a⏎b c"},
		{"", 0, ""},
	} {
		var c cells
		line := c.of(tc.text)
		if n := len([]rune(line)); n != tc.columns || c.text(line) != tc.text || c.shown(line) != tc.shown {
			t.Errorf("%q: %d columns, shown %q, text %q", tc.text, n, c.shown(line), c.text(line))
		}
	}
	var c cells
	for i := range 0x12000 { // more characters than there are private runes
		_ = c.of(string(rune(0x1F300+i%0x300)) + string(rune(0xFE00+i%16)) + string(rune(0x300+i%0x60)))
	}
	if len(c.list) > maxCells {
		t.Errorf("%d cells", len(c.list))
	}
}

func FuzzLineEditor(f *testing.F) {
	f.Add("a\x1b[200~b\r\x1b[201~\x7f\x1b[D\r\x04")
	f.Add("今\x03\x1b[A\r")
	f.Fuzz(func(_ *testing.T, typed string) {
		e := makeLineEditor(nil, strings.NewReader(typed), io.Discard)
		for range len(typed) + 2 {
			if _, err := e.ReadLine("> "); errors.Is(err, io.EOF) {
				return
			}
		}
	})
}
