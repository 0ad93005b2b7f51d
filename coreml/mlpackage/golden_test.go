package mlpackage_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/coreml/mil"
	"github.com/anepkg/anepkg/coreml/mlpackage"
	"github.com/anepkg/anepkg/coreml/sharedtest"
)

func load(t *testing.T, path string) *mlpackage.Model {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	m, err := mlpackage.ParseModel("model.mlmodel", data)
	if err != nil {
		t.Fatal(err)
	}
	if err := mil.Check(m.Program); err != nil {
		t.Errorf("Check: %v", err)
	}
	return m
}

func specOf(t *testing.T, pkg string) string {
	t.Helper()
	name := filepath.Join(pkg, "Manifest.json")
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	mf, err := mlpackage.ParseManifest("Manifest.json", data)
	if err != nil {
		t.Fatal(err)
	}
	spec, err := mf.SpecPath("Manifest.json")
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(pkg, spec)
}

// What a compiler adds to the program: its own version, and the flexible
// shapes of the description.
var (
	buildInfo = regexp.MustCompile(`(?m)^\[buildInfo = .*\]\n`)
	flexInfo  = regexp.MustCompile(` \[FlexibleShapeInformation = [^\n]*\] \{\n`)
)

func normal(text string) string {
	text = strings.TrimSuffix(text, "\n")
	text = buildInfo.ReplaceAllString(text, "")
	return flexInfo.ReplaceAllString(text, " {\n")
}

// TestCompiledText compares the printed protobuf program with the text that
// the compiler of the shared tools made from the same package.
func TestCompiledText(t *testing.T) {
	for _, p := range sharedtest.CompiledPairs(t) {
		want, err := os.ReadFile(filepath.Join(p.Model, "model.mil"))
		if err != nil {
			t.Fatal(err)
		}
		t.Run(filepath.Base(filepath.Dir(filepath.Dir(p.Package)))+"/"+filepath.Base(p.Package), func(t *testing.T) {
			got := load(t, specOf(t, p.Package)).Program.String()
			if diff := sharedtest.LineDiff(normal(got), normal(string(want))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestGoldenPairs compares packages with what Apple's compiler made of them:
// the same ops in the same order, with the same results.
func TestGoldenPairs(t *testing.T) {
	models := sharedtest.Path(t, "models")
	for pkg, compiled := range map[string]string{
		"silero-pkg-unified":              "silero-unified",
		"silero-pkg-unified-int8":         "silero-unified-int8",
		"silero-pkg-unified-palette-4bit": "silero-unified-palette-4bit",
		"silero-pkg-unified-pruned-int8":  "silero-unified-pruned-int8",
		"parakeet-eou-160ms-encoder-pkg":  "parakeet-eou-160ms-streaming-encoder",
	} {
		t.Run(pkg, func(t *testing.T) {
			spec := one(t, filepath.Join(models, "packages", pkg, "*.mlpackage"))
			got := load(t, specOf(t, spec)).Program
			path := one(t, filepath.Join(models, "compiled", compiled, "*.mlmodelc", "model.mil"))
			src, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			want, err := mil.Parse("model.mil", src)
			if err != nil {
				t.Fatal(err)
			}
			if diff := sharedtest.LineDiff(normal(got.String()), normal(want.String())); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func one(t *testing.T, pattern string) string {
	t.Helper()
	found, err := filepath.Glob(pattern)
	if err != nil || len(found) != 1 {
		t.Fatalf("%s: found %d, want 1 (%v)", pattern, len(found), err)
	}
	return found[0]
}

// TestNestedBlocks reads a package with while_loop.
func TestNestedBlocks(t *testing.T) {
	pkg := one(t, filepath.Join(sharedtest.Path(t, "models", "packages", "dtln-aec-128-part1-pkg"), "*.mlpackage"))
	p := load(t, specOf(t, pkg)).Program
	loops := 0
	p.Functions[0].Body.Walk(func(op *mil.Op) {
		if op.Type != "while_loop" {
			return
		}
		loops++
		if len(op.Blocks) != 2 || len(op.Blocks[0].Params) != len(op.Outputs) || len(op.Blocks[0].Outputs) != 1 || len(op.Blocks[1].Outputs) != len(op.Outputs) {
			t.Errorf("while_loop %s: blocks do not fit its %d results", op.Name(), len(op.Outputs))
		}
		if a := op.Arg("loop_vars"); a == nil || !a.Variadic || len(a.Bindings) != len(op.Outputs) {
			t.Errorf("while_loop %s: loop_vars %+v", op.Name(), a)
		}
	})
	if loops == 0 {
		t.Error("no while_loop found")
	}
	_, err := mil.Parse("printed.mil", []byte(p.String()))
	if diag.CodeOf(err) != diag.Unsupported || !strings.Contains(err.Error(), "while_loop: nested block not supported in text MIL") {
		t.Errorf("parsing printed nested blocks: %v", err)
	}
}

func TestDescription(t *testing.T) {
	pkg := one(t, filepath.Join(sharedtest.Path(t, "models", "packages", "anemll-profile-multifunction-pkg"), "*.mlpackage"))
	m := load(t, specOf(t, pkg))
	var names []string
	for _, f := range m.Description.Functions {
		names = append(names, f.Name)
	}
	for _, f := range m.Program.Functions {
		if !slices.Contains(names, f.Name) {
			t.Errorf("function %s of the program is not in the description %v", f.Name, names)
		}
	}
	if len(names) < 2 || m.Description.DefaultFunction == "" {
		t.Errorf("functions %v, default %q", names, m.Description.DefaultFunction)
	}
}
