// Package blob reads weight.bin, MIL Blob Storage version 2.
//
// Files: blob.go (File, Record), pack.go (sub-byte packing).
package blob

import "github.com/anepkg/anepkg/coreml/tensor"

// Record is one blob_metadata record (mil.md section C.1).
type Record struct {
	Offset      int64 // of the record itself: what BLOBFILE names
	DType       tensor.DType
	Size        int64 // bytes of data
	DataOffset  int64
	PaddingBits int // unused bits at the end, sub-byte types only
}
