package manifest

import (
	"context"
	"errors"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/coreml/diag"
)

// Model opens the part's model once and keeps it, or the error. It is safe
// for concurrent use. A part that is absent is an error of class NotFound.
func (p *Package) Model(ctx context.Context, part *Part) (*coreml.Model, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if part.tried {
		return part.model, part.err
	}
	if part.Path == "" {
		return nil, diag.Errorf(part.ClaimedAt, diag.NotFound, "part %s is missing: no %s in the package", part.Role, part.Claimed)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m, err := coreml.Open(ctx, p.FS, part.Path)
	if err != nil && ctx.Err() != nil {
		return nil, err // cancelled: a later call may try again
	}
	part.model, part.err, part.tried = m, err, true
	return m, err
}

// Close closes every model that was opened.
func (p *Package) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var errs []error
	for _, pt := range p.Parts {
		if pt.model != nil {
			errs = append(errs, pt.model.Close())
			pt.model, pt.err, pt.tried = nil, nil, false
		}
	}
	return errors.Join(errs...)
}
