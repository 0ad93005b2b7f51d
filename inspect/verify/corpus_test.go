package verify_test

import (
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/coreml/mil"
	"github.com/anepkg/anepkg/coreml/sharedtest"
	"github.com/anepkg/anepkg/inspect/verify"
)

// serious leaves out unused constants, which good programs have.
func serious(ps []verify.Problem) []verify.Problem {
	var out []verify.Problem
	for _, p := range ps {
		if p.Class != verify.Unused {
			out = append(out, p)
		}
	}
	return out
}

// TestVectors: the programs of the op vectors are valid, so there is nothing
// to find in them, whatever the op and opset.
func TestVectors(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(sharedtest.Path(t, "vectors/ops"), "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no vectors: %v", err)
	}
	n := 0
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var f struct {
			Cases []struct {
				Name, Program string
				Error         bool
			}
		}
		if err := json.Unmarshal(data, &f); err != nil {
			t.Fatal(err)
		}
		for _, c := range f.Cases {
			if c.Error || c.Program == "" {
				continue
			}
			n++
			prog, err := mil.Parse("model.mil", []byte(c.Program))
			if err != nil {
				t.Errorf("%s/%s: %v", filepath.Base(name), c.Name, err)
				continue
			}
			found, err := verify.Program(context.Background(), prog, 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range serious(found) {
				t.Errorf("%s/%s: %s at %v: %s", filepath.Base(name), c.Name, p.Class, p.Pos, p.Msg)
			}
		}
	}
	t.Logf("%d programs", n)
}

// models returns every model container and text program below the samples.
func models(t *testing.T) []string {
	var out []string
	for _, dir := range []string{"models/tiny", "models/demo", "models/compiled", "models/packages", "models/anemll-qwen3-1.7b-ctx2048-lfs-pointers"} {
		err := filepath.WalkDir(sharedtest.Path(t, dir), func(p string, _ fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if strings.HasSuffix(p, ".mlmodelc") || strings.HasSuffix(p, ".mlpackage") {
				out = append(out, p)
				return filepath.SkipDir
			}
			if strings.HasSuffix(p, ".mil") && !strings.Contains(p, "espresso") { // those were never compiled by Core ML
				out = append(out, p)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// TestSamples: nothing is wrong with the programs of real and generated
// packages, in text and in protobuf.
func TestSamples(t *testing.T) {
	ctx := context.Background()
	n := 0
	for _, p := range models(t) {
		m, err := coreml.Open(ctx, os.DirFS(filepath.Dir(p)), filepath.Base(p))
		if err != nil {
			continue // pipelines and classifiers
		}
		n++
		found, err := verify.Program(ctx, m.Program, m.SpecVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, q := range serious(found) {
			t.Errorf("%s: %s: %s at %v: %s", p, q.Function, q.Class, q.Pos, q.Msg)
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
	if n < 150 {
		t.Errorf("only %d models opened", n)
	}
	t.Logf("%d models", n)
}
