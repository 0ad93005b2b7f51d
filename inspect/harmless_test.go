package inspect_test

import (
	"bytes"
	"context"
	"maps"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/anepkg/anepkg/inspect"
)

// TestHarmless: changes that no reader minds give no error on any good
// package.
func TestHarmless(t *testing.T) {
	config := func(m fstest.MapFS, change func(name string, data []byte) []byte) {
		for name, f := range maps.Clone(m) {
			if base := path.Base(name); base == "meta.yaml" || base == "model_config.json" {
				m[name] = &fstest.MapFile{Data: change(base, bytes.Clone(f.Data))}
			}
		}
	}
	remove := func(match func(name string) bool) func(fstest.MapFS) {
		return func(m fstest.MapFS) {
			for name := range maps.Clone(m) {
				if match(name) {
					delete(m, name)
				}
			}
		}
	}
	for _, c := range []struct {
		name   string
		change func(fstest.MapFS)
	}{
		{"files beside the package", both(write("README.md", "# Model\n"), write("LICENSE", "MIT"), write(".gitattributes", "*.bin filter=lfs"), write("images/a.png", "\x89PNG"), write("index.html", "<!DOCTYPE html><html></html>"))},
		{"no metadata.json", remove(func(name string) bool { return strings.HasSuffix(name, "mlmodelc/metadata.json") })},
		{"no analytics", remove(func(name string) bool { return strings.Contains(name, "/analytics/") })},
		{"keys that nobody knows", func(m fstest.MapFS) {
			config(m, func(base string, data []byte) []byte {
				if base == "meta.yaml" {
					return bytes.Replace(data, []byte("  parameters:\n"), []byte("  made_by: me\n  parameters:\n    colour: {red: [1, 2.5, null]}\n"), 1)
				}
				return bytes.Replace(data, []byte("{"), []byte(`{"colour": {"red": [1, 2.5, null]},`), 1)
			})
		}},
		{"line ends of Windows", func(m fstest.MapFS) {
			config(m, func(_ string, data []byte) []byte { return bytes.ReplaceAll(data, []byte("\n"), []byte("\r\n")) })
		}},
		{"no comment block", func(m fstest.MapFS) {
			config(m, func(base string, data []byte) []byte {
				if i := bytes.Index(data, []byte("\n# ====")); base == "meta.yaml" && i > 0 {
					return data[:i+1]
				}
				return data
			})
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for _, dir := range packages(t) {
				if filepath.Base(dir) == "package" {
					continue
				}
				m := load(t, dir)
				c.change(m)
				r, err := inspect.Validate(context.Background(), open(t, m, shortName(dir)), inspect.Options{Fast: true})
				if err != nil {
					t.Fatal(err)
				}
				for _, f := range r.Findings {
					if f.Severity == inspect.Error {
						t.Errorf("%s: %s at %v: %s", shortName(dir), f.ID, f.Where, f.Message)
					}
				}
			}
		})
	}
}
