package cpu

import (
	"fmt"
	"math"
	"slices"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/coreml/tensor"
)

var attentionOps = []opDef{
	{name: "scaled_dot_product_attention", since: 18, types: "fp16 fp32; attn_mask bool fp16 fp32", build: buildAttention,
		doc: "softmax(query * key^T / sqrt(E) + attn_mask) * value; query [B..., L, E], key [B..., S, E], value [B..., S, EV]; a bool mask keeps where true; a row that is masked everywhere is NaN"},
}

// attention is one call: its shapes and operands.
type attention struct {
	l, s, e, ev int
	q, k, v     []float32
	kh, vh      []uint16 // key and value where they lie as fp16
	dst         []float32
	scale       float64
	// The mask is added (mask) or keeps (keep); one of them, or neither, is
	// there. mstep, mrow and mcol are its strides along batch, L and S.
	mask       []float32
	keep       []int32
	batch      []int
	mstep      []int
	mrow, mcol int
	skip       bool // leave out what is masked with -inf
}

func buildAttention(b *builder) kernel {
	query, key, val, mask := b.input("query"), b.input("key"), b.input("value"), b.optional("attn_mask")
	skip := b.lo.sess.opts.Precision != coreml.Strict
	b.results(1)
	a := &attention{}
	return func(c *call) error {
		shape, err := a.set(c.m, c.in[query], c.in[key], c.in[val])
		if err != nil {
			return err
		}
		if m := c.get(mask); m != nil {
			if err := a.setMask(c, m); err != nil {
				return err
			}
		}
		a.q, a.skip = c.f32(query), skip
		if a.kh = c.in[key].h; a.kh == nil {
			a.k = c.f32(key)
		}
		if a.vh = c.in[val].h; a.vh == nil {
			a.v = c.f32(val)
		}
		a.dst = c.newFloat(0, shape)
		grain := max(1, (1<<15)/max(1, a.s*(a.e+a.ev)))
		c.run(product(a.batch)*a.l, grain, a)
		return nil
	}
}

func (a *attention) run(lo, hi int) {
	scores := takeRow(a.s)
	defer giveRow(scores)
	for r := lo; r < hi; r++ {
		a.row(r/max(1, a.l), r%max(1, a.l), scores.x)
	}
}

// set takes the shapes of a call and returns that of the result.
func (a *attention) set(m *memory, q, k, v *value) ([]int, error) {
	n := q.rank()
	bad := func(why string) error {
		return fmt.Errorf("query has shape %s, key %s, value %s: %s", tensor.ShapeString(q.shape), tensor.ShapeString(k.shape), tensor.ShapeString(v.shape), why)
	}
	if !q.isFloat() || !k.isFloat() || !v.isFloat() {
		return nil, fmt.Errorf("query is %s, key %s, value %s, want floats", q.dtype, k.dtype, v.dtype)
	}
	switch {
	case n < 3 || k.rank() != n || v.rank() != n:
		return nil, bad("want one rank of 3 or more")
	case !slices.Equal(q.shape[:n-2], k.shape[:n-2]) || !slices.Equal(q.shape[:n-2], v.shape[:n-2]):
		return nil, bad("want equal leading dimensions")
	case q.shape[n-1] != k.shape[n-1]:
		return nil, bad("query and key have vectors of different length")
	case k.shape[n-2] != v.shape[n-2]:
		return nil, bad("key and value have sequences of different length")
	}
	*a = attention{l: q.shape[n-2], s: k.shape[n-2], e: q.shape[n-1], ev: v.shape[n-1], batch: q.shape[:n-2]}
	a.scale = 1 / math.Sqrt(float64(a.e))
	shape := m.copyDims(q.shape)
	shape[n-1] = a.ev
	return shape, nil
}

// setMask lines the mask up with the scores [B..., L, S].
func (a *attention) setMask(c *call, m *value) error {
	n := len(a.batch)
	scores := c.m.newDims(n + 2)
	copy(scores, a.batch)
	scores[n], scores[n+1] = a.l, a.s
	if shape, err := c.m.broadcastShape(m.shape, scores); err != nil || !slices.Equal(shape, scores) {
		return fmt.Errorf("attn_mask has shape %s, the scores %s", tensor.ShapeString(m.shape), tensor.ShapeString(scores))
	}
	st := c.m.broadcastStrides(m.shape, scores)
	a.mstep, a.mrow, a.mcol = st[:n], st[n], st[n+1]
	switch {
	case m.isFloat():
		a.mask = c.wide(m)
	case m.dtype == tensor.Bool:
		a.keep = m.whole()
	default:
		return fmt.Errorf("attn_mask is %s, want bool or a float", m.dtype)
	}
	return nil
}

// row computes row i of batch b of the result.
func (a *attention) row(b, i int, scores []float32) {
	q := a.q[(b*a.l+i)*a.e : (b*a.l+i+1)*a.e]
	at := 0
	if a.mstep != nil {
		at = i*a.mrow + rowOffset(b, a.batch, a.mstep)
	}
	for j := range scores {
		add := 0.0
		switch {
		case a.keep != nil:
			if a.keep[at+j*a.mcol] == 0 {
				add = negInf
			}
		case a.mask != nil:
			add = float64(a.mask[at+j*a.mcol])
		}
		if a.skip && add == negInf {
			scores[j] = float32(negInf)
			continue
		}
		scores[j] = float32(a.score(q, b*a.s+j)*a.scale + add)
	}
	softmaxRow(scores, scores)
	lo, hi := 0, a.s
	if a.skip { // what is masked lies before and behind, mostly
		for lo < hi && scores[lo] == 0 {
			lo++
		}
		for lo < hi && scores[hi-1] == 0 {
			hi--
		}
	}
	out := a.dst[(b*a.l+i)*a.ev : (b*a.l+i+1)*a.ev]
	clear(out)
	first := (b*a.s + lo) * a.ev
	if a.vh != nil {
		if lo < hi {
			axpyHalf(out, scores[lo:hi], a.vh[first:(b*a.s+hi)*a.ev], a.ev)
		}
		return
	}
	for _, p := range scores[lo:hi] {
		axpy(out, p, a.v[first:first+a.ev])
		first += a.ev
	}
}

// score is the product of a query with key row j.
func (a *attention) score(q []float32, j int) float64 {
	if a.kh != nil {
		return float64(dotHalf(a.kh[j*a.e:(j+1)*a.e], q))
	}
	return float64(dot(q, a.k[j*a.e:(j+1)*a.e]))
}
