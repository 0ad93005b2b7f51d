package coreml_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/coreml/mil"
	"github.com/anepkg/anepkg/coreml/mlmodelc"
	"github.com/anepkg/anepkg/coreml/sharedtest"
	"github.com/anepkg/anepkg/coreml/tensor"
)

// refusals are the samples that are no ML Program, and what Open says.
var refusals = map[string]string{
	"compiled/mlmodelc-export-pipeline/input.mlmodelc":                                      "a pipeline of 2 models",
	"negative/neg-animegan-espresso/animeganHayao.mlmodelc":                                 "a compiled neural network (Espresso)",
	"negative/neg-nsfw-espresso/NSFWModel.mlmodelc":                                         "a compiled neural network (Espresso)",
	"negative/neg-coremlit-identity-mlmodel/identity.mlmodel":                               "a neural network (specification version 1)",
	"negative/neg-coremltools-nn-mlmodel/simple_layer.mlmodel":                              "an ML Program of specification version 5, a preview form",
	"negative/neg-lovoo-nsfw-mlmodel/NSFW.mlmodel":                                          "a pipeline (classifier) (specification version 3)",
	"packages/rules-apple-sample-pkg/sample.mlpackage":                                      "a text classifier (specification version 3)",
	"packages/rules-apple-sample-pkg/sample.mlpackage/Data/com.apple.CoreML/sample.mlmodel": "a text classifier",
}

// models lists the paths below the shared models that name a model.
func models(t testing.TB) (fs.FS, []string) {
	t.Helper()
	fsys := os.DirFS(sharedtest.Path(t, "models"))
	var out []string
	err := fs.WalkDir(fsys, ".", func(p string, _ fs.DirEntry, err error) error {
		switch path.Ext(p) {
		case ".mlmodelc", ".mlpackage", ".mil", ".mlmodel":
			out = append(out, p)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return fsys, out
}

// TestSamples opens every sample or is told what it is. The files that
// describe an opened model must agree with its program.
func TestSamples(t *testing.T) {
	fsys, paths := models(t)
	if len(paths) < 100 {
		t.Fatalf("only %d models found", len(paths))
	}
	for _, p := range paths {
		m, err := coreml.Open(context.Background(), fsys, p)
		if want, ok := refusals[p]; ok {
			if diag.CodeOf(err) != diag.Unsupported || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %v, want %q", p, err, want)
			}
			continue
		}
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		for _, w := range m.Warnings {
			if diag.CodeOf(w) != diag.LFSPointer || !strings.HasPrefix(p, "anemll-qwen3-1.7b") {
				t.Errorf("%s: warning %v", p, w)
			}
		}
		checkModel(t, p, m)
		if err := m.Close(); err != nil {
			t.Errorf("%s: Close: %v", p, err)
		}
	}
}

func checkModel(t *testing.T, p string, m *coreml.Model) {
	t.Helper()
	if m.Function("") == nil || m.SpecVersion < 6 || m.Name == "" || len(m.Functions) != len(m.Program.Functions) {
		t.Errorf("%s: default %q of %d functions, spec %d, name %q", p, m.Default, len(m.Functions), m.SpecVersion, m.Name)
	}
	for _, f := range m.Functions {
		if len(f.Inputs)+len(f.States) != len(f.Program.Params) {
			t.Errorf("%s: %s: %d inputs and %d states of %d parameters", p, f.Name, len(f.Inputs), len(f.States), len(f.Program.Params))
		}
		for _, ft := range slices.Concat(f.Inputs, f.Outputs, f.States) {
			if ft.DType == tensor.Invalid {
				t.Errorf("%s: %s: %s has no element type", p, f.Name, ft.Name)
			}
		}
		if m.Metadata != nil {
			checkClaims(t, p, f, m.Metadata)
		}
	}
	checkWeights(t, p, m)
}

// checkClaims compares a function with metadata.json.
func checkClaims(t *testing.T, p string, f *coreml.Function, md *mlmodelc.Metadata) {
	t.Helper()
	i := slices.IndexFunc(md.Functions, func(c mlmodelc.FunctionMeta) bool { return c.Name == f.Name })
	if i < 0 {
		t.Errorf("%s: metadata.json does not describe %s", p, f.Name)
		return
	}
	dtypes := map[string]tensor.DType{"Float16": tensor.FP16, "Float32": tensor.FP32, "Int32": tensor.Int32}
	compare := func(what string, got []coreml.Feature, want []mlmodelc.FeatureMeta) {
		if len(got) != len(want) {
			t.Errorf("%s: %s: %d %ss, metadata.json has %d", p, f.Name, len(got), what, len(want))
			return
		}
		for i, w := range want {
			g := got[i]
			if g.Name != w.Name {
				t.Errorf("%s: %s: %s %d is %q, metadata.json has %q", p, f.Name, what, i, g.Name, w.Name)
			}
			if d, ok := dtypes[w.DataType]; ok && g.DType != d {
				t.Errorf("%s: %s: %s %s is %s, metadata.json has %s", p, f.Name, what, g.Name, g.DType, w.DataType)
			}
			if what != "output" && w.Type == "MultiArray" && !cmp.Equal(g.Default, w.Shape) && len(w.Shape) > 0 {
				t.Errorf("%s: %s: %s %s has the default shape %v, metadata.json %v", p, f.Name, what, g.Name, g.Default, w.Shape)
			}
			if !cmp.Equal(g.Enumerated, w.Enumerated) || !cmp.Equal(g.Range, w.Range) {
				t.Errorf("%s: %s: %s %s is %v %v, metadata.json has %v %v", p, f.Name, what, g.Name, g.Enumerated, g.Range, w.Enumerated, w.Range)
			}
		}
	}
	compare("input", f.Inputs, md.Functions[i].Inputs)
	compare("output", f.Outputs, md.Functions[i].Outputs)
	compare("state", f.States, md.Functions[i].States)
	total := 0
	for _, n := range mil.Histogram(f.Program) {
		total += n
	}
	claimed := 0
	for _, n := range md.Functions[i].Histogram {
		claimed += n
	}
	if len(md.Functions) == 1 && total != claimed {
		t.Errorf("%s: %s: %d ops, metadata.json counts %d", p, f.Name, total, claimed)
	}
}

// checkWeights reads the record and data of every reference whose file is
// there, and compares sizes.
func checkWeights(t *testing.T, p string, m *coreml.Model) {
	t.Helper()
	expected := coreml.ExpectedWeightSize(m)
	there := map[string]bool{}
	for _, wf := range m.Weights.Files() {
		if wf.Err != nil || wf.Expected != expected[wf.Ref] || wf.Blobs == 0 {
			t.Errorf("%s: %+v", p, wf)
		}
		there[wf.Ref] = wf.Present && wf.LFSSize == 0
		if size := wf.TrueSize(); wf.Present && size != wf.Expected && size != (wf.Expected+63)/64*64 {
			t.Errorf("%s: %s has %d bytes, the program needs %d", p, wf.Path, size, wf.Expected)
		}
	}
	for _, u := range m.BlobRefs() {
		if !there[u.Ref.Path] {
			if _, err := m.Weights.Record(u.Ref); err == nil {
				t.Errorf("%s: a record of the absent file %s", p, u.Ref.Path)
			}
			continue
		}
		r, err := m.Weights.Record(u.Ref)
		if err != nil || r.DType != u.Type.DType || r.Size != u.Bytes() {
			t.Errorf("%s: %s %s of %s: record %+v, %v", p, u.Op.Type, u.Operand, u.Type, r, err)
			continue
		}
		if d, err := m.Weights.Data(u.Ref); err != nil || int64(len(d)) != r.Size {
			t.Errorf("%s: data of %s: %d bytes, %v", p, u.Op.Name(), len(d), err)
		}
	}
}

const program = `program(1.3)
{
    func second<ios18>(tensor<fp16, [1, 2]> b, state<tensor<fp16, [4]>> kv, tensor<fp16, [1, ?]> a) [FlexibleShapeInformation = tuple<tuple<string, dict<string, tensor<int32, [?]>>>, tuple<string, dict<string, dict<string, tensor<int32, [?]>>>>>((("DefaultShapes", {{"a", [1, 8]}}), ("EnumeratedShapes", {{"0a", {{"a", [1, 8]}}}, {"1b", {{"a", [1, 2]}}}})))] {
            tensor<fp16, [10]> w = const()[name = string("w"), val = tensor<fp16, [10]>(BLOBFILE(path = string("PATH"), offset = uint64(64)))];
        } -> (a, w);
    func first<ios18>(tensor<fp16, [1, 2]> b) {
        } -> (b);
}`

const description = `[{"specificationVersion": 9, "defaultFunctionName": "first", "userDefinedMetadata": {"k": "v"}, "functions": [
 {"name": "second", "inputSchema": [
  {"name": "a", "type": "MultiArray", "shape": "[1, 2]", "enumeratedShapes": "[[1, 2], [1, 8]]", "isOptional": "1"},
  {"name": "b", "type": "Image", "shape": "[9, 9]"}]},
 {"name": "first"}]}]`

func textModel(weights string) fstest.MapFS {
	return fstest.MapFS{
		"x.mlmodelc/model.mil":     {Data: []byte(strings.Replace(program, "PATH", weights, 1))},
		"x.mlmodelc/metadata.json": {Data: []byte(description)},
	}
}

func TestDescription(t *testing.T) {
	m, err := coreml.Open(context.Background(), textModel("@model_path/weights/weight.bin"), "x.mlmodelc")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = m.Close() }()
	if m.Default != "first" || m.SpecVersion != 9 || m.Name != "x" || m.UserMeta["k"] != "v" || m.Container != coreml.MLModelC || m.ProgramFile != "x.mlmodelc/model.mil" {
		t.Errorf("%+v", m)
	}
	f := m.Function("second")
	want := []coreml.Feature{
		{Name: "a", DType: tensor.FP16, Shape: []int{1, -1}, Default: []int{1, 8}, Enumerated: [][]int{{1, 2}, {1, 8}}, Optional: true},
		{Name: "b", DType: tensor.FP16, Shape: []int{1, 2}, Default: []int{1, 2}, IsImage: true},
	}
	if diff := cmp.Diff(want, f.Inputs); diff != "" {
		t.Errorf("inputs: %s", diff)
	}
	if diff := cmp.Diff([]coreml.Feature{{Name: "kv", DType: tensor.FP16, Shape: []int{4}, Default: []int{4}}}, f.States); diff != "" {
		t.Errorf("states: %s", diff)
	}
	if len(f.Outputs) != 2 || f.Outputs[1].Name != "w" || !cmp.Equal(f.Outputs[1].Shape, []int{10}) {
		t.Errorf("outputs: %+v", f.Outputs)
	}
}

// TestWithoutDescription opens the program alone.
func TestWithoutDescription(t *testing.T) {
	fsys := textModel("@model_path/w.bin")
	delete(fsys, "x.mlmodelc/metadata.json")
	for _, name := range []string{"x.mlmodelc", "x.mlmodelc/model.mil"} {
		m, err := coreml.Open(context.Background(), fsys, name)
		if err != nil {
			t.Fatal(err)
		}
		if m.Default != "second" || m.SpecVersion != 9 || m.Function("").Inputs[0].Name != "b" {
			t.Errorf("%s: default %q, spec %d", name, m.Default, m.SpecVersion)
		}
		if a := m.Function("second").Input("a"); a == nil || !cmp.Equal(a.Enumerated, [][]int{{1, 8}, {1, 2}}) {
			t.Errorf("%s: input a: %+v", name, a)
		}
	}
	sub, err := fs.Sub(fsys, "x.mlmodelc")
	if err != nil {
		t.Fatal(err)
	}
	if m, err := coreml.Open(context.Background(), sub, "."); err != nil || m.ProgramFile != "model.mil" {
		t.Errorf("root: %+v, %v", m, err)
	}
}

func TestOpenErrors(t *testing.T) {
	pointer := []byte("version https://git-lfs.github.com/spec/v1\noid sha256:ab\nsize 1090707\n")
	for _, tt := range []struct {
		name string
		fsys fstest.MapFS
		path string
		code diag.Code
		want string
	}{
		{"absent", fstest.MapFS{}, "no.mlmodelc", diag.NotFound, "no.mlmodelc: "},
		{"outside", fstest.MapFS{}, "../x.mlmodelc", diag.Usage, "../x.mlmodelc: not a path inside the package"},
		{"pointer", fstest.MapFS{"a.mlmodelc/model.mil": {Data: pointer}}, "a.mlmodelc", diag.LFSPointer, "a.mlmodelc/model.mil: git lfs pointer instead of a file of 1090707 bytes"},
		{"html", fstest.MapFS{"a.mlmodelc/model.mil": {Data: []byte("<!doctype html>")}}, "a.mlmodelc", diag.Malformed, "a web page instead of the file"},
		{"no program", fstest.MapFS{"a.mlmodelc/metadata.json": {}}, "a.mlmodelc", diag.NotFound, "model.mil is absent from the compiled model"},
		{"no manifest", fstest.MapFS{"a.mlpackage/Data/x": {}}, "a.mlpackage", diag.NotFound, "Manifest.json is absent"},
		{"other folder", fstest.MapFS{"a/x": {}}, "a", diag.NotFound, "neither model.mil nor Manifest.json"},
		{"other file", fstest.MapFS{"a.txt": {}}, "a.txt", diag.Unsupported, "not a Core ML model"},
		{"inner file", fstest.MapFS{"a/Manifest.json": {}}, "a/Manifest.json", diag.Usage, "a file of a model"},
		{"no function", fstest.MapFS{"a.mil": {Data: []byte("program(1.0){}")}}, "a.mil", diag.Malformed, "the program has no function"},
		{"undefined", fstest.MapFS{"a.mil": {Data: []byte("program(1.0){func f<ios15>(){}->(x);}")}}, "a.mil", diag.Malformed, `a.mil:1:34: result "x" is not defined`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, err := coreml.Open(context.Background(), tt.fsys, tt.path)
			if m != nil || diag.CodeOf(err) != tt.code || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v (%s), want %q (%s)", err, diag.CodeOf(err), tt.want, tt.code)
			}
		})
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := coreml.Open(ctx, textModel("w"), "x.mlmodelc"); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestWarnings(t *testing.T) {
	fsys := textModel("w.bin")
	fsys["x.mlmodelc/metadata.json"].Data = []byte("[{")
	fsys["x.mlmodelc/coremldata.bin"] = &fstest.MapFile{Data: []byte("version https://git-lfs.github.com/spec/v1\noid sha256:ab\nsize 981\n")}
	m, err := coreml.Open(context.Background(), fsys, "x.mlmodelc")
	if err != nil || len(m.Warnings) != 2 || diag.CodeOf(m.Warnings[0]) != diag.Malformed || diag.CodeOf(m.Warnings[1]) != diag.LFSPointer {
		t.Fatalf("%v, warnings %v", err, m.Warnings)
	}
}

func TestWeightPaths(t *testing.T) {
	for _, tt := range []struct{ ref, want, err string }{
		{"@model_path/weights/weight.bin", "x.mlmodelc/weights/weight.bin", ""},
		{"weights/weight.bin", "x.mlmodelc/weights/weight.bin", ""},
		{"@model_path/a/../w.bin", "x.mlmodelc/w.bin", ""},
		{"@model_path/../w.bin", "", "is not inside the model folder"},
		{"@model_path/../../w.bin", "", "is not inside the model folder"},
		{"@model_path/a/../../w.bin", "", "is not inside the model folder"},
		{"/etc/passwd", "", "is not inside the model folder"},
		{"@model_path", "", "is not inside the model folder"},
		{`@model_path/..\\w.bin`, "", "is not inside the model folder"},
		{"", "", "is not inside the model folder"},
	} {
		t.Run(tt.ref, func(t *testing.T) {
			m, err := coreml.Open(context.Background(), textModel(tt.ref), "x.mlmodelc")
			if err != nil {
				t.Fatal(err)
			}
			f := m.Weights.Files()[0]
			if f.Path != tt.want || (f.Err == nil) != (tt.err == "") || f.Present || f.Expected != 148 {
				t.Errorf("%+v", f)
			}
			code, want := diag.NotFound, "x.mlmodelc/"
			if tt.err != "" {
				code, want = diag.Malformed, tt.err
			}
			if _, err := m.Weights.Data(m.BlobRefs()[0].Ref); diag.CodeOf(err) != code || !strings.Contains(err.Error(), want) {
				t.Errorf("Data: %v", err)
			}
		})
	}
}

func TestWeightPointer(t *testing.T) {
	fsys := textModel("@model_path/weights/weight.bin")
	fsys["x.mlmodelc/weights/weight.bin"] = &fstest.MapFile{Data: []byte("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 148\n")}
	m, err := coreml.Open(context.Background(), fsys, "x.mlmodelc")
	if err != nil {
		t.Fatal(err)
	}
	if f := m.Weights.Files()[0]; !f.Present || f.LFSSize != 148 || f.LFSOID != "4d7a" || f.TrueSize() != f.Expected {
		t.Errorf("%+v", f)
	}
	if _, err := m.Weights.Record(m.BlobRefs()[0].Ref); diag.CodeOf(err) != diag.LFSPointer {
		t.Errorf("Record: %v", err)
	}
}

// noReaderAt hides the ability to read at random, as a zip file does.
type noReaderAt struct{ fs.FS }

func (n noReaderAt) Open(name string) (fs.File, error) {
	f, err := n.FS.Open(name)
	return struct{ fs.File }{f}, err
}

// TestAccess reads the same weights through a mapping, at random and as a
// whole, from several goroutines.
func TestAccess(t *testing.T) {
	dir := sharedtest.Path(t, "models", "tiny", "anemll-qwen3-lut6", "compiled")
	disk := os.DirFS(dir)
	memory := fstest.MapFS{}
	const name = "qwen_lm_head_lut6.mlmodelc"
	for _, file := range []string{"model.mil", "weights/weight.bin"} {
		data, err := os.ReadFile(filepath.Join(dir, name, file))
		if err != nil {
			t.Fatal(err)
		}
		memory[path.Join(name, file)] = &fstest.MapFile{Data: data}
	}
	raw := memory[path.Join(name, "weights/weight.bin")].Data
	for kind, fsys := range map[string]fs.FS{"mapped": disk, "at random": memory, "whole": noReaderAt{memory}} {
		t.Run(kind, func(t *testing.T) {
			m, err := coreml.Open(context.Background(), fsys, name)
			if err != nil {
				t.Fatal(err)
			}
			var wg sync.WaitGroup
			for _, u := range m.BlobRefs() {
				wg.Go(func() {
					r, err := m.Weights.Record(u.Ref)
					if err != nil {
						t.Error(err)
						return
					}
					got, err := m.Weights.Data(u.Ref)
					if err != nil || !bytes.Equal(got, raw[r.DataOffset:r.End()]) {
						t.Errorf("%s at %d: wrong data, %v", u.Op.Name(), u.Ref.Offset, err)
					}
				})
			}
			wg.Wait()
			if err := m.Close(); err != nil {
				t.Error(err)
			}
			if _, err := m.Weights.Data(m.BlobRefs()[0].Ref); diag.CodeOf(err) != diag.Usage {
				t.Errorf("after Close: %v", err)
			}
		})
	}
}

// TestContainersAgree opens packages in both forms: the descriptions of the
// functions must be the same.
func TestContainersAgree(t *testing.T) {
	fsys, paths := models(t)
	n := 0
	for _, p := range paths {
		if path.Ext(p) != ".mlpackage" || !strings.Contains(p, "/package/") {
			continue
		}
		compiled := strings.Replace(strings.TrimSuffix(p, ".mlpackage"), "/package/", "/compiled/", 1) + ".mlmodelc"
		if _, err := fs.Stat(fsys, compiled); err != nil {
			continue
		}
		n++
		a, err := coreml.Open(context.Background(), fsys, p)
		if err != nil {
			t.Fatal(err)
		}
		b, err := coreml.Open(context.Background(), fsys, compiled)
		if err != nil {
			t.Fatal(err)
		}
		type summary struct {
			Name, Default string
			Spec          int
			Meta          map[string]string
		}
		if diff := cmp.Diff(summary{a.Name, a.Default, a.SpecVersion, a.UserMeta}, summary{b.Name, b.Default, b.SpecVersion, b.UserMeta}); diff != "" {
			t.Errorf("%s: package (-) and compiled (+): %s", p, diff)
		}
		for i, f := range a.Functions {
			g := b.Functions[i]
			if f.Name != g.Name || f.Opset != g.Opset || f.Default != g.Default {
				t.Errorf("%s: function %s %s, compiled %s %s", p, f.Name, f.Opset, g.Name, g.Opset)
			}
			if diff := cmp.Diff([][]coreml.Feature{f.Inputs, f.Outputs, f.States}, [][]coreml.Feature{g.Inputs, g.Outputs, g.States}); diff != "" {
				t.Errorf("%s: %s: package (-) and compiled (+): %s", p, f.Name, diff)
			}
		}
	}
	if n < 20 {
		t.Errorf("only %d pairs", n)
	}
}

// TestMutations cuts and flips every file of a compiled model and of a
// package. Whatever Open says, nothing may panic or hang, and every error
// has a code.
func TestMutations(t *testing.T) {
	dir := sharedtest.Path(t, "models", "tiny", "seed-qwen3-int8")
	for _, name := range []string{"compiled/qwen_lm_head_int4.mlmodelc", "package/qwen_lm_head_int4.mlpackage"} {
		files := fstest.MapFS{}
		err := fs.WalkDir(os.DirFS(dir), name, func(p string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			data, err := os.ReadFile(filepath.Join(dir, p))
			files[p] = &fstest.MapFile{Data: data}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		for p, f := range files {
			good := f.Data
			for i := range 150 {
				at := i * i * len(good) / (150 * 150)
				f.Data = slices.Clone(good[:at])
				if i%3 > 0 {
					f.Data = slices.Clone(good)
					f.Data[at] ^= 1 << (i % 8)
				}
				if err := exercise(files, name); err != nil && diag.CodeOf(err) == "" {
					t.Errorf("%s, mutation %d: error without a code: %v", p, i, err)
				}
			}
			f.Data = good
		}
		if err := exercise(files, name); err != nil {
			t.Errorf("%s unchanged: %v", name, err)
		}
	}
}

// exercise opens a model and reads all of it.
func exercise(fsys fs.FS, name string) error {
	m, err := coreml.Open(context.Background(), fsys, name)
	if err != nil {
		return err
	}
	var errs []error
	for _, w := range m.Warnings {
		if diag.CodeOf(w) == "" {
			return w
		}
	}
	for _, u := range m.BlobRefs() {
		if _, err := m.Weights.Data(u.Ref); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(append(errs, m.Close())...)
}

// TestProgramFileLimit: a program file beyond the limit is refused unread.
func TestProgramFileLimit(t *testing.T) {
	for _, name := range []string{"m.mlmodelc/model.mil", "m.mlmodel"} {
		dir := t.TempDir()
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte("program(1.0)\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(file, 256<<20+1); err != nil {
			t.Skip(err)
		}
		model, _, _ := strings.Cut(name, "/")
		if _, err := coreml.Open(t.Context(), os.DirFS(dir), model); diag.CodeOf(err) != diag.TooLarge {
			t.Errorf("%s: got %v (%s), want class %s", name, err, diag.CodeOf(err), diag.TooLarge)
		}
	}
}
