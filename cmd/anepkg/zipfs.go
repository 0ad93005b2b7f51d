package main

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/fetch"
)

// Bounds for archives: far above any real package, low enough that a hostile
// one cannot fill memory or the disk.
const (
	maxZipEntries = 50_000
	maxZipEntry   = 16 << 30 // bytes of one file, unpacked
	maxZipTotal   = 64 << 30 // bytes of all files, unpacked
	zipInMemory   = 4 << 20  // larger files unpack into a temporary file
)

// zipFS reads a zip archive. Files offer random access: stored ones directly
// in the archive, compressed ones through a copy made at the first use, in
// memory or in a temporary folder.
type zipFS struct {
	*zip.Reader
	archive *os.File

	mu     sync.Mutex
	tmp    string // "" until needed
	copies map[string]io.ReaderAt
	open   []io.Closer
}

// openZip takes over f.
func openZip(f *os.File, size int64, path string) (*target, error) {
	r, err := zip.NewReader(f, size)
	if err != nil {
		return nil, errors.Join(diag.Errorf(diag.In(path), diag.Malformed, "zip archive: %w", err).
			WithHint("the file may be cut short; download or pack it again"), f.Close())
	}
	for _, e := range r.File { // some archivers for Windows write backslashes
		e.Name = strings.ReplaceAll(e.Name, `\`, "/")
	}
	z := &zipFS{Reader: r, archive: f, copies: map[string]io.ReaderAt{}}
	if err := z.check(path); err != nil {
		return nil, errors.Join(err, z.Close())
	}
	tg := &target{fsys: z, path: filepath.Clean(path), done: z.Close}
	if top := z.topFolder(); top != "" {
		sub, err := fs.Sub(z, top)
		if err != nil {
			return nil, errors.Join(err, z.Close())
		}
		tg.fsys, tg.path = sub, filepath.Join(tg.path, top)
	}
	return tg, nil
}

func (z *zipFS) check(path string) error {
	if len(z.File) > maxZipEntries {
		return diag.Errorf(diag.In(path), diag.TooLarge, "zip archive with %d entries, at most %d are read", len(z.File), maxZipEntries)
	}
	var total, packed uint64
	for _, f := range z.File {
		if f.UncompressedSize64 > maxZipEntry {
			return diag.Errorf(diag.In(path), diag.TooLarge, "zip entry %q unpacks to %d bytes, at most %d are read", f.Name, f.UncompressedSize64, int64(maxZipEntry))
		}
		if f.Flags&1 != 0 {
			return diag.Errorf(diag.In(path), diag.Unsupported, "zip entry %q is encrypted", f.Name)
		}
		if total += f.UncompressedSize64; total > maxZipTotal {
			return diag.Errorf(diag.In(path), diag.TooLarge, "zip archive unpacks to more than %d bytes", int64(maxZipTotal))
		}
		packed += f.CompressedSize64
	}
	if !fetch.PlausibleZip(packed, total) {
		return diag.Errorf(diag.In(path), diag.TooLarge, "zip archive of %d packed bytes unpacks to %d, more than %d times as many", packed, total, fetch.MaxZipRatio)
	}
	return nil
}

// topFolder returns the only folder at the top, "" when there are files or
// several folders. What macOS adds to archives does not count.
func (z *zipFS) topFolder() string {
	entries, err := fs.ReadDir(z, ".")
	if err != nil {
		return ""
	}
	top := ""
	for _, e := range entries {
		switch name := e.Name(); {
		case name == "__MACOSX" || name == ".DS_Store":
		case !e.IsDir() || top != "":
			return ""
		default:
			top = name
		}
	}
	return top
}

// Open opens a file of the archive.
func (z *zipFS) Open(name string) (fs.File, error) {
	f, err := z.Reader.Open(name)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil || info.IsDir() {
		return f, err
	}
	return &zipFile{File: f, z: z, name: name, size: info.Size()}, nil
}

// Close removes the unpacked copies and closes the archive.
func (z *zipFS) Close() error {
	z.mu.Lock()
	defer z.mu.Unlock()
	var errs []error
	for _, c := range z.open {
		errs = append(errs, c.Close())
	}
	z.open = nil
	if z.tmp != "" {
		errs = append(errs, os.RemoveAll(z.tmp))
		z.tmp = ""
	}
	return errors.Join(append(errs, z.archive.Close())...)
}

// randomAccess returns the contents of an entry for reading anywhere.
func (z *zipFS) randomAccess(name string) (io.ReaderAt, error) {
	z.mu.Lock()
	defer z.mu.Unlock()
	if r, ok := z.copies[name]; ok {
		return r, nil
	}
	r, err := z.unpack(name)
	if err != nil {
		return nil, fmt.Errorf("unpacking %s: %w", name, err)
	}
	z.copies[name] = r
	return r, nil
}

func (z *zipFS) unpack(name string) (io.ReaderAt, error) {
	entry := z.entry(name)
	if entry == nil {
		return nil, fs.ErrNotExist
	}
	if entry.Method == zip.Store && entry.CompressedSize64 == entry.UncompressedSize64 {
		off, err := entry.DataOffset()
		if err != nil {
			return nil, err
		}
		return io.NewSectionReader(z.archive, off, int64(entry.UncompressedSize64)), nil
	}
	src, err := entry.Open()
	if err != nil {
		return nil, err
	}
	defer src.Close() //nolint:errcheck // read only
	if entry.UncompressedSize64 <= zipInMemory {
		data, err := io.ReadAll(io.LimitReader(src, zipInMemory+1))
		return bytes.NewReader(data), err
	}
	if z.tmp == "" {
		if z.tmp, err = os.MkdirTemp("", "anepkg-zip-"); err != nil {
			return nil, err
		}
	}
	dst, err := os.CreateTemp(z.tmp, "entry-")
	if err != nil {
		return nil, err
	}
	z.open = append(z.open, dst)
	_, err = io.Copy(dst, io.LimitReader(src, maxZipEntry))
	return dst, err
}

// entry finds the entry of a name.
func (z *zipFS) entry(name string) *zip.File {
	for _, f := range z.File {
		if strings.TrimPrefix(f.Name, "./") == name {
			return f
		}
	}
	return nil
}

// zipFile is an open entry: read in order from the stream, and anywhere
// through the unpacked copy.
type zipFile struct {
	fs.File
	z    *zipFS
	name string
	size int64
	off  int64             // of the next Read, once seek is set
	seek *io.SectionReader // nil until random access was asked for
}

// ReadAt implements io.ReaderAt.
func (f *zipFile) ReadAt(p []byte, off int64) (int, error) {
	if err := f.access(); err != nil {
		return 0, err
	}
	return f.seek.ReadAt(p, off)
}

// Seek implements io.Seeker.
func (f *zipFile) Seek(offset int64, whence int) (int64, error) {
	if err := f.access(); err != nil {
		return 0, err
	}
	n, err := f.seek.Seek(offset, whence)
	f.off = n
	return n, err
}

// Read implements io.Reader.
func (f *zipFile) Read(p []byte) (int, error) {
	var n int
	var err error
	if f.seek != nil {
		n, err = f.seek.Read(p)
	} else {
		n, err = f.File.Read(p)
	}
	f.off += int64(n)
	return n, err
}

func (f *zipFile) access() error {
	if f.seek != nil {
		return nil
	}
	r, err := f.z.randomAccess(f.name)
	if err != nil {
		return err
	}
	f.seek = io.NewSectionReader(r, 0, f.size)
	_, err = f.seek.Seek(f.off, io.SeekStart)
	return err
}
