package runner

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/coreml/cpu"
	"github.com/anepkg/anepkg/coreml/sharedtest"
	"github.com/anepkg/anepkg/manifest"
)

// TestDecodeAllocates counts what a decode step allocates once the first
// steps have shown how much room it takes.
func TestDecodeAllocates(t *testing.T) {
	if raceOn {
		t.Skip("the race detector allocates")
	}
	var dirs []string
	own, _ := filepath.Glob(filepath.Join("testdata", "packages", "*", "compiled"))
	dirs = append(dirs, own...)
	all, _ := filepath.Glob(filepath.Join(sharedtest.Path(t, "models", "tiny"), "*", "compiled"))
	dirs = append(dirs, all...)
	for _, dir := range dirs {
		name := filepath.Base(filepath.Dir(dir))
		for _, threads := range []int{1, 2} {
			t.Run(name+"/"+[]string{"", "one", "two"}[threads], func(t *testing.T) { countDecode(t, dir, threads) })
		}
	}
}

func countDecode(t *testing.T, dir string, threads int) {
	pkg, err := manifest.Open(t.Context(), os.DirFS(dir), dir)
	if err != nil {
		t.Skip(err)
	}
	defer pkg.Close() //nolint:errcheck // only read from
	r, err := Open(t.Context(), pkg, cpu.New(), Options{Precision: coreml.Fast, Threads: threads})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close() //nolint:errcheck // only read from
	if r.contract == nil {
		t.Skip("an encoder")
	}
	pos := 0
	step := func() {
		if _, err := r.contract.Decode(t.Context(), 1+pos%7, pos); err != nil {
			t.Fatal(err)
		}
		pos++
	}
	each, bytes := sharedtest.Allocations(6, 20, step)
	t.Logf("%d allocations, %d bytes a step", each, bytes)
	if each > 0 {
		t.Errorf("a decode step makes %d allocations of %d bytes, want none", each, bytes)
	}
}
