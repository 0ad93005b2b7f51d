package runner

import (
	"context"
	"fmt"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/manifest"
)

// monolithic is the network of one model from ids to logits.
type monolithic struct {
	model  *part
	reader *head // of infer and infer_rotate; prefill may give other outputs
	st     *states
}

// openMonolithic loads a package with one model and chooses its rules.
func openMonolithic(ctx context.Context, l *loader) (Contract, string, error) {
	pt, m, err := single(ctx, l, manifest.Mono)
	if err != nil {
		return nil, "", err
	}
	ms := []*coreml.Model{m}
	fc, err := gather([][]*coreml.Model{ms}, l.pkg.Params)
	if err != nil {
		return nil, "", err
	}
	name, ru, why := fc.rules(string(manifest.Monolithic), false)
	if name == string(manifest.ChunkedRecurrent) || name == string(manifest.ChunkedGemma4) {
		name = string(manifest.Monolithic)
	}
	need := neededFunctions(ru, l.opts)
	l.total = len(need)
	net := &monolithic{model: &part{name: fmt.Sprintf("model (%s)", pt.Path)}}
	given := map[string]bool{inIDs: true, inPositions: true, inCurrent: true, inMask: true, inUpdateMask: true}
	for _, fn := range need {
		_, f := find(ms, fn)
		u, err := l.load(ctx, pt, m, f.Name)
		if err != nil {
			return nil, "", err
		}
		net.model.add(fn, u)
		if err := checkInputs(u, given); err != nil {
			return nil, "", err
		}
	}
	infer := net.model.units[fnInfer]
	if net.reader, err = newHead(infer.fn, l.pkg.Params, infer.path); err != nil {
		return nil, "", err
	}
	if len(infer.fn.States) == 0 {
		return nil, "", diag.Errorf(infer.pos(), diag.Unsupported, "function %s has no states: it keeps no context", infer.fn.Name)
	}
	if net.st, err = newStates(l.backend, []*part{net.model}); err != nil {
		return nil, "", err
	}
	return &stepper{name: name, rules: ru, net: net}, "one model from ids to logits; " + why, nil
}

func (m *monolithic) head() HeadInfo  { return m.reader.info() }
func (m *monolithic) states() *states { return m.st }

func (m *monolithic) close() error {
	err := m.model.close()
	if e := m.st.close(); err == nil {
		err = e
	}
	return err
}

func (m *monolithic) run(ctx context.Context, st step, ids []int) (Scores, error) {
	u, err := m.model.unit(st.fn)
	if err != nil {
		return Scores{}, err
	}
	args, err := newInputs(st, ids).fill(u)
	if err != nil {
		return Scores{}, err
	}
	outs, err := u.predict(ctx, args, m.st.of(m.model, u.fn))
	if err != nil || !st.want {
		return Scores{}, err
	}
	return m.reader.read(u, outs)
}
