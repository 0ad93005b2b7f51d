package fetch_test

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/fetch"
)

func TestFreeSpace(t *testing.T) {
	dir := t.TempDir()
	n, err := fetch.FreeSpace(dir)
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip("this system does not tell the free space")
	}
	if err != nil || n <= 0 {
		t.Errorf("got %d, %v", n, err)
	}
	if _, err := fetch.FreeSpace(filepath.Join(dir, "absent")); diag.CodeOf(err) != diag.IO {
		t.Errorf("an absent folder: %v, want class io", err)
	}
}
