package tensor_test

import (
	"bytes"
	"encoding/binary"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/anepkg/anepkg/coreml/sharedtest"
	"github.com/anepkg/anepkg/coreml/tensor"
)

// npy makes a file with the given dict.
func npy(major byte, header string, data ...byte) []byte {
	out := append([]byte("\x93NUMPY"), major, 0)
	if major == 1 {
		out = binary.LittleEndian.AppendUint16(out, uint16(len(header)))
	} else {
		out = binary.LittleEndian.AppendUint32(out, uint32(len(header)))
	}
	return append(append(out, header...), data...)
}

// numpyFile is what numpy.save wrote for numpy.array([[1.5], [-2]], "<f4").
var numpyFile = "\x93NUMPY\x01\x00v\x00{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1), }" +
	strings.Repeat(" ", 58) + "\n\x00\x00\xc0\x3f\x00\x00\x00\xc0"

func TestNPY(t *testing.T) {
	x, err := tensor.ReadNPY(strings.NewReader(numpyFile))
	if err != nil {
		t.Fatal(err)
	}
	if x.DType != tensor.FP32 || !cmp.Equal(x.Shape, []int{2, 1}) || !cmp.Equal(x.Float32s(), []float32{1.5, -2}) {
		t.Errorf("got %+v", x)
	}
	var buf bytes.Buffer
	if err := tensor.WriteNPY(&buf, x); err != nil {
		t.Fatal(err)
	}
	if buf.String() != numpyFile {
		t.Errorf("wrote %q", buf.String())
	}
}

func TestNPYRoundTrip(t *testing.T) {
	for _, d := range []tensor.DType{
		tensor.FP16, tensor.FP32, tensor.FP64, tensor.Int8, tensor.Int16, tensor.Int32, tensor.Int64,
		tensor.UInt8, tensor.UInt16, tensor.UInt32, tensor.UInt64, tensor.Bool,
	} {
		for _, shape := range [][]int{{}, {3}, {2, 0}, {2, 3, 1}} {
			x := tensor.New(d, shape...)
			for i := range x.Data {
				x.Data[i] = byte(i % 2)
			}
			var buf bytes.Buffer
			if err := tensor.WriteNPY(&buf, x); err != nil {
				t.Fatal(err)
			}
			if head := buf.Len() - len(x.Data); head%64 != 0 {
				t.Errorf("%s %v: header of %d bytes", d, shape, head)
			}
			y, err := tensor.ReadNPY(&buf)
			if err != nil {
				t.Fatalf("%s %v: %v", d, shape, err)
			}
			if diff := cmp.Diff(x, y); diff != "" {
				t.Errorf("%s %v: %s", d, shape, diff)
			}
		}
	}
	if err := tensor.WriteNPY(&bytes.Buffer{}, tensor.New(tensor.BF16, 2)); err == nil {
		t.Error("bf16 was written")
	}
}

func TestNPYErrors(t *testing.T) {
	for _, tt := range []struct {
		name string
		data []byte
		want string
	}{
		{"empty", nil, "the magic: unexpected EOF"},
		{"magic", []byte("PK\x03\x04abcdefgh"), "magic is"},
		{"version", npy(9, "{}"), "format version is 9.0"},
		{"header length", npy(2, strings.Repeat(" ", 1<<17)), "header of 131072 bytes"},
		{"cut header", npy(1, "{'descr': '<f4'")[:14], "the header: unexpected EOF"},
		{"fortran", npy(1, "{'descr': '<f4', 'fortran_order': True, 'shape': (1, 2), }"), "Fortran order"},
		{"big endian", npy(1, "{'descr': '>f4', 'fortran_order': False, 'shape': (1,), }"), "big endian"},
		{"object", npy(1, "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }"), `element type "|O" is not supported`},
		{"structured", npy(1, "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }"), "structured arrays"},
		{"missing key", npy(1, "{'descr': '<f4', 'shape': (1,), }"), "lacks"},
		{"huge", npy(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (1099511627776, 1099511627776), }"), "more than 2^40 elements"},
		{"cut data", npy(2, "{'descr': '<f8', 'fortran_order': False, 'shape': (1099511627776,), }", 1, 2, 3), "3 bytes of data, want 8796093022208"},
		{"shape", npy(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }"), "dimensions"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := tensor.ReadNPY(bytes.NewReader(tt.data))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

// TestNPYSamples reads the files that NumPy wrote for the shared models.
func TestNPYSamples(t *testing.T) {
	n := 0
	err := filepath.WalkDir(sharedtest.Path(t, "models", "tiny"), func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".npy" {
			return err
		}
		n++
		want, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		x, err := tensor.ReadNPY(bytes.NewReader(want))
		if err != nil {
			t.Errorf("%s: %v", path, err)
			return nil
		}
		var buf bytes.Buffer
		if err := tensor.WriteNPY(&buf, x); err != nil || !bytes.Equal(buf.Bytes(), want) {
			t.Errorf("%s: writing it back gives other bytes (%v)", path, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if n == 0 {
		t.Error("no .npy file found")
	}
}

func FuzzNPY(f *testing.F) {
	f.Add([]byte(numpyFile))
	f.Add(npy(2, "{'shape': (), 'descr': '|b1', 'fortran_order': False}", 1))
	f.Fuzz(func(t *testing.T, data []byte) {
		x, err := tensor.ReadNPY(bytes.NewReader(data))
		if err != nil {
			return
		}
		if err := x.Check(); err != nil {
			t.Fatal(err)
		}
		var buf bytes.Buffer
		if err := tensor.WriteNPY(&buf, x); err != nil {
			t.Fatal(err)
		}
		y, err := tensor.ReadNPY(&buf)
		if err != nil || !cmp.Equal(x, y) {
			t.Fatalf("round trip: %v", err)
		}
	})
}
