// Package blob reads weight.bin, MIL Blob Storage version 2: a 64-byte header
// and, at 64-byte boundaries, metadata records each followed by its data
// (apple/coremltools, mlmodel/src/MILBlob/Blob/StorageFormat.hpp).
//
// Files: blob.go (File, Record), pack.go (sub-byte packing), pointer.go (Git
// LFS pointers and web pages that stand where a file should be).
package blob

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"

	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/coreml/tensor"
)

// Record is one blob_metadata record (mil.md section C.1).
type Record struct {
	Offset      int64 // of the record itself: what BLOBFILE names
	DType       tensor.DType
	Size        int64 // bytes of data
	DataOffset  int64
	PaddingBits int // unused bits at the end, sub-byte types only
}

// Elements returns how many elements the data of r holds.
func (r Record) Elements() int64 {
	bits := int64(r.DType.Bits())
	if bits == 0 {
		return 0
	}
	return (r.Size*8 - int64(r.PaddingBits)) / bits
}

// End returns the offset after the data.
func (r Record) End() int64 { return r.DataOffset + r.Size }

// Layout of the format. Every number is little endian.
const (
	HeaderSize = 64         // of the file and of each record
	Alignment  = 64         // of records
	sentinel   = 0xdeadbeef // first word of a record
	version    = 2
)

// dtypes maps the BlobDataType numbers of BlobDataType.hpp.
var dtypes = [...]tensor.DType{
	1: tensor.FP16, 2: tensor.FP32, 3: tensor.UInt8, 4: tensor.Int8, 5: tensor.BF16, 6: tensor.Int16, 7: tensor.UInt16,
	8: tensor.Int4, 9: tensor.UInt1, 10: tensor.UInt2, 11: tensor.UInt4, 12: tensor.UInt3, 13: tensor.UInt6,
	14: tensor.Int32, 15: tensor.UInt32, 16: tensor.FP8E4M3FN, 17: tensor.FP8E5M2,
}

// Align rounds n up to the next record boundary.
func Align(n int64) int64 { return (n + Alignment - 1) &^ (Alignment - 1) }

// File is an opened weight file. Its methods may be called concurrently.
type File struct {
	name  string
	r     io.ReaderAt
	data  []byte // the whole file, when it lies in memory
	size  int64
	count uint32
}

// New checks the header of a weight file of size bytes. name is used in
// positions. A Git LFS pointer is an error of class diag.LFSPointer that names
// the true size; version 1 (Espresso) is diag.Unsupported.
func New(name string, r io.ReaderAt, size int64) (*File, error) {
	return open(&File{name: name, r: r, size: size})
}

// NewBytes is New for a file in memory or memory-mapped: Data then returns
// pieces of data without copying.
func NewBytes(name string, data []byte) (*File, error) {
	return open(&File{name: name, r: bytes.NewReader(data), data: data, size: int64(len(data))})
}

func open(f *File) (*File, error) {
	head := make([]byte, min(max(f.size, 0), maxPointer))
	if _, err := f.r.ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, diag.Errorf(diag.In(f.name), diag.IO, "%w", err)
	}
	if p, ok := ParsePointer(head); ok {
		return nil, diag.Errorf(diag.In(f.name), diag.LFSPointer, "git lfs pointer instead of a weight file of %d bytes", p.Size).
			WithHint("fetch the file itself: git lfs pull")
	}
	if IsHTML(head) {
		return nil, diag.Errorf(diag.In(f.name), diag.Malformed, "a web page instead of a weight file").WithHint("download the file again")
	}
	if len(head) < HeaderSize {
		return nil, diag.Errorf(diag.In(f.name), diag.Malformed, "weight file of %d bytes, the header alone takes %d", f.size, HeaderSize)
	}
	f.count = binary.LittleEndian.Uint32(head)
	switch v := binary.LittleEndian.Uint32(head[4:]); v {
	case version:
	case 1:
		return nil, diag.Errorf(diag.AtOffset(f.name, 4), diag.Unsupported, "blob storage version 1 (Espresso), want version %d", version)
	default:
		return nil, diag.Errorf(diag.AtOffset(f.name, 4), diag.Malformed, "blob storage version is %d, want %d", v, version)
	}
	if int64(f.count) > f.size/HeaderSize {
		return nil, diag.Errorf(diag.AtOffset(f.name, 0), diag.Malformed, "%d blobs do not fit into %d bytes", f.count, f.size)
	}
	return f, nil
}

// Name returns the name given to New.
func (f *File) Name() string { return f.name }

// Size returns the size of the file in bytes.
func (f *File) Size() int64 { return f.size }

// Count returns the number of blobs that the header states.
func (f *File) Count() int { return int(f.count) }

// Record reads the metadata record at off, the number that BLOBFILE names,
// and checks that the data lies inside the file. Reserved fields are not
// looked at: older writers left garbage in them.
func (f *File) Record(off int64) (Record, error) {
	at := diag.AtOffset(f.name, off)
	switch {
	case off < HeaderSize:
		return Record{}, diag.Errorf(at, diag.Malformed, "no blob can start at offset %d, the file header takes %d bytes", off, HeaderSize)
	case off > f.size-HeaderSize:
		return Record{}, diag.Errorf(at, diag.Malformed, "blob starts at offset %d, the file ends at %d", off, f.size).
			WithHint("the file may be cut short; fetch it again")
	}
	var buf [HeaderSize]byte
	if _, err := f.r.ReadAt(buf[:], off); err != nil && !errors.Is(err, io.EOF) {
		return Record{}, diag.Errorf(at, diag.IO, "%w", err)
	}
	le := binary.LittleEndian
	if m := le.Uint32(buf[:]); m != sentinel {
		return Record{}, diag.Errorf(at, diag.Malformed, "blob magic is %#08x, want %#08x", m, uint32(sentinel))
	}
	code, size, start, pad := le.Uint32(buf[4:]), le.Uint64(buf[8:]), le.Uint64(buf[16:]), le.Uint64(buf[24:])
	if int64(code) >= int64(len(dtypes)) || dtypes[code] == tensor.Invalid {
		return Record{}, diag.Errorf(diag.AtOffset(f.name, off+4), diag.Malformed, "blob has element type %d, the known ones are 1 to %d", code, len(dtypes)-1)
	}
	r := Record{Offset: off, DType: dtypes[code]}
	if start < uint64(off)+HeaderSize || start > uint64(f.size) || size > uint64(f.size)-start {
		return Record{}, diag.Errorf(at, diag.Malformed, "blob data of %d bytes at offset %d, the file ends at %d", size, start, f.size).
			WithHint("the file may be cut short; fetch it again")
	}
	r.Size, r.DataOffset = int64(size), int64(start)
	if r.DType.IsSubByte() {
		if pad > 7 || size == 0 && pad > 0 {
			return Record{}, diag.Errorf(diag.AtOffset(f.name, off+24), diag.Malformed, "blob has %d bits of padding, want 0 to 7", pad)
		}
		r.PaddingBits = int(pad)
	}
	return r, nil
}

// Records walks all blobs in file order. With an error it returns the records
// before the bad one too.
func (f *File) Records() ([]Record, error) {
	var out []Record
	off := int64(HeaderSize)
	for range f.count {
		r, err := f.Record(off)
		if err != nil {
			return out, err
		}
		out = append(out, r)
		off = Align(r.End())
	}
	return out, nil
}

// Data returns the bytes of a blob as stored. It is a piece of the file, not
// to be written to, when the file lies in memory; else a copy.
func (f *File) Data(r Record) ([]byte, error) {
	if r.Size < 0 || r.DataOffset < 0 || r.DataOffset > f.size || r.Size > f.size-r.DataOffset {
		return nil, diag.Errorf(diag.AtOffset(f.name, r.Offset), diag.Malformed, "blob data of %d bytes at offset %d, the file ends at %d", r.Size, r.DataOffset, f.size)
	}
	if f.data != nil {
		return f.data[r.DataOffset:r.End():r.End()], nil
	}
	buf := make([]byte, r.Size)
	if n, err := f.r.ReadAt(buf, r.DataOffset); err != nil && (n < len(buf) || !errors.Is(err, io.EOF)) {
		return nil, diag.Errorf(diag.AtOffset(f.name, r.DataOffset), diag.IO, "%w", err)
	}
	return buf, nil
}
