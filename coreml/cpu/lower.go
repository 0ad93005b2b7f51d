package cpu

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/coreml/mil"
	"github.com/anepkg/anepkg/coreml/tensor"
)

// node is one op with its kernel and operands.
type node struct {
	op     *mil.Op
	def    *opDef
	kern   kernel
	ins    []int  // value ids, one per operand slot
	last   []bool // whether the slot is the last use of its value
	outs   []int
	dead   []bool   // whether nothing uses the result
	blocks []*block // of control flow
	// toState names the state that operand x was read from and that the
	// result is written to before it is read again, so that it may be updated
	// in place; "" when that is not so.
	toState string
	// mask is the value that is added to a matmul's result before a softmax;
	// -1 when there is none.
	mask int
}

// block is a lowered nested block of control flow.
type block struct {
	params []int
	nodes  []*node
	outs   []int
	own    map[int]bool // values that the block itself defines
}

// graph is a lowered function.
type graph struct {
	model  *coreml.Model
	fn     *coreml.Function
	nodes  []*node
	consts []*value // by value id; nil when computed at run time
	types  []mil.Type
	names  []string
	params []int // value ids of the parameters, in program order
	outs   []int
}

type lowerer struct {
	*graph
	cur  *[]*node // where ops go: the function's nodes or a block's
	ids  map[string]int
	bad  map[int]bool // values of ops that failed: what follows from them is no news
	zero []byte
	sess *session
	errs diag.List
}

// lower checks that every op is known, then builds the nodes.
func lower(ctx context.Context, m *coreml.Model, f *coreml.Function, opts coreml.LoadOptions) (*session, error) {
	if err := checkOps(m.Program, f.Program); err != nil {
		return nil, err
	}
	g := &graph{model: m, fn: f}
	s := newSession(g, opts)
	lo := &lowerer{graph: g, cur: &g.nodes, ids: map[string]int{}, bad: map[int]bool{}, sess: s}
	for _, p := range f.Program.Params {
		g.params = append(g.params, lo.define(p))
	}
	for _, op := range f.Program.Body.Ops {
		if err := ctx.Err(); err != nil {
			return nil, errors.Join(err, s.Close())
		}
		if lo.spoiled(op) {
			lo.spoil(op)
			continue
		}
		if err := lo.op(op); err != nil {
			lo.report(err)
			if len(lo.errs) >= 10 {
				break
			}
			lo.spoil(op) // and go on, to report more than one problem
		}
	}
	if len(lo.errs) == 0 {
		lo.results()
	}
	if err := lo.errs.Err(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	lo.liveness()
	lo.dropConsts()
	s.prepare()
	return s, nil
}

// spoiled reports whether an op reads the result of one that failed.
func (lo *lowerer) spoiled(op *mil.Op) bool {
	for i := range op.Args {
		for _, bd := range op.Args[i].Bindings {
			if id, ok := lo.ids[bd.Ref]; ok && bd.Value == nil && lo.bad[id] {
				return true
			}
		}
	}
	return false
}

// spoil defines the results of an op that failed.
func (lo *lowerer) spoil(op *mil.Op) {
	for _, o := range op.Outputs {
		id, ok := lo.ids[o.Name]
		if !ok {
			id = lo.define(o)
		}
		lo.bad[id] = true
	}
}

// report keeps an error, once.
func (lo *lowerer) report(err *diag.Error) {
	for _, e := range lo.errs {
		if e.Error() == err.Error() {
			return
		}
	}
	lo.errs = append(lo.errs, err)
}

// checkOps lists every op of the function that the table lacks.
func checkOps(p *mil.Program, f *mil.Function) error {
	type miss struct {
		pos   mil.Pos
		count int
	}
	missing := map[string]*miss{}
	f.Body.Walk(func(op *mil.Op) {
		if opTable[op.Type] != nil {
			return
		}
		if m := missing[op.Type]; m != nil {
			m.count++
			return
		}
		missing[op.Type] = &miss{op.Pos, 1}
	})
	if len(missing) == 0 {
		return nil
	}
	names := make([]string, 0, len(missing))
	for n := range missing {
		names = append(names, n)
	}
	slices.Sort(names)
	var parts []string
	first := missing[names[0]].pos
	for _, n := range names {
		m := missing[n]
		if m.pos.Line < first.Line {
			first = m.pos
		}
		at := ""
		if m.pos.Line > 0 {
			at = fmt.Sprintf(", first at line %d", m.pos.Line)
		}
		parts = append(parts, fmt.Sprintf("%s (%d times%s)", n, m.count, at))
	}
	e := diag.Errorf(p.At(first), diag.Unsupported, "function %s uses ops that the CPU engine does not know: %s", f.Name, strings.Join(parts, ", "))
	if best := nearestOp(names[0]); best != "" {
		e.Hint = fmt.Sprintf("did you mean %s?", best)
	} else {
		e.Hint = "run it through Core ML on a Mac, or open an issue that names these ops"
	}
	return e
}

func (lo *lowerer) define(p mil.Param) int {
	id := len(lo.types)
	lo.ids[p.Name] = id
	lo.types = append(lo.types, p.Type)
	lo.names = append(lo.names, p.Name)
	lo.consts = append(lo.consts, nil)
	return id
}

func (lo *lowerer) errorf(op *mil.Op, format string, args ...any) *diag.Error {
	e := diag.Errorf(lo.at(op), diag.Malformed, format, args...)
	e.Msg = op.Type + " " + quoteName(op) + ": " + e.Msg
	return e
}

func (lo *lowerer) at(op *mil.Op) diag.Pos {
	pos := lo.model.Program.At(op.Pos)
	if pos.Line == 0 {
		pos.File = lo.model.ProgramFile
	}
	return pos
}

func quoteName(op *mil.Op) string {
	if len(op.Outputs) > 0 {
		return fmt.Sprintf("%q", op.Outputs[0].Name)
	}
	return fmt.Sprintf("%q", op.Name())
}

// op lowers one operation.
func (lo *lowerer) op(op *mil.Op) *diag.Error {
	for _, o := range op.Outputs {
		if _, ok := lo.ids[o.Name]; ok {
			return lo.errorf(op, "identifier %q is defined twice in function %s", o.Name, lo.fn.Name)
		}
	}
	def := opTable[op.Type]
	b := &builder{lo: lo, op: op, n: &node{op: op, def: def, mask: -1}}
	kern := b.construct(def)
	if b.err != nil {
		var de *diag.Error
		if errors.As(b.err, &de) && !de.Pos.IsZero() {
			return de
		}
		e := lo.errorf(op, "%w", b.err)
		if b.pos != (mil.Pos{}) {
			e.Pos = lo.model.Program.At(b.pos)
		}
		return e
	}
	for i := range op.Args {
		if !b.used[op.Args[i].Name] {
			return lo.errorf(op, "does not know argument %q", op.Args[i].Name)
		}
	}
	n := b.n
	n.kern = kern
	for _, o := range op.Outputs {
		n.outs = append(n.outs, lo.define(o))
	}
	if lo.foldable(n) {
		return lo.fold(n)
	}
	*lo.cur = append(*lo.cur, n)
	return nil
}

// block lowers a nested block. Values of the enclosing blocks that it uses
// become operands of the op, so that they live long enough.
func (b *builder) block(k int) *block {
	if k >= len(b.op.Blocks) {
		b.failf("has %d nested blocks, want at least %d", len(b.op.Blocks), k+1)
		return &block{}
	}
	lo, src, blk := b.lo, b.op.Blocks[k], &block{own: map[int]bool{}}
	outer := lo.ids
	lo.ids = maps.Clone(outer)
	saved := lo.cur
	lo.cur = &blk.nodes
	defer func() { lo.ids, lo.cur = outer, saved }()
	first := len(lo.types)
	for _, p := range src.Params {
		blk.params = append(blk.params, lo.define(p))
	}
	for _, op := range src.Ops {
		if err := lo.op(op); err != nil {
			b.failf("%w", err)
			return blk
		}
	}
	for _, r := range src.Outputs {
		id, ok := lo.ids[r.Name]
		if !ok {
			b.failf("the nested block returns %q, which is not defined", r.Name)
			return blk
		}
		blk.outs = append(blk.outs, id)
	}
	for id := first; id < len(lo.types); id++ {
		blk.own[id] = true
	}
	b.capture(blk)
	blk.liveness()
	b.n.blocks = append(b.n.blocks, blk)
	return blk
}

func (b *builder) capture(blk *block) {
	use := func(id int) {
		if !blk.own[id] && b.lo.consts[id] == nil && !slices.Contains(b.n.ins, id) {
			b.n.ins = append(b.n.ins, id)
		}
	}
	for _, n := range blk.nodes {
		for _, id := range n.ins {
			use(id)
		}
	}
	for _, id := range blk.outs {
		use(id)
	}
}

// liveness marks the last uses of the block's own values.
func (b *block) liveness() {
	markLast(b.nodes, b.outs, func(id int) bool { return b.own[id] })
}

// foldLimit bounds the elements of a constant computed at load time, so that
// a small program cannot ask for gigabytes before it runs.
const foldLimit = 1 << 22

func (lo *lowerer) foldable(n *node) bool {
	if n.def.impure {
		return false
	}
	size := 0
	for _, id := range n.ins {
		if lo.consts[id] == nil {
			return false
		}
	}
	for _, id := range n.outs {
		t := lo.types[id]
		if t.Kind != mil.TensorType {
			return n.def.constant
		}
		c := tensor.Count(t.Shape)
		if c < 0 && len(n.ins) > 0 && !n.def.constant {
			return false
		}
		size += c
	}
	return n.def.constant || size <= foldLimit
}

// fold runs n now and keeps its results as constants.
func (lo *lowerer) fold(n *node) *diag.Error {
	c := &call{s: lo.sess, n: n, in: make([]*value, len(n.ins)), out: make([]*value, len(n.outs))}
	n.last = make([]bool, len(n.ins))
	for i, id := range n.ins {
		c.in[i] = lo.consts[id]
	}
	if err := lo.sess.exec(c); err != nil {
		var de *diag.Error
		if errors.As(err, &de) {
			return de
		}
		return lo.errorf(n.op, "%w", err)
	}
	for i, id := range n.outs {
		v := c.out[i]
		if v.view != nil {
			v = c.dense(v)
		}
		if v.f != nil && v.buf != nil && len(v.f) == 1 { // let a pooled buffer of 64 go
			v.f = []float32{v.f[0]}
		}
		v.buf = nil // constants are never recycled
		lo.consts[id] = v
	}
	return nil
}

// results resolves the names that the function returns.
func (lo *lowerer) results() {
	for _, r := range lo.fn.Program.Body.Outputs {
		id, ok := lo.ids[r.Name]
		if !ok {
			lo.errs = append(lo.errs, diag.Errorf(lo.model.Program.At(r.Pos), diag.Malformed, "function %s returns %q, which is not defined", lo.fn.Name, r.Name))
			return
		}
		lo.outs = append(lo.outs, id)
	}
}
