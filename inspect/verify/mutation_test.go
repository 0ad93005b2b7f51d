package verify_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/anepkg/anepkg/coreml/mil"
	"github.com/anepkg/anepkg/coreml/sharedtest"
	"github.com/anepkg/anepkg/coreml/tensor"
	"github.com/anepkg/anepkg/inspect/verify"
)

// open are ops with results that run-time data decide, or whose definition
// leaves the mutated property free: nothing can be concluded from one of
// them. Every other op must be caught.
var open = map[string]bool{
	"einsum": true, "range_1d": true, "non_zero": true, "shape": true, "fill": true, "one_hot": true, "random_categorical": true,
}

// runTime are properties that positions computed at run time decide: where
// begin and end are inputs, every length up to the operand's is possible.
var runTime = map[string]bool{"slice_by_index: dimension": true, "slice_by_size: dimension": true}

// spoil changes one property of an op in place and returns how to restore it.
func spoil(op *mil.Op, what string) (undo func(), ok bool) {
	if len(op.Outputs) == 0 || op.Outputs[0].Type.Kind != mil.TensorType {
		return nil, false
	}
	t := &op.Outputs[0].Type
	old := *t
	undo = func() { *t = old }
	switch what {
	case "dimension", "large dimension":
		i := slices.IndexFunc(t.Shape, func(d int) bool { return d > 0 })
		if i < 0 {
			return nil, false
		}
		t.Shape = slices.Clone(t.Shape)
		t.Shape[i]++
		if what == "large dimension" {
			t.Shape[i] *= 1000
		}
	case "rank":
		t.Shape = append(slices.Clone(t.Shape), 1)
	case "element type":
		t.DType = map[tensor.DType]tensor.DType{tensor.FP16: tensor.FP32, tensor.FP32: tensor.FP16, tensor.Int32: tensor.FP32, tensor.Bool: tensor.Int32}[t.DType]
		if t.DType == tensor.Invalid {
			undo()
			return nil, false
		}
	case "missing argument":
		args := op.Args
		i := slices.IndexFunc(args, func(a mil.Arg) bool { return a.Name == "x" || a.Name == "values" || a.Name == "data" })
		if i < 0 {
			return nil, false
		}
		op.Args = slices.Delete(slices.Clone(args), i, i+1)
		return func() { op.Args = args }, true
	case "unknown argument":
		args := op.Args
		op.Args = append(slices.Clone(args), mil.Arg{Name: "colour", Bindings: []mil.Binding{{Value: mil.StringValue("red")}}})
		return func() { op.Args = args }, true
	}
	return undo, true
}

// TestMutations changes the type of a result, or an argument, of every op of
// the op vectors in turn; each must be found at that op.
func TestMutations(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(sharedtest.Path(t, "vectors/ops"), "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	made, caught := 0, 0
	missed := map[string]int{}
	for _, name := range files {
		for _, fn := range programs(t, name, 6) {
			fn.Body.Walk(func(op *mil.Op) {
				if op.Type == "const" || !slices.Contains(verify.Checked(), op.Type) || open[op.Type] {
					return
				}
				for _, what := range []string{"dimension", "large dimension", "rank", "element type", "missing argument", "unknown argument"} {
					undo, ok := spoil(op, what)
					if !ok {
						continue
					}
					made++
					if slices.ContainsFunc(verify.Function(fn, 0), func(p verify.Problem) bool { return p.Class != verify.Unused && p.Op == op }) {
						caught++
					} else {
						missed[op.Type+": "+what]++
					}
					undo()
				}
			})
		}
	}
	t.Logf("%d of %d mutations caught (%.1f %%); missed: %v", caught, made, 100*float64(caught)/float64(max(1, made)), slices.Sorted(maps.Keys(missed)))
	for what := range missed {
		if !runTime[what] {
			t.Errorf("%s: %d", what, missed[what])
		}
	}
}

// programs parses the functions of the first cases of a file.
func programs(t *testing.T, name string, most int) []*mil.Function {
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var f struct {
		Cases []struct {
			Program string
			Error   bool
		}
	}
	if err := json.Unmarshal(data, &f); err != nil {
		t.Fatal(err)
	}
	var out []*mil.Function
	for _, c := range f.Cases {
		if c.Error || len(out) >= most {
			continue
		}
		if prog, err := mil.Parse("model.mil", []byte(c.Program)); err == nil {
			out = append(out, prog.Functions...)
		}
	}
	return out
}

// TestProblems: hand-made programs with one fault each, found at its line
// with both sides named.
func TestProblems(t *testing.T) {
	const frame = "program(1.3)\n{\n    func main<ios18>(tensor<fp16, [1, 4]> a, tensor<fp32, [1, 4]> b, tensor<int32, [1]> p, state<tensor<fp16, [2, 4]>> s) {\nBODY\n        } -> (y);\n}"
	for _, c := range []struct {
		name, body string
		class      verify.Class
		line       int32
		text       string
	}{
		{"sum of two types", "tensor<fp16, [1, 4]> y = add(x = a, y = b);", verify.DType, 4, "y is fp32, x is fp16"},
		{"shapes at odds", "tensor<fp16, [3]> k = const()[val = tensor<fp16, [3]>([0x0p+0, 0x0p+0, 0x0p+0])];\ntensor<fp16, [1, 4]> y = add(x = a, y = k);", verify.Shape, 5, "do not broadcast"},
		{"fp32 update of an fp16 state", "tensor<fp16, [2, 4]> r = read_state(input = s);\ntensor<fp16, [2, 4]> y = slice_update(begin = tensor<int32, [2]>([0, 0]), end = tensor<int32, [2]>([1, 4]), update = b, x = r);", verify.DType, 5, "update is fp32, x is fp16"},
		{"update of another size", "tensor<fp16, [2, 4]> r = read_state(input = s);\ntensor<fp16, [2, 4]> y = slice_update(begin = tensor<int32, [2]>([0, 0]), end = tensor<int32, [2]>([2, 4]), update = a, x = r);", verify.Shape, 5, "update has shape [1, 4], the slice [2, 4]"},
		{"fp32 stored in an fp16 state", "tensor<fp16, [2, 4]> y = read_state(input = s);\ntensor<fp32, [2, 4]> w = cast(dtype = string(\"fp32\"), x = y);\nwrite_state(data = w, input = s);", verify.DType, 6, "data is fp32, the state is fp16"},
		{"axis out of range", "tensor<fp16, [1, 4]> y = softmax(axis = int32(2), x = a);", verify.Argument, 4, "axis is 2, the rank is 2"},
		{"no permutation", "tensor<fp16, [4, 1]> y = transpose(perm = tensor<int32, [2]>([1, 1]), x = a);", verify.Argument, 4, "no permutation"},
		{"reshape to another size", "tensor<fp16, [5]> y = reshape(shape = tensor<int32, [1]>([5]), x = a);", verify.Shape, 4, "numbers of elements differ"},
		{"op of no opset", "tensor<fp16, [1, 4]> y = softmux(x = a);", verify.Unknown, 4, "no opset"},
		{"table too short", "tensor<fp16, [2, 4]> w = constexpr_lut_to_dense(indices = tensor<uint4, [2, 4]>([[0, 0, 0, 0], [0, 0, 0, 0]]), lut = tensor<fp16, [1, 1, 4, 1]>([[[[0x0p+0], [0x0p+0], [0x0p+0], [0x0p+0]]]]));\ntensor<fp16, [2, 4]> y = add(x = a, y = w);", verify.Shape, 4, "tables have 4 entries, uint4 wants 16"},
		{"constant that nothing reads", "fp16 k = const()[val = fp16(0x0p+0)];\ntensor<fp16, [1, 4]> y = identity(x = a);", verify.Unused, 4, "k is read by nothing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			prog, err := mil.Parse("model.mil", []byte(strings.Replace(frame, "BODY", c.body, 1)))
			if err != nil {
				t.Fatal(err)
			}
			ps := verify.Function(prog.Functions[0], 9)
			if len(ps) != 1 || ps[0].Class != c.class || ps[0].Pos.Line != c.line || ps[0].Pos.Col == 0 || !strings.Contains(ps[0].Msg, c.text) {
				t.Errorf("got %+v, want %s at line %d: %s", ps, c.class, c.line, c.text)
			}
		})
	}
}

// TestOpset: ops, states and functions that are newer than they may be.
func TestOpset(t *testing.T) {
	for _, c := range []struct {
		name, source string
		spec         int
		want         string
	}{
		{"op", "program(1.0)\n{\n func main<ios16>(tensor<fp16, [1]> x, state<tensor<fp16, [1]>> s) {\n tensor<fp16, [1]> y = read_state(input = s);\n} -> (y);\n}", 7, "lacks the op"},
		{"function", "program(1.3)\n{\n func main<ios18>(tensor<fp16, [1]> x) {\n tensor<fp16, [1]> y = relu(x = x);\n} -> (y);\n}", 8, "specification version 8"},
	} {
		t.Run(c.name, func(t *testing.T) {
			prog, err := mil.Parse("model.mil", []byte(c.source))
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(verify.Function(prog.Functions[0], c.spec), func(p verify.Problem) bool { return p.Class == verify.Opset && strings.Contains(p.Msg, c.want) }) {
				t.Errorf("got %+v", verify.Function(prog.Functions[0], c.spec))
			}
			if ps := verify.Function(prog.Functions[0], 0); c.name == "function" && len(ps) != 0 {
				t.Errorf("without a claimed version: got %+v", ps)
			}
		})
	}
}
