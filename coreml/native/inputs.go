package native

import (
	"maps"
	"slices"
	"strings"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/coreml/mil"
	"github.com/anepkg/anepkg/coreml/tensor"
)

// checkFeatures tells whether the bridge can pass what fn takes and returns:
// multi-arrays of fp16, fp32, fp64, int32 and, from macOS 26 on, int8.
func checkFeatures(m *coreml.Model, fn *coreml.Function, host Version) error {
	check := func(kind string, fs []coreml.Feature) error {
		for _, f := range fs {
			_, ok := arrayType(f.DType)
			switch {
			case f.IsImage:
				return diag.Errorf(diag.In(m.Path), diag.Unsupported, "%s %q of function %s is an image; the Core ML backend passes arrays only", kind, f.Name, fn.Name).
					WithHint("the CPU engine takes it as an array: --backend cpu")
			case !ok || f.DType == tensor.Int8 && host.Major < 26:
				return diag.Errorf(diag.In(m.Path), diag.Unsupported, "%s %q of function %s is %s, for which Core ML has no array on macOS %s", kind, f.Name, fn.Name, f.DType, host).
					WithHint("the CPU engine runs it: --backend cpu")
			case kind == "state" && !tensor.Known(f.Shape):
				return diag.Errorf(diag.In(m.Path), diag.Unsupported, "state %q of function %s has the flexible shape %s", f.Name, fn.Name, tensor.ShapeString(f.Shape))
			}
		}
		return nil
	}
	for _, s := range []struct {
		kind string
		fs   []coreml.Feature
	}{{"input", fn.Inputs}, {"output", fn.Outputs}, {"state", fn.States}} {
		if err := check(s.kind, s.fs); err != nil {
			return err
		}
	}
	return nil
}

// checkInputs tells whether Core ML could be given these inputs: every one
// that is not optional is there, none is unknown, and element types and
// shapes are what the function allows. Anything else is an error of class
// diag.Usage.
func checkInputs(path string, fn *coreml.Function, inputs map[string]*tensor.Tensor) error {
	for i := range fn.Inputs {
		f := &fn.Inputs[i]
		t := inputs[f.Name]
		if t == nil {
			if f.Optional {
				continue
			}
			return usage(path, "input %q is missing: %s wants %s", f.Name, fn.Name, mil.TensorOf(f.DType, f.Shape...))
		}
		if err := checkInput(path, fn, f, t); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(inputs)) {
		if fn.Input(name) == nil {
			return usage(path, "function %s has no input %q; it has %s", fn.Name, name, featureNames(fn.Inputs))
		}
	}
	return nil
}

func checkInput(path string, fn *coreml.Function, f *coreml.Feature, t *tensor.Tensor) error {
	if t.DType != f.DType || !tensor.Compatible(t.Shape, f.Shape) || !tensor.Known(t.Shape) {
		return usage(path, "input %q is %s, function %s wants %s", f.Name, mil.TensorOf(t.DType, t.Shape...), fn.Name, mil.TensorOf(f.DType, f.Shape...))
	}
	if err := t.Check(); err != nil {
		return usage(path, "input %q: %w", f.Name, err)
	}
	if slices.Contains(t.Shape, 0) {
		return usage(path, "input %q has no elements: its shape is %s", f.Name, tensor.ShapeString(t.Shape))
	}
	if len(f.Enumerated) > 0 && !slices.ContainsFunc(f.Enumerated, func(e []int) bool { return slices.Equal(e, t.Shape) }) {
		return usage(path, "input %q has shape %s, function %s allows %v", f.Name, tensor.ShapeString(t.Shape), fn.Name, f.Enumerated)
	}
	for i, r := range f.Range {
		if i < len(t.Shape) && (t.Shape[i] < r[0] || r[1] >= 0 && t.Shape[i] > r[1]) {
			return usage(path, "input %q has shape %s, dimension %d must be %d to %d in function %s", f.Name, tensor.ShapeString(t.Shape), i, r[0], r[1], fn.Name)
		}
	}
	return nil
}

func usage(path, format string, args ...any) error {
	return diag.Errorf(diag.In(path), diag.Usage, format, args...)
}

func featureNames(fs []coreml.Feature) string {
	if len(fs) == 0 {
		return "none"
	}
	names := make([]string, len(fs))
	for i := range fs {
		names[i] = fs[i].Name
	}
	return strings.Join(names, ", ")
}
