package fetch_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/anepkg/anepkg/coreml/sharedtest"
	"github.com/anepkg/anepkg/fetch"
)

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
			fsys := sharedtest.Bundle(nil)
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
