package inspect

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/coreml/tensor"
	"github.com/anepkg/anepkg/manifest"
)

// DiffReport is what two packages have different. It marshals to the JSON of
// "anepkg diff". Lists hold differences only; every one is sorted.
type DiffReport struct {
	Schema    string         `json:"schema"` // "anepkg.diff/1"
	A         PackageRef     `json:"a"`
	B         PackageRef     `json:"b"`
	Equal     bool           `json:"equal"` // no difference in anything below
	Params    []ValueChange  `json:"params"`
	Parts     []ValueChange  `json:"parts"`     // parts that one side lacks, or another container
	Functions []ScopedChange `json:"functions"` // functions, their inputs and outputs
	States    []ScopedChange `json:"states"`
	Ops       []OpChange     `json:"ops"`
	Weights   WeightDiff     `json:"weights"`
	Findings  FindingDiff    `json:"findings"`
}

// ValueChange is one value on both sides; nil where a side has none.
type ValueChange struct {
	Key string `json:"key"`
	A   any    `json:"a"`
	B   any    `json:"b"`
}

// ScopedChange is a change inside a part: what names the thing, for example
// "input hidden_states".
type ScopedChange struct {
	Part     string `json:"part"`
	Function string `json:"function"`
	What     string `json:"what"`
	A        any    `json:"a"`
	B        any    `json:"b"`
}

// OpChange is an op that two functions have in different numbers.
type OpChange struct {
	Part     string `json:"part"`
	Function string `json:"function"`
	Op       string `json:"op"`
	A        int    `json:"a"`
	B        int    `json:"b"`
}

// WeightDiff compares constants of equal name. Changes lists those that are
// not stored alike.
type WeightDiff struct {
	SameBytes  int            `json:"same_bytes"`
	SameValues int            `json:"same_values"` // stored differently, equal after decompression
	Differ     int            `json:"differ"`
	OnlyA      int            `json:"only_a"`
	OnlyB      int            `json:"only_b"`
	Unread     int            `json:"unread"` // not compared: a file is missing, or weights were left out
	Changes    []WeightChange `json:"changes"`
}

// WeightChange is one constant that differs. MaxAbs is the largest difference
// of two elements, null when they cannot be compared.
type WeightChange struct {
	Part   string   `json:"part"`
	Name   string   `json:"name"`
	Status string   `json:"status"` // same_values, differ, only_a, only_b, unread
	A      string   `json:"a"`      // how it is stored: "lut 6-bit/8 float16 [64, 64]", "" where absent
	B      string   `json:"b"`
	MaxAbs *float64 `json:"max_abs"`
	Reason string   `json:"reason,omitempty"` // why it is unread
}

// FindingDiff is what Validate finds on one side only, compared without line
// numbers.
type FindingDiff struct {
	Appeared []*Finding `json:"appeared"` // in b, not in a
	Vanished []*Finding `json:"vanished"` // in a, not in b
}

// Diff compares two packages. Parts are matched by role and chunk number.
// With Options.Fast no weight data are read. Only, Skip and Targets choose
// the findings that are compared. An error is that of ctx, or of Validate's
// options.
func Diff(ctx context.Context, a, b *manifest.Package, opts Options) (*DiffReport, error) {
	va, err := look(ctx, a)
	if err != nil {
		return nil, err
	}
	vb, err := look(ctx, b)
	if err != nil {
		return nil, err
	}
	r := &DiffReport{Schema: "anepkg.diff/1", A: refOf(a), B: refOf(b), Parts: []ValueChange{}, Functions: []ScopedChange{}, States: []ScopedChange{}, Ops: []OpChange{},
		Weights: WeightDiff{Changes: []WeightChange{}}}
	r.Params = diffParams(a.Params, b.Params)
	pairs := r.matchParts(va, vb)
	for _, p := range pairs {
		r.diffFunctions(p)
		if err := r.diffWeights(ctx, p, opts.Fast); err != nil {
			return nil, err
		}
	}
	if err := r.diffFindings(ctx, a, b, opts); err != nil {
		return nil, err
	}
	w := &r.Weights
	r.Equal = len(r.Params)+len(r.Parts)+len(r.Functions)+len(r.States)+len(r.Ops)+w.SameValues+w.Differ+w.OnlyA+w.OnlyB+len(r.Findings.Appeared)+len(r.Findings.Vanished) == 0
	return r, nil
}

func refOf(p *manifest.Package) PackageRef {
	return PackageRef{p.Path, string(p.Kind), string(p.Layout), p.Name}
}

func diffParams(a, b manifest.Params) []ValueChange {
	out := []ValueChange{}
	seen := map[string]bool{}
	value := func(p *manifest.Param) any {
		if p == nil {
			return nil
		}
		return p.Value
	}
	for _, p := range slices.Concat(a, b) {
		if seen[p.Key] {
			continue
		}
		seen[p.Key] = true
		x, y := a.Get(p.Key), b.Get(p.Key)
		if x == nil || y == nil || !reflect.DeepEqual(x.Value, y.Value) {
			out = append(out, ValueChange{p.Key, value(x), value(y)})
		}
	}
	slices.SortFunc(out, func(x, y ValueChange) int { return cmp.Compare(x.Key, y.Key) })
	return out
}

// partPair is a part that both packages have.
type partPair struct {
	name string
	a, b *partView
}

// partKey matches parts; a part of unknown purpose by its name.
func partKey(p *partView) string {
	switch p.Role {
	case manifest.Chunk, manifest.ChunkRot, manifest.PrefillOf:
		return fmt.Sprintf("%s %d of %d", p.Role, p.Chunk, p.Of)
	case manifest.Leftover:
		return "leftover " + p.label()
	}
	return string(p.Role)
}

func partsByKey(v *view) map[string]*partView {
	out := map[string]*partView{}
	for _, p := range v.parts {
		key := partKey(p)
		for n := 2; out[key] != nil; n++ {
			key = fmt.Sprintf("%s (%d)", partKey(p), n)
		}
		out[key] = p
	}
	return out
}

func (r *DiffReport) matchParts(a, b *view) []partPair {
	pa, pb := partsByKey(a), partsByKey(b)
	state := func(p *partView) any {
		switch {
		case p == nil:
			return nil
		case p.Path == "":
			return "absent"
		case p.err != nil:
			return "not readable"
		}
		return string(p.Container)
	}
	var pairs []partPair
	for _, k := range bothNames(slices.Collect(maps.Keys(pa)), slices.Collect(maps.Keys(pb))) {
		x, y := pa[k], pb[k]
		if sx, sy := state(x), state(y); sx != sy {
			r.Parts = append(r.Parts, ValueChange{k, sx, sy})
		}
		if x != nil && y != nil && x.model != nil && y.model != nil && x.err == nil && y.err == nil {
			pairs = append(pairs, partPair{k, x, y})
		}
	}
	return pairs
}

func (r *DiffReport) diffFunctions(p partPair) {
	for _, name := range bothNames(functionNames(p.a.model), functionNames(p.b.model)) {
		x, y := p.a.model.Function(name), p.b.model.Function(name)
		if x == nil || y == nil {
			r.Functions = append(r.Functions, ScopedChange{p.name, name, "function", present(x != nil), present(y != nil)})
			continue
		}
		if x.Opset != y.Opset {
			r.Functions = append(r.Functions, ScopedChange{p.name, name, "opset", x.Opset, y.Opset})
		}
		for _, c := range featureChanges("input", x.Inputs, y.Inputs) {
			r.Functions = append(r.Functions, ScopedChange{p.name, name, c.Key, c.A, c.B})
		}
		for _, c := range featureChanges("output", x.Outputs, y.Outputs) {
			r.Functions = append(r.Functions, ScopedChange{p.name, name, c.Key, c.A, c.B})
		}
		for _, c := range featureChanges("state", x.States, y.States) {
			r.States = append(r.States, ScopedChange{p.name, name, c.Key, c.A, c.B})
		}
		hx, hy := p.a.program(name), p.b.program(name)
		if hx == nil || hy == nil {
			continue
		}
		cx, cy := hx.histogram(), hy.histogram()
		for _, op := range bothNames(keys(cx), keys(cy)) {
			if cx[op] != cy[op] {
				r.Ops = append(r.Ops, OpChange{p.name, name, op, cx[op], cy[op]})
			}
		}
	}
}

func present(is bool) any {
	if is {
		return "present"
	}
	return nil
}

// bothNames merges two lists, sorted and without repeats.
func bothNames(a, b []string) []string {
	out := slices.Concat(a, b)
	slices.Sort(out)
	return slices.Compact(out)
}

// featureChanges compares inputs, outputs or states by name.
func featureChanges(what string, a, b []coreml.Feature) []ValueChange {
	text := func(fs []coreml.Feature, name string) any {
		for _, f := range fs {
			if f.Name != name {
				continue
			}
			s := f.DType.Long() + " " + tensor.ShapeString(f.Shape)
			if len(f.Enumerated) > 0 {
				s += fmt.Sprintf(" of %v", f.Enumerated)
			}
			if len(f.Range) > 0 {
				s += fmt.Sprintf(" in %v", f.Range)
			}
			return s
		}
		return nil
	}
	names := func(fs []coreml.Feature) (out []string) {
		for _, f := range fs {
			out = append(out, f.Name)
		}
		return out
	}
	var out []ValueChange
	for _, n := range bothNames(names(a), names(b)) {
		if x, y := text(a, n), text(b, n); x != y {
			out = append(out, ValueChange{what + " " + n, x, y})
		}
	}
	return out
}

// diffFindings compares what Validate says of both sides. Where a finding
// says the same of other names of the same files it counts as the same.
func (r *DiffReport) diffFindings(ctx context.Context, a, b *manifest.Package, opts Options) error {
	ra, err := Validate(ctx, a, opts)
	if err != nil {
		return err
	}
	rb, err := Validate(ctx, b, opts)
	if err != nil {
		return err
	}
	r.Findings.Appeared = minus(rb.Findings, ra.Findings)
	r.Findings.Vanished = minus(ra.Findings, rb.Findings)
	return nil
}

// otherForm takes the container's suffix and files inside it out of a text.
var otherForm = regexp.MustCompile(`\.(mlmodelc|mlpackage)(/(model\.mil|Data/com\.apple\.CoreML/model\.mlmodel|coremldata\.bin|Manifest\.json))?`)

// sameFinding is equal for findings that say the same of the two containers
// of one part, wherever in the file they point.
func sameFinding(f *Finding) string {
	file := ""
	if len(f.Where) > 0 {
		file = f.Where[0].File
	}
	return strings.Join([]string{f.ID, string(f.Severity), otherForm.ReplaceAllString(file, ""), otherForm.ReplaceAllString(f.Message, "")}, "\x00")
}

func minus(a, b []*Finding) []*Finding {
	known := map[string]int{}
	for _, f := range b {
		known[sameFinding(f)]++
	}
	out := []*Finding{}
	for _, f := range a {
		key := sameFinding(f)
		if known[key] > 0 {
			known[key]--
			continue
		}
		out = append(out, f)
	}
	return out
}

// summary is the last line of the text: what is equal and what is not.
func (w *WeightDiff) summary() string {
	var parts []string
	for _, p := range []struct {
		n    int
		what string
	}{{w.SameBytes, "with the same bytes"}, {w.SameValues, "with the same values"}, {w.Differ, "that differ"}, {w.OnlyA, "only in A"}, {w.OnlyB, "only in B"}, {w.Unread, "not compared"}} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.what))
		}
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}
