package inspect

import (
	_ "embed"
	"sync"

	"github.com/rogpeppe/go-internal/txtar"
)

//go:embed examples.txtar
var exampleArchive []byte

var examples = sync.OnceValue(func() map[string]string {
	out := map[string]string{}
	for _, f := range txtar.Parse(exampleArchive).Files {
		out[f.Name] = string(f.Data)
	}
	return out
})

// Example returns a failing example of a rule: a package, what was changed in
// it, and the finding as "anepkg validate" prints it; "" for an unknown id.
// A test makes the changes, runs the rule and holds the text.
func Example(id string) string { return examples()[id] }
