//go:build gnustep

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anepkg/anepkg/coreml/native"
	"github.com/anepkg/anepkg/coreml/native/fakecoreml"
	"github.com/anepkg/anepkg/coreml/sharedtest"
	"github.com/anepkg/anepkg/coreml/tensor"
)

// startFake puts the fake Core ML under the commands of this test, and gives
// them a cache folder of their own.
func startFake(t *testing.T) {
	t.Helper()
	native.UseFake(fakecoreml.Start(t))
	native.UseFakeVersion(native.Version{Major: 15})
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Cleanup(func() {
		if f := fakecoreml.Faults(); f != "" {
			t.Errorf("the fake saw:\n%s", f)
		}
	})
}

// command runs one command line.
func command(t *testing.T, want int, args ...string) (stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	if got := run(t.Context(), args, strings.NewReader(""), &out, &errs, os.Getenv); got != want {
		t.Fatalf("anepkg %s ends with %d, want %d\n%s%s(engine: %v)", strings.Join(args, " "), got, want, out.String(), errs.String(), fakecoreml.Engine.Err)
	}
	return out.String(), errs.String()
}

func runResult(t *testing.T, args ...string) (ids []int, backend, reason string) {
	t.Helper()
	out, _ := command(t, 0, append([]string{"run", "--json"}, args...)...)
	var res struct {
		Backend string `json:"backend"`
		Reason  string `json:"backend_reason"`
		IDs     []int  `json:"generated_ids"`
	}
	if err := json.Unmarshal([]byte(out), &res); err != nil {
		t.Fatal(err)
	}
	return res.IDs, res.Backend, res.Reason
}

// TestRunThroughCoreML runs the demo through the bridge: from a folder, a zip,
// and with odd strides.
func TestRunThroughCoreML(t *testing.T) {
	startFake(t)
	dir := filepath.Join(t.TempDir(), "demo")
	command(t, 0, "demo", "--extract", dir)
	zip := filepath.Join(t.TempDir(), "demo.zip")
	if err := zipFolder(os.DirFS(dir), "demo", zip); err != nil {
		t.Fatal(err)
	}
	want, _, _ := runResult(t, dir, "--backend", "cpu", "--precision", "strict", "-p", "What is a KV cache?")
	if len(want) < 10 {
		t.Fatalf("the CPU engine gives %v", want)
	}
	for name, tc := range map[string]struct {
		target  string
		backend string
		modes   int32
	}{
		"coreml": {dir, "coreml", 0}, "auto": {dir, "auto", 0}, "zip": {zip, "coreml", 0},
		"odd strides": {dir, "coreml", fakecoreml.Padded}, "own arrays": {dir, "coreml", fakecoreml.IgnoreBackings},
	} {
		t.Run(name, func(t *testing.T) {
			fakecoreml.Reset()
			fakecoreml.SetModes(tc.modes)
			before := fakecoreml.Live()
			got, backend, reason := runResult(t, tc.target, "--backend", tc.backend, "-p", "What is a KV cache?")
			if !equalInts(got, want) || backend != "coreml" {
				t.Errorf("%s gives %v, want %v", backend, got, want)
			}
			if (reason != "") != (tc.backend == "auto") {
				t.Errorf("the reason is %q", reason)
			}
			if n := strings.Count(fakecoreml.Log(), "newState"); n != 1 {
				t.Errorf("%d MLStates for chunks and functions that share one", n)
			}
			if now := fakecoreml.Live(); now != before {
				t.Errorf("%d objects are left", now-before)
			}
		})
	}
}

func equalInts(a, b []int) bool {
	x, errA := json.Marshal(a)
	y, errB := json.Marshal(b)
	return errA == nil && errB == nil && bytes.Equal(x, y)
}

// TestCoreMLCopies: a .mlmodelc in a folder is loaded where it is, an archive is
// copied and an .mlpackage compiled, once.
func TestCoreMLCopies(t *testing.T) {
	startFake(t)
	dir := extractedDemo(t)
	kept := func(kind string) int {
		all, err := filepath.Glob(filepath.Join(os.Getenv("XDG_CACHE_HOME"), "anepkg", "coreml", kind, "*"))
		if err != nil {
			t.Fatal(err)
		}
		return len(all)
	}
	runResult(t, dir, "--backend", "coreml", "-p", "x", "-n", "1")
	if n := kept("*"); n != 0 {
		t.Errorf("%d copies of models that lie in a folder", n)
	}
	zip := filepath.Join(t.TempDir(), "demo.zip")
	if err := zipFolder(os.DirFS(dir), "demo", zip); err != nil {
		t.Fatal(err)
	}
	pkg := "../../runner/testdata/packages/anemll-llama-lut4/package"
	for round, compiled := range []int{3, 0} {
		fakecoreml.Reset()
		runResult(t, zip, "--backend", "coreml", "-p", "x", "-n", "1")
		runResult(t, pkg, "--backend", "coreml", "--prompt-ids", "1,2", "-n", "1")
		if n := strings.Count(fakecoreml.Log(), "compileModelAtURL"); n != compiled {
			t.Errorf("round %d: %d models were compiled, want %d", round, n, compiled)
		}
		if e, c := kept("extracted"), kept("compiled"); e != 4 || c != 3 {
			t.Errorf("round %d: %d copies and %d compiled ones, want 4 and 3", round, e, c)
		}
	}
}

func TestCoreMLAuto(t *testing.T) {
	startFake(t)
	dir := filepath.Join(t.TempDir(), "demo")
	command(t, 0, "demo", "--extract", dir)
	native.UseFakeVersion(native.Version{Major: 14, Minor: 4})
	_, backend, reason := runResult(t, dir, "-p", "x", "-n", "1")
	if backend != "cpu" || !strings.Contains(reason, "macOS 15") {
		t.Errorf("macOS 14: %s because %q", backend, reason)
	}
	_, stderr := command(t, exitUnsupported, "run", dir, "--backend", "coreml", "-p", "x")
	if !strings.Contains(stderr, "macOS 15") || !strings.Contains(stderr, "--backend cpu") {
		t.Errorf("macOS 14: %s", stderr)
	}
	native.UseFakeVersion(native.Version{Major: 15})
	fakecoreml.Fail("load", "com.apple.CoreML", 11, "ANECCompile() FAILED", "", 1)
	_, backend, reason = runResult(t, dir, "-p", "x", "-n", "1")
	if backend != "cpu" || !strings.Contains(reason, "ANECCompile") {
		t.Errorf("a refusal: %s because %q", backend, reason)
	}
	fakecoreml.Fail("load", "com.apple.CoreML", 11, "ANECCompile() FAILED", "", 1)
	_, stderr = command(t, exitRun, "run", dir, "--backend", "coreml", "-p", "x")
	if !strings.Contains(stderr, "smaller chunks") {
		t.Errorf("a refusal: %s", stderr)
	}
	_, backend, reason = runResult(t, dir, "-p", "x", "-n", "1", "--precision", "strict")
	if backend != "cpu" || !strings.Contains(reason, "strict") {
		t.Errorf("a precision: %s because %q", backend, reason)
	}
	command(t, 0, "trace", dir)
	command(t, 0, "demo")
}

func TestCompareThroughCoreML(t *testing.T) {
	startFake(t)
	dir := filepath.Join(t.TempDir(), "demo")
	command(t, 0, "demo", "--extract", dir)
	out, _ := command(t, 0, "compare", dir, "--backend", "coreml,cpu", "--precision", "strict")
	if !strings.Contains(out, "5 cases agree") || !strings.Contains(out, "output_hidden_states") {
		t.Errorf("got\n%s", out)
	}
	fakecoreml.Engine.Alter = func(path, fn string, out map[string]*tensor.Tensor) {
		if strings.Contains(path, "01of02") && fn == "infer" {
			for _, x := range out {
				for i := 0; i < len(x.Data); i += 4 {
					x.Data[i+1] ^= 0x80
				}
			}
		}
	}
	defer func() { fakecoreml.Engine.Alter = nil }()
	out, _ = command(t, exitFindings, "compare", dir, "--backend", "coreml,cpu", "--json")
	var res struct {
		Pass  bool
		First struct{ Part, Function, Output string } `json:"first_part"`
	}
	if err := json.Unmarshal([]byte(out), &res); err != nil {
		t.Fatal(err)
	}
	if res.Pass || !strings.Contains(res.First.Part, "01of02") || res.First.Function != "infer" {
		t.Errorf("got %+v", res)
	}
}

// TestPackagesThroughCoreML holds packages to their golden files through the
// bridge, as .mlmodelc and as .mlpackage: the samples, and those of the shared
// data, which have every layout.
func TestPackagesThroughCoreML(t *testing.T) {
	startFake(t)
	fakecoreml.SetModes(fakecoreml.Padded)
	comparePackages(t, "../../runner/testdata/packages/*/golden.json")
}

func TestSharedPackagesThroughCoreML(t *testing.T) {
	startFake(t)
	fakecoreml.SetModes(fakecoreml.Padded)
	native.UseFakeVersion(native.Version{Major: 26}) // some are of specification version 10
	comparePackages(t, filepath.Join(sharedtest.Path(t, "models", "tiny"), "*", "golden.json"))
}

func comparePackages(t *testing.T, pattern string) {
	t.Helper()
	goldens, err := filepath.Glob(pattern)
	if err != nil || len(goldens) == 0 {
		t.Fatalf("no samples at %s: %v", pattern, err)
	}
	for _, golden := range goldens {
		for _, form := range []string{"package", "compiled"} {
			dir := filepath.Join(filepath.Dir(golden), form)
			if _, err := os.Stat(dir); err != nil {
				continue
			}
			t.Run(filepath.Base(filepath.Dir(golden))+"/"+form, func(t *testing.T) {
				before := fakecoreml.Live()
				out, _ := command(t, 0, "compare", dir, "--golden", golden, "--backend", "coreml")
				if !strings.Contains(out, "agree") || !strings.Contains(out, "coreml") {
					t.Errorf("got\n%s", out)
				}
				if now := fakecoreml.Live(); now != before {
					t.Errorf("%d objects are left", now-before)
				}
			})
		}
	}
}

func TestCoreMLComputePlan(t *testing.T) {
	startFake(t)
	dir := extractedDemo(t)
	out, _ := command(t, 0, "inspect", "--compute-plan", dir)
	if !strings.Contains(out, "gather x") || !strings.Contains(out, "the lowest share is") {
		t.Errorf("got\n%s", out)
	}
	out, _ = command(t, exitFindings, "inspect", "--compute-plan", "--min-residency", "1", "--json", dir)
	var res planJSON
	if err := json.Unmarshal([]byte(out), &res); err != nil {
		t.Fatal(err)
	}
	// The fake puts gather on the CPU and all else on the Neural Engine, at the
	// same cost; of the embeddings' 7 ops that is one.
	if res.Pass || len(res.Functions) != 6 || res.Residency < 0.857 || res.Residency > 0.858 || res.Functions[0].Devices["cpu"] != 1 || len(res.Functions[1].Ops) < 50 {
		t.Errorf("got %+v of %d functions", res.Residency, len(res.Functions))
	}
	command(t, 0, "inspect", "--compute-plan", "--min-residency", "0", dir)
	native.UseFakeVersion(native.Version{Major: 14, Minor: 3})
	command(t, exitUnsupported, "inspect", "--compute-plan", dir)
}
