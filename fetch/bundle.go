package fetch

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/anepkg/anepkg/coreml/diag"
)

// maxBundleManifest bounds the manifest of a bundle in bytes.
const maxBundleManifest = 16 << 20

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
		return nil, ioErr(".", err)
	}
	for _, e := range entries {
		if e.IsDir() || !strings.EqualFold(path.Ext(e.Name()), ".json") {
			continue
		}
		data, err := readBounded(fsys, e.Name(), maxBundleManifest)
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
	names := make([]string, len(b.Files))
	for i, f := range b.Files {
		names[i] = f.Path
		if f.Bytes < 0 || !hex64.MatchString(strings.ToLower(f.SHA256)) {
			return diag.Errorf(diag.In(b.File), diag.Malformed, "%s has size %d and sha256 %s, want a size and 64 hex digits", quoteName(f.Path), f.Bytes, quoteName(f.SHA256))
		}
	}
	if b.Root != "." {
		if err := checkPath(b.Root); err != nil {
			return diag.Errorf(diag.In(b.File), diag.Malformed, "modelRootPath: %w", err)
		}
	}
	if len(names) > maxEntries {
		return diag.Errorf(diag.In(b.File), diag.TooLarge, "%d files are listed, at most %d are read", len(names), maxEntries)
	}
	return checkPaths(names)
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
			return bad, ioErr(name, err)
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

// CheckBundles verifies what a finished download holds of .anemllpkg bundles
// (folders of that name, and the repository itself) against their manifests.
// The hub's hashes tell that the files came whole; the manifest tells that
// they are those that were packed. Files that the plan left out may be absent.
//
// Errors: those of ReadBundle; a diag.List of class diag.Mismatch or
// diag.NotFound with each file that differs.
func (c *Client) CheckBundles(ctx context.Context, plan *Plan) error {
	dirs := []string{"."}
	for _, f := range plan.Files {
		for p := path.Dir(f.Path); p != "." && p != "/"; p = path.Dir(p) {
			if strings.EqualFold(path.Ext(p), ".anemllpkg") && !slices.Contains(dirs, p) {
				dirs = append(dirs, p)
			}
		}
	}
	left := map[string]bool{}
	for _, s := range plan.Skipped {
		left[s.Path] = true
	}
	var bad diag.List
	for _, dir := range dirs {
		fsys := os.DirFS(filepath.Join(c.root(plan), filepath.FromSlash(dir)))
		b, err := ReadBundle(fsys)
		if diag.CodeOf(err) == diag.NotFound || errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		found, err := b.Verify(ctx, fsys)
		if err != nil {
			return err
		}
		for _, e := range found {
			name := e.Pos.File
			if e.Code == diag.NotFound && (left[path.Join(dir, name)] || left[path.Join(dir, b.Root, name)]) {
				continue
			}
			e.Pos.File = path.Join(dir, name)
			bad = append(bad, e.WithHint("the bundle was packed wrong or changed since: tell the owner of the repository"))
		}
	}
	return bad.Err()
}

func sumFS(ctx context.Context, fsys fs.FS, name string) (string, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return "", ioErr(name, err)
	}
	defer func() { _ = f.Close() }()
	h := sha256.New()
	if _, err := copyContext(ctx, h, f); err != nil {
		return "", ioErr(name, err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func readBounded(fsys fs.FS, name string, limit int64) ([]byte, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = diag.Errorf(diag.In(name), diag.TooLarge, "more than %d bytes", limit)
	}
	return data, err
}
