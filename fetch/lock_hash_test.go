package fetch_test

import (
	"strings"
	"testing"

	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/fetch"
)

// TestLockWithoutHash: a lock file whose hashes were never filled in is
// refused, with the file and the text that stands there.
func TestLockWithoutHash(t *testing.T) {
	const text = `{"schema": "anepkg.lock/1", "kind": "models", "repo": "org/name", "revision": "main",
  "commit": "0123456789abcdef0123456789abcdef01234567", "files": [{"path": "meta.yaml", "bytes": 12, "sha256": "TODO"}]}`
	_, err := fetch.ReadLock(strings.NewReader(text), "x.lock")
	if diag.CodeOf(err) != diag.Malformed || !strings.Contains(err.Error(), "TODO") || !strings.Contains(err.Error(), "meta.yaml") {
		t.Errorf("got %v, want a malformed lock file that names meta.yaml and TODO", err)
	}
}
