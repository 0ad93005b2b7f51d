package mlpackage_test

import (
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/coreml/mil"
	"github.com/anepkg/anepkg/coreml/mlpackage"
)

func TestParseManifest(t *testing.T) {
	const entry = `"%": {"author": "com.apple.CoreML", "name": "n", "description": "d", "path": "#"}`
	item := func(id, p string) string { return strings.NewReplacer("%", id, "#", p).Replace(entry) }
	for _, tt := range []struct {
		name, src string
		spec      string
		want      string // error
	}{
		{"usual", `{"fileFormatVersion": "1.0.0", "rootModelIdentifier": "B", "itemInfoEntries": {` + item("A", "com.apple.CoreML/weights") + "," + item("B", "com.apple.CoreML/x.mlmodel") + `}}`, "Data/com.apple.CoreML/x.mlmodel", ""},
		{"no root", `{"itemInfoEntries": {` + item("A", "w") + "," + item("B", "x.mlmodel") + `}}`, "Data/x.mlmodel", ""},
		{"wrong root", `{"rootModelIdentifier": "C", "itemInfoEntries": {` + item("B", "x.mlmodel") + `}}`, "", `rootModelIdentifier is "C", which is none of the 1 items`},
		{"escape", `{"rootModelIdentifier": "B", "itemInfoEntries": {` + item("B", "../../x.mlmodel") + `}}`, "", `item B has the path "../../x.mlmodel", want one inside the package`},
		{"absolute", `{"rootModelIdentifier": "B", "itemInfoEntries": {` + item("B", "/etc/passwd") + `}}`, "", "want one inside the package"},
		{"not json", `<html>`, "", "Manifest.json: invalid character"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, err := mlpackage.ParseManifest("Manifest.json", []byte(tt.src))
			spec := ""
			if err == nil {
				spec, err = m.SpecPath("Manifest.json")
			}
			if tt.want == "" && (err != nil || spec != tt.spec) {
				t.Errorf("got %q, %v, want %q", spec, err, tt.spec)
			}
			if tt.want != "" && (diag.CodeOf(err) != diag.Malformed || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

// message builds protobuf by hand.
type message []byte

func (m message) varint(n protowire.Number, v uint64) message {
	return protowire.AppendVarint(protowire.AppendTag(m, n, protowire.VarintType), v)
}

func (m message) bytes(n protowire.Number, b ...byte) message {
	return protowire.AppendBytes(protowire.AppendTag(m, n, protowire.BytesType), b)
}

func (m message) text(n protowire.Number, s string) message { return m.bytes(n, []byte(s)...) }

// constModel is a program with one const whose value has the given element
// type, dimensions and TensorValue.
func constModel(spec, dtype uint64, dims []uint64, tensorValue message) []byte {
	tt := message{}.varint(1, dtype).varint(2, uint64(len(dims)))
	for _, d := range dims {
		tt = tt.bytes(3, message{}.bytes(1, message{}.varint(1, d)...)...)
	}
	typ := message{}.bytes(1, tt...)
	value := message{}.bytes(2, typ...).bytes(3, message{}.bytes(1, tensorValue...)...)
	op := message{}.text(1, "const").bytes(3, message{}.text(1, "c").bytes(2, typ...)...).bytes(5, message{}.text(1, "val").bytes(2, value...)...)
	fn := message{}.text(2, "CoreML8").bytes(3, message{}.text(1, "CoreML8").bytes(2, message{}.text(2, "c").bytes(3, op...)...)...)
	prog := message{}.varint(1, 1).bytes(2, message{}.text(1, "main").bytes(2, fn...)...)
	return message{}.varint(1, spec).bytes(502, prog...)
}

func TestImmediates(t *testing.T) {
	raw := func(b ...byte) message { return message{}.bytes(7, message{}.bytes(1, b...)...) }
	packed := func(form protowire.Number, b ...byte) message {
		return message{}.bytes(form, message{}.bytes(1, b...)...)
	}
	minusOne := protowire.AppendVarint(nil, ^uint64(0))
	for _, tt := range []struct {
		name  string
		dtype uint64
		dims  []uint64
		tv    message
		want  string
	}{
		{"fp16", 10, []uint64{2}, raw(0x00, 0x3e, 0x01, 0x80), "tensor<fp16, [2]>([0x1.8p+0, -0x1p-24])"},
		{"fp32", 11, nil, packed(1, 0, 0, 0xc0, 0x3f), "fp32(0x1.8p+0)"},
		{"fp32 not packed", 11, nil, message{}.bytes(1, protowire.AppendFixed32(protowire.AppendTag(nil, 1, protowire.Fixed32Type), 0x3fc00000)...), "fp32(0x1.8p+0)"},
		{"fp64", 12, nil, packed(6, 0, 0, 0, 0, 0, 0, 0xf8, 0x3f), "fp64(0x1.8p+0)"},
		{"bf16", 13, nil, raw(0xc0, 0x3f), "bf16(0x1.8p+0)"},
		{"int32", 23, nil, packed(2, minusOne...), "int32(-1)"},
		{"int64", 24, nil, packed(5, minusOne...), "int64(-1)"},
		{"int8", 21, []uint64{2}, raw(0xff, 0x7f), "tensor<int8, [2]>([-1, 127])"},
		{"uint8", 31, []uint64{2}, raw(0xff, 0x7f), "tensor<uint8, [2]>([255, 127])"},
		{"int16", 22, nil, raw(0xfe, 0xff), "int16(-2)"},
		{"uint16", 32, nil, raw(0xfe, 0xff), "uint16(65534)"},
		{"uint32 in ints", 33, nil, packed(2, minusOne...), "uint32(4294967295)"},
		{"uint64 in ints", 34, nil, packed(5, minusOne...), "uint64(18446744073709551615)"},
		{"int4", 25, []uint64{3}, raw(0x8f, 0x07), "tensor<int4, [3]>([-1, -8, 7])"},
		{"uint4", 35, []uint64{3}, raw(0x8f, 0x07), "tensor<uint4, [3]>([15, 8, 7])"},
		{"uint6", 38, []uint64{2, 2}, raw(0x81, 0xf0, 0x03), "tensor<uint6, [2, 2]>([[1, 2], [63, 0]])"},
		{"uint3", 39, []uint64{5}, raw(0b10_001_101, 0b0_111_000_0), "tensor<uint3, [5]>([5, 1, 2, 0, 7])"},
		{"uint2", 36, []uint64{4}, raw(0b11100100), "tensor<uint2, [4]>([0, 1, 2, 3])"},
		{"uint1", 37, []uint64{3}, raw(0b101), "tensor<uint1, [3]>([1, 0, 1])"},
		{"bool", 1, []uint64{2}, packed(3, 1, 0), "tensor<bool, [2]>([true, false])"},
		{"string", 2, nil, message{}.bytes(4, message{}.text(1, "a\"b")...), `string("a\"b")`},
		{"empty string", 2, nil, message{}.bytes(4), `string("")`},
		{"empty", 11, []uint64{2, 0}, message{}, "tensor<fp32, [2, 0]>([[], []])"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, err := mlpackage.ParseModel("m.mlmodel", constModel(9, tt.dtype, tt.dims, tt.tv))
			if err != nil {
				t.Fatal(err)
			}
			text := m.Program.String()
			if want := "c = const()[val = " + tt.want + "];"; !strings.Contains(text, want) {
				t.Errorf("got\n%s\nwant %s", text, want)
			}
			again, err := mil.Parse("printed.mil", []byte(text))
			if err != nil || again.String() != text {
				t.Errorf("the text does not parse back: %v", err)
			}
		})
	}
}

func TestParseModelErrors(t *testing.T) {
	raw := func(n int) message { return message{}.bytes(7, message{}.bytes(1, make([]byte, n)...)...) }
	for _, tt := range []struct {
		name string
		data []byte
		code diag.Code
		want string
	}{
		{"empty", nil, diag.Malformed, "m.mlmodel: not a Core ML model specification: no model inside"},
		{"text", []byte("hello, this is text"), diag.Malformed, "m.mlmodel: not a Core ML model specification"},
		{"neural network", message{}.varint(1, 4).bytes(500), diag.Unsupported, "the model is a neural network (specification version 4)"},
		{"pipeline", message{}.varint(1, 4).bytes(202), diag.Unsupported, "the model is a pipeline"},
		{"preview", constModel(5, 11, nil, raw(4)), diag.Unsupported, "specification version 5, a preview form"},
		{"cut", constModel(9, 11, []uint64{4}, raw(16))[:60], diag.Malformed, "m.mlmodel:0x2: protobuf field 502: unexpected EOF"},
		{"count", constModel(9, 11, []uint64{5}, raw(16)), diag.Malformed, "4 values for the type tensor<fp32, [5]>"},
		{"bytes", constModel(9, 11, []uint64{4}, raw(15)), diag.Malformed, "15 bytes for a value of type tensor<fp32, [4]>"},
		{"sub-byte bytes", constModel(9, 38, []uint64{4}, raw(4)), diag.Malformed, "4 bytes for a value of type tensor<uint6, [4]>"},
		{"dtype", constModel(9, 77, nil, raw(4)), diag.Unsupported, "element type number 77"},
		{"huge empty", constModel(9, 11, []uint64{1 << 39, 0}, raw(0)), diag.TooLarge, "inline value of type"},
		{"huge", constModel(9, 38, []uint64{1 << 39, 1 << 39}, raw(0)), diag.Malformed, "0 bytes for a value of type"},
		{"dimension", constModel(9, 11, []uint64{1 << 50}, raw(0)), diag.Malformed, "dimension 1125899906842624 is too large"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := mlpackage.ParseModel("m.mlmodel", tt.data)
			if diag.CodeOf(err) != tt.code || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v (%s), want %q (%s)", err, diag.CodeOf(err), tt.want, tt.code)
			}
		})
	}
}

func TestDepth(t *testing.T) {
	// type: a tuple of a tuple of a tuple ...
	typ := message{}
	for range 2000 {
		typ = message{}.bytes(3, message{}.bytes(1, typ...)...)
	}
	fn := message{}.bytes(1, message{}.text(1, "x").bytes(2, typ...)...)
	data := message{}.varint(1, 9).bytes(502, message{}.bytes(2, message{}.text(1, "main").bytes(2, fn...)...)...)
	if _, err := mlpackage.ParseModel("m.mlmodel", data); diag.CodeOf(err) != diag.TooLarge {
		t.Errorf("nested types: %v", err)
	}
	block := message{}
	for range 2000 {
		block = message{}.bytes(3, message{}.text(1, "cond").bytes(4, block...)...)
	}
	fn = message{}.text(2, "CoreML8").bytes(3, message{}.text(1, "CoreML8").bytes(2, block...)...)
	data = message{}.varint(1, 9).bytes(502, message{}.bytes(2, message{}.text(1, "main").bytes(2, fn...)...)...)
	if _, err := mlpackage.ParseModel("m.mlmodel", data); diag.CodeOf(err) != diag.TooLarge {
		t.Errorf("nested blocks: %v", err)
	}
}

func seeds(t testing.TB) [][]byte {
	t.Helper()
	found, err := filepath.Glob("testdata/*.mlmodel")
	if err != nil || len(found) == 0 {
		t.Fatalf("no seeds: %v", err)
	}
	var out [][]byte
	for _, name := range found {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, data)
	}
	return out
}

// TestMutations cuts and flips real files: nothing may panic or hang.
func TestMutations(t *testing.T) {
	for _, src := range seeds(t) {
		for i := range 1000 {
			b := append([]byte{}, src...)
			at := i * len(b) / 1000
			if i%4 == 0 {
				b = b[:at]
			} else {
				b[at] ^= 1 << (i % 8)
			}
			if m, err := mlpackage.ParseModel("m.mlmodel", b); err == nil {
				_ = mil.Check(m.Program)
				_ = m.Program.String()
			} else if diag.CodeOf(err) == "" {
				t.Fatalf("mutation %d: error without a code: %v", i, err)
			}
		}
	}
}

func FuzzMLPackage(f *testing.F) {
	for _, s := range seeds(f) {
		f.Add(s)
	}
	f.Add(constModel(9, 38, []uint64{2, 2}, message{}.bytes(7, message{}.bytes(1, 1, 2, 3)...)))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := mlpackage.ParseModel("m.mlmodel", data)
		if err != nil {
			return
		}
		_ = mil.Check(m.Program)
		if n := len(m.Program.String()); n > 1<<20+200*len(data) {
			t.Fatalf("%d bytes print as %d", len(data), n)
		}
	})
}

func FuzzManifestJSON(f *testing.F) {
	f.Add([]byte(`{"rootModelIdentifier": "B", "itemInfoEntries": {"B": {"path": "com.apple.CoreML/x.mlmodel"}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := mlpackage.ParseManifest("Manifest.json", data)
		if err != nil {
			return
		}
		if spec, err := m.SpecPath("Manifest.json"); err == nil && !strings.HasPrefix(path.Clean(spec), "Data") {
			t.Fatalf("path %q leaves Data", spec)
		}
	})
}
