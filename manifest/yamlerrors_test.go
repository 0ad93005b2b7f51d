package manifest_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"unicode/utf16"

	"github.com/anepkg/anepkg/manifest"
)

const goodMeta = "model_info:\n  name: x\n  parameters:\n    context_length: 64\n    batch_size: 16\n    layer_types: [full, sliding]\n    num_chunks: 1\n    states:\n      - name: a\n"

func wide(s string) string {
	out := []byte{0xff, 0xfe}
	for _, u := range utf16.Encode([]rune(s)) {
		out = append(out, byte(u), byte(u>>8))
	}
	return string(out)
}

// TestYAMLErrorPlace: the line is that of the fault (PyYAML names the same),
// not that of the surrounding map.
func TestYAMLErrorPlace(t *testing.T) {
	sub := func(old, now string) string { return strings.Replace(goodMeta, old, now, 1) }
	for _, c := range []struct{ name, text, pos, msg string }{
		{"one space too few", sub("    num_chunks", "   num_chunks"), "meta.yaml:7:4", "not indented like"},
		{"two spaces too many", sub("    num_chunks", "      num_chunks"), "meta.yaml:7:7", "not indented like"},
		{"no-break space", sub("    batch_size", "  \u00a0 batch_size"), "meta.yaml:5:3", "no-break space"},
		{"tab", sub("    batch_size", "\tbatch_size"), "meta.yaml:5:1", "tab"},
		{"list not closed", sub("sliding]", "sliding"), "meta.yaml:6:5", "list or map that begins"},
		{"text not closed", sub("name: x", `name: "x`), "meta.yaml:2:3", "end of stream"},
		{"no colon", sub("num_chunks: 1", "num_chunks 1"), "meta.yaml:7:5", "expected ':'"},
		{"no space after the colon", sub("num_chunks: 1", "num_chunks:1"), "meta.yaml:7:5", "expected ':'"},
		{"two colons", sub("name: x", "name: x: y"), "meta.yaml:2:3", "mapping values"},
		{"Latin-1", sub("name: x", "name: caf\xe9"), "meta.yaml:2:12", "0xe9 is not UTF-8"},
		{"second document", goodMeta + "---\nfoo: 1\n", "meta.yaml:10:1", "second document"},
		{"UTF-16", wide(goodMeta), "meta.yaml", "UTF-16"},
		{"too long to search", sub("    num_chunks", "   num_chunks") + strings.Repeat("    # "+strings.Repeat("x", 500)+"\n", 2000), "meta.yaml", "did not find expected key"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := manifest.Open(context.Background(), fstest.MapFS{"meta.yaml": {Data: []byte(c.text)}}, "pkg")
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close() //nolint:errcheck // in memory
			for _, e := range p.Problems {
				if errors.Is(e, manifest.ErrSyntax) {
					if e.Pos.String() != c.pos || !strings.Contains(e.Msg, c.msg) {
						t.Errorf("got %s: %s, want %s: ...%s", e.Pos, e.Msg, c.pos, c.msg)
					}
					return
				}
			}
			t.Errorf("no syntax error in %v", p.Problems)
		})
	}
	// UTF-16 is read all the same, so that the other rules see the package
	p, err := manifest.Open(context.Background(), fstest.MapFS{"meta.yaml": {Data: []byte(wide(goodMeta))}}, "pkg")
	if err != nil {
		t.Fatal(err)
	}
	if n, ok := p.Params.Int("context_length"); !ok || n != 64 {
		t.Errorf("context_length of UTF-16: got %d, %t", n, ok)
	}
}

// TestLinksNotFollowed: folders outside, and folders that a link lies in,
// are not listed; a link named as a model is.
func TestLinksNotFollowed(t *testing.T) {
	root := t.TempDir()
	dir, out := filepath.Join(root, "pkg"), filepath.Join(root, "out")
	for name, text := range map[string]string{"pkg/meta.yaml": goodMeta, "pkg/sub/a.txt": "a", "pkg/x.etag": "", "out/big.txt": "b", "m/model.mil": "program(1.3)"} {
		file := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"outside": out, "relative": "../out", "loop": ".", "sub/up": "..", "inside": "sub", "x.mlmodelc": "../m"} {
		if err := os.Symlink(to, filepath.Join(dir, filepath.FromSlash(link))); err != nil {
			t.Skip("no symbolic links here")
		}
	}
	p, err := manifest.Open(context.Background(), os.DirFS(dir), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close() //nolint:errcheck // only read from
	var got []string
	for _, f := range p.Files {
		got = append(got, f.Path)
	}
	if want := "inside/a.txt meta.yaml sub/a.txt x.etag x.mlmodelc/model.mil"; strings.Join(got, " ") != want {
		t.Errorf("got %v, want %s", got, want)
	}
	if f := p.File("x.etag"); f == nil || f.Status != manifest.FileOK {
		t.Errorf("an empty .etag: got %+v, want no empty file", f)
	}
}
