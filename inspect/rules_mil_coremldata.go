package inspect

import (
	"path"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/coreml/mlmodelc"
	"github.com/anepkg/anepkg/manifest"
)

// checkCoreMLData reads coremldata.bin of every compiled part and compares its
// description with the program. Absent and empty files, pointers and web pages
// are PKG005 to PKG008's.
func checkCoreMLData(p *Pass) {
	some := false
	for _, pt := range p.usable() {
		if pt.Container != coreml.MLModelC || pt.Role == manifest.Leftover {
			continue
		}
		name := path.Join(pt.Path, "coremldata.bin")
		f := p.pkg.File(name)
		if f == nil || f.Status != manifest.FileOK {
			continue
		}
		some = true
		for _, w := range pt.model.Warnings {
			for _, e := range diagErrors(w, name) {
				if path.Base(e.Pos.File) != "coremldata.bin" || diag.CodeOf(e) == diag.IO || diag.CodeOf(e) == diag.NotFound {
					continue
				}
				r := p.ReportError(e).Compare("malformed", "a model description")
				r.Message = "coremldata.bin of " + pt.label() + " cannot be read: " + e.Msg
			}
		}
		c := pt.model.CoreMLData
		switch {
		case c == nil:
		case c.Type != mlmodelc.MLProgram:
			p.Report(diag.AtOffset(name, 0), "coremldata.bin says that %s is a %s (type %d); model.mil is an ML Program", pt.label(), mlmodelc.TypeName(c.Type), c.Type).
				Compare(c.Type, mlmodelc.MLProgram).Also(diag.In(pt.model.ProgramFile))
		case c.Description == nil:
			p.Report(diag.In(name), "coremldata.bin of %s holds no description of a single model; model.mil is one", pt.label()).Compare("absent", "a model description")
		default:
			p.compareCoreMLData(pt, c.Description, diag.In(name))
		}
	}
	if !some {
		p.Skip("no compiled part has a coremldata.bin")
	}
}

// maxDataFindings bounds the differences of one coremldata.bin that are listed.
const maxDataFindings = 3

// compareCoreMLData compares a description with the program; the description
// of another part is one finding.
func (p *Pass) compareCoreMLData(pt *partView, m *mlmodelc.Metadata, at diag.Pos) {
	before := len(p.out)
	p.compareMetadata(pt, m, at)
	if more := len(p.out) - before - 1; more >= maxDataFindings {
		first := p.out[before]
		first.Message += "; " + itoa(more) + " more differences: the file is of another model"
		p.out = p.out[:before+1]
	}
}
