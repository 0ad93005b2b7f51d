package native

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/coreml/diag"
)

// maxModelFiles bounds the files of one model.
const maxModelFiles = 10000

// disk finds a folder of the disk that Core ML can load: the model's own, or a
// copy below dir.
type disk struct {
	dir   string // of copies; "" = none are made
	build string // of the operating system, part of the key of compiled copies
	log   *slog.Logger
	// compile compiles the .mlpackage at src and returns a folder that the
	// caller moves away.
	compile func(src string) (string, error)
}

// folder returns the .mlmodelc folder to load m from. An .mlpackage is
// compiled first; its copy is kept under a name made of its contents and the
// system's build, and found again there.
func (d *disk) folder(ctx context.Context, m *coreml.Model) (string, error) {
	root, err := modelRoot(m)
	if err != nil {
		return "", err
	}
	local := localPath(m.FS(), root)
	if local != "" && m.Container == coreml.MLModelC && strings.HasSuffix(local, ".mlmodelc") {
		return local, nil
	}
	if d.dir == "" {
		return "", diag.Errorf(diag.In(m.Path), diag.Unsupported, "Core ML loads .mlmodelc folders of the disk; this model has to be copied or compiled first, and no folder for that was given")
	}
	key, err := contentKey(ctx, m.FS(), root)
	if err != nil {
		return "", err
	}
	name := path.Base(root)
	if name == "." || name == "/" {
		name = m.Name
	}
	suffix := "." + string(m.Container)
	name = strings.TrimSuffix(name, suffix) + suffix
	if m.Container == coreml.MLModelC {
		return d.extracted(ctx, m, root, key, name)
	}
	return d.compiled(ctx, m, root, local, key, name)
}

// modelRoot is the folder that holds everything of m.
func modelRoot(m *coreml.Model) (string, error) {
	switch path.Ext(m.Path) {
	case ".mil":
		return path.Dir(m.Path), nil
	case ".mlmodel":
		return "", diag.Errorf(diag.In(m.Path), diag.Unsupported, "a file of an .mlpackage; Core ML compiles the whole").WithHint("give the .mlpackage folder")
	}
	return m.Path, nil
}

// localPath returns the absolute path of a folder of fsys on the disk; ""
// when it has none.
func localPath(fsys fs.FS, name string) string {
	f, err := fsys.Open(name)
	if err != nil {
		return ""
	}
	defer f.Close() //nolint:errcheck // only its name is wanted
	osf, ok := f.(*os.File)
	if !ok {
		return ""
	}
	abs, err := filepath.Abs(osf.Name())
	if err != nil {
		return ""
	}
	return abs
}

// contentKey is a hash over the names and contents of a model's files.
func contentKey(ctx context.Context, fsys fs.FS, root string) (string, error) {
	h := sha256.New()
	err := eachFile(ctx, fsys, root, func(rel string, f fs.File) error {
		one := sha256.New()
		n, err := io.Copy(one, ctxReader{ctx, f})
		fmt.Fprintf(h, "%d %s\x00%d %x\n", len(rel), rel, n, one.Sum(nil))
		return err
	})
	return hex.EncodeToString(h.Sum(nil)[:16]), err
}

// ctxReader ends with its context.
type ctxReader struct {
	ctx context.Context //nolint:containedctx // lives as long as one copy
	r   io.Reader
}

func (r ctxReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(p)
}

// eachFile calls fn for every regular file below root, in the order of names.
func eachFile(ctx context.Context, fsys fs.FS, root string, fn func(rel string, f fs.File) error) error {
	count := 0
	return fs.WalkDir(fsys, root, func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return diag.Errorf(diag.In(name), diag.IO, "%w", err)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if e.IsDir() {
			return nil
		}
		if count++; count > maxModelFiles {
			return diag.Errorf(diag.In(root), diag.TooLarge, "more than %d files", maxModelFiles)
		}
		f, err := fsys.Open(name)
		if err != nil {
			return diag.Errorf(diag.In(name), diag.IO, "%w", err)
		}
		defer f.Close() //nolint:errcheck // read only
		info, err := f.Stat()
		if err == nil && !info.Mode().IsRegular() {
			return diag.Errorf(diag.In(name), diag.Unsupported, "neither a folder nor a regular file")
		}
		if err == nil {
			err = fn(strings.TrimPrefix(strings.TrimPrefix(name, root), "/"), f)
		}
		if err != nil && ctx.Err() == nil && diag.CodeOf(err) == "" {
			err = diag.Errorf(diag.In(name), diag.IO, "%w", err)
		}
		return err
	})
}

// copyTree copies the files below root into the folder dst.
func copyTree(ctx context.Context, fsys fs.FS, root, dst string) error {
	return eachFile(ctx, fsys, root, func(rel string, f fs.File) (err error) {
		name := filepath.Join(dst, filepath.FromSlash(rel))
		if err := os.MkdirAll(filepath.Dir(name), 0o750); err != nil {
			return err
		}
		out, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, out.Close()) }()
		_, err = io.Copy(out, ctxReader{ctx, f})
		return err
	})
}

// extracted returns a copy on the disk of a compiled model.
func (d *disk) extracted(ctx context.Context, m *coreml.Model, root, key, name string) (string, error) {
	return d.keep("extracted", key, name, func(tmp string) error {
		d.log.Info("copying a model to the disk for Core ML", "model", m.Path, "folder", d.dir)
		return copyTree(ctx, m.FS(), root, filepath.Join(tmp, name))
	})
}

// compiled returns the compiled copy of an .mlpackage. Copies of the same
// contents for other builds of the system are removed, since those systems
// are gone.
func (d *disk) compiled(ctx context.Context, m *coreml.Model, root, local, key, name string) (string, error) {
	out := strings.TrimSuffix(name, ".mlpackage") + ".mlmodelc"
	full := key + "-" + d.build
	p, err := d.keep("compiled", full, out, func(tmp string) error {
		d.log.Info("Core ML compiles a model", "model", m.Path, "folder", d.dir)
		if local == "" || !strings.HasSuffix(local, ".mlpackage") {
			local = filepath.Join(tmp, name)
			if err := copyTree(ctx, m.FS(), root, local); err != nil {
				return err
			}
			defer os.RemoveAll(local) //nolint:errcheck // a copy in a folder that is checked below
		}
		made, err := d.compile(local)
		if err != nil {
			return err
		}
		return moveTree(ctx, made, filepath.Join(tmp, out))
	})
	if err == nil {
		d.removeOther(key, full)
	}
	return p, err
}

// moveTree moves a folder, by copying when it lies on another volume.
func moveTree(ctx context.Context, src, dst string) error {
	if os.Rename(src, dst) == nil {
		return nil
	}
	err := copyTree(ctx, os.DirFS(src), ".", dst)
	return errors.Join(err, os.RemoveAll(src))
}

// removeOther removes compiled copies of key other than full.
func (d *disk) removeOther(key, full string) {
	all, err := filepath.Glob(filepath.Join(d.dir, "compiled", key+"-*"))
	if err != nil {
		return
	}
	for _, p := range all {
		if filepath.Base(p) != full {
			_ = os.RemoveAll(p)
		}
	}
}

// keep returns the folder kind/key/name below d.dir, made by fill in a
// temporary folder beside it when it is not there. Two processes may do so at
// once; one wins and both use its folder.
func (d *disk) keep(kind, key, name string, fill func(tmp string) error) (string, error) {
	final := filepath.Join(d.dir, kind, key)
	want := filepath.Join(final, name)
	if info, err := os.Stat(want); err == nil && info.IsDir() {
		return want, nil
	}
	wrap := func(err error) error {
		if err == nil || diag.CodeOf(err) != "" || errors.Is(err, context.Canceled) {
			return err
		}
		return diag.Errorf(diag.In(d.dir), diag.IO, "%w", err).WithHint("free space or name another folder for the compiled copies")
	}
	if err := os.MkdirAll(filepath.Dir(final), 0o750); err != nil {
		return "", wrap(err)
	}
	tmp, err := os.MkdirTemp(filepath.Dir(final), "."+key+"-*")
	if err != nil {
		return "", wrap(err)
	}
	defer os.RemoveAll(tmp) //nolint:errcheck // gone when it was renamed
	if err := fill(tmp); err != nil {
		return "", wrap(err)
	}
	if err := os.Rename(tmp, final); err != nil {
		if info, serr := os.Stat(want); serr == nil && info.IsDir() {
			return want, nil // another process was faster
		}
		// A folder of this key without the model in it: a damaged copy.
		if rerr := os.RemoveAll(final); rerr != nil {
			return "", wrap(rerr)
		}
		if err := os.Rename(tmp, final); err != nil {
			return "", wrap(err)
		}
	}
	return want, nil
}
