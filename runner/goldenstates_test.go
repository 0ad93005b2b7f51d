package runner

import (
	"bytes"
	"encoding/binary"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/anepkg/anepkg/coreml/cpu"
	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/manifest"
)

// TestGoldenStates: the states after the prompt are compared too, and a
// reference that differs in one value, in shape or in name makes its case
// fail.
func TestGoldenStates(t *testing.T) {
	const file = "states/model_model_kv_cache_0.f32"
	for _, tc := range []struct {
		name string
		edit func(fsys fstest.MapFS)
		pass bool
		want string // of the case's error
	}{
		{"as it is", func(fstest.MapFS) {}, true, ""},
		{"one value off", func(m fstest.MapFS) {
			data := bytes.Clone(m[file].Data)
			v := math.Float32frombits(binary.LittleEndian.Uint32(data[400:]))
			binary.LittleEndian.PutUint32(data[400:], math.Float32bits(v+0.1))
			m[file] = &fstest.MapFile{Data: data}
		}, false, "state model_model_kv_cache_0 differs"},
		{"a NaN", func(m fstest.MapFS) {
			data := bytes.Clone(m[file].Data)
			binary.LittleEndian.PutUint32(data[400:], math.Float32bits(float32(math.NaN())))
			m[file] = &fstest.MapFile{Data: data}
		}, false, "state model_model_kv_cache_0 differs"},
		{"short file", func(m fstest.MapFS) { m[file] = &fstest.MapFile{Data: m[file].Data[4:]} }, false, "got 131068 bytes"},
		{"missing file", func(m fstest.MapFS) { delete(m, file) }, false, file},
		{"another name", func(m fstest.MapFS) {
			g := m["golden.json"]
			g.Data = bytes.Replace(g.Data, []byte(`"name": "model_model_kv_cache_0"`), []byte(`"name": "model_model_kv_cache_1"`), 1)
		}, false, "no state model_model_kv_cache_1"},
	} {
		fsys := loadFS(t, filepath.Join("testdata", "packages", "seed-qwen3-lut6"))
		tc.edit(fsys)
		pkgFS := fstest.MapFS{}
		for name, f := range fsys {
			if rest, ok := strings.CutPrefix(name, "compiled/"); ok {
				pkgFS[rest] = f
			}
		}
		pkg, err := manifest.Open(t.Context(), pkgFS, "pkg")
		if err != nil {
			t.Fatal(err)
		}
		cmp, err := CompareGolden(t.Context(), pkg, cpu.New(), Options{Threads: 1}, fsys, "golden.json")
		if err != nil {
			t.Fatalf("%s: %v", tc.name, err)
		}
		checked := false
		for _, c := range cmp.Cases {
			if c.Name == "batch-plus-3" {
				checked = true
				if c.Pass != tc.pass || !strings.Contains(c.Error, tc.want) || tc.pass && (len(c.States) != 1 || !c.States[0].Pass) {
					t.Errorf("%s: got %+v, want %q", tc.name, c, tc.want)
				}
			} else if !c.Pass {
				t.Errorf("%s: case %s failed: %+v", tc.name, c.Name, c)
			}
		}
		if !checked || cmp.Pass != tc.pass {
			t.Errorf("%s: pass %v, case compared %v", tc.name, cmp.Pass, checked)
		}
		_ = pkg.Close()
	}
	for _, bad := range []goldenState{
		{Name: "", File: "f", Shape: []int{1}}, {Name: "s", Shape: []int{1}}, {Name: "s", File: "f", Shape: []int{-1}},
		{Name: "s", File: "f", Shape: []int{1 << 30, 1 << 30}}, {Name: "s", File: "f", Shape: []int{1, 2, 3, 4}, Slots: []int{1, 4}},
		{Name: "s", File: "f", Shape: []int{1, 2, 3, 4}, Slots: []int{2, 2}}, {Name: "s", File: "f", Shape: []int{3}, Slots: []int{0, 1}},
	} {
		g := goldenStates{Entries: []goldenState{bad}}
		if err := g.check("golden.json"); diag.CodeOf(err) != diag.Malformed {
			t.Errorf("%+v: got %v, want class malformed", bad, err)
		}
	}
}
