package cpu_test

import (
	"io/fs"
	"os"
	"path"
	"strings"
	"testing"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/coreml/cpu"
	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/coreml/sharedtest"
	"github.com/anepkg/anepkg/coreml/tensor"
)

// TestSamplesLower readies every function of every real sample, with or
// without its weights. Only what is no ML Program may be refused.
func TestSamplesLower(t *testing.T) {
	root := sharedtest.Path(t, "models")
	fsys := os.DirFS(root)
	functions := 0
	err := fs.WalkDir(fsys, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() || !strings.HasSuffix(p, ".mlmodelc") && !strings.HasSuffix(p, ".mlpackage") {
			return err
		}
		m, err := coreml.Open(t.Context(), fsys, p)
		if diag.CodeOf(err) == diag.Unsupported {
			return fs.SkipDir
		}
		if err != nil {
			if !strings.HasPrefix(p, "negative/") {
				t.Errorf("%s: %v", p, err)
			}
			return fs.SkipDir
		}
		defer m.Close() //nolint:errcheck // only read from
		for _, f := range m.Functions {
			s, err := cpu.New().Load(t.Context(), m, f.Name, coreml.LoadOptions{Threads: 1, WithoutWeights: true})
			if err != nil {
				t.Errorf("%s, %s: %v", path.Base(p), f.Name, err)
				continue
			}
			functions++
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
		return fs.SkipDir
	})
	if err != nil {
		t.Fatal(err)
	}
	if functions < 200 {
		t.Errorf("%d functions found, want at least 200", functions)
	}
}

// TestMissingWeights: the error is the missing file, once, not what follows
// from it.
func TestMissingWeights(t *testing.T) {
	m := openText(t, `program(1.3)
[buildInfo = dict<string, string>({{"a", "b"}})]
{
    func main<ios18>(tensor<fp16, [1, 2, 4]> x) {
            tensor<fp16, [4]> g = const()[name = string("g"), val = tensor<fp16, [4]>(BLOBFILE(path = string("@model_path/weights/weight.bin"), offset = uint64(64)))];
            tensor<fp16, [4]> h = const()[name = string("h"), val = tensor<fp16, [4]>(BLOBFILE(path = string("@model_path/weights/weight.bin"), offset = uint64(192)))];
            tensor<int32, [1]> a = const()[name = string("a"), val = tensor<int32, [1]>([-1])];
            tensor<fp16, [1, 2, 4]> y = layer_norm(axes = a, gamma = g, beta = h, x = x)[name = string("y")];
        } -> (y);
}`)
	_, err := cpu.New().Load(t.Context(), m, "", coreml.LoadOptions{})
	if err == nil || !strings.Contains(err.Error(), "weights/weight.bin") || strings.Contains(err.Error(), "more error") || strings.Contains(err.Error(), "layer_norm") {
		t.Errorf("got %v, want one error about weights/weight.bin", err)
	}
}

// TestConcatScalars: converters make shapes out of scalars, as kokoro's
// packages show; the result has the length that the program declares.
func TestConcatScalars(t *testing.T) {
	m := openText(t, `program(1.3)
[buildInfo = dict<string, string>({{"a", "b"}})]
{
    func main<ios18>(tensor<int32, []> x) {
            int32 one = const()[name = string("one"), val = int32(7)];
            int32 ax = const()[name = string("ax"), val = int32(0)];
            bool il = const()[name = string("il"), val = bool(false)];
            tensor<int32, [3]> y = concat(axis = ax, interleave = il, values = (one, x, one))[name = string("y")];
        } -> (y);
}`)
	s := load(t, m, coreml.Strict)
	in, err := tensor.FromInts(tensor.Int32, nil, []int{5})
	if err != nil {
		t.Fatal(err)
	}
	out, err := s.Predict(t.Context(), map[string]*tensor.Tensor{"x": in}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []int{7, 5, 7} {
		if got := out["y"].Int(i); got != want {
			t.Errorf("element %d is %d, want %d", i, got, want)
		}
	}
}
