package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"strings"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/coreml/tensor"
)

// readInputs reads every NAME=VALUES for the function's inputs.
func readInputs(fn *coreml.Function, specs []string) (map[string]*tensor.Tensor, error) {
	var names []string
	for _, f := range fn.Inputs {
		names = append(names, f.Name)
	}
	inputs := map[string]*tensor.Tensor{}
	for _, spec := range specs {
		name, text, ok := strings.Cut(spec, "=")
		if !ok {
			return nil, usagef("--input %s: want NAME=VALUES", spec)
		}
		f := fn.Input(name)
		switch {
		case f == nil:
			return nil, usagef("function %s has no input %q; it has %s", fn.Name, name, strings.Join(names, ", ")).
				WithHint("%s", didYouMean(name, names, ""))
		case inputs[name] != nil:
			return nil, usagef("input %s is given twice", name)
		}
		tn, err := readValues(text)
		if err != nil {
			return nil, err
		}
		if inputs[name], err = fit(f, tn); err != nil {
			return nil, usagef("input %s: %w", name, err)
		}
	}
	return inputs, nil
}

// readValues reads a .npy file, a .json file, or JSON.
func readValues(text string) (*tensor.Tensor, error) {
	switch {
	case strings.HasSuffix(strings.ToLower(text), ".npy"):
		return readNPY(text)
	case strings.HasSuffix(strings.ToLower(text), ".json"):
		data, err := readFileBounded(text)
		if err != nil {
			return nil, err
		}
		return jsonTensor(data)
	}
	return jsonTensor(text)
}

func readNPY(name string) (*tensor.Tensor, error) {
	f, err := os.Open(name)
	if err != nil {
		code := diag.IO
		if errors.Is(err, fs.ErrNotExist) {
			code = diag.NotFound
		}
		return nil, diag.Errorf(diag.Pos{}, code, "%w", err)
	}
	defer f.Close() //nolint:errcheck // read only
	tn, err := tensor.ReadNPY(f)
	if err != nil {
		return nil, diag.Errorf(diag.In(name), diag.Malformed, "%w", err)
	}
	return tn, nil
}

// jsonTensor reads nested lists of numbers or bools as an fp64 tensor.
func jsonTensor(text string) (*tensor.Tensor, error) {
	var v any
	dec := json.NewDecoder(bytes.NewReader([]byte(text)))
	if err := dec.Decode(&v); err != nil || dec.More() {
		return nil, usagef("%.40q is neither a .npy file, a .json file nor JSON", text)
	}
	var shape []int
	for at := v; ; {
		list, ok := at.([]any)
		if !ok {
			break
		}
		shape = append(shape, len(list))
		if len(list) == 0 || len(shape) > tensor.MaxRank {
			break
		}
		at = list[0]
	}
	values, err := flatten(v, shape, nil)
	if err != nil {
		return nil, err
	}
	tn := tensor.New(tensor.FP64, shape...)
	for i, x := range values {
		putFloat64(tn, i, x)
	}
	return tn, nil
}

// flatten collects the numbers of nested lists of the given shape.
func flatten(v any, shape []int, out []float64) ([]float64, error) {
	list, isList := v.([]any)
	if len(shape) == 0 {
		switch v := v.(type) {
		case float64:
			return append(out, v), nil
		case bool:
			if v {
				return append(out, 1), nil
			}
			return append(out, 0), nil
		}
		return nil, usagef("values: want numbers in lists of equal length, got %T", v)
	}
	if !isList || len(list) != shape[0] {
		return nil, usagef("values: the lists differ in length or depth")
	}
	var err error
	for _, el := range list {
		if out, err = flatten(el, shape[1:], out); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func putFloat64(tn *tensor.Tensor, i int, x float64) {
	bits := math.Float64bits(x)
	for k := range 8 {
		tn.Data[8*i+k] = byte(bits >> (8 * k))
	}
}

// fit converts a tensor to the type of a feature, and to its shape when only
// the list's nesting differs.
func fit(f *coreml.Feature, tn *tensor.Tensor) (*tensor.Tensor, error) {
	shape := tn.Shape
	if !tensor.Compatible(shape, f.Shape) && tensor.Known(f.Shape) {
		if tensor.Count(f.Shape) != tn.Len() {
			return nil, fmt.Errorf("got shape %s, want %s", tensor.ShapeString(shape), tensor.ShapeString(f.Shape))
		}
		shape = f.Shape
	}
	if tn.DType == f.DType {
		return &tensor.Tensor{DType: tn.DType, Shape: shape, Data: tn.Data}, nil
	}
	if f.DType.IsFloat() {
		return tensor.FromFloat32(f.DType, shape, tn.Float32s())
	}
	ints := make([]int, tn.Len())
	for i := range ints {
		x := tn.Float64(i)
		if x != math.Trunc(x) || !inRange(f.DType, x) {
			return nil, fmt.Errorf("value %d is %g, want %s", i, x, f.DType.Long())
		}
		ints[i] = int(x)
	}
	return tensor.FromInts(f.DType, shape, ints)
}

// inRange reports whether an integer type holds x.
func inRange(d tensor.DType, x float64) bool {
	if d == tensor.Bool {
		return x == 0 || x == 1
	}
	bits := d.Bits()
	if d.IsUnsigned() {
		return x >= 0 && x < math.Ldexp(1, bits)
	}
	return x >= -math.Ldexp(1, bits-1) && x < math.Ldexp(1, bits-1)
}
