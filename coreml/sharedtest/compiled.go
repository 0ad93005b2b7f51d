package sharedtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Compiled is an .mlpackage and the .mlmodelc that a compiler made of it.
type Compiled struct{ Package, Model string }

// CompiledPairs are the packages of the shared models that the shared tools
// compiled, 20 at least.
func CompiledPairs(t testing.TB) []Compiled {
	t.Helper()
	var out []Compiled
	for _, pattern := range []string{"tiny/*/package/*.mlpackage", "tiny/*/package/*/*.mlpackage", "demo/package/*.mlpackage"} {
		found, err := filepath.Glob(filepath.Join(Path(t, "models"), pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range found {
			m := strings.Replace(strings.TrimSuffix(p, ".mlpackage"), "/package/", "/compiled/", 1) + ".mlmodelc"
			if _, err := os.Stat(filepath.Join(m, "model.mil")); err == nil {
				out = append(out, Compiled{p, m})
			}
		}
	}
	if len(out) < 20 {
		t.Fatalf("only %d pairs found", len(out))
	}
	return out
}

// LineDiff shows the first line in which two texts differ, "" when none does.
func LineDiff(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range max(len(g), len(w)) {
		if i >= len(g) || i >= len(w) || g[i] != w[i] {
			return cmp.Diff(w[min(i, len(w)):min(i+1, len(w))], g[min(i, len(g)):min(i+1, len(g))])
		}
	}
	return ""
}
