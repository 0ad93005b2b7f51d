package runner

import (
	"errors"
	"io/fs"
	"strings"

	"github.com/anepkg/anepkg/runner/chattmpl"
	"github.com/anepkg/anepkg/runner/tokenizer"
)

func isNotExist(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// family is a chat format that is known by its special tokens.
type family struct {
	name  string
	marks []string // tokens that the vocabulary must have
	bos   bool     // the format begins with the BOS token
	// before and after enclose a message; ROLE stands for its role.
	before, after string
	roles         map[string]string
}

// families are tried in order.
var families = []family{
	{name: "ChatML", marks: []string{"<|im_start|>", "<|im_end|>"}, before: "<|im_start|>ROLE\n", after: "<|im_end|>\n"},
	{name: "Llama 3", marks: []string{"<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"}, bos: true,
		before: "<|start_header_id|>ROLE<|end_header_id|>\n\n", after: "<|eot_id|>"},
	{name: "Gemma", marks: []string{"<start_of_turn>", "<end_of_turn>"}, bos: true,
		before: "<start_of_turn>ROLE\n", after: "<end_of_turn>\n", roles: map[string]string{"assistant": "model"}},
}

func familyOf(tok tokenizer.Tokenizer) *family {
	for i := range families {
		found := true
		for _, m := range families[i].marks {
			_, ok := tok.ID(m)
			found = found && ok
		}
		if found {
			return &families[i]
		}
	}
	return nil
}

// render writes the messages and with open the assistant's opening. A system
// message of a format without that role is put before the first user
// message, as Gemma's own template does.
func (f *family) render(msgs []chattmpl.Message, bos string, open bool) string {
	var b strings.Builder
	if f.bos {
		b.WriteString(bos)
	}
	prefix := ""
	for _, m := range msgs {
		if m.Role == "system" && f.roles != nil {
			prefix = m.Content + "\n\n"
			continue
		}
		b.WriteString(f.open(m.Role))
		b.WriteString(prefix + strings.TrimSpace(m.Content))
		b.WriteString(f.after)
		prefix = ""
	}
	if open {
		b.WriteString(f.open("assistant"))
	}
	return b.String()
}

func (f *family) open(role string) string {
	if r := f.roles[role]; r != "" {
		role = r
	}
	return strings.Replace(f.before, "ROLE", role, 1)
}
