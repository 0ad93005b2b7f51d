package inspect

import (
	"context"
	"crypto/sha256"
	"slices"
	"strings"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/inspect/verify"
	"github.com/anepkg/anepkg/manifest"
)

// partView is a part with its opened model and what was computed from it.
type partView struct {
	*manifest.Part
	model    *coreml.Model
	err      error
	weights  []*Weight
	programs map[string]*program

	verified bool // found holds what the verifier says
	found    []verify.Problem

	scannedAll bool // scans holds the float blobs
	scans      []scanned
}

// label is the part's name in messages: its path, or the claimed name.
func (v *partView) label() string {
	if v.Path == "" {
		return v.Claimed
	}
	if v.Path == "." {
		return string(v.Role)
	}
	return v.Path
}

// program returns the index of a function.
func (v *partView) program(name string) *program { return v.programs[name] }

// decoder reports whether the part holds decoder layers.
func (v *partView) decoder() bool {
	return v.Role == manifest.Chunk || v.Role == manifest.Mono
}

// fn returns the part's function of the given purpose: "infer" is the one
// that takes a single token, "prefill" the one that takes a batch.
func (v *partView) fn(purpose string) *coreml.Function {
	if v.model == nil {
		return nil
	}
	if f := v.model.Function(purpose); f != nil && purpose != "" {
		return f
	}
	if purpose == "prefill" {
		var best *coreml.Function
		for _, f := range v.model.Functions {
			if strings.HasPrefix(f.Name, "prefill") && f.Name != "prefill_rotate" {
				best = f
			}
		}
		return best
	}
	for _, name := range []string{"infer", "infer_rotate", "decode_q1"} {
		if f := v.model.Function(name); f != nil {
			return f
		}
	}
	return v.model.Function("")
}

// view is a package with all its programs read.
type view struct {
	pkg   *manifest.Package
	parts []*partView // in package order, absent ones included
	facts facts
	known *LayersReport   // made once by layers
	ctx   context.Context //nolint:containedctx // of the call that made the view; rules that read for long ask it

	digests map[string][sha256.Size]byte // of files, made once each
}

// number is a fact and where it comes from.
type number struct {
	n      int
	source string
	pos    diag.Pos
}

// facts are the package's numbers as the programs tell them; zero when no
// program does.
type facts struct {
	context, batch, hidden, vocab number
	parts                         []int // widths of logits1, logits2, ...
	argmax                        bool  // the head gives ids instead of logits
	embedRows                     number
	window                        number // positions of the local cache
}

// look opens every part and collects the facts. Parts that cannot be read
// stay with their error.
func look(ctx context.Context, pkg *manifest.Package) (*view, error) {
	v := &view{pkg: pkg, ctx: ctx}
	for _, pt := range pkg.Parts {
		pv := &partView{Part: pt, programs: map[string]*program{}}
		pv.model, pv.err = pkg.Model(ctx, pt)
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if pv.model != nil && pv.err == nil && pv.model.Program != nil {
			for _, fn := range pv.model.Program.Functions {
				pv.programs[fn.Name] = indexFunction(fn)
			}
			pv.weights = collectWeights(pv.model.Program, pv.programs)
		}
		v.parts = append(v.parts, pv)
	}
	v.collect()
	return v, nil
}

// of returns the readable parts with one of the roles.
func (v *view) of(roles ...manifest.Role) []*partView {
	var out []*partView
	for _, p := range v.parts {
		if p.model != nil && p.err == nil && slices.Contains(roles, p.Role) {
			out = append(out, p)
		}
	}
	return out
}

// unreadable returns the parts with one of the roles whose program is absent
// or broken.
func (v *view) unreadable(roles ...manifest.Role) []*partView {
	var out []*partView
	for _, p := range v.parts {
		if (p.model == nil || p.err != nil) && slices.Contains(roles, p.Role) {
			out = append(out, p)
		}
	}
	return out
}

func (v *view) collect() {
	decoders := v.of(manifest.Chunk, manifest.Mono)
	for _, p := range decoders {
		v.decoderFacts(p)
	}
	for _, p := range v.of(manifest.ChunkRot) {
		v.windowFact(p)
	}
	for _, p := range v.of(manifest.PrefillOf) {
		if f := p.fn("prefill"); f != nil && v.facts.batch.n == 0 {
			v.facts.batch = sequenceLength(p, f)
		} else if f := p.fn(""); f != nil && v.facts.batch.n == 0 {
			v.facts.batch = sequenceLength(p, f)
		}
	}
	for _, p := range v.of(manifest.Embeddings) {
		v.embeddingFacts(p)
	}
	for _, p := range v.of(manifest.EncoderOf) {
		if f := p.fn(""); f != nil {
			if in := f.Input("input_ids"); in != nil && len(in.Shape) == 2 {
				v.facts.context = fact(p, f, in.Name, in.Shape[1])
				v.facts.batch = v.facts.context
			}
			if ix := p.program(f.Name); ix != nil {
				v.facts.embedRows = fact(p, f, "embedding table", ix.tableRows(0))
				v.facts.vocab = v.facts.embedRows
				v.facts.hidden = fact(p, f, "embedding table", tableWidth(ix))
			}
		}
	}
	heads := v.of(manifest.LMHead, manifest.Mono)
	if len(heads) == 0 && len(decoders) > 0 { // CoreML-LLM: the last chunk has the head
		heads = decoders[len(decoders)-1:]
	}
	for _, p := range heads {
		v.headFacts(p)
	}
	if v.facts.vocab.n == 0 && v.pkg.Kind == manifest.CoreMLLLM {
		v.facts.vocab = v.facts.embedRows
	}
	if v.facts.batch.n == 0 && v.pkg.Kind == manifest.CoreMLLLM && len(decoders) > 0 {
		if f := decoders[0].fn("infer"); f != nil {
			v.facts.batch = sequenceLength(decoders[0], f)
		}
	}
}

func fact(p *partView, f *coreml.Function, what string, n int) number {
	if n <= 0 {
		return number{}
	}
	at := diag.In(p.label())
	if f.Program != nil && p.model.Program != nil {
		at = p.model.Program.At(f.Program.Pos)
		for _, prm := range f.Program.Params {
			if prm.Name == what {
				at = p.model.Program.At(prm.Pos)
			}
		}
		at.File = p.model.ProgramFile
	}
	return number{n: n, source: p.label() + " " + f.Name + " " + what, pos: at}
}

// sequenceLength is how many tokens a call of f takes.
func sequenceLength(p *partView, f *coreml.Function) number {
	for _, name := range []string{"hidden_states", "input_ids", "hidden_in"} {
		if in := f.Input(name); in != nil && len(in.Shape) >= 2 && in.Shape[1] > 0 {
			return fact(p, f, name, in.Shape[1])
		}
	}
	return number{}
}

func (v *view) decoderFacts(p *partView) {
	f := p.fn("infer")
	if f == nil {
		return
	}
	for _, name := range []string{"causal_mask_full", "causal_mask"} {
		if in := f.Input(name); in != nil && len(in.Shape) > 0 && v.facts.context.n == 0 {
			v.facts.context = fact(p, f, name, in.Shape[len(in.Shape)-1])
		}
	}
	for _, name := range []string{"hidden_states", "hidden_in"} {
		if in := f.Input(name); in != nil && len(in.Shape) == 3 && v.facts.hidden.n == 0 {
			v.facts.hidden = fact(p, f, name, in.Shape[2])
		}
	}
	if pf := p.fn("prefill"); pf != nil && v.facts.batch.n == 0 {
		v.facts.batch = sequenceLength(p, pf)
	}
	v.windowFact(p)
	if p.Role == manifest.Mono {
		if ix := p.program(f.Name); ix != nil {
			if rows := ix.tableRows(0); rows > v.facts.embedRows.n {
				v.facts.embedRows = fact(p, f, "embedding table", rows)
			}
			if v.facts.hidden.n == 0 {
				v.facts.hidden = fact(p, f, "embedding table", tableWidth(ix))
			}
		}
	}
}

// tableWidth is the width of the table with the most rows that a gather
// reads.
func tableWidth(ix *program) int {
	rows := ix.tableRows(0)
	for _, op := range ix.ops {
		if op.Type == "gather" {
			if t, ok := ix.typeOf(op, "x"); ok && len(t.Shape) == 2 && t.Shape[0] == rows {
				return t.Shape[1]
			}
		}
	}
	return 0
}

func (v *view) windowFact(p *partView) {
	for _, f := range p.model.Functions {
		for _, s := range f.States {
			if stateRole(s.Name) == roleLocal && len(s.Shape) == 4 && v.facts.window.n == 0 {
				v.facts.window = fact(p, f, s.Name, s.Shape[2])
			}
		}
	}
}

func (v *view) embeddingFacts(p *partView) {
	f := p.fn("")
	if f == nil {
		return
	}
	width := 0
	if out := f.Output("hidden_states"); out != nil && len(out.Shape) == 3 && out.Shape[2] > 0 {
		width = out.Shape[2]
		if v.facts.hidden.n == 0 {
			v.facts.hidden = fact(p, f, "hidden_states", width)
		}
	}
	if in := f.Input("input_ids"); in != nil && v.facts.batch.n == 0 {
		most := 0
		for _, s := range in.Enumerated {
			if len(s) == 2 {
				most = max(most, s[1])
			}
		}
		v.facts.batch = fact(p, f, "input_ids", most)
	}
	if ix := p.program(f.Name); ix != nil {
		v.facts.embedRows = fact(p, f, "embedding table", ix.tableRows(width))
	}
}

// logitsOutputs returns logits1..logitsN, or the single logits output, of a
// function, in numeric order.
func logitsOutputs(f *coreml.Function) []coreml.Feature {
	if out := f.Output("logits"); out != nil {
		return []coreml.Feature{*out}
	}
	if out := f.Output("output_logits"); out != nil {
		return []coreml.Feature{*out}
	}
	var outs []coreml.Feature
	for n := 1; n <= len(f.Outputs); n++ {
		out := f.Output("logits" + itoa(n))
		if out == nil {
			break
		}
		outs = append(outs, *out)
	}
	return outs
}

func (v *view) headFacts(p *partView) {
	f := p.fn("infer")
	if f == nil || v.facts.vocab.n != 0 && p.Role != manifest.LMHead {
		return
	}
	outs := logitsOutputs(f)
	var widths []int
	for _, o := range outs {
		if len(o.Shape) == 0 {
			return
		}
		widths = append(widths, o.Shape[len(o.Shape)-1])
	}
	if len(outs) == 0 {
		for _, name := range []string{"argmax_idx", "token_id", "next_token"} {
			if f.Output(name) != nil {
				v.facts.argmax = true
			}
		}
		if ix := p.program(f.Name); ix != nil && v.facts.argmax {
			widths = ix.argmaxWidths()
		}
	}
	sum := 0
	for _, w := range widths {
		if w <= 0 {
			return
		}
		sum += w
	}
	if sum > 0 {
		v.facts.parts = widths
		v.facts.vocab = fact(p, f, "logits", sum)
	}
	if p.Role == manifest.LMHead && v.facts.hidden.n == 0 {
		if in := f.Input("hidden_states"); in != nil && len(in.Shape) == 3 {
			v.facts.hidden = fact(p, f, "hidden_states", in.Shape[2])
		}
	}
}

// or returns the program's number, else the claimed one of the first key.
func (v *view) or(fact number, keys ...string) *int {
	if fact.n > 0 {
		return &fact.n
	}
	for _, k := range keys {
		if n, ok := v.pkg.Params.Int(k); ok {
			return &n
		}
	}
	return nil
}
