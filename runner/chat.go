package runner

import (
	"context"
	"slices"

	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/runner/chattmpl"
)

// Chat is a conversation of several turns. Each turn renders all messages;
// tokens that the state already holds are not fed again where the package's
// caches allow it (always for plain KV caches; for recurrent ones when the
// new prompt extends what was fed).
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

// Clear forgets the conversation.
func (c *Chat) Clear() error {
	c.msgs = nil
	return c.r.Reset()
}

// Send adds a user message and generates the answer; req gives everything
// but the prompt. When the conversation no longer fits the context its
// oldest turns are dropped, always a user message with its answer; dropped
// is their number. After an error the user message is taken back, but for
// an interrupted answer, whose part stays.
func (c *Chat) Send(ctx context.Context, text string, req Request, onText func(string)) (res *Result, dropped int, err error) {
	msgs := append(slices.Clone(c.msgs), chattmpl.Message{Role: "user", Content: text})
	for {
		p, err := c.r.Prompt(PromptInput{Messages: msgs, System: c.system, Extra: c.extra})
		if err != nil {
			return nil, dropped, err
		}
		req.PromptIDs = p.IDs
		if len(p.IDs) < c.r.ContextLength() || len(msgs) < 3 {
			break
		}
		msgs = msgs[2:]
		dropped++
	}
	req.Reuse = true
	res, err = c.r.Generate(ctx, req, onText)
	if err != nil && (res == nil || res.Text == "" || diag.CodeOf(err) != diag.Interrupted) {
		return res, dropped, err
	}
	msgs = append(msgs, chattmpl.Message{Role: "assistant", Content: res.Text})
	c.msgs = msgs
	return res, dropped, err
}
