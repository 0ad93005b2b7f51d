package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	_ "github.com/owenrumney/go-sarif/v3/pkg/report/v210/sarif" // its source holds the OASIS schema
	"github.com/xeipuuv/gojsonschema"

	"github.com/anepkg/anepkg/coreml/sharedtest"
)

// sarifSchema is the JSON schema of SARIF 2.1.0 (OASIS, errata 01), read out
// of the source of go-sarif, which does not export it.
func sarifSchema(t *testing.T) *gojsonschema.Schema {
	t.Helper()
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-f", "{{.Dir}}", "github.com/owenrumney/go-sarif/v3/pkg/report/v210/sarif").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(strings.TrimSpace(string(dir)), "schema.go"), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	text := ""
	ast.Inspect(file, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING && text == "" {
			text, err = strconv.Unquote(lit.Value)
		}
		return true
	})
	if err != nil || !strings.Contains(text, "2.1.0") {
		t.Fatalf("no schema in go-sarif's source: %v", err)
	}
	schema, err := gojsonschema.NewSchema(gojsonschema.NewStringLoader(text))
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// TestSARIFSchema validates the output for good and broken packages.
func TestSARIFSchema(t *testing.T) {
	schema := sarifSchema(t)
	check := func(t *testing.T, text string) []gojsonschema.ResultError {
		t.Helper()
		r, err := schema.Validate(gojsonschema.NewStringLoader(text))
		if err != nil {
			t.Fatal(err)
		}
		return r.Errors()
	}
	sample := render(t, "sarif")
	for _, e := range check(t, sample) {
		t.Errorf("sample report: %s", e)
	}
	for _, bad := range []struct{ old, now string }{{`"columnKind"`, `"kolumnKind"`}, {`"level": "error"`, `"level": "bad"`}, {`"version": "2.1.0"`, `"version": "3"`}} {
		if broken := strings.Replace(sample, bad.old, bad.now, 1); broken == sample || len(check(t, broken)) == 0 {
			t.Errorf("the schema lets %s pass for %s", bad.now, bad.old)
		}
	}
	for _, pkg := range []string{"tiny/seed-qwen3-int8/compiled", "anemll-qwen3-1.7b-ctx2048-lfs-pointers", "negative/neg-nsfw-espresso", "tiny/cml-gemma4-swa-chunks/package"} {
		t.Run(pkg, func(t *testing.T) {
			_, out, stderr := execute(t.Context(), "", "validate", "--format", "sarif", "--fast", sharedtest.Path(t, "models/"+pkg))
			if out == "" {
				t.Fatal(stderr)
			}
			for _, e := range check(t, out) {
				t.Error(e)
			}
		})
	}
}
