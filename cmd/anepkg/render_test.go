package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/anepkg/anepkg/coreml/sharedtest"
)

// TestRenderVectors renders every request with every template; jinja2 made
// the expected texts.
func TestRenderVectors(t *testing.T) {
	dir := sharedtest.Path(t, "vectors", "chat-template")
	var want map[string]map[string]struct {
		OK *string `json:"ok"`
	}
	readJSON(t, filepath.Join(dir, "expected.json"), &want)
	var requests map[string]json.RawMessage
	readJSON(t, filepath.Join(dir, "requests.json"), &requests)
	rendered := 0
	for template, cases := range want {
		for name, request := range requests {
			status, stdout, stderr := execute(t.Context(), string(request), "render", "--template", filepath.Join(dir, "templates", template), "--now", "2026-11-30")
			switch exp := cases[name].OK; {
			case exp != nil && (status != exitOK || stdout != *exp):
				t.Errorf("%s, %s: got status %d, %s\n%s\nwant\n%s", template, name, status, stderr, stdout, *exp)
			case exp == nil && status != exitRun:
				t.Errorf("%s, %s: got status %d, want %d as jinja2 refuses it", template, name, status, exitRun)
			default:
				rendered++
			}
		}
	}
	if rendered < 17*15 {
		t.Errorf("%d renderings agree, want at least %d", rendered, 17*15)
	}
}

func readJSON(t *testing.T, name string, into any) {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	if err := dec.Decode(into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}
