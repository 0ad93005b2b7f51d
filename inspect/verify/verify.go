// Package verify checks an ML Program op by op: the printed type of every
// result must be what the operands give by the op's definition, every
// argument must exist and fit, and the op must belong to the function's
// opset. It reads no weight data.
//
// Files: verify.go (Program, Problem), call.go (looking at one op),
// shapes.go (arithmetic on shapes), signatures.go (arguments of every op),
// table.go (the op table), elementwise.go, linear.go, layout.go, slice.go,
// gather.go, reduce.go, spatial.go, compressed.go and stateful.go (one family
// of ops each).
//
// What is known about an op is in reference form in coremltools' op
// definitions; an op or a dimension that cannot be judged is left out rather
// than guessed.
package verify

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/anepkg/anepkg/coreml/mil"
	"github.com/anepkg/anepkg/coreml/tensor"
)

// Class tells the sort of a Problem.
type Class string

// The classes.
const (
	Shape    Class = "shape"    // shapes of operands and results contradict each other
	DType    Class = "dtype"    // element types do
	Argument Class = "argument" // an argument is missing, unknown or out of range
	Opset    Class = "opset"    // the function's opset lacks the op or the type
	Unknown  Class = "unknown"  // no opset has the op
	Unused   Class = "unused"   // a constant that nothing reads
)

// Problem is one thing wrong with a program. Pos is zero for programs that
// came from protobuf.
type Problem struct {
	Class    Class
	Function string
	Op       *mil.Op // nil for a problem of the function itself
	Pos      mil.Pos
	Msg      string // got and want in words, names the op
	Got      any
	Want     any
	Bytes    int64 // Unused: stored bytes of the constant, 0 when not known
}

// maxProblems bounds the problems of one function and class.
const maxProblems = 10

// Program checks every function of a program. spec is the specification
// version that the model claims, 0 when it claims none. The only error is
// that of a cancelled ctx.
func Program(ctx context.Context, prog *mil.Program, spec int) ([]Problem, error) {
	var out []Problem
	for _, fn := range prog.Functions {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		out = append(out, Function(fn, spec)...)
	}
	return out, nil
}

// Function checks one function. The result has at most one problem for an
// op and ten of a class.
func Function(fn *mil.Function, spec int) []Problem {
	v := &verifier{fn: fn, opset: opsetNumber(fn.Opset), types: map[string]mil.Type{}, consts: map[string]*mil.Value{},
		used: map[string]bool{}, count: map[Class]int{}}
	v.header(spec)
	if fn.Body == nil {
		return v.out
	}
	v.block(fn.Body)
	v.unused()
	return v.out
}

type verifier struct {
	fn     *mil.Function
	opset  int // 15 ... 26; 0 when not known
	types  map[string]mil.Type
	consts map[string]*mil.Value
	used   map[string]bool
	count  map[Class]int
	out    []Problem
	dead   []*mil.Op // const ops in order, to find unused ones
}

// opsetNumber turns "ios18" into 18, 0 for anything else.
func opsetNumber(s string) int {
	n, err := strconv.Atoi(strings.TrimPrefix(s, "ios"))
	if err != nil || n < 13 || n > 99 {
		return 0
	}
	return n
}

// specOpsets is the newest opset of every specification version that has ML
// Programs.
var specOpsets = map[int]int{6: 15, 7: 16, 8: 17, 9: 18, 10: 26}

func (v *verifier) report(p Problem) {
	if v.count[p.Class]++; v.count[p.Class] > maxProblems {
		return
	}
	p.Function = v.fn.Name
	v.out = append(v.out, p)
}

// header checks what the function itself declares.
func (v *verifier) header(spec int) {
	newest := specOpsets[spec]
	if v.opset > 0 && newest > 0 && v.opset > newest {
		v.report(Problem{Class: Opset, Pos: v.fn.Pos, Got: v.fn.Opset, Want: "ios" + strconv.Itoa(newest),
			Msg: fmt.Sprintf("the function is of opset %s, specification version %d has opsets up to ios%d", v.fn.Opset, spec, newest)})
	}
	for _, p := range v.fn.Params {
		v.types[p.Name] = p.Type
		if p.Type.IsState() && v.opset > 0 && v.opset < 18 {
			v.report(Problem{Class: Opset, Pos: p.Pos, Got: v.fn.Opset, Want: "ios18",
				Msg: fmt.Sprintf("parameter %s is a state, which opset %s lacks", p.Name, v.fn.Opset)})
		}
	}
}

func (v *verifier) block(b *mil.Block) {
	for _, p := range b.Params {
		v.types[p.Name] = p.Type
	}
	for _, op := range b.Ops {
		v.op(op)
		for _, nb := range op.Blocks {
			v.block(nb)
		}
		for _, o := range op.Outputs {
			v.types[o.Name] = o.Type
		}
		if op.Type == "const" && len(op.Outputs) == 1 {
			v.consts[op.Outputs[0].Name] = op.Attr("val")
		}
		if op.IsConst() {
			v.dead = append(v.dead, op)
		}
	}
	for _, r := range b.Outputs {
		v.used[r.Name] = true
	}
}

// op checks one op and notes what it reads.
func (v *verifier) op(op *mil.Op) {
	for i := range op.Args {
		for _, b := range op.Args[i].Bindings {
			if b.Ref != "" {
				v.used[b.Ref] = true
			}
		}
	}
	c := &call{v: v, op: op}
	if op.Type == "const" {
		c.constant()
		return
	}
	if !c.signature() {
		return
	}
	if f := table[op.Type]; f != nil {
		f(c)
	}
}

// unused reports constants that no op and no result reads. Constants inside
// other compressed constants count as read.
func (v *verifier) unused() {
	for _, op := range v.dead {
		read := false
		for _, o := range op.Outputs {
			read = read || v.used[o.Name]
		}
		if read || len(op.Outputs) == 0 {
			continue
		}
		out := op.Outputs[0]
		v.report(Problem{Class: Unused, Op: op, Pos: out.Pos, Bytes: blobBytes(op), Msg: fmt.Sprintf("%s %s is read by nothing", op.Type, out.Name)})
	}
}

// blobBytes sums what the op's immediate operands take in weight files.
func blobBytes(op *mil.Op) int64 {
	var n int64
	add := func(val *mil.Value) {
		if val == nil || val.Blob == nil {
			return
		}
		if e, err := tensor.NumElements(val.Type.Shape); err == nil {
			n += val.Type.DType.ByteSize(e)
		}
	}
	for i := range op.Args {
		for _, b := range op.Args[i].Bindings {
			add(b.Value)
		}
	}
	for i := range op.Attrs {
		add(op.Attrs[i].Value)
	}
	return n
}
