package compile_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/anepkg/anepkg/coreml/compile"
	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/coreml/sharedtest"
)

// applePairs are packages with what Apple's compiler made of them.
func applePairs(t *testing.T) []sharedtest.Compiled {
	t.Helper()
	models := sharedtest.Path(t, "models")
	var out []sharedtest.Compiled
	for _, n := range []string{"", "-palette-4bit", "-int8", "-pruned-int8"} {
		out = append(out, sharedtest.Compiled{Package: only(t, models, "packages/silero-pkg-unified"+n), Model: only(t, models, "compiled/silero-unified"+n)})
	}
	return append(out, sharedtest.Compiled{Package: only(t, models, "packages/parakeet-eou-160ms-encoder-pkg"), Model: only(t, models, "compiled/parakeet-eou-160ms-streaming-encoder")})
}

// only returns the folder, or the only model in it.
func only(t *testing.T, elem ...string) string {
	t.Helper()
	dir := filepath.Join(elem...)
	for _, ext := range []string{".mlpackage", ".mlmodelc"} {
		found, _ := filepath.Glob(filepath.Join(dir, "*"+ext))
		if len(found) == 1 {
			return found[0]
		}
	}
	return dir
}

func compiled(t *testing.T, p sharedtest.Compiled, opts compile.Options) *compile.Compiled {
	t.Helper()
	c, err := compile.Package(t.Context(), os.DirFS(filepath.Dir(p.Package)), filepath.Base(p.Package), opts)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestAgainstTools: everything that the compiler of the shared tools writes.
func TestAgainstTools(t *testing.T) {
	for _, p := range sharedtest.CompiledPairs(t) {
		t.Run(filepath.Base(filepath.Dir(filepath.Dir(p.Package)))+"/"+filepath.Base(p.Package), func(t *testing.T) {
			c := compiled(t, p, compile.Options{})
			for name, got := range c.Files {
				want := read(t, p.Model, name)
				switch name {
				case "metadata.json":
					sameJSON(t, want, got)
				case "model.mil":
					if d := sharedtest.LineDiff(string(got), string(want)); d != "" {
						t.Errorf("%s: %s", name, d)
					}
				default:
					if !bytes.Equal(got, want) {
						t.Errorf("%s differs: %d bytes, want %d", name, len(got), len(want))
					}
				}
			}
			weights(t, p, c)
		})
	}
}

var versions = regexp.MustCompile(`\{"(coremlc-component-MIL|coremlc-version)", "([^"]*)"\}`)

// TestAgainstApple: the same, for files of Apple's compiler.
func TestAgainstApple(t *testing.T) {
	for _, p := range applePairs(t) {
		t.Run(filepath.Base(p.Model), func(t *testing.T) {
			mil := string(read(t, p.Model, "model.mil"))
			var opts compile.Options
			for _, m := range versions.FindAllStringSubmatch(mil, -1) {
				if m[1] == "coremlc-version" {
					opts.CompilerVersion = m[2]
				} else {
					opts.MILVersion = m[2]
				}
			}
			var meta []struct {
				Class string `json:"generatedClassName"`
			}
			if err := json.Unmarshal(read(t, p.Model, "metadata.json"), &meta); err != nil {
				t.Fatal(err)
			}
			opts.ClassName = meta[0].Class
			c := compiled(t, p, opts)
			if d := sharedtest.LineDiff(string(c.Files["model.mil"]), mil); d != "" {
				t.Errorf("model.mil: %s", d)
			}
			sameJSON(t, read(t, p.Model, "metadata.json"), c.Files["metadata.json"])
			for _, name := range []string{"coremldata.bin", "analytics/coremldata.bin"} {
				want, err := os.ReadFile(filepath.Join(p.Model, name))
				if err != nil {
					continue // a sample of text files only
				}
				got := c.Files[name]
				if name == "coremldata.bin" { // the entries of a protobuf map have no order
					slices.Sort(got)
					slices.Sort(want)
				}
				if !bytes.Equal(got, want) {
					t.Errorf("%s differs: %d bytes, want %d", name, len(got), len(want))
				}
			}
		})
	}
}

func weights(t *testing.T, p sharedtest.Compiled, c *compile.Compiled) {
	t.Helper()
	want, err := filepath.Glob(filepath.Join(p.Model, "weights", "*"))
	if err != nil || len(c.Weights) != len(want) {
		t.Errorf("weight files %v, want %v (%v)", c.Weights, want, err)
	}
	dir := filepath.Join(t.TempDir(), "out", "m.mlmodelc")
	src := os.DirFS(filepath.Dir(p.Package))
	for range 2 { // the second time it is replaced
		if err := c.Write(t.Context(), src, dir, compile.WriteOptions{Replace: true}); err != nil {
			t.Fatal(err)
		}
	}
	for _, w := range c.Weights {
		if !bytes.Equal(read(t, dir, w.To), read(t, p.Model, w.To)) {
			t.Errorf("%s differs", w.To)
		}
	}
	if left, _ := os.ReadDir(filepath.Dir(dir)); len(left) != 1 {
		t.Errorf("beside the model there is %v", left)
	}
}

func read(t *testing.T, elem ...string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(elem...))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func sameJSON(t *testing.T, want, got []byte) {
	t.Helper()
	var w, g any
	if err := json.Unmarshal(want, &w); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(got, &g); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(w, g); d != "" {
		t.Errorf("metadata.json (-want +got):\n%s", d)
	}
}

// refusal is a package that is not compiled.
type refusal struct {
	name string
	fsys fs.FS
	pkg  string
	code diag.Code
	msg  string
}

// TestRefusals: what is not compiled says why.
func TestRefusals(t *testing.T) {
	good := sharedtest.CompiledPairs(t)[0].Package
	spec := read(t, good, "Data", "com.apple.CoreML", "model.mlmodel")
	manifest := read(t, good, "Manifest.json")
	with := func(change func(fstest.MapFS)) fs.FS {
		m := fstest.MapFS{
			"m.mlpackage/Manifest.json":                       {Data: manifest},
			"m.mlpackage/Data/com.apple.CoreML/model.mlmodel": {Data: spec},
		}
		change(m)
		return m
	}
	rename := func(old, new string) func(fstest.MapFS) {
		return func(m fstest.MapFS) {
			m["m.mlpackage/Data/com.apple.CoreML/model.mlmodel"] = &fstest.MapFile{Data: bytes.ReplaceAll(spec, []byte(old), []byte(new))}
		}
	}
	control := filepath.Join(sharedtest.Path(t, "vectors"), "models", "control_flow")
	for _, tc := range []refusal{
		{"no folder", fstest.MapFS{}, "m.mlpackage", diag.NotFound, "Manifest.json"},
		{"no specification", with(func(m fstest.MapFS) { delete(m, "m.mlpackage/Data/com.apple.CoreML/model.mlmodel") }), "m.mlpackage", diag.NotFound, "model.mlmodel"},
		{"cut", with(func(m fstest.MapFS) {
			m["m.mlpackage/Data/com.apple.CoreML/model.mlmodel"] = &fstest.MapFile{Data: spec[:len(spec)/2]}
		}), "m.mlpackage", diag.Malformed, "model.mlmodel"},
		{"weights elsewhere", with(rename("@model_path/weights/weight.bin", "@model_path/../../../../xx.bin")), "m.mlpackage", diag.Malformed, "want a path below"},
		{"no identifier", with(rename("hidden_states", "hidden-states")), "m.mlpackage", diag.Unsupported, "no identifier"},
		{"nested blocks", os.DirFS(control), "while_counter.mlpackage", diag.Unsupported, "nested blocks"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := compile.Package(t.Context(), tc.fsys, tc.pkg, compile.Options{})
			if diag.CodeOf(err) != tc.code || !strings.Contains(err.Error(), tc.msg) {
				t.Errorf("got %v (%s), want %q (%s)", err, diag.CodeOf(err), tc.msg, tc.code)
			}
		})
	}
}

// TestWriteRefuses: nothing half-written is left.
func TestWriteRefuses(t *testing.T) {
	p := sharedtest.CompiledPairs(t)[0]
	c := compiled(t, p, compile.Options{})
	if len(c.Weights) == 0 {
		t.Fatal("a package without weights")
	}
	weight := c.Weights[0].From
	src := os.DirFS(filepath.Dir(p.Package))
	pointer := fstest.MapFS{weight: {Data: []byte("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")}}
	for _, tc := range []struct {
		name string
		src  fs.FS
		have string // a file in the folder
		opts compile.WriteOptions
		code diag.Code
	}{
		{"weights absent", fstest.MapFS{}, "", compile.WriteOptions{}, diag.NotFound},
		{"a pointer", pointer, "", compile.WriteOptions{}, diag.LFSPointer},
		{"taken", src, "model.mil", compile.WriteOptions{}, diag.IO},
		{"something else", src, "thesis.doc", compile.WriteOptions{Replace: true}, diag.IO},
	} {
		t.Run(tc.name, func(t *testing.T) {
			top := t.TempDir()
			dir := filepath.Join(top, "m.mlmodelc")
			want := 0
			if tc.have != "" {
				want = 1
				if err := os.Mkdir(dir, 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, tc.have), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := c.Write(t.Context(), tc.src, dir, tc.opts); diag.CodeOf(err) != tc.code {
				t.Errorf("got %v (%s), want %s", err, diag.CodeOf(err), tc.code)
			}
			if left, _ := os.ReadDir(top); len(left) != want {
				t.Errorf("left: %v", left)
			}
			if tc.have != "" {
				if left, _ := os.ReadDir(dir); len(left) != 1 {
					t.Errorf("the folder holds %v", left)
				}
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	top := t.TempDir()
	if err := c.Write(ctx, src, filepath.Join(top, "m.mlmodelc"), compile.WriteOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if left, _ := os.ReadDir(top); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
	if err := c.Write(t.Context(), fstest.MapFS{}, filepath.Join(top, "m.mlmodelc"), compile.WriteOptions{WithoutWeights: true}); err != nil {
		t.Error(err)
	}
}
