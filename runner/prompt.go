package runner

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/manifest"
	"github.com/anepkg/anepkg/runner/chattmpl"
	"github.com/anepkg/anepkg/runner/tokenizer"
)

// PromptInput is a prompt as a user gives it: ids, or text, or messages. IDs
// win over Objects, those over Messages, Messages over Text.
type PromptInput struct {
	IDs []int
	// Objects are messages with any members, such as tool_calls, as
	// chattmpl.DecodeJSON gives them.
	Objects  []any
	Messages []chattmpl.Message
	Text     string // one user message, or the raw text when Raw is set
	System   string // a system message before the others
	Raw      bool   // no chat template
	// Closed leaves out the opening of an answer that follows the messages.
	Closed bool
	// Extra are variables for the chat template besides messages,
	// add_generation_prompt and the special tokens.
	Extra map[string]any
}

// Prompt is a prompt in tokens.
type Prompt struct {
	IDs  []int
	Text string // what was encoded; "" for ids
	// Format says how the text was made: "ids", "raw", "chat template
	// (FILE)", or the name of a known family's format.
	Format string
	// Note tells about a fall-back, "" if there was none.
	Note string
}

// Prompt encodes a prompt. Raw text gets the special tokens that the
// tokenizer adds by itself (such as a leading BOS). Messages go through the
// package's chat template and are encoded without those, since the template
// writes them. Without a template the format of a known family is used,
// recognised by its special tokens (ChatML, Llama 3, Gemma); without such
// tokens the text is raw.
func (r *Runner) Prompt(in PromptInput) (*Prompt, error) {
	if in.IDs != nil {
		return &Prompt{IDs: in.IDs, Format: "ids"}, nil
	}
	tok, err := r.Tokenizer()
	if err != nil {
		return nil, err
	}
	if r.IsEncoder() { // it takes a text, not a chat
		in.Raw = in.Raw || in.Messages == nil && in.Objects == nil
	}
	p, err := renderPrompt(r.pkg, tok, in)
	if err != nil {
		return nil, err
	}
	if r.IsEncoder() {
		p.Note = taskNote(r.pkg, p.Text)
	}
	p.IDs, err = tok.Encode(p.Text, p.Format == formatRaw)
	return p, err
}

const formatRaw = "raw"

// taskNote tells of the prefixes that an embedding model was trained with
// (task_prefixes of model_config.json) when a text begins with none of them.
func taskNote(pkg *manifest.Package, text string) string {
	prefixes := pkg.Params.Get("task_prefixes")
	if prefixes == nil {
		return ""
	}
	var names []string
	for i := range prefixes.Elems {
		s, ok := prefixes.Elems[i].Str()
		if ok && s != "" && strings.HasPrefix(text, s) {
			return ""
		}
		if ok && s != "" {
			names = append(names, fmt.Sprintf("%q (%s)", s, prefixes.Elems[i].Key))
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "the model expects a task prefix before the text: " + strings.Join(names, ", ")
}

// renderPrompt makes the text of a prompt and says how.
func renderPrompt(pkg *manifest.Package, tok tokenizer.Tokenizer, in PromptInput) (*Prompt, error) {
	msgs, err := in.messages()
	if err != nil {
		return nil, err
	}
	if msgs == nil {
		if in.Raw {
			return &Prompt{Text: in.Text, Format: formatRaw}, nil
		}
		msgs = []chattmpl.Message{{Role: "user", Content: in.Text}}
	}
	if in.System != "" {
		msgs = append([]chattmpl.Message{{Role: "system", Content: in.System}}, msgs...)
	}
	tk := pkg.Tokenizer
	if tk.ChatTemplate != "" && !in.Raw {
		t, err := chattmpl.Parse(tk.ChatTemplate)
		if err != nil {
			return nil, templateError(tk, err)
		}
		text, err := in.render(t, msgs, templateVars(tk, in.Extra))
		if err != nil {
			return nil, templateError(tk, err)
		}
		return &Prompt{Text: text, Format: fmt.Sprintf("chat template (%s)", tk.ChatTemplateFrom)}, nil
	}
	if !in.Raw {
		if f := familyOf(tok); f != nil {
			return &Prompt{Text: f.render(msgs, tk.Special["bos"].Content, !in.Closed), Format: f.name,
				Note: fmt.Sprintf("the package has no chat template; the vocabulary has %s, so the %s format is used", f.marks[0], f.name)}, nil
		}
	}
	p := &Prompt{Format: formatRaw}
	for i, m := range msgs {
		if i > 0 {
			p.Text += "\n\n"
		}
		p.Text += m.Content
	}
	if !in.Raw {
		p.Note = "the package has no chat template and no known chat tokens: the text is used as it is"
	}
	return p, nil
}

// messages are what formats without a template take: role and content.
func (in PromptInput) messages() ([]chattmpl.Message, error) {
	if in.Objects == nil {
		return in.Messages, nil
	}
	out := []chattmpl.Message{}
	for i, o := range in.Objects {
		m, ok := o.(*chattmpl.OrderedMap)
		if !ok {
			return nil, diag.Errorf(diag.Pos{}, diag.Usage, "message %d is no object with role and content", i+1)
		}
		role, _ := m.Get("role")
		name, ok := role.(string)
		if !ok || name == "" {
			return nil, diag.Errorf(diag.Pos{}, diag.Usage, "message %d has no role", i+1)
		}
		content, _ := m.Get("content")
		text, _ := content.(string)
		out = append(out, chattmpl.Message{Role: name, Content: text})
	}
	return out, nil
}

// render gives the template the messages as they are.
func (in PromptInput) render(t *chattmpl.Template, msgs []chattmpl.Message, vars map[string]any) (string, error) {
	if in.Objects == nil {
		return t.RenderChat(msgs, !in.Closed, vars)
	}
	objects := slices.Clone(in.Objects)
	if in.System != "" {
		system := chattmpl.NewMap()
		system.Set("role", "system")
		system.Set("content", in.System)
		objects = slices.Insert(objects, 0, any(system))
	}
	values := chattmpl.NewMap()
	for _, k := range slices.Sorted(maps.Keys(vars)) {
		values.Set(k, vars[k])
	}
	values.Set("messages", objects)
	values.Set("add_generation_prompt", !in.Closed)
	return t.Render(chattmpl.Request{Values: values})
}

// templateVars are the variables that chat templates expect besides the
// messages, as transformers passes them.
func templateVars(tk manifest.Tokenizer, extra map[string]any) map[string]any {
	vars := map[string]any{}
	for name, t := range tk.Special {
		if t.Content != "" {
			vars[name+"_token"] = t.Content
		}
	}
	for k, v := range extra {
		vars[k] = v
	}
	return vars
}

func templateError(tk manifest.Tokenizer, err error) error {
	code := diag.CodeOf(err)
	if code == "" {
		code = diag.Malformed
	}
	pos := diag.In(tk.ChatTemplateFrom)
	var failed *chattmpl.Error
	var raised *chattmpl.RaiseError
	switch {
	case errors.As(err, &failed):
		pos.Line = failed.Line
	case errors.As(err, &raised):
		pos.Line = raised.Line
	}
	return diag.Errorf(pos, code, "%w", err).
		WithHint("use --raw to run without the template")
}

// maxFile bounds what is read whole; the largest tokenizer.json known has
// 35 MB, the largest golden logits a few.
const maxFile = 1 << 30

// readFile reads a file of bounded size.
func readFile(fsys fs.FS, name string) ([]byte, error) {
	f, err := fsys.Open(name)
	if err != nil {
		code := diag.IO
		if isNotExist(err) {
			code = diag.NotFound
		}
		return nil, diag.Errorf(diag.In(name), code, "cannot be opened: %w", err)
	}
	defer f.Close() //nolint:errcheck // read only
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, diag.Errorf(diag.In(name), diag.IO, "cannot be read: %w", err)
	}
	if len(data) > maxFile {
		return nil, diag.Errorf(diag.In(name), diag.TooLarge, "more than %d bytes", maxFile)
	}
	return data, nil
}
