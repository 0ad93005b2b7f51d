//go:build !hftokenizers || !cgo

package hf

import (
	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/runner/tokenizer"
)

// Available reports whether this build has the Rust tokenizers.
const Available = false

// Load gives an error of class diag.Unsupported: this build has no Rust
// tokenizers.
func Load([]byte) (tokenizer.Tokenizer, error) {
	return nil, diag.Errorf(diag.Pos{}, diag.Unsupported, "this build has no Hugging Face tokenizers library").
		WithHint("build it with \"make tokenizers\", which needs cargo and a C compiler")
}
