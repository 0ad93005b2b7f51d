package runner

import (
	"context"
	"time"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/coreml/tensor"
	"github.com/anepkg/anepkg/manifest"
)

// encoder is a model from ids to one embedding: inputs input_ids and
// attention_mask of a fixed length, output embedding.
type encoder struct {
	unit   *unit
	length int
	vocab  int // ids; 0 = not known
}

func openEncoder(ctx context.Context, l *loader) (*encoder, error) {
	pt, m, err := single(ctx, l, manifest.EncoderOf)
	if err != nil {
		return nil, err
	}
	l.total = 1
	u, err := l.loadPart(ctx, pt, m)
	if err != nil {
		return nil, err
	}
	if err := checkInputs(u, map[string]bool{inIDs: true, "attention_mask": true}); err != nil {
		return nil, err
	}
	ids := u.fn.Input(inIDs)
	if ids == nil || len(ids.Shape) != 2 || lastDim(ids) <= 0 {
		return nil, diag.Errorf(u.pos(), diag.Unsupported, "encoder inputs are %s, want input_ids of shape [1, length]", featureNames(u.fn.Inputs))
	}
	vocab, ok := l.pkg.Params.Int("vocab_size")
	if !ok || vocab < 0 {
		vocab = l.pkg.Tokenizer.VocabSize
	}
	return &encoder{unit: u, length: lastDim(ids), vocab: vocab}, nil
}

// Embedding is what EmbedResult returns. In Timings the call counts as
// prefill.
type Embedding struct {
	Backend string `json:"backend"`
	// BackendReason says why, when the backend was chosen and not given.
	BackendReason string    `json:"backend_reason,omitempty"`
	ComputeUnits  string    `json:"compute_units"`
	Contract      string    `json:"contract"`
	PromptIDs     []int     `json:"prompt_ids"`
	Embedding     []float32 `json:"embedding"`
	Timings       Timings   `json:"timings"`
}

// EmbedResult runs an encoder package like Embed and tells how.
func (r *Runner) EmbedResult(ctx context.Context, ids []int) (*Embedding, error) {
	start := time.Now()
	v, err := r.Embed(ctx, ids)
	if err != nil {
		return nil, err
	}
	return &Embedding{
		Backend: r.Backend(), BackendReason: r.BackendReason(), ComputeUnits: r.computeUnits(), Contract: r.Contract(), PromptIDs: append([]int{}, ids...), Embedding: v,
		Timings: Timings{Load: r.loadTime.Seconds(), PrefillTokens: len(ids), Prefill: time.Since(start).Seconds()},
	}, nil
}

// Embed runs an encoder package on ids: they are padded with 0 and marked in
// attention_mask (1 = token, 0 = padding). The embedding is returned as the
// model gives it. More ids than the model takes are an error of class
// diag.Context; ids outside the vocabulary and other packages one of class
// diag.Usage.
func (r *Runner) Embed(ctx context.Context, ids []int) ([]float32, error) {
	if r.enc == nil {
		return nil, diag.Errorf(diag.In(r.pkg.Path), diag.Usage, "layout %s gives no embedding", r.Contract())
	}
	return r.enc.embed(ctx, ids)
}

func (e *encoder) embed(ctx context.Context, ids []int) ([]float32, error) {
	if len(ids) == 0 || len(ids) > e.length {
		return nil, diag.Errorf(e.unit.pos(), diag.Context, "got %d tokens, want 1 to %d", len(ids), e.length)
	}
	for i, id := range ids {
		if id < 0 || e.vocab > 0 && id >= e.vocab {
			return nil, diag.Errorf(diag.Pos{}, diag.Usage, "prompt token %d is %d, want an id from 0 to %d", i, id, e.vocab-1)
		}
	}
	padded := make([]int, e.length)
	mask := make([]int, e.length)
	for i, id := range ids {
		padded[i], mask[i] = id, 1
	}
	in, made := map[string]*tensor.Tensor{}, newInputs(step{}, nil)
	for _, f := range []struct {
		name string
		vals []int
	}{{inIDs, padded}, {"attention_mask", mask}} {
		if feat := e.unit.fn.Input(f.name); feat != nil {
			t, err := made.ints(e.unit, feat, made.knownShape(feat, 1, e.length), f.vals)
			if err != nil {
				return nil, err
			}
			in[f.name] = t
		}
	}
	outs, err := e.unit.predict(ctx, in, coreml.State(nil))
	if err != nil {
		return nil, err
	}
	t, err := e.unit.output(outs, "embedding")
	if err != nil {
		return nil, err
	}
	if at := firstNaN(t); at >= 0 {
		return nil, diag.Errorf(e.unit.pos(), diag.RunFailed, "embedding holds NaN at %d", at)
	}
	return t.Float32s(), nil
}
