package coreml

import (
	"context"
	"io/fs"

	"github.com/anepkg/anepkg/coreml/diag"
)

// Open opens the model at path inside fsys. A missing weight file is no
// error here; a program that cannot be read is.
func Open(ctx context.Context, fsys fs.FS, path string) (*Model, error) {
	return nil, diag.Errorf(diag.In(path), diag.Unsupported, "coreml.Open is being written")
}

// Close releases the weight files.
func (m *Model) Close() error { return nil }
