package manifest_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/coreml/sharedtest"
	"github.com/anepkg/anepkg/manifest"
)

func TestBundle(t *testing.T) {
	fsys := sharedtest.Bundle(nil)
	b, err := manifest.ReadBundle(fsys)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprintf("%s %d %s %s %s %d", b.File, b.FormatVersion, b.ModelName, b.ModelID, b.Root, len(b.Files)), "manifest.json 1 x org/x model 2"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if bad, err := b.Verify(t.Context(), fsys); err != nil || len(bad) != 0 {
		t.Errorf("a whole bundle: %v, %v", bad, err)
	}
	damage := []struct {
		name string
		do   func(fstest.MapFS)
		code diag.Code
	}{
		{"a changed byte", func(m fstest.MapFS) { m["model/a.mlmodelc/model.mil"].Data[4000] ^= 1 }, diag.Mismatch},
		{"cut", func(m fstest.MapFS) { m["model/meta.yaml"].Data = []byte("mod") }, diag.Mismatch},
		{"absent", func(m fstest.MapFS) { delete(m, "model/meta.yaml") }, diag.NotFound},
		{"a folder", func(m fstest.MapFS) {
			delete(m, "model/meta.yaml")
			m["model/meta.yaml/x"] = &fstest.MapFile{}
		}, diag.Mismatch},
	}
	for _, tt := range damage {
		t.Run(tt.name, func(t *testing.T) {
			fsys := sharedtest.Bundle(nil)
			tt.do(fsys)
			bad, err := b.Verify(t.Context(), fsys)
			if err != nil || len(bad) != 1 || bad[0].Code != tt.code {
				t.Errorf("got %v, %v, want one of class %s", bad, err, tt.code)
			}
		})
	}
}

func TestBundleManifest(t *testing.T) {
	file := func(path string) func(map[string]any) {
		return func(m map[string]any) {
			m["files"] = []map[string]any{{"path": path, "sha256": strings.Repeat("a", 64), "sizeBytes": 1}}
		}
	}
	tests := []struct {
		name   string
		change func(map[string]any)
		code   diag.Code // "" for none
	}{
		{"good", file("meta.yaml"), ""},
		{"root is the bundle", func(m map[string]any) { m["modelRootPath"] = "" }, ""},
		{"outside", file("../x"), diag.Malformed},
		{"absolute", file("/x"), diag.Malformed},
		{"root outside", func(m map[string]any) { m["modelRootPath"] = "../.." }, diag.Malformed},
		{"no hash", func(m map[string]any) { m["files"] = []map[string]any{{"path": "x", "sha256": "12", "sizeBytes": 1}} }, diag.Malformed},
		{"negative", func(m map[string]any) {
			m["files"] = []map[string]any{{"path": "x", "sha256": strings.Repeat("a", 64), "sizeBytes": -1}}
		}, diag.Malformed},
		{"types", func(m map[string]any) { m["files"] = "all" }, diag.Malformed},
		{"no manifest", func(m map[string]any) { delete(m, "formatVersion") }, diag.NotFound},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := manifest.ReadBundle(sharedtest.Bundle(tt.change)); diag.CodeOf(err) != tt.code {
				t.Errorf("got %v, want class %q", err, tt.code)
			}
		})
	}
}

func FuzzReadBundle(f *testing.F) {
	f.Add([]byte(`{"formatVersion":1,"modelRootPath":"m","files":[{"path":"a","sha256":"00","sizeBytes":1}]}`))
	f.Add([]byte(`{"formatVersion":null,"files":[]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		b, err := manifest.ReadBundle(fstest.MapFS{"m.json": {Data: data}})
		if err != nil {
			if diag.CodeOf(err) == "" {
				t.Errorf("error without a class: %v", err)
			}
			return
		}
		for _, file := range b.Files {
			if strings.Contains(file.Path, "..") && strings.Contains("/"+file.Path+"/", "/../") {
				t.Errorf("path %q was accepted", file.Path)
			}
		}
	})
}
