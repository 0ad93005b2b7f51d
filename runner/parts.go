package runner

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/coreml/tensor"
	"github.com/anepkg/anepkg/manifest"
)

// PartResult is how far one output of a part's function differs between two
// backends, over all calls. The second backend's parts see what its own
// earlier parts gave, so a difference is carried on: the first part is the
// one to look at.
type PartResult struct {
	Part      string   `json:"part"`
	Function  string   `json:"function"`
	Output    string   `json:"output"`
	Calls     int      `json:"calls"`
	CosineMin *float64 `json:"cosine_min"` // null when an output holds NaN, and of integers
	MaxAbs    float64  `json:"max_abs"`
	Pass      bool     `json:"pass"`
}

// PartParting is the first output outside the tolerance, in the order of the
// calls. Call counts the calls of all parts for that prompt, from 0.
type PartParting struct {
	Case     string   `json:"case"`
	Call     int      `json:"call"`
	Part     string   `json:"part"`
	Function string   `json:"function"`
	Output   string   `json:"output"`
	Cosine   *float64 `json:"cosine"`
	MaxAbs   float64  `json:"max_abs"`
}

// CompareBackends runs one package on two backends. The first, the reference,
// chooses greedily and its choices are fed to both; logits are compared as
// ComparePackages does, and so is every output of every part, call by call:
// hidden states by their cosine, integers exactly. After each prompt the
// states are compared too.
func CompareBackends(ctx context.Context, pkg *manifest.Package, ref, other coreml.Backend, opts Options, pair PackagePair) (*Comparison, error) {
	for _, b := range []coreml.Backend{ref, other} {
		if _, ok := b.(coreml.Chooser); ok {
			return nil, diag.Errorf(diag.Pos{}, diag.Usage, "a comparison needs two backends by name")
		}
	}
	pair = pair.orDefaults()
	w := &partJudge{tol: pair.Tol, index: map[[3]string]int{}}
	a, err := Open(ctx, pkg, &tap{ref, w.reference}, opts)
	if err != nil {
		return nil, fmt.Errorf("backend %s: %w", ref.Name(), err)
	}
	defer a.Close() //nolint:errcheck // nothing is written
	b, err := Open(ctx, pkg, &tap{other, w.compare}, opts)
	if err != nil {
		return nil, fmt.Errorf("backend %s: %w", other.Name(), err)
	}
	defer b.Close() //nolint:errcheck // nothing is written
	cmp, err := compareRunners(ctx, a, b, pkg.Path+" on "+ref.Name(), pair, watch{w.begin, func(res *CaseResult) error {
		if err := w.finish(res); err != nil {
			return err
		}
		return w.states(a, b, res)
	}})
	if err != nil {
		return nil, err
	}
	cmp.Parts, cmp.FirstPart = w.results, w.first
	for _, p := range w.results {
		cmp.Pass = cmp.Pass && p.Pass
	}
	return cmp, nil
}

// tap is a backend that shows the outputs of every call to see.
type tap struct {
	coreml.Backend
	see func(partCall)
}

// partCall is one call of a part's function.
type partCall struct {
	part, function string
	out            map[string]*tensor.Tensor
}

type tapSession struct {
	coreml.Session
	part string
	see  func(partCall)
}

func (t *tap) Load(ctx context.Context, m *coreml.Model, function string, opts coreml.LoadOptions) (coreml.Session, error) {
	s, err := t.Backend.Load(ctx, m, function, opts)
	if err != nil {
		return nil, err
	}
	return &tapSession{s, m.Path, t.see}, nil
}

func (s *tapSession) Predict(ctx context.Context, inputs map[string]*tensor.Tensor, state coreml.State) (map[string]*tensor.Tensor, error) {
	out, err := s.Session.Predict(ctx, inputs, state)
	if err == nil {
		kept := make(map[string]*tensor.Tensor, len(out)) // the contract may change its own
		for name, t := range out {
			kept[name] = t.Clone()
		}
		s.see(partCall{s.part, s.Function().Name, kept})
	}
	return out, err
}

// partJudge compares the calls of two runners. The reference makes all its
// calls for a prompt first.
type partJudge struct {
	tol     Tolerance
	calls   []partCall // of the reference, for this prompt
	at      int        // calls that the other has made
	differ  string     // how the calls differ; "" when they do not
	parting *PartParting

	results []PartResult
	index   map[[3]string]int
	first   *PartParting
}

func (w *partJudge) reference(c partCall) { w.calls = append(w.calls, c) }

func (w *partJudge) compare(c partCall) {
	at := w.at
	w.at++
	if w.differ != "" {
		return
	}
	if at >= len(w.calls) {
		w.differ = fmt.Sprintf("call %d is %s %s, the reference made %d calls", at, c.part, c.function, len(w.calls))
		return
	}
	want := w.calls[at]
	w.calls[at].out = nil
	if want.part != c.part || want.function != c.function {
		w.differ = fmt.Sprintf("call %d is %s %s, the reference's is %s %s", at, c.part, c.function, want.part, want.function)
		return
	}
	names := make([]string, 0, len(c.out))
	for name := range c.out {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if want.out[name] != nil {
			w.output(at, c, name, c.out[name], want.out[name])
		}
	}
}

// output compares one output of a call.
func (w *partJudge) output(at int, c partCall, name string, got, want *tensor.Tensor) {
	cos, diff, exact := difference(got, want)
	pass := cos >= w.tol.CosineMin
	if exact {
		pass = diff == 0
	}
	key := [3]string{c.part, c.function, name}
	i, ok := w.index[key]
	if !ok {
		i = len(w.results)
		w.index[key] = i
		w.results = append(w.results, PartResult{Part: c.part, Function: c.function, Output: name, Pass: true})
		if !exact {
			one := 1.0
			w.results[i].CosineMin = &one
		}
	}
	r := &w.results[i]
	r.Calls++
	r.Pass = r.Pass && pass
	r.MaxAbs = max(r.MaxAbs, diff)
	switch {
	case math.IsNaN(cos):
		r.CosineMin = nil
	case r.CosineMin != nil:
		*r.CosineMin = min(*r.CosineMin, cos)
	}
	if !pass && w.parting == nil {
		w.parting = &PartParting{Call: at, Part: c.part, Function: c.function, Output: name, MaxAbs: diff}
		if !exact && !math.IsNaN(cos) {
			w.parting.Cosine = &cos
		}
	}
}

// begin starts a prompt.
func (w *partJudge) begin() { w.calls, w.at, w.parting, w.differ = nil, 0, nil, "" }

// finish ends a prompt.
func (w *partJudge) finish(res *CaseResult) error {
	if w.differ == "" && w.at != len(w.calls) {
		w.differ = fmt.Sprintf("%d calls, the reference made %d", w.at, len(w.calls))
	}
	if w.differ != "" {
		return diag.Errorf(diag.Pos{}, diag.Mismatch, "the two runs call different functions: %s", w.differ)
	}
	if w.parting != nil && w.first == nil {
		w.first = w.parting
		w.first.Case = res.Name
	}
	return nil
}

// states compares the states of two runners as they are now.
func (w *partJudge) states(a, b *Runner, res *CaseResult) error {
	sa, sb := a.States(), b.States()
	for i := range min(len(sa), len(sb)) {
		for _, name := range sa[i].Names() {
			want, err := sa[i].Read(name)
			if err != nil {
				return err
			}
			got, err := sb[i].Read(name)
			if err != nil {
				return err
			}
			cos, diff, exact := difference(got, want)
			s := StateResult{Name: name, Cosine: cos, MaxAbs: diff, Pass: cos >= w.tol.CosineMin}
			if exact {
				s.Pass = diff == 0
			}
			if math.IsNaN(cos) { // JSON has no NaN
				s.Cosine = -1
			}
			res.States = append(res.States, s)
			if !s.Pass && res.Error == "" {
				res.Pass, res.Error = false, fmt.Sprintf("state %s differs after the prompt: cosine %.6f, difference %.4g", name, s.Cosine, diff)
			}
		}
	}
	return nil
}

// difference compares two tensors: the cosine and the largest difference, and
// whether they hold integers, for which only the difference counts. Tensors of
// different types or shapes have the cosine NaN.
func difference(got, want *tensor.Tensor) (cos, diff float64, exact bool) {
	if got == nil || want == nil || got.DType != want.DType || !slices.Equal(got.Shape, want.Shape) {
		return math.NaN(), math.MaxFloat64, false
	}
	var ab, aa, bb float64
	for i, n := 0, got.Len(); i < n; i++ {
		x, y := got.Float64(i), want.Float64(i)
		ab, aa, bb = ab+x*y, aa+x*x, bb+y*y
		if x == y {
			continue // equal infinities
		}
		if d := math.Abs(x - y); !(d <= diff) {
			diff = d
		}
	}
	if !(diff <= math.MaxFloat64) {
		diff = math.MaxFloat64
	}
	switch {
	case diff == 0 && !math.IsNaN(ab) || aa == 0 && bb == 0:
		cos = 1
	case aa == 0 || bb == 0:
		cos = 0
	default:
		cos = ab / (math.Sqrt(aa) * math.Sqrt(bb))
	}
	return cos, diff, got.DType.IsInt() || got.DType == tensor.Bool
}
