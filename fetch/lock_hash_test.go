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

// TestLockMatch compares an argument with the lock file beside it.
func TestLockMatch(t *testing.T) {
	commit, other := strings.Repeat("a", 40), strings.Repeat("b", 40)
	l := &fetch.Lock{Repo: "org/pkg", Revision: "v1", Commit: commit, Sub: "q4"}
	tests := []struct {
		name, arg string
		want      diag.Code
	}{
		{"nothing more", "org/pkg", ""},
		{"its revision", "org/pkg@v1", ""},
		{"its commit", "org/pkg@" + commit + "/q4", ""},
		{"another repository", "org/other", diag.Mismatch},
		{"another kind", "hf://datasets/org/pkg", diag.Mismatch},
		{"another revision", "org/pkg@v9", diag.Mismatch},
		{"the default revision, named", "org/pkg@main", diag.Mismatch},
		{"another commit", "org/pkg@" + other, diag.Mismatch},
		{"another folder", "org/pkg/q8", diag.Mismatch},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := l.Match(ref(t, tt.arg))
			if tt.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			is(t, err, nil, tt.want)
		})
	}
}
