// Package compile makes a compiled model (.mlmodelc) of an ML Program in an
// .mlpackage, on any system: what Apple's coremlc does for the reader. The
// program is printed as text MIL, the description becomes metadata.json and
// coremldata.bin, and the weight files are taken over unchanged.
//
// What the files hold follows real pairs of packages and compiled models
// (mil.md, section C). Model.mil of those pairs comes out byte for byte; the
// order of keys in metadata.json is our own, since readers must not care.
// The build information names version 0.0.0, so that nobody takes a file for
// Apple's.
//
// Files: compile.go (the result), program.go (build information, flexible
// shapes), metadata.go (metadata.json), histogram.go (names of operations),
// precision.go (compute and storage precision), binary.go (coremldata.bin),
// write.go (the folder).
package compile

import (
	"context"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/coreml/mil"
	"github.com/anepkg/anepkg/coreml/mlpackage"
)

// Options tune Package. The zero value works.
type Options struct {
	// Name of the model; "" is that of the folder without .mlpackage.
	Name string
	// ClassName is the name of the class that Xcode would generate; "" makes
	// it of the package's name.
	ClassName string
	// CompilerVersion and MILVersion go into the build information; "" is
	// 0.0.0.
	CompilerVersion, MILVersion string
}

// Compiled is a compiled model that is not written yet.
type Compiled struct {
	Name  string            // of the model: the package's, without .mlpackage
	Files map[string][]byte // by path inside the .mlmodelc
	// Weights are the files that the program refers to.
	Weights []Weight
	// Functions are the names of the program's functions, sorted.
	Functions []string
}

// Weight is a weight file: where it is, and its path in the compiled model.
type Weight struct {
	From string // in the file system of the package
	To   string // in the .mlmodelc
}

// maxSpec bounds model.mlmodel in bytes.
const maxSpec = 256 << 20

// Package compiles the .mlpackage folder name of fsys. Weights are not read.
//
// Errors: those of mlpackage.ParseModel; diag.Unsupported for a program with
// nested blocks (the text form of which has no public sample), with names
// that are no identifiers, or with features other than arrays, states and
// scalars; diag.Malformed for weight files outside the package.
func Package(ctx context.Context, fsys fs.FS, name string, opts Options) (*Compiled, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	specPath, spec, err := readSpec(fsys, name)
	if err != nil {
		return nil, err
	}
	m, err := mlpackage.ParseModel(specPath, spec)
	if err != nil {
		return nil, err
	}
	if err := mil.Check(m.Program); err != nil {
		return nil, err
	}
	if err := printable(m.Program); err != nil {
		return nil, err
	}
	stem := opts.Name
	if stem == "" {
		stem = strings.TrimSuffix(path.Base(name), path.Ext(name))
	}
	if opts.ClassName == "" {
		opts.ClassName = className(stem)
	}
	c := &Compiled{Name: stem, Files: map[string][]byte{}}
	for _, f := range m.Program.Functions {
		c.Functions = append(c.Functions, f.Name)
	}
	if c.Weights, err = weightsOf(m.Program, path.Dir(specPath)); err != nil {
		return nil, err
	}
	meta, err := metadata(m, opts.ClassName)
	if err != nil {
		return nil, err
	}
	data, err := coremlData(m, specPath, spec)
	if err != nil {
		return nil, err
	}
	if err := complete(m, opts); err != nil {
		return nil, err
	}
	c.Files["model.mil"] = []byte(m.Program.String())
	c.Files["metadata.json"] = meta
	c.Files["coremldata.bin"] = data
	modelName := strings.TrimSuffix(path.Base(specPath), path.Ext(specPath))
	c.Files["analytics/coremldata.bin"] = analytics(spec, modelName)
	return c, nil
}

// readSpec finds and reads the model specification.
func readSpec(fsys fs.FS, name string) (string, []byte, error) {
	manifest := path.Join(name, "Manifest.json")
	data, err := fs.ReadFile(fsys, manifest)
	if err != nil {
		return "", nil, diag.Errorf(diag.In(manifest), diag.NotFound, "%w", err).WithHint("name a .mlpackage folder")
	}
	mf, err := mlpackage.ParseManifest(manifest, data)
	if err != nil {
		return "", nil, err
	}
	rel, err := mf.SpecPath(manifest)
	if err != nil {
		return "", nil, err
	}
	specPath := path.Join(name, rel)
	info, err := fs.Stat(fsys, specPath)
	switch {
	case err != nil:
		return "", nil, diag.Errorf(diag.In(specPath), diag.NotFound, "%w", err)
	case info.Size() > maxSpec:
		return "", nil, diag.Errorf(diag.In(specPath), diag.TooLarge, "the model specification has %d bytes, at most %d are read", info.Size(), maxSpec)
	}
	spec, err := fs.ReadFile(fsys, specPath)
	if err != nil {
		return "", nil, diag.Errorf(diag.In(specPath), diag.IO, "%w", err)
	}
	return specPath, spec, nil
}

// className makes an identifier of a file's name.
func className(stem string) string {
	out := strings.Map(func(r rune) rune {
		if r == '_' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' {
			return r
		}
		return '_'
	}, stem)
	if out == "" || out[0] >= '0' && out[0] <= '9' {
		out = "_" + out
	}
	return out
}

// modelPath stands for the folder of the program in paths of weight files.
const modelPath = "@model_path/"

// weightsOf lists the weight files of a program whose specification is in dir.
func weightsOf(p *mil.Program, dir string) ([]Weight, error) {
	var names []string
	for _, f := range p.Functions {
		eachValue(f.Body, func(v *mil.Value) {
			if v.Blob != nil && !slices.Contains(names, v.Blob.Path) {
				names = append(names, v.Blob.Path)
			}
		})
	}
	slices.Sort(names)
	var out []Weight
	for _, name := range names {
		rel, ok := strings.CutPrefix(name, modelPath)
		if !ok || !fs.ValidPath(rel) || rel == "." || strings.Contains(rel, `\`) {
			return nil, diag.Errorf(diag.In(p.File), diag.Malformed, "weight file %q: want a path below %s", name, modelPath)
		}
		out = append(out, Weight{From: path.Join(dir, rel), To: rel})
	}
	return out, nil
}

// eachOp calls fn for every operation, nested ones too.
func eachOp(b *mil.Block, fn func(*mil.Op)) {
	for _, op := range b.Ops {
		fn(op)
		for _, inner := range op.Blocks {
			eachOp(inner, fn)
		}
	}
}

// eachValue calls fn for every constant of attributes and arguments.
func eachValue(b *mil.Block, fn func(*mil.Value)) {
	eachOp(b, func(op *mil.Op) {
		for _, a := range op.Attrs {
			fn(a.Value)
		}
		for _, a := range op.Args {
			for _, bd := range a.Bindings {
				if bd.Value != nil {
					fn(bd.Value)
				}
			}
		}
	})
}
