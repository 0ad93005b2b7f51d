//go:build !darwin && !gnustep

package native

import (
	"context"
	"runtime"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/coreml/diag"
)

// Backend does not exist on this system.
type Backend struct{ coreml.Backend }

// Host fails: there is no macOS here.
func Host() (Version, string, error) { return Version{}, "", unavailable() }

// New fails: Core ML needs macOS.
func New(Options) (*Backend, error) { return nil, unavailable() }

// Check fails: Core ML needs macOS.
func (*Backend) Check(*coreml.Model) error { return unavailable() }

// ComputePlan fails: Core ML needs macOS.
func (*Backend) ComputePlan(context.Context, *coreml.Model, string, string) (*coreml.ComputePlan, error) {
	return nil, unavailable()
}

func unavailable() error {
	return diag.Errorf(diag.Pos{}, diag.Unsupported, "Core ML needs macOS; this is %s", runtime.GOOS).
		WithHint("use the CPU engine: --backend cpu")
}
