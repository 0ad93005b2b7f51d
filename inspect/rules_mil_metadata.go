package inspect

import (
	"path"
	"slices"
	"sort"
	"strings"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/coreml/mlmodelc"
	"github.com/anepkg/anepkg/coreml/tensor"
	"github.com/anepkg/anepkg/manifest"
)

// checkMetadata compares metadata.json with the program next to it.
func checkMetadata(p *Pass) {
	some := false
	for _, pt := range p.parts {
		if pt.model == nil || pt.err != nil || pt.Container != coreml.MLModelC || pt.Role == manifest.Leftover {
			continue
		}
		at := diag.In(path.Join(pt.Path, "metadata.json"))
		for _, w := range pt.model.Warnings {
			for _, e := range diagErrors(w, at.File) {
				if path.Base(e.Pos.File) == "metadata.json" {
					p.ReportError(e)
				}
			}
		}
		m := pt.model.Metadata
		if m == nil {
			continue
		}
		some = true
		p.compareMetadata(pt, m, at)
	}
	p.declaredOlder()
	if !some {
		p.Skip("no compiled part has a readable metadata.json")
	}
}

// declaredOlder: metadata.json promises systems that cannot load the program.
func (p *Pass) declaredOlder() {
	for _, pt := range p.usable() {
		if pt.model.Metadata == nil || pt.Role == manifest.Leftover {
			continue
		}
		for _, s := range systems {
			if !slices.ContainsFunc(pt.model.Functions, func(f *coreml.Function) bool { return f.Opset == s.opset }) {
				continue
			}
			a := pt.model.Metadata.Availability
			for system, least := range map[string]string{"macOS": s.macOS, "iOS": s.iOS} {
				if has := a[system]; olderSystem(major(has), least, least, true) {
					p.Report(diag.In(path.Join(pt.Path, "metadata.json")), "metadata.json declares %s %s, the program's opset %s needs %s %s", system, has, s.opset, system, least).As(Warning).
						Compare(has, least).Fix("compile the model again, or write %s %s.0", system, least)
				}
			}
		}
	}
}

// compareMetadata compares a description, of metadata.json or coremldata.bin,
// with the functions of the program.
func (p *Pass) compareMetadata(pt *partView, m *mlmodelc.Metadata, at diag.Pos) {
	for i := range m.Functions {
		fm := &m.Functions[i]
		fn := pt.model.Function(fm.Name)
		if fn == nil && len(m.Functions) == 1 && len(pt.model.Functions) == 1 {
			fn = pt.model.Functions[0]
		}
		if fn == nil {
			p.Report(at, "%s describes function %q, the program has %s", path.Base(at.File), fm.Name, strings.Join(functionNames(pt.model), ", ")).
				Compare(fm.Name, functionNames(pt.model)).Also(diag.In(pt.model.ProgramFile))
			continue
		}
		p.compareFeatures(pt, fn, "input", fm.Inputs, fn.Inputs, at)
		p.compareFeatures(pt, fn, "output", fm.Outputs, fn.Outputs, at)
		p.compareFeatures(pt, fn, "state", fm.States, fn.States, at)
		p.compareHistogram(pt, fn, fm, at)
	}
	for _, fn := range pt.model.Functions {
		if len(m.Functions) > 1 && !slices.ContainsFunc(m.Functions, func(f mlmodelc.FunctionMeta) bool { return f.Name == fn.Name }) {
			p.Report(at, "%s does not describe function %s", path.Base(at.File), fn.Name).Compare("absent", fn.Name).Also(fact(pt, fn, "", 1).pos)
		}
	}
	if m.DefaultFunction != "" && pt.model.Program.Function(m.DefaultFunction) == nil {
		p.Report(at, "%s names the default function %q, the program has %s", path.Base(at.File), m.DefaultFunction, strings.Join(functionNames(pt.model), ", ")).
			Compare(m.DefaultFunction, functionNames(pt.model))
	}
}

func (p *Pass) compareFeatures(pt *partView, fn *coreml.Function, what string, metas []mlmodelc.FeatureMeta, features []coreml.Feature, at diag.Pos) {
	if metas == nil && what != "state" { // compilers that know states always list them
		return
	}
	byName := map[string]*coreml.Feature{}
	for i := range features {
		byName[features[i].Name] = &features[i]
	}
	for i := range metas {
		m := &metas[i]
		f := byName[m.Name]
		delete(byName, m.Name)
		if f == nil {
			p.Report(at, "%s: %s describes %s %q, function %s has none", pt.label(), path.Base(at.File), what, m.Name, fn.Name).Compare(m.Name, featureNames(features)).Also(fact(pt, fn, "", 1).pos)
			continue
		}
		if f.IsImage || m.Type == "Image" {
			continue
		}
		if m.Shape != nil && len(m.Enumerated) > 0 && !slices.ContainsFunc(m.Enumerated, func(e []int) bool { return slices.Equal(e, m.Shape) }) {
			p.Report(at, "%s: %s %s has default shape %s, which is none of its enumerated shapes", pt.label(), what, m.Name, tensor.ShapeString(m.Shape)).
				Compare(m.Shape, m.Enumerated)
		}
		if m.Shape != nil && len(m.Enumerated) == 0 && len(m.Range) == 0 && f.Shape != nil && !tensor.Compatible(m.Shape, f.Shape) {
			p.Report(at, "%s: %s %s has shape %s in %s, %s in function %s", pt.label(), what, m.Name, tensor.ShapeString(m.Shape), path.Base(at.File), tensor.ShapeString(f.Shape), fn.Name).
				Compare(m.Shape, f.Shape).Also(fact(pt, fn, m.Name, 1).pos).Fix("compile the model again to renew %s; the program counts", path.Base(at.File))
		}
		if d, ok := tensor.ParseDType(strings.ToLower(m.DataType)); ok && d != f.DType && what != "output" {
			p.Report(at, "%s: %s %s is %s in %s, %s in function %s", pt.label(), what, m.Name, d.Long(), path.Base(at.File), f.DType.Long(), fn.Name).
				Compare(d.Long(), f.DType.Long()).Also(fact(pt, fn, m.Name, 1).pos)
		}
	}
	var rest []string
	for name := range byName {
		rest = append(rest, name)
	}
	sort.Strings(rest)
	for _, name := range rest {
		p.Report(at, "%s: %s %s of function %s is not in %s", pt.label(), what, name, fn.Name, path.Base(at.File)).Compare("absent", name).Also(fact(pt, fn, name, 1).pos)
	}
}

// histogramKey is the program's name of a key of metadata.json: without its
// opset, without underscores, in lower case.
func histogramKey(s string) string {
	if i := strings.LastIndexByte(s, '.'); i >= 0 {
		s = s[i+1:]
	}
	return strings.ToLower(strings.ReplaceAll(s, "_", ""))
}

// compareHistogram compares operation counts. Compilers differ in what they
// count, so only counts of ops that both name are compared.
func (p *Pass) compareHistogram(pt *partView, fn *coreml.Function, fm *mlmodelc.FunctionMeta, at diag.Pos) {
	ix := pt.program(fn.Name)
	if len(fm.Histogram) == 0 || ix == nil {
		return
	}
	have := map[string]int{}
	for op, n := range ix.histogram() {
		have[histogramKey(op)] += n
	}
	claimed := map[string]int{}
	for key, n := range fm.Histogram {
		claimed[histogramKey(key)] += n
	}
	var keys []string
	for k := range claimed {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	for _, k := range keys {
		if k == "const" || have[k] == claimed[k] {
			continue
		}
		p.Report(at, "%s: metadata.json counts %d %s in function %s, the program has %d", pt.label(), claimed[k], k, fn.Name, have[k]).
			Compare(claimed[k], have[k]).Also(fact(pt, fn, "", 1).pos).Fix("fetch both files from one source; one of them is of another conversion")
	}
}
