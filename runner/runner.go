// Package runner runs packages: it picks the calling convention from the
// programs, feeds tokens, chooses the next one and returns text. It knows no
// backend; the caller hands one in.
//
// Files: runner.go (Options, Runner, Open), contract.go (Contract, Scores),
// choose.go (which contract a package needs), rules.go (which calls feed
// which positions), stepper.go (the contract that follows rules), chunked.go
// (embeddings, decoder chunks, lm_head), monolithic.go (ids to logits in one
// model), linked.go and openlinked.go (CoreML-LLM's chunks), tables.go and
// sidefile.go (their side files), carried.go (outputs that are the next
// call's inputs), encoder.go (ids to an embedding), head.go (logits and
// argmax heads), inputs.go (masks and positions), unit.go (one loaded part),
// states.go (state objects), sequence.go (what the state already holds),
// generate.go (Request, Result, the loop), stops.go (stop ids and strings),
// recommend.go (what the package says about sampling), prompt.go and
// family.go (text, ids, chat), chat.go (several turns), thinking.go (what a
// model thinks and what it answers),
// golden.go, goldenstates.go, compare.go, pair.go and parts.go (comparisons). Package
// sample chooses tokens, tokenizer and chattmpl handle text.
package runner

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/manifest"
	"github.com/anepkg/anepkg/runner/tokenizer"
)

// PrefillMode says how a prompt is fed.
type PrefillMode string

// The modes.
const (
	// PrefillAuto uses full batches where they give the right result.
	PrefillAuto PrefillMode = "auto"
	// PrefillBatch uses every batch function the package has, also those
	// known to be wrong past the window (it reproduces stock runtimes).
	PrefillBatch PrefillMode = "batch"
	// PrefillSingle feeds one token at a time.
	PrefillSingle PrefillMode = "single"
)

// Options tune Open. The zero value works.
type Options struct {
	Precision    coreml.Precision
	ComputeUnits string
	Threads      int
	Prefill      PrefillMode
	// AllModes loads the functions of every prefill mode, so that a Request
	// may choose another than Prefill.
	AllModes bool
	Logger   *slog.Logger
	// Progress is told of loading and prefill; nil = nobody.
	Progress func(Event)
	// StrictContext makes a full context an error of class diag.Context; by
	// default generation ends with finish_reason "context".
	StrictContext bool
	Observer      coreml.Observer
	Profile       *coreml.Profile // CPU only; nil = none
	// Tokenizer reads a tokenizer.json; nil = tokenizer.Load.
	Tokenizer func([]byte) (tokenizer.Tokenizer, error)
}

// Phase is what an Event is about.
type Phase string

// The phases.
const (
	Loading    Phase = "load"    // Done and Total count functions of parts
	Prefilling Phase = "prefill" // Done and Total count tokens
)

// Event is a step of progress. Done runs from 0 to Total.
type Event struct {
	Phase       Phase
	Part        string // path of the part that is being loaded
	Function    string
	Done, Total int
}

// Runner is a loaded package. It holds one conversation's state and is not
// safe for concurrent use.
type Runner struct {
	pkg      *manifest.Package
	backend  coreml.Backend
	opts     Options
	contract Contract // nil for an encoder
	enc      *encoder // nil unless the package is an encoder
	reason   string
	// backendReason says why the backend was chosen; "" when it was given.
	backendReason string

	seq      sequence
	loadTime time.Duration

	tok     tokenizer.Tokenizer
	tokErr  error
	tokDone bool
}

// Open loads every part of pkg that running needs. pkg must stay open until
// Close. When backend is a coreml.Chooser, its choices are tried in order:
// one that refuses the package is followed by the next. A package that no contract fits is an error of class
// diag.Unsupported that says what was found.
func Open(ctx context.Context, pkg *manifest.Package, backend coreml.Backend, opts Options) (*Runner, error) {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	switch opts.Prefill {
	case "":
		opts.Prefill = PrefillAuto
	case PrefillAuto, PrefillBatch, PrefillSingle:
	default:
		return nil, diag.Errorf(diag.Pos{}, diag.Usage, "prefill %q: want auto, batch or single", opts.Prefill)
	}
	choices := choicesFor(ctx, pkg, backend, opts)
	var refusal error
	for i, c := range choices {
		if refusal != nil {
			c.Reason += ": " + refusal.Error()
		}
		r, err := openWith(ctx, pkg, c, opts)
		if err == nil || i+1 == len(choices) || !coreml.Refused(err) {
			return r, err
		}
		opts.Logger.Warn("a backend refuses the package; the next is tried", "backend", c.Backend.Name(), "error", err)
		refusal = err
	}
	return nil, diag.Errorf(diag.In(pkg.Path), diag.Unsupported, "no backend")
}

// choicesFor lists the backends to try.
func choicesFor(ctx context.Context, pkg *manifest.Package, backend coreml.Backend, opts Options) []coreml.Choice {
	ch, ok := backend.(coreml.Chooser)
	if !ok {
		return []coreml.Choice{{Backend: backend}}
	}
	var models []*coreml.Model
	for _, part := range pkg.Parts {
		if m, err := pkg.Model(ctx, part); err == nil && m != nil {
			models = append(models, m) // trouble is reported when the part is loaded
		}
	}
	return ch.Choose(models, opts.load())
}

// load are the options of the backend.
func (o Options) load() coreml.LoadOptions {
	return coreml.LoadOptions{
		ComputeUnits: o.ComputeUnits, Precision: o.Precision, Threads: o.Threads,
		Logger: o.Logger, Observer: o.Observer, Profile: o.Profile,
	}
}

// openWith opens pkg with one backend.
func openWith(ctx context.Context, pkg *manifest.Package, choice coreml.Choice, opts Options) (*Runner, error) {
	start := time.Now()
	r := &Runner{pkg: pkg, backend: choice.Backend, backendReason: choice.Reason, opts: opts}
	l := &loader{pkg: pkg, backend: choice.Backend, opts: opts}
	if err := r.choose(ctx, l); err != nil {
		return nil, errors.Join(err, l.close())
	}
	r.loadTime = time.Since(start)
	r.seq.contract = r.contract
	if choice.Reason != "" {
		opts.Logger.Info("backend chosen", "backend", r.Backend(), "reason", choice.Reason)
	}
	opts.Logger.Info("package loaded", "contract", r.Contract(), "reason", r.reason, "seconds", r.loadTime.Seconds())
	return r, nil
}

// Contract names the calling convention, for example "chunked".
func (r *Runner) Contract() string {
	if r.contract == nil {
		return string(manifest.Encoder)
	}
	return r.contract.Name()
}

// Reason says in one sentence why the contract was chosen.
func (r *Runner) Reason() string { return r.reason }

// Package returns the package that the runner was opened with.
func (r *Runner) Package() *manifest.Package { return r.pkg }

// Backend returns the backend's name.
func (r *Runner) Backend() string { return r.backend.Name() }

// BackendReason says in one sentence why that backend runs the package; it is
// empty when Open was given one, not a choice.
func (r *Runner) BackendReason() string { return r.backendReason }

// ContextLength is the number of positions; the last usable one is one less.
func (r *Runner) ContextLength() int {
	if r.contract == nil {
		return r.enc.length
	}
	return r.contract.Limit()
}

// VocabSize is the number of logits, 0 when the head does not tell.
func (r *Runner) VocabSize() int {
	if r.contract == nil {
		return 0
	}
	return r.contract.Head().Vocab
}

// HasLogits reports whether the head gives logits; an argmax head gives the
// best token only, so that nothing but plain greedy choice is possible.
func (r *Runner) HasLogits() bool { return r.contract != nil && r.contract.Head().Logits }

// IsEncoder reports whether the package turns ids into an embedding.
func (r *Runner) IsEncoder() bool { return r.contract == nil }

// LoadTime is how long Open took.
func (r *Runner) LoadTime() time.Duration { return r.loadTime }

// States returns the state objects of the conversation, for reading by name.
// Packages made of chunks with states of their own have several.
func (r *Runner) States() []coreml.State {
	if r.contract == nil {
		return nil
	}
	return r.contract.States()
}

// Close unloads the package's functions; pkg itself stays open.
func (r *Runner) Close() error {
	if r.contract == nil {
		return r.enc.unit.close()
	}
	return r.contract.Close()
}

func (r *Runner) progress(ev Event) {
	if r.opts.Progress != nil {
		r.opts.Progress(ev)
	}
}
