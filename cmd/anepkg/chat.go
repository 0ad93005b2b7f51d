package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/runner"
)

// lineReader reads what the user types, a line at a time. The error is
// io.EOF at the end (Ctrl-D), and errDiscarded when the line was given up
// (Ctrl-C).
type lineReader interface {
	ReadLine(prompt string) (string, error)
}

// errDiscarded is a line that the user gave up.
var errDiscarded = errors.New("the line was given up")

// chatSession is a conversation at a terminal.
type chatSession struct {
	t       *tool
	r       *runner.Runner
	chat    *runner.Chat
	req     runner.Request
	sample  sampling
	in      lineReader
	hide    bool // leave out the thinking
	answers int
	last    *runner.Result
	tokens  int     // generated in all
	decode  float64 // seconds that they took
	fed     int     // prompt tokens fed
	reused  int     // prompt tokens that the state held already
	pending bool    // a half-typed line was given up
	bar     *progress
}

// chat talks with the user until the end of input.
func (t *tool) chat(ctx context.Context, c *cli.Context, r *runner.Runner, req runner.Request, in runner.PromptInput, s sampling, bar *progress) error {
	if r.IsEncoder() {
		return usagef("the package is an encoder: it gives an embedding and cannot chat").WithHint("give a text with --prompt")
	}
	// A full context drops its older half, unless that is to be an error.
	req.Shift = !c.Bool("strict-context")
	session := &chatSession{
		t: t, r: r, chat: r.NewChat(in.System, in.Extra), req: req, sample: s, hide: c.Bool("hide-thinking"), in: t.lineReader(), bar: bar,
	}
	t.notef("%s with %d positions; /help lists the commands\n", r.Package().Name, r.ContextLength())
	if text := s.String(); text != "" {
		t.notef("%s\n", t.style(t.stderrTTY).dim(text))
	}
	return session.loop(ctx)
}

// loop reads and answers until the end of input.
func (s *chatSession) loop(ctx context.Context) error {
	for {
		text, err := s.message()
		switch {
		case ctx.Err() != nil:
			s.t.printf("\n")
			return ctx.Err()
		case errors.Is(err, io.EOF):
			s.t.printf("\n")
			return nil
		case errors.Is(err, errDiscarded):
			s.giveUp()
			continue
		case err != nil:
			return err
		}
		s.pending = false
		switch {
		case strings.TrimSpace(text) == "":
		case strings.HasPrefix(text, "/"):
			done, err := s.command(text)
			if done || err != nil {
				return err
			}
		default:
			if err := s.turn(ctx, text); err != nil {
				return err
			}
		}
	}
}

// giveUp tells at the second Ctrl-C in a row how to leave.
func (s *chatSession) giveUp() {
	if s.pending {
		s.t.notef("Ctrl-D or /exit leaves\n")
	}
	s.pending = true
}

// message reads one message: a line; several when a line ends with a
// backslash; or all up to the closing """.
func (s *chatSession) message() (string, error) {
	st := s.t.style(s.t.stdoutTTY)
	line, err := s.in.ReadLine(st.green(">") + " ")
	if err != nil {
		return "", err
	}
	more := st.dim("…") + " "
	trimmed := strings.TrimSpace(line)
	if rest, block := strings.CutPrefix(trimmed, `"""`); block {
		text := rest
		for !strings.HasSuffix(strings.TrimRight(text, " \t"), `"""`) {
			if line, err = s.in.ReadLine(more); err != nil {
				return "", err
			}
			text += "\n" + line
		}
		text = strings.TrimSuffix(strings.TrimRight(text, " \t"), `"""`)
		return strings.Trim(text, "\n"), nil
	}
	text := line
	for strings.HasSuffix(text, `\`) {
		if line, err = s.in.ReadLine(more); err != nil {
			return "", err
		}
		text = strings.TrimSuffix(text, `\`) + "\n" + line
	}
	if strings.HasPrefix(text, "/") {
		text = strings.TrimSpace(text)
	}
	return text, nil
}

// turn sends one message and streams the answer, which an interrupt stops.
// What the user can change, such as a message that is too long, is reported
// and the chat goes on.
func (s *chatSession) turn(ctx context.Context, text string) error {
	turn, err := s.chat.Turn(text)
	if err != nil {
		return s.report(err)
	}
	if turn.Prompt.Note != "" && s.answers == 0 {
		s.t.notef("note: %s\n", turn.Prompt.Note)
	}
	answer, end := interruptsOf(ctx).scope(ctx)
	defer end()
	show := s.t.answerWriter(turn.Prompt.Text, s.hide)
	req := s.req
	req.OnThinking = show.mark
	res, err := s.chat.Answer(answer, turn, req, func(piece string) {
		s.bar.done()
		show.push(piece)
	})
	s.bar.done()
	show.end(res != nil)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	st := s.t.style(s.t.stderrTTY)
	stopped := answer.Err() != nil
	if err != nil && !stopped {
		return s.report(err)
	}
	if turn.Dropped > 0 {
		s.t.notef("%s\n", st.yellow("the context was full: the oldest "+plural(turn.Dropped, "turn")+" left it"))
	}
	if res != nil && res.Shifts > 0 {
		s.t.notef("%s\n", st.yellow("the context was full: the older half of the tokens left it"))
	}
	s.count(res)
	switch {
	case stopped && (res == nil || res.Text == ""):
		s.t.notef("%s\n", st.dim("stopped before the answer began; the message was taken back"))
	case stopped:
		s.t.notef("%s\n", st.dim(summary(res)+" · stopped"))
	default:
		s.t.notef("%s\n", st.dim(summary(res)))
	}
	return s.t.stdout.err
}

// report prints an error that a turn can have by what the user typed, or
// that spoils one answer; it returns the others.
func (s *chatSession) report(err error) error {
	code, _, hint := classify(err)
	switch code {
	case diag.Context, diag.Usage, diag.Malformed, diag.RunFailed:
		st := s.t.style(s.t.stderrTTY)
		fmt.Fprintf(s.t.stderr, "%s %s\n", st.red("anepkg:"), err)
		if hint != "" {
			fmt.Fprintf(s.t.stderr, "%s %s\n", st.cyan("hint:"), hint)
		}
		return nil
	}
	return err
}

// count adds a turn to the statistics.
func (s *chatSession) count(res *runner.Result) {
	if res == nil {
		return
	}
	s.answers++
	s.last = res
	s.tokens += res.Timings.DecodeTokens
	s.decode += res.Timings.Decode
	s.fed += res.Timings.PrefillTokens
	s.reused += len(res.PromptIDs) - res.Timings.PrefillTokens
}

// lineReader returns an editor when the user sits at a terminal, else plain
// lines.
func (t *tool) lineReader() lineReader {
	if t.terminal != nil {
		return newLineEditor(t)
	}
	return &plainLines{t: t, in: bufio.NewReader(t.stdin)}
}

// plainLines reads lines without editing.
type plainLines struct {
	t  *tool
	in *bufio.Reader
}

// ReadLine implements lineReader.
func (p *plainLines) ReadLine(prompt string) (string, error) {
	p.t.printf("%s", prompt)
	line, err := readLine(p.in)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, context.Canceled) {
		err = diag.Errorf(diag.In("standard input"), diag.IO, "%w", err)
	}
	return string(line), err
}
