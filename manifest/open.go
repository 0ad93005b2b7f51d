package manifest

import (
	"context"
	"io/fs"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/coreml/diag"
)

// Open finds out what fsys holds. path is how the user named it. Only a file
// system that cannot be read at all is an error: an unknown folder opens with
// Kind Unknown and says in Seen what is there.
func Open(ctx context.Context, fsys fs.FS, path string) (*Package, error) {
	return nil, diag.Errorf(diag.In(path), diag.Unsupported, "manifest.Open is being written")
}

// Model opens the part's model once and keeps it.
func (p *Package) Model(ctx context.Context, part *Part) (*coreml.Model, error) {
	return part.model, part.err
}

// Close closes every model that was opened.
func (p *Package) Close() error { return nil }
