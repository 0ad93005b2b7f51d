package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/coreml/compile"
	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/manifest"
)

const compileText = `  Makes .mlmodelc of .mlpackage on any system. Of one model DIR/NAME.mlmodelc is
  written (DIR is the current folder when not given); of a package the whole
  package, with the models compiled and their names in meta.yaml or
  model_config.json changed, into DIR, which must be new or empty. The program
  and the description come out as Apple's compiler writes them; programs with
  while_loop or cond are refused.`

type compileJSON struct {
	Path   string             `json:"path"`
	Models []compiledJSON     `json:"models"`
	Copied []compiledFileJSON `json:"copied"`
}

type compiledJSON struct {
	From      string   `json:"from"`
	Path      string   `json:"path"`
	Functions []string `json:"functions"`
	Weights   []string `json:"weights"`
}

type compiledFileJSON struct {
	Path    string `json:"path"`
	Changed bool   `json:"changed"` // names of models in it were changed
}

func (t *tool) compileCommand() *cli.Command {
	return &cli.Command{
		Name:        "compile",
		Usage:       "make .mlmodelc of .mlpackage, on any system",
		ArgsUsage:   targetUsage,
		Description: compileText,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "to", Usage: "write into `DIR`"},
			&cli.BoolFlag{Name: "force", Usage: "replace a compiled model that is there"},
			&cli.BoolFlag{Name: "without-weights", Usage: "leave weight files out"},
		},
		Action: func(c *cli.Context) error {
			return t.withTarget(c, func(tg *target) error {
				return t.openPackage(c.Context, tg, func(pkg *manifest.Package) error {
					if err := refuse(pkg); err != nil {
						return err
					}
					return t.compile(c, pkg)
				})
			})
		},
	}
}

func (t *tool) compile(c *cli.Context, pkg *manifest.Package) error {
	opts := compile.WriteOptions{WithoutWeights: c.Bool("without-weights"), Replace: c.Bool("force")}
	var out compileJSON
	var err error
	if len(pkg.Parts) == 1 && pkg.ConfigFile == "" {
		out, err = compileModel(c.Context, pkg, c.String("to"), opts)
	} else {
		out, err = compilePackage(c.Context, pkg, c.String("to"), opts)
	}
	if err != nil {
		return err
	}
	if t.global.json {
		t.writeJSON("anepkg.compile/1", out)
		return nil
	}
	t.printf("%s\n", out.Path)
	for _, m := range out.Models {
		t.debugf("%s from %s: %s\n", m.Path, m.From, strings.Join(m.Functions, ", "))
	}
	return nil
}

// compileModel compiles a TARGET that is one model.
func compileModel(ctx context.Context, pkg *manifest.Package, to string, opts compile.WriteOptions) (compileJSON, error) {
	part := pkg.Parts[0]
	if part.Container != coreml.MLPackage {
		return compileJSON{}, notAnMLPackage(pkg.Path, part)
	}
	name := ""
	if part.Path == "." {
		name = strings.TrimSuffix(filepath.Base(pkg.Path), filepath.Ext(pkg.Path))
	}
	m, err := compile.Package(ctx, pkg.FS, part.Path, compile.Options{Name: name})
	if err != nil {
		return compileJSON{}, err
	}
	dir := filepath.Join(to, m.Name+".mlmodelc")
	if err := m.Write(ctx, pkg.FS, dir, opts); err != nil {
		return compileJSON{}, err
	}
	return compileJSON{Path: dir, Models: []compiledJSON{compiledOf(m, part.Path, m.Name+".mlmodelc")}, Copied: []compiledFileJSON{}}, nil
}

func notAnMLPackage(where string, part *manifest.Part) error {
	return diag.Errorf(diag.In(path.Join(where, part.Path)), diag.Usage, "the model is compiled already, want an .mlpackage")
}

func compiledOf(m *compile.Compiled, from, to string) compiledJSON {
	out := compiledJSON{From: from, Path: to, Functions: m.Functions, Weights: []string{}}
	for _, w := range m.Weights {
		out.Weights = append(out.Weights, w.To)
	}
	return out
}

// compilePackage writes the whole package into the new folder to.
func compilePackage(ctx context.Context, pkg *manifest.Package, to string, opts compile.WriteOptions) (out compileJSON, _ error) {
	if to == "" {
		return out, usagef("a package of several models needs a folder for the result").WithHint("name it with --to")
	}
	if entries, err := os.ReadDir(to); err == nil && len(entries) > 0 {
		return out, diag.Errorf(diag.In(to), diag.IO, "the folder is not empty").WithHint("name a new folder with --to")
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return out, diag.Errorf(diag.In(to), diag.IO, "%w", err)
	}
	to = filepath.Clean(to)
	out = compileJSON{Path: to, Models: []compiledJSON{}, Copied: []compiledFileJSON{}}
	err := newFolder(to, func(tmp string) error {
		if err := compileParts(ctx, pkg, tmp, opts, &out); err != nil {
			return err
		}
		return copyRest(ctx, pkg, tmp, opts, &out)
	})
	return out, err
}

// compileParts compiles every model that is there as .mlpackage only.
func compileParts(ctx context.Context, pkg *manifest.Package, dir string, opts compile.WriteOptions, out *compileJSON) error {
	for _, part := range pkg.Parts {
		if part.Path == "" || part.Container != coreml.MLPackage {
			continue
		}
		m, err := compile.Package(ctx, pkg.FS, part.Path, compile.Options{})
		if err != nil {
			return err
		}
		rel := compiledName(part.Path)
		if err := m.Write(ctx, pkg.FS, filepath.Join(dir, filepath.FromSlash(rel)), opts); err != nil {
			return err
		}
		out.Models = append(out.Models, compiledOf(m, part.Path, rel))
	}
	if len(out.Models) == 0 {
		return diag.Errorf(diag.In(pkg.Path), diag.NotFound, "the package has no model that is only an .mlpackage: there is nothing to compile")
	}
	return nil
}

func compiledName(name string) string { return strings.TrimSuffix(name, ".mlpackage") + ".mlmodelc" }

// maxDescription bounds the description files in which names are changed.
const maxDescription = 16 << 20

// copyRest copies every file that is in no .mlpackage, and changes the names
// of the models in the description files.
func copyRest(ctx context.Context, pkg *manifest.Package, dir string, opts compile.WriteOptions, out *compileJSON) error {
	for _, f := range pkg.Files {
		if err := ctx.Err(); err != nil {
			return err
		}
		if inModelPackage(f.Path) || opts.WithoutWeights && path.Base(path.Dir(f.Path)) == "weights" {
			continue
		}
		to := filepath.Join(dir, filepath.FromSlash(f.Path))
		if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil { //nolint:gosec // the umask decides
			return diag.Errorf(diag.In(to), diag.IO, "%w", err)
		}
		base := path.Base(f.Path)
		names := (base == "meta.yaml" || base == "model_config.json") && f.Bytes <= maxDescription
		changed, err := copyFile(pkg.FS, f.Path, to, names)
		if err != nil {
			return err
		}
		out.Copied = append(out.Copied, compiledFileJSON{f.Path, changed})
	}
	return nil
}

func inModelPackage(name string) bool {
	return strings.Contains("/"+path.Dir(name)+"/", ".mlpackage/")
}

// copyFile copies a file of the package; with names, ".mlpackage" in it
// becomes ".mlmodelc".
func copyFile(fsys fs.FS, from, to string, names bool) (changed bool, err error) {
	if names {
		data, err := fs.ReadFile(fsys, from)
		if err != nil {
			return false, diag.Errorf(diag.In(from), diag.IO, "%w", err)
		}
		text := bytes.ReplaceAll(data, []byte(".mlpackage"), []byte(".mlmodelc"))
		if err := os.WriteFile(to, text, 0o666); err != nil { //nolint:gosec // the umask decides
			return false, diag.Errorf(diag.In(to), diag.IO, "%w", err)
		}
		return !bytes.Equal(data, text), nil
	}
	src, err := fsys.Open(from)
	if err != nil {
		return false, diag.Errorf(diag.In(from), diag.IO, "%w", err)
	}
	defer src.Close()                                                     //nolint:errcheck // only read from
	dst, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666) //nolint:gosec // the umask decides
	if err != nil {
		return false, diag.Errorf(diag.In(to), diag.IO, "%w", err)
	}
	_, err = io.Copy(dst, src)
	if err = errors.Join(err, dst.Close()); err != nil {
		return false, diag.Errorf(diag.In(to), diag.IO, "%w", err)
	}
	return false, nil
}
