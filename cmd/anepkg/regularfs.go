package main

import (
	"errors"
	"io/fs"
	"os"
)

var errNotRegular = errors.New("neither a file nor a folder, but a pipe, socket or device")

// regularFS opens only files and folders. Opening a named pipe would wait
// for its writer.
type regularFS struct{ fs.FS }

// dirFS is os.DirFS without pipes, sockets and devices. Its files are still
// *os.File.
func dirFS(dir string) fs.FS { return regularFS{os.DirFS(dir)} }

// Open implements fs.FS.
func (r regularFS) Open(name string) (fs.File, error) {
	if err := r.check(name); err != nil {
		return nil, err
	}
	return r.FS.Open(name)
}

// ReadFile implements fs.ReadFileFS.
func (r regularFS) ReadFile(name string) ([]byte, error) {
	if err := r.check(name); err != nil {
		return nil, err
	}
	return fs.ReadFile(r.FS, name)
}

// Stat implements fs.StatFS.
func (r regularFS) Stat(name string) (fs.FileInfo, error) { return fs.Stat(r.FS, name) }

// ReadDir implements fs.ReadDirFS.
func (r regularFS) ReadDir(name string) ([]fs.DirEntry, error) { return fs.ReadDir(r.FS, name) }

// ReadLink implements fs.ReadLinkFS.
func (r regularFS) ReadLink(name string) (string, error) { return fs.ReadLink(r.FS, name) }

// Lstat implements fs.ReadLinkFS.
func (r regularFS) Lstat(name string) (fs.FileInfo, error) { return fs.Lstat(r.FS, name) }

func (r regularFS) check(name string) error {
	info, err := fs.Stat(r.FS, name)
	if err == nil && !info.IsDir() && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: name, Err: errNotRegular}
	}
	return err
}
