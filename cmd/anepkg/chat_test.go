package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anepkg/anepkg/coreml/backends"
	"github.com/anepkg/anepkg/manifest"
	"github.com/anepkg/anepkg/runner"
)

// typist is a lineReader that types lines, and "^C".
type typist struct {
	lines []string
}

func (p *typist) ReadLine(string) (string, error) {
	if len(p.lines) == 0 {
		return "", io.EOF
	}
	line := p.lines[0]
	p.lines = p.lines[1:]
	if line == "^C" {
		return "", errDiscarded
	}
	return line, nil
}

// hook is a writer that calls f after each write.
type hook struct {
	bytes.Buffer
	f func(text string)
}

func (h *hook) Write(p []byte) (int, error) {
	n, err := h.Buffer.Write(p)
	if h.f != nil {
		h.f(h.String())
	}
	return n, err
}

// openChat makes a session with the demo package.
func openChat(t *testing.T, lines ...string) (s *chatSession, out, notes *hook) {
	t.Helper()
	dir := extractedDemo(t)
	pkg, err := manifest.Open(t.Context(), os.DirFS(dir), dir)
	if err != nil {
		t.Fatal(err)
	}
	b, err := backends.New("cpu", backends.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := runner.Open(t.Context(), pkg, b, runner.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = errors.Join(r.Close(), pkg.Close()) })
	out, notes = &hook{}, &hook{}
	tl := &tool{stdout: &output{w: out}, stderr: notes, getenv: func(string) string { return "" }}
	return &chatSession{t: tl, r: r, chat: r.NewChat("", nil), req: runner.Request{Shift: true}, in: &typist{lines: lines}, bar: &progress{t: tl}}, out, notes
}

const kvAnswer = "A KV cache stores the keys and values of all past tokens, so that each new token needs only one step of work.\n"

func TestChatLoop(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.json")
	for _, tc := range []struct {
		name  string
		lines []string
		out   []string // in this order
		notes []string
	}{
		{"an answer", []string{"What is a KV cache?"}, []string{kvAnswer}, []string{"stopped by id 1023"}},
		{"empty lines say nothing", []string{"", "  "}, nil, nil},
		{"a line goes on", []string{`What is \`, "a KV cache?", "/save " + file}, nil, []string{"wrote 2 messages to " + file}},
		{"it was one message", []string{"/load " + file, "/stats"}, []string{"messages       2"}, []string{"2 messages from " + file}},
		{"a block", []string{`"""What is`, "", `a KV cache?"""`, "/stats"}, []string{"messages       2"}, nil},
		{"a block that is given up", []string{`"""What is`, "^C", "/stats"}, []string{"messages       0"}, nil},
		{"Ctrl-C twice", []string{"^C", "^C"}, nil, []string{"Ctrl-D or /exit leaves"}},
		{"help", []string{"/help"}, []string{"/system [TEXT]"}, nil},
		{"exit", []string{"/exit", "What is a KV cache?"}, nil, nil},
		{"the system message", []string{"/system", "/system be kind", "/system", "/system -", "/system"}, []string{"no system message", "be kind", "no system message"}, nil},
		{"reset", []string{"What is a KV cache?", "/reset", "/stats"}, []string{kvAnswer, "0 of 256", "messages       0"}, nil},
		{"stats", []string{"What is a KV cache?", "Who are you?", "/stats"}, []string{"answers        2", "prompt tokens  29 fed, 46 held already", "tokens/s"}, nil},
		{"an unknown command", []string{"/sistem x"}, nil, []string{"unknown command /sistem", "did you mean /system?"}},
		{"files that are missing", []string{"/save", "/load", "/load missing.json", "/load " + filepath.Dir(file)}, nil, []string{"/save wants a file name", "/load wants a file name", "missing.json"}},
		{"a slash after a space is a message", []string{" /help", "/stats"}, []string{"messages       2"}, nil},
		{"a message beyond the context", []string{strings.Repeat("What is a KV cache? ", 60), "What is a KV cache?"}, []string{kvAnswer}, []string{"the context holds 256"}},
	} {
		s, out, notes := openChat(t, tc.lines...)
		if err := s.loop(t.Context()); err != nil {
			t.Errorf("%s: %v", tc.name, err)
			continue
		}
		checkOrder(t, tc.name+", output", out.String(), tc.out)
		checkOrder(t, tc.name+", notes", notes.String(), tc.notes)
		if tc.out == nil && strings.TrimSpace(out.String()) != "" && tc.name != "a line goes on" {
			t.Errorf("%s: printed %q", tc.name, out.String())
		}
	}
}

func checkOrder(t *testing.T, name, text string, want []string) {
	t.Helper()
	rest := text
	for _, w := range want {
		_, after, found := strings.Cut(rest, w)
		if !found {
			t.Errorf("%s: no %q in %q", name, w, text)
			return
		}
		rest = after
	}
}

// TestChatFillsContext: old turns leave when the context is full.
func TestChatFillsContext(t *testing.T) {
	lines := []string{}
	for range 8 {
		lines = append(lines, "What is a KV cache?")
	}
	s, out, notes := openChat(t, lines...)
	if err := s.loop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), "\n"); s.answers != 8 || n < 8 || !strings.Contains(notes.String(), "left it") {
		t.Errorf("%d answers, notes %q", s.answers, notes.String())
	}
}

// TestChatInterrupt: an interrupt stops the answer, not the chat; one
// between answers ends it.
func TestChatInterrupt(t *testing.T) {
	in := &interrupts{}
	ctx, cancel := context.WithCancel(withInterrupts(t.Context(), in))
	s, out, notes := openChat(t, "What is a KV cache?", "/stats", "What is a KV cache?")
	out.f = func(text string) {
		if text == "A KV cache stores" && !in.deliver() {
			t.Error("nothing took the interrupt")
		}
	}
	if err := s.loop(ctx); err != nil {
		t.Fatal(err)
	}
	checkOrder(t, "output", out.String(), []string{"A KV cache stores", "messages       2"})
	checkOrder(t, "notes", notes.String(), []string{"stopped\n", "stopped by id"})
	if strings.Contains(strings.SplitN(out.String(), "\n", 2)[0], "past tokens") {
		t.Errorf("the answer went on: %q", out.String())
	}
	if in.deliver() {
		t.Error("an interrupt between answers was taken")
	}
	cancel()
	if err := s.loop(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("after the context's end: %v", err)
	}
}

func TestAnswerWriter(t *testing.T) {
	for _, tc := range []struct {
		name       string
		hide, tty  bool
		want, text string
	}{
		{"as it is", false, false, "<think>a</think>\n\nb\n", "<think>a</think>\n\nb"},
		{"hidden", true, false, "b\n", "<think>a</think>\n\nb"},
		{"dimmed", false, true, "\x1b[2ma\x1b[0m\n\nb\n", "<think>a</think>\n\nb"},
		{"hidden on a terminal", true, true, "b\n", "<think>a</think>\n\nb"},
		{"nothing but thoughts", true, false, "\n", "<think>a"},
		{"control characters", false, true, "a\ufffdb\n", "a\x1bb"},
	} {
		out := &hook{}
		tl := &tool{stdout: &output{w: out}, stderr: io.Discard, getenv: func(string) string { return "" }, stdoutTTY: tc.tty}
		w := tl.answerWriter("", tc.hide)
		w.push(tc.text)
		w.end(true)
		if out.String() != tc.want {
			t.Errorf("%s: got %q, want %q", tc.name, out.String(), tc.want)
		}
	}
}
