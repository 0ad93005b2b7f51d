package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/inspect"
	"github.com/anepkg/anepkg/manifest"
	"github.com/anepkg/anepkg/runner"
)

// loadResult is how the load of one function ended.
type loadResult struct {
	Part     string  `json:"part"`
	Function string  `json:"function"`
	Backend  string  `json:"backend"`
	OK       bool    `json:"ok"`
	Load     float64 `json:"load_s"`
	// Killed names the signal or exit status that ended the process which
	// loaded the function; "" when it ended by itself.
	Killed string     `json:"killed,omitempty"`
	Error  *jsonError `json:"error,omitempty"`
}

// err makes an error out of a failed load.
func (r *loadResult) err() error {
	if r.OK {
		return nil
	}
	code := r.Error.Code
	if _, known := exitStatus[code]; !known {
		code = diag.RunFailed
	}
	e := diag.Errorf(diag.In(r.Part), code, "function %s does not load: %s", r.Function, r.Error.Message)
	if r.Error.Hint != "" {
		return e.WithHint("%s", r.Error.Hint)
	}
	return e
}

// loadPlace is a function of a part.
type loadPlace struct {
	part     *manifest.Part
	model    *coreml.Model
	function string
}

// loadPlaces lists every function of every part that opens.
func loadPlaces(ctx context.Context, pkg *manifest.Package) []loadPlace {
	var out []loadPlace
	for _, part := range pkg.Parts {
		m, err := pkg.Model(ctx, part)
		if err != nil || m == nil {
			continue // validate has its findings, run its errors
		}
		for _, f := range m.Functions {
			out = append(out, loadPlace{part, m, f.Name})
		}
	}
	return out
}

// loadEach loads every function from number from on, one after the other, and
// tells before and after each. With the backend auto the first choice is used:
// a fall back would hide what is looked for.
func loadEach(ctx context.Context, pkg *manifest.Package, backend coreml.Backend, opts runner.Options, from int, begin, end func(*loadResult)) error {
	load := coreml.LoadOptions{ComputeUnits: opts.ComputeUnits, Precision: opts.Precision, Threads: opts.Threads, Logger: opts.Logger}
	places := loadPlaces(ctx, pkg)
	if ch, ok := backend.(coreml.Chooser); ok {
		var models []*coreml.Model
		for _, p := range places {
			models = append(models, p.model)
		}
		backend = ch.Choose(models, load)[0].Backend
	}
	for i := from; i < len(places); i++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		p := places[i]
		r := &loadResult{Part: partLabel(p.part), Function: p.function, Backend: backend.Name()}
		begin(r)
		start := time.Now()
		s, err := backend.Load(ctx, p.model, p.function, load)
		if err == nil {
			err = s.Close()
		}
		r.OK, r.Load = err == nil, time.Since(start).Seconds()
		if err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			code, pos, hint := classify(err)
			r.Error = &jsonError{code, err.Error(), hint, whereOf(pos)}
		}
		end(r)
	}
	return nil
}

// childName is the command of the process that loads for another; it is in no
// help text.
const childName = "__load"

// childLine is one line that the child prints: what it is about to load, or
// how that ended.
type childLine struct {
	Begin *loadResult `json:"begin,omitempty"`
	End   *loadResult `json:"end,omitempty"`
}

// childCommand loads the functions of a package and prints a line before and
// after each. Errors before that are the error object of --json.
func (t *tool) childCommand() *cli.Command {
	return &cli.Command{
		Name:      childName,
		Usage:     "load for another process",
		ArgsUsage: targetUsage,
		Flags:     append([]cli.Flag{&cli.IntFlag{Name: "from"}}, engineFlags()...),
		Action: func(c *cli.Context) error {
			opts, err := t.engineOptions(c)
			if err != nil {
				return err
			}
			backend, err := t.backend(c.String("backend"))
			if err != nil {
				return err
			}
			tell := func(l childLine) {
				if data, err := json.Marshal(l); err == nil {
					t.printf("%s\n", data)
				}
			}
			return t.withTarget(c, func(tg *target) error {
				return t.openPackage(c.Context, tg, func(pkg *manifest.Package) error {
					return loadEach(c.Context, pkg, backend, opts, c.Int("from"),
						func(r *loadResult) { tell(childLine{Begin: r}) }, func(r *loadResult) { tell(childLine{End: r}) })
				})
			})
		},
	}
}

// loadReport is a report with the loads that --load made.
type loadReport struct {
	inspect.ValidateReport
	Loads []loadResult `json:"loads"`
}

// loadCheck is the id of findings about functions that do not load. It is
// not in the catalogue of checks, which never run anything.
const loadCheck = "LOAD001"

// addLoads loads the package of validate --load and adds a finding for each
// function that does not load.
func (t *tool) addLoads(c *cli.Context, pkg *manifest.Package, report *inspect.ValidateReport) ([]loadResult, error) {
	results := []loadResult{}
	var err error
	if c.Bool("isolate") {
		results, err = t.loadIsolated(c, c.Args().First())
	} else {
		var b coreml.Backend
		var opts runner.Options
		if b, opts, err = t.engine(c); err == nil {
			err = loadEach(c.Context, pkg, b, opts, 0, func(*loadResult) {}, func(r *loadResult) { results = append(results, *r) })
		}
	}
	if err != nil {
		return nil, err
	}
	report.Run = append(report.Run, loadCheck)
	for i := range results {
		r := &results[i]
		if r.OK {
			continue
		}
		report.Summary.Error++
		report.Findings = append(report.Findings, &inspect.Finding{
			ID: loadCheck, Severity: inspect.Error, Title: "a function does not load", Got: "not loaded", Want: "loaded", Hint: r.Error.Hint,
			Message: fmt.Sprintf("function %s does not load with the backend %s: %s", r.Function, r.Backend, r.Error.Message),
			Where:   []inspect.Where{{File: r.Part}},
		})
	}
	return results, nil
}

// loadsText says in one line what was loaded.
func (t *tool) loadsText(results []loadResult) {
	ok, total := 0, 0.0
	for _, r := range results {
		total += r.Load
		if r.OK {
			ok++
		}
	}
	name := "none"
	if len(results) > 0 {
		name = results[0].Backend
	}
	t.printf("loaded %d of %s with the backend %s in %s\n", ok, plural(len(results), "function"), name, seconds(total))
}
