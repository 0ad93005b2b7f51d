package main

import (
	"archive/zip"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/anepkg/anepkg/coreml/diag"
)

// packedFiles are what the archives of these tests hold.
func packedFiles() fstest.MapFS {
	big := bytes.Repeat([]byte("0123456789abcdef"), (zipInMemory+4096)/16)
	return fstest.MapFS{
		"meta.yaml":                     {Data: []byte("model_info:\n")},
		"m.mlmodelc/model.mil":          {Data: []byte("program(1.0)\n")},
		"m.mlmodelc/weights/weight.bin": {Data: big}, // unpacks into a temporary file
	}
}

// smallFiles are those that stay in memory.
func smallFiles() fstest.MapFS {
	files := packedFiles()
	delete(files, "m.mlmodelc/weights/weight.bin")
	return files
}

func packed(t *testing.T, files fstest.MapFS, top string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "p.zip")
	if err := zipFolder(files, top, file); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestZipTarget(t *testing.T) {
	for _, top := range []string{"", "folder"} {
		t.Run("top "+top, func(t *testing.T) {
			file := packed(t, smallFiles(), top)
			tg, err := openTarget(t.Context(), file)
			if err != nil {
				t.Fatal(err)
			}
			if want := filepath.Join(file, top); tg.path != want {
				t.Errorf("got path %s, want %s", tg.path, want)
			}
			if err := fstest.TestFS(tg.fsys, "meta.yaml", "m.mlmodelc/model.mil"); err != nil {
				t.Error(err)
			}
			checkRandomAccess(t, tg.fsys, smallFiles())
			if err := tg.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// checkRandomAccess compares ReadAt and Seek with the contents packed.
func checkRandomAccess(t *testing.T, fsys fs.FS, files fstest.MapFS) {
	t.Helper()
	for name, want := range files {
		f, err := fsys.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		head := make([]byte, 4)
		if _, err := io.ReadFull(f, head); err != nil || !bytes.Equal(head, want.Data[:4]) {
			t.Errorf("%s: first bytes %q (%v), want %q", name, head, err, want.Data[:4])
		}
		at := make([]byte, 6)
		off := int64(len(want.Data) - 7)
		if _, err := f.(io.ReaderAt).ReadAt(at, off); err != nil || !bytes.Equal(at, want.Data[off:off+6]) {
			t.Errorf("%s at %d: got %q (%v), want %q", name, off, at, err, want.Data[off:off+6])
		}
		rest, err := io.ReadAll(f) // goes on after the first bytes
		if err != nil || !bytes.Equal(rest, want.Data[4:]) {
			t.Errorf("%s: reading on gives %d bytes (%v), want %d", name, len(rest), err, len(want.Data)-4)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestZipLeavesNothingBehind(t *testing.T) {
	file := packed(t, packedFiles(), "top")
	t.Setenv("TMPDIR", t.TempDir())
	tg, err := openTarget(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	checkRandomAccess(t, tg.fsys, packedFiles())
	if err := tg.Close(); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(os.TempDir())
	if err != nil || len(left) > 0 {
		t.Errorf("left in the temporary folder: %v (%v)", left, err)
	}
}

// TestZipBackslashes: archives of old Windows tools name their entries so.
func TestZipBackslashes(t *testing.T) {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for name, f := range smallFiles() {
		dst, err := w.Create(`top\` + strings.ReplaceAll(name, "/", `\`))
		if err == nil {
			_, err = dst.Write(f.Data)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "p.zip")
	if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	tg, err := openTarget(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	defer tg.Close() //nolint:errcheck // only read from
	if err := fstest.TestFS(tg.fsys, "meta.yaml", "m.mlmodelc/model.mil"); err != nil {
		t.Error(err)
	}
	checkRandomAccess(t, tg.fsys, smallFiles())
}

func TestZipDamaged(t *testing.T) {
	whole, err := os.ReadFile(packed(t, smallFiles(), ""))
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		data []byte
		code diag.Code
	}{
		{"cut short", whole[:len(whole)/2], diag.Malformed},
		{"only the magic", []byte("PK\x03\x04"), diag.Malformed},
		{"not a zip", []byte("hello"), diag.Malformed},
		{"empty", nil, diag.Malformed},
		{"git lfs pointer", []byte("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"), diag.LFSPointer},
		{"entry of 1 TiB", claimingEntry(t, 1<<40, 1), diag.TooLarge},
		{"2 GiB of 1 MiB", claimingEntry(t, 2<<30, 1<<20), diag.TooLarge},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "bad.zip")
			if err := os.WriteFile(file, tt.data, 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := openTarget(t.Context(), file)
			if got := diag.CodeOf(err); got != tt.code {
				t.Errorf("got %v of class %q, want class %q", err, got, tt.code)
			}
		})
	}
}

// claimingEntry is an archive whose directory claims a file of some size that
// was packed to another.
func claimingEntry(t *testing.T, size, packed uint64) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	if _, err := w.CreateRaw(&zip.FileHeader{Name: "weight.bin", Method: zip.Deflate, UncompressedSize64: size, CompressedSize64: packed}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil && !errors.Is(err, io.ErrShortWrite) {
		t.Fatal(err)
	}
	return b.Bytes()
}

func FuzzZip(f *testing.F) {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	dst, err := w.Create("a/b.mil")
	if err != nil {
		f.Fatal(err)
	}
	if _, err := dst.Write([]byte("program(1.0)")); err != nil {
		f.Fatal(err)
	}
	if err := w.Close(); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) {
		file := filepath.Join(dir, "f.zip")
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		tg, err := openTarget(t.Context(), file)
		if err != nil {
			return
		}
		readSome(tg.fsys)
		if err := tg.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// readSome opens files of a hostile archive; errors are expected.
func readSome(fsys fs.FS) {
	names, err := fs.Glob(fsys, "*")
	if err != nil {
		return
	}
	more, err := fs.Glob(fsys, "*/*")
	if err != nil {
		return
	}
	for i, name := range append(names, more...) {
		f, err := fsys.Open(name)
		if err != nil || i > 100 {
			continue
		}
		if r, ok := f.(io.ReaderAt); ok {
			_, _ = r.ReadAt(make([]byte, 16), 0)
		}
		_ = f.Close()
	}
}
