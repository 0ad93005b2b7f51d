package compile

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/coreml/mil"
	"github.com/anepkg/anepkg/coreml/mlmodelc"
	"github.com/anepkg/anepkg/coreml/mlpackage"
	"github.com/anepkg/anepkg/coreml/tensor"
)

// metadataJSON is the only element of metadata.json (mil.md section C.2).
type metadataJSON struct {
	OutputVersion   string            `json:"metadataOutputVersion"`
	SpecVersion     int               `json:"specificationVersion"`
	ModelType       map[string]string `json:"modelType"`
	ClassName       string            `json:"generatedClassName"`
	Short           string            `json:"shortDescription,omitempty"`
	Version         string            `json:"version,omitempty"`
	Author          string            `json:"author,omitempty"`
	License         string            `json:"license,omitempty"`
	Availability    *availability     `json:"availability"`
	IsUpdatable     string            `json:"isUpdatable"`
	Method          string            `json:"method"`
	ModelParameters []string          `json:"modelParameters"`
	UserDefined     map[string]string `json:"userDefinedMetadata"`
	DefaultFunction string            `json:"defaultFunctionName,omitempty"`
	functionJSON
	Functions []functionJSON `json:"functions,omitempty"`
}

type functionJSON struct {
	Name      string         `json:"name,omitempty"`
	Inputs    []schemaJSON   `json:"inputSchema"`
	Outputs   []schemaJSON   `json:"outputSchema"`
	States    []schemaJSON   `json:"stateSchema"`
	Compute   string         `json:"computePrecision,omitempty"`
	Storage   string         `json:"storagePrecision,omitempty"`
	Histogram map[string]int `json:"mlProgramOperationTypeHistogram"`
}

type schemaJSON struct {
	Name        string `json:"name"`
	Short       string `json:"shortDescription"`
	Type        string `json:"type"`
	Formatted   string `json:"formattedType"`
	DataType    string `json:"dataType,omitempty"`
	Shape       string `json:"shape,omitempty"`
	IsOptional  string `json:"isOptional"`
	Flexible    string `json:"hasShapeFlexibility,omitempty"`
	Flexibility string `json:"shapeFlexibility,omitempty"`
	Enumerated  string `json:"enumeratedShapes,omitempty"`
	Range       string `json:"shapeRange,omitempty"`
}

// availability are the first systems that read a specification version.
type availability struct {
	MacOS    string `json:"macOS"`
	TvOS     string `json:"tvOS"`
	VisionOS string `json:"visionOS"`
	WatchOS  string `json:"watchOS"`
	IOS      string `json:"iOS"`
	Catalyst string `json:"macCatalyst"`
}

// availabilities by specification version. Version 10 has no public sample.
var availabilities = map[int]*availability{
	6: {"12.0", "15.0", "1.0", "8.0", "15.0", "15.0"}, 7: {"13.0", "16.0", "1.0", "9.0", "16.0", "16.0"},
	8: {"14.0", "17.0", "1.0", "10.0", "17.0", "17.0"}, 9: {"15.0", "18.0", "2.0", "11.0", "18.0", "18.0"},
	10: {"26.0", "26.0", "26.0", "26.0", "26.0", "26.0"},
}

// times stands between the dimensions of a shape for people.
const times = " \u00d7 "

// metadata makes metadata.json.
func metadata(m *mlpackage.Model, className string) ([]byte, error) {
	d := m.Description
	avail := availabilities[d.SpecVersion]
	if avail == nil {
		return nil, diag.Errorf(diag.In(m.Program.File), diag.Unsupported, "specification version %d; 6 to 10 are known", d.SpecVersion)
	}
	out := metadataJSON{
		OutputVersion: "3.0", SpecVersion: d.SpecVersion, ModelType: map[string]string{"name": "MLModelType_mlProgram"},
		ClassName: className, Short: d.ShortDescription, Version: d.Version, Author: d.Author, License: d.License,
		Availability: avail, IsUpdatable: "0", Method: "predict", ModelParameters: []string{}, UserDefined: d.UserDefined,
	}
	if out.UserDefined == nil {
		out.UserDefined = map[string]string{}
	}
	for _, fm := range d.Functions {
		fn, err := functionOf(m.Program, fm, len(d.Functions) == 1)
		if err != nil {
			return nil, err
		}
		part, err := functionPart(m.Program, fn, fm)
		if err != nil {
			return nil, err
		}
		if !d.Multifunction {
			part.Name = ""
			out.functionJSON = part
			continue
		}
		out.Functions = append(out.Functions, part)
		if fm.Name == d.DefaultFunction {
			out.functionJSON = part
			out.Name = ""
			out.DefaultFunction = fm.Name
		}
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode([]metadataJSON{out}); err != nil {
		return nil, diag.Errorf(diag.In("metadata.json"), diag.Malformed, "%w", err)
	}
	return b.Bytes(), nil
}

// functionOf finds the function that a description is about.
func functionOf(p *mil.Program, fm mlmodelc.FunctionMeta, only bool) (*mil.Function, error) {
	for _, f := range p.Functions {
		if f.Name == fm.Name {
			return f, nil
		}
	}
	if only && len(p.Functions) == 1 {
		return p.Functions[0], nil
	}
	return nil, diag.Errorf(diag.In(p.File), diag.Mismatch, "the description names function %q, which the program lacks", fm.Name)
}

func functionPart(p *mil.Program, f *mil.Function, fm mlmodelc.FunctionMeta) (functionJSON, error) {
	out := functionJSON{Name: fm.Name, Histogram: histogram(f), Inputs: []schemaJSON{}, Outputs: []schemaJSON{}, States: []schemaJSON{}}
	out.Compute, out.Storage = precisions(f)
	for _, l := range []struct {
		to   *[]schemaJSON
		from []mlmodelc.FeatureMeta
	}{{&out.Inputs, fm.Inputs}, {&out.Outputs, fm.Outputs}, {&out.States, fm.States}} {
		for _, ft := range l.from {
			s, err := schema(ft)
			if err != nil {
				return out, diag.Errorf(diag.In(p.File), diag.Unsupported, "function %s: %w", fm.Name, err)
			}
			*l.to = append(*l.to, s)
		}
	}
	return out, nil
}

// schema describes a feature.
func schema(ft mlmodelc.FeatureMeta) (schemaJSON, error) {
	s := schemaJSON{Name: ft.Name, Short: ft.ShortDescription, Type: ft.Type, IsOptional: flag(ft.Optional)}
	switch ft.Type {
	case "MultiArray", "State":
	case "Int64", "Double", "String":
		s.Formatted = ft.Type
		return s, nil
	default:
		return s, diag.Errorf(diag.Pos{}, diag.Unsupported, "feature %q is of type %s; arrays, states, numbers and strings are supported", ft.Name, ft.Type)
	}
	s.DataType = ft.DataType
	if s.DataType == "" {
		s.DataType = "Float32"
	}
	s.Shape = tensor.ShapeString(ft.Shape)
	s.Formatted = ft.Type + " (" + s.DataType
	if len(ft.Shape) > 0 {
		s.Formatted += " " + dimsText(ft.Shape)
	}
	s.Formatted += ")"
	if ft.Type == "State" {
		return s, nil
	}
	s.Flexible = flag(len(ft.Enumerated) > 0 || len(ft.Range) > 0)
	switch {
	case len(ft.Enumerated) > 0:
		var people, machine []string
		for _, e := range ft.Enumerated {
			people, machine = append(people, dimsText(e)), append(machine, tensor.ShapeString(e))
		}
		s.Flexibility, s.Enumerated = strings.Join(people, " | "), "["+strings.Join(machine, ", ")+"]"
	case len(ft.Range) > 0:
		var people, machine []string
		for _, r := range ft.Range {
			people, machine = append(people, boundsText(r)), append(machine, tensor.ShapeString(r[:]))
		}
		s.Flexibility, s.Range = strings.Join(people, times), "["+strings.Join(machine, ", ")+"]"
	}
	return s, nil
}

func flag(b bool) string {
	if b {
		return "1"
	}
	return "0"
}

// boundsText is "4", "1...64" or "1..." for a dimension.
func boundsText(r [2]int) string {
	lo := strconv.Itoa(r[0])
	switch {
	case r[0] == r[1]:
		return lo
	case r[1] < 0:
		return lo + "..."
	}
	return lo + "..." + strconv.Itoa(r[1])
}
