package fetch

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/anepkg/anepkg/coreml/diag"
)

// lockPoll is how often a lock that another process holds is tried again.
const lockPoll = 50 * time.Millisecond

// fileLock is an exclusive lock on a lock file, the kind that Python's
// filelock takes: flock(2) on Unix, one locked byte on Windows. The file
// stays in place when it is released, for others may already wait on it. The
// system drops the lock when the process dies.
//
// golang.org/x/sys is used and not a lock package, because this needs one call
// on each system and, between open and lock, the check that the path still
// names the opened file.
type fileLock struct{ f *os.File }

// takeLock waits for the lock of path, creating file and folders. On a file
// system without locks it returns a lock that holds nothing: content is safe
// without, only work may be done twice.
func takeLock(ctx context.Context, path string) (*fileLock, error) {
	for {
		l, err := tryLock(path)
		switch {
		case err == nil:
			return l, nil
		case errors.Is(err, errNoLocks):
			return &fileLock{}, nil
		case !errors.Is(err, errLocked):
			return nil, ioErr(path, err)
		}
		if err := sleep(ctx, lockPoll); err != nil {
			return nil, err
		}
	}
}

var (
	errLocked  = errors.New("locked by another process")
	errNoLocks = errors.New("the file system has no locks")
)

// tryLock takes the lock, creating file and folders, or returns errLocked at
// once: also when somebody removes the folder again and again meanwhile.
func tryLock(path string) (*fileLock, error) {
	err := makeDirs(filepath.Dir(path))
	var f *os.File
	if err == nil {
		if info, lerr := os.Lstat(path); lerr == nil && info.Mode()&os.ModeSymlink != 0 {
			_ = os.Remove(path) // somebody else's file is behind it
		}
		f, err = openFile(path, os.O_RDWR|os.O_CREATE)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errLocked
	}
	if err != nil {
		return nil, err
	}
	if err := lockFile(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	have, err1 := f.Stat()
	named, err2 := os.Stat(path)
	if err1 != nil || err2 != nil || !os.SameFile(have, named) {
		// Somebody removed the file in between: its lock protects nothing.
		return nil, errors.Join(errLocked, f.Close())
	}
	return &fileLock{f: f}, nil
}

func (l *fileLock) release() {
	if l != nil && l.f != nil {
		unlockFile(l.f)
		_ = l.f.Close()
	}
}

// ioErr gives an error of the operating system a class; a full disk gets its
// own.
func ioErr(path string, err error) error {
	if err == nil {
		return nil
	}
	var known *diag.Error
	if errors.As(err, &known) {
		return err
	}
	var pe *os.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	if isDiskFull(err) {
		e := fail(diag.IO, ErrDiskFull, "no space left: %w", err).WithHint("free some space and run the command again: it continues where it stopped")
		e.Pos = diag.In(path)
		return e
	}
	return diag.Errorf(diag.In(path), diag.IO, "%w", err)
}
