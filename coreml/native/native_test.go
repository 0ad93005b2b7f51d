package native

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/coreml/tensor"
)

func TestParseVersion(t *testing.T) {
	for s, want := range map[string]Version{"15.1": {15, 1}, "26": {26, 0}, "14.4.1": {14, 4}, "12.3\n": {12, 3}} {
		if v, err := ParseVersion(s); err != nil || v != want {
			t.Errorf("%q: got %v, %v", s, v, err)
		}
	}
	for _, s := range []string{"", "x", "15.x", "-1", "15.-2"} {
		if v, err := ParseVersion(s); err == nil {
			t.Errorf("%q is read as %v", s, v)
		}
	}
	if !(Version{14, 6}).Before(Version{15, 0}) || !(Version{12, 2}).Before(Version{12, 3}) || (Version{15, 0}).Before(Version{15, 0}) {
		t.Error("versions are not in order")
	}
}

func TestNeeds(t *testing.T) {
	fn := func(opset string, states int) *coreml.Function {
		return &coreml.Function{Name: "f", Opset: opset, States: make([]coreml.Feature, states)}
	}
	tests := []struct {
		name string
		m    coreml.Model
		want Version
	}{
		{"old", coreml.Model{SpecVersion: 6, Functions: []*coreml.Function{fn("ios15", 0)}}, Version{12, 3}},
		{"opset", coreml.Model{SpecVersion: 6, Functions: []*coreml.Function{fn("ios17", 0)}}, Version{14, 0}},
		{"specification", coreml.Model{SpecVersion: 9, Functions: []*coreml.Function{fn("ios15", 0)}}, Version{15, 0}},
		{"states", coreml.Model{SpecVersion: 7, Functions: []*coreml.Function{fn("ios16", 1)}}, Version{15, 0}},
		{"functions", coreml.Model{SpecVersion: 7, Functions: []*coreml.Function{fn("ios16", 0), fn("ios16", 0)}}, Version{15, 0}},
		{"macOS 26", coreml.Model{SpecVersion: 10, Functions: []*coreml.Function{fn("ios26", 2)}}, Version{26, 0}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			got, why := Needs(&tc.m)
			if got != tc.want || why == "" {
				t.Errorf("got %v (%s), want %v", got, why, tc.want)
			}
			before := Version{tc.want.Major - 1, 9}
			if err := checkVersion(&tc.m, before); diag.CodeOf(err) != diag.Unsupported || !strings.Contains(err.Error(), before.String()) {
				t.Errorf("on macOS %s: %v", before, err)
			}
			if err := checkVersion(&tc.m, tc.want); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestLayout compares gather and scatter with the formula, element by element.
func TestLayout(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		rank := rng.IntN(5)
		l := layout{size: []int{1, 2, 4, 8}[rng.IntN(4)]}
		for range rank {
			l.shape = append(l.shape, 1+rng.IntN(5))
		}
		l.strides = make([]int, rank)
		next := 1
		for _, i := range rng.Perm(rank) { // any order of dimensions, with gaps
			l.strides[i] = next
			next = next*l.shape[i] + rng.IntN(3)
		}
		n, err := l.span()
		if err != nil {
			t.Fatal(err)
		}
		src := make([]byte, n+rng.IntN(4))
		for i := range src {
			src[i] = byte(rng.Uint32())
		}
		dense := make([]byte, tensor.Count(l.shape)*l.size)
		if err := l.gather(dense, src); err != nil {
			t.Fatal(err)
		}
		back := make([]byte, n)
		if err := l.scatter(back, dense); err != nil {
			t.Fatal(err)
		}
		for e := range tensor.Count(l.shape) {
			at, rest := 0, e
			for i := rank - 1; i >= 0; i-- {
				at += rest % l.shape[i] * l.strides[i]
				rest /= l.shape[i]
			}
			want := src[at*l.size : (at+1)*l.size]
			if got := dense[e*l.size : (e+1)*l.size]; !bytes.Equal(got, want) {
				t.Fatalf("%+v: element %d is %v, want %v", l, e, got, want)
			}
			if got := back[at*l.size : (at+1)*l.size]; !bytes.Equal(got, want) {
				t.Fatalf("%+v: element %d goes back as %v, want %v", l, e, got, want)
			}
		}
	}
	bad := []layout{
		{[]int{2, 3}, []int{3}, 2}, {[]int{2}, []int{-1}, 2}, {[]int{0}, []int{1}, 2}, {[]int{-1}, []int{1}, 2},
		{[]int{1 << 40, 1 << 40}, []int{1 << 40, 1}, 2}, {[]int{3}, []int{1 << 62}, 8}, {make([]int, 20), make([]int, 20), 1},
	}
	for _, l := range bad {
		if n, err := l.span(); err == nil {
			t.Errorf("%+v spans %d bytes, want an error", l, n)
		}
	}
	if err := (layout{[]int{2, 3}, []int{4, 1}, 2}).gather(make([]byte, 12), make([]byte, 13)); err == nil {
		t.Error("13 bytes hold an array of 14")
	}
}

func TestElementTypes(t *testing.T) {
	// The values of MLMultiArrayDataType in Apple's documentation.
	for d, want := range map[tensor.DType]int{tensor.FP64: 65600, tensor.FP32: 65568, tensor.FP16: 65552, tensor.Int32: 131104, tensor.Int8: 131080} {
		if got, ok := arrayType(d); !ok || got != want || elementType(want) != d {
			t.Errorf("%s: got %d, want %d", d, got, want)
		}
	}
	if _, ok := arrayType(tensor.Bool); ok || elementType(7) != tensor.Invalid {
		t.Error("a type that Core ML lacks")
	}
	if _, err := unitsOf("cpuAndNeuralEngine", Version{12, 6}); diag.CodeOf(err) != diag.Unsupported {
		t.Errorf("macOS 12: %v", err)
	}
}

// TestKnownFailures gives texts as users reported them.
func TestKnownFailures(t *testing.T) {
	tests := []struct {
		f    failure
		hint string
	}{
		{failure{"com.apple.CoreML", 0, "functionName must be nil unless the model type is ML Program."}, "free 16 GB"},
		{failure{"com.apple.CoreML", 3, "Unable to load model: compiled model major version 9.0.0 is newer than 8"}, "update the system"},
		{failure{"com.apple.CoreML", 0, "BNNS: Slice update: update data type must match"}, "convert the package again"},
		{failure{"com.apple.CoreML", 1, "MultiArray shape (1 x 1 x 1 x 1024) does not match (1x1x1x512)"}, "anepkg validate"},
		{failure{"com.apple.CoreML", 0, "Error in reading the MIL network."}, "cut short"},
		{failure{"com.apple.CoreML", 0, "ANECCompile() FAILED 11"}, "smaller chunks"},
		{failure{"com.apple.appleneuralengine", 8, "processRequest: status=0x1d : Program load failure"}, "cpuAndGPU"},
		{failure{"com.apple.CoreML", 0, "Failed to build the model execution plan with error code: -14."}, "weights are missing"},
		{failure{"com.apple.CoreML", -14, ""}, "weights are missing"},
		{failure{"x", 14, "std::bad_cast"}, "op form"},
		{failure{"x", 1, "anything else"}, "--backend cpu"},
	}
	for _, tc := range tests {
		t.Run(tc.f.text, func(t *testing.T) {
			err := failed("a.mlmodelc", "loading", tc.f)
			var e *diag.Error
			if !errors.As(err, &e) || e.Code != diag.RunFailed || !strings.Contains(e.Hint, tc.hint) || !strings.Contains(e.Msg, tc.f.domain) {
				t.Errorf("got %#v", err)
			}
		})
	}
}

func TestMembersTable(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range members {
		k := m.class + " " + m.selector
		if seen[k] {
			t.Errorf("%s stands twice", k)
		}
		seen[k] = true
		if m.since.Major < 10 || m.since.Major > 26 {
			t.Errorf("%s is of macOS %v", k, m.since)
		}
		if strings.HasPrefix(m.class, "ML") && m.since.Before(Version{10, 13}) {
			t.Errorf("%s is older than Core ML", k)
		}
	}
	// What the package's own gates rely on.
	for k, since := range map[[2]string]Version{
		{"MLModel", "newState"}:                      statesSince,
		{"MLModelConfiguration", "setFunctionName:"}: statesSince,
		{"MLMultiArray", "getBytesWithHandler:"}:     bytesSince,
		{"MLComputePlan", "modelStructure"}:          planSince,
	} {
		if m := memberNamed(k[0], k[1]); m == nil || m.since != since {
			t.Errorf("%v: got %+v, want macOS %v", k, m, since)
		}
	}
	if !namesClass("MLState") || !namesClass("MLGPUComputeDevice") || namesClass("MLTask") {
		t.Error("the table of classes is wrong")
	}
	if memberNamed("MLModel", "oldState") != nil {
		t.Error("a method that is not there is found")
	}
}

func open1(t *testing.T, fsys fstest.MapFS, name string) *coreml.Model {
	t.Helper()
	m, err := coreml.Open(t.Context(), fsys, name)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

const tinyProgram = `program(1.0)
[buildInfo = dict<string, string>({})]
{
    func main<ios16>(tensor<fp32, [2]> x) {
            tensor<fp32, [2]> y = add(x = x, y = x)[name = string("y")];
        } -> (y);
}
`

func TestDiskKeepsCopies(t *testing.T) {
	files := fstest.MapFS{"m.mlmodelc/model.mil": {Data: []byte(tinyProgram)}, "m.mlmodelc/weights/weight.bin": {Data: []byte("w")}}
	m := open1(t, files, "m.mlmodelc")
	d := disk{dir: filepath.Join(t.TempDir(), "cache"), build: "1", log: slog.New(slog.DiscardHandler)}
	first, err := d.folder(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(filepath.Join(first, "weights", "weight.bin")); err != nil || string(data) != "w" || filepath.Base(first) != "m.mlmodelc" {
		t.Fatalf("%s holds %q, %v", first, data, err)
	}
	again, err := d.folder(t.Context(), m)
	if err != nil || again != first {
		t.Errorf("got %s, %v, want %s", again, err, first)
	}
	files["m.mlmodelc/weights/weight.bin"] = &fstest.MapFile{Data: []byte("v")}
	other, err := d.folder(t.Context(), open1(t, files, "m.mlmodelc"))
	if err != nil || other == first {
		t.Errorf("other contents have the same copy: %s, %v", other, err)
	}
	left, err := filepath.Glob(filepath.Join(d.dir, "extracted", ".*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.folder(ctx, m); !errors.Is(err, context.Canceled) {
		t.Errorf("after cancellation: %v", err)
	}
	d.dir = ""
	if _, err := d.folder(t.Context(), m); diag.CodeOf(err) != diag.Unsupported {
		t.Errorf("without a folder: %v", err)
	}
}

func TestDiskUsesFolders(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"m.mlmodelc", "plain"} {
		if err := os.CopyFS(filepath.Join(dir, name), fstest.MapFS{"model.mil": {Data: []byte(tinyProgram)}}); err != nil {
			t.Fatal(err)
		}
	}
	d := disk{dir: filepath.Join(t.TempDir(), "cache"), build: "1", log: slog.New(slog.DiscardHandler)}
	tests := []struct {
		name  string
		root  string
		path  string
		local bool
	}{
		{"a folder", dir, "m.mlmodelc", true},
		{"the root", filepath.Join(dir, "m.mlmodelc"), ".", true},
		{"the program's file", dir, "m.mlmodelc/model.mil", true},
		{"without the suffix", dir, "plain", false},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			m, err := coreml.Open(t.Context(), os.DirFS(tc.root), tc.path)
			if err != nil {
				t.Fatal(err)
			}
			got, err := d.folder(t.Context(), m)
			if err != nil || !strings.HasSuffix(got, ".mlmodelc") {
				t.Fatalf("got %s, %v", got, err)
			}
			if local := got == filepath.Join(dir, "m.mlmodelc"); local != tc.local {
				t.Errorf("got %s", got)
			}
		})
	}
}

// TestDiskCompiles uses a compiler that counts.
func TestDiskCompiles(t *testing.T) {
	pkg := filepath.Join("..", "..", "runner", "testdata", "packages")
	var found string
	err := filepath.WalkDir(pkg, func(p string, _ os.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(p, ".mlpackage") && found == "" {
			found = p
		}
		return err
	})
	if err != nil || found == "" {
		t.Skipf("no .mlpackage in %s: %v", pkg, err)
	}
	m, err := coreml.Open(t.Context(), os.DirFS(filepath.Dir(found)), filepath.Base(found))
	if err != nil {
		t.Fatal(err)
	}
	compiled := 0
	var fail error
	d := disk{dir: t.TempDir(), build: "24A1", log: slog.New(slog.DiscardHandler), compile: func(src string) (string, error) {
		compiled++
		if !filepath.IsAbs(src) || !strings.HasSuffix(src, ".mlpackage") {
			t.Errorf("compiles %s", src)
		}
		out := filepath.Join(t.TempDir(), "out")
		return out, errors.Join(fail, os.CopyFS(out, fstest.MapFS{"model.mil": {Data: []byte(tinyProgram)}}))
	}}
	entries := func() []string {
		all, err := filepath.Glob(filepath.Join(d.dir, "compiled", "*"))
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	fail = errors.New("the compiler's trouble")
	if _, err := d.folder(t.Context(), m); err == nil || len(entries()) > 0 {
		t.Errorf("a failed compilation: %v, left %v", err, entries())
	}
	fail = nil
	first, err := d.folder(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := d.folder(t.Context(), m); err != nil || again != first || compiled != 2 {
		t.Errorf("got %s, %v after %d compilations", again, err, compiled)
	}
	d.build = "24B2"
	next, err := d.folder(t.Context(), m)
	if err != nil || next == first || compiled != 3 {
		t.Errorf("another build of the system: got %s, %v after %d compilations", next, err, compiled)
	}
	if all := entries(); len(all) != 1 || !slices.Contains(all, filepath.Dir(next)) {
		t.Errorf("copies that are kept: %v", all)
	}
}

func TestCheckInputs(t *testing.T) {
	fn := &coreml.Function{Name: "f", Inputs: []coreml.Feature{
		{Name: "ids", DType: tensor.Int32, Shape: []int{1, -1}, Enumerated: [][]int{{1, 1}, {1, 64}}},
		{Name: "x", DType: tensor.FP16, Shape: []int{-1, 4}, Range: [][2]int{{1, 8}, {4, 4}}},
		{Name: "free", DType: tensor.FP32, Shape: []int{-1}, Range: [][2]int{{2, -1}}, Optional: true},
	}}
	ids, x := tensor.New(tensor.Int32, 1, 64), tensor.New(tensor.FP16, 8, 4)
	tests := []struct {
		name string
		in   map[string]*tensor.Tensor
		says string // "" = allowed
	}{
		{"all", map[string]*tensor.Tensor{"ids": ids, "x": x, "free": tensor.New(tensor.FP32, 100)}, ""},
		{"without the optional one", map[string]*tensor.Tensor{"ids": ids, "x": x}, ""},
		{"missing", map[string]*tensor.Tensor{"x": x}, `"ids" is missing`},
		{"unknown", map[string]*tensor.Tensor{"ids": ids, "x": x, "y": x}, `no input "y"`},
		{"type", map[string]*tensor.Tensor{"ids": ids, "x": tensor.New(tensor.FP32, 8, 4)}, "fp32"},
		{"rank", map[string]*tensor.Tensor{"ids": ids, "x": tensor.New(tensor.FP16, 32)}, "[32]"},
		{"dimension", map[string]*tensor.Tensor{"ids": ids, "x": tensor.New(tensor.FP16, 8, 5)}, "[8, 5]"},
		{"above the range", map[string]*tensor.Tensor{"ids": ids, "x": tensor.New(tensor.FP16, 9, 4)}, "must be 1 to 8"},
		{"below the range", map[string]*tensor.Tensor{"ids": ids, "x": x, "free": tensor.New(tensor.FP32, 1)}, "must be 2"},
		{"not enumerated", map[string]*tensor.Tensor{"ids": tensor.New(tensor.Int32, 1, 2), "x": x}, "allows"},
		{"empty", map[string]*tensor.Tensor{"ids": ids, "x": tensor.New(tensor.FP16, 0, 4)}, "no elements"},
		{"short", map[string]*tensor.Tensor{"ids": ids, "x": {DType: tensor.FP16, Shape: []int{8, 4}, Data: make([]byte, 3)}}, "3 bytes"},
		{"negative", map[string]*tensor.Tensor{"ids": ids, "x": {DType: tensor.FP16, Shape: []int{-1, 4}}}, "wants"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			err := checkInputs("m.mlmodelc", fn, tc.in)
			switch {
			case tc.says == "" && err != nil:
				t.Error(err)
			case tc.says != "" && (diag.CodeOf(err) != diag.Usage || !strings.Contains(err.Error(), tc.says)):
				t.Errorf("got %v, want %q", err, tc.says)
			}
		})
	}
}

func TestCheckFeatures(t *testing.T) {
	m := &coreml.Model{Path: "m"}
	tests := []struct {
		name string
		fn   coreml.Function
		host Version
		ok   bool
	}{
		{"arrays", coreml.Function{Inputs: []coreml.Feature{{DType: tensor.FP16}}, Outputs: []coreml.Feature{{DType: tensor.Int32}}}, Version{15, 0}, true},
		{"image", coreml.Function{Inputs: []coreml.Feature{{DType: tensor.FP32, IsImage: true}}}, Version{15, 0}, false},
		{"int8", coreml.Function{Inputs: []coreml.Feature{{DType: tensor.Int8}}}, Version{15, 0}, false},
		{"int8 on macOS 26", coreml.Function{Inputs: []coreml.Feature{{DType: tensor.Int8}}}, Version{26, 0}, true},
		{"bool", coreml.Function{Outputs: []coreml.Feature{{DType: tensor.Bool}}}, Version{26, 0}, false},
		{"flexible state", coreml.Function{States: []coreml.Feature{{DType: tensor.FP16, Shape: []int{-1}}}}, Version{15, 0}, false},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			if err := checkFeatures(m, &tc.fn, tc.host); (err == nil) != tc.ok || err != nil && diag.CodeOf(err) != diag.Unsupported {
				t.Errorf("got %v", err)
			}
		})
	}
}
