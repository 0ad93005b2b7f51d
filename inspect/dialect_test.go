package inspect_test

import (
	"context"
	"maps"
	"testing"
	"testing/fstest"

	"github.com/anepkg/anepkg/coreml/sharedtest"
	"github.com/anepkg/anepkg/inspect"
)

// TestJSONDialect: what Python's json or Swift's JSONSerialization refuses
// (RFC 8259 has neither NaN nor the mark) is a finding, though it is read here.
func TestJSONDialect(t *testing.T) {
	files := load(t, sharedtest.Path(t, "models/tiny/seed-qwen3-lut6/compiled"))
	before := func(name, text string) func(fstest.MapFS) {
		return func(m fstest.MapFS) { m[name] = &fstest.MapFile{Data: append([]byte(text), m[name].Data...)} }
	}
	for _, c := range []struct {
		name     string
		change   func(fstest.MapFS)
		file     string
		severity inspect.Severity
	}{
		{"mark before tokenizer.json", before("tokenizer.json", "\ufeff"), "tokenizer.json", inspect.Error},
		{"NaN in tokenizer.json", edit("tokenizer.json", "{", `{"x": NaN,`), "tokenizer.json", inspect.Error},
		{"mark before config.json", before("config.json", "\ufeff"), "config.json", inspect.Error},
		{"NaN in tokenizer_config.json", edit("tokenizer_config.json", "{", `{"x": -Infinity,`), "tokenizer_config.json", inspect.Warning},
		{"untouched", func(fstest.MapFS) {}, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := maps.Clone(files)
			c.change(m)
			r, err := inspect.Validate(context.Background(), open(t, m, "pkg"), inspect.Options{Fast: true})
			if err != nil {
				t.Fatal(err)
			}
			found := ""
			var severity inspect.Severity
			for _, f := range r.Findings {
				if f.ID == "TOK002" {
					found, severity = f.Where[0].File, f.Severity
				}
			}
			if found != c.file || severity != c.severity {
				t.Errorf("got %q %q, want %q %q", found, severity, c.file, c.severity)
			}
		})
	}
}
