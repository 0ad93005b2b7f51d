package runner

import (
	"context"
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/manifest"
)

// monolithic is the network of one model from ids to logits.
type monolithic struct {
	model  *part
	reader *head // of infer and infer_rotate; prefill may give other outputs
	st     *states
	in     inputs
}

// openMonolithic loads a package with one model and chooses its rules.
func openMonolithic(ctx context.Context, l *loader) (Contract, string, error) {
	pt, m, err := single(ctx, l, manifest.Mono)
	if err != nil {
		return nil, "", err
	}
	parts, ms := []*manifest.Part{pt}, []*coreml.Model{m}
	if pre := prefillPart(l.pkg); pre != nil && function(ms, fnPrefill) == nil {
		pm, err := l.model(ctx, pre)
		if err != nil {
			return nil, "", err
		}
		parts, ms = append(parts, pre), append(ms, pm)
	}
	fc, err := gather([][]*coreml.Model{ms}, l.pkg.Params)
	if err != nil {
		return nil, "", err
	}
	name, ru, why := fc.rules(string(manifest.Monolithic), tokenOfBatch(ms))
	if name == string(manifest.ChunkedRecurrent) || name == string(manifest.ChunkedGemma4) {
		name = string(manifest.Monolithic)
	}
	need := neededFunctions(ru, l.opts)
	l.total = len(need)
	net := &monolithic{model: &part{name: fmt.Sprintf("model (%s)", pt.Path)}, in: inputs{mask: plainMasks}}
	l.reuse = true
	given := map[string]bool{inIDs: true, inPositions: true, inCurrent: true, inMask: true, inUpdateMask: true}
	groups := chunkGroups{models: [][]*coreml.Model{ms}, parts: [][]*manifest.Part{parts}}
	for _, fn := range need {
		m, f := find(ms, fn)
		u, err := l.load(ctx, groups.partOf(0, m), m, f.Name)
		if err != nil {
			return nil, "", err
		}
		net.model.add(fn, u)
		if err := checkInputs(u, given); err != nil {
			return nil, "", err
		}
	}
	infer := net.model.units[need[0]]
	if net.reader, err = newHead(infer.fn, l.pkg.Params, infer.path); err != nil {
		return nil, "", err
	}
	if len(infer.fn.States) == 0 {
		return nil, "", diag.Errorf(infer.pos(), diag.Unsupported, "function %s has no states: it keeps no context", infer.fn.Name)
	}
	if net.st, err = newStates(l.backend, []*part{net.model}); err != nil {
		return nil, "", err
	}
	if len(parts) > 1 && ru.batch > 0 {
		why += fmt.Sprintf("; prompts in batches of %d through %s", ru.batch, parts[1].Path)
	}
	return &stepper{name: name, rules: ru, net: net}, "one model from ids to logits; " + why, nil
}

var prefillStem = regexp.MustCompile(`^prefill_t(\d+)$`)

// prefillPart is the separate model for batches of a prompt, prefill_tN; with
// several the largest N, as the runtime takes it (coreml-llm.md 1, L8).
func prefillPart(pkg *manifest.Package) *manifest.Part {
	var best *manifest.Part
	most := 0
	for _, pt := range pkg.PartsOf(manifest.PrefillOf) {
		stem := strings.TrimSuffix(path.Base(pt.Path), path.Ext(pt.Path))
		if m := prefillStem.FindStringSubmatch(stem); m != nil {
			if n, err := strconv.Atoi(m[1]); err == nil && n > most {
				best, most = pt, n
			}
		}
	}
	return best
}

// tokenOfBatch reports whether prefill gives the best token after its last
// row, as infer gives it.
func tokenOfBatch(ms []*coreml.Model) bool {
	infer, prefill := function(ms, fnInfer), function(ms, fnPrefill)
	return infer != nil && prefill != nil && infer.Output("token_id") != nil && prefill.Output("token_id") != nil
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
	m.in.begin(st, ids)
	args, err := m.in.fill(u)
	if err != nil {
		return Scores{}, err
	}
	outs, err := u.predict(ctx, args, m.st.of(m.model, u.fn))
	if err != nil || !st.want {
		return Scores{}, err
	}
	return m.reader.read(u, outs)
}
