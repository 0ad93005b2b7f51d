package runner

import (
	"context"
	"errors"
	"fmt"
	"path"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/coreml/tensor"
	"github.com/anepkg/anepkg/manifest"
)

// outHidden is the output of a decoder chunk.
const outHidden = "output_hidden_states"

// chunked is the network of embeddings, decoder chunks and lm_head. Every
// output of the embeddings model besides hidden_states is passed unchanged to
// the chunks that declare an input of its name (Gemma 4's per_layer_inputs).
type chunked struct {
	embed  *unit
	chunks []*part
	lmHead *unit
	reader *head
	st     *states
	in     inputs
	trail  []trailEntry
}

// openChunked loads a package of chunks and chooses its rules.
func openChunked(ctx context.Context, l *loader) (Contract, string, error) {
	groups, err := chunkModels(ctx, l)
	if err != nil {
		return nil, "", err
	}
	fc, err := gather(groups.models, l.pkg.Params)
	if err != nil {
		return nil, "", err
	}
	embPart, emb, err := single(ctx, l, manifest.Embeddings)
	if err != nil {
		return nil, "", err
	}
	headPart, lm, err := single(ctx, l, manifest.LMHead)
	if err != nil {
		return nil, "", err
	}
	if e := emb.Function(""); fc.batch > 0 && (e == nil || !accepts(e.Input(inIDs), 1, fc.batch)) {
		l.opts.Logger.Warn("embeddings take one token only: the prompt is fed one by one", "part", emb.Path, "batch", fc.batch)
		fc.batch = 0
	}
	l.reuse = true
	name, ru, why := fc.rules(string(manifest.Chunked), lastTokenOutput(l.pkg.Params, groups.models[len(groups.models)-1]))
	need := neededFunctions(ru, l.opts)
	l.total = len(need)*len(groups.models) + 2

	net := &chunked{in: inputs{mask: plainMasks}}
	if net.embed, err = l.loadPart(ctx, embPart, emb); err != nil {
		return nil, "", err
	}
	for i, ms := range groups.models {
		p := &part{name: fmt.Sprintf("chunk %d of %d (%s)", i+1, len(groups.models), groups.parts[i][0].Path)}
		for _, fn := range need {
			m, f := find(ms, fn)
			u, err := l.load(ctx, groups.partOf(i, m), m, f.Name)
			if err != nil {
				return nil, "", err
			}
			p.add(fn, u)
		}
		net.chunks = append(net.chunks, p)
	}
	if net.lmHead, err = l.loadPart(ctx, headPart, lm); err != nil {
		return nil, "", err
	}
	if net.reader, err = newHead(net.lmHead.fn, l.pkg.Params, net.lmHead.path); err != nil {
		return nil, "", err
	}
	if err := net.check(); err != nil {
		return nil, "", err
	}
	if net.st, err = newStates(l.backend, net.chunks); err != nil {
		return nil, "", err
	}
	return &stepper{name: name, rules: ru, net: net}, why, nil
}

// chunkGroups are the decoder chunks in order: the models of each and where
// they came from.
type chunkGroups struct {
	models [][]*coreml.Model
	parts  [][]*manifest.Part
}

func (g *chunkGroups) partOf(i int, m *coreml.Model) *manifest.Part {
	for j, have := range g.models[i] {
		if have == m {
			return g.parts[i][j]
		}
	}
	return g.parts[i][0]
}

// chunkModels opens the chunks and joins each with its _rot file and its
// prefill file.
func chunkModels(ctx context.Context, l *loader) (*chunkGroups, error) {
	g := &chunkGroups{}
	at := map[int]int{}
	for _, role := range []manifest.Role{manifest.Chunk, manifest.ChunkRot, manifest.PrefillOf} {
		for _, pt := range l.pkg.PartsOf(role) {
			if role == manifest.PrefillOf && pt.Chunk == 0 {
				continue
			}
			m, err := l.model(ctx, pt)
			if err != nil {
				return nil, err
			}
			i, ok := at[pt.Chunk]
			if !ok {
				i = len(g.models)
				at[pt.Chunk] = i
				g.models = append(g.models, nil)
				g.parts = append(g.parts, nil)
			}
			g.models[i] = append(g.models[i], m)
			g.parts[i] = append(g.parts[i], pt)
		}
	}
	if len(g.models) == 0 {
		return nil, diag.Errorf(diag.In(l.pkg.Path), diag.NotFound, "the package has no decoder chunks")
	}
	return g, nil
}

// single opens the one part with the role.
func single(ctx context.Context, l *loader, role manifest.Role) (*manifest.Part, *coreml.Model, error) {
	parts := l.pkg.PartsOf(role)
	if len(parts) == 0 {
		return nil, nil, diag.Errorf(diag.In(l.pkg.Path), diag.NotFound, "the package has no %s part", role)
	}
	m, err := l.model(ctx, parts[0])
	return parts[0], m, err
}

// loadPart loads the default function of a part that stands alone.
func (l *loader) loadPart(ctx context.Context, pt *manifest.Part, m *coreml.Model) (*unit, error) {
	u, err := l.load(ctx, pt, m, "")
	if err != nil {
		return nil, err
	}
	p := &part{name: fmt.Sprintf("%s (%s)", pt.Role, pt.Path)}
	p.add(u.fn.Name, u)
	return u, nil
}

// neededFunctions lists the functions that rules may call.
func neededFunctions(ru rules, opts Options) []string {
	mode := opts.Prefill
	if opts.AllModes {
		mode = PrefillBatch // its functions include those of the others
	}
	need := []string{fnInfer}
	if len(ru.sizes) > 0 {
		need = nil
		for _, n := range ru.sizes {
			need = append(need, variant(fnInfer, n))
		}
	}
	if ru.batchAt(0, mode) != "" {
		need = append(need, fnPrefill)
	}
	if ru.window > 0 {
		need = append(need, fnInferRotate)
		if ru.batchAt(ru.window, mode) != "" {
			need = append(need, fnPrefillRotate)
		}
	}
	return need
}

// lastTokenOutput reports whether the prefill of the last chunk gives the
// final-normed hidden state of the last token. Stock packages give an
// unnormalized first token of the same shape [1, 1, H], so the claim decides;
// a claim beside an output of the whole batch, which is not normalized
// either, does not count (anemll.md 3.2).
func lastTokenOutput(claims manifest.Params, last []*coreml.Model) bool {
	claimed, _ := claims.Bool("prefill_last_token_output")
	prefill := function(last, fnPrefill)
	if !claimed || prefill == nil {
		return false
	}
	out := prefill.Output(outHidden)
	return out == nil || len(out.Shape) != 3 || out.Shape[1] <= 1
}

// check makes sure before anything runs that every input has a source.
func (c *chunked) check() error {
	if c.embed.fn.Input(inIDs) == nil || c.embed.fn.Output(inHidden) == nil && len(c.embed.fn.Outputs) != 1 {
		return diag.Errorf(c.embed.pos(), diag.Unsupported, "embeddings have inputs %s and outputs %s, want input_ids and hidden_states",
			featureNames(c.embed.fn.Inputs), featureNames(c.embed.fn.Outputs))
	}
	given := map[string]bool{inHidden: true, inPositions: true, inCurrent: true, inMask: true, inUpdateMask: true}
	for _, o := range c.embed.fn.Outputs {
		given[o.Name] = true
	}
	for _, p := range c.chunks {
		for _, fn := range p.order {
			if err := checkInputs(p.units[fn], given); err != nil {
				return err
			}
		}
	}
	if len(c.lmHead.fn.Inputs) != 1 {
		return diag.Errorf(c.lmHead.pos(), diag.Unsupported, "lm_head has inputs %s, want hidden_states only", featureNames(c.lmHead.fn.Inputs))
	}
	return nil
}

func checkInputs(u *unit, given map[string]bool) error {
	for _, in := range u.fn.Inputs {
		if !given[in.Name] {
			return diag.Errorf(u.pos(), diag.Unsupported, "function %s has the input %s, which nothing provides", u.fn.Name, in.Name)
		}
	}
	return nil
}

func (c *chunked) head() HeadInfo  { return c.reader.info() }
func (c *chunked) states() *states { return c.st }

func (c *chunked) close() error {
	errs := []error{c.embed.close(), c.lmHead.close(), c.st.close()}
	for _, p := range c.chunks {
		errs = append(errs, p.close())
	}
	return errors.Join(errs...)
}

func (c *chunked) run(ctx context.Context, st step, ids []int) (Scores, error) {
	in := &c.in
	in.begin(st, ids)
	args, err := in.fill(c.embed)
	if err != nil {
		return Scores{}, err
	}
	outs, err := c.embed.predict(ctx, args, nil)
	if err != nil {
		return Scores{}, err
	}
	for name, t := range outs {
		in.from[name] = t
	}
	hidden, err := c.embed.output(outs, inHidden)
	if err != nil {
		return Scores{}, err
	}
	c.trail = append(c.trail[:0], trailEntry{c.embed, hidden})
	for _, p := range c.chunks {
		u, err := p.unit(st.fn)
		if err != nil {
			return Scores{}, err
		}
		in.from[inHidden] = hidden
		if args, err = in.fill(u); err != nil {
			return Scores{}, err
		}
		if outs, err = u.predict(ctx, args, c.st.of(p, u.fn)); err != nil {
			return Scores{}, err
		}
		if hidden, err = u.output(outs, outHidden); err != nil {
			return Scores{}, err
		}
		c.trail = append(c.trail, trailEntry{u, hidden})
	}
	if !st.want {
		return Scores{}, nil
	}
	return c.score(ctx, st)
}

// score runs the lm_head on the last token of the last chunk's output.
func (c *chunked) score(ctx context.Context, st step) (Scores, error) {
	c.in.from[c.lmHead.fn.Inputs[0].Name] = lastRow(c.trail[len(c.trail)-1].out)
	args, err := c.in.fill(c.lmHead)
	if err != nil {
		return Scores{}, err
	}
	outs, err := c.lmHead.predict(ctx, args, nil)
	if err != nil {
		return Scores{}, err
	}
	sc, err := c.reader.read(c.lmHead, outs)
	if diag.CodeOf(err) == diag.RunFailed {
		err = blame(st, c.trail, err)
	}
	return sc, err
}

// trailEntry is what a part gave in a step.
type trailEntry struct {
	u   *unit
	out *tensor.Tensor
}

// blame names the first part of the step whose output holds a NaN.
func blame(st step, trail []trailEntry, err error) error {
	for _, t := range trail {
		at := firstNaN(t.out)
		if at < 0 {
			continue
		}
		return diag.Errorf(t.u.pos(), diag.RunFailed, "function %s gave NaN at position %d: its output holds it first (element %d), so the logits are NaN",
			t.u.fn.Name, st.pos+st.n-1, at).WithHint("find the op with: anepkg trace --part %s", path.Base(t.u.path))
	}
	return err
}
