package inspect

import (
	"path"
	"strings"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/coreml/mlpackage"
	"github.com/anepkg/anepkg/manifest"
)

// maxManifestRead bounds Manifest.json in bytes.
const maxManifestRead = 4 << 20

// checkManifestItems compares Manifest.json of every .mlpackage with its
// files. A root item that is absent stops the reader (PKG003, PKG005).
func checkManifestItems(p *Pass) {
	some := false
	for _, pt := range p.parts {
		if pt.Container != coreml.MLPackage || pt.Path == "" || pt.Role == manifest.Leftover {
			continue
		}
		name := path.Join(pt.Path, "Manifest.json")
		if f := p.pkg.File(name); f == nil || f.Status != manifest.FileOK {
			continue
		}
		mf, err := mlpackage.ParseManifest(name, p.readSide(name, maxManifestRead))
		if err != nil {
			continue
		}
		some = true
		p.manifestItems(pt, mf, name)
	}
	if !some {
		p.Skip("no .mlpackage with a readable Manifest.json")
	}
}

func (p *Pass) manifestItems(pt *partView, mf *mlpackage.Manifest, name string) {
	at := diag.In(name)
	byPath := map[string]string{}
	specs := 0
	for _, it := range mf.Items {
		full := path.Join(pt.Path, it.Path)
		if other, twice := byPath[full]; twice {
			p.Report(at, "items %s and %s of %s have one path, %s", other, it.ID, pt.label(), it.Path).As(Warning).Compare(it.Path, "a path for each item")
			continue
		}
		byPath[full] = it.ID
		if strings.HasSuffix(it.Path, ".mlmodel") {
			specs++
		}
		if it.ID == mf.Root || p.onDisk(full) || p.holdsBlobs(full) {
			continue
		}
		f := p.Report(at, "item %s of %s has the path %s, which does not exist", it.ID, pt.label(), it.Path).Compare("absent", it.Path).Also(diag.In(full)).
			Fix("correct the path in Manifest.json, or fetch %s", it.Path)
		if path.Base(it.Path) == "weights" && pt.model != nil {
			f.As(Warning) // an empty folder, which many tools do not copy
		}
	}
	if specs > 1 {
		p.Report(at, "Manifest.json of %s lists %d model specifications, of which only the root is read", pt.label(), specs).As(Warning).Compare(specs, 1)
	}
}

// holdsBlobs reports whether a program reads a weight file below the path,
// which WGT004 reports as absent.
func (p *Pass) holdsBlobs(dir string) bool {
	found := false
	p.eachWeightFile(func(w *weightFile, _ *manifest.File) {
		found = found || strings.HasPrefix(w.name, dir+"/")
	})
	return found
}

// onDisk reports whether a file or a folder with files has the path.
func (p *Pass) onDisk(name string) bool {
	if p.pkg.File(name) != nil {
		return true
	}
	for i := range p.pkg.Files {
		if strings.HasPrefix(p.pkg.Files[i].Path, name+"/") {
			return true
		}
	}
	return false
}
