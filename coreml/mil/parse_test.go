package mil_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/coreml/mil"
	"github.com/anepkg/anepkg/coreml/sharedtest"
	"github.com/anepkg/anepkg/coreml/tensor"
)

// TestSamples parses every real file. What Apple's compiler (or another one
// that writes model.mil) printed must come back byte by byte; hand-made files
// have their own layout, so there printing only has to be stable.
func TestSamples(t *testing.T) {
	for _, path := range milFiles(t) {
		t.Run(filepath.Base(filepath.Dir(path))+"/"+filepath.Base(path), func(t *testing.T) {
			src, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			p, err := mil.Parse("model.mil", src)
			if err != nil {
				t.Fatal(err)
			}
			if err := mil.Check(p); err != nil {
				t.Errorf("Check: %v", err)
			}
			got := p.String()
			if filepath.Base(path) == "model.mil" {
				// One compiler (coremltools' add_model) ends the file with a
				// new line; the others do not.
				if want := strings.TrimSuffix(string(src), "\n"); got != want {
					t.Errorf("print(parse(x)) differs at byte %d:\ngot  %.120q\nwant %.120q", firstDiff(got, want), tail(got, firstDiff(got, want)), tail(want, firstDiff(got, want)))
				}
				return
			}
			again, err := mil.Parse("model.mil", []byte(got))
			if err != nil {
				t.Fatalf("parsing what was printed: %v", err)
			}
			if s := again.String(); s != got {
				t.Errorf("printing is not stable at byte %d: %.80q", firstDiff(s, got), tail(s, firstDiff(s, got)))
			}
		})
	}
}

func tail(s string, i int) string { return s[min(max(i-40, 0), len(s)):] }

func firstDiff(a, b string) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}

const small = `program(1.3)
[buildInfo = dict<string, string>({{"coremlc-version", "3500.32.1"}})]
{
    func main<ios18>(state<tensor<fp16, [1, 2]>> kv, tensor<fp16, [1, ?]> x) {
            fp16 eps = const()[name = string("eps"), val = fp16(-0x1.8p-3)];
            tensor<int32, [2, 2]> t = const()[val = tensor<int32, [2, 2]>([[1, -2], [3, 4]])];
            tensor<uint6, [4]> w = const()[val = tensor<uint6, [4]>(BLOBFILE(path = string("@model_path/weights/weight.bin"), offset = uint64(64)))];
            tensor<fp16, [1, 2]> r = read_state(input = kv);
            tensor<fp16, [1, ?]> a, tensor<fp16, [1, ?]> b = split(axis = int32(1), num_splits = int32(2), x = x);
            tensor<fp16, [1, ?]> c = concat(axis = int32(-1), interleave = bool(false), values = (a, r, b));
            write_state(data = r, input = kv)[name = string("w")];
        } -> (c, eps);
}`

func TestParse(t *testing.T) {
	p, err := mil.Parse("model.mil", []byte(small))
	if err != nil {
		t.Fatal(err)
	}
	if err := mil.Check(p); err != nil {
		t.Fatal(err)
	}
	f := p.Function("main")
	if f == nil || f.Opset != "ios18" || len(f.Body.Ops) != 7 {
		t.Fatalf("function: %+v", f)
	}
	if got := f.Params[0].Type; !got.IsState() || !got.State().Equal(mil.TensorOf(tensor.FP16, 1, 2)) {
		t.Errorf("state type is %s", got)
	}
	if got, want := f.Params[1].Pos, (mil.Pos{Line: 4, Col: 75}); got != want {
		t.Errorf("position of x: %v, want %v", got, want)
	}
	ops := f.Body.Ops
	if v, ok := ops[0].Attr("val").Float(); !ok || v != -0.1875 {
		t.Errorf("eps = %v, %v, want -0.1875", v, ok)
	}
	if diff := cmp.Diff([]int64{1, -2, 3, 4}, ops[1].Attr("val").Ints); diff != "" {
		t.Error(diff)
	}
	blob := ops[2].Attr("val").Blob
	if blob == nil || blob.Path != "@model_path/weights/weight.bin" || blob.Offset != 64 {
		t.Errorf("blob: %+v", blob)
	}
	if len(ops[4].Outputs) != 2 || ops[4].Outputs[1].Name != "b" {
		t.Errorf("results of split: %+v", ops[4].Outputs)
	}
	if a := ops[5].Arg("values"); a == nil || !a.Variadic || len(a.Bindings) != 3 || a.Bindings[1].Ref != "r" {
		t.Errorf("values of concat: %+v", a)
	}
	if len(ops[6].Outputs) != 0 || ops[6].Pos != (mil.Pos{Line: 11, Col: 13}) {
		t.Errorf("write_state: %+v", ops[6])
	}
	if p.String() != small {
		t.Errorf("printed\n%s", p)
	}
	var buf bytes.Buffer
	if err := mil.Print(&buf, p); err != nil || buf.String() != small {
		t.Errorf("Print: %v", err)
	}
	want := map[string]int{"read_state": 1, "split": 1, "concat": 1, "write_state": 1}
	if diff := cmp.Diff(want, mil.Histogram(f)); diff != "" {
		t.Error(diff)
	}
}

func TestFloatLiterals(t *testing.T) {
	for _, tt := range []struct {
		typ, lit, printed string
		want              float64
	}{
		{"fp16", "0x1p-24", "0x1p-24", 0x1p-24},
		{"fp16", "0x1.ffcp+15", "0x1.ffcp+15", 65504},
		{"fp16", "0.001302", "0x1.554p-10", 0x1.554p-10}, // as numpy rounds it
		{"fp16", "-inf", "-inf", negInf},
		{"fp32", "0x1.fffffep+127", "0x1.fffffep+127", 0x1.fffffep+127},
		{"fp32", "0x1p-149", "0x1p-149", 0x1p-149},
		{"fp32", "-0x0p+0", "-0x0p+0", 0},
		{"fp32", "1", "0x1p+0", 1},
		{"fp32", "0X1.8P+1", "0x1.8p+1", 3},
		{"fp32", "2.5e-1", "0x1p-2", .25},
		{"fp64", "0x1.123456789abcdp+1000", "0x1.123456789abcdp+1000", 0x1.123456789abcdp+1000},
		{"fp64", "0x0.0000000000001p-1022", "0x1p-1074", 0x1p-1074},
		{"bf16", "0x1.02p+0", "0x1.02p+0", 0x1.02p+0},
	} {
		t.Run(tt.typ+"("+tt.lit+")", func(t *testing.T) {
			p := parseValue(t, tt.typ+"("+tt.lit+")")
			if v, _ := p.Float(); v != tt.want {
				t.Errorf("value %v, want %v", v, tt.want)
			}
			got := (&mil.Program{Version: "1.3", Attrs: []mil.Attr{{Name: "v", Value: p}}}).String()
			if want := "[v = " + tt.typ + "(" + tt.printed + ")]"; !strings.Contains(got, want) {
				t.Errorf("printed %s, want %s", got, want)
			}
		})
	}
}

var negInf = func() float64 { var z float64; return -1 / z }()

func parseValue(t *testing.T, s string) *mil.Value {
	t.Helper()
	p, err := mil.Parse("v.mil", []byte("program(1.3) [v = "+s+"] { }"))
	if err != nil {
		t.Fatal(err)
	}
	return p.Attr("v")
}

func TestForeignFiles(t *testing.T) {
	for _, tt := range []struct {
		name, src string
		code      diag.Code
		want      string
	}{
		{"empty", "", diag.Malformed, "empty file"},
		{"pymil dump", "main[CoreML8](%input: (1,64,512,fp16)(Tensor)) {\n  block0() {\n", diag.Unsupported, "debug dump of coremltools' Python MIL"},
		{"lfs pointer", "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n", diag.LFSPointer, "git lfs pointer"},
		{"protobuf", "\x08\x09\x12\x00", diag.Malformed, "want \"program\""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := mil.Parse("model.mil", []byte(tt.src))
			if diag.CodeOf(err) != tt.code || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v (%s), want %q (%s)", err, diag.CodeOf(err), tt.want, tt.code)
			}
			var l diag.List
			if !errors.As(err, &l) {
				t.Errorf("error is a %T, want a diag.List", err)
			}
		})
	}
}

func BenchmarkParse(b *testing.B) {
	path := filepath.Join(sharedtest.Path(b, "models", "anemll-qwen3-1.7b-ctx2048-lfs-pointers"), "qwen_FFN_PF_lut6_chunk_01of02.mlmodelc", "model.mil")
	src, err := os.ReadFile(path)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("parse", func(b *testing.B) {
		b.SetBytes(int64(len(src)))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := mil.Parse("model.mil", src); err != nil {
				b.Fatal(err)
			}
		}
	})
	p, err := mil.Parse("model.mil", src)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("check", func(b *testing.B) {
		for b.Loop() {
			if err := mil.Check(p); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("print", func(b *testing.B) {
		b.SetBytes(int64(len(src)))
		for b.Loop() {
			_ = p.String()
		}
	})
}
