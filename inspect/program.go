package inspect

import (
	"regexp"
	"sort"
	"strconv"
	"strings"

	"github.com/anepkg/anepkg/coreml/mil"
)

// program is an index over one function: who defines a value and its type.
type program struct {
	fn   *mil.Function
	defs map[string]*mil.Op
	typ  map[string]mil.Type
	ops  []*mil.Op // in order, nested blocks included

	numbers map[string]int // made once by layerNumbers
}

func indexFunction(fn *mil.Function) *program {
	p := &program{fn: fn, defs: map[string]*mil.Op{}, typ: map[string]mil.Type{}}
	for _, prm := range fn.Params {
		p.typ[prm.Name] = prm.Type
	}
	if fn.Body == nil {
		return p
	}
	fn.Body.Walk(func(op *mil.Op) {
		p.ops = append(p.ops, op)
		for _, out := range op.Outputs {
			p.defs[out.Name] = op
			p.typ[out.Name] = out.Type
		}
	})
	return p
}

// value resolves a binding to a constant: an immediate one, or that of the
// const op that it names.
func (p *program) value(b mil.Binding) *mil.Value {
	if b.Value != nil {
		return b.Value
	}
	if op := p.defs[b.Ref]; op != nil && op.Type == "const" {
		return op.Attr("val")
	}
	return nil
}

// operand returns the constant of an operand of op, or nil.
func (p *program) operand(op *mil.Op, name string) *mil.Value {
	bs := op.Operand(name)
	if len(bs) != 1 {
		return nil
	}
	return p.value(bs[0])
}

// ref returns the name of the value bound to an argument, "" when it is
// immediate or absent.
func ref(op *mil.Op, name string) string {
	if bs := op.Operand(name); len(bs) == 1 {
		return bs[0].Ref
	}
	return ""
}

// typeOf returns the type of an operand.
func (p *program) typeOf(op *mil.Op, name string) (mil.Type, bool) {
	bs := op.Operand(name)
	if len(bs) != 1 {
		return mil.Type{}, false
	}
	if bs[0].Value != nil {
		return bs[0].Value.Type, true
	}
	t, ok := p.typ[bs[0].Ref]
	return t, ok
}

// firstInt finds the first element of an index vector, which begins of
// slice_update are: a constant, or the concatenation of constants and
// run-time positions.
func (p *program) firstInt(b mil.Binding, depth int) (int, bool) {
	if v := p.value(b); v != nil {
		if v.Blob == nil && len(v.Ints) > 0 {
			return int(v.Ints[0]), true
		}
		return 0, false
	}
	op := p.defs[b.Ref]
	if op == nil || depth > 8 {
		return 0, false
	}
	switch op.Type {
	case "concat":
		if a := op.Arg("values"); a != nil && len(a.Bindings) > 0 {
			return p.firstInt(a.Bindings[0], depth+1)
		}
	case "expand_dims", "squeeze", "reshape", "identity", "cast":
		if bs := op.Operand("x"); len(bs) == 1 {
			return p.firstInt(bs[0], depth+1)
		}
	}
	return 0, false
}

// stateOf follows a value back to the state that it is a version of.
func (p *program) stateOf(name string) string {
	for range 1 << 16 {
		if t, ok := p.typ[name]; ok && t.IsState() {
			return name
		}
		op := p.defs[name]
		if op == nil {
			return ""
		}
		switch op.Type {
		case "read_state":
			name = ref(op, "input")
		case "slice_update", "identity":
			name = ref(op, "x")
		case "coreml_update_state":
			if s := ref(op, "state"); s != "" {
				name = s
			} else {
				name = ref(op, "input")
			}
		default:
			return ""
		}
	}
	return ""
}

// stateWrite is one slice_update of a state with a known first index.
type stateWrite struct {
	state string
	slot  int
	op    *mil.Op
}

// stateWrites lists the slots that the function writes, in program order.
func (p *program) stateWrites() []stateWrite {
	var out []stateWrite
	for _, op := range p.ops {
		if op.Type != "slice_update" {
			continue
		}
		state := p.stateOf(ref(op, "x"))
		bs := op.Operand("begin")
		if state == "" || len(bs) != 1 {
			continue
		}
		slot, ok := p.firstInt(bs[0], 0)
		if m := p.operand(op, "begin_mask"); m != nil && len(m.Bools) > 0 && m.Bools[0] {
			slot, ok = 0, true
		}
		if ok && slot >= 0 {
			out = append(out, stateWrite{state: state, slot: slot, op: op})
		}
	}
	return out
}

// layerName finds "layers_3_" and, in chunks that keep two lists of layers,
// "layers_shared_3_".
var layerName = regexp.MustCompile(`(?:^|_)layers_(?:([a-z]+)_)?(\d{1,4})(?:_|$)`)

// layerNumbers gives the constants whose names tell their layer the number
// of it. A second list of layers continues after the first.
func (p *program) layerNumbers() map[string]int {
	if p.numbers == nil {
		p.numbers = p.findLayerNumbers()
	}
	return p.numbers
}

func (p *program) findLayerNumbers() map[string]int {
	type named struct {
		group string
		n     int
	}
	byName := map[string]named{}
	var groups []string
	low, high := map[string]int{}, map[string]int{}
	for _, op := range p.ops {
		if !op.IsConst() {
			continue
		}
		for _, out := range op.Outputs {
			if !strings.Contains(out.Name, "layers_") {
				continue
			}
			m := layerName.FindStringSubmatch(out.Name)
			if m == nil {
				continue
			}
			n, err := strconv.Atoi(m[2])
			if err != nil {
				continue
			}
			g := m[1]
			if _, seen := low[g]; !seen {
				groups = append(groups, g)
				low[g], high[g] = n, n
			}
			low[g], high[g] = min(low[g], n), max(high[g], n)
			byName[out.Name] = named{g, n}
		}
	}
	offset := map[string]int{}
	next := 0
	for i, g := range groups {
		if i > 0 {
			offset[g] = next - low[g]
		}
		next = high[g] + offset[g] + 1
	}
	out := make(map[string]int, len(byName))
	for name, l := range byName {
		out[name] = l.n + offset[l.group]
	}
	return out
}

// namedLayers returns the layer numbers in the names of the constants.
func (p *program) namedLayers() []int {
	set := map[int]bool{}
	for _, n := range p.layerNumbers() {
		set[n] = true
	}
	return sortedInts(set)
}

func sortedInts(set map[int]bool) []int {
	out := make([]int, 0, len(set))
	for n := range set {
		out = append(out, n)
	}
	sort.Ints(out)
	return out
}

// histogram counts the operations of a function, constants left out.
func (p *program) histogram() map[string]int {
	h := map[string]int{}
	for _, op := range p.ops {
		if op.Type != "const" {
			h[op.Type]++
		}
	}
	return h
}

// argmaxWidths returns the last dimension of the input of every
// reduce_argmax, in program order: the vocabulary parts of an argmax head.
func (p *program) argmaxWidths() []int {
	var out []int
	for _, op := range p.ops {
		if op.Type != "reduce_argmax" {
			continue
		}
		if t, ok := p.typeOf(op, "x"); ok && len(t.Shape) > 0 {
			d := t.Shape[len(t.Shape)-1]
			for _, s := range t.Shape { // [1, V, 1] layouts put the vocabulary elsewhere
				d = max(d, s)
			}
			out = append(out, d)
		}
	}
	return out
}

// tableRows returns the rows of the widest constant table [rows, width] that
// a gather reads, 0 when there is none. width 0 accepts any.
func (p *program) tableRows(width int) int {
	rows := 0
	for _, op := range p.ops {
		if op.Type != "gather" {
			continue
		}
		t, ok := p.typeOf(op, "x")
		if !ok || len(t.Shape) != 2 || width > 0 && t.Shape[1] != width {
			continue
		}
		if d := p.defs[ref(op, "x")]; d != nil && !d.IsConst() {
			continue
		}
		rows = max(rows, t.Shape[0])
	}
	return rows
}
