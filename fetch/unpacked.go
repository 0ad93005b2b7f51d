package fetch

import (
	"archive/zip"
	"context"
	"errors"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/anepkg/anepkg/coreml/diag"
)

// openArchive reads the directory of a zip archive and checks every entry. top
// is the name of the folder that it unpacks to. Close the reader at the end.
func openArchive(archive, top string) (*zip.ReadCloser, *unpacker, error) {
	r, err := zip.OpenReader(archive)
	if err != nil {
		if errors.Is(err, zip.ErrFormat) || errors.Is(err, zip.ErrAlgorithm) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, nil, diag.Errorf(diag.In(archive), diag.Malformed, "zip archive: %w", err).WithHint("fetch it again with --repair")
		}
		return nil, nil, ioErr(archive, err)
	}
	u := &unpacker{archive: archive, top: top}
	if err := u.list(r.File); err != nil {
		return nil, nil, errors.Join(err, r.Close())
	}
	return r, u, nil
}

// isUnpacked reports whether dir holds every file of the archive in its size
// and, with content, its CRC-32. Files that the archive does not have do not
// count.
func isUnpacked(ctx context.Context, archive, dir string, content bool) (bool, error) {
	r, u, err := openArchive(archive, filepath.Base(dir))
	if err != nil {
		return false, err
	}
	defer func() { _ = r.Close() }()
	for i, f := range u.files {
		s, err := checkUnpacked(ctx, filepath.Join(dir, filepath.FromSlash(u.names[i])), f, content)
		if err != nil || s != Good {
			return false, err
		}
	}
	return true, nil
}

// checkUnpacked compares an unpacked file with its entry in the archive.
func checkUnpacked(ctx context.Context, local string, f *zip.File, content bool) (CheckStatus, error) {
	info, err := os.Lstat(local)
	switch {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR): // a file can be in the place of a folder
		return Absent, nil
	case err != nil:
		return "", ioErr(local, err)
	case !info.Mode().IsRegular() || uint64(info.Size()) != f.UncompressedSize64:
		return Corrupt, nil
	case !content:
		return Good, nil
	}
	in, err := os.Open(local)
	if err != nil {
		return "", ioErr(local, err)
	}
	defer func() { _ = in.Close() }()
	sum := crc32.NewIEEE()
	if _, err := copyContext(ctx, sum, in); err != nil {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		return "", ioErr(local, err)
	}
	if sum.Sum32() != f.CRC32 {
		return Corrupt, nil
	}
	return Good, nil
}

// verifyUnpacked checks the folders of s that were unpacked from its archives
// and returns the names that it checked. An archive that was not unpacked is
// no fault, nor is one that is broken itself: its own hash tells that.
func verifyUnpacked(ctx context.Context, s CachedSnapshot, add func(Check)) (map[string]bool, error) {
	done := map[string]bool{}
	for _, e := range s.files {
		if _, form := containerOf(e.name); form != "zip" {
			continue
		}
		name := strings.TrimSuffix(e.name, ".zip")
		dir := filepath.Join(s.Dir, filepath.FromSlash(name))
		if info, err := os.Lstat(dir); err != nil || !info.IsDir() {
			continue
		}
		r, u, err := openArchive(dir+".zip", filepath.Base(dir))
		if err != nil {
			continue
		}
		for i, f := range u.files {
			k := Check{File: name + "/" + u.names[i], Local: filepath.Join(dir, filepath.FromSlash(u.names[i])), Bytes: int64(f.UncompressedSize64)}
			if k.Status, err = checkUnpacked(ctx, k.Local, f, true); err != nil {
				return done, errors.Join(err, r.Close())
			}
			done[k.File] = true
			add(k)
		}
		_ = r.Close()
	}
	return done, nil
}
