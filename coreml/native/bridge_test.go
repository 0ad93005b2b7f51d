//go:build gnustep

package native

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/coreml/native/fakecoreml"
	"github.com/anepkg/anepkg/coreml/tensor"
)

// adder returns in*2 (fp16, [1, 3, 5]) and has a state that it adds to.
const adderProgram = `program(1.3)
[buildInfo = dict<string, string>({})]
{
    func add<ios18>(tensor<fp16, [1, 3, 5]> x, state<tensor<fp16, [1, 3, 5]>> sum) {
            tensor<fp16, [1, 3, 5]> old = read_state(input = sum)[name = string("old")];
            tensor<fp16, [1, 3, 5]> new = add(x = old, y = x)[name = string("new")];
            write_state(data = new, input = sum)[name = string("w")];
            tensor<fp16, [1, 3, 5]> y = add(x = x, y = x)[name = string("y")];
        } -> (y);
    func show<ios18>(tensor<fp16, [1, 3, 5]> x, state<tensor<fp16, [1, 3, 5]>> sum) {
            tensor<fp16, [1, 3, 5]> old = read_state(input = sum)[name = string("old")];
            tensor<fp16, [1, 3, 5]> y = add(x = old, y = x)[name = string("y")];
        } -> (y);
}
`

const doubleProgram = `program(1.0)
[buildInfo = dict<string, string>({})]
{
    func main<ios16>(tensor<fp32, [2, 3]> x) {
            tensor<fp32, [2, 3]> y = add(x = x, y = x)[name = string("y")];
        } -> (y);
}
`

// newBackend starts the fake and returns Core ML over it.
func newBackend(t *testing.T, modes int32) *Backend {
	t.Helper()
	UseFake(fakecoreml.Start(t))
	UseFakeVersion(Version{15, 0})
	fakecoreml.SetModes(modes)
	b, err := New(Options{CacheDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// write puts a program into a .mlmodelc folder and opens it.
func write(t *testing.T, program string) *coreml.Model {
	t.Helper()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "m.mlmodelc"), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "m.mlmodelc", "model.mil"), []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	m, err := coreml.Open(t.Context(), os.DirFS(dir), "m.mlmodelc")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m
}

func load(t *testing.T, b *Backend, m *coreml.Model, fn string) coreml.Session {
	t.Helper()
	s, err := b.Load(t.Context(), m, fn, coreml.LoadOptions{})
	if err != nil {
		t.Fatalf("%v (engine: %v)", err, fakecoreml.Engine.Err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func filled(d tensor.DType, shape []int, x float32) *tensor.Tensor {
	t := tensor.New(d, shape...)
	v := make([]float32, t.Len())
	for i := range v {
		v[i] = x + float32(i)
	}
	t, err := tensor.FromFloat32(d, shape, v)
	if err != nil {
		panic(err)
	}
	return t
}

var allModes = map[string]int32{
	"plain": 0, "padded": fakecoreml.Padded, "own arrays": fakecoreml.IgnoreBackings,
	"backings refused": fakecoreml.RefuseBackings, "no backings": fakecoreml.NoBackings,
	"padded, own arrays": fakecoreml.Padded | fakecoreml.IgnoreBackings,
}

// noFaults fails the test when the fake saw a message to a dead object, or
// when more objects are alive than before.
func noFaults(t *testing.T, before int64) {
	t.Helper()
	if f := fakecoreml.Faults(); f != "" {
		t.Errorf("the fake saw:\n%s", f)
	}
	if now := fakecoreml.Live(); now != before {
		t.Errorf("%d objects are alive, %d were before", now, before)
	}
}

func TestTwoFunctionsShareState(t *testing.T) {
	for name, modes := range allModes {
		t.Run(name, func(t *testing.T) {
			b := newBackend(t, modes)
			before := fakecoreml.Live()
			m := write(t, adderProgram)
			add, show := load(t, b, m, "add"), load(t, b, m, "show")
			st, err := b.NewState(m.Functions[0].States)
			if err != nil {
				t.Fatal(err)
			}
			shape := []int{1, 3, 5}
			for range 3 {
				out, err := add.Predict(t.Context(), map[string]*tensor.Tensor{"x": filled(tensor.FP16, shape, 1)}, st)
				if err != nil {
					t.Fatal(err)
				}
				if got := out["y"].Float64(14); got != 30 {
					t.Fatalf("y[14] is %g, want 30", got)
				}
			}
			out, err := show.Predict(t.Context(), map[string]*tensor.Tensor{"x": tensor.New(tensor.FP16, shape...)}, st)
			if err != nil {
				t.Fatal(err)
			}
			for i := range 15 {
				if got := out["y"].Float64(i); got != float64(3*(i+1)) {
					t.Errorf("the state's element %d is %g, want %d", i, got, 3*(i+1))
				}
			}
			for _, c := range []interface{ Close() error }{add, show, st} {
				if err := c.Close(); err != nil {
					t.Error(err)
				}
				if err := c.Close(); err != nil {
					t.Errorf("closed again: %v", err)
				}
			}
			if n := strings.Count(fakecoreml.Log(), "newState"); n != 1 {
				t.Errorf("%d MLStates were made, want 1 for both functions", n)
			}
			if _, err := add.Predict(t.Context(), nil, st); diag.CodeOf(err) != diag.Usage {
				t.Errorf("a closed session predicts: %v", err)
			}
			noFaults(t, before)
		})
	}
}

func TestErrors(t *testing.T) {
	tests := []struct {
		kind, text string
		code       int64
		below      string
		class      diag.Code
		says, hint string
	}{
		{"load", "functionName must be nil unless the model type is ML Program", 0, "", diag.RunFailed, "com.apple.CoreML 0", "free 16 GB"},
		{"load", "Failed to build the model execution plan using a model architecture file 'model.mil' with error code: -14.", 0, "", diag.RunFailed, "-14", "anepkg validate"},
		{"load", "x", 1, "Program load failure (0x1d)", diag.RunFailed, "com.apple.appleneuralengine 8", "cpuAndGPU"},
		{"load", "ANECCompile() FAILED", 11, "", diag.RunFailed, "11", "smaller chunks"},
		{"load", "something new", 5, "", diag.RunFailed, "something new", "--backend cpu"},
		{"array", "no memory", 5, "", diag.RunFailed, "no memory", "--backend cpu"},
		{"provider", "no provider", 5, "", diag.RunFailed, "no provider", "--backend cpu"},
		{"predict", "BNNS: Slice update: update data type must match", 5, "", diag.RunFailed, "Slice update", "convert the package again"},
		{"state", "", 5, "", diag.RunFailed, "no state object", ""},
	}
	for _, tc := range tests {
		t.Run(tc.kind+" "+tc.text, func(t *testing.T) {
			b := newBackend(t, 0)
			before := fakecoreml.Live()
			m := write(t, adderProgram)
			fakecoreml.Fail(tc.kind, "com.apple.CoreML", tc.code, tc.text, tc.below, 2)
			s, err := b.Load(t.Context(), m, "add", coreml.LoadOptions{})
			st, serr := b.NewState(m.Functions[0].States)
			if serr != nil {
				t.Fatal(serr)
			}
			if err == nil {
				_, err = s.Predict(t.Context(), map[string]*tensor.Tensor{"x": tensor.New(tensor.FP16, 1, 3, 5)}, st)
				_ = s.Close()
			}
			_ = st.Close()
			if diag.CodeOf(err) != tc.class || !strings.Contains(err.Error(), tc.says) {
				t.Fatalf("got %v of class %q, want %q with %q", err, diag.CodeOf(err), tc.class, tc.says)
			}
			if !strings.Contains(hintOf(err), tc.hint) {
				t.Errorf("the hint is %q, want one with %q", hintOf(err), tc.hint)
			}
			noFaults(t, before)
		})
	}
}

// TestNothingReachesCoreML holds the checks in Go: an exception of
// Objective-C would end the process.
func TestNothingReachesCoreML(t *testing.T) {
	b := newBackend(t, 0)
	m := write(t, adderProgram)
	s := load(t, b, m, "add")
	st, err := b.NewState(m.Functions[0].States)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close() //nolint:errcheck // a test
	good := tensor.New(tensor.FP16, 1, 3, 5)
	wrong, err := b.NewState([]coreml.Feature{{Name: "sum", DType: tensor.FP16, Shape: []int{1, 3, 6}}})
	if err != nil {
		t.Fatal(err)
	}
	none, err := b.NewState(nil)
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name  string
		in    map[string]*tensor.Tensor
		st    coreml.State
		class diag.Code
	}{
		{"missing", nil, st, diag.Usage},
		{"nil", map[string]*tensor.Tensor{"x": nil}, st, diag.Usage},
		{"unknown", map[string]*tensor.Tensor{"x": good, "z": good}, st, diag.Usage},
		{"type", map[string]*tensor.Tensor{"x": tensor.New(tensor.FP32, 1, 3, 5)}, st, diag.Usage},
		{"shape", map[string]*tensor.Tensor{"x": tensor.New(tensor.FP16, 3, 5)}, st, diag.Usage},
		{"short data", map[string]*tensor.Tensor{"x": {DType: tensor.FP16, Shape: []int{1, 3, 5}, Data: make([]byte, 4)}}, st, diag.Usage},
		{"no state", map[string]*tensor.Tensor{"x": good}, nil, diag.Usage},
		{"state without the name", map[string]*tensor.Tensor{"x": good}, none, diag.Usage},
		{"state of another shape", map[string]*tensor.Tensor{"x": good}, wrong, diag.Mismatch},
	}
	calls := fakecoreml.Calls()
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			if _, err := s.Predict(t.Context(), tc.in, tc.st); diag.CodeOf(err) != tc.class {
				t.Errorf("got %v of class %q, want %q", err, diag.CodeOf(err), tc.class)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Predict(ctx, map[string]*tensor.Tensor{"x": good}, st); err == nil {
		t.Error("predicts after cancellation")
	}
	if n := fakecoreml.Calls() - calls; n != 0 {
		t.Errorf("%d calls reached Core ML:\n%s", n, fakecoreml.Log())
	}
}

func TestLoadChecks(t *testing.T) {
	tests := []struct {
		name    string
		program string
		fn      string
		version Version
		opts    coreml.LoadOptions
		class   diag.Code
		says    string
	}{
		{"states before macOS 15", adderProgram, "add", Version{14, 4}, coreml.LoadOptions{}, diag.Unsupported, "from macOS 15 on"},
		{"iOS 16 on macOS 13", doubleProgram, "", Version{13, 0}, coreml.LoadOptions{}, "", ""},
		{"iOS 16 on macOS 12", doubleProgram, "", Version{12, 6}, coreml.LoadOptions{}, diag.Unsupported, "from macOS 13 on"},
		{"no function", adderProgram, "sub", Version{15, 0}, coreml.LoadOptions{}, diag.NotFound, "add, show"},
		{"units", doubleProgram, "", Version{15, 0}, coreml.LoadOptions{ComputeUnits: "tpu"}, diag.Usage, "cpuAndGPU"},
		{"observer", doubleProgram, "", Version{15, 0}, coreml.LoadOptions{Observer: func(coreml.OpEvent) error { return nil }}, diag.Unsupported, "single ops"},
		{"without weights", doubleProgram, "", Version{15, 0}, coreml.LoadOptions{WithoutWeights: true}, diag.Unsupported, "weights"},
		{"int64", strings.ReplaceAll(doubleProgram, "fp32", "int64"), "", Version{15, 0}, coreml.LoadOptions{}, diag.Unsupported, "int64"},
		{"int8", strings.ReplaceAll(doubleProgram, "fp32", "int8"), "", Version{15, 0}, coreml.LoadOptions{}, diag.Unsupported, "int8"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			b := newBackend(t, 0)
			UseFakeVersion(tc.version)
			defer UseFakeVersion(Version{15, 0})
			b.host = tc.version
			before := fakecoreml.Live()
			s, err := b.Load(t.Context(), write(t, tc.program), tc.fn, tc.opts)
			if diag.CodeOf(err) != tc.class || err != nil && !strings.Contains(err.Error(), tc.says) {
				t.Fatalf("got %v of class %q, want class %q with %q", err, diag.CodeOf(err), tc.class, tc.says)
			}
			if err == nil {
				_ = s.Close()
			}
			noFaults(t, before)
		})
	}
	UseFakeVersion(Version{11, 7})
	defer UseFakeVersion(Version{15, 0})
	if _, err := New(Options{}); diag.CodeOf(err) != diag.Unsupported {
		t.Errorf("macOS 11: got %v", err)
	}
}

// TestDescriptionDiffers: what Core ML says of a model is held to the program
// when it is loaded, since the first prediction would end the process.
func TestDescriptionDiffers(t *testing.T) {
	tests := []struct {
		name string
		edit func(f *coreml.Feature) bool
		says string
	}{
		{"input type", func(f *coreml.Feature) bool {
			if f.Name == "x" {
				f.DType = tensor.FP16
			}
			return true
		}, `reads input "x" of function main as fp16, the program has fp32`},
		{"output type", func(f *coreml.Feature) bool {
			if f.Name == "y" {
				f.DType = tensor.Int32
			}
			return true
		}, `reads output "y" of function main as int32`},
		{"no output", func(f *coreml.Feature) bool { return f.Name != "y" }, `reads no output "y"`},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			b := newBackend(t, 0)
			before := fakecoreml.Live()
			fakecoreml.Engine.Declared = tc.edit
			defer func() { fakecoreml.Engine.Declared = nil }()
			_, err := b.Load(t.Context(), write(t, doubleProgram), "", coreml.LoadOptions{})
			if diag.CodeOf(err) != diag.Mismatch || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got %v, want %q", err, tc.says)
			}
			noFaults(t, before)
		})
	}
}

func TestUnitsAndFunctionReachCoreML(t *testing.T) {
	b := newBackend(t, 0)
	for name, want := range map[string]int{"": 2, "all": 2, "cpuOnly": 0, "cpuAndGPU": 1, "cpuAndNeuralEngine": 3} {
		s, err := b.Load(t.Context(), write(t, doubleProgram), "", coreml.LoadOptions{ComputeUnits: name})
		if err != nil {
			t.Fatal(err)
		}
		_ = s.Close()
		if got := fakecoreml.Engine.Units; got != want {
			t.Errorf("%q is passed as %d, want %d", name, got, want)
		}
	}
}

// TestModelsOutsideFolders loads from memory, and an .mlpackage, through the
// cache; the second time nothing is compiled.
func TestModelsOutsideFolders(t *testing.T) {
	b := newBackend(t, 0)
	m, err := coreml.Open(t.Context(), fstest.MapFS{"a/m.mlmodelc/model.mil": {Data: []byte(doubleProgram)}}, "a/m.mlmodelc")
	if err != nil {
		t.Fatal(err)
	}
	s := load(t, b, m, "")
	in := map[string]*tensor.Tensor{"x": filled(tensor.FP32, []int{2, 3}, 1)}
	out, err := s.Predict(t.Context(), in, nil)
	if err != nil || out["y"].Float64(5) != 12 {
		t.Fatalf("got %v, %v", out, err)
	}
	none, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := none.Load(t.Context(), m, "", coreml.LoadOptions{}); diag.CodeOf(err) != diag.Unsupported {
		t.Errorf("without a cache folder: %v", err)
	}
}

// TestMethods holds the table to the fake, and the code to the table.
func TestMethods(t *testing.T) {
	newBackend(t, 0)
	for _, m := range members {
		static := int32(0)
		if m.static {
			static = 1
		}
		if fakecoreml.Has(m.class, m.selector, static) == 0 {
			t.Errorf("%s %s is not in GNUstep or the fake", m.class, m.selector)
		}
		used := false
		for _, u := range methodsInUse {
			used = used || u.name == m.selector
		}
		if !used {
			t.Errorf("%s %s is in the table and nowhere else", m.class, m.selector)
		}
	}
	for _, c := range classesInUse {
		if c.obj == 0 {
			t.Errorf("no class %s", c.name)
		}
	}
}

func TestComputePlan(t *testing.T) {
	b := newBackend(t, 0)
	before := fakecoreml.Live()
	m := write(t, adderProgram)
	p, err := b.ComputePlan(t.Context(), m, "add", "cpuAndNeuralEngine")
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Ops) != 4 || p.Function != "add" {
		t.Fatalf("got %+v", p)
	}
	o := p.Ops[1]
	if o.Op != "add" || o.Name != "new" || o.Device != coreml.DeviceNeuralEngine || len(o.Supported) != 2 || o.Cost == nil || *o.Cost != 0.25 {
		t.Errorf("got %+v", o)
	}
	noFaults(t, before)
	fakecoreml.Fail("plan", "com.apple.CoreML", 1, "no plan today", "", 1)
	if _, err := b.ComputePlan(t.Context(), m, "add", ""); diag.CodeOf(err) != diag.RunFailed || !strings.Contains(err.Error(), "no plan today") {
		t.Errorf("got %v", err)
	}
	b.host = Version{14, 3}
	if _, err := b.ComputePlan(t.Context(), m, "add", ""); diag.CodeOf(err) != diag.Unsupported {
		t.Errorf("macOS 14.3: %v", err)
	}
}

func hintOf(err error) string {
	e, ok := err.(*diag.Error) //nolint:errorlint // what the bridge returns
	if !ok {
		return ""
	}
	return e.Hint
}
