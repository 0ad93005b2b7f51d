package inspect

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/manifest"
)

// checkCollisions: names that are one name on a file system that folds case
// or normalises Unicode.
func checkCollisions(p *Pass) {
	seen := map[string]string{}
	for _, f := range p.pkg.Files {
		key := strings.ToLower(norm.NFC.String(f.Path))
		prev, ok := seen[key]
		if !ok {
			seen[key] = f.Path
			continue
		}
		how := "differ only in upper and lower case"
		if norm.NFC.String(prev) == norm.NFC.String(f.Path) {
			how = "differ only in the Unicode form of their letters"
		}
		p.Report(diag.In(f.Path), "%q and %q %s: on macOS one replaces the other", prev, f.Path, how).Compare(f.Path, "a name of its own").Also(diag.In(prev)).Fix("rename or delete one of them")
	}
}

// checkOddPaths: model folders whose names Core ML's tools have trouble with.
func checkOddPaths(p *Pass) {
	for _, pt := range p.parts {
		name := pt.Path
		if name == "" || name == "." {
			continue
		}
		i := strings.IndexFunc(name, func(r rune) bool { return r > 126 || r < 32 })
		switch {
		case i >= 0:
			odd, _ := utf8.DecodeRuneInString(name[i:])
			p.Report(diag.In(name), "the model's path has the character %q", odd).Compare(name, "ASCII").Fix("rename it to plain letters, digits, - and _")
		case strings.ContainsAny(name, `\:*?"<>|`):
			p.Report(diag.In(name), "the model's path has a character that Windows refuses").Compare(name, "letters, digits, - and _").Fix("rename it")
		}
	}
}

// junk are names that file managers and archivers leave behind.
func junk(name string) bool {
	base := path.Base(name)
	switch base {
	case ".DS_Store", "Thumbs.db", "desktop.ini", ".localized":
		return true
	}
	return strings.HasPrefix(base, "._") || strings.HasSuffix(base, ".etag") || strings.HasSuffix(base, ".metadata") && strings.Contains(name, ".cache/") ||
		strings.HasSuffix(base, ".lock") && strings.Contains(name, ".cache/")
}

// checkJunk names files that belong to no package.
func checkJunk(p *Pass) {
	var names []string
	for _, f := range p.pkg.Files {
		if junk(f.Path) {
			names = append(names, f.Path)
		}
	}
	if len(names) > 0 {
		p.Report(diag.In(names[0]), "%s of file managers and download tools: %s", plural(len(names), "file"), strings.Join(names[:min(3, len(names))], ", ")).Compare(len(names), 0).Fix("delete them before publishing")
	}
}

// maxLinkFindings bounds the links that are named.
const maxLinkFindings = 10

// checkLinks: symbolic links that lead nowhere, in a circle, or out of the
// package. File systems that have no links are passed over.
func checkLinks(p *Pass) {
	n, seen := 0, 0
	err := fs.WalkDir(p.pkg.FS, ".", func(name string, d fs.DirEntry, err error) error {
		if seen++; err != nil || n >= maxLinkFindings || seen > 50_000 {
			return fs.SkipAll
		}
		if d.Type()&fs.ModeSymlink == 0 {
			return nil
		}
		_, err = fs.Stat(p.pkg.FS, name)
		target, linkErr := fs.ReadLink(p.pkg.FS, name)
		inside := linkErr != nil || !path.IsAbs(target) && fs.ValidPath(path.Clean(path.Join(path.Dir(name), target)))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			n++
			p.Report(diag.In(name), "the symbolic link leads to nothing").Compare(target, "a file").Fix("replace it by the file")
		case err != nil:
			n++
			p.Report(diag.In(name), "the symbolic link cannot be followed: it leads in a circle or to a forbidden place").Compare(target, "a file").Fix("replace it by the file")
		case strings.HasPrefix(name, target+"/") || path.Clean(path.Join(path.Dir(name), target)) == path.Dir(name) || target == ".":
			n++
			p.Report(diag.In(name), "the symbolic link leads to a folder that it lies in").Compare(target, "a file").Fix("delete it")
		case !inside && !strings.Contains(target, "blobs/"): // the cache of huggingface_hub links to its blobs
			n++
			p.Report(diag.In(name), "the symbolic link leads out of the package").As(Note).Compare(target, "a file of the package").Fix("replace it by the file before copying the package")
		}
		return nil
	})
	if err != nil {
		p.Skip("the folder cannot be walked: %v", err)
	}
}

// checkAlternatives compares the two containers of one part.
func checkAlternatives(p *Pass) {
	some := false
	for _, pt := range p.usable() {
		if pt.Alternative == "" {
			continue
		}
		some = true
		other, err := coreml.Open(context.Background(), p.pkg.FS, pt.Alternative)
		if err != nil {
			p.Report(diag.In(pt.Alternative), "%s cannot be read beside %s: %v", pt.Alternative, pt.Path, err).Compare("not readable", "the same model")
			continue
		}
		if what := differentModels(pt, other); what != "" {
			p.Report(diag.In(pt.Alternative), "%s and %s are different models: %s", pt.Alternative, pt.Path, what).Compare(pt.Alternative, pt.Path).Also(diag.In(pt.Path)).
				Fix("delete the one that is not meant; readers take the .mlmodelc")
		}
		if err := other.Close(); err != nil {
			p.Skip("closing %s: %v", pt.Alternative, err)
		}
	}
	if !some {
		p.Skip("no part is there in both forms")
	}
}

// differentModels names the first difference between two programs.
func differentModels(pt *partView, other *coreml.Model) string {
	if a, b := functionNames(pt.model), functionNames(other); !slices.Equal(sorted(a), sorted(b)) {
		return fmt.Sprintf("functions %v and %v", b, a)
	}
	for _, f := range pt.model.Functions {
		g := other.Function(f.Name)
		for _, c := range slices.Concat(featureChanges("input", f.Inputs, g.Inputs), featureChanges("output", f.Outputs, g.Outputs), featureChanges("state", f.States, g.States)) {
			return fmt.Sprintf("%s of %s is %v and %v", c.Key, f.Name, c.B, c.A)
		}
		if g.Program == nil || pt.program(f.Name) == nil {
			continue
		}
		a, b := pt.program(f.Name).histogram(), indexFunction(g.Program).histogram()
		for _, op := range bothNames(keys(a), keys(b)) {
			if a[op] != b[op] {
				return fmt.Sprintf("%s has %d and %d ops %s", f.Name, b[op], a[op], op)
			}
		}
	}
	return ""
}

func sorted(s []string) []string {
	s = slices.Clone(s)
	slices.Sort(s)
	return s
}

func keys(m map[string]int) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	return out
}

// nestedPackage finds a folder inside an unknown one that holds a package:
// archives often have one level too many.
func nestedPackage(pkg *manifest.Package) string {
	for _, f := range pkg.Files {
		switch path.Base(f.Path) {
		case "meta.yaml", "model_config.json", "model.mil", "Manifest.json":
			if dir := path.Dir(f.Path); dir != "." {
				return dir
			}
		}
	}
	return ""
}
