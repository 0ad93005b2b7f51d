package mil_test

import (
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anepkg/anepkg/coreml/sharedtest"
)

// milFiles returns every text MIL file of the shared models.
func milFiles(t testing.TB) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(sharedtest.Path(t, "models"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.HasSuffix(path, ".mil") {
			out = append(out, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(out) == 0 {
		t.Fatal("no .mil file in the shared models")
	}
	return out
}
