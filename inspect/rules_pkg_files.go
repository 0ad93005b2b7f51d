package inspect

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/manifest"
)

// checkKind reports folders that are no supported package.
func checkKind(p *Pass) {
	pkg := p.pkg
	seen := "nothing that is known"
	if len(pkg.Seen) > 0 {
		seen = strings.Join(pkg.Seen, ", ")
	}
	want := "a meta.yaml package, a CoreML-LLM package, or one .mlmodelc or .mlpackage"
	switch pkg.Kind {
	case manifest.Unknown:
		f := p.Report(diag.Pos{}, "the folder is no package: %s", seen).Compare("no package", want)
		if dir := nestedPackage(pkg); dir != "" {
			f.Fix("name the folder %s, where the package seems to lie", dir)
		}
	case manifest.NeuralNetwork:
		p.Report(diag.Pos{}, "the model is a neural network in the form before ML Programs: %s", pkg.Reason).Compare("neural network", "ML Program").
			Fix("convert the source again with coremltools, convert_to=\"mlprogram\"")
	case manifest.CoreAI:
		p.Report(diag.Pos{}, "the model is in Core AI's form: %s", pkg.Reason).Compare("Core AI", "Core ML")
	}
	if pkg.Truncated {
		p.Report(diag.Pos{}, "the folder holds more than the %d files that are looked at", len(pkg.Files)).As(Warning).Compare("more files", len(pkg.Files)).
			Fix("name the folder of the package itself")
	}
}

// checkParts reports claimed parts that are not there.
func checkParts(p *Pass) {
	for _, pt := range p.parts {
		if pt.Path != "" || pt.Role == manifest.Leftover {
			continue
		}
		what := string(pt.Role)
		if pt.Chunk > 0 {
			what = fmt.Sprintf("%s %d of %d", pt.Role, pt.Chunk, pt.Of)
		}
		stem := strings.TrimSuffix(path.Base(pt.Claimed), ".mlmodelc")
		p.Report(pt.ClaimedAt, "%s is missing: neither %s.mlmodelc nor %s.mlpackage is in the package", what, stem, stem).
			Compare("absent", pt.Claimed).Also(diag.In(path.Clean(pt.Claimed))).Fix("copy or fetch %s", pt.Claimed)
	}
	p.missingPrefill()
}

// checkReadable reports parts whose program cannot be read.
func checkReadable(p *Pass) {
	if p.pkg.Kind == manifest.NeuralNetwork || p.pkg.Kind == manifest.CoreAI {
		p.Skip("the package is of kind %s", p.pkg.Kind)
		return
	}
	for _, pt := range p.parts {
		if pt.Path == "" || pt.err == nil || pt.Role == manifest.Leftover {
			continue
		}
		if p.stub(pt) {
			p.Skip("the program of %s is a stub; PKG006 to PKG008 report it", pt.label())
			continue
		}
		if verifierFailed(p.pkg, pt) {
			p.Skip("the program of %s is inconsistent; MIL001 reports it", pt.label())
			continue
		}
		if p.programAbsent(pt) {
			p.Skip("the program of %s is absent; PKG005 reports it", pt.label())
			continue
		}
		for _, e := range diagErrors(pt.err, pt.label()) {
			f := p.ReportError(e).Compare("not readable", "a program")
			f.Message = fmt.Sprintf("the program of %s cannot be read: %s", pt.label(), e.Msg)
			p.otherForm(pt, f)
		}
	}
}

// otherForm explains a model.mil that is no text MIL but one of the forms
// that were seen in its place (coreml-llm.md B1).
func (p *Pass) otherForm(pt *partView, f *Finding) {
	if pt.Container != coreml.MLModelC {
		return
	}
	head := p.readSide(path.Join(pt.Path, "model.mil"), 4096)
	switch {
	case len(head) > 1 && head[0] == 0x08 && head[1] < 0x20:
		f.Message = fmt.Sprintf("model.mil of %s is a model in protobuf form, want text that begins with \"program(\": iPhones do not load it", pt.label())
		f.Compare("protobuf", "text MIL").Fix("compile the .mlpackage with coremlcompiler, which writes text")
	case bytes.Contains(head, []byte("[CoreML")):
		f.Message = fmt.Sprintf("model.mil of %s is coremltools' debug print of a program, not text MIL: %s", pt.label(), f.Message)
		f.Compare("debug print", "text MIL").Fix("compile the .mlpackage with coremlcompiler, or print it with anepkg mil")
	}
}

// stub reports whether a program file is a pointer, a web page or empty.
func (p *Pass) stub(pt *partView) bool {
	for _, name := range programFiles(pt.Part) {
		if f := p.pkg.File(name); f != nil && f.Status != manifest.FileOK {
			return true
		}
	}
	return false
}

// programAbsent reports whether the container lacks its program.
func (p *Pass) programAbsent(pt *partView) bool {
	if pt.Container == coreml.MLPackage {
		return !p.hasModelFile(pt.Path) || p.pkg.File(path.Join(pt.Path, "Manifest.json")) == nil
	}
	return p.pkg.File(path.Join(pt.Path, "model.mil")) == nil && diag.CodeOf(pt.err) != diag.Unsupported
}

func programFiles(pt *manifest.Part) []string {
	if pt.Container == coreml.MLPackage {
		return []string{path.Join(pt.Path, "Data/com.apple.CoreML/model.mlmodel"), path.Join(pt.Path, "Manifest.json")}
	}
	return []string{path.Join(pt.Path, "model.mil")}
}

// diagErrors takes an error apart into those with positions.
func diagErrors(err error, file string) []*diag.Error {
	var list diag.List
	if errors.As(err, &list) {
		return list
	}
	var e *diag.Error
	if errors.As(err, &e) {
		return []*diag.Error{e}
	}
	return []*diag.Error{{Pos: diag.In(file), Msg: err.Error(), Err: err}}
}

// checkChunkNumbers compares the chunk files with num_chunks and with each
// other.
func checkChunkNumbers(p *Pass) {
	for _, e := range p.pkg.Problems {
		if errors.Is(e, manifest.ErrExtraChunk) {
			p.ReportError(e)
		}
	}
	chunks := p.pkg.PartsOf(manifest.Chunk)
	if len(chunks) == 0 {
		p.Skip("the package has no chunks")
		return
	}
	of := chunks[0].Of
	if n, ok := p.pkg.Params.Int("num_chunks"); ok && n != of {
		prm := p.pkg.Params.Get("num_chunks")
		p.Report(prm.Pos, "num_chunks is %d, the chunk files are numbered 1 to %d", n, of).Compare(n, of).
			Also(diag.In(path.Clean(chunks[0].Claimed))).Fix("write num_chunks: %d", of)
	}
}

// checkContainers looks for the files that every container needs.
func checkContainers(p *Pass) {
	for _, pt := range p.parts {
		if pt.Path == "" || pt.Role == manifest.Leftover {
			continue
		}
		need := []string{"Manifest.json"}
		if pt.model == nil {
			need = append(need, "Data/com.apple.CoreML/model.mlmodel")
		}
		if pt.Container == coreml.MLModelC {
			need = []string{"model.mil", "coremldata.bin"}
			if p.pkg.Kind == manifest.NeuralNetwork {
				need = []string{"coremldata.bin"}
			}
		}
		for _, name := range need {
			full := path.Join(pt.Path, name)
			if name == "model.mil" && diag.CodeOf(pt.err) == diag.Unsupported {
				continue // a pipeline or a model of another kind, which PKG003 names
			}
			if p.pkg.File(full) != nil || strings.HasSuffix(name, ".mlmodel") && p.hasModelFile(pt.Path) {
				continue
			}
			f := p.Report(diag.In(full), "%s lacks %s", pt.label(), name).Compare("absent", name)
			if name == "coremldata.bin" {
				f.Fix("fetch it; Core ML treats the folder as no model without it")
				if p.pkg.Kind == manifest.SingleModel {
					f.As(Warning).On(allSystems...)
				}
			}
		}
		if pt.Container == coreml.MLModelC && pt.model != nil && p.pkg.File(path.Join(pt.Path, "metadata.json")) == nil {
			p.Report(diag.In(path.Join(pt.Path, "metadata.json")), "%s has no metadata.json; the program tells the same", pt.label()).As(Note)
		}
	}
}

// hasModelFile reports whether an .mlpackage holds any .mlmodel; its name is
// free.
func (p *Pass) hasModelFile(dir string) bool {
	for _, f := range p.pkg.Files {
		if strings.HasPrefix(f.Path, dir+"/Data/") && strings.HasSuffix(f.Path, ".mlmodel") {
			return true
		}
	}
	return false
}

// needed reports whether a runtime reads the file.
func (p *Pass) needed(name string) bool {
	for _, pt := range p.pkg.Parts {
		if pt.Path == "" {
			continue
		}
		for _, dir := range []string{pt.Path, pt.Alternative} {
			if dir != "" && (dir == "." || strings.HasPrefix(name, dir+"/")) {
				return pt.Role != manifest.Leftover && !strings.Contains(name, "/analytics/")
			}
		}
	}
	if name == p.pkg.ConfigFile {
		return true
	}
	t := &p.pkg.Tokenizer
	for _, f := range []string{t.File, t.ConfigFile, t.TemplateFile, t.GenConfig, t.ModelConfig} {
		if f == name {
			return true
		}
	}
	if p.pkg.Kind == manifest.CoreMLLLM {
		switch path.Ext(name) {
		case ".bin", ".npy":
			return true
		}
	}
	return false
}

// checkPointers names every Git LFS pointer with its true size.
func checkPointers(p *Pass) {
	for _, f := range p.pkg.Files {
		if f.Status != manifest.FileLFSPointer {
			continue
		}
		size := "of unknown size"
		if f.LFSSize >= 0 {
			size = fmt.Sprintf("of %d bytes (%s)", f.LFSSize, Bytes(f.LFSSize))
		}
		r := p.Report(diag.In(f.Path), "a Git LFS pointer of %d bytes stands in place of the file %s", f.Bytes, size).
			Compare(f.Bytes, max(f.LFSSize, 0)).Fix("fetch the content: git lfs pull, or anepkg fetch org/name")
		if !p.needed(f.Path) {
			r.As(Warning)
		}
	}
}

// checkPages reports web pages and error texts in place of files.
func checkPages(p *Pass) {
	for _, f := range p.pkg.Files {
		if f.Status == manifest.FileHTML {
			r := p.Report(diag.In(f.Path), "a web page or a server's error text stands in place of the file (%d bytes)", f.Bytes).
				Compare("web page", "the file").Fix("download the file again, from the resolve/ address")
			if !p.needed(f.Path) {
				r.As(Warning)
			}
		}
	}
}

// checkEmpty reports empty files and unfinished downloads.
func checkEmpty(p *Pass) {
	for _, f := range p.pkg.Files {
		switch {
		case f.Status == manifest.FileEmpty && p.needed(f.Path):
			p.Report(diag.In(f.Path), "the file is empty").Compare(0, "content").Fix("fetch the file again")
		case f.Status == manifest.FilePartial:
			p.Report(diag.In(f.Path), "an unfinished download of %d bytes", f.Bytes).As(Warning).Compare("unfinished", "the whole file").Fix("resume or delete it")
		}
	}
}

// checkLeftovers names models that no runtime loads.
func checkLeftovers(p *Pass) {
	for _, pt := range p.parts {
		if pt.Role == manifest.Leftover {
			p.Report(diag.In(pt.Path), "%s is loaded by no runtime; it takes %s", pt.Path, Bytes(p.folderBytes(pt.Path))).
				Fix("delete it, or move it out of the package")
		}
	}
}

func (p *Pass) folderBytes(dir string) int64 {
	var n int64
	for _, f := range p.pkg.Files {
		if strings.HasPrefix(f.Path, dir+"/") {
			n += max(0, f.TrueBytes())
		}
	}
	return n
}

// checkBothForms names parts that are there twice.
func checkBothForms(p *Pass) {
	for _, pt := range p.parts {
		if pt.Alternative != "" {
			p.Report(diag.In(pt.Alternative), "%s is there as .mlmodelc and as .mlpackage; readers take the .mlmodelc, and nothing keeps the two equal", strings.TrimSuffix(pt.Path, path.Ext(pt.Path))).
				Fix("ship one of the two (%s in the .mlpackage)", Bytes(p.folderBytes(pt.Alternative)))
		}
	}
}

// checkNames reports names that readers resolve by luck only, zipped parts,
// and names that leave the package.
func checkNames(p *Pass) {
	for _, e := range p.pkg.Problems {
		switch {
		case errors.Is(e, manifest.ErrEscape), errors.Is(e, manifest.ErrZipped):
			p.ReportError(e)
		case errors.Is(e, manifest.ErrOtherName):
			f := p.ReportError(e).As(Warning)
			if strings.HasPrefix(e.Msg, "ffn:") {
				f.As(Note)
			}
		}
	}
	// the 0.3.4 alias: ffn names a file without _chunk_NNofMM
	if s, ok := p.pkg.Params.Str("ffn"); ok && p.anemllLike() && s != "" && s != "none" && !strings.Contains(s, "_chunk_") && p.pkg.File(s) == nil {
		prm := p.pkg.Params.Get("ffn")
		p.Report(prm.Pos, "ffn names %s, which does not exist: ANEMLL 0.3.4 left out _chunk_NNofMM; readers recover by searching", s).As(Note).
			Compare(s, path.Base(firstClaim(p.pkg))).Fix("write the name of the first chunk")
	}
}

func firstClaim(pkg *manifest.Package) string {
	for _, pt := range pkg.PartsOf(manifest.Chunk) {
		return pt.Claimed
	}
	return ""
}

// checkRenamed compares a compiled model's generated class name, made from
// the name that it was compiled under, with its folder.
func checkRenamed(p *Pass) {
	for _, pt := range p.parts {
		if pt.model == nil || pt.model.Metadata == nil || pt.Path == "." || pt.model.Metadata.GeneratedClass == "" {
			continue
		}
		stem := strings.TrimSuffix(path.Base(pt.Path), ".mlmodelc")
		class := pt.model.Metadata.GeneratedClass
		if class != stem && class != className(stem) {
			p.Report(diag.In(path.Join(pt.Path, "metadata.json")), "the model was compiled under the name %s", class).Compare(stem, class)
		}
	}
}

// className is the Swift identifier that the compiler makes of a file name.
func className(stem string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, stem)
}
