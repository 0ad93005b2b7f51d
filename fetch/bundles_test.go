package fetch_test

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/anepkg/anepkg/fetch"
)

// bundle is an .anemllpkg with its manifest; change edits the manifest.
func bundle(t testing.TB, change func(map[string]any)) fstest.MapFS {
	t.Helper()
	out := fstest.MapFS{"other.json": {Data: []byte(`{"files": 1}`)}}
	var files []map[string]any
	for name, data := range map[string][]byte{"meta.yaml": []byte("model_info:\n"), "a.mlmodelc/model.mil": blob(5000, 1)} {
		out["model/"+name] = &fstest.MapFile{Data: data}
		files = append(files, map[string]any{"path": name, "sha256": strings.ToUpper(sha(data)), "sizeBytes": len(data)})
	}
	m := map[string]any{"formatVersion": 1, "modelName": "x", "modelId": "org/x", "modelRootPath": "model", "minAppVersion": "1.0", "files": files}
	if change != nil {
		change(m)
	}
	data, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	out["manifest.json"] = &fstest.MapFile{Data: data}
	return out
}

// TestFetchBundle: what comes is held against the manifest that came with it.
func TestFetchBundle(t *testing.T) {
	tests := []struct {
		name string
		dir  string // of the bundle in the repository
		do   func(fstest.MapFS)
		opts fetch.Selection
		want string // in the error
	}{
		{"whole", "", nil, fetch.Selection{}, ""},
		{"in a folder", "x.anemllpkg/", nil, fetch.Selection{}, ""},
		{"changed", "", func(m fstest.MapFS) { m["model/a.mlmodelc/model.mil"].Data[4000] ^= 1 }, fetch.Selection{}, "model/a.mlmodelc/model.mil: sha256 is"},
		{"changed in a folder", "x.anemllpkg/", func(m fstest.MapFS) { m["model/meta.yaml"].Data = []byte("other") }, fetch.Selection{}, "x.anemllpkg/model/meta.yaml: 5 bytes"},
		{"absent", "", func(m fstest.MapFS) { delete(m, "model/a.mlmodelc/model.mil") }, fetch.Selection{}, "a.mlmodelc/model.mil: absent"},
		{"left out", "", nil, fetch.Selection{Exclude: []string{"*.mil"}}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			fsys := bundle(t, nil)
			if tt.do != nil {
				tt.do(fsys)
			}
			files := map[string][]byte{}
			for name, f := range fsys {
				files[tt.dir+name] = f.Data
			}
			h := newHub(t)
			h.Add(repoName, files)
			c := newClient(t, h, nil)
			p, err := c.Plan(t.Context(), ref(t, repoName), fetch.PlanOptions{Selection: tt.opts})
			if err != nil {
				t.Fatal(err)
			}
			res, err := c.Download(t.Context(), p, nil)
			if err != nil {
				t.Fatal(err)
			}
			err = c.Complete(t.Context(), p, res)
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}
