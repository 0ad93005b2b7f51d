package dense_test

import (
	"encoding/base64"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anepkg/anepkg/coreml/blob"
	"github.com/anepkg/anepkg/coreml/mil"
	"github.com/anepkg/anepkg/coreml/sharedtest"
	"github.com/anepkg/anepkg/coreml/tensor"
	"github.com/anepkg/anepkg/inspect/dense"
)

// vectors lists the op vectors of compressed constants.
func vectors(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(sharedtest.Path(t, "vectors", "ops"), "constexpr_*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("found %d files of vectors: %v", len(files), err)
	}
	return files
}

type vector struct {
	Name, Program, Weights string
	Error                  bool
	Tolerance              struct{ Abs, Rel float64 }
	Outputs                map[string]struct {
		DType string
		Shape []int
		Data  string
	}
}

// decode finds the op "y = add(x = 0, y = w)" and decodes w.
func decode(t *testing.T, c *vector) (*dense.Array, error) {
	t.Helper()
	prog, err := mil.Parse("model.mil", []byte(c.Program))
	if err != nil {
		t.Fatal(err)
	}
	data, err := base64.StdEncoding.DecodeString(c.Weights)
	if err != nil {
		t.Fatal(err)
	}
	var file *blob.File
	if len(data) > 0 {
		if file, err = blob.NewBytes("weights/weight.bin", data); err != nil {
			t.Fatal(err)
		}
	}
	defs := map[string]*mil.Op{}
	want := ""
	for _, op := range prog.Functions[0].Body.Ops {
		for _, o := range op.Outputs {
			defs[o.Name] = op
		}
		if op.Type == "add" {
			want = op.Operand("y")[0].Ref
			if d := defs[want]; d == nil || !d.IsConst() {
				want = op.Operand("x")[0].Ref
			}
		}
	}
	if defs[want] == nil {
		return nil, nil // the weight feeds another op
	}
	src := dense.Source{
		Op: func(name string) *mil.Op { return defs[name] },
		Data: func(ref *mil.BlobRef) ([]byte, error) {
			r, err := file.Record(int64(ref.Offset))
			if err != nil {
				return nil, err
			}
			return file.Data(r)
		},
	}
	outs, err := dense.Decode(src, defs[want])
	if err != nil {
		return nil, err
	}
	return outs[0], nil
}

// TestVectors: every compressed form decodes to what numpy computed from the
// documented definitions.
func TestVectors(t *testing.T) {
	n := 0
	for _, name := range vectors(t) {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var f struct{ Cases []vector }
		if err := json.Unmarshal(data, &f); err != nil {
			t.Fatal(err)
		}
		for i := range f.Cases {
			c := &f.Cases[i]
			t.Run(strings.TrimSuffix(filepath.Base(name), ".json")+"/"+c.Name, func(t *testing.T) {
				got, err := decode(t, c)
				if c.Error {
					if err == nil {
						t.Error("decodes a constant whose operands do not fit together")
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				if got == nil {
					t.Skip("the weight feeds another op")
				}
				n++
				compare(t, c, got)
			})
		}
	}
	if n < 150 {
		t.Errorf("only %d constants were compared", n)
	}
	t.Logf("%d constants", n)
}

func compare(t *testing.T, c *vector, got *dense.Array) {
	want := c.Outputs["y"]
	d, _ := tensor.ParseDType(want.DType)
	data, err := base64.StdEncoding.DecodeString(want.Data)
	if err != nil {
		t.Fatal(err)
	}
	y := &tensor.Tensor{DType: d, Shape: want.Shape, Data: data}
	if err := y.Check(); err != nil {
		t.Fatal(err)
	}
	if tensor.ShapeString(got.Shape) != tensor.ShapeString(want.Shape) {
		t.Fatalf("got shape %v, want %v", got.Shape, want.Shape)
	}
	have, err := got.Tensor()
	if err != nil {
		t.Fatal(err)
	}
	for i := range y.Len() {
		a, b := have.Float64(i), y.Float64(i)
		if math.Abs(a-b) > c.Tolerance.Abs+c.Tolerance.Rel*math.Abs(b) && !(math.IsNaN(a) && math.IsNaN(b)) && a != b {
			t.Fatalf("element %d: got %g, want %g", i, a, b)
		}
	}
}

// TestHostile: operands that contradict each other are errors, whatever they
// are.
func TestHostile(t *testing.T) {
	for _, c := range []struct{ name, op string }{
		{"no value", `tensor<fp16, [2]> w = const()[name = string("w")];`},
		{"huge shape", `tensor<fp16, [1000000, 1000000, 1000]> w = const()[val = tensor<fp16, [1000000, 1000000, 1000]>(BLOBFILE(path = string("w"), offset = uint64(64)))];`},
		{"huge count", `tensor<fp16, [100000, 100000]> w = const()[val = tensor<fp16, [100000, 100000]>(BLOBFILE(path = string("w"), offset = uint64(64)))];`},
		{"short data", `tensor<fp16, [8]> w = const()[val = tensor<fp16, [8]>(BLOBFILE(path = string("w"), offset = uint64(64)))];`},
		{"index beyond the table", `tensor<fp16, [2]> w = constexpr_lut_to_dense(indices = tensor<uint4, [2]>([1, 9]), lut = tensor<fp16, [1, 2, 1]>([[[0x0p+0], [0x0p+0]]]));`},
		{"zero groups", `tensor<fp16, [2]> w = constexpr_blockwise_shift_scale(data = tensor<int8, [2]>([1, 9]), scale = tensor<fp16, [0]>([]));`},
		{"too many ones", `tensor<fp16, [2]> w = constexpr_sparse_to_dense(mask = tensor<uint1, [2]>([1, 1]), nonzero_data = tensor<fp16, [1]>([0x1p+0]));`},
		{"no constant", `tensor<fp16, [2]> w = relu(x = x);`},
		{"text", `string w = const()[val = string("a")];`},
	} {
		t.Run(c.name, func(t *testing.T) {
			prog, err := mil.Parse("model.mil", []byte("program(1.3)\n{\n func main<ios18>(tensor<fp16, [2]> x) {\n "+c.op+"\n } -> (w);\n}"))
			if err != nil {
				t.Fatal(err)
			}
			src := dense.Source{Op: func(string) *mil.Op { return nil }, Data: func(*mil.BlobRef) ([]byte, error) { return make([]byte, 6), nil }}
			if out, err := dense.Decode(src, prog.Functions[0].Body.Ops[0]); err == nil {
				t.Errorf("got %+v, want an error", out[0])
			}
		})
	}
}
