package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestReferencePages holds that the pages in docs are what the commands
// print. ANEPKG_UPDATE=1 rewrites them.
func TestReferencePages(t *testing.T) {
	for page, cmd := range map[string]string{"ops.md": "ops", "rules.md": "checks"} {
		t.Run(page, func(t *testing.T) {
			status, got, stderr := execute(t.Context(), "", cmd, "--format", "markdown")
			if status != exitOK {
				t.Fatalf("status %d\n%s", status, stderr)
			}
			file := filepath.Join("..", "..", "docs", page)
			if os.Getenv("ANEPKG_UPDATE") != "" {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), got); d != "" {
				t.Errorf("docs/%s is not what the command prints (\"make reference\" rewrites it):\n%s", page, d)
			}
		})
	}
}
