package manifest

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/coreml/diag"
)

// maxDescend bounds how many single folders inside each other are entered,
// as an unzipped archive often holds one.
const maxDescend = 3

// Open finds out what fsys holds. path is how the user named it; fsys may
// also be the inside of one .mlmodelc or .mlpackage. Only a file system that
// cannot be read at all is an error: an unknown folder opens with Kind
// Unknown and says in Seen what is there.
func Open(ctx context.Context, fsys fs.FS, name string) (*Package, error) {
	p := &Package{FS: fsys, Path: name, Kind: Unknown, Name: baseName(name)}
	for depth := 0; ; depth++ {
		if err := p.listFiles(ctx); err != nil {
			return nil, err
		}
		sub := ""
		if depth < maxDescend {
			sub = p.onlyFolder()
		}
		if sub == "" {
			break
		}
		inner, err := fs.Sub(p.FS, sub)
		if err != nil {
			return nil, diag.Errorf(diag.In(sub), diag.IO, "folder is not readable: %w", err)
		}
		if p.Around == nil {
			p.Around = fsys
		}
		p.Inside = path.Join(p.Inside, sub)
		p.FS = inner
		p.Path = strings.TrimSuffix(p.Path, "/") + "/" + sub
		p.Name = baseName(sub)
	}
	p.detect()
	p.readTokenizer()
	if err := p.chooseLayout(ctx); err != nil {
		_ = p.Close()
		return nil, err
	}
	return p, nil
}

func baseName(name string) string {
	b := path.Base(path.Clean(strings.ReplaceAll(name, "\\", "/")))
	if b == "." || b == "/" || b == ".." {
		return ""
	}
	for _, suffix := range []string{".mlmodelc", ".mlpackage", ".anemllpkg", ".zip"} {
		b = strings.TrimSuffix(b, suffix)
	}
	return b
}

// onlyFolder returns the folder to enter when the package lies one level
// deeper: the root has no model and no description file, and exactly one of
// its folders does.
func (p *Package) onlyFolder() string {
	if p.Truncated || p.rootContainer() != "" || p.File("meta.yaml") != nil || p.File("meta.yml") != nil || p.File("model_config.json") != nil {
		return ""
	}
	top := map[string]bool{}
	for _, c := range p.containers {
		dir, _, nested := strings.Cut(c.path, "/")
		if !nested {
			return ""
		}
		top[dir] = true
	}
	for _, f := range p.Files {
		dir, rest, nested := strings.Cut(f.Path, "/")
		switch {
		case nested && (rest == "meta.yaml" || rest == "model_config.json"):
			top[dir] = true
		case nested && dir == "hf_model", strings.HasSuffix(f.Path, ".mlmodel") || strings.HasSuffix(f.Path, ".mil"):
			if !nested || dir == "hf_model" {
				return ""
			}
		}
	}
	if len(top) != 1 {
		return ""
	}
	for dir := range top {
		if !strings.HasPrefix(dir, ".") {
			return dir
		}
	}
	return ""
}

// rootContainer tells whether the root itself is a model folder.
func (p *Package) rootContainer() coreml.Container {
	switch {
	case p.File("model.mil") != nil, p.File("coremldata.bin") != nil, p.File("model.espresso.net") != nil:
		return coreml.MLModelC
	case p.File("Manifest.json") != nil && p.hasPrefix("Data/"):
		return coreml.MLPackage
	}
	return ""
}

func (p *Package) hasPrefix(prefix string) bool {
	for _, f := range p.Files {
		if strings.HasPrefix(f.Path, prefix) {
			return true
		}
	}
	return false
}

// detect chooses the kind and finds the parts.
func (p *Package) detect() {
	if kind := p.rootContainer(); kind != "" {
		p.single(&Part{Role: Model, Path: ".", Container: kind}, "the folder is a ."+string(kind))
		return
	}
	for _, name := range []string{"meta.yaml", "meta.yml"} {
		if p.File(name) != nil {
			p.readMetaYAML(name)
			p.findParts()
			return
		}
	}
	if p.detectCoreMLLLM() {
		return
	}
	if p.looksANEMLL() {
		p.Kind = ANEMLL
		p.Reason = "parts have the names that ANEMLL gives; meta.yaml is missing"
		p.problem(diag.In("meta.yaml"), diag.NotFound, ErrMissingConfig, "file is missing; the parts have the names that ANEMLL gives", "copy meta.yaml from the source of the package")
		p.findParts()
		return
	}
	if groups := p.groupContainers(); len(groups) > 0 {
		if len(groups) == 1 {
			p.single(groups[0], "the folder holds one model, "+path.Base(groups[0].Path))
			return
		}
		p.Parts = groups
		p.Reason = fmt.Sprintf("no meta.yaml, no model_config.json, %d models of no known file set", len(groups))
	}
	p.detectOther()
}

func (p *Package) looksANEMLL() bool {
	for _, c := range p.containers {
		if path.Dir(c.path) == "." && anemllNames.MatchString(c.stem) {
			return true
		}
	}
	for _, f := range p.Files {
		if strings.HasSuffix(f.Path, ".mlmodelc.zip") && anemllNames.MatchString(path.Base(f.Path)) {
			return true
		}
	}
	return false
}

// groupContainers makes a Model part of every model folder that lies outside
// other model folders; the two forms of one model become one part.
func (p *Package) groupContainers() []*Part {
	var out []*Part
	byName := map[string]*Part{}
	for _, c := range p.containers {
		if insideContainer(c.path) {
			continue
		}
		key := path.Join(path.Dir(c.path), c.stem)
		if prev := byName[key]; prev != nil {
			if c.kind == coreml.MLModelC {
				prev.Alternative, prev.Path, prev.Container = prev.Path, c.path, c.kind
			} else {
				prev.Alternative = c.path
			}
			continue
		}
		pt := &Part{Role: Model, Path: c.path, Container: c.kind}
		byName[key] = pt
		out = append(out, pt)
	}
	return out
}

func insideContainer(name string) bool {
	dir := path.Dir(name)
	return strings.Contains(dir+"/", ".mlmodelc/") || strings.Contains(dir+"/", ".mlpackage/")
}

// single sets the package up as one model.
func (p *Package) single(part *Part, reason string) {
	p.Kind, p.Layout, p.Reason = SingleModel, Single, reason
	p.Parts = []*Part{part}
	if part.Path != "." {
		p.Name = baseName(part.Path)
	}
	if p.File(path.Join(part.Path, "model.espresso.net")) != nil {
		p.Kind, p.Layout = NeuralNetwork, NoLayout
		p.Reason = path.Join(part.Path, "model.espresso.net") + " shows a compiled neural network of the old Espresso form"
		p.Seen = append(p.Seen, "a compiled neural network (Espresso), not an ML Program")
	}
}

// detectOther names files of formats that are recognised, not supported.
func (p *Package) detectOther() {
	counts := map[string]int{}
	first := map[string]string{}
	see := func(word, name string) {
		if counts[word]++; counts[word] == 1 {
			first[word] = name
		}
	}
	words := []string{"neural-network .mlmodel file", "Core AI model (.aimodel)", "text MIL file outside a .mlmodelc folder", "GGUF file", "safetensors file", "ONNX file", "zip archive"}
	for _, f := range p.Files {
		switch i := strings.Index(f.Path+"/", ".aimodel/"); {
		case i >= 0:
			if name := f.Path[:i] + ".aimodel"; first[words[1]] != name {
				see(words[1], name)
			}
		case insideContainer(f.Path):
		case strings.HasSuffix(f.Path, ".mlmodel"):
			see(words[0], f.Path)
		case strings.HasSuffix(f.Path, ".mil"):
			see(words[2], f.Path)
		case strings.HasSuffix(f.Path, ".gguf"):
			see(words[3], f.Path)
		case strings.HasSuffix(f.Path, ".safetensors"):
			see(words[4], f.Path)
		case strings.HasSuffix(f.Path, ".onnx"):
			see(words[5], f.Path)
		case strings.HasSuffix(f.Path, ".zip"):
			see(words[6], f.Path)
		}
	}
	for _, w := range words {
		if n := counts[w]; n > 0 {
			s := fmt.Sprintf("%d %s (%s)", n, w, first[w])
			if n > 1 {
				s = fmt.Sprintf("%d %ss (%s, ...)", n, w, first[w])
			}
			p.Seen = append(p.Seen, s)
		}
	}
	const maxSeen = 6 // models that are named
	for i, pt := range p.Parts {
		if i == maxSeen {
			p.Seen = append(p.Seen, fmt.Sprintf("%d more models", len(p.Parts)-i))
			break
		}
		p.Seen = append(p.Seen, "a model "+pt.Path)
	}
	switch {
	case counts[words[1]] > 0 && len(p.Parts) == 0:
		p.Kind, p.Reason = CoreAI, first[words[1]]+" is a Core AI model, the successor format of macOS 27"
	case counts[words[0]] > 0 && len(p.Parts) == 0:
		p.Kind, p.Reason = NeuralNetwork, first[words[0]]+" is an uncompiled .mlmodel, the form before .mlpackage"
	case p.Reason == "":
		p.Reason = fmt.Sprintf("no meta.yaml, no model_config.json and no model folder among %d files", len(p.Files))
	}
	if p.Truncated {
		p.Reason += fmt.Sprintf("; the folder holds more than the %d files that were looked at", len(p.Files))
	}
}
