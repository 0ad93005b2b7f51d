// Package backendtest is the conformance suite that every backend passes: one
// small program for each case, its inputs, and the results that numpy, torch
// or coremltools computed. No engine of this project took part in making
// them; testdata/ops.zip is a copy of the project's shared vectors, whose
// README tells how each expected value and tolerance came about.
//
// Files: vectors.go (the cases), compare.go (when two tensors count as equal),
// run.go (Run, the ops), report.go (what ran, and how it ended), models.go
// (RunModels, real networks).
package backendtest

import (
	"archive/zip"
	"bytes"
	_ "embed"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/anepkg/anepkg/coreml/tensor"
)

//go:embed testdata/ops.zip
var opsZip []byte

// Array is a tensor as the vectors write it. A class label has Value; a
// dictionary has Keys and Values.
type Array struct {
	DType  string    `json:"dtype"`
	Shape  []int     `json:"shape"`
	Data   string    `json:"data"` // base64, little endian
	Value  string    `json:"value"`
	Keys   []string  `json:"keys"`
	Values []float64 `json:"values"`
}

// Tolerance allows |got - want| <= Abs + Rel*|want|.
type Tolerance struct {
	Abs float64 `json:"abs"`
	Rel float64 `json:"rel"`
}

// Step is one call of a case.
type Step struct {
	Function    string           `json:"function"`
	Inputs      map[string]Array `json:"inputs"`
	Outputs     map[string]Array `json:"outputs"`
	StatesAfter map[string]Array `json:"states_after"`
}

// Case is a program and what it must compute, or a program that must fail.
type Case struct {
	Step
	Name          string           `json:"name"`
	Program       string           `json:"program"` // text MIL
	Weights       string           `json:"weights"` // weight.bin in base64
	States        map[string]Array `json:"states"`  // before the first call
	Steps         []Step           `json:"steps"`   // instead of the case's own
	Tolerance     Tolerance        `json:"tolerance"`
	Tight         *Tolerance       `json:"tolerance_fp32_accumulation"`
	Error         bool             `json:"error"`
	UnorderedAxis *int             `json:"unordered_axis"`
}

// steps returns the calls in order.
func (c *Case) steps() []Step {
	if len(c.Steps) > 0 {
		return c.Steps
	}
	return []Step{c.Step}
}

// tolerance is the one for engines that accumulate in fp32, when tight is
// asked for and the case has one.
func (c *Case) tolerance(tight bool) Tolerance {
	if tight && c.Tight != nil {
		return *c.Tight
	}
	return c.Tolerance
}

var archive = sync.OnceValues(func() (*zip.Reader, error) {
	return zip.NewReader(bytes.NewReader(opsZip), int64(len(opsZip)))
})

// Ops lists the files of cases: one for each op, and composite_* ones of
// several ops.
func Ops() ([]string, error) {
	z, err := archive()
	if err != nil {
		return nil, err
	}
	var names []string
	for _, f := range z.File {
		names = append(names, strings.TrimSuffix(f.Name, ".json"))
	}
	slices.Sort(names)
	return names, nil
}

// decoded holds the cases of each op that was asked for: op -> func() ([]Case, error).
var decoded sync.Map

// Cases returns the cases of one op, decoded when first asked for. The slice
// is the caller's; the maps in it are shared and must not be changed.
func Cases(op string) ([]Case, error) {
	f, _ := decoded.LoadOrStore(op, sync.OnceValues(func() ([]Case, error) { return readCases(op) }))
	cases, err := f.(func() ([]Case, error))()
	return slices.Clone(cases), err
}

func readCases(op string) ([]Case, error) {
	z, err := archive()
	if err != nil {
		return nil, err
	}
	f, err := z.Open(op + ".json")
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(f)
	if err != nil {
		return nil, err
	}
	var file struct {
		Cases []Case `json:"cases"`
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, fmt.Errorf("%s.json: %w", op, err)
	}
	return file.Cases, f.Close()
}

// Tensor decodes a numeric array, a label or a dictionary.
func (a Array) Tensor() (*tensor.Tensor, error) {
	switch {
	case a.Keys != nil:
		if len(a.Keys) != len(a.Values) {
			return nil, fmt.Errorf("dictionary of %d keys and %d values", len(a.Keys), len(a.Values))
		}
		t := tensor.New(tensor.FP64, len(a.Values))
		t.Keys = a.Keys
		for i, v := range a.Values {
			binary.LittleEndian.PutUint64(t.Data[8*i:], math.Float64bits(v))
		}
		return t, nil
	case a.DType == "string":
		return &tensor.Tensor{DType: tensor.String, Shape: []int{}, Strings: []string{a.Value}}, nil
	}
	d, ok := tensor.ParseDType(a.DType)
	if !ok {
		return nil, fmt.Errorf("unknown element type %q", a.DType)
	}
	data, err := base64.StdEncoding.DecodeString(a.Data)
	if err != nil {
		return nil, err
	}
	t := &tensor.Tensor{DType: d, Shape: append([]int{}, a.Shape...), Data: data}
	if err := t.Check(); err != nil {
		return nil, err
	}
	return t, nil
}

func tensorsOf(m map[string]Array) (map[string]*tensor.Tensor, error) {
	out := make(map[string]*tensor.Tensor, len(m))
	for name, a := range m {
		t, err := a.Tensor()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		out[name] = t
	}
	return out, nil
}
