package runner

import (
	"context"
	"fmt"
	"math"
	"path"
	"strconv"
	"strings"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/coreml/tensor"
	"github.com/anepkg/anepkg/manifest"
)

// dialect is what sets one family of CoreML-LLM's chunks apart (coreml-llm.md
// 3 and 4).
type dialect struct {
	single []string // the function for one token; else the default function
	batch  string   // prefix of the functions for several, before their number
	mask   maskStyle
	theta  float64 // base of the rotary angles, when hf_model/config.json says none
	how    string
}

var dialects = map[manifest.Layout]dialect{
	manifest.KVIO: {
		single: []string{"decode_q1", "main"}, mask: maskStyle{hidden: float32(math.Inf(-1))},
		how: "the key-value caches are inputs and outputs, and the sliding ones shift at every call: each position is fed once",
	},
	manifest.StatefulChunks: {
		single: []string{fnInfer, "main"}, batch: "prefill_b", mask: maskStyle{hidden: -65504, ring: true}, theta: 5e6,
		how: "each chunk has its own state, and the sliding caches are rings",
	},
	manifest.MLKV: {
		single: []string{"main", fnInfer}, mask: maskStyle{hidden: -1e4}, theta: 1e7,
		how: "the recurrent states are inputs and outputs, updated by every call: each position is fed once",
	},
}

// linkFacts are what the chunks declare, all together.
type linkFacts struct {
	context int
	window  int // of causal_mask_sliding; 0 without
	batch   int // tokens of a batch function that every chunk has; 0 without
	batchFn string
	moving  bool // a carried tensor that shifts or is recurrent
}

// openLinked loads a package of CoreML-LLM chunks.
func openLinked(ctx context.Context, l *loader) (_ Contract, why string, err error) {
	d := dialects[l.pkg.Layout]
	l.reuse = true
	net := &linked{rows: map[string]rowSource{}, mask: d.mask, pairs: map[*unit][]carry{}, kept: map[*part]*carried{}}
	defer func() {
		if err != nil {
			for _, src := range net.rows {
				_ = src.Close()
			}
			if net.st != nil {
				_ = net.st.close()
			}
		}
	}()
	parts := l.pkg.PartsOf(manifest.Chunk)
	models := make([]*coreml.Model, len(parts))
	for i, pt := range parts {
		if models[i], err = l.model(ctx, pt); err != nil {
			return nil, "", err
		}
	}
	if pre := l.pkg.PartsOf(manifest.PrefillOf); len(pre) > 0 {
		l.opts.Logger.Info("the separate prefill models are not used: the prompt goes through the decoder's own functions", "models", len(pre))
	}
	if len(parts) == 0 {
		return nil, "", diag.Errorf(diag.In(l.pkg.Path), diag.NotFound, "the package has no decoder chunks")
	}
	fc, err := linkedFacts(d, models, l.pkg.Params)
	if err != nil {
		return nil, "", err
	}
	net.mask.window = fc.window
	ru := rules{limit: fc.context, batch: fc.batch, rerun: !fc.moving}
	if d.mask.ring {
		ru.ring = fc.window
	}
	if err := net.load(ctx, l, d, fc, ru, parts, models); err != nil {
		return nil, "", err
	}
	if err := net.openHead(ctx, l); err != nil {
		return nil, "", err
	}
	ru.lastOut = net.scoresOfBatch()
	if err := net.openTables(l, d, fc, path.Dir(parts[0].Path)); err != nil {
		return nil, "", err
	}
	if err := net.check(fc); err != nil {
		return nil, "", err
	}
	if err := net.makeStates(l.backend); err != nil {
		return nil, "", err
	}
	return &stepper{name: string(l.pkg.Layout), rules: ru, net: net}, fc.because(d), nil
}

func (fc linkFacts) because(d dialect) string {
	why := d.how
	if fc.window > 0 {
		why += fmt.Sprintf("; window %d", fc.window)
	}
	if fc.batch > 0 {
		why += fmt.Sprintf("; prompts in batches of %d (%s)", fc.batch, fc.batchFn)
	}
	return why
}

// singleOf is the function of m that takes one token.
func (d dialect) singleOf(m *coreml.Model) *coreml.Function {
	for _, name := range d.single {
		if f := m.Function(name); f != nil {
			return f
		}
	}
	return m.Function("")
}

// linkedFacts reads the facts off the chunks' declarations. Chunks that
// disagree, and a context_length that no chunk has, are errors of class
// diag.Mismatch: the runtime refuses them too.
func linkedFacts(d dialect, models []*coreml.Model, claims manifest.Params) (linkFacts, error) {
	fc := linkFacts{}
	agree := func(m *coreml.Model, what string, have *int, f *coreml.Feature) error {
		n := lastDim(f)
		if n <= 0 {
			return nil
		}
		if *have > 0 && *have != n {
			return diag.Errorf(diag.In(m.Path), diag.Mismatch, "%s has %d columns, in the chunks before %d", what, n, *have)
		}
		*have = n
		return nil
	}
	for _, m := range models {
		f := d.singleOf(m)
		if f == nil {
			return fc, diag.Errorf(diag.In(m.Path), diag.Unsupported, "no function for one token; the model has %s", functionNames([]*coreml.Model{m}))
		}
		for _, name := range []string{inMask, inMaskFull} {
			if err := agree(m, name, &fc.context, f.Input(name)); err != nil {
				return fc, err
			}
		}
		if err := agree(m, inMaskWindow, &fc.window, f.Input(inMaskWindow)); err != nil {
			return fc, err
		}
		for _, in := range f.Inputs {
			if f.Output("new_"+in.Name) != nil || strings.Contains(in.Name, "sliding_in") {
				fc.moving = true
			}
		}
	}
	if fc.context <= 0 {
		return fc, diag.Errorf(diag.In(models[0].Path), diag.Unsupported, "no causal_mask and no causal_mask_full tells the context length")
	}
	if n, ok := claims.Int("context_length"); ok && n != fc.context {
		return fc, diag.Errorf(claims.Get("context_length").At(diag.Pos{}), diag.Mismatch, "context_length is %d, the chunks' masks have %d columns", n, fc.context).
			WithHint("set context_length to %d", fc.context)
	}
	fc.findBatch(d, models)
	return fc, nil
}

// findBatch takes the largest batch function that every chunk has and that
// fits the window.
func (fc *linkFacts) findBatch(d dialect, models []*coreml.Model) {
	if d.batch == "" {
		return
	}
	for _, f := range models[0].Functions {
		rest, ok := strings.CutPrefix(f.Name, d.batch)
		n, err := strconv.Atoi(rest)
		if !ok || err != nil || n <= max(1, fc.batch) || n > fc.context || fc.window > 0 && n > fc.window {
			continue
		}
		all := true
		for _, m := range models {
			g := m.Function(f.Name)
			all = all && g != nil && batchOf(g) == n
		}
		if all {
			fc.batch, fc.batchFn = n, f.Name
		}
	}
}

// load loads the functions that the rules may call.
func (l *linked) load(ctx context.Context, ld *loader, d dialect, fc linkFacts, ru rules, parts []*manifest.Part, models []*coreml.Model) error {
	need := neededFunctions(ru, ld.opts)
	ld.total = len(need) * len(parts)
	for i, pt := range parts {
		p := &part{name: fmt.Sprintf("chunk %d of %d (%s)", i+1, len(parts), pt.Path)}
		l.chunks = append(l.chunks, p)
		for _, key := range need {
			name := d.singleOf(models[i]).Name
			if key == fnPrefill {
				name = fc.batchFn
			}
			u, err := ld.load(ctx, pt, models[i], name)
			if err != nil {
				return err
			}
			p.add(key, u)
			if l.pairs[u], err = carries(u); err != nil {
				return err
			}
		}
	}
	return nil
}

// openHead finds where the scores come from: the last chunk, or chunk_head
// beside stateful chunks (which normalizes by itself; whether that of Qwen3.5
// chunks does, no source tells).
func (l *linked) openHead(ctx context.Context, ld *loader) error {
	u := l.chunks[len(l.chunks)-1].units[fnInfer]
	var err error
	if heads := ld.pkg.PartsOf(manifest.LMHead); len(heads) > 0 && ld.pkg.Layout == manifest.StatefulChunks && u.fn.Output("hidden") != nil {
		m, err := ld.model(ctx, heads[0])
		if err != nil {
			return err
		}
		ld.total++
		if u, err = ld.loadPart(ctx, heads[0], m); err != nil {
			return err
		}
		if len(u.fn.Inputs) != 1 {
			return diag.Errorf(u.pos(), diag.Unsupported, "the head has inputs %s, want one", featureNames(u.fn.Inputs))
		}
		l.lmHead = u
	}
	l.reader, err = newHead(u.fn, ld.pkg.Params, u.path)
	return err
}

// scoresOfBatch reports whether the batch function gives the last token's
// scores as the single one does.
func (l *linked) scoresOfBatch() bool {
	u := l.chunks[len(l.chunks)-1].units[fnPrefill]
	if u == nil {
		return false
	}
	if l.lmHead != nil {
		return u.fn.Output("hidden") != nil
	}
	return l.reader.token != "" && u.fn.Output(l.reader.token) != nil
}

// makeStates makes a state object for each chunk that has states, and one for
// what it carries.
func (l *linked) makeStates(backend coreml.Backend) error {
	l.st = &states{byPart: map[*part]coreml.State{}}
	for i, p := range l.chunks {
		if fs := p.stateFeatures(); len(fs) > 0 {
			for _, f := range fs {
				if !tensor.Known(f.Shape) {
					return diag.Errorf(p.units[fnInfer].pos(), diag.Unsupported, "state %s has the flexible shape %s", f.Name, tensor.ShapeString(f.Shape))
				}
			}
			if err := l.st.add(backend, fs, p); err != nil {
				return err
			}
			l.last = i
		}
		if u := p.units[fnInfer]; len(l.pairs[u]) > 0 {
			l.kept[p] = newCarried(u, l.pairs[u])
			l.st.all = append(l.st.all, l.kept[p])
			l.last = i
		}
	}
	if len(l.st.all) == 0 {
		u := l.chunks[0].units[fnInfer]
		return diag.Errorf(u.pos(), diag.Unsupported, "no chunk has states or hands a cache to its next call: the package keeps no context")
	}
	return nil
}

// check makes sure before anything runs that every input has a source of its
// shape.
func (l *linked) check(fc linkFacts) error {
	for _, key := range l.chunks[0].order {
		n := 1
		if key == fnPrefill {
			n = fc.batch
		}
		have := map[string]coreml.Feature{}
		for _, p := range l.chunks {
			if err := l.checkUnit(p.units[key], n, have); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkUnit compares the inputs of u with what there is, and adds its outputs.
func (l *linked) checkUnit(u *unit, n int, have map[string]coreml.Feature) error {
	mine := map[string]bool{}
	for _, c := range l.pairs[u] {
		mine[c.in] = true
	}
	in := newInputs(step{n: n, fn: u.fn.Name}, make([]int, n))
	in.mask, in.rows = l.mask, l.rows
	for i := range u.fn.Inputs {
		f := &u.fn.Inputs[i]
		if mine[f.Name] {
			continue
		}
		if g, ok := have[f.Name]; ok {
			if g.DType.IsFloat() != f.DType.IsFloat() || !tensor.Compatible(g.Shape, f.Shape) {
				return diag.Errorf(u.pos(), diag.Mismatch, "function %s: input %s is %s %s, an earlier chunk gives %s %s", u.fn.Name,
					f.Name, f.DType, tensor.ShapeString(f.Shape), g.DType, tensor.ShapeString(g.Shape))
			}
			continue
		}
		if _, err := in.value(u, f); err != nil {
			return err
		}
	}
	for _, o := range u.fn.Outputs {
		have[handedOn(o.Name)] = o
	}
	return nil
}
