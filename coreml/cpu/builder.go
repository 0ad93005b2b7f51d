package cpu

import (
	"fmt"
	"math"
	"runtime/debug"
	"slices"

	"github.com/anepkg/anepkg/coreml/mil"
	"github.com/anepkg/anepkg/coreml/tensor"
)

// builder is what an op's constructor sees: it names the operands, reads the
// constant ones, and returns the kernel. The first problem is kept in err;
// accessors then return harmless values, so constructors need not check
// after each call.
type builder struct {
	lo   *lowerer
	op   *mil.Op
	n    *node
	used map[string]bool
	err  error
	pos  mil.Pos // of the operand that err is about
}

// construct runs the constructor of def; a panic in it is a problem of the
// op, not of the process.
func (b *builder) construct(def *opDef) (k kernel) {
	defer func() {
		if r := recover(); r != nil {
			b.lo.sess.opts.Logger.Debug("constructor panic", "op", def.name, "value", r, "stack", string(debug.Stack()))
			b.failf("%v", r)
		}
	}()
	return def.build(b)
}

// slot is the index of an operand; absent is an optional one left out.
type slot int

const absent slot = -1

func (b *builder) failf(format string, args ...any) {
	if b.err == nil {
		b.err = fmt.Errorf(format, args...)
	}
}

func (b *builder) bindings(name string) []mil.Binding {
	if b.used == nil {
		b.used = map[string]bool{}
	}
	b.used[name] = true
	return b.op.Operand(name)
}

// bind adds one operand.
func (b *builder) bind(name string, bd mil.Binding) slot {
	var id int
	if bd.Value != nil {
		v, err := b.literal(bd.Value)
		if err != nil {
			b.failf("%s: %w", name, err)
			b.pos = bd.Pos
			return 0
		}
		id = b.lo.define(mil.Param{Name: fmt.Sprintf("%s#%s%d", b.op.Name(), name, len(b.n.ins)), Type: bd.Value.Type})
		b.lo.consts[id] = v
	} else {
		var ok bool
		if id, ok = b.lo.ids[bd.Ref]; !ok {
			b.failf("%s = %q is not defined before this line", name, bd.Ref)
			b.pos = bd.Pos
			return 0
		}
		if b.lo.types[id].IsState() {
			b.failf("%s = %q is a state, want a value that read_state gives", name, bd.Ref)
			b.pos = bd.Pos
			return 0
		}
	}
	b.n.ins = append(b.n.ins, id)
	return slot(len(b.n.ins) - 1)
}

// input returns a required operand.
func (b *builder) input(name string) slot {
	bs := b.bindings(name)
	if len(bs) == 0 {
		b.failf("argument %q is missing", name)
		return 0
	}
	if len(bs) > 1 {
		b.failf("argument %q has %d values, want one", name, len(bs))
		return 0
	}
	return b.bind(name, bs[0])
}

// optional returns an operand that may be left out.
func (b *builder) optional(name string) slot {
	if len(b.bindings(name)) == 0 {
		return absent
	}
	return b.input(name)
}

// variadic returns every operand of a list-valued argument.
func (b *builder) variadic(name string) []slot {
	bs := b.bindings(name)
	if len(bs) == 0 {
		b.failf("argument %q is missing", name)
		return nil
	}
	out := make([]slot, len(bs))
	for i := range bs {
		out[i] = b.bind(name, bs[i])
	}
	return out
}

// constant returns the value of an operand that must be known at load time;
// nil when the op leaves it out.
func (b *builder) constant(name string) *value {
	bs := b.bindings(name)
	if len(bs) == 0 {
		return nil
	}
	if len(bs) > 1 {
		b.failf("argument %q has %d values, want one", name, len(bs))
		return nil
	}
	return b.constOf(name, bs[0])
}

// constOf returns the value of one binding of an operand, which must be known
// at load time.
func (b *builder) constOf(name string, bd mil.Binding) *value {
	if v := bd.Value; v != nil {
		c, err := b.literal(v)
		if err != nil {
			b.failf("%s: %w", name, err)
		}
		return c
	}
	id, ok := b.lo.ids[bd.Ref]
	if !ok {
		b.failf("%s = %q is not defined before this line", name, bd.Ref)
		return nil
	}
	if b.lo.consts[id] == nil {
		b.failf("%s = %q must be a constant", name, bd.Ref)
		return nil
	}
	return b.lo.consts[id]
}

// intConst returns a constant scalar, or def when it is left out.
func (b *builder) intConst(name string, def int) int {
	v := b.constant(name)
	if v == nil {
		return def
	}
	if v.i == nil || len(v.i) != 1 {
		b.failf("argument %q: want one integer, got %s %s", name, v.dtype, tensor.ShapeString(v.shape))
		return def
	}
	return int(v.i[0])
}

// boolConst returns a constant bool, or def when it is left out.
func (b *builder) boolConst(name string, def bool) bool {
	v := b.constant(name)
	if v == nil {
		return def
	}
	if v.dtype != tensor.Bool || len(v.i) != 1 {
		b.failf("argument %q: want one bool, got %s %s", name, v.dtype, tensor.ShapeString(v.shape))
		return def
	}
	return v.i[0] != 0
}

// strConst returns a constant string, or def when it is left out.
func (b *builder) strConst(name, def string) string {
	v := b.constant(name)
	if v == nil {
		return def
	}
	if len(v.s) != 1 {
		b.failf("argument %q: want one string, got %s %s", name, v.dtype, tensor.ShapeString(v.shape))
		return def
	}
	return v.s[0]
}

// floatConst returns a constant number, or def when it is left out.
func (b *builder) floatConst(name string, def float64) float64 {
	v := b.constant(name)
	if v == nil {
		return def
	}
	if v.size() != 1 || v.s != nil {
		b.failf("argument %q: want one number, got %s %s", name, v.dtype, tensor.ShapeString(v.shape))
		return def
	}
	return v.num(0)
}

// intsConst returns a constant list; ok is false when it is left out.
func (b *builder) intsConst(name string) (vals []int, ok bool) {
	v := b.constant(name)
	if v == nil {
		return nil, false
	}
	if v.i == nil || v.rank() > 1 {
		b.failf("argument %q: want a list of integers, got %s %s", name, v.dtype, tensor.ShapeString(v.shape))
		return nil, false
	}
	return toInts(v.i), true
}

// boolsConst returns a constant list of bools; nil when it is left out.
func (b *builder) boolsConst(name string) []bool {
	v := b.constant(name)
	if v == nil {
		return nil
	}
	if v.dtype != tensor.Bool || v.rank() > 1 {
		b.failf("argument %q: want a list of bools, got %s %s", name, v.dtype, tensor.ShapeString(v.shape))
		return nil
	}
	out := make([]bool, len(v.i))
	for i, x := range v.i {
		out[i] = x != 0
	}
	return out
}

// outType is the declared type of result i.
func (b *builder) outType(i int) mil.Type {
	if i >= len(b.op.Outputs) {
		b.failf("has %d results, want at least %d", len(b.op.Outputs), i+1)
		return mil.Type{}
	}
	return b.op.Outputs[i].Type
}

// outDType is the declared element type of the first result.
func (b *builder) outDType() tensor.DType { return b.outType(0).DType }

// opsetAtLeast reports whether the function's opset is iosN or later.
func (b *builder) opsetAtLeast(n int) bool {
	var got int
	if _, err := fmt.Sscanf(b.lo.fn.Opset, "ios%d", &got); err != nil {
		return true
	}
	return got >= n
}

// results checks how many results the op declares.
func (b *builder) results(n int) {
	if len(b.op.Outputs) != n {
		b.failf("has %d results, want %d", len(b.op.Outputs), n)
	}
}

func toInts(x []int32) []int { return (*memory)(nil).toInts(x) }

// literal turns a constant of the program into a value. Data in a weight
// file is used where it lies.
func (b *builder) literal(v *mil.Value) (*value, error) {
	t := v.Type
	if t.Kind == mil.ListType {
		return listLiteral(v)
	}
	if t.Kind != mil.TensorType {
		return nil, fmt.Errorf("constants of type %s are not supported", t)
	}
	n, err := tensor.NumElements(t.Shape)
	if err != nil {
		return nil, err
	}
	if n > math.MaxInt32 {
		return nil, fmt.Errorf("a constant of %d elements is too large", n)
	}
	if v.Blob != nil {
		return b.blobValue(v, n)
	}
	out := &value{dtype: t.DType, shape: t.Shape}
	var got int
	switch {
	case t.DType == tensor.String:
		out.s, got = v.Strings, len(v.Strings)
	case t.DType == tensor.Bool:
		out.i, got = make([]int32, len(v.Bools)), len(v.Bools)
		for i, x := range v.Bools {
			if x {
				out.i[i] = 1
			}
		}
	case t.DType == tensor.FP64:
		out.f, got = make([]float32, len(v.Doubles)), len(v.Doubles)
		for i, x := range v.Doubles {
			out.f[i] = float32(x)
		}
	case t.DType.IsFloat():
		out.f, got = v.Floats, len(v.Floats)
	default:
		out.i, got = make([]int32, len(v.Ints)), len(v.Ints)
		for i, x := range v.Ints {
			out.i[i] = int32(x)
		}
	}
	if int64(got) != n {
		return nil, fmt.Errorf("constant has %d values, its type %s wants %d", got, t, n)
	}
	return out, nil
}

// listLiteral makes a vector of a list of strings or integers, as classify
// takes its classes.
func listLiteral(v *mil.Value) (*value, error) {
	strs, ints := slices.Clone(v.Strings), slices.Clone(v.Ints)
	for _, e := range v.Elems {
		strs, ints = append(strs, e.Strings...), append(ints, e.Ints...)
	}
	out := &value{dtype: v.Type.Elems[0].DType, shape: []int{len(strs) + len(ints)}}
	switch {
	case out.dtype == tensor.String && len(ints) == 0:
		out.s = append([]string{}, strs...)
		return out, nil
	case !out.dtype.IsInt() || len(strs) > 0:
		return nil, fmt.Errorf("constants of type %s are not supported", v.Type)
	}
	out.i = make([]int32, len(ints))
	for k, x := range ints {
		if out.i[k] = int32(x); int64(out.i[k]) != x {
			return nil, fmt.Errorf("element %d of a list is %d, which does not fit int32", k, x)
		}
	}
	return out, nil
}

// blobValue maps data from the weight file after checking its record.
func (b *builder) blobValue(v *mil.Value, n int64) (*value, error) {
	if b.lo.sess.opts.WithoutWeights {
		return b.typedData(v.Type, n, b.lo.zeros(v.Type.DType.ByteSize(n)))
	}
	rec, err := b.lo.model.Weights.Record(v.Blob)
	if err != nil {
		return nil, err
	}
	if rec.DType != v.Type.DType && (v.Type.DType != tensor.Bool || rec.DType != tensor.UInt8) {
		return nil, fmt.Errorf("blob at %#x holds %s, its type here is %s", v.Blob.Offset, rec.DType, v.Type)
	}
	if want := v.Type.DType.ByteSize(n); rec.Size != want {
		return nil, fmt.Errorf("blob at %#x holds %d bytes, type %s wants %d", v.Blob.Offset, rec.Size, v.Type, want)
	}
	data, err := b.lo.model.Weights.Data(v.Blob)
	if err != nil {
		return nil, err
	}
	return b.typedData(v.Type, n, data)
}

// typedData makes a value of n elements that lie in data.
func (b *builder) typedData(t mil.Type, n int64, data []byte) (*value, error) {
	d := t.DType
	if d.IsInt() && d.Bits() <= 8 && n > 64 {
		return &value{dtype: d, shape: t.Shape, w: packed{d, t.Shape, data}}, nil
	}
	return fromBytes(d, t.Shape, data), nil
}

// zeros returns n zero bytes, the same ones to everybody.
func (lo *lowerer) zeros(n int64) []byte {
	if int64(len(lo.zero)) < n {
		lo.zero = make([]byte, n)
	}
	return lo.zero[:n:n]
}
