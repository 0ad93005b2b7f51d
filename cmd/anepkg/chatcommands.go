package main

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strings"

	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/runner/chattmpl"
)

const chatHelp = `  /reset          begin a new conversation (also: /clear)
  /system [TEXT]  show the system message, or set it and begin anew; /system - removes it
  /save FILE      write the conversation as JSON
  /load FILE      go on with a conversation that /save wrote
  /stats          show context, speed and sampling
  /help           show this
  /exit           leave (also: Ctrl-D)

  A line that ends with \ goes on, so does one at Alt-Enter; """ begins and
  ends a text of several lines, and a paste may have several.
  Ctrl-C stops an answer, or gives up the line. A message may begin with a
  slash after a space.
`

var chatCommands = []string{"/reset", "/clear", "/system", "/save", "/load", "/stats", "/help", "/exit", "/quit"}

// chatFile is what /save writes.
type chatFile struct {
	Schema   string        `json:"schema"` // "anepkg.chat/1"
	Package  string        `json:"package"`
	Messages []chatMessage `json:"messages"` // a system message first, if there is one
}

type chatMessage struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

const chatSchema = "anepkg.chat/1"

// command obeys a line that begins with a slash; done ends the chat.
func (s *chatSession) command(line string) (done bool, err error) {
	name, arg, _ := strings.Cut(line, " ")
	arg = strings.TrimSpace(arg)
	switch name {
	case "/exit", "/quit":
		return true, nil
	case "/help":
		s.t.printf("%s", chatHelp)
	case "/reset", "/clear":
		err = s.reset()
	case "/system":
		err = s.system(arg)
	case "/save":
		err = s.save(arg)
	case "/load":
		err = s.load(arg)
	case "/stats":
		s.stats()
	default:
		err = usagef("unknown command %s", name).WithHint("%s", didYouMean(name, chatCommands, "/help lists the commands; a space before the slash makes it a message"))
	}
	if err == nil {
		return false, s.t.stdout.err
	}
	return false, s.reportAny(err)
}

// reportAny prints the error of a command: none ends the chat.
func (s *chatSession) reportAny(err error) error {
	if code, _, _ := classify(err); code == diag.Interrupted {
		return err
	}
	_, _, hint := classify(err)
	fmt.Fprintf(s.t.stderr, "%s %s\n", s.t.style(s.t.stderrTTY).red("anepkg:"), err)
	if hint != "" {
		fmt.Fprintf(s.t.stderr, "%s %s\n", s.t.style(s.t.stderrTTY).cyan("hint:"), hint)
	}
	return nil
}

func (s *chatSession) reset() error {
	s.answers, s.last, s.tokens, s.decode, s.fed, s.reused = 0, nil, 0, 0, 0, 0
	return s.chat.Clear()
}

func (s *chatSession) system(text string) error {
	switch text {
	case "":
		if s.chat.System() == "" {
			s.t.printf("no system message\n")
			return nil
		}
		s.t.printf("%s\n", visible(s.chat.System()))
		return nil
	case "-":
		text = ""
	}
	s.chat.SetSystem(text)
	return s.reset()
}

func (s *chatSession) save(name string) error {
	if name == "" {
		return usagef("/save wants a file name")
	}
	file := chatFile{Schema: chatSchema, Package: s.r.Package().Name, Messages: []chatMessage{}}
	if system := s.chat.System(); system != "" {
		file.Messages = append(file.Messages, chatMessage{"system", system})
	}
	for _, m := range s.chat.Messages() {
		file.Messages = append(file.Messages, chatMessage(m))
	}
	e := encoder{indent: true}
	e.object("", reflect.ValueOf(file), 0)
	if err := replaceFile(name, func(f *os.File) error {
		_, err := f.Write(append(e.buf.Bytes(), '\n'))
		return err
	}); err != nil {
		return err
	}
	s.t.notef("wrote %s to %s\n", plural(len(file.Messages), "message"), name)
	return nil
}

func (s *chatSession) load(name string) error {
	if name == "" {
		return usagef("/load wants a file name")
	}
	data, err := readFileBounded(name)
	if err != nil {
		return err
	}
	var file chatFile
	if err := json.Unmarshal([]byte(data), &file); err != nil {
		return diag.Errorf(diag.In(name), diag.Malformed, "no conversation: %w", err)
	}
	if file.Schema != chatSchema {
		return diag.Errorf(diag.In(name), diag.Malformed, "no conversation: the schema is %q, want %q", file.Schema, chatSchema)
	}
	msgs := make([]chattmpl.Message, len(file.Messages))
	for i, m := range file.Messages {
		msgs[i] = chattmpl.Message(m)
	}
	if err := s.chat.Restore(msgs); err != nil {
		return diag.Errorf(diag.In(name), diag.Malformed, "%w", err)
	}
	s.answers, s.last, s.tokens, s.decode, s.fed, s.reused = 0, nil, 0, 0, 0, 0
	s.t.notef("%s from %s\n", plural(len(msgs), "message"), name)
	return nil
}

func (s *chatSession) stats() {
	tb := table{}
	tb.row("context", fmt.Sprintf("%s of %s positions", thousands(int64(s.r.Position())), thousands(int64(s.r.ContextLength()))))
	tb.row("messages", fmt.Sprint(len(s.chat.Messages())))
	tb.row("answers", fmt.Sprint(s.answers))
	tb.row("prompt tokens", fmt.Sprintf("%s fed, %s held already", thousands(int64(s.fed)), thousands(int64(s.reused))))
	if s.decode > 0 {
		tb.row("speed", fmt.Sprintf("%s tokens/s over %s tokens", rate(float64(s.tokens)/s.decode), thousands(int64(s.tokens))))
	}
	if s.last != nil {
		tb.row("last answer", summary(s.last))
	}
	how := strings.TrimPrefix(s.sample.String(), "sampling: ")
	if how == "" {
		how = "greedy"
	}
	tb.row("sampling", how)
	tb.row("layout", fmt.Sprintf("%s on %s", s.r.Contract(), s.r.Backend()))
	tb.write(s.t.stdout)
}
