package cpu_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/coreml/cpu"
	"github.com/anepkg/anepkg/coreml/sharedtest"
	"github.com/anepkg/anepkg/coreml/tensor"
)

// TestAllocations: a run takes its arrays, shapes and headers from memory that
// earlier ones gave back. runner's TestDecodeAllocates counts whole steps of
// every sample.
func TestAllocations(t *testing.T) {
	if raceOn {
		t.Skip("the race detector allocates")
	}
	dir := filepath.Join("..", "..", "runner", "testdata", "packages", "seed-qwen3-lut6", "compiled")
	names, err := filepath.Glob(filepath.Join(dir, "*chunk*01*.mlmodelc"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no chunk in %s: %v", dir, err)
	}
	m, err := coreml.Open(t.Context(), os.DirFS(dir), filepath.Base(names[0]))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close() //nolint:errcheck // only read from
	s, err := cpu.New().Load(t.Context(), m, "infer", coreml.LoadOptions{Threads: 1, ReuseOutputs: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // only read from
	state, err := cpu.New().NewState(s.Function().States)
	if err != nil {
		t.Fatal(err)
	}
	in := map[string]*tensor.Tensor{}
	for _, f := range s.Function().Inputs {
		in[f.Name] = tensor.New(f.DType, f.Shape...)
	}
	step := func() {
		if _, err := s.Predict(t.Context(), in, state); err != nil {
			t.Fatal(err)
		}
	}
	if n, bytes := sharedtest.Allocations(3, 20, step); n > 0 { // the first runs fill the arena
		t.Errorf("each step makes %d allocations of %d bytes, want none", n, bytes)
	}
}
