// Package mlmodelc reads the files of a compiled Core ML model other than
// the program and the weights: metadata.json and coremldata.bin.
//
// Files: metadata.go (Metadata), parse.go (metadata.json), coremldata.go
// (coremldata.bin), description.go (the protobuf ModelDescription in it).
package mlmodelc

// Metadata is metadata.json (mil.md section C.2). Every field is a claim.
type Metadata struct {
	SpecVersion      int
	ModelType        string // "MLModelType_mlProgram", ...
	GeneratedClass   string
	ShortDescription string
	Author           string
	License          string
	Version          string
	Availability     map[string]string // "macOS" -> "15.0"
	StoragePrecision string
	ComputePrecision string
	UserDefined      map[string]string
	DefaultFunction  string
	Multifunction    bool // functions are listed, be it one
	// Functions has one entry per function; a single-function model has one
	// called "main" made from the top-level schemas.
	Functions []FunctionMeta
}

// FunctionMeta is the description of one function.
type FunctionMeta struct {
	Name      string
	Inputs    []FeatureMeta
	Outputs   []FeatureMeta
	States    []FeatureMeta
	Histogram map[string]int // "Ios18.constexprLutToDense" -> 98
}

// FeatureMeta is one schema entry.
type FeatureMeta struct {
	Name             string
	ShortDescription string
	Type             string // "MultiArray", "State", "Image", ...
	DataType         string // "Float16", "Int32", ...
	Shape            []int  // nil when the file has "[]" or none
	Enumerated       [][]int
	Range            [][2]int // upper -1 = unbounded
	Optional         bool
}
