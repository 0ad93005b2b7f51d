package runner

import "strings"

// thinkTokens are special tokens that open (true) and close what a model
// thinks: Gemma 4's, which the text leaves out. After the opening one stands
// the name of the channel and a line end.
var thinkTokens = map[string]bool{"<|channel>": true, "<channel|>": false}

const thinkChannel = "thought\n"

// The marks that enclose what a model thinks before it answers, in the text
// of Qwen 3, DeepSeek R1 and models made after them.
const (
	thinkOpen  = "<think>"
	thinkClose = "</think>"
)

// Thinking parts streamed text into what a model thinks and what it answers.
// The marks themselves are left out, and so is white space around them.
type Thinking struct {
	emit   func(text string, thinking bool)
	inside bool
	held   string // what may be the beginning of a mark
	begun  bool   // something of the present part was emitted
	named  bool   // the name of the channel may follow
}

// NewThinking begins to part the text that follows prompt, whose template
// may have opened the thinking already.
func NewThinking(prompt string, emit func(text string, thinking bool)) *Thinking {
	open, closed := strings.LastIndex(prompt, thinkOpen), strings.LastIndex(prompt, thinkClose)
	return &Thinking{emit: emit, inside: open >= 0 && open > closed && strings.TrimSpace(prompt[open+len(thinkOpen):]) == ""}
}

// Push takes the next piece of the text.
func (t *Thinking) Push(piece string) {
	t.held += piece
	if t.named {
		if len(t.held) < len(thinkChannel) && strings.HasPrefix(thinkChannel, t.held) {
			return
		}
		t.held, t.named = strings.TrimPrefix(t.held, thinkChannel), false
	}
	for {
		mark := thinkOpen
		if t.inside {
			mark = thinkClose
		}
		i := strings.Index(t.held, mark)
		if i < 0 {
			keep := partOf(t.held, mark)
			t.say(t.held[:len(t.held)-keep], false)
			return
		}
		rest := t.held[i+len(mark):]
		t.say(t.held[:i], true)
		t.inside, t.held, t.begun = !t.inside, rest, false
	}
}

// Mark tells that a special token opened or closed the thinking: see
// Request.OnThinking.
func (t *Thinking) Mark(open bool) {
	t.held = strings.TrimRight(t.held, "\n")
	t.Flush()
	t.inside, t.named, t.begun = open, open, false
}

// Flush emits what was held back.
func (t *Thinking) Flush() {
	text := t.held
	if t.named {
		text = strings.TrimPrefix(text, thinkChannel)
	}
	t.held, t.named = "", false
	if !t.begun {
		text = strings.TrimLeft(text, "\n")
	}
	if text != "" {
		t.emit(text, t.inside)
	}
}

// Inside reports whether the text so far ends inside the thinking.
func (t *Thinking) Inside() bool { return t.inside }

// say emits the first bytes of held, whose text is given, and keeps line
// ends back until it is known that no mark follows them.
func (t *Thinking) say(text string, last bool) {
	t.held = t.held[len(text):]
	if !t.begun {
		text = strings.TrimLeft(text, "\n")
	}
	trimmed := strings.TrimRight(text, "\n")
	if !last {
		t.held = text[len(trimmed):] + t.held
	}
	if trimmed != "" {
		t.begun = true
		t.emit(trimmed, t.inside)
	}
}

// partOf is the length of the longest end of s that begins mark.
func partOf(s, mark string) int {
	for n := min(len(mark)-1, len(s)); n > 0; n-- {
		if strings.HasSuffix(s, mark[:n]) {
			return n
		}
	}
	return 0
}
