package cpu_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/coreml/backendtest"
	"github.com/anepkg/anepkg/coreml/cpu"
	"github.com/anepkg/anepkg/coreml/tensor"
)

// openText makes a model of a program's text.
func openText(t testing.TB, program string) *coreml.Model {
	t.Helper()
	fsys := fstest.MapFS{"m.mlmodelc/model.mil": {Data: []byte(program)}}
	m, err := coreml.Open(context.Background(), fsys, "m.mlmodelc")
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// load readies the default function of m; the session ends with the test.
func load(t testing.TB, m *coreml.Model, p coreml.Precision) coreml.Session {
	t.Helper()
	s, err := cpu.New().Load(context.Background(), m, "", coreml.LoadOptions{Precision: p, Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func readJSON(t testing.TB, path string, into any) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(b, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func decoded(t testing.TB, m map[string]backendtest.Array) map[string]*tensor.Tensor {
	t.Helper()
	out := make(map[string]*tensor.Tensor, len(m))
	for name, a := range m {
		x, err := a.Tensor()
		if err != nil {
			t.Fatal(err)
		}
		out[name] = x
	}
	return out
}

// TestExtraCases runs what the shared vectors leave out: testdata/extra.py
// says where the expected values come from.
func TestExtraCases(t *testing.T) { runCases(t, "extra.json", 40) }

// runCases checks every case of a file of testdata, of which there must be
// least, in both precisions.
func runCases(t *testing.T, name string, least int) {
	t.Helper()
	var file struct{ Cases []backendtest.Case }
	readJSON(t, filepath.Join("testdata", name), &file)
	if len(file.Cases) < least {
		t.Fatalf("got %d cases, want %d or more", len(file.Cases), least)
	}
	for _, p := range []coreml.Precision{coreml.Strict, coreml.Fast} {
		for _, c := range file.Cases {
			t.Run(string(p)+"/"+c.Name, func(t *testing.T) {
				fails := c.Error
				c.Error = false
				err := backendtest.Check(t.Context(), cpu.New(), &c, backendtest.Options{Precision: p, Threads: 2})
				if fails {
					checkRefusal(t, err)
				} else if err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// checkRefusal wants an error with a position that no run-time panic caused.
func checkRefusal(t *testing.T, err error) {
	t.Helper()
	if err == nil {
		t.Fatal("got no error")
	}
	if s := err.Error(); strings.Contains(s, "runtime error") || !strings.Contains(s, "model.mil:") {
		t.Errorf("error does not explain: %v", err)
	}
}
