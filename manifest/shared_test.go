package manifest_test

import (
	"os"
	"path/filepath"
	"testing"
)

// sharedDir returns a folder of the shared data, and skips the test without
// it (fails when ANEPKG_REQUIRE_SHARED=1).
func sharedDir(t testing.TB, sub string) string {
	t.Helper()
	root := os.Getenv("ANEPKG_SHARED")
	if root == "" {
		dir, err := os.Getwd()
		if err != nil {
			t.Fatal(err)
		}
		for {
			if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
				break
			}
			up := filepath.Dir(dir)
			if up == dir {
				t.Fatal("no go.mod above the test")
			}
			dir = up
		}
		root = filepath.Join(filepath.Dir(dir), "shared")
	}
	path := filepath.Join(root, filepath.FromSlash(sub))
	if _, err := os.Stat(path); err != nil {
		if os.Getenv("ANEPKG_REQUIRE_SHARED") == "1" {
			t.Fatalf("shared data are required: %v", err)
		}
		t.Skipf("shared data are absent: %s (set ANEPKG_SHARED)", path)
	}
	return path
}
