package backends_test

import (
	"slices"
	"testing"

	"github.com/anepkg/anepkg/coreml/backends"
	"github.com/anepkg/anepkg/coreml/diag"
)

func TestNew(t *testing.T) {
	tests := []struct {
		name string
		want string    // of the backend
		code diag.Code // of the error
	}{
		{"cpu", "cpu", ""},
		{"auto", backends.Names()[0], ""},
		{"", backends.Names()[0], ""},
		{"gpu", "", diag.Usage},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b, err := backends.New(tt.name, backends.Options{})
			if code := diag.CodeOf(err); code != tt.code {
				t.Fatalf("got error %v of class %q, want class %q", err, code, tt.code)
			}
			if err == nil && b.Name() != tt.want {
				t.Errorf("got backend %q, want %q", b.Name(), tt.want)
			}
		})
	}
}

func TestMissingBackendIsNotATypingMistake(t *testing.T) {
	if slices.Contains(backends.Names(), "coreml") {
		t.Skip("this build has coreml")
	}
	_, err := backends.New("coreml", backends.Options{})
	if code := diag.CodeOf(err); code != diag.Unsupported {
		t.Errorf("got error %v of class %q, want class %q", err, code, diag.Unsupported)
	}
}
