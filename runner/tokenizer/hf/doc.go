// Package hf reads tokenizer.json with the Rust library that Hugging Face's
// own tools use, through github.com/daulet/tokenizers. It is there to hold the
// pure-Go reader to: the same interface, another implementation.
//
// It needs cgo and libtokenizers.a, so it is only built with the tag
// hftokenizers ("make tokenizers" builds the library and the command). In
// other builds Load says so.
//
// Files: hf.go (with the tag), none.go (without).
package hf
