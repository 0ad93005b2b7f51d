package blob_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/anepkg/anepkg/coreml/blob"
	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/coreml/sharedtest"
	"github.com/anepkg/anepkg/coreml/tensor"
)

// build writes a weight file by the layout of StorageFormat.hpp.
func build(count, version uint32, records ...[]byte) []byte {
	out := binary.LittleEndian.AppendUint32(nil, count)
	out = binary.LittleEndian.AppendUint32(out, version)
	out = append(out, bytes.Repeat([]byte{0}, 56)...)
	for _, r := range records {
		for len(out)%64 != 0 {
			out = append(out, 0)
		}
		out = append(out, r...)
	}
	return out
}

// record writes one blob that starts at off; garbage fills what is reserved.
func record(off int, dtype uint32, padding uint64, data string) []byte {
	b := bytes.Repeat([]byte{0xa5}, 64)
	le := binary.LittleEndian
	le.PutUint32(b, 0xdeadbeef)
	le.PutUint32(b[4:], dtype)
	le.PutUint64(b[8:], uint64(len(data)))
	le.PutUint64(b[16:], uint64(off+64))
	le.PutUint64(b[24:], padding)
	return append(b, data...)
}

func TestRecords(t *testing.T) {
	data := build(3, 2, record(64, 1, 99, "ab"), record(192, 13, 6, "cde"), record(320, 8, 4, "f"))
	want := []blob.Record{
		{Offset: 64, DType: tensor.FP16, Size: 2, DataOffset: 128},
		{Offset: 192, DType: tensor.UInt6, Size: 3, DataOffset: 256, PaddingBits: 6},
		{Offset: 320, DType: tensor.Int4, Size: 1, DataOffset: 384, PaddingBits: 4},
	}
	for name, open := range map[string]func() (*blob.File, error){
		"memory":   func() (*blob.File, error) { return blob.NewBytes("w.bin", data) },
		"ReaderAt": func() (*blob.File, error) { return blob.New("w.bin", bytes.NewReader(data), int64(len(data))) },
	} {
		t.Run(name, func(t *testing.T) {
			f, err := open()
			if err != nil {
				t.Fatal(err)
			}
			got, err := f.Records()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			if n := got[1].Elements(); n != 3 {
				t.Errorf("3 bytes less 6 bits hold %d uint6, want 3", n)
			}
			d, err := f.Data(got[1])
			if err != nil || string(d) != "cde" {
				t.Errorf("Data: %q, %v", d, err)
			}
			if name == "memory" && &d[0] != &data[256] {
				t.Error("Data copied")
			}
		})
	}
}

func TestErrors(t *testing.T) {
	good := build(1, 2, record(64, 1, 0, "ab"))
	patch := func(off int, b ...byte) []byte {
		c := slices.Clone(good)
		copy(c[off:], b)
		return c
	}
	for _, tt := range []struct {
		name string
		data []byte
		code diag.Code
		want string
	}{
		{"pointer", []byte("version https://git-lfs.github.com/spec/v1\noid sha256:ab\nsize 539892672\n"), diag.LFSPointer, "w.bin: git lfs pointer instead of a weight file of 539892672 bytes"},
		{"html", []byte("\n<!DOCTYPE html><html>not found"), diag.Malformed, "w.bin: a web page instead of a weight file"},
		{"empty", nil, diag.Malformed, "w.bin: weight file of 0 bytes"},
		{"short", good[:63], diag.Malformed, "w.bin: weight file of 63 bytes"},
		{"version 1", build(0, 1), diag.Unsupported, "w.bin:0x4: blob storage version 1 (Espresso), want version 2"},
		{"version 3", build(0, 3), diag.Malformed, "w.bin:0x4: blob storage version is 3, want 2"},
		{"count", build(1<<31, 2), diag.Malformed, "w.bin:0x0: 2147483648 blobs do not fit into 64 bytes"},
		{"magic", patch(64, 0, 0, 0, 0), diag.Malformed, "w.bin:0x40: blob magic is 0x00000000, want 0xdeadbeef"},
		{"dtype", patch(68, 99), diag.Malformed, "w.bin:0x44: blob has element type 99"},
		{"dtype 0", patch(68, 0), diag.Malformed, "w.bin:0x44: blob has element type 0"},
		{"cut data", good[:129], diag.Malformed, "w.bin:0x40: blob data of 2 bytes at offset 128, the file ends at 129"},
		{"cut record", good[:127], diag.Malformed, "w.bin:0x40: blob starts at offset 64, the file ends at 127"},
		{"size overflow", patch(72, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff), diag.Malformed, "w.bin:0x40: blob data of"},
		{"data before record", patch(80, 64), diag.Malformed, "w.bin:0x40: blob data of"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f, err := blob.NewBytes("w.bin", tt.data)
			if err == nil {
				_, err = f.Records()
			}
			if diag.CodeOf(err) != tt.code || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v (%s), want %q (%s)", err, diag.CodeOf(err), tt.want, tt.code)
			}
		})
	}
	f, err := blob.NewBytes("w.bin", good)
	if err != nil {
		t.Fatal(err)
	}
	for _, off := range []int64{0, 32, 65, -64, 128, 1 << 62} {
		if _, err := f.Record(off); err == nil {
			t.Errorf("Record(%d) found something", off)
		}
	}
}

// TestSamples walks every weight file of the shared models.
func TestSamples(t *testing.T) {
	root, n := sharedtest.Path(t, "models"), 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Base(filepath.Dir(path)) != "weights" || filepath.Ext(path) != ".bin" {
			return err
		}
		n++
		r, err := os.Open(path)
		if err != nil {
			return err
		}
		defer func() { _ = r.Close() }()
		info, err := r.Stat()
		if err != nil {
			return err
		}
		f, err := blob.New(filepath.Base(path), r, info.Size())
		if errors.Is(err, diag.ErrLFSPointer) {
			return nil
		}
		if err != nil {
			t.Errorf("%s: %v", path, err)
			return nil
		}
		recs, err := f.Records()
		if err != nil {
			t.Errorf("%s: %v", path, err)
		}
		if len(recs) > 0 {
			if end := recs[len(recs)-1].End(); end != info.Size() && blob.Align(end) != info.Size() {
				t.Errorf("%s: the last blob ends at %d, the file at %d", path, end, info.Size())
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if n < 10 {
		t.Errorf("only %d weight files found", n)
	}
}

func TestPack(t *testing.T) {
	// Worked out by hand from the rule in SubByteTypes.cpp.
	for _, tt := range []struct {
		width  int
		packed []byte
		want   []uint8
	}{
		{1, []byte{0b00000101}, []uint8{1, 0, 1, 0, 0, 0, 0, 0}},
		{2, []byte{0b11100100}, []uint8{0, 1, 2, 3}},
		{3, []byte{0b10_001_101, 0b0_111_000_0}, []uint8{5, 1, 2, 0, 7}},
		{4, []byte{0x21, 0x43}, []uint8{1, 2, 3, 4}},
		{6, []byte{0b10_000001, 0b1111_0000, 0b000000_11}, []uint8{1, 2, 63, 0}},
		{8, []byte{7, 255}, []uint8{7, 255}},
	} {
		if diff := cmp.Diff(tt.want, blob.Unpack(tt.packed, tt.width, len(tt.want))); diff != "" {
			t.Errorf("unpack %d bits: %s", tt.width, diff)
		}
		if diff := cmp.Diff(tt.packed, blob.Pack(tt.want, tt.width)); diff != "" {
			t.Errorf("pack %d bits: %s", tt.width, diff)
		}
	}
	if diff := cmp.Diff([]int8{1, -8, 7, -1}, blob.UnpackSigned([]byte{0x81, 0xf7}, 4, 4)); diff != "" {
		t.Error(diff)
	}
	if blob.Unpack([]byte{1}, 3, 3) != nil || blob.Unpack(nil, 0, 0) != nil || blob.Unpack([]byte{1}, 3, -1) != nil {
		t.Error("bad arguments must give nil")
	}
}

func TestPackRoundTrip(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for width := 1; width <= 8; width++ {
		for n := range 70 {
			v := make([]uint8, n)
			for i := range v {
				v[i] = uint8(rng.IntN(1 << width))
			}
			p := blob.Pack(v, width)
			if got := blob.Unpack(p, width, n); !slices.Equal(got, v) {
				t.Fatalf("width %d: %v became %v", width, v, got)
			}
		}
	}
}

func TestParsePointer(t *testing.T) {
	p, ok := blob.ParsePointer([]byte("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"))
	if want := (blob.Pointer{OID: "4d7a", Size: 12345}); !ok || p != want {
		t.Errorf("got %+v, %v", p, ok)
	}
	for _, s := range []string{"", "version 1", "version https://git-lfs.github.com/spec/v1\nsize -1\n", "version https://git-lfs.github.com/spec/v1\nsize x\n"} {
		if _, ok := blob.ParsePointer([]byte(s)); ok {
			t.Errorf("%q is taken for a pointer", s)
		}
	}
}

func FuzzBlob(f *testing.F) {
	f.Add(build(3, 2, record(64, 1, 0, "ab"), record(192, 13, 6, "cde"), record(320, 8, 4, "f")))
	f.Add([]byte("version https://git-lfs.github.com/spec/v1\noid sha256:ab\nsize 5\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := blob.NewBytes("w.bin", data)
		if err != nil {
			return
		}
		recs, err := file.Records()
		if err == nil && len(recs) != file.Count() {
			t.Fatalf("%d records, the header says %d", len(recs), file.Count())
		}
		for _, r := range recs {
			d, err := file.Data(r)
			if err != nil || int64(len(d)) != r.Size {
				t.Fatalf("Data(%+v): %d bytes, %v", r, len(d), err)
			}
			if r.DType.IsSubByte() {
				if n := r.Elements(); blob.Unpack(d, r.DType.Bits(), int(n)) == nil {
					t.Fatalf("Unpack of %+v: nothing", r)
				}
			}
		}
	})
}
