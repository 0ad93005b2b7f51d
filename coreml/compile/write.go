package compile

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/anepkg/anepkg/coreml/diag"
)

// WriteOptions tune Write.
type WriteOptions struct {
	WithoutWeights bool // leave weight files out
	Replace        bool // replace a folder that is there
	// Progress is told of the bytes of weight files copied so far; nil = none.
	Progress func(bytes int64)
}

// lfsPointer begins a file that stands for another one in a repository.
const lfsPointer = "version https://git-lfs"

// Write writes the model as the folder dir, with the weight files of fsys.
// Everything is written under another name first: dir is whole or absent.
//
// Errors: diag.IO, also when dir is there and is not to be replaced;
// diag.NotFound for an absent weight file, diag.LFSPointer for a pointer in
// its place.
func (c *Compiled) Write(ctx context.Context, fsys fs.FS, dir string, opts WriteOptions) error {
	if err := mayWrite(dir, opts.Replace); err != nil {
		return err
	}
	parent := filepath.Dir(dir)
	if err := os.MkdirAll(parent, 0o777); err != nil { //nolint:gosec // the umask decides
		return ioErr(parent, err)
	}
	tmp, err := os.MkdirTemp(parent, ".anepkg-compile-")
	if err != nil {
		return ioErr(parent, err)
	}
	if err := c.writeInto(ctx, fsys, tmp, opts); err != nil {
		return errors.Join(err, os.RemoveAll(tmp))
	}
	return swap(tmp, dir)
}

// mayWrite refuses a place that is taken by anything but a compiled model
// that is to be replaced.
func mayWrite(dir string, replace bool) error {
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return ioErr(dir, err)
	}
	if !replace {
		return diag.Errorf(diag.In(dir), diag.IO, "the folder is there already").WithHint("remove it, or replace it with --force")
	}
	for _, name := range []string{"model.mil", "coremldata.bin"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			return nil
		}
	}
	return diag.Errorf(diag.In(dir), diag.IO, "it is no compiled model, so it is not replaced").WithHint("choose another folder with --to")
}

// swap puts the folder tmp in the place of dir.
func swap(tmp, dir string) error {
	err := os.Chmod(tmp, 0o755) //nolint:gosec // a model is for everybody, as its files are
	old := tmp + ".old"
	if err == nil {
		err = os.Rename(dir, old)
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	}
	if err == nil {
		err = os.Rename(tmp, dir)
	}
	if err != nil {
		return errors.Join(ioErr(dir, err), os.RemoveAll(tmp))
	}
	return ioErr(old, os.RemoveAll(old))
}

func (c *Compiled) writeInto(ctx context.Context, fsys fs.FS, dir string, opts WriteOptions) error {
	for _, name := range slices.Sorted(maps.Keys(c.Files)) {
		to := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil { //nolint:gosec // the umask decides
			return ioErr(to, err)
		}
		if err := os.WriteFile(to, c.Files[name], 0o666); err != nil { //nolint:gosec // the umask decides
			return ioErr(to, err)
		}
	}
	if opts.WithoutWeights {
		return nil
	}
	total := int64(0)
	for _, w := range c.Weights {
		if err := copyWeight(ctx, fsys, w, dir, &total, opts.Progress); err != nil {
			return err
		}
	}
	return nil
}

func copyWeight(ctx context.Context, fsys fs.FS, w Weight, dir string, total *int64, progress func(int64)) (err error) {
	src, err := fsys.Open(w.From)
	if err != nil {
		return diag.Errorf(diag.In(w.From), diag.NotFound, "the weight file is absent: %w", err).
			WithHint("fetch it, or compile with --without-weights")
	}
	defer src.Close() //nolint:errcheck // only read from
	to := filepath.Join(dir, filepath.FromSlash(w.To))
	if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil { //nolint:gosec // the umask decides
		return ioErr(to, err)
	}
	dst, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666) //nolint:gosec // the umask decides
	if err != nil {
		return ioErr(to, err)
	}
	defer func() { err = errors.Join(err, ioErr(to, dst.Close())) }()
	buf := make([]byte, 1<<20)
	for first := true; ; first = false {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, rerr := io.ReadFull(src, buf)
		if first && n >= len(lfsPointer) && string(buf[:len(lfsPointer)]) == lfsPointer {
			return diag.Errorf(diag.In(w.From), diag.LFSPointer, "a Git LFS pointer, not the weights").WithHint("run \"git lfs pull\", or compile with --without-weights")
		}
		if _, err := dst.Write(buf[:n]); err != nil {
			return ioErr(to, err)
		}
		*total += int64(n)
		if progress != nil {
			progress(*total)
		}
		switch {
		case errors.Is(rerr, io.EOF) || errors.Is(rerr, io.ErrUnexpectedEOF):
			return nil
		case rerr != nil:
			return ioErr(w.From, rerr)
		}
	}
}

func ioErr(name string, err error) error {
	if err == nil {
		return nil
	}
	return diag.Errorf(diag.In(name), diag.IO, "%w", err)
}
