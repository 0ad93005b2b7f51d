package inspect

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"io"
	"math"
	"slices"

	"github.com/anepkg/anepkg/coreml/mil"
	"github.com/anepkg/anepkg/coreml/tensor"
	"github.com/anepkg/anepkg/inspect/dense"
)

// diffWeights compares the stored constants of a part by name.
func (r *DiffReport) diffWeights(ctx context.Context, p partPair, fast bool) error {
	byName := func(v *partView) map[string]*Weight {
		m := map[string]*Weight{}
		for _, w := range v.weights {
			for _, n := range append([]string{w.Name}, w.Aliases...) {
				if m[n] == nil {
					m[n] = w
				}
			}
		}
		return m
	}
	a, b := byName(p.a), byName(p.b)
	var names []string
	for n := range a {
		names = append(names, n)
	}
	for n := range b {
		if a[n] == nil {
			names = append(names, n)
		}
	}
	slices.Sort(names)
	d := &r.Weights
	for _, n := range names {
		if err := ctx.Err(); err != nil {
			return err
		}
		c := WeightChange{Part: p.name, Name: n, A: stored(a[n]), B: stored(b[n])}
		switch {
		case b[n] == nil:
			d.OnlyA++
			c.Status = "only_a"
		case a[n] == nil:
			d.OnlyB++
			c.Status = "only_b"
		case fast:
			d.Unread++
			if c.A == c.B {
				continue
			}
			c.Status, c.Reason = "unread", "weight data were not read"
		default:
			if r.compareWeight(p, a[n], b[n], &c) {
				d.SameBytes++
				continue
			}
		}
		d.Changes = append(d.Changes, c)
	}
	return nil
}

// stored says how a weight is stored.
func stored(w *Weight) string {
	if w == nil {
		return ""
	}
	group := ""
	if w.GroupSize > 0 {
		group = fmt.Sprintf("/%d", w.GroupSize)
	}
	return fmt.Sprintf("%s %d-bit%s %s %s", w.Kind, w.Bits, group, w.Type.DType.Long(), tensor.ShapeString(w.Type.Shape))
}

// compareWeight compares one constant; it returns true when both sides store
// the same bytes, else it completes c.
func (r *DiffReport) compareWeight(p partPair, a, b *Weight, c *WeightChange) bool {
	ca, cb := constantOf(p.a, a), constantOf(p.b, b)
	ha, err1 := ca.digest()
	hb, err2 := cb.digest()
	if err1 == nil && err2 == nil && ha == hb {
		return true
	}
	va, err1 := ca.decode()
	vb, err2 := cb.decode()
	switch {
	case err1 != nil || err2 != nil:
		r.Weights.Unread++
		c.Status = "unread"
		if c.Reason = fmt.Sprint(err1); err1 == nil {
			c.Reason = fmt.Sprint(err2)
		}
	case !slices.Equal(va.Shape, vb.Shape):
		r.Weights.Differ++
		c.Status = "differ"
	default:
		most := largestDifference(va, vb)
		if c.MaxAbs = &most; math.IsInf(most, 0) {
			c.MaxAbs = nil // JSON has no infinity
		}
		if c.Status = "differ"; most == 0 {
			c.Status = "same_values"
			r.Weights.SameValues++
			return false
		}
		r.Weights.Differ++
	}
	return false
}

func constantOf(pt *partView, w *Weight) *constant {
	return &constant{part: pt, fn: pt.program(w.Functions[0]), op: w.Op, name: w.Name}
}

// decode gives the values of the constant.
func (c *constant) decode() (*dense.Array, error) {
	outs, err := dense.Decode(c.source(), c.op)
	if err != nil {
		return nil, err
	}
	for i, o := range c.op.Outputs {
		if o.Name == c.name && i < len(outs) {
			return outs[i], nil
		}
	}
	return outs[0], nil
}

// largestDifference compares element by element; two NaN are equal, NaN and
// a number differ without bound.
func largestDifference(a, b *dense.Array) float64 {
	most := 0.0
	at := func(x *dense.Array, i int) float64 {
		if x.F != nil {
			return float64(x.F[i])
		}
		return float64(x.I[i])
	}
	for i := range min(a.Len(), b.Len()) {
		x, y := at(a, i), at(b, i)
		if x == y || math.IsNaN(x) && math.IsNaN(y) {
			continue
		}
		d := math.Abs(x - y)
		if math.IsNaN(d) {
			d = math.Inf(1)
		}
		most = max(most, d)
	}
	return most
}

// digest hashes the constant as it is stored: the ops, the types and the
// bytes of their operands, without names and offsets.
func (c *constant) digest() ([32]byte, error) {
	h := sha256.New()
	err := c.hashOp(h, c.op, 0)
	return [32]byte(h.Sum(nil)), err
}

func (c *constant) hashOp(h hash.Hash, op *mil.Op, depth int) error {
	_, _ = io.WriteString(h, op.Type+"\x00")
	if depth > 8 {
		return nil
	}
	for _, name := range mainOperands {
		for _, b := range op.Operand(name) {
			_, _ = io.WriteString(h, name+"\x00")
			if b.Value != nil {
				if err := c.hashValue(h, b.Value); err != nil {
					return err
				}
				continue
			}
			if d := c.fn.defs[b.Ref]; d != nil && d.IsConst() {
				if err := c.hashOp(h, d, depth+1); err != nil {
					return err
				}
			}
		}
	}
	for _, name := range []string{"axis", "vector_axis", "output_dtype"} {
		if v := c.fn.operand(op, name); v != nil {
			if err := c.hashValue(h, v); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *constant) hashValue(h hash.Hash, v *mil.Value) error {
	_, _ = io.WriteString(h, v.Type.DType.String()+tensor.ShapeString(v.Type.Shape))
	if v.Blob != nil {
		data, err := c.part.model.Weights.Data(v.Blob)
		if err != nil {
			return err
		}
		_, err = h.Write(data)
		return err
	}
	for _, list := range []any{v.Floats, v.Doubles, v.Ints, v.Bools} {
		if err := binary.Write(h, binary.LittleEndian, list); err != nil {
			return err
		}
	}
	for _, s := range v.Strings {
		_, _ = io.WriteString(h, s+"\x00")
	}
	return nil
}
