// Package sharedtest finds the shared test data, which is no part of the
// module: real packages, vectors with values of outside oracles, and
// reference files. It also makes what the tests of several packages need. Only
// tests import it.
//
// Files: sharedtest.go (where the data is), compiled.go (packages with their
// compiled form), bundle.go (.anemllpkg), allocations.go.
package sharedtest

import (
	"os"
	"path/filepath"
	"testing"
)

// Root returns the folder of the shared data, which may be absent: that of
// the environment variable ANEPKG_SHARED, else "shared" beside the module.
func Root(t testing.TB) string {
	t.Helper()
	if root := os.Getenv("ANEPKG_SHARED"); root != "" {
		return root
	}
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return filepath.Join(filepath.Dir(dir), "shared")
		}
		up := filepath.Dir(dir)
		if up == dir {
			t.Fatal("no go.mod above the test's folder")
		}
		dir = up
	}
}

// Path returns the path of a file or folder of the shared data; the elements
// may hold slashes. Without it the test is skipped, or fails when
// ANEPKG_REQUIRE_SHARED is 1.
func Path(t testing.TB, elem ...string) string {
	t.Helper()
	path := filepath.Join(append([]string{Root(t)}, elem...)...)
	if _, err := os.Stat(path); err != nil {
		if os.Getenv("ANEPKG_REQUIRE_SHARED") == "1" {
			t.Fatalf("shared test data is required: %v", err)
		}
		t.Skipf("shared test data is absent (set ANEPKG_SHARED): %v", err)
	}
	return path
}
