//go:build gnustep

// Package fakecoreml is a fake of Apple's Core ML for the bridge of
// coreml/native, for tests on Linux with GNUstep. The fake is Objective-C
// (coreml/native/testdata/fake); what models declare and compute comes from
// the CPU engine. Only tests import it, in builds with the tag gnustep.
//
// Files: fakecoreml.go (building the fake, its switches), engine.go (loading
// and predictions), plan.go (compute plans).
package fakecoreml

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/ebitengine/purego"
)

// Modes of the fake.
const (
	Padded         = 1 << iota // outputs and states with padded, odd strides
	IgnoreBackings             // results in arrays of its own
	RefuseBackings             // an error when outputs have backings
	NoBackings                 // a system without setOutputBackings:
)

// Functions of the fake library.
var (
	hooks       func(load, predict, compile, plan uintptr)
	SetModes    func(modes int32)
	Live        func() int64 // objects alive
	Calls       func() int64 // loads, compilations, states, predictions, plans
	Faults      func() string
	Log         func() string
	Reset       func() // faults, log, modes and failures
	Fail        func(kind, domain string, code int64, text, below string, times int32)
	Has         func(class, selector string, static int32) int32
	declare     func(model uintptr, kind int32, name string, typ int64, shape *int64, rank int32)
	input       func(provider uintptr, name string) uintptr
	stateArray  func(state uintptr, name string) uintptr
	arrayData   func(arr uintptr) uintptr
	arrayBytes  func(arr uintptr) int64
	arrayType   func(arr uintptr) int64
	arrayRank   func(arr uintptr) int32
	arrayDim    func(arr uintptr, i int32) int64
	arrayStride func(arr uintptr, i int32) int64
	output      func(result uintptr, name string, typ int64, shape *int64, rank int32) uintptr
	planOp      func(program uintptr, function string, parent uintptr, op, out string, device int32, cost float64) uintptr
)

var started struct {
	once sync.Once
	err  error
	skip string

	library uintptr
}

// Start builds and loads the fake, once in a process, resets it, and returns
// the handle for native.UseFake. The test is skipped where GNUstep or its compiler is missing, and fails
// when ANEPKG_REQUIRE_GNUSTEP is 1.
func Start(t testing.TB) uintptr {
	t.Helper()
	started.once.Do(start)
	switch {
	case started.skip != "" && os.Getenv("ANEPKG_REQUIRE_GNUSTEP") == "1":
		t.Fatal(started.skip)
	case started.skip != "":
		t.Skip(started.skip)
	case started.err != nil:
		t.Fatal(started.err)
	}
	Reset()
	t.Cleanup(Reset)
	return started.library
}

func start() {
	_, here, _, _ := runtime.Caller(0)
	src := filepath.Join(filepath.Dir(filepath.Dir(here)), "testdata", "fake", "FakeCoreML.m")
	dir, err := os.MkdirTemp("", "fakecoreml")
	if err != nil {
		started.err = err
		return
	}
	lib := filepath.Join(dir, "libfakecoreml.so")
	out, err := exec.Command("gcc", "-shared", "-fPIC", "-O1", "-Wall", "-Wno-import", "-fexceptions", "-fobjc-exceptions",
		"-fconstant-string-class=NSConstantString", "-I/usr/include/GNUstep", "-o", lib, src, "-lgnustep-base", "-lobjc").CombinedOutput()
	if err != nil {
		started.skip = "the fake Core ML does not build here (Debian: apt-get install gobjc libgnustep-base-dev): " + strings.TrimSpace(string(out)) + " " + err.Error()
		return
	}
	h, err := purego.Dlopen(lib, purego.RTLD_NOW|purego.RTLD_GLOBAL)
	if err != nil {
		started.err = err
		return
	}
	_ = os.RemoveAll(dir) // it is mapped; the bridge opens it by the same handle
	for name, fn := range map[string]any{
		"fake_hooks": &hooks, "fake_modes": &SetModes, "fake_live": &Live, "fake_calls": &Calls, "fake_faults": &Faults,
		"fake_log": &Log, "fake_reset": &Reset, "fake_fail": &Fail, "fake_has": &Has, "fake_declare": &declare, "fake_input": &input,
		"fake_state": &stateArray, "fake_data": &arrayData, "fake_bytes": &arrayBytes, "fake_type": &arrayType, "fake_rank": &arrayRank,
		"fake_dim": &arrayDim, "fake_stride": &arrayStride, "fake_output": &output, "fake_op": &planOp,
	} {
		purego.RegisterLibFunc(fn, h, name)
	}
	hooks(purego.NewCallback(load), purego.NewCallback(predict), purego.NewCallback(compile), purego.NewCallback(plan))
	started.library = h
}
