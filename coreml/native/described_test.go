package native

import (
	"context"
	"encoding/binary"
	"slices"
	"sync"
	"testing"
	"testing/fstest"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/coreml/backendtest"
	"github.com/anepkg/anepkg/coreml/mlmodelc"
	"github.com/anepkg/anepkg/coreml/tensor"
)

// The cases of the conformance suite are a program and its weights. Core ML
// also wants coremldata.bin (mil.md section C.3), which this file makes from
// the program.

func protoField(num protowire.Number, b []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, num, protowire.BytesType), b)
}

func featureMessage(num protowire.Number, f coreml.Feature, state bool) []byte {
	typ, _ := arrayType(f.DType)
	var dims []byte
	for _, d := range f.Shape {
		dims = protowire.AppendVarint(dims, uint64(d))
	}
	var arr []byte
	if tensor.Known(f.Shape) {
		arr = protoField(1, dims)
	}
	arr = protowire.AppendVarint(protowire.AppendTag(arr, 2, protowire.VarintType), uint64(typ))
	kind := protoField(5, arr)
	if state {
		kind = protoField(8, protoField(1, arr))
	}
	return protoField(num, slices.Concat(protoField(1, []byte(f.Name)), protoField(3, kind)))
}

// coremlData makes coremldata.bin for the program of m, all of whose inputs
// have fixed shapes; a flexible output is declared without one.
func coremlData(m *coreml.Model) []byte {
	features := func(f *coreml.Function, in, out, state protowire.Number) (b []byte) {
		for _, x := range f.Inputs {
			b = append(b, featureMessage(in, x, false)...)
		}
		for _, x := range f.Outputs {
			b = append(b, featureMessage(out, x, false)...)
		}
		for _, x := range f.States {
			b = append(b, featureMessage(state, x, true)...)
		}
		return b
	}
	var desc []byte
	if len(m.Functions) == 1 {
		desc = features(m.Functions[0], 1, 10, 13)
	} else {
		for _, f := range m.Functions {
			desc = append(desc, protoField(20, append(protoField(1, []byte(f.Name)), features(f, 2, 3, 6)...))...)
		}
		desc = append(desc, protoField(21, []byte(m.Default))...)
	}
	desc = append(desc, protoField(100, nil)...)
	spec, layout := uint64(max(m.SpecVersion, 6)), uint64(5)
	if spec > 8 {
		layout = 9
	}
	le := binary.LittleEndian
	b := le.AppendUint32(nil, mlmodelc.MLProgram)
	words := func(vals ...uint64) {
		for _, v := range vals {
			b = le.AppendUint64(b, v)
		}
	}
	words(layout, 0, 0, uint64(len("generic")))
	b = append(b, "generic"...)
	words(spec, 0, 0, 0, uint64(len(desc)))
	b = append(b, desc...)
	for range m.Functions {
		b = append(le.AppendUint32(b, mlmodelc.MLProgram), make([]byte, 12)...)
	}
	return b
}

// typeNames are the words of metadata.json.
var typeNames = map[tensor.DType]string{tensor.FP16: "Float16", tensor.FP32: "Float32", tensor.FP64: "Double", tensor.Int32: "Int32", tensor.Int8: "Int8"}

// TestCoreMLData reads back what is made for every case.
func TestCoreMLData(t *testing.T) {
	read := 0
	ops, err := backendtest.Ops()
	if err != nil {
		t.Fatal(err)
	}
	for _, op := range ops {
		cases, err := backendtest.Cases(op)
		if err != nil {
			t.Fatal(err)
		}
		for i := range cases {
			m, err := coreml.Open(t.Context(), fstest.MapFS{"m.mlmodelc/model.mil": {Data: []byte(cases[i].Program)}}, "m.mlmodelc")
			if err != nil || notInCoreML(t.Context(), op, cases[i].Name) != "" || flexible(t.Context(), op, cases[i].Name) {
				continue
			}
			c, err := mlmodelc.ParseCoreMLData("coremldata.bin", coremlData(m))
			if err != nil {
				t.Fatalf("%s/%s: %v", op, cases[i].Name, err)
			}
			d := c.Description
			if len(d.Functions) != len(m.Functions) {
				t.Fatalf("%s/%s: %d functions, want %d", op, cases[i].Name, len(d.Functions), len(m.Functions))
			}
			for k, f := range m.Functions {
				got := d.Functions[k]
				for _, side := range []struct {
					want []coreml.Feature
					got  []mlmodelc.FeatureMeta
				}{{f.Inputs, got.Inputs}, {f.Outputs, got.Outputs}, {f.States, got.States}} {
					if len(side.want) != len(side.got) {
						t.Fatalf("%s/%s: %d features, want %d", op, cases[i].Name, len(side.got), len(side.want))
					}
					for n, w := range side.want {
						shape := w.Shape
						if !tensor.Known(shape) {
							shape = nil
						}
						if g := side.got[n]; g.Name != w.Name || g.DataType != typeNames[w.DType] || !slices.Equal(g.Shape, shape) {
							t.Errorf("%s/%s: got %+v, want %s %s %s", op, cases[i].Name, g, w.Name, w.DType, tensor.ShapeString(w.Shape))
						}
					}
				}
			}
			read++
		}
	}
	if read < 1800 {
		t.Errorf("%d cases", read)
	}
}

// caseTable finds cases by op, read once.
var caseTable = struct {
	sync.Mutex
	ops map[string][]backendtest.Case
}{ops: map[string][]backendtest.Case{}}

func caseNamed(op, name string) *backendtest.Case {
	caseTable.Lock()
	defer caseTable.Unlock()
	if caseTable.ops[op] == nil {
		cases, err := backendtest.Cases(op)
		if err != nil {
			return nil
		}
		caseTable.ops[op] = cases
	}
	cases := caseTable.ops[op]
	i := slices.IndexFunc(cases, func(c backendtest.Case) bool { return c.Name == name })
	if i < 0 {
		return nil
	}
	return &cases[i]
}

// notInCoreML says why a case cannot be passed through arrays of Core ML.
func notInCoreML(ctx context.Context, op, name string) string {
	c := caseNamed(op, name)
	if c == nil || c.Error {
		return ""
	}
	m, err := coreml.Open(ctx, fstest.MapFS{"m.mlmodelc/model.mil": {Data: []byte(c.Program)}}, "m.mlmodelc")
	if err != nil {
		return ""
	}
	defer m.Close() //nolint:errcheck // in memory
	for _, f := range m.Functions {
		if err := checkFeatures(m, f, Version{15, 0}); err != nil {
			return err.Error()
		}
	}
	for _, s := range append(c.Steps, c.Step) {
		for _, arrays := range []map[string]backendtest.Array{s.Inputs, s.Outputs} {
			for n, a := range arrays {
				if slices.Contains(a.Shape, 0) || len(a.Shape) == 0 {
					return n + " has no dimensions or no elements, which no array of Core ML has"
				}
			}
		}
	}
	return ""
}

// flexible tells whether an input of the case has a flexible shape, which
// coremlData cannot describe.
func flexible(ctx context.Context, op, name string) bool {
	c := caseNamed(op, name)
	if c == nil {
		return false
	}
	m, err := coreml.Open(ctx, fstest.MapFS{"m.mlmodelc/model.mil": {Data: []byte(c.Program)}}, "m.mlmodelc")
	if err != nil {
		return false
	}
	defer m.Close() //nolint:errcheck // in memory
	return slices.ContainsFunc(m.Functions, func(f *coreml.Function) bool {
		return slices.ContainsFunc(f.Inputs, func(x coreml.Feature) bool { return !tensor.Known(x.Shape) })
	})
}
