//go:build darwin || gnustep

package native

import (
	"context"
	"log/slog"
	"os"
	"strings"
	"sync"
	"weak"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/coreml/diag"
)

var (
	selSetUnits     = use("MLModelConfiguration", "setComputeUnits:")
	selSetFunction  = use("MLModelConfiguration", "setFunctionName:")
	selCompile      = use("MLModel", "compileModelAtURL:error:")
	selLoad         = use("MLModel", "modelWithContentsOfURL:configuration:error:")
	selModelDesc    = use("MLModel", "modelDescription")
	selInputDescs   = use("MLModelDescription", "inputDescriptionsByName")
	selOutputDescs  = use("MLModelDescription", "outputDescriptionsByName")
	selConstraint   = use("MLFeatureDescription", "multiArrayConstraint")
	selConstraintDT = use("MLMultiArrayConstraint", "dataType")

	classConfiguration = useClass("MLModelConfiguration")
	classModel         = useClass("MLModel")
)

// Linked reports whether this build has the bridge.
const Linked = true

// Backend is Core ML.
type Backend struct {
	opts  Options
	host  Version
	build string
	disk  disk

	mu      sync.Mutex
	folders map[weak.Pointer[coreml.Model]]string
}

// Host returns the version and the build of this macOS.
func Host() (Version, string, error) { return hostSystem() }

// New loads Core ML. It is an error of class diag.Unsupported when the system
// is older than macOS 12.3, which the bridge needs.
func New(o Options) (*Backend, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	host, build, err := hostSystem()
	if err != nil {
		return nil, diag.Errorf(diag.Pos{}, diag.Unsupported, "%w", err)
	}
	if host.Before(bytesSince) {
		return nil, diag.Errorf(diag.Pos{}, diag.Unsupported, "the Core ML backend needs macOS %s; this is macOS %s", bytesSince, host).
			WithHint("use the CPU engine: --backend cpu")
	}
	if err := open(); err != nil {
		return nil, diag.Errorf(diag.Pos{}, diag.Unsupported, "Core ML cannot be loaded: %w", err)
	}
	b := &Backend{opts: o, host: host, build: build, folders: map[weak.Pointer[coreml.Model]]string{}}
	b.disk = disk{dir: o.CacheDir, build: build, log: o.Logger, compile: compile}
	return b, nil
}

// Name returns "coreml".
func (*Backend) Name() string { return Name }

// Check tells, without loading anything, whether this system's Core ML can
// run every function of m. The error is of class diag.Unsupported and names
// the macOS that could.
func (b *Backend) Check(m *coreml.Model) error {
	if err := checkVersion(m, b.host); err != nil {
		return err
	}
	for _, f := range m.Functions {
		if err := checkFeatures(m, f, b.host); err != nil {
			return err
		}
	}
	return nil
}

// Load loads one function of m. What only the CPU engine has (an observer, a
// profile, loading without weights) is an error of class diag.Unsupported;
// Precision and Threads have no meaning here. A model that Core ML refuses is
// an error of class diag.RunFailed with what it says.
func (b *Backend) Load(ctx context.Context, m *coreml.Model, function string, opts coreml.LoadOptions) (coreml.Session, error) {
	fn := m.Function(function)
	if fn == nil {
		return nil, diag.Errorf(diag.In(m.Path), diag.NotFound, "no function %q; the model has %s", function, functionNames(m))
	}
	if what := onlyCPU(opts); what != "" {
		return nil, diag.Errorf(diag.In(m.Path), diag.Unsupported, "Core ML does not give %s", what).WithHint("use the CPU engine: --backend cpu")
	}
	units, err := unitsOf(opts.ComputeUnits, b.host)
	if err != nil {
		return nil, err
	}
	if err := checkVersion(m, b.host); err != nil {
		return nil, err
	}
	if err := checkFeatures(m, fn, b.host); err != nil {
		return nil, err
	}
	dir, err := b.folder(ctx, m)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s := &session{backend: b, path: m.Path, fn: fn, backings: !b.opts.NoOutputBackings}
	err = pooled(func() error {
		model, err := loadModel(m, dir, fn, units)
		if err != nil {
			return err
		}
		if err := checkDescription(m, fn, model); err != nil {
			release(model)
			return err
		}
		s.open(model)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// onlyCPU names what opts ask for that Core ML cannot do.
func onlyCPU(opts coreml.LoadOptions) string {
	switch {
	case opts.Observer != nil:
		return "the results of single ops"
	case opts.Profile != nil:
		return "the time of single ops"
	case opts.WithoutWeights:
		return "a load without weights"
	}
	return ""
}

func functionNames(m *coreml.Model) string {
	names := make([]string, len(m.Functions))
	for i, f := range m.Functions {
		names[i] = f.Name
	}
	return strings.Join(names, ", ")
}

// folder returns the .mlmodelc folder of m, found once for each model.
func (b *Backend) folder(ctx context.Context, m *coreml.Model) (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	key := weak.Make(m)
	if dir, ok := b.folders[key]; ok {
		if _, err := os.Stat(dir); err == nil {
			return dir, nil
		}
	}
	dir, err := b.disk.folder(ctx, m)
	if err == nil {
		b.folders[key] = dir
	}
	return dir, err
}

// compile compiles an .mlpackage into a temporary folder.
func compile(src string) (string, error) {
	var out string
	err := pooled(func() error {
		url, f := attempt(func(slot uintptr) id {
			return sendID(classModel.obj, selCompile, uintptr(fileURL(src)), slot)
		})
		if f != nil {
			return failed(src, "compiling", *f)
		}
		out = goString(sendID(url, selPath))
		return nil
	})
	return out, err
}

// configuration makes an MLModelConfiguration; the caller releases it. A
// function is named only in models with several: Core ML refuses the name of
// the only one ("functionName must be nil").
func configuration(m *coreml.Model, fn *coreml.Function, units int) id {
	cfg := create(classConfiguration)
	send(cfg, selSetUnits, uintptr(units))
	if len(m.Functions) > 1 {
		send(cfg, selSetFunction, uintptr(nsString(fn.Name)))
	}
	return cfg
}

// loadModel returns an MLModel that the caller owns.
func loadModel(m *coreml.Model, dir string, fn *coreml.Function, units int) (id, error) {
	cfg := configuration(m, fn, units)
	defer release(cfg)
	model, f := attempt(func(slot uintptr) id {
		return sendID(classModel.obj, selLoad, uintptr(fileURL(dir)), uintptr(cfg), slot)
	})
	if f != nil {
		return 0, failed(m.Path, "loading function "+fn.Name, *f)
	}
	return sendID(model, selRetain), nil
}

// checkDescription compares the names and element types that Core ML reads
// with those of the program: a difference would end the first prediction
// with an exception.
func checkDescription(m *coreml.Model, fn *coreml.Function, model id) error {
	desc := sendID(model, selModelDesc)
	if desc == 0 {
		return nil
	}
	for _, side := range []struct {
		kind string
		get  *method
		fs   []coreml.Feature
	}{{"input", selInputDescs, fn.Inputs}, {"output", selOutputDescs, fn.Outputs}} {
		dict := sendID(desc, side.get)
		if dict == 0 {
			continue
		}
		for _, f := range side.fs {
			d := sendID(dict, selForKey, uintptr(nsString(f.Name)))
			if d == 0 {
				return mismatch(m, "Core ML reads no %s %q of function %s, the program has it; Core ML reads %s", side.kind, f.Name, fn.Name, keysOf(dict))
			}
			c := sendID(d, selConstraint)
			if c == 0 {
				return mismatch(m, "Core ML reads %s %q of function %s as something other than an array", side.kind, f.Name, fn.Name)
			}
			if got := elementType(int(send(c, selConstraintDT))); got != f.DType {
				return mismatch(m, "Core ML reads %s %q of function %s as %s, the program has %s", side.kind, f.Name, fn.Name, got, f.DType)
			}
		}
	}
	return nil
}

func mismatch(m *coreml.Model, format string, args ...any) error {
	return diag.Errorf(diag.In(m.Path), diag.Mismatch, format, args...).
		WithHint("the model's description differs from its program: anepkg validate says more; the CPU engine runs the program: --backend cpu")
}

// keysOf lists the keys of a dictionary with string keys.
func keysOf(dict id) string {
	var names []string
	for _, k := range items(sendID(dict, selAllKeys)) {
		names = append(names, goString(k))
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
