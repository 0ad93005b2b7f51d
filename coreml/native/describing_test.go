//go:build darwin || gnustep

package native

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/anepkg/anepkg/coreml"
)

// describing is a backend that completes a model before it loads it.
type describing struct {
	coreml.Backend
	dir   string // of the completed models
	units string

	mu   sync.Mutex
	made map[*coreml.Model]*coreml.Model
}

// close closes the completed models.
func (d *describing) close() {
	for _, m := range d.made {
		_ = m.Close()
	}
}

func (d *describing) Load(ctx context.Context, m *coreml.Model, fn string, o coreml.LoadOptions) (coreml.Session, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	o.ComputeUnits = d.units
	if d.made[m] == nil {
		name := fmt.Sprintf("case%d.mlmodelc", len(d.made))
		dir := filepath.Join(d.dir, name)
		if err := copyTree(ctx, m.FS(), m.Path, dir); err != nil {
			return nil, err
		}
		if err := os.WriteFile(filepath.Join(dir, "coremldata.bin"), coremlData(m), 0o600); err != nil {
			return nil, err
		}
		whole, err := coreml.Open(ctx, os.DirFS(d.dir), name)
		if err != nil {
			return nil, err
		}
		d.made[m] = whole
	}
	return d.Backend.Load(ctx, d.made[m], fn, o)
}
