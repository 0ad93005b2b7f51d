//go:build hftokenizers && cgo

package hf

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"

	rust "github.com/daulet/tokenizers"

	"github.com/anepkg/anepkg/runner/tokenizer"
)

// Available reports whether this build has the Rust tokenizers.
const Available = true

// Tokenizer encodes and decodes in Rust. The vocabulary is looked up in the
// pure-Go reader, since the library gives no access to it.
type Tokenizer struct {
	tokenizer.Tokenizer
	rust *rust.Tokenizer
}

// Load reads a tokenizer.json. Truncation and padding are taken out first:
// the library would apply them, and the callers do not expect it.
func Load(data []byte) (tokenizer.Tokenizer, error) {
	own, err := tokenizer.Load(data)
	if err != nil {
		return nil, err
	}
	var parts map[string]json.RawMessage
	if err := json.Unmarshal(data, &parts); err != nil {
		return nil, err
	}
	changed := false
	for _, key := range []string{"truncation", "padding"} {
		if v, ok := parts[key]; ok && string(v) != "null" {
			parts[key] = json.RawMessage("null")
			changed = true
		}
	}
	if changed {
		if data, err = json.Marshal(parts); err != nil {
			return nil, err
		}
	}
	r, err := rust.FromBytes(data)
	if err != nil {
		return nil, fmt.Errorf("the Hugging Face library: %w", err)
	}
	t := &Tokenizer{Tokenizer: own, rust: r}
	runtime.AddCleanup(t, func(r *rust.Tokenizer) { _ = r.Close() }, r)
	return t, nil
}

// Encode returns the ids of text. Text reaches the library as a C string, so
// a NUL character is an error.
func (t *Tokenizer) Encode(text string, addSpecial bool) ([]int, error) {
	if strings.ContainsRune(text, 0) {
		return nil, errors.New("the text has a NUL character, which the Hugging Face library cannot be given")
	}
	ids, _ := t.rust.Encode(string([]rune(text)), addSpecial) // each invalid byte becomes U+FFFD
	runtime.KeepAlive(t)
	out := make([]int, len(ids))
	for i, id := range ids {
		out[i] = int(id)
	}
	return out, nil
}

// Decode returns the text of ids. It comes back as a C string: where it holds
// a NUL character the pure-Go reader answers.
func (t *Tokenizer) Decode(ids []int, skipSpecial bool) string {
	small := make([]uint32, 0, len(ids))
	for _, id := range ids {
		if _, ok := t.Token(id); ok {
			small = append(small, uint32(id))
		}
	}
	own := t.Tokenizer.Decode(ids, skipSpecial)
	if strings.ContainsRune(own, 0) || len(small) == 0 {
		return own
	}
	s := t.rust.Decode(small, skipSpecial)
	runtime.KeepAlive(t)
	return s
}
