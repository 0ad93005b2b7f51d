package inspect_test

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/anepkg/anepkg/coreml/sharedtest"
	"github.com/anepkg/anepkg/manifest"
)

// packages returns the folders of every good package in both forms.
func packages(t testing.TB) []string {
	t.Helper()
	models := sharedtest.Path(t, "models")
	var out []string
	for _, pattern := range []string{"tiny/*/package", "tiny/*/compiled", "demo/package", "demo/compiled"} {
		m, err := filepath.Glob(filepath.Join(models, filepath.FromSlash(pattern)))
		if err != nil || len(m) == 0 {
			t.Fatalf("no package matches %s: %v", pattern, err)
		}
		out = append(out, m...)
	}
	return out
}

func open(t testing.TB, fsys fs.FS, name string) *manifest.Package {
	t.Helper()
	if m, ok := fsys.(fstest.MapFS); ok {
		fsys = guarded{m}
	}
	p, err := manifest.Open(context.Background(), fsys, name)
	if err != nil {
		t.Fatalf("open %s: %v", name, err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Errorf("close %s: %v", name, err)
		}
	})
	return p
}

// load copies a folder into memory.
func load(t testing.TB, dir string) fstest.MapFS {
	t.Helper()
	out := fstest.MapFS{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		out[filepath.ToSlash(rel)] = &fstest.MapFile{Data: data, Mode: 0o644}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// shortName is the last two elements of a package's folder.
func shortName(dir string) string {
	return filepath.Base(filepath.Dir(dir)) + "/" + filepath.Base(dir)
}

// guarded refuses to open files whose mode lets nobody read them.
type guarded struct{ fstest.MapFS }

func (g guarded) Open(name string) (fs.File, error) {
	if f := g.MapFS[name]; f != nil && f.Mode.Perm() != 0 && f.Mode.Perm()&0o444 == 0 {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return g.MapFS.Open(name)
}

func (g guarded) ReadFile(name string) ([]byte, error) {
	if _, err := g.Open(name); err != nil {
		return nil, err
	}
	return g.MapFS.ReadFile(name)
}
