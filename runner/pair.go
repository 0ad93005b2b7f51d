package runner

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/manifest"
	"github.com/anepkg/anepkg/runner/sample"
)

// PackagePair tunes ComparePackages. The zero value works.
type PackagePair struct {
	// Prompts to use; nil = random ids of lengths around the batch size.
	Prompts [][]int
	Steps   int       // generated tokens per prompt; 0 = 8
	Tol     Tolerance // zero = cosine 0.999, differences not limited
}

// ComparePackages runs two packages on the same prompts. The first chooses
// greedily, its choices are fed to both (teacher forcing), and their logits
// are compared as with a golden file. Both need heads of the same size.
func ComparePackages(ctx context.Context, ref, other *manifest.Package, backend coreml.Backend, opts Options, pair PackagePair) (*Comparison, error) {
	pair = pair.orDefaults()
	a, err := Open(ctx, ref, backend, opts)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", ref.Path, err)
	}
	defer a.Close() //nolint:errcheck // nothing is written
	b, err := Open(ctx, other, backend, opts)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", other.Path, err)
	}
	defer b.Close() //nolint:errcheck // nothing is written
	if va, vb := a.VocabSize(), b.VocabSize(); va != vb {
		return nil, diag.Errorf(diag.In(other.Path), diag.Mismatch, "the vocabulary has %d ids, that of %s %d", vb, ref.Path, va)
	}
	return compareRunners(ctx, a, b, ref.Path, pair, watch{})
}

func (p PackagePair) orDefaults() PackagePair {
	if p.Steps <= 0 {
		p.Steps = 8
	}
	if p.Tol == (Tolerance{}) {
		p.Tol.CosineMin = 0.999
	}
	return p
}

// watch is called around each prompt of a comparison; nil members are not.
type watch struct {
	before func()
	after  func(*CaseResult) error // when both have seen the prompt
}

// compareRunners lets a choose tokens and feeds them to both.
func compareRunners(ctx context.Context, a, b *Runner, ref string, pair PackagePair, w watch) (*Comparison, error) {
	if a.IsEncoder() || b.IsEncoder() {
		return nil, diag.Errorf(diag.In(b.pkg.Path), diag.Unsupported, "encoders are compared with a golden file only")
	}
	if pair.Prompts == nil {
		pair.Prompts = somePrompts(a, b, pair.Steps)
	}
	cmp := b.newComparison(ref, pair.Tol)
	for i, prompt := range pair.Prompts {
		res := CaseResult{Name: fmt.Sprintf("prompt-%d-of-%d-tokens", i+1, len(prompt)), FirstRow: -1}
		if w.before != nil {
			w.before()
		}
		err := comparePrompt(ctx, a, b, prompt, pair, &res)
		if err == nil && w.after != nil {
			err = w.after(&res)
		}
		if err != nil {
			if ctx.Err() != nil {
				return nil, interrupted(ctx.Err())
			}
			res.Pass, res.Top1Agree, res.Error = false, false, err.Error()
		}
		cmp.add(res)
	}
	return cmp, nil
}

func comparePrompt(ctx context.Context, a, b *Runner, prompt []int, pair PackagePair, res *CaseResult) error {
	out, err := a.Generate(ctx, Request{PromptIDs: prompt, MaxTokens: pair.Steps, IgnoreEOS: true, KeepLogits: a.HasLogits()}, nil)
	if err != nil {
		return err
	}
	j := newJudge(pair.Tol, res)
	err = b.Force(ctx, prompt, out.GeneratedIDs, "", func(i int, sc Scores) error {
		if !a.HasLogits() && sc.Logits != nil {
			top, err := sample.Greedy(sc.Logits)
			if err != nil {
				return err
			}
			sc = Scores{Token: top, Value: sc.Logits[top]}
		}
		var want []float32
		if a.HasLogits() {
			want = out.Logits[i]
		}
		return j.scores(sc, b.contract.Head(), out.GeneratedIDs[i], want)
	})
	if err != nil {
		return err
	}
	j.done()
	return nil
}

// somePrompts makes prompts of random ids: one token, around one batch, and
// several batches, as far as both contexts reach.
func somePrompts(a, b *Runner, steps int) [][]int {
	vocab := a.VocabSize()
	if n := a.pkg.Tokenizer.VocabSize; n > 0 && n < vocab || vocab == 0 {
		vocab = n
	}
	vocab = max(vocab, 1)
	batch, _ := a.pkg.Params.Int("batch_size")
	if batch <= 0 || batch > 4096 {
		batch = 16
	}
	longest := min(a.ContextLength(), b.ContextLength()) - steps + 1
	rng := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same prompts every time
	var out [][]int
	for _, n := range []int{1, batch - 1, batch, batch + 3, 2 * batch} {
		if n < 1 || n > longest {
			continue
		}
		ids := make([]int, n)
		for i := range ids {
			ids[i] = rng.IntN(vocab)
		}
		out = append(out, ids)
	}
	return out
}
