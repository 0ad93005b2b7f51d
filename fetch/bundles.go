package fetch

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/manifest"
)

// CheckBundles verifies what a finished download holds of .anemllpkg bundles
// (folders of that name, and the repository itself) against their manifests.
// The hub's hashes tell that the files came whole; the manifest tells that
// they are those that were packed. Files that the plan left out may be absent.
//
// Errors: those of manifest.ReadBundle; a diag.List of class diag.Mismatch or
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
		b, err := manifest.ReadBundle(fsys)
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
