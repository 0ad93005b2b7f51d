package runner

import (
	"context"
	"slices"

	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/runner/chattmpl"
)

// Chat is a conversation of several turns. Each turn renders all messages;
// tokens that the state already holds are not fed again: plain KV caches go
// back to where the new prompt parts from the old one, recurrent ones to a
// snapshot taken where the answer began.
type Chat struct {
	r      *Runner
	system string
	extra  map[string]any
	msgs   []chattmpl.Message
}

// NewChat starts a conversation. system may be empty; extra are variables
// for the chat template.
func (r *Runner) NewChat(system string, extra map[string]any) *Chat {
	return &Chat{r: r, system: system, extra: extra}
}

// Messages returns the conversation so far, without the system message.
func (c *Chat) Messages() []chattmpl.Message { return slices.Clone(c.msgs) }

// System returns the system message, "" for none.
func (c *Chat) System() string { return c.system }

// SetSystem changes the system message from the next turn on.
func (c *Chat) SetSystem(text string) { c.system = text }

// Clear forgets the conversation, not the system message.
func (c *Chat) Clear() error {
	c.msgs = nil
	return c.r.Reset()
}

// Restore replaces the conversation: a system message may come first, then
// user and assistant messages in turn, the last one of the assistant. Other
// lists are an error of class diag.Usage, and nothing changes.
func (c *Chat) Restore(msgs []chattmpl.Message) error {
	system := ""
	rest := msgs
	if len(rest) > 0 && rest[0].Role == "system" {
		system, rest = rest[0].Content, rest[1:]
	}
	for i, m := range rest {
		if want := []string{"user", "assistant"}[i%2]; m.Role != want {
			return diag.Errorf(diag.Pos{}, diag.Usage, "message %d has the role %q, want %q", len(msgs)-len(rest)+i+1, m.Role, want)
		}
	}
	if len(rest)%2 != 0 {
		return diag.Errorf(diag.Pos{}, diag.Usage, "the last of %d messages is of the user, want an answer after it", len(msgs))
	}
	c.system, c.msgs = system, slices.Clone(rest)
	return nil
}

// answerRoom is how many positions a turn keeps free for its answer: old
// turns leave the context to make room for them.
const answerRoom = 100

// Turn is the prompt of a message in a conversation.
type Turn struct {
	Prompt  *Prompt
	Dropped int // turns that left the context to make room
	stable  int
	msgs    []chattmpl.Message
}

// Turn renders and encodes the conversation with a user message after it.
// When it no longer fits the context, with room for an answer, the oldest
// turns are dropped, always a user message with its answer.
func (c *Chat) Turn(text string) (*Turn, error) {
	t := &Turn{msgs: append(slices.Clone(c.msgs), chattmpl.Message{Role: "user", Content: text})}
	limit := c.r.ContextLength()
	for {
		p, err := c.r.Prompt(PromptInput{Messages: t.msgs, System: c.system, Extra: c.extra})
		if err != nil {
			return nil, err
		}
		t.Prompt = p
		if len(p.IDs) <= limit-min(answerRoom, limit/4) || len(t.msgs) < 3 {
			break
		}
		t.msgs = t.msgs[2:]
		t.Dropped++
	}
	if c.r.contract == nil || c.r.contract.Rewindable(limit, 1) {
		return t, nil
	}
	// The next prompt will begin with these messages, not always with the
	// opening of the answer and the answer: templates leave out thinking.
	closed, err := c.r.Prompt(PromptInput{Messages: t.msgs, System: c.system, Extra: c.extra, Closed: true})
	if err == nil {
		t.stable = commonPrefix(closed.IDs, t.Prompt.IDs)
	}
	return t, nil
}

func commonPrefix(a, b []int) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// Answer generates the answer to a turn; req gives everything but the
// prompt. After an error the user message is taken back, but for an
// interrupted answer, whose part stays.
func (c *Chat) Answer(ctx context.Context, t *Turn, req Request, onText func(string)) (*Result, error) {
	req.PromptIDs, req.Reuse, req.Stable = t.Prompt.IDs, true, t.stable
	res, err := c.r.Generate(ctx, req, onText)
	if err != nil && (res == nil || res.Text == "" || diag.CodeOf(err) != diag.Interrupted) {
		return res, err
	}
	c.msgs = slices.Concat(t.msgs, []chattmpl.Message{{Role: "assistant", Content: res.Text}})
	return res, err
}

// Send is Turn and Answer; dropped is the number of turns that left.
func (c *Chat) Send(ctx context.Context, text string, req Request, onText func(string)) (res *Result, dropped int, err error) {
	t, err := c.Turn(text)
	if err != nil {
		return nil, 0, err
	}
	res, err = c.Answer(ctx, t, req, onText)
	return res, t.Dropped, err
}
