package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strings"

	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/runner"
)

const chatHelp = `  /clear  begin a new conversation
  /exit   leave (also: end of input)
  /help   show this
`

// chat talks with the user until the end of input.
func (t *tool) chat(ctx context.Context, r *runner.Runner, req runner.Request, system string) error {
	st := t.style(t.stdoutTTY)
	t.notef("%s with %d positions; /help lists the commands\n", r.Package().Name, r.ContextLength())
	conversation := r.NewChat(system, nil)
	lines := readLines(ctx, t.stdin)
	for {
		t.printf("%s ", st.green(">"))
		var line string
		select {
		case <-ctx.Done():
			t.printf("\n")
			return ctx.Err()
		case got, ok := <-lines:
			if !ok || got.err != nil {
				t.printf("\n")
				return got.err
			}
			line = strings.TrimSpace(got.text)
		}
		switch line {
		case "":
		case "/exit", "/quit":
			return nil
		case "/help":
			t.printf("%s", chatHelp)
		case "/clear":
			if err := conversation.Clear(); err != nil {
				return err
			}
		default:
			if err := t.turn(ctx, conversation, req, line); err != nil {
				return err
			}
		}
	}
}

// turn sends one message and streams the answer. What the user can change,
// such as a message that is too long, is reported and the chat goes on.
func (t *tool) turn(ctx context.Context, conversation *runner.Chat, req runner.Request, line string) error {
	res, dropped, err := conversation.Send(ctx, line, req, t.say)
	t.printf("\n")
	switch {
	case err == nil:
	case diag.CodeOf(err) == diag.Context || diag.CodeOf(err) == diag.Usage:
		t.notef("%s\n", err)
		return nil
	default:
		return err
	}
	st := t.style(t.stderrTTY)
	if dropped > 0 {
		t.notef("%s\n", st.yellow("the context was full: the oldest "+plural(dropped, "turn")+" left it"))
	}
	t.notef("%s\n", st.dim(summary(res)))
	return t.stdout.err
}

// inputLine is one line, or why there are no more.
type inputLine struct {
	text string
	err  error
}

// readLines reads in the background, so that an interrupt is seen while the
// program waits for input. The channel closes at the end of input.
func readLines(ctx context.Context, r io.Reader) <-chan inputLine {
	lines := make(chan inputLine)
	send := func(l inputLine) bool {
		select {
		case lines <- l:
			return true
		case <-ctx.Done():
			return false
		}
	}
	go func() {
		defer close(lines)
		in := bufio.NewScanner(r)
		in.Buffer(nil, maxInput)
		for in.Scan() {
			if !send(inputLine{text: in.Text()}) {
				return
			}
		}
		if err := in.Err(); err != nil && !errors.Is(err, io.EOF) {
			send(inputLine{err: diag.Errorf(diag.In("standard input"), diag.IO, "%w", err)})
		}
	}()
	return lines
}
