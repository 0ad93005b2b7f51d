//go:build !darwin && !gnustep

package native

import (
	"context"
	"runtime"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/coreml/diag"
)

// Linked reports whether this build has the bridge.
const Linked = false

// Backend does not exist on this system.
type Backend struct{ coreml.Backend }

// Host fails: there is no macOS here.
func Host() (Version, string, error) { return Version{}, "", errUnavailable }

// New fails: Core ML needs macOS.
func New(Options) (*Backend, error) { return nil, errUnavailable }

// Check fails: Core ML needs macOS.
func (*Backend) Check(*coreml.Model) error { return errUnavailable }

// ComputePlan fails: Core ML needs macOS.
func (*Backend) ComputePlan(context.Context, *coreml.Model, string, string) (*coreml.ComputePlan, error) {
	return nil, errUnavailable
}

var errUnavailable error = diag.Errorf(diag.Pos{}, diag.Unsupported, "Core ML needs macOS; this is %s", runtime.GOOS).
	WithHint("use the CPU engine: --backend cpu")
