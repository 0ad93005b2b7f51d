package inspect

import (
	"slices"
	"strings"

	"github.com/anepkg/anepkg/coreml/mil"
	"github.com/anepkg/anepkg/coreml/tensor"
)

// blobUse is one reference to a weight file.
type blobUse struct {
	ref   *mil.BlobRef
	value *mil.Value // its type says how many bytes lie there
	op    *mil.Op
	fn    *mil.Function
}

// payload is how many bytes the data of the blob takes. -1 when its shape is
// not known.
func (b blobUse) payload() int64 {
	n, err := tensor.NumElements(b.value.Type.Shape)
	if err != nil {
		return -1
	}
	return b.value.Type.DType.ByteSize(n)
}

// blobUses lists every reference to a weight file in program order.
func blobUses(fn *mil.Function) []blobUse {
	var out []blobUse
	add := func(v *mil.Value, op *mil.Op) {
		if v != nil && v.Blob != nil {
			out = append(out, blobUse{ref: v.Blob, value: v, op: op, fn: fn})
		}
	}
	if fn.Body == nil {
		return nil
	}
	fn.Body.Walk(func(op *mil.Op) {
		for i := range op.Attrs {
			add(op.Attrs[i].Value, op)
		}
		for i := range op.Args {
			for _, b := range op.Args[i].Bindings {
				add(b.Value, op)
			}
		}
	})
	return out
}

// Weight is one stored weight: a constant with data in the weight file, or
// the compression ops that make one tensor. Weights that several functions
// read are counted once.
type Weight struct {
	Name      string
	Functions []string
	Aliases   []string // other constants that read the same bytes
	Op        *mil.Op
	Type      mil.Type
	Kind      string // dense, lut, affine, blockwise, sparse, and joints such as lut+affine
	Bits      int    // of a stored element
	GroupSize int    // see schemeOf
	Elements  int64
	Bytes     int64 // of all blobs of the weight
	Blob      *mil.BlobRef
	Layer     int // by its name or its place between named weights, -1 when nothing tells it
	File      string
}

type weightKey struct {
	path   string
	offset uint64
}

// collectWeights lists the distinct weights of a program in order of first
// use.
func collectWeights(prog *mil.Program, index map[string]*program) []*Weight {
	var out []*Weight
	seen := map[weightKey]*Weight{}
	for _, fn := range prog.Functions {
		ix := index[fn.Name]
		inner := innerOps(ix)
		var mine []*Weight
		for _, op := range ix.ops {
			if !op.IsConst() || len(op.Outputs) == 0 || inner[op.Outputs[0].Name] {
				continue
			}
			w := weightOf(ix, op)
			if w == nil {
				continue
			}
			key := weightKey{w.Blob.Path, w.Blob.Offset}
			if prev := seen[key]; prev != nil {
				if prev.Functions[len(prev.Functions)-1] != fn.Name {
					prev.Functions = append(prev.Functions, fn.Name)
				}
				if w.Name != prev.Name && !slices.Contains(prev.Aliases, w.Name) {
					prev.Aliases = append(prev.Aliases, w.Name)
				}
				continue
			}
			w.Functions = []string{fn.Name}
			w.File = prog.File
			seen[key] = w
			mine = append(mine, w)
		}
		placeWeights(ix, mine)
		out = append(out, mine...)
	}
	return out
}

// placeWeights gives every weight its layer: the number in its name, or for
// a weight without one the layer of the named weights used before and after
// it. At a border between layers a vector is the norm that opens the next
// layer, a matrix belongs to the one before.
func placeWeights(ix *program, ws []*Weight) {
	numbers := ix.layerNumbers()
	byName := map[string]*Weight{}
	for _, w := range ws {
		byName[w.Name] = w
		if n, ok := numbers[w.Name]; ok {
			w.Layer = n
		}
	}
	var uses []string // constants in order of use
	for _, op := range ix.ops {
		if op.IsConst() || strings.HasPrefix(op.Type, "gather") { // tables belong to no layer
			continue
		}
		for i := range op.Args {
			for _, b := range op.Args[i].Bindings {
				_, named := numbers[b.Ref]
				if named || byName[b.Ref] != nil {
					uses = append(uses, b.Ref)
				}
			}
		}
	}
	after := make([]int, len(uses)+1) // layer of the next named constant
	after[len(uses)] = -1
	for i := len(uses) - 1; i >= 0; i-- {
		after[i] = after[i+1]
		if n, ok := numbers[uses[i]]; ok {
			after[i] = n
		}
	}
	head := givesTokens(ix)
	before := -1
	moved := map[*Weight]bool{}
	for i, name := range uses {
		if n, ok := numbers[name]; ok {
			before = n
			continue
		}
		w := byName[name]
		layer := placeBetween(before, after[i+1], w, head)
		if w.Layer >= 0 && w.Layer != layer {
			moved[w] = true // used by several layers
		}
		w.Layer = layer
	}
	for w := range moved {
		w.Layer = -1
	}
}

func placeBetween(before, after int, w *Weight, head bool) int {
	long := 0
	for _, d := range w.Type.Shape {
		if d > 1 {
			long++
		}
	}
	vector := long <= 1
	switch {
	case before == after:
		return before
	case before < 0:
		if vector {
			return after
		}
		return -1 // the embedding table, or tables of positions
	case vector:
		return after
	case after < 0 && head:
		return -1
	}
	return before
}

// givesTokens reports whether the function ends in a head.
func givesTokens(ix *program) bool {
	if ix.fn.Body == nil {
		return false
	}
	for _, r := range ix.fn.Body.Outputs {
		if strings.HasPrefix(r.Name, "logits") || strings.HasPrefix(r.Name, "token") || strings.HasPrefix(r.Name, "argmax") || r.Name == "embedding" || r.Name == "next_token" {
			return true
		}
	}
	return false
}

// innerOps are the constants that only feed other compression ops.
func innerOps(ix *program) map[string]bool {
	inner := map[string]bool{}
	outer := map[string]bool{}
	for _, op := range ix.ops {
		joint := strings.HasPrefix(op.Type, "constexpr_")
		for i := range op.Args {
			for _, b := range op.Args[i].Bindings {
				if b.Ref == "" {
					continue
				}
				if joint {
					inner[b.Ref] = true
				} else {
					outer[b.Ref] = true
				}
			}
		}
	}
	if ix.fn.Body != nil {
		for _, r := range ix.fn.Body.Outputs {
			outer[r.Name] = true
		}
	}
	for name := range outer {
		delete(inner, name)
	}
	return inner
}

// weightOf describes a constant whose data lies in a weight file.
func weightOf(ix *program, op *mil.Op) *Weight {
	w := &Weight{Name: op.Outputs[0].Name, Op: op, Type: op.Outputs[0].Type, Layer: -1}
	w.gather(ix, op, map[string]bool{}, 0)
	if w.Blob == nil {
		return nil
	}
	if n, err := tensor.NumElements(w.Type.Shape); err == nil {
		w.Elements = n
	}
	w.Kind, w.Bits, w.GroupSize = schemeOf(ix, op, w.Type)
	return w
}

// gather sums the blobs below op. The first one is the main data.
func (w *Weight) gather(ix *program, op *mil.Op, seen map[string]bool, depth int) {
	if depth > 8 {
		return
	}
	take := func(v *mil.Value) {
		if v == nil || v.Blob == nil {
			return
		}
		if w.Blob == nil {
			w.Blob = v.Blob
		}
		if n := (blobUse{value: v}).payload(); n > 0 {
			w.Bytes += n
		}
	}
	for _, name := range mainOperands {
		for _, b := range op.Operand(name) {
			if b.Value != nil {
				take(b.Value)
			} else if d := ix.defs[b.Ref]; d != nil && d.IsConst() && !seen[b.Ref] {
				seen[b.Ref] = true
				w.gather(ix, d, seen, depth+1)
			}
		}
	}
}

// mainOperands are the operands of const and the compression ops that may
// hold data, the main one of each op first.
var mainOperands = []string{
	"val", "indices", "data", "quantized_data", "indices_mask", "indices_nonzero_data", "nonzero_data", "data_mask",
	"mask", "shape", "source_val", "lut", "scale", "offset", "zero_point",
}

// schemeOf tells how a weight is compressed, the bits of a stored element,
// and the group size:
//
//	lut        output channels that share one table (all of them for per-tensor)
//	affine     output channels that share one scale
//	blockwise  elements along the blocked axis that share one scale
//	dense      0
func schemeOf(ix *program, op *mil.Op, typ mil.Type) (kind string, bits, group int) {
	switch op.Type {
	case "const":
		return "dense", typ.DType.Bits(), 0
	case "constexpr_cast":
		if t, ok := ix.typeOf(op, "source_val"); ok {
			return "dense", t.DType.Bits(), 0
		}
		return "dense", typ.DType.Bits(), 0
	case "constexpr_lut_to_dense":
		kind, bits, group = "lut", lutBits(ix, op), lutGroup(ix, op, typ)
		if d := ix.defs[ref(op, "lut")]; d != nil && d.Type != "const" {
			kind = "lut+affine"
		}
		if d := ix.defs[ref(op, "indices")]; d != nil && d.Type != "const" {
			kind = "lut+sparse"
		}
		return kind, bits, group
	case "constexpr_blockwise_shift_scale":
		t, _ := ix.typeOf(op, "data")
		kind, group = blockKind(ix, op, t.Shape)
		if d := ix.defs[ref(op, "data")]; d != nil && d.Type != "const" {
			inner, b, _ := schemeOf(ix, d, t)
			return inner + "+affine", b, group
		}
		return kind, t.DType.Bits(), group
	case "constexpr_affine_dequantize":
		t, _ := ix.typeOf(op, "quantized_data")
		return "affine", t.DType.Bits(), affineGroup(ix, op, t.Shape)
	case "constexpr_sparse_to_dense":
		t, _ := ix.typeOf(op, "nonzero_data")
		if d := ix.defs[ref(op, "nonzero_data")]; d != nil && d.Type != "const" {
			inner, b, g := schemeOf(ix, d, t)
			return "sparse+" + strings.TrimPrefix(inner, "sparse+"), b, g
		}
		return "sparse", t.DType.Bits(), 0
	case "constexpr_lut_to_sparse":
		t, _ := ix.typeOf(op, "indices_nonzero_data")
		return "lut", t.DType.Bits(), 0
	case "constexpr_sparse_blockwise_shift_scale":
		t, _ := ix.typeOf(op, "nonzero_data")
		return "affine", t.DType.Bits(), 0
	}
	return strings.TrimPrefix(op.Type, "constexpr_"), typ.DType.Bits(), 0
}

// lutBits is the width of an index. The iOS 16 form stores indices as packed
// uint8; its table length tells the width.
func lutBits(ix *program, op *mil.Op) int {
	t, ok := ix.typeOf(op, "indices")
	if !ok {
		return 0
	}
	lut, ok := ix.typeOf(op, "lut")
	if ok && len(t.Shape) == 1 && len(lut.Shape) == 1 {
		for b := range 9 {
			if lut.Shape[0] == 1<<b {
				return b
			}
		}
	}
	return t.DType.Bits()
}

func lutGroup(ix *program, op *mil.Op, typ mil.Type) int {
	lut, ok := ix.typeOf(op, "lut")
	if !ok || len(typ.Shape) == 0 {
		return 0
	}
	if len(lut.Shape) < 3 || len(lut.Shape) != len(typ.Shape)+2 {
		return typ.Shape[0]
	}
	for axis := range typ.Shape {
		if g := lut.Shape[axis]; g > 1 {
			return typ.Shape[axis] / g
		}
	}
	return typ.Shape[0]
}

// blockKind tells per-channel scales from blocks along an inner axis.
func blockKind(ix *program, op *mil.Op, shape []int) (kind string, group int) {
	s, ok := ix.typeOf(op, "scale")
	if !ok || len(s.Shape) != len(shape) || len(shape) == 0 {
		return "affine", 0
	}
	for axis := len(shape) - 1; axis > 0; axis-- {
		if s.Shape[axis] > 1 {
			return "blockwise", shape[axis] / s.Shape[axis]
		}
	}
	if s.Shape[0] <= 0 {
		return "affine", 0
	}
	return "affine", shape[0] / s.Shape[0]
}

func affineGroup(ix *program, op *mil.Op, shape []int) int {
	s, ok := ix.typeOf(op, "scale")
	if !ok || len(shape) == 0 {
		return 0
	}
	if len(s.Shape) == 0 || tensor.Count(s.Shape) == 1 {
		return shape[0]
	}
	return 1
}

// schemes sums weights of equal kind, bits and group.
func schemes(ws []*Weight) []Scheme {
	out := []Scheme{}
	for _, w := range ws {
		k := -1
		for i := range out {
			if out[i].Kind == w.Kind && out[i].Bits == w.Bits && out[i].GroupSize == w.GroupSize {
				k = i
			}
		}
		if k < 0 {
			out = append(out, Scheme{Kind: w.Kind, Bits: w.Bits, GroupSize: w.GroupSize})
			k = len(out) - 1
		}
		out[k].Count++
		out[k].Bytes += w.Bytes
		out[k].Elements += w.Elements
	}
	sortSchemes(out)
	return out
}
