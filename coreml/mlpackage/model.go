// Package mlpackage reads an .mlpackage: Manifest.json and the model
// specification, a protobuf file (apple/coremltools, mlmodel/format). Only the
// fields that matter for an ML Program are decoded; the Program is the same
// tree that the parser of text MIL makes.
//
// Files: manifest.go (Manifest.json), model.go (the specification),
// program.go (MIL.proto: program, functions, ops), type.go and value.go
// (MIL.proto: types and constants), wire (protobuf fields).
package mlpackage

import (
	"strconv"

	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/coreml/mil"
	"github.com/anepkg/anepkg/coreml/mlmodelc"
	"github.com/anepkg/anepkg/coreml/wire"
)

// Model is a model specification of an ML Program.
type Model struct {
	// Description has everything but Availability, the precisions and the
	// histograms, which only a compiler adds.
	Description *mlmodelc.Metadata
	Program     *mil.Program
}

// firstSpec is the specification version that introduced ML Programs. An
// earlier preview of coremltools wrote another form under version 5.
const firstSpec = 6

// Numbers of the fields of message Model (Model.proto).
const (
	fieldSpecVersion = 1
	fieldDescription = 2
	fieldMLProgram   = 502
)

// ParseModel reads a model specification (model.mlmodel). A model that is no
// ML Program is an error of class diag.Unsupported that names what it is.
func ParseModel(file string, data []byte) (*Model, error) {
	src := wire.NewSource(file, data)
	var desc, prog []byte
	other, spec := 0, 0
	known := false
	err := src.Each(src.Message(), func(f wire.Field) error {
		switch {
		case f.Num == fieldSpecVersion && !f.IsBytes() && f.Uint < 1<<20:
			spec, known = int(f.Uint), true
		case f.Num == fieldDescription && f.IsBytes():
			desc = f.Bytes
		case f.Num == fieldMLProgram && f.IsBytes():
			prog = f.Bytes
		case mlmodelc.TypeName(f.Num) != "" && f.IsBytes():
			other = f.Num
		}
		return nil
	})
	switch {
	case err != nil && !known:
		return nil, diag.Errorf(diag.In(file), diag.Malformed, "not a Core ML model specification: %w", err)
	case err != nil:
		return nil, err
	case prog == nil && other != 0:
		name := mlmodelc.TypeName(other)
		return nil, diag.Errorf(diag.In(file), diag.Unsupported, "the model is a %s (specification version %d); only ML Programs are supported", name, spec)
	case prog == nil:
		return nil, diag.Errorf(diag.In(file), diag.Malformed, "not a Core ML model specification: no model inside")
	case spec < firstSpec:
		return nil, diag.Errorf(diag.In(file), diag.Unsupported, "an ML Program of specification version %d, a preview form; the first supported version is %d (iOS 15)", spec, firstSpec)
	}
	m := &Model{Description: &mlmodelc.Metadata{}}
	if desc != nil {
		if m.Description, err = mlmodelc.ParseDescription(src, desc); err != nil {
			return nil, err
		}
	}
	m.Description.SpecVersion = spec
	m.Description.ModelType = "MLModelType_mlProgram"
	m.Program, err = parseProgram(src, prog, spec)
	if err != nil {
		return nil, err
	}
	m.Program.File = file
	return m, nil
}

// opsets maps the names in the protobuf to those in text MIL.
var opsets = map[string]string{"CoreML5": "ios15", "CoreML6": "ios16", "CoreML7": "ios17", "CoreML8": "ios18", "CoreML9": "ios26"}

// Opset returns the text MIL name of a protobuf opset, "" when not known.
func Opset(name string) string { return opsets[name] }

// quote is used in messages for names that come from the file.
func quote(s string) string {
	if len(s) > 80 {
		s = s[:80] + "..."
	}
	return strconv.Quote(s)
}
