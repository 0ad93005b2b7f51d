package mlmodelc

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/coreml/tensor"
)

// maxMetadata bounds metadata.json; the largest real ones have about 100 KB.
const maxMetadata = 64 << 20

// ParseMetadata reads metadata.json: an array with one object, or the object
// alone. Numbers and strings are taken for each other, and what is missing
// stays zero; only a file that is no such JSON is an error.
func ParseMetadata(file string, data []byte) (*Metadata, error) {
	at := diag.In(file)
	if len(data) > maxMetadata {
		return nil, diag.Errorf(at, diag.TooLarge, "metadata of %d bytes, the limit is %d", len(data), maxMetadata)
	}
	var raw any
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	if err := dec.Decode(&raw); err != nil {
		return nil, jsonError(file, data, dec.InputOffset(), err)
	}
	if list, ok := raw.([]any); ok && len(list) > 0 {
		raw = list[0]
	}
	obj, ok := raw.(map[string]any)
	if !ok {
		return nil, diag.Errorf(at, diag.Malformed, "got %s, want an array with one object", jsonKind(raw))
	}
	o := object(obj)
	m := &Metadata{
		SpecVersion:      o.number("specificationVersion"),
		ModelType:        o.object("modelType").text("name"),
		GeneratedClass:   o.text("generatedClassName"),
		ShortDescription: o.text("shortDescription"),
		Author:           o.text("author"),
		License:          o.text("license"),
		Version:          o.text("version"),
		Availability:     o.object("availability").texts(),
		StoragePrecision: o.text("storagePrecision"),
		ComputePrecision: o.text("computePrecision"),
		UserDefined:      o.object("userDefinedMetadata").texts(),
		DefaultFunction:  o.text("defaultFunctionName"),
	}
	if m.ModelType == "" {
		m.ModelType = o.text("modelType")
	}
	for _, f := range o.list("functions") {
		m.Functions = append(m.Functions, functionMeta(f, f.text("name")))
	}
	m.Multifunction = len(m.Functions) > 0
	if len(m.Functions) == 0 {
		m.Functions = []FunctionMeta{functionMeta(o, mainFunction)}
	}
	return m, nil
}

// jsonError places a decoding error: at the byte that a syntax error names,
// else at off.
func jsonError(file string, data []byte, off int64, err error) error {
	var se *json.SyntaxError
	if errors.As(err, &se) {
		off = se.Offset - 1
	}
	before := data[:min(max(off, 0), int64(len(data)))]
	line := 1 + bytes.Count(before, []byte("\n"))
	col := len(before) - bytes.LastIndexByte(before, '\n')
	return diag.Errorf(diag.Pos{File: file, Line: line, Col: col}, diag.Malformed, "%w", err)
}

func jsonKind(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case []any:
		return "an empty array"
	case string:
		return "a string"
	case bool:
		return "a bool"
	}
	return "a number"
}

func functionMeta(o object, name string) FunctionMeta {
	f := FunctionMeta{Name: name, Histogram: map[string]int{}}
	f.Inputs = featureMetas(o.list("inputSchema"))
	f.Outputs = featureMetas(o.list("outputSchema"))
	f.States = featureMetas(o.list("stateSchema"))
	counts := o.object("mlProgramOperationTypeHistogram")
	for op := range counts {
		f.Histogram[op] = counts.number(op)
	}
	return f
}

func featureMetas(list []object) []FeatureMeta {
	var out []FeatureMeta
	for _, o := range list {
		f := FeatureMeta{Name: o.text("name"), ShortDescription: o.text("shortDescription"), Type: o.text("type"), DataType: o.text("dataType"), Optional: o.text("isOptional") == "1" || o.text("isOptional") == "true"}
		f.Shape = ints(o["shape"])
		for _, s := range lists(o["enumeratedShapes"]) {
			f.Enumerated = append(f.Enumerated, ints(s))
		}
		for _, s := range lists(o["shapeRange"]) {
			r := ints(s)
			if len(r) != 2 || len(f.Range) == tensor.MaxRank {
				f.Range = nil
				break
			}
			f.Range = append(f.Range, [2]int{r[0], max(r[1], -1)})
		}
		out = append(out, f)
	}
	return out
}

// object is a JSON object whose members may have another type than expected.
type object map[string]any

func (o object) object(key string) object {
	m, _ := o[key].(map[string]any)
	return m
}

func (o object) list(key string) []object {
	l, _ := o[key].([]any)
	var out []object
	for _, e := range l {
		if m, ok := e.(map[string]any); ok && len(out) < maxFeatures {
			out = append(out, m)
		}
	}
	return out
}

func (o object) text(key string) string { return scalar(o[key]) }

func scalar(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case json.Number:
		return v.String()
	case bool:
		return strconv.FormatBool(v)
	}
	return ""
}

func (o object) number(key string) int {
	f, err := strconv.ParseFloat(o.text(key), 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > 1<<31-1 {
		return 0
	}
	return int(f)
}

// texts returns the members that are scalars.
func (o object) texts() map[string]string {
	out := make(map[string]string, len(o))
	for k, v := range o {
		switch v.(type) {
		case string, json.Number, bool:
			out[k] = scalar(v)
		}
	}
	return out
}

// lists returns the members of an array that may be written as a string.
func lists(v any) []any {
	if s, ok := v.(string); ok {
		v = nil
		dec := json.NewDecoder(strings.NewReader(s))
		dec.UseNumber()
		if dec.Decode(&v) != nil {
			return nil
		}
	}
	l, _ := v.([]any)
	return l
}

// ints returns a shape, which may be written as a string; nil when it is
// empty or no list of integers.
func ints(v any) []int {
	l := lists(v)
	if len(l) > tensor.MaxRank {
		return nil
	}
	var out []int
	for _, e := range l {
		n, ok := e.(json.Number)
		if !ok {
			return nil
		}
		i, err := strconv.ParseInt(n.String(), 10, 64)
		if err != nil || i < -1 || i > tensor.MaxElements || int64(int(i)) != i {
			return nil
		}
		out = append(out, int(i))
	}
	return out
}
