package backends_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/anepkg/anepkg"

// listed is the part of "go list -json" that the rules need.
type listed struct {
	ImportPath string
	Imports    []string
	Standard   bool
}

// layer says what the packages below a path may import of this module.
// A name stands for the package and everything below it; "=name" for the
// package alone.
type layer struct {
	name string
	may  []string
}

// layers holds the arrows of the architecture (docs/architecture.md). The
// first entry that contains a package decides.
var layers = []layer{
	{"coreml/diag", []string{}},
	{"coreml/tensor", []string{"coreml/diag"}},
	{"coreml/mil", []string{"coreml/mil", "coreml/tensor", "coreml/diag"}},
	{"coreml/blob", []string{"coreml/blob", "coreml/tensor", "coreml/diag"}},
	{"coreml/wire", []string{"coreml/diag"}},
	{"coreml/mlmodelc", []string{"coreml/mlmodelc", "coreml/wire", "coreml/mil", "coreml/blob", "coreml/tensor", "coreml/diag"}},
	{"coreml/mlpackage", []string{"coreml/mlpackage", "coreml/mlmodelc", "coreml/wire", "coreml/mil", "coreml/blob", "coreml/tensor", "coreml/diag"}},
	{"coreml/sharedtest", []string{}},
	{"coreml/compile", []string{"coreml/mlpackage", "coreml/mlmodelc", "coreml/wire", "coreml/mil", "coreml/tensor", "coreml/diag"}},
	{"coreml/cpu", []string{"=coreml", "coreml/cpu", "coreml/mil", "coreml/blob", "coreml/tensor", "coreml/diag"}},
	{"coreml/native/fakecoreml", []string{"=coreml", "coreml/cpu", "coreml/mil", "coreml/tensor"}}, // only tests import it
	{"coreml/native", []string{"=coreml", "coreml/native", "coreml/mil", "coreml/blob", "coreml/tensor", "coreml/diag"}},
	{"coreml/backendtest", []string{"=coreml", "coreml/backendtest", "coreml/mil", "coreml/blob", "coreml/mlmodelc", "coreml/mlpackage", "coreml/tensor", "coreml/diag"}},
	{"coreml/backends", []string{"=coreml", "coreml/cpu", "coreml/native", "coreml/diag"}},
	{"coreml", []string{"coreml/mil", "coreml/blob", "coreml/mlmodelc", "coreml/mlpackage", "coreml/tensor", "coreml/diag"}},
	{"manifest", []string{"manifest", "=coreml", "coreml/mil", "coreml/blob", "coreml/mlmodelc", "coreml/mlpackage", "coreml/tensor", "coreml/diag"}},
	{"inspect", []string{"inspect", "manifest", "runner/tokenizer", "runner/chattmpl", "=coreml", "coreml/mil", "coreml/blob", "coreml/mlmodelc", "coreml/mlpackage", "coreml/tensor", "coreml/diag"}},
	{"runner/tokenizer", []string{"runner/tokenizer", "coreml/diag"}},
	{"runner/chattmpl", []string{"runner/chattmpl", "coreml/diag"}},
	{"runner", []string{"runner", "manifest", "=coreml", "coreml/mil", "coreml/blob", "coreml/mlmodelc", "coreml/mlpackage", "coreml/tensor", "coreml/diag"}},
	{"fetch", []string{"fetch", "manifest", "=coreml", "coreml/mil", "coreml/blob", "coreml/mlmodelc", "coreml/mlpackage", "coreml/tensor", "coreml/diag"}},
	{"cmd", []string{"cmd", "inspect", "fetch", "runner", "manifest", "=coreml", "coreml/backends", "coreml/compile", "coreml/mil", "coreml/blob", "coreml/mlmodelc", "coreml/mlpackage", "coreml/tensor", "coreml/diag"}},
}

func within(pkg, dir string) bool { return pkg == dir || strings.HasPrefix(pkg, dir+"/") }

// violations returns the imports of pkg, both relative to the module, that
// the layers forbid.
func violations(pkg string, imports []string) []string {
	i := slices.IndexFunc(layers, func(l layer) bool { return within(pkg, l.name) })
	if i < 0 {
		return []string{pkg + ": the package has no place in the layers"}
	}
	var out []string
	for _, imp := range imports {
		if !slices.ContainsFunc(layers[i].may, func(may string) bool {
			alone, exact := strings.CutPrefix(may, "=")
			return exact && imp == alone || !exact && within(imp, may)
		}) {
			out = append(out, fmt.Sprintf("%s imports %s; %s may import %s", pkg, imp, layers[i].name, strings.Join(layers[i].may, " ")))
		}
	}
	return out
}

// TestImportDirections holds the arrows of the architecture over the real
// import graph.
func TestImportDirections(t *testing.T) {
	pkgs := listModule(t)
	seen := 0
	for _, p := range pkgs {
		pkg, ours := strings.CutPrefix(p.ImportPath, module+"/")
		if !ours {
			continue
		}
		seen++
		var imports []string
		for _, imp := range p.Imports {
			if rel, ok := strings.CutPrefix(imp, module+"/"); ok {
				imports = append(imports, rel)
			}
		}
		for _, v := range violations(pkg, imports) {
			t.Error(v)
		}
		for _, bad := range []string{"util", "utils", "common", "helper", "helpers", "internal", "misc"} {
			if slices.Contains(strings.Split(pkg, "/"), bad) {
				t.Errorf("%s: no package is called %s", pkg, bad)
			}
		}
		if (pkg == "coreml/diag" || pkg == "coreml/tensor") && !standardOnly(p.Imports) {
			t.Errorf("%s is a leaf and imports only the standard library, got %v", pkg, p.Imports)
		}
	}
	if seen < 10 {
		t.Errorf("go list found %d packages of %s, want at least 10", seen, module)
	}
}

// TestViolationsAreSeen shows that the rules can fail.
func TestViolationsAreSeen(t *testing.T) {
	tests := []struct {
		pkg, imp string
		bad      bool
	}{
		{"coreml", "coreml/cpu", true},
		{"coreml/cpu", "coreml/native", true},
		{"coreml/cpu", "coreml/backends", true},
		{"coreml/mil", "coreml", true},
		{"coreml/tensor", "coreml/mil", true},
		{"inspect", "coreml/cpu", true},
		{"inspect", "runner", true},
		{"inspect", "runner/tokenizer", false},
		{"manifest", "inspect", true},
		{"runner", "coreml/backends", true},
		{"runner", "coreml", false},
		{"fetch", "inspect", true},
		{"fetch", "runner", true},
		{"cmd/anepkg", "coreml/backends", false},
		{"cmd/anepkg", "coreml/cpu", true},
		{"strings2", "coreml", true},
	}
	for _, tt := range tests {
		t.Run(path.Join(tt.pkg, "to", tt.imp), func(t *testing.T) {
			if got := len(violations(tt.pkg, []string{tt.imp})) > 0; got != tt.bad {
				t.Errorf("got forbidden=%v, want %v", got, tt.bad)
			}
		})
	}
}

func standardOnly(imports []string) bool {
	return !slices.ContainsFunc(imports, func(imp string) bool {
		first, _, _ := strings.Cut(imp, "/")
		return strings.Contains(first, ".") && !strings.HasPrefix(imp, module+"/coreml/diag")
	})
}

// listModule runs "go list -deps -json ./..." at the root of the module.
func listModule(t *testing.T) []listed {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(root, "go.mod")); err != nil {
		t.Fatalf("the module's root is not where it was: %v", err)
	}
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-e", "-json=ImportPath,Imports,Standard", "./...")
	cmd.Dir = root
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Skipf("no go command: %v", err)
	}
	var pkgs []listed
	for dec := json.NewDecoder(out); ; {
		var p listed
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("output of go list: %v", err)
		}
		if !p.Standard {
			pkgs = append(pkgs, p)
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("go list: %v", err)
	}
	return pkgs
}
