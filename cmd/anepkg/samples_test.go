package main

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/anepkg/anepkg/coreml/sharedtest"
)

// samples lists every sample package, as paths below models.
func samples(t *testing.T, patterns ...string) []string {
	t.Helper()
	root := sharedtest.Path(t, "models")
	var out []string
	for _, p := range patterns {
		found, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(p)))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, found...)
	}
	if len(out) == 0 {
		t.Fatalf("no samples match %v", patterns)
	}
	return out
}

// requiredMembers are the top members of each command's object.
var requiredMembers = map[string][]string{
	"inspect":  {"package", "parts", "tokenizer", "files", "runtimes"},
	"validate": {"summary", "findings", "checks_run", "checks_skipped"},
	"states":   {"states", "total_bytes"},
	"layers":   {"num_layers", "chunks", "layers"},
	"error":    {"error"},
}

// TestEverySample gives every sample to every describing command: each must
// open it or refuse it by the contract.
func TestEverySample(t *testing.T) {
	if testing.Short() {
		t.Skip("looks at every sample")
	}
	dirs := samples(t, "tiny/*/package", "tiny/*/compiled", "compiled/*", "packages/*", "negative/*", "anemll-*", "demo/*")
	for _, dir := range dirs {
		name := strings.TrimPrefix(dir, sharedtest.Path(t, "models"))
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for command := range requiredMembers {
				if command != "error" {
					checkSample(t, command, dir)
				}
			}
		})
	}
}

func checkSample(t *testing.T, command, dir string) {
	t.Helper()
	status, stdout, stderr := execute(t.Context(), "", command, dir, "--json")
	for line := range strings.Lines(stderr) {
		if !strings.HasPrefix(line, "warning: ") {
			t.Errorf("%s: wrote to stderr: %s", command, line)
		}
	}
	var object map[string]any
	if err := json.Unmarshal([]byte(stdout), &object); err != nil {
		t.Fatalf("%s: not one JSON object: %v", command, err)
	}
	schema, _ := object["schema"].(string)
	kind := strings.TrimSuffix(strings.TrimPrefix(schema, "anepkg."), "/1")
	if kind != command && (kind != "error" || status < exitUsage) {
		t.Errorf("%s: got schema %q with status %d", command, schema, status)
	}
	if kind == "error" && !slices.Contains([]int{exitIO, exitUnsupported}, status) {
		t.Errorf("%s: got status %d: %s", command, status, stdout)
	}
	for _, key := range requiredMembers[kind] {
		if _, ok := object[key]; !ok {
			t.Errorf("%s: no member %q", command, key)
		}
	}
	if negative := strings.Contains(filepath.ToSlash(dir), "/negative/"); negative && (status == exitOK) {
		t.Errorf("%s: accepts an unsupported model", command)
	}
}
