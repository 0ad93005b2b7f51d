package manifest

import (
	"strconv"
)

const maxTokenizer = 512 << 20

// readVocabulary walks over tokenizer.json: the model's type, the highest
// id, the ids of the wanted tokens, and the added tokens. Merges and
// everything else are skipped, so memory does not grow with the vocabulary.
func (r *tokenizerFacts) readVocabulary(p *Package, name string) error {
	data, err := readFile(p.FS, name, maxTokenizer)
	if err != nil {
		return err
	}
	d := newJSONDoc(name, data)
	top := -1
	err = d.object(0, func(key string, _ int) error {
		switch {
		case key == "added_tokens" && d.peek() == '[':
			return d.array(1, func(int) error { return r.added(d, &top) })
		case key == "model" && d.peek() == '{':
			return d.object(1, func(key string, _ int) error { return r.modelMember(d, key, &top) })
		}
		return d.skip(1)
	})
	if err == nil {
		err = d.end()
	}
	p.dialect(d.dups)
	r.t.VocabSize = top + 1
	return err
}

func (r *tokenizerFacts) added(d *jsonDoc, top *int) error {
	e, err := d.value(2)
	if err != nil {
		return err
	}
	d.nodes = 0 // the bound is for one token, not for the list
	id, ok := e.Member("id").Int()
	text, ok2 := e.Member("content").Str()
	if !ok || !ok2 || id < 0 {
		return d.fail(d.i, "added token without id and content")
	}
	special, _ := e.Member("special").Bool()
	r.t.Added = append(r.t.Added, SpecialToken{Content: text, ID: id, Special: special, Pos: e.Member("id").At(e.Pos)})
	r.ids[text] = id
	*top = max(*top, id)
	return nil
}

func (r *tokenizerFacts) modelMember(d *jsonDoc, key string, top *int) error {
	switch {
	case key == "type" && d.peek() == '"':
		s, err := d.str()
		r.t.Type = s
		return err
	case key == "vocab" && d.peek() == '{':
		if r.t.Type == "" {
			r.t.Type = "BPE" // older files leave the type out
		}
		return d.object(2, func(token string, _ int) error {
			at := d.i
			s, err := d.scalar()
			if err != nil {
				return err
			}
			id, err := strconv.Atoi(s)
			if err != nil || id < 0 {
				return d.fail(at, "token %q: got id %q, want a number from 0", token, s)
			}
			r.found(token, id, top)
			return nil
		})
	case key == "vocab" && d.peek() == '[':
		if r.t.Type == "" {
			r.t.Type = "Unigram"
		}
		return d.array(2, func(i int) error {
			first := true
			return d.array(3, func(int) error {
				if !first {
					return d.skip(4)
				}
				first = false
				token, err := d.str()
				r.found(token, i, top)
				return err
			})
		})
	}
	return d.skip(2)
}

func (r *tokenizerFacts) found(token string, id int, top *int) {
	if old, want := r.ids[token]; want && old < 0 {
		r.ids[token] = id
	}
	*top = max(*top, id)
}
