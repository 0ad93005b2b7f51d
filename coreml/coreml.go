// Package coreml opens a Core ML model, compiled (.mlmodelc) or not
// (.mlpackage), and describes it: functions with their inputs, outputs and
// states, the program, and the weight files. It also declares what a backend
// that can run a model offers. It imports no backend.
//
// Files: coreml.go (Model, Function, Feature), backend.go (Backend, Chooser,
// Session, State), profile.go (time per op), computeplan.go (where Core ML
// would run each op), open.go (Open and container detection), open_features.go
// (inputs, outputs and states), weights.go (weight files, memory-mapped where
// the file system allows).
package coreml

import (
	"io/fs"

	"github.com/anepkg/anepkg/coreml/mil"
	"github.com/anepkg/anepkg/coreml/mlmodelc"
	"github.com/anepkg/anepkg/coreml/tensor"
)

// Container is the form a model is stored in.
type Container string

// The containers.
const (
	MLModelC  Container = "mlmodelc"
	MLPackage Container = "mlpackage"
)

// Model is an opened model. It holds open weight files until Close.
type Model struct {
	Path        string // of the .mlmodelc or .mlpackage folder inside its file system
	Name        string // last path element without its suffix
	Container   Container
	ProgramFile string // path of model.mil or model.mlmodel
	SpecVersion int    // 9 = iOS 18 / macOS 15; 0 when not stated
	Program     *mil.Program
	Functions   []*Function
	Default     string // name of the default function
	UserMeta    map[string]string
	// Metadata is metadata.json of a compiled model; nil when absent or for
	// an .mlpackage. It is a claim about the program, not the program.
	Metadata *mlmodelc.Metadata
	// CoreMLData is coremldata.bin of a compiled model; nil when absent,
	// malformed (see Warnings), or for other forms.
	CoreMLData *mlmodelc.CoreMLData
	Weights    *Weights
	// Warnings are problems that did not prevent opening, for example an
	// unreadable metadata.json next to a good model.mil.
	Warnings []error

	fsys fs.FS
}

// FS returns the file system that the model was opened in; Path is a name
// inside it.
func (m *Model) FS() fs.FS { return m.fsys }

// Function describes one entry point as the program declares it, completed
// by the model description where the program has unknown dimensions.
type Function struct {
	Name    string
	Opset   string
	Default bool
	Inputs  []Feature // in description order where known, else program order
	Outputs []Feature // in program order
	States  []Feature
	Program *mil.Function
}

// Feature is an input, an output or a state.
type Feature struct {
	Name  string
	DType tensor.DType
	Shape []int // mil.Unknown (-1) where flexible; the default shape is Default
	// Default is the shape used when the caller does not choose (equal to
	// Shape unless flexible; nil when not known).
	Default    []int
	Enumerated [][]int  // allowed shapes, in declaration order where known
	Range      [][2]int // lower and upper bound per dimension; upper -1 = unbounded
	Optional   bool
	IsImage    bool // an image input; the program sees tensor<fp32, [1, C, H, W]>
}

// Function returns the function called name ("" = the default), or nil.
func (m *Model) Function(name string) *Function {
	if name == "" {
		name = m.Default
	}
	for _, f := range m.Functions {
		if f.Name == name {
			return f
		}
	}
	return nil
}

// Input returns the input called name, or nil.
func (f *Function) Input(name string) *Feature { return feature(f.Inputs, name) }

// Output returns the output called name, or nil.
func (f *Function) Output(name string) *Feature { return feature(f.Outputs, name) }

// State returns the state called name, or nil.
func (f *Function) State(name string) *Feature { return feature(f.States, name) }

func feature(fs []Feature, name string) *Feature {
	for i := range fs {
		if fs[i].Name == name {
			return &fs[i]
		}
	}
	return nil
}
