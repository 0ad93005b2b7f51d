package main

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/anepkg/anepkg/coreml/diag"
)

func TestOpenTarget(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, dir := range []string{"qwen3-package", "org/name", "m.mlmodelc"} {
		if err := os.MkdirAll(dir, 0o750); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"m.mlmodelc/model.mil", "x.mlmodel", "notes.txt"} {
		if err := os.WriteFile(name, []byte("text"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tests := []struct {
		arg  string
		code diag.Code
		hint string // "" = any
	}{
		{"qwen3-package", "", ""},
		{"org/name", "", ""}, // an existing path wins over a repository
		{"qwen3-pakage", diag.NotFound, "did you mean qwen3-package?"},
		{"org/nam", diag.NotFound, "did you mean " + filepath.Join("org", "name") + "?"},
		{"./other/name", diag.NotFound, ""},
		{"x.mlmodel/inside", diag.NotFound, ""},
		{"missing/model.mlpackage", diag.NotFound, ""},
		{"nobody/nothing", diag.Unsupported, ""},
		{"nobody/nothing@main", diag.Unsupported, ""},
		{"nobody/nothing/sub/folder", diag.Unsupported, ""},
		{"hf://nobody/nothing", diag.Unsupported, ""},
		{"https://hub.example/nobody/nothing", diag.Unsupported, ""},
		{"x.mlmodel", diag.Unsupported, ""},
		{"m.mlmodelc/model.mil", diag.Unsupported, "give the folder: m.mlmodelc"},
		{"notes.txt", diag.Unsupported, ""},
	}
	for _, tt := range tests {
		t.Run(tt.arg, func(t *testing.T) {
			tg, err := openTarget(t.Context(), tt.arg)
			if got := diag.CodeOf(err); got != tt.code {
				t.Fatalf("got %v of class %q, want class %q", err, got, tt.code)
			}
			if err == nil {
				if err := tg.Close(); err != nil {
					t.Error(err)
				}
				return
			}
			var e *diag.Error
			if errors.As(err, &e) && tt.hint != "" && e.Hint != tt.hint {
				t.Errorf("got hint %q, want %q", e.Hint, tt.hint)
			}
		})
	}
}

func TestExtract(t *testing.T) {
	files := smallFiles()
	parent := t.TempDir()
	dir := filepath.Join(parent, "new", "demo")
	written, err := extract(files, dir)
	if err != nil || len(written) != len(files) {
		t.Fatalf("wrote %v (%v), want %d files", written, err, len(files))
	}
	if written, err = extract(files, dir); err != nil || len(written) != 0 {
		t.Errorf("the second time wrote %v (%v), want nothing", written, err)
	}
	other := filepath.Join(dir, "mine.txt")
	if err := os.WriteFile(other, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err = extract(files, dir); diag.CodeOf(err) != diag.IO {
		t.Errorf("into a folder with other files: got %v, want an error of class io", err)
	}
	if _, err = extract(files, other); diag.CodeOf(err) != diag.IO {
		t.Errorf("into a file: got %v, want an error of class io", err)
	}
	empty := filepath.Join(parent, "empty")
	if err := os.Mkdir(empty, 0o750); err != nil {
		t.Fatal(err)
	}
	if written, err = extract(files, empty); err != nil || len(written) != len(files) {
		t.Errorf("into an empty folder: wrote %v (%v)", written, err)
	}
	left, err := filepath.Glob(filepath.Join(parent, ".anepkg-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v (%v)", left, err)
	}
}
