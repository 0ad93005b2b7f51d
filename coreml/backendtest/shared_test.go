package backendtest

import (
	"os"
	"path/filepath"
	"testing"
)

// sharedDir returns a folder of the shared test data. Tests skip without it,
// but fail when ANEPKG_REQUIRE_SHARED is 1.
func sharedDir(t testing.TB, elem ...string) string {
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
				t.Fatal("go.mod not found above the test")
			}
			dir = up
		}
		root = filepath.Join(dir, "..", "shared")
	}
	path := filepath.Join(append([]string{root}, elem...)...)
	if _, err := os.Stat(path); err != nil {
		if os.Getenv("ANEPKG_REQUIRE_SHARED") == "1" {
			t.Fatalf("shared test data: %v", err)
		}
		t.Skipf("shared test data is not here (set ANEPKG_SHARED): %v", err)
	}
	return path
}
