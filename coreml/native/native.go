// Package native runs models through Apple's Core ML, from Go without cgo:
// Objective-C messages are sent with purego. On systems other than macOS New
// returns an error of class diag.Unsupported.
//
// The bridge is the same code on a Mac and under test on Linux, where GNUstep
// and a fake Core ML (testdata/fake) take the place of Apple's frameworks
// (build tag gnustep). Nothing of it was run on Apple hardware yet; "make
// mac-check" does that.
//
// Objective-C exceptions would end the process, so names, element types and
// shapes are checked in Go before every call, and what Core ML says of a model
// is compared with what its program says when it is loaded.
//
// Files for every system: native.go (Options), version.go (what a model needs
// of macOS), symbols.go (every class and selector that is used, with the
// macOS version that has it), nserror.go (what is known about Core ML's
// errors), elements.go (element types, compute units), inputs.go (checks before
// a call), strided.go (arrays with gaps), disk.go (models outside a folder of
// the disk, the cache of compiled copies), other.go (systems without Core ML).
//
// Files of the bridge: objc.go (messages, strings, collections, errors, pools),
// objc_darwin.go and objc_gnustep.go (the two runtimes), backend.go (loading),
// array.go (MLMultiArray), session.go (predictions), state.go (MLState),
// computeplan.go (MLComputePlan).
package native

import "log/slog"

// Name is the name of the backend.
const Name = "coreml"

// Options tune New. The zero value works for compiled models in folders.
type Options struct {
	// CacheDir is the folder for compiled copies of .mlpackage models and for
	// models that are not in a folder of the disk (zip archives, embedded
	// ones). It is made when needed. Without it such models are refused.
	CacheDir string
	// NoOutputBackings lets Core ML allocate every output, instead of handing
	// it buffers that are used again.
	NoOutputBackings bool
	// Logger is told what is compiled and copied; nil = nobody.
	Logger *slog.Logger
}
