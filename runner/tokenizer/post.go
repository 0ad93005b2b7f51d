package tokenizer

import "fmt"

// processor adds special tokens around the ids of a text.
type processor interface {
	process(ids []int) []int
}

type processSequence []processor

func (q processSequence) process(ids []int) []int {
	for _, p := range q {
		ids = p.process(ids)
	}
	return ids
}

// template puts fixed ids around the text.
type template []templatePart

// templatePart is the text, or fixed ids.
type templatePart struct {
	text bool
	ids  []int
}

func (t template) process(ids []int) []int {
	out := make([]int, 0, len(ids)+len(t))
	for _, p := range t {
		if p.text {
			out = append(out, ids...)
		} else {
			out = append(out, p.ids...)
		}
	}
	return out
}

// newProcessor builds the post-processor that n describes; nil when it adds nothing.
func newProcessor(n *node) (processor, error) {
	if n == nil {
		return nil, nil
	}
	switch n.Type {
	case "Sequence":
		var q processSequence
		for i := range n.Processors {
			p, err := newProcessor(&n.Processors[i])
			if err != nil {
				return nil, fmt.Errorf("processors[%d]: %w", i, err)
			}
			if p != nil {
				q = append(q, p)
			}
		}
		if len(q) == 0 {
			return nil, nil
		}
		return q, nil
	case "ByteLevel":
		return nil, nil
	case "TemplateProcessing":
		return newTemplate(n)
	case "BertProcessing", "RobertaProcessing":
		if n.Sep == nil || n.Cls == nil {
			return nil, fmt.Errorf("%s needs both sep and cls", n.Type)
		}
		return template{{ids: []int{n.Cls.id}}, {text: true}, {ids: []int{n.Sep.id}}}, nil
	}
	return nil, unknownType("post-processor", n.Type, "Sequence", "ByteLevel", "TemplateProcessing",
		"BertProcessing", "RobertaProcessing")
}

// maxTemplate bounds how often a template may repeat the text.
const maxTemplate = 64

func newTemplate(n *node) (processor, error) {
	if len(n.Single) > maxTemplate {
		return nil, fmt.Errorf("template has %d parts, want at most %d", len(n.Single), maxTemplate)
	}
	var t template
	for i, part := range n.Single {
		if _, ok := part["Sequence"]; ok {
			t = append(t, templatePart{text: true})
			continue
		}
		tok, ok := part["SpecialToken"]
		if !ok {
			return nil, fmt.Errorf("single[%d] is neither Sequence nor SpecialToken", i)
		}
		known, ok := n.SpecialTokens[tok.ID]
		if !ok {
			return nil, fmt.Errorf("single[%d]: %q is not in special_tokens", i, tok.ID)
		}
		t = append(t, templatePart{ids: known.IDs})
	}
	return t, nil
}
