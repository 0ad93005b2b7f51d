package runner

import (
	"context"
	"fmt"
	"io/fs"
	"math"
	"strconv"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/manifest"
	"github.com/anepkg/anepkg/runner/sample"
)

// CaseResult is the outcome of one case. CosineMin is the lowest cosine of a
// row and MaxAbs the largest difference of a value. Heads that give only the
// best token are compared by ids; CosineMin then is over the best values of
// the head's parts and is not judged, or null when there is only one.
type CaseResult struct {
	Name      string   `json:"name"`
	CosineMin *float64 `json:"cosine_min"`
	MaxAbs    float64  `json:"max_abs"`
	// Top1Agree: in every row the best token is the reference's.
	Top1Agree bool        `json:"top1_agree"`
	Pass      bool        `json:"pass"`
	Rows      int         `json:"rows"`
	Prefill   PrefillMode `json:"prefill,omitempty"`
	// FirstRow is the first row outside the tolerance, -1 if none.
	FirstRow int `json:"first_bad_row"`
	// States are the states after the prompt, where the reference has them.
	States []StateResult `json:"states,omitempty"`
	Error  string        `json:"error,omitempty"`
}

// Comparison is the outcome of a comparison.
type Comparison struct {
	Reference string           `json:"reference"`
	Backend   string           `json:"backend"`
	Precision coreml.Precision `json:"precision,omitempty"`
	Contract  string           `json:"contract"`
	Tolerance Tolerance        `json:"tolerance"`
	Cases     []CaseResult     `json:"cases"`
	Pass      bool             `json:"pass"`
	// Parts and FirstPart are of CompareBackends.
	Parts     []PartResult `json:"parts,omitempty"`
	FirstPart *PartParting `json:"first_part,omitempty"`
}

func (c *Comparison) add(res CaseResult) {
	c.Cases = append(c.Cases, res)
	c.Pass = c.Pass && res.Pass
}

// CompareGolden opens pkg and compares it as Runner.CompareGolden does. An
// unreadable golden file, a package that does not open, and cancellation are
// errors.
func CompareGolden(ctx context.Context, pkg *manifest.Package, backend coreml.Backend, opts Options, fsys fs.FS, name string) (*Comparison, error) {
	g, err := readGolden(fsys, name)
	if err != nil {
		return nil, err
	}
	opts.AllModes = true
	r, err := Open(ctx, pkg, backend, opts)
	if err != nil {
		return nil, err
	}
	defer r.Close() //nolint:errcheck // nothing is written
	return r.compareGolden(ctx, g, fsys, name)
}

// CompareGolden compares the package with the golden.json at name in fsys.
// The generated ids of a case are fed whatever the package would choose
// (teacher forcing); row i of its logits is compared before generated_ids[i]
// is fed, and the states after the prompt where the reference has them. A
// case that cannot run fails and says why. Cases that ask for a prefill mode
// need a Runner opened with AllModes.
func (r *Runner) CompareGolden(ctx context.Context, fsys fs.FS, name string) (*Comparison, error) {
	g, err := readGolden(fsys, name)
	if err != nil {
		return nil, err
	}
	return r.compareGolden(ctx, g, fsys, name)
}

func (r *Runner) compareGolden(ctx context.Context, g *golden, fsys fs.FS, name string) (*Comparison, error) {
	cmp := r.newComparison(g.Name, g.Tolerance)
	for i := range g.Cases {
		c := &g.Cases[i]
		res := CaseResult{Name: c.label(i), FirstRow: -1, Prefill: c.Prefill}
		var err error
		if c.Embedding != "" {
			err = r.compareEmbedding(ctx, fsys, name, c, g.Tolerance, &res)
		} else {
			err = r.compareCase(ctx, fsys, name, g, c, &res)
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

func (r *Runner) newComparison(ref string, tol Tolerance) *Comparison {
	c := &Comparison{Reference: ref, Backend: r.Backend(), Contract: r.Contract(), Tolerance: tol, Cases: []CaseResult{}, Pass: true}
	if r.Backend() == "cpu" {
		if c.Precision = r.opts.Precision; c.Precision == "" {
			c.Precision = coreml.Fast
		}
	}
	return c
}

func (r *Runner) compareEmbedding(ctx context.Context, fsys fs.FS, file string, c *goldenCase, tol Tolerance, res *CaseResult) error {
	width := 0
	if len(c.EmbShape) > 0 {
		width = c.EmbShape[len(c.EmbShape)-1]
	}
	want, err := rows(fsys, file, c.Embedding, 1, width)
	if err != nil {
		return err
	}
	got, err := r.Embed(ctx, c.InputIDs)
	if err != nil {
		return err
	}
	j := newJudge(tol, res)
	if err := j.row(got, want[0]); err != nil {
		return err
	}
	res.Top1Agree = true
	j.done()
	return nil
}

func (r *Runner) compareCase(ctx context.Context, fsys fs.FS, file string, g *golden, c *goldenCase, res *CaseResult) error {
	var want [][]float32
	if c.Logits != "" {
		var err error
		if want, err = rows(fsys, file, c.Logits, c.Shape[0], c.Shape[1]); err != nil {
			return err
		}
	}
	mode := c.Prefill
	if mode == "" {
		mode = r.opts.Prefill
	}
	j := newJudge(g.Tolerance, res)
	err := r.Force(ctx, c.PromptIDs, c.Generated, mode, func(i int, sc Scores) error {
		if i == 0 && g.States != nil && g.States.Case == c.Name {
			var err error
			if res.States, err = r.compareStates(fsys, file, g.States, g.Tolerance); err != nil {
				return err
			}
		}
		var row []float32
		if want != nil {
			row = want[i]
		}
		return j.scores(sc, r.contract.Head(), c.Generated[i], row)
	})
	if err != nil {
		return err
	}
	j.done()
	for _, s := range res.States {
		if !s.Pass && res.Error == "" {
			res.Pass, res.Error = false, fmt.Sprintf("state %s differs after the prompt: cosine %.6f, difference %.4g", s.Name, s.Cosine, s.MaxAbs)
		}
	}
	return nil
}

// Force feeds the prompt and then the forced ids, whatever the package would
// choose, and calls row with the scores that choose forced[i]. The last
// forced id is not fed. mode "" is the runner's.
func (r *Runner) Force(ctx context.Context, prompt, forced []int, mode PrefillMode, row func(i int, sc Scores) error) error {
	if r.contract == nil {
		return diag.Errorf(diag.In(r.pkg.Path), diag.Usage, "the package is an encoder: it gives an embedding, not logits")
	}
	if err := r.checkPrompt(prompt); err != nil {
		return err
	}
	if mode == "" {
		mode = r.opts.Prefill
	}
	sc, _, err := r.seq.prompt(ctx, feeding{ids: prompt, mode: mode}, nil)
	if err != nil {
		return err
	}
	for i := range forced {
		if err := row(i, sc); err != nil {
			return err
		}
		if i+1 == len(forced) {
			break
		}
		if r.seq.full() {
			return diag.Errorf(diag.In(r.pkg.Path), diag.Context, "the context of %d positions is full after %d of %d forced tokens", r.ContextLength(), i, len(forced))
		}
		if sc, err = r.seq.next(ctx, forced[i]); err != nil {
			return err
		}
	}
	return nil
}

// judge compares rows and fills a CaseResult.
type judge struct {
	tol    Tolerance
	res    *CaseResult
	lowest float64
	any    bool // lowest holds a cosine
	bad    bool
}

func newJudge(tol Tolerance, res *CaseResult) *judge {
	res.Top1Agree = true
	return &judge{tol: tol, res: res, lowest: 1}
}

func (j *judge) fail() {
	if !j.bad {
		j.res.FirstRow = j.res.Rows
	}
	j.bad = true
}

func (j *judge) done() {
	j.res.Pass = !j.bad && j.res.Rows > 0
	if j.any && !math.IsNaN(j.lowest) { // JSON has no NaN
		j.res.CosineMin = &j.lowest
	}
	if !(j.res.MaxAbs <= math.MaxFloat64) {
		j.res.MaxAbs = math.MaxFloat64
	}
}

// row compares whole rows.
func (j *judge) row(got, want []float32) error {
	if len(got) != len(want) {
		return diag.Errorf(diag.Pos{}, diag.Mismatch, "row %d has %d values, the reference %d", j.res.Rows, len(got), len(want))
	}
	cos := cosine(got, want)
	diff := maxAbs(got, want)
	j.note(cos, diff)
	if !(cos >= j.tol.CosineMin) || j.tol.MaxAbs > 0 && !(diff <= j.tol.MaxAbs) {
		j.fail()
	}
	j.res.Rows++
	return nil
}

func (j *judge) note(cos, diff float64) {
	if !j.any || !(cos >= j.lowest) {
		j.lowest, j.any = cos, true
	}
	if !(diff <= j.res.MaxAbs) { // also a NaN
		j.res.MaxAbs = diff
	}
}

// scores compares one row of scores. id is the reference's choice; want its
// logits, nil when it has none.
func (j *judge) scores(sc Scores, head HeadInfo, id int, want []float32) error {
	if sc.Logits == nil {
		return j.best(sc, head, id, want)
	}
	top, err := sample.Greedy(sc.Logits)
	if err != nil {
		return err
	}
	if top != id {
		j.res.Top1Agree = false
		if want == nil || !j.tie(want, top, id) {
			j.fail()
		}
	}
	if want == nil {
		j.res.Rows++
		return nil
	}
	return j.row(sc.Logits, want)
}

// tie reports whether the reference's logits of two tokens are too close for
// the tolerance to decide between them.
func (j *judge) tie(want []float32, a, b int) bool {
	if a < 0 || b < 0 || a >= len(want) || b >= len(want) {
		return false
	}
	return math.Abs(float64(want[a])-float64(want[b])) <= 2*j.tol.MaxAbs
}

// best compares a head that gives only the best token.
func (j *judge) best(sc Scores, head HeadInfo, id int, want []float32) error {
	if sc.Token != id {
		j.res.Top1Agree = false
		j.fail()
	}
	if want != nil {
		if err := j.bestValues(sc, head, want); err != nil {
			return err
		}
	}
	j.res.Rows++
	return nil
}

func (j *judge) bestValues(sc Scores, head HeadInfo, want []float32) error {
	if head.Vocab > 0 && head.Vocab != len(want) || sc.Token >= len(want) {
		return diag.Errorf(diag.Pos{}, diag.Mismatch, "the head has %d tokens, the reference %d", head.Vocab, len(want))
	}
	diff := math.Abs(float64(sc.Value) - float64(want[sc.Token]))
	if len(sc.PartValues) > 1 {
		maxima := make([]float32, 0, len(head.Parts))
		at := 0
		for _, n := range head.Parts {
			best, err := sample.Greedy(want[at : at+n])
			if err != nil {
				return err
			}
			maxima = append(maxima, want[at+best])
			at += n
		}
		diff = maxAbs(sc.PartValues, maxima)
		j.note(cosine(sc.PartValues, maxima), diff)
	} else if !(diff <= j.res.MaxAbs) {
		j.res.MaxAbs = diff
	}
	if j.tol.MaxAbs > 0 && !(diff <= j.tol.MaxAbs) {
		j.fail()
	}
	return nil
}

// cosine of two vectors; two zero vectors have cosine 1. NaN gives NaN.
func cosine(a, b []float32) float64 {
	var ab, aa, bb float64
	for i := range a {
		x, y := float64(a[i]), float64(b[i])
		ab += x * y
		aa += x * x
		bb += y * y
	}
	if aa == 0 && bb == 0 {
		return 1
	}
	if aa == 0 || bb == 0 {
		return 0
	}
	return ab / (math.Sqrt(aa) * math.Sqrt(bb))
}

func maxAbs(a, b []float32) float64 {
	worst := 0.0
	for i := range a {
		if a[i] == b[i] {
			continue // equal infinities
		}
		if d := math.Abs(float64(a[i]) - float64(b[i])); !(d <= worst) {
			worst = d
		}
	}
	return worst
}

func itoa(n int) string { return strconv.Itoa(n) }
