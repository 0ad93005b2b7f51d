package fetch

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// placer gives a blob of the cache its name in a snapshot: a relative link,
// or, where links are not possible or not wanted, the file itself. Without
// links a new blob moves into the snapshot, as with huggingface_hub, so that
// there is one copy; an older blob is copied.
type placer struct{ links bool }

func (p placer) place(blob, pointer string, isNew bool) error {
	dir := filepath.Dir(pointer)
	if err := makeDirs(dir); err != nil {
		return ioErr(dir, err)
	}
	if p.links {
		if err := link(blob, pointer); err == nil {
			syncDir(dir)
			return nil
		}
	}
	if isNew {
		if err := replace(blob, pointer); err == nil {
			syncDir(dir)
			return nil
		}
	}
	return copyFile(filepath.Dir(blob), blob, pointer)
}

// link makes the link under a temporary name beside the blob first: an
// existing pointer is replaced in one step, and a process that is killed
// leaves nothing in the snapshot.
func link(blob, pointer string) error {
	dir := filepath.Dir(pointer)
	target, err := filepath.Rel(dir, blob)
	if err != nil {
		return err
	}
	tmp := filepath.Join(filepath.Dir(blob), tmpName())
	if err := os.Symlink(target, tmp); err != nil {
		return err
	}
	if err := replace(tmp, pointer); err != nil {
		return errors.Join(err, os.Remove(tmp))
	}
	return nil
}

// copyFile copies through a temporary name in the folder tmp.
func copyFile(tmp, from, to string) error {
	src, err := os.Open(from)
	if err != nil {
		return ioErr(from, err)
	}
	defer func() { _ = src.Close() }()
	dst, err := createTemp(tmp)
	if err != nil {
		return ioErr(to, err)
	}
	_, err = io.Copy(dst, src)
	err = errors.Join(err, dst.Sync(), dst.Close())
	if err == nil {
		err = replace(dst.Name(), to)
	}
	if err != nil {
		return errors.Join(ioErr(to, err), os.Remove(dst.Name()))
	}
	return nil
}

// Folders and files of the cache get the permissions that the user's umask
// leaves, so that a group can share one cache, as with huggingface_hub.

func makeDirs(dir string) error { return os.MkdirAll(dir, 0o777) } //nolint:gosec // the umask decides

func makeDir(dir string) error { return os.Mkdir(dir, 0o777) } //nolint:gosec // the umask decides

// openOwn opens or creates a regular file of our own. What stands in its place,
// a link above all, is removed: writing through it would change another file.
func openOwn(name string) (*os.File, error) {
	if info, err := os.Lstat(name); err == nil && !info.Mode().IsRegular() {
		if err := os.Remove(name); err != nil {
			return nil, err
		}
	}
	f, err := openFile(name, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, err
	}
	have, err1 := f.Stat()
	named, err2 := os.Lstat(name)
	if err1 != nil || err2 != nil || !os.SameFile(have, named) {
		return nil, errors.Join(fmt.Errorf("%s was replaced while it was opened", filepath.Base(name)), f.Close())
	}
	return f, nil
}

func openFile(name string, flag int) (*os.File, error) { return os.OpenFile(name, flag, 0o666) } //nolint:gosec // the umask decides
