package runner

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/coreml/tensor"
	"github.com/anepkg/anepkg/manifest"
)

// choose sets the contract and the reason from what the programs declare.
func (r *Runner) choose(ctx context.Context, l *loader) error {
	var err error
	switch p := r.pkg; {
	case p.Layout == manifest.Encoder:
		r.enc, err = openEncoder(ctx, l)
		r.reason = "one model from ids to an embedding"
	case layoutNames[p.Layout] && len(p.PartsOf(manifest.Mono)) > 0:
		r.contract, r.reason, err = openMonolithic(ctx, l)
	case layoutNames[p.Layout]:
		r.contract, r.reason, err = openChunked(ctx, l)
	case p.Layout == manifest.KVIO || p.Layout == manifest.StatefulChunks || p.Layout == manifest.MLKV:
		r.contract, r.reason, err = openLinked(ctx, l)
	default:
		err = r.refuse()
	}
	return err
}

func (r *Runner) refuse() error {
	p := r.pkg
	what := string(p.Layout)
	if what == "" {
		what = string(p.Kind)
	}
	e := diag.Errorf(diag.In(p.Path), diag.Unsupported, "cannot generate text with a package of layout %q (%s); supported: %s, %s, %s, %s, %s, %s, %s, %s, %s",
		what, p.Reason, manifest.Chunked, manifest.ChunkedRecurrent, manifest.ChunkedGemma4, manifest.Rotate, manifest.Monolithic,
		manifest.KVIO, manifest.StatefulChunks, manifest.MLKV, manifest.Encoder)
	if p.Layout == manifest.Single {
		return e.WithHint("one model runs with: anepkg predict")
	}
	return e
}

// facts are what the functions of a decoder declare, all parts together.
type facts struct {
	context int    // width of the causal mask of infer
	batch   int    // tokens of prefill; 0 without
	window  int    // length of kv_cache_local where it is shorter than the context
	moving  string // a state that cannot be rewound
	ple     bool
	sizes   []int // contexts N of the functions infer_ctxN that every chunk has, ascending
	rotate  bool  // every chunk has infer_rotate
	rotateB bool  // and prefill_rotate
}

// gather reads the facts off the models' declarations.
func gather(models [][]*coreml.Model, claims manifest.Params) (facts, error) {
	fc := facts{rotate: true, rotateB: true}
	prefill := true
	var global int
	for i, ms := range models {
		if sizes := variants(ms, fnInfer); i == 0 {
			fc.sizes = sizes
		} else {
			fc.sizes = slices.DeleteFunc(fc.sizes, func(n int) bool { return !slices.Contains(sizes, n) })
		}
		infer := function(ms, fnInfer)
		if infer == nil {
			return fc, diag.Errorf(diag.In(ms[0].Path), diag.Unsupported, "no function infer; the model has %s", functionNames(ms))
		}
		if w := lastDim(infer.Input(inMask)); w > 0 && (fc.context == 0 || w < fc.context) {
			fc.context = w
		}
		pf := function(ms, fnPrefill)
		prefill = prefill && pf != nil
		if b := batchOf(pf); b > 0 {
			if fc.batch > 0 && fc.batch != b {
				return fc, diag.Errorf(diag.In(ms[0].Path), diag.Mismatch, "prefill takes %d tokens, the other chunks %d", b, fc.batch)
			}
			fc.batch = b
		}
		fc.rotate = fc.rotate && function(ms, fnInferRotate) != nil
		fc.rotateB = fc.rotateB && function(ms, fnPrefillRotate) != nil
		fc.ple = fc.ple || infer.Input(inPLE) != nil
		for _, s := range infer.States {
			switch {
			case manifest.IsRecurrentState(s.Name):
				fc.moving = s.Name
			case strings.Contains(s.Name, "kv_cache_local") && len(s.Shape) == 4:
				fc.window = s.Shape[2]
			case strings.Contains(s.Name, "kv_cache") && len(s.Shape) == 4:
				global = max(global, s.Shape[2])
			}
		}
	}
	if !prefill {
		fc.batch = 0
	}
	if n := len(fc.sizes); n > 0 {
		fc.context = fc.sizes[n-1]
	}
	if fc.context == 0 {
		fc.context, _ = claims.Int("context_length")
	}
	if global > 0 && (fc.context == 0 || global < fc.context) {
		fc.context = global
	}
	if fc.context <= 0 {
		return fc, diag.Errorf(diag.In(models[0][0].Path), diag.Unsupported, "no causal_mask, no KV cache and no context_length tell the context length")
	}
	if fc.window >= fc.context {
		fc.window = 0
	}
	return fc, nil
}

// rules turns facts and the one claim that no program shows into rules.
// why explains the choice.
func (fc facts) rules(layout string, lastOut bool) (name string, ru rules, why string) {
	ru = rules{limit: fc.context, batch: fc.batch, lastOut: lastOut, rerun: true, sizes: fc.sizes}
	if n := len(fc.sizes); n > 0 && fc.sizes[n-1] < fc.context || fc.window > 0 {
		ru.sizes = nil
	}
	switch {
	case fc.moving != "":
		ru.rerun = false
		return string(manifest.ChunkedRecurrent), ru, fmt.Sprintf("state %s is updated by every call: each position is fed once", fc.moving)
	case fc.ple && fc.window > 0:
		ru.rerun = false
		return string(manifest.ChunkedGemma4), ru, fmt.Sprintf("input per_layer_inputs, and a block-shifting local cache of %d positions: each position is fed once", fc.window)
	case fc.ple:
		return string(manifest.ChunkedGemma4), ru, "input per_layer_inputs, with full-length caches"
	case fc.window > 0 && fc.rotate:
		ru.rerun, ru.window, ru.rotateBatch = false, fc.window, fc.rotateB
		return string(manifest.Rotate), ru, fmt.Sprintf("functions infer_rotate for positions from %d on, the length of the local cache", fc.window)
	case fc.window > 0:
		ru.limit = fc.window
		return layout, ru, fmt.Sprintf("the local cache holds %d positions and there is no infer_rotate, so the context ends there", fc.window)
	}
	if len(ru.sizes) > 0 {
		return layout, ru, fmt.Sprintf("plain KV caches that hold the whole context; each token goes through the infer_ctx of %v that is just large enough", ru.sizes)
	}
	return layout, ru, "plain KV caches that hold the whole context"
}

// variant names the form of a function for a context of n positions
// (anemll.md 3.2).
func variant(fn string, n int) string { return fn + "_ctx" + strconv.Itoa(n) }

// variants lists the contexts that the models of one chunk have forms of fn
// for, ascending.
func variants(ms []*coreml.Model, fn string) []int {
	var out []int
	for _, m := range ms {
		for _, f := range m.Functions {
			rest, ok := strings.CutPrefix(f.Name, fn+"_ctx")
			if n, err := strconv.Atoi(rest); ok && err == nil && n > 0 && variant(fn, n) == f.Name && !slices.Contains(out, n) {
				out = append(out, n)
			}
		}
	}
	slices.Sort(out)
	return out
}

// function finds fn in the models of one chunk; where there are only forms of
// it for several contexts, the largest. A first model with a single
// function of another name counts as infer, a later one whose only function
// is main and takes several tokens as prefill.
func function(ms []*coreml.Model, fn string) *coreml.Function {
	_, f := find(ms, fn)
	return f
}

func find(ms []*coreml.Model, fn string) (*coreml.Model, *coreml.Function) {
	for _, m := range ms {
		if f := m.Function(fn); f != nil {
			return m, f
		}
	}
	if sizes := variants(ms, fn); len(sizes) > 0 {
		return find(ms, variant(fn, sizes[len(sizes)-1]))
	}
	switch {
	case fn == fnInfer && len(ms) > 0 && len(ms[0].Functions) == 1:
		return ms[0], ms[0].Functions[0]
	case fn == fnPrefill: // a model of its own
		for i, m := range ms {
			if i > 0 && len(m.Functions) == 1 && m.Functions[0].Name == "main" && batchOf(m.Functions[0]) > 1 {
				return m, m.Functions[0]
			}
		}
	}
	return nil, nil
}

func functionNames(ms []*coreml.Model) string {
	var names []string
	for _, m := range ms {
		for _, f := range m.Functions {
			names = append(names, f.Name)
		}
	}
	return strings.Join(names, ", ")
}

// batchOf is the token count of a prefill function.
func batchOf(f *coreml.Function) int {
	if f == nil {
		return 0
	}
	if in := f.Input(inPositions); in != nil && len(in.Shape) == 1 && in.Shape[0] > 0 {
		return in.Shape[0]
	}
	for _, name := range []string{inHidden, inIDs} {
		if in := f.Input(name); in != nil && len(in.Shape) >= 2 && in.Shape[1] > 0 {
			return in.Shape[1]
		}
	}
	return 0
}

func lastDim(f *coreml.Feature) int {
	if f == nil || len(f.Shape) == 0 {
		return 0
	}
	return f.Shape[len(f.Shape)-1]
}

// accepts reports whether f may be given this shape.
func accepts(f *coreml.Feature, shape ...int) bool {
	if f == nil || !tensor.Compatible(f.Shape, shape) {
		return false
	}
	if len(f.Enumerated) > 0 {
		for _, e := range f.Enumerated {
			if slices.Equal(e, shape) {
				return true
			}
		}
		return false
	}
	for i, r := range f.Range {
		if i < len(shape) && (shape[i] < r[0] || r[1] >= 0 && shape[i] > r[1]) {
			return false
		}
	}
	return true
}
