package main

import (
	"bytes"
	"embed"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/anepkg/anepkg/coreml/diag"
)

//go:embed demodata
var demoFiles embed.FS

// demoPackage is the embedded package.
func demoPackage() fs.FS {
	sub, err := fs.Sub(demoFiles, "demodata")
	if err != nil {
		panic(err) // the name is a constant
	}
	return sub
}

// extract writes every file of fsys into the folder dir. dir must not exist,
// or be empty, or hold exactly these files already. It returns the paths
// written, none when all were there.
func extract(fsys fs.FS, dir string) (written []string, err error) {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, diag.Errorf(diag.In(dir), diag.IO, "not a folder to write into: %w", err)
	case len(entries) > 0:
		if sameFiles(fsys, dir) {
			return nil, nil
		}
		return nil, diag.Errorf(diag.In(dir), diag.IO, "the folder holds other files; nothing was written").WithHint("name a new or empty folder")
	}
	err = newFolder(dir, func(tmp string) error {
		if written, err = writeTree(fsys, tmp); err != nil {
			return diag.Errorf(diag.In(dir), diag.IO, "%w", err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return written, nil
}

// newFolder makes the folder dir, which is absent or empty, with what fill
// writes into a folder beside it that gets the name at the end: dir is never
// half filled.
func newFolder(dir string, fill func(tmp string) error) (err error) {
	dir = filepath.Clean(dir)
	parent := filepath.Dir(dir)
	if err := os.MkdirAll(parent, 0o750); err != nil {
		return diag.Errorf(diag.In(parent), diag.IO, "%w", err)
	}
	tmp, err := os.MkdirTemp(parent, ".anepkg-new-")
	if err != nil {
		return diag.Errorf(diag.In(parent), diag.IO, "%w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(tmp))
		}
	}()
	if err := fill(tmp); err != nil {
		return err
	}
	if err := os.Chmod(tmp, 0o755); err != nil { //nolint:gosec // a folder to be read by other programs
		return diag.Errorf(diag.In(dir), diag.IO, "%w", err)
	}
	if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return diag.Errorf(diag.In(dir), diag.IO, "%w", err)
	}
	if err := os.Rename(tmp, dir); err != nil {
		return diag.Errorf(diag.In(dir), diag.IO, "%w", err)
	}
	return nil
}

func writeTree(fsys fs.FS, root string) (written []string, err error) {
	err = fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		dst := filepath.Join(root, filepath.FromSlash(name))
		if d.IsDir() {
			return os.MkdirAll(dst, 0o755) //nolint:gosec // folders to be read by other programs
		}
		data, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		written = append(written, name)
		return writeSynced(dst, data)
	})
	return written, err
}

// writeSynced writes a new file and waits until the disk has it.
func writeSynced(name string, data []byte) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644) //nolint:gosec // below a folder made here
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// sameFiles reports whether dir holds exactly the files of fsys.
func sameFiles(fsys fs.FS, dir string) bool {
	count := func(f fs.FS) (n int) {
		_ = fs.WalkDir(f, ".", func(_ string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				n++
			}
			return err
		})
		return n
	}
	disk := os.DirFS(dir)
	if count(disk) != count(fsys) {
		return false
	}
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		want, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		got, err := fs.ReadFile(disk, name)
		if err == nil && !bytes.Equal(got, want) {
			return errors.New("differs")
		}
		return err
	})
	return err == nil
}
