// Package chattmpl renders chat templates, the Jinja templates that turn a conversation into a prompt.
//
// It gives what Python's jinja2 gives when it is set up for chat templates: blocks trimmed and stripped, break and
// continue, the generation tag, a sandbox in which values cannot be changed, tojson without HTML escapes, and the
// functions raise_exception and strftime_now. Autoescaping is off, and templates cannot include others.
//
// Templates come from strangers: nesting, steps, and the bytes that a rendering makes are bounded.
//
// Where things are:
//
//   - template.go: the API; errors.go: its errors
//   - lexer.go, parser.go, parsexpr.go, ast.go: from text to tree
//   - value.go, convert.go: the values that templates work on; pystr.go: their text as Python writes it
//   - exec.go: statements; eval.go, ops.go: expressions
//   - attrs.go, strmethods.go: attributes and methods; filters*.go, tests.go, globals.go: what templates may use
//   - tojson.go, strftime.go: JSON and dates in Python's form
//
// Inside the package an error of the template is a panic with *Error or *RaiseError, which Parse and Render turn
// into a returned error.
package chattmpl

import (
	"time"
)

// Template is a parsed chat template. It may be rendered by several goroutines at once.
type Template struct {
	body []stmt
}

// Parse parses a template. Its error is an *Error with the line.
func Parse(source string) (*Template, error) {
	body, err := parse(source)
	if err != nil {
		return nil, err
	}
	return &Template{body}, nil
}

// Request is what a template is rendered with.
type Request struct {
	// Values are the variables: messages, tools, add_generation_prompt, bos_token and so on. Nil is none.
	Values *OrderedMap
	// Now is the clock of strftime_now; nil is time.Now.
	Now func() time.Time
}

// Render renders the template. When the template calls raise_exception, the error is a *RaiseError; other errors
// of the template are *Error.
func (t *Template) Render(req Request) (out string, err error) {
	defer recoverError(&err)
	x := &exec{now: req.Now}
	if x.now == nil {
		x.now = time.Now
	}
	root := &scope{vars: map[string]any{}}
	if req.Values != nil {
		for i, k := range req.Values.keys {
			if name, ok := k.(string); ok {
				root.vars[name] = convert(req.Values.vals[i], 0)
			}
		}
	}
	defer func() {
		if r := recover(); r != nil {
			panic(x.located(r))
		}
	}()
	x.run(t.body, &scope{parent: root})
	return string(x.out), nil
}

// Message is a turn of a conversation.
type Message struct{ Role, Content string }

// RenderChat renders the template with plain messages. Extra holds more variables, such as bos_token; it may be nil.
func (t *Template) RenderChat(msgs []Message, addGenerationPrompt bool, extra map[string]any) (out string, err error) {
	defer recoverError(&err)
	list := make([]any, len(msgs))
	for i, m := range msgs {
		o := NewMap()
		o.Set("role", m.Role)
		o.Set("content", m.Content)
		list[i] = o
	}
	values := convert(extra, 0).(*OrderedMap)
	values.Set("messages", list)
	values.Set("add_generation_prompt", addGenerationPrompt)
	return t.Render(Request{Values: values})
}
