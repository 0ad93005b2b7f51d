package runner

import (
	"context"
	"errors"
	"slices"

	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/coreml/tensor"
)

// linked is the network of CoreML-LLM's decoder chunks. What a chunk gives is
// handed on by name: to later chunks of the same step (hidden_states_out to
// hidden_states, per_layer_combined_out, kv13_k) and to its own next call
// (carry). All other inputs come from side files, the position and the masks.
type linked struct {
	chunks []*part
	lmHead *unit // nil when the last chunk gives the scores
	reader *head
	rows   map[string]rowSource
	mask   maskStyle
	pairs  map[*unit][]carry
	kept   map[*part]*carried
	st     *states
	// last is the last chunk that keeps something: later ones run only when
	// scores are wanted.
	last  int
	in    inputs
	trail []trailEntry
}

func (l *linked) head() HeadInfo  { return l.reader.info() }
func (l *linked) states() *states { return l.st }

func (l *linked) close() error {
	var errs []error
	for _, p := range l.chunks {
		errs = append(errs, p.close())
	}
	for _, src := range l.rows {
		errs = append(errs, src.Close())
	}
	if l.lmHead != nil {
		errs = append(errs, l.lmHead.close())
	}
	if l.st != nil {
		errs = append(errs, l.st.close())
	}
	return errors.Join(errs...)
}

// handedOn is the input that an output becomes.
func handedOn(output string) string {
	switch output {
	case "hidden_states_out":
		return inHidden
	case "hidden":
		return inHiddenIn
	case "per_layer_combined_out":
		return "per_layer_combined"
	}
	return output
}

func (l *linked) run(ctx context.Context, st step, ids []int) (Scores, error) {
	in := &l.in
	in.begin(st, ids)
	in.mask, in.rows = l.mask, l.rows
	var outs map[string]*tensor.Tensor
	l.trail = l.trail[:0]
	for i, p := range l.chunks {
		if i > l.last && !st.want {
			break
		}
		u, err := p.unit(st.fn)
		if err != nil {
			return Scores{}, err
		}
		if outs, err = l.call(ctx, in, p, u); err != nil {
			return Scores{}, err
		}
		for _, name := range []string{"hidden_states_out", "hidden"} {
			if outs[name] != nil {
				l.trail = append(l.trail, trailEntry{u, outs[name]})
			}
		}
	}
	if !st.want {
		return Scores{}, nil
	}
	sc, err := l.score(ctx, st, outs)
	if diag.CodeOf(err) == diag.RunFailed {
		err = blame(st, l.trail, err)
	}
	return sc, err
}

// call runs one chunk and hands its outputs on.
func (l *linked) call(ctx context.Context, in *inputs, p *part, u *unit) (map[string]*tensor.Tensor, error) {
	kept := l.kept[p]
	for _, c := range l.pairs[u] {
		in.from[c.in] = kept.now[c.in]
	}
	args, err := in.fill(u)
	if err != nil {
		return nil, err
	}
	outs, err := u.predict(ctx, args, l.st.of(p, u.fn))
	if err != nil {
		return nil, err
	}
	for _, c := range l.pairs[u] {
		t := outs[c.out]
		if t == nil || t.DType != kept.zero[c.in].DType || !slices.Equal(t.Shape, kept.zero[c.in].Shape) {
			return nil, diag.Errorf(u.pos(), diag.Mismatch, "function %s gave no %s of the declared type", u.fn.Name, c.out)
		}
		kept.now[c.in] = t
		delete(in.from, c.in)
	}
	for name, t := range outs {
		in.from[handedOn(name)] = t
	}
	return outs, nil
}

func (l *linked) score(ctx context.Context, st step, outs map[string]*tensor.Tensor) (Scores, error) {
	p := l.chunks[len(l.chunks)-1]
	u := p.units[st.fn]
	if l.lmHead == nil {
		return l.reader.read(u, outs)
	}
	hidden, err := u.output(outs, "hidden")
	if err != nil {
		return Scores{}, err
	}
	l.in.from[l.lmHead.fn.Inputs[0].Name] = lastRow(hidden)
	args, err := l.in.fill(l.lmHead)
	if err != nil {
		return Scores{}, err
	}
	outs, err = l.lmHead.predict(ctx, args, nil)
	if err != nil {
		return Scores{}, err
	}
	return l.reader.read(l.lmHead, outs)
}
