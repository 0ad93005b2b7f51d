package manifest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/anepkg/anepkg/coreml/diag"
)

// Bounds of a bundle's manifest, in bytes and files.
const (
	maxBundleManifest = 16 << 20
	maxBundleFiles    = 100_000
)

var sha256Hex = regexp.MustCompile(`^[0-9a-fA-F]{64}$`)

// quoteShort is for names that come from a file.
func quoteShort(s string) string {
	if len(s) > 80 {
		s = s[:80] + "..."
	}
	return strconv.Quote(s)
}

// Bundle is the manifest of an .anemllpkg, the folder in which ANEMLL Chat
// hands a package over (ModelPackageManifest).
type Bundle struct {
	File          string // where the manifest was found
	FormatVersion int
	ModelName     string
	ModelID       string
	Root          string // folder of the package inside the bundle, "." for the bundle itself
	MinAppVersion string
	Files         []BundleFile
}

// BundleFile is a file that the manifest lists.
type BundleFile struct {
	Path   string `json:"path"` // inside the bundle or below its root
	SHA256 string `json:"sha256"`
	Bytes  int64  `json:"sizeBytes"`
}

// ReadBundle finds and reads the manifest of a bundle: the JSON file at the
// top that has "formatVersion" and "files".
//
// Errors: diag.NotFound without one, diag.Malformed for one that names files
// outside the bundle, sizes or hashes that cannot be.
func ReadBundle(fsys fs.FS) (*Bundle, error) {
	entries, err := fs.ReadDir(fsys, ".")
	if err != nil {
		return nil, diag.Errorf(diag.In("."), diag.IO, "%w", err)
	}
	for _, e := range entries {
		if e.IsDir() || !strings.EqualFold(path.Ext(e.Name()), ".json") {
			continue
		}
		data, err := readFile(fsys, e.Name(), maxBundleManifest)
		if err != nil || !bytes.Contains(data, []byte(`"formatVersion"`)) {
			continue
		}
		var m struct {
			FormatVersion *int         `json:"formatVersion"`
			ModelName     string       `json:"modelName"`
			ModelID       string       `json:"modelId"`
			Root          string       `json:"modelRootPath"`
			MinAppVersion string       `json:"minAppVersion"`
			Files         []BundleFile `json:"files"`
		}
		if err := json.Unmarshal(data, &m); err != nil {
			return nil, diag.Errorf(diag.In(e.Name()), diag.Malformed, "manifest of the bundle: %w", err)
		}
		if m.FormatVersion == nil || m.Files == nil {
			continue
		}
		b := &Bundle{File: e.Name(), FormatVersion: *m.FormatVersion, ModelName: m.ModelName, ModelID: m.ModelID, MinAppVersion: m.MinAppVersion, Files: m.Files}
		b.Root = path.Clean(strings.Trim(m.Root, "/"))
		if err := b.check(); err != nil {
			return nil, err
		}
		return b, nil
	}
	return nil, diag.Errorf(diag.In("."), diag.NotFound, "no manifest of an .anemllpkg bundle at the top of the folder")
}

func (b *Bundle) check() error {
	if len(b.Files) > maxBundleFiles {
		return diag.Errorf(diag.In(b.File), diag.TooLarge, "%d files are listed, at most %d are read", len(b.Files), maxBundleFiles)
	}
	if !fs.ValidPath(b.Root) {
		return diag.Errorf(diag.In(b.File), diag.Malformed, "modelRootPath %s leaves the bundle", quoteShort(b.Root))
	}
	for _, f := range b.Files {
		if f.Path == "." || !fs.ValidPath(f.Path) {
			return diag.Errorf(diag.In(b.File), diag.Malformed, "%s is listed, which is no path inside the bundle", quoteShort(f.Path))
		}
		if f.Bytes < 0 || !sha256Hex.MatchString(f.SHA256) {
			return diag.Errorf(diag.In(b.File), diag.Malformed, "%s has size %d and sha256 %s, want a size and 64 hex digits", quoteShort(f.Path), f.Bytes, quoteShort(f.SHA256))
		}
	}
	return nil
}

// Verify hashes every file that the manifest lists and returns what is wrong:
// diag.NotFound for absent files, diag.Mismatch for sizes and hashes. nil
// means that the bundle is whole.
func (b *Bundle) Verify(ctx context.Context, fsys fs.FS) (diag.List, error) {
	var bad diag.List
	for _, f := range b.Files {
		if err := ctx.Err(); err != nil {
			return bad, err
		}
		name := f.Path
		info, err := fs.Stat(fsys, name)
		if errors.Is(err, fs.ErrNotExist) {
			name = path.Join(b.Root, f.Path)
			info, err = fs.Stat(fsys, name)
		}
		switch {
		case errors.Is(err, fs.ErrNotExist):
			bad = append(bad, diag.Errorf(diag.In(f.Path), diag.NotFound, "absent, listed in %s with %d bytes", b.File, f.Bytes))
			continue
		case err != nil:
			return bad, diag.Errorf(diag.In(name), diag.IO, "%w", err)
		case !info.Mode().IsRegular() || info.Size() != f.Bytes:
			bad = append(bad, diag.Errorf(diag.In(name), diag.Mismatch, "%d bytes, %s says %d", info.Size(), b.File, f.Bytes))
			continue
		}
		sum, err := sumFS(ctx, fsys, name)
		if err != nil {
			return bad, err
		}
		if want := strings.ToLower(f.SHA256); sum != want {
			bad = append(bad, diag.Errorf(diag.In(name), diag.Mismatch, "sha256 is %s, %s says %s", sum, b.File, want))
		}
	}
	return bad, nil
}

// sumFS returns the SHA-256 of a file in hex.
func sumFS(ctx context.Context, fsys fs.FS, name string) (string, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return "", diag.Errorf(diag.In(name), diag.IO, "%w", err)
	}
	defer f.Close() //nolint:errcheck // only read from
	h, buf := sha256.New(), make([]byte, 1<<20)
	for {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		n, err := f.Read(buf)
		h.Write(buf[:n])
		if errors.Is(err, io.EOF) {
			return hex.EncodeToString(h.Sum(nil)), nil
		}
		if err != nil {
			return "", diag.Errorf(diag.In(name), diag.IO, "%w", err)
		}
	}
}
