package mlmodelc_test

import (
	"encoding/binary"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/coreml/mlmodelc"
	"github.com/anepkg/anepkg/coreml/sharedtest"
)

const metadata = `[ {
  "specificationVersion" : 9,
  "modelType" : { "name" : "MLModelType_mlProgram" },
  "generatedClassName" : "qwen_FFN",
  "availability" : { "macOS" : "15.0", "iOS" : "18.0" },
  "storagePrecision" : "Mixed (Float16, UInt6)",
  "userDefinedMetadata" : { "com.anemll.batch_size" : "64", "odd" : 3 },
  "defaultFunctionName" : "infer",
  "functions" : [ {
    "name" : "infer",
    "inputSchema" : [
      { "name" : "ids", "type" : "MultiArray", "dataType" : "Int32", "isOptional" : "1", "shape" : "[1, 1]", "hasShapeFlexibility" : "1", "enumeratedShapes" : "[[1, 1], [1, 64]]" },
      { "name" : "x", "type" : "MultiArray", "dataType" : "Float16", "shape" : [1, 4], "shapeRange" : "[[0, 2], [0, -1]]" } ],
    "outputSchema" : [ { "name" : "y", "type" : "MultiArray", "dataType" : "Float16", "shape" : "[]" } ],
    "stateSchema" : [ { "name" : "kv", "type" : "State", "dataType" : "Float16", "shape" : "[56, 8, 2048, 128]" } ],
    "mlProgramOperationTypeHistogram" : { "Ios18.conv" : 98, "Select" : "2" }
  } ]
} ]`

func wantMetadata() *mlmodelc.Metadata {
	return &mlmodelc.Metadata{
		SpecVersion: 9, ModelType: "MLModelType_mlProgram", GeneratedClass: "qwen_FFN",
		Availability:     map[string]string{"macOS": "15.0", "iOS": "18.0"},
		StoragePrecision: "Mixed (Float16, UInt6)",
		UserDefined:      map[string]string{"com.anemll.batch_size": "64", "odd": "3"},
		DefaultFunction:  "infer",
		Multifunction:    true,
		Functions: []mlmodelc.FunctionMeta{{
			Name: "infer",
			Inputs: []mlmodelc.FeatureMeta{
				{Name: "ids", Type: "MultiArray", DataType: "Int32", Shape: []int{1, 1}, Enumerated: [][]int{{1, 1}, {1, 64}}, Optional: true},
				{Name: "x", Type: "MultiArray", DataType: "Float16", Shape: []int{1, 4}, Range: [][2]int{{0, 2}, {0, -1}}},
			},
			Outputs:   []mlmodelc.FeatureMeta{{Name: "y", Type: "MultiArray", DataType: "Float16"}},
			States:    []mlmodelc.FeatureMeta{{Name: "kv", Type: "State", DataType: "Float16", Shape: []int{56, 8, 2048, 128}}},
			Histogram: map[string]int{"Ios18.conv": 98, "Select": 2},
		}},
	}
}

func TestParseMetadata(t *testing.T) {
	object := strings.TrimSuffix(strings.TrimPrefix(metadata, "["), "]")
	for name, src := range map[string]string{"array": metadata, "object": object} {
		t.Run(name, func(t *testing.T) {
			got, err := mlmodelc.ParseMetadata("metadata.json", []byte(src))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(wantMetadata(), got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestParseMetadataErrors(t *testing.T) {
	for src, want := range map[string]string{
		"":             "metadata.json:1:1: EOF",
		"[]":           "metadata.json: got an empty array, want an array with one object",
		`"x"`:          "metadata.json: got a string",
		"[{\n\"a\": }": "metadata.json:2:6: invalid character",
	} {
		_, err := mlmodelc.ParseMetadata("metadata.json", []byte(src))
		if diag.CodeOf(err) != diag.Malformed || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", src, err, want)
		}
	}
	// What is missing or of another type is no error.
	m, err := mlmodelc.ParseMetadata("metadata.json", []byte(`[{"modelType": "MLModelType_mlProgram", "specificationVersion": "8", "inputSchema": [{"shape": "[1, x]"}, 7], "functions": {}}]`))
	if err != nil || m.SpecVersion != 8 || m.ModelType != "MLModelType_mlProgram" || len(m.Functions) != 1 || len(m.Functions[0].Inputs) != 1 {
		t.Errorf("lenient: %+v, %v", m, err)
	}
}

// TestSamples reads every metadata.json and coremldata.bin of the shared
// models. Both describe the same features.
func TestSamples(t *testing.T) {
	pairs, hashes := 0, 0
	err := filepath.WalkDir(sharedtest.Path(t, "models"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() != "coremldata.bin" {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if strings.HasPrefix(string(data), "version https://git-lfs") {
			return nil
		}
		dir := filepath.Dir(path)
		switch filepath.Base(dir) {
		case "analytics":
			a, err := mlmodelc.ParseAnalytics("coremldata.bin", data)
			if err != nil {
				t.Errorf("%s: %v", path, err)
			} else if a.ModelHash != "" { // absent from members of pipelines
				hashes++
			}
			return nil
		case "model", "neural_network_optionals": // parts of an Espresso model
			return nil
		}
		c, err := mlmodelc.ParseCoreMLData("coremldata.bin", data)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			return nil
		}
		js, readErr := os.ReadFile(filepath.Join(dir, "metadata.json"))
		if readErr != nil || c.Type != mlmodelc.MLProgram {
			return nil //nolint:nilerr // a model without metadata.json has nothing to compare
		}
		m, err := mlmodelc.ParseMetadata("metadata.json", js)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			return nil
		}
		pairs++
		compareDescriptions(t, path, c.Description, m)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if pairs < 20 || hashes < 20 {
		t.Errorf("only %d pairs of coremldata.bin and metadata.json, %d model hashes", pairs, hashes)
	}
}

func compareDescriptions(t *testing.T, path string, bin, js *mlmodelc.Metadata) {
	t.Helper()
	if bin.SpecVersion != js.SpecVersion || bin.DefaultFunction != js.DefaultFunction || bin.ModelType != js.ModelType {
		t.Errorf("%s: spec %d, default %q; metadata.json has %d, %q", path, bin.SpecVersion, bin.DefaultFunction, js.SpecVersion, js.DefaultFunction)
	}
	if diff := cmp.Diff(js.UserDefined, bin.UserDefined); diff != "" {
		t.Errorf("%s: user metadata: %s", path, diff)
	}
	fns := make([]mlmodelc.FunctionMeta, len(js.Functions))
	copy(fns, js.Functions)
	for i := range fns {
		fns[i].Histogram = nil
	}
	if diff := cmp.Diff(fns, bin.Functions); diff != "" {
		t.Errorf("%s: metadata.json (-) and coremldata.bin (+): %s", path, diff)
	}
}

func TestParseCoreMLDataErrors(t *testing.T) {
	head := make([]byte, 28)
	binary.LittleEndian.PutUint32(head, 502)
	long := binary.LittleEndian.AppendUint64(append([]byte{}, head...), 1<<63)
	for _, tt := range []struct {
		name string
		data []byte
		want string
	}{
		{"empty", nil, "c.bin:0x0: a number takes 4 bytes, 0 are left"},
		{"type", make([]byte, 64), "c.bin:0x0: model type 0 is not known"},
		{"length", long, "c.bin:0x24: layout name takes 9223372036854775808 bytes, 0 are left"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := mlmodelc.ParseCoreMLData("c.bin", tt.data)
			if diag.CodeOf(err) != diag.Malformed || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func FuzzMetadata(f *testing.F) {
	f.Add([]byte(metadata))
	f.Add([]byte(`{"functions": [{"inputSchema": [{"shapeRange": "[[1]]"}]}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := mlmodelc.ParseMetadata("metadata.json", data)
		if (m == nil) == (err == nil) {
			t.Fatalf("metadata %v, error %v", m, err)
		}
	})
}

func FuzzCoreMLData(f *testing.F) {
	found, err := filepath.Glob("testdata/*.bin")
	if err != nil || len(found) == 0 {
		f.Fatalf("no seeds in testdata: %v", err)
	}
	for _, name := range found {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := mlmodelc.ParseCoreMLData("coremldata.bin", data)
		if (c == nil) == (err == nil) {
			t.Fatalf("data %v, error %v", c, err)
		}
		_, _ = mlmodelc.ParseAnalytics("coremldata.bin", data)
	})
}
