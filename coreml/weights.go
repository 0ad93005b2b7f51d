package coreml

import (
	"github.com/anepkg/anepkg/coreml/blob"
	"github.com/anepkg/anepkg/coreml/mil"
)

// Weights gives access to the weight files of a model. Files open on first
// use; those on a real disk are memory-mapped.
type Weights struct{}

// Record returns the metadata record that ref points to, without reading the
// data. A path that leaves the model folder, a missing file, an LFS pointer
// and an offset without a record are errors with the file and offset.
func (w *Weights) Record(ref *mil.BlobRef) (blob.Record, error) { return blob.Record{}, nil }

// Data returns the bytes of the blob, packed as stored. The slice may be a
// memory mapping: it is read-only and valid until Close.
func (w *Weights) Data(ref *mil.BlobRef) ([]byte, error) { return nil, nil }
