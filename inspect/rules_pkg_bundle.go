package inspect

import (
	"path"
	"strings"

	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/manifest"
)

// maxBundleFindings bounds the findings of checkBundle.
const maxBundleFindings = 8

// checkBundle hashes every file that the manifest of an .anemllpkg lists. The
// manifest lies at the top of the bundle, beside the package or around it.
func checkBundle(p *Pass) {
	fsys, inside := p.pkg.FS, "."
	b, err := manifest.ReadBundle(fsys)
	if diag.CodeOf(err) == diag.NotFound && p.pkg.Around != nil {
		fsys, inside = p.pkg.Around, p.pkg.Inside
		b, err = manifest.ReadBundle(fsys)
	}
	if diag.CodeOf(err) == diag.NotFound {
		p.Skip("the package is not in an .anemllpkg bundle")
		return
	}
	var bad diag.List
	if err == nil {
		bad, err = b.Verify(p.ctx, fsys)
	}
	if err != nil {
		if p.ctx.Err() != nil {
			return
		}
		bad = append(bad, diagErrors(err, "manifest.json")...)
	}
	for i, e := range bad {
		if i == maxBundleFindings {
			p.Report(diag.Pos{}, "%d more files differ from the manifest of the bundle", len(bad)-i).Compare(len(bad), 0)
			return
		}
		if rel, ok := strings.CutPrefix(e.Pos.File, inside+"/"); ok {
			e.Pos.File = rel
		} else if inside != "." && e.Pos.File != "" {
			e.Pos.File = path.Join(strings.Repeat("../", 1+strings.Count(inside, "/")), e.Pos.File)
		}
		p.ReportError(e)
	}
}
