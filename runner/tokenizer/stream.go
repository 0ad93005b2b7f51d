package tokenizer

import "strings"

// Stream decodes ids one at a time. All that Push and Flush return, joined, is what Decode returns for all ids.
type Stream struct {
	own   *decodeStream
	other *foreignStream
}

// NewStream returns a stream that decodes with t; skipSpecial leaves out special tokens.
func NewStream(t Tokenizer, skipSpecial bool) *Stream {
	if p, ok := t.(*pipeline); ok {
		return &Stream{own: p.newStream(skipSpecial)}
	}
	return &Stream{other: &foreignStream{t: t, skip: skipSpecial}}
}

// Push takes an id and returns the text that became certain, often "". Bytes of an incomplete character are held
// back; so is a run of byte tokens, which is decoded differently when it turns out not to be UTF-8.
func (s *Stream) Push(id int) string {
	if s.own != nil {
		return s.own.push(id)
	}
	return s.other.push(id)
}

// Flush returns the text that was held back. The stream must not be used afterwards.
func (s *Stream) Flush() string {
	if s.own != nil {
		return s.own.flush()
	}
	return s.other.flush()
}

// decodeStream feeds tokens through the stages of a pipeline's decoder.
type decodeStream struct {
	p      *pipeline
	skip   bool
	stages []stage
	emits  []func(chunk) // emits[i] is what stage i emits to
	out    []byte
}

func (p *pipeline) newStream(skip bool) *decodeStream {
	d := &decodeStream{p: p, skip: skip, stages: p.decoder()}
	d.emits = make([]func(chunk), len(d.stages)+1)
	d.emits[len(d.stages)] = func(c chunk) { d.out = append(d.out, c.text...) }
	for i := len(d.stages) - 1; i >= 0; i-- {
		st, next := d.stages[i], d.emits[i+1]
		d.emits[i] = func(c chunk) { st.push(c, next) }
	}
	return d
}

func (d *decodeStream) take() string {
	s := string(d.out)
	d.out = d.out[:0]
	return s
}

func (d *decodeStream) push(id int) string {
	tok, ok := d.p.model.vocabulary().token(id)
	if t, added := d.p.added.byID[id]; added {
		tok, ok = t.text, true
	}
	if !ok || d.skip && d.p.added.special[tok] {
		return ""
	}
	d.emits[0](chunk{tok, true})
	return d.take()
}

func (d *decodeStream) flush() string {
	for i, st := range d.stages {
		st.flush(d.emits[i+1])
	}
	return d.take()
}

// foreignStream streams with a Tokenizer of another package: it decodes everything again at each step and gives
// out what no longer ends in a replacement character.
type foreignStream struct {
	t    Tokenizer
	skip bool
	ids  []int
	sent int
}

func (f *foreignStream) push(id int) string {
	f.ids = append(f.ids, id)
	return f.send(strings.TrimRight(f.t.Decode(f.ids, f.skip), "\uFFFD"))
}

func (f *foreignStream) flush() string { return f.send(f.t.Decode(f.ids, f.skip)) }

func (f *foreignStream) send(text string) string {
	if len(text) <= f.sent {
		return ""
	}
	out := text[f.sent:]
	f.sent = len(text)
	return out
}
