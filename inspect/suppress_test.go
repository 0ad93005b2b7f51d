package inspect_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/coreml/sharedtest"
	"github.com/anepkg/anepkg/inspect"
)

// TestSuppressions: a suppression takes away what it names and nothing else,
// and one that matches nothing is reported.
func TestSuppressions(t *testing.T) {
	dir := sharedtest.Path(t, "models/tiny/seed-qwen3-lut6/compiled")
	pkg := open(t, os.DirFS(dir), dir)
	list, err := inspect.ParseSuppressions("a.yaml", []byte(`suppress:
  - id: CFG018
    reason: our runtime adds up the widths
  - id: wgt
    file: "nothing/*"
    reason: never there
`))
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	plain, err := inspect.Validate(ctx, pkg, inspect.Options{Fast: true})
	if err != nil {
		t.Fatal(err)
	}
	r, err := inspect.Validate(ctx, pkg, inspect.Options{Fast: true, Suppress: list})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range r.Findings {
		if f.ID == "CFG018" {
			t.Errorf("CFG018 is still there: %s", f.Message)
		}
	}
	if r.Suppressed == 0 || len(r.Findings)+r.Suppressed != len(plain.Findings) || r.Summary == plain.Summary {
		t.Errorf("got %d findings, %d suppressed, %+v; without suppressions %d, %+v", len(r.Findings), r.Suppressed, r.Summary, len(plain.Findings), plain.Summary)
	}
	if len(r.Suppressions) != 2 || r.Suppressions[0].Used != r.Suppressed || r.Suppressions[1].Used != 0 {
		t.Errorf("uses: got %+v", r.Suppressions)
	}
	var b strings.Builder
	if err := r.WriteText(&b, false); err != nil || !strings.Contains(b.String(), "a.yaml:4:5: the suppression of wgt matches nothing") {
		t.Errorf("text does not name the unused suppression: %v\n%s", err, b.String())
	}
}

func TestSuppressionErrors(t *testing.T) {
	for _, c := range []struct{ name, text, at string }{
		{"no reason", "suppress:\n  - id: CFG018\n", "a.yaml:2:5"},
		{"unknown rule", "suppress:\n  - id: ABC123\n    reason: x\n", "a.yaml:2:5"},
		{"unknown key", "suppress:\n  - id: CFG018\n    reasons: x\n", "a.yaml:3:5"},
		{"other top key", "ignore: []\n", "a.yaml:1:1"},
		{"no map", "- a\n", "a.yaml:1:1"},
		{"bad pattern", "suppress:\n  - id: CFG018\n    reason: x\n    file: \"[\"\n", "a.yaml:2:5"},
		{"no yaml", "a: [\n", "a.yaml"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := inspect.ParseSuppressions("a.yaml", []byte(c.text))
			if diag.CodeOf(err) != diag.Malformed || !strings.HasPrefix(err.Error(), c.at) {
				t.Errorf("got %v, want a malformed file at %s", err, c.at)
			}
		})
	}
	if list, err := inspect.ParseSuppressions("a.yaml", nil); err != nil || len(list) != 0 {
		t.Errorf("an empty file: got %v, %v", list, err)
	}
}

// FuzzSuppressions: any text is a list or an error with a place.
func FuzzSuppressions(f *testing.F) {
	for _, s := range []string{"", "suppress:\n  - id: CFG018\n    reason: x\n", "suppress: [a, {id: wgt, reason: x, file: \"[\"}]", "&a [*a]", "suppress: &s\n  - *s\n", "? [a]\n: b"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		list, err := inspect.ParseSuppressions("a.yaml", data)
		if err != nil {
			if diag.CodeOf(err) == "" || !strings.HasPrefix(err.Error(), "a.yaml") {
				t.Errorf("error without class or place: %v", err)
			}
			return
		}
		for _, s := range list {
			if strings.TrimSpace(s.Reason) == "" || s.ID == "" {
				t.Errorf("accepted %+v", s)
			}
		}
	})
}

// FuzzBaseline: any bytes are fingerprints or an error.
func FuzzBaseline(f *testing.F) {
	f.Add([]byte(`{"schema": "anepkg.validate/1", "findings": [{"id": "X", "where": [{"file": "a"}]}]}`))
	f.Add([]byte(`{"schema": "anepkg.validate/1", "findings": [null]}`))
	f.Fuzz(func(_ *testing.T, data []byte) { _, _ = inspect.ReadBaseline(data) })
}
