package cpu

import (
	"slices"

	"github.com/anepkg/anepkg/coreml/mil"
)

// The passes over a lowered function: where values die, which states may be
// updated in place, and which scores a mask will close.

// liveness marks the last use of every value and the updates that may be
// done in the state itself.
func (lo *lowerer) liveness() {
	markLast(lo.nodes, lo.outs, func(int) bool { return true })
	lo.markStateUpdates()
	lo.markMasks()
}

// dropConsts forgets constants that no kernel reads as an operand, such as the
// tables that went into a palettized weight.
func (lo *lowerer) dropConsts() {
	used := map[int]bool{}
	for _, id := range lo.outs {
		used[id] = true
	}
	var walk func(nodes []*node)
	walk = func(nodes []*node) {
		for _, n := range nodes {
			for _, id := range n.ins {
				used[id] = true
			}
			for _, b := range n.blocks {
				for _, id := range b.outs {
					used[id] = true
				}
				walk(b.nodes)
			}
		}
	}
	walk(lo.nodes)
	for id := range lo.consts {
		if !used[id] {
			lo.consts[id] = nil
		}
	}
}

// markMasks finds matmul, perhaps scaled, then add, then softmax along the
// last axis, where each result is used once: attention scores and their mask.
func (lo *lowerer) markMasks() {
	made := map[int]int{} // value id -> index of its node
	uses := map[int]int{}
	for i, n := range lo.nodes {
		for _, id := range n.ins {
			uses[id]++
		}
		for _, id := range n.outs {
			made[id] = i
		}
	}
	for _, id := range lo.outs {
		uses[id]++
	}
	source := func(id int, types ...string) *node {
		if i, ok := made[id]; ok && uses[id] == 1 && slices.Contains(types, lo.nodes[i].op.Type) {
			return lo.nodes[i]
		}
		return nil
	}
	for _, soft := range lo.nodes {
		if soft.op.Type != "softmax" || len(soft.ins) == 0 || !lo.lastAxis(soft.op) {
			continue
		}
		add := source(soft.ins[0], "add")
		if add == nil {
			continue
		}
		for side := range 2 {
			scores := source(add.ins[side], "matmul", "mul", "real_div")
			if scores != nil && scores.op.Type != "matmul" {
				scores = lo.unscaled(scores, source)
			}
			mask := add.ins[1-side]
			at, computed := made[mask]
			if scores != nil && (!computed || at < made[scores.outs[0]]) {
				scores.mask = mask
			}
		}
	}
}

// unscaled returns the matmul behind a multiplication or division by one
// positive constant, or nil.
func (lo *lowerer) unscaled(n *node, source func(int, ...string) *node) *node {
	for side := range 2 {
		c := lo.consts[n.ins[1-side]]
		if c == nil || c.size() != 1 || c.num(0) <= 0 || n.op.Type == "real_div" && side == 1 {
			continue
		}
		return source(n.ins[side], "matmul")
	}
	return nil
}

// lastAxis reports whether an op's axis is the last one.
func (lo *lowerer) lastAxis(op *mil.Op) bool {
	rank := len(op.Outputs[0].Type.Shape)
	bs := op.Operand("axis")
	if len(bs) == 0 {
		return true // -1 is the default
	}
	if v := bs[0].Value; v != nil {
		i, ok := v.Int()
		return ok && (i == -1 || i == rank-1)
	}
	c := lo.consts[lo.ids[bs[0].Ref]]
	return c != nil && c.size() == 1 && (c.num(0) == -1 || int(c.num(0)) == rank-1)
}

// markLast walks backwards: the first use met of a value is its last. Values
// that are not own belong to an enclosing block and are left alone.
func markLast(nodes []*node, outs []int, own func(int) bool) {
	seen := map[int]bool{}
	for _, id := range outs {
		seen[id] = true // results live to the end
	}
	for i := len(nodes) - 1; i >= 0; i-- {
		n := nodes[i]
		n.last = make([]bool, len(n.ins))
		n.dead = make([]bool, len(n.outs))
		for k, id := range n.outs {
			n.dead[k] = !seen[id]
		}
		for k := len(n.ins) - 1; k >= 0; k-- {
			if id := n.ins[k]; !seen[id] && own(id) {
				seen[id] = true
				n.last[k] = true
			}
		}
	}
}

// markStateUpdates finds slice_update results that are written back to the
// state that they were read from before anything reads that state again.
func (lo *lowerer) markStateUpdates() {
	readFrom := map[int]int{}  // value id -> state id
	pending := map[int]*node{} // slice_update result -> node
	origin := map[int]int{}    // slice_update result -> state id
	for _, n := range lo.nodes {
		switch n.op.Type {
		case "read_state":
			st := n.ins[0]
			readFrom[n.outs[0]] = st
			for u, s := range origin {
				if s == st {
					delete(pending, u)
					delete(origin, u)
				}
			}
		case "slice_update":
			if st, ok := readFrom[n.ins[0]]; ok {
				pending[n.outs[0]] = n
				origin[n.outs[0]] = st
			} else if st, ok := origin[n.ins[0]]; ok { // several updates before one write
				pending[n.outs[0]] = n
				origin[n.outs[0]] = st
			}
		case "write_state":
			st, data := n.ins[writeStateTarget], n.ins[writeStateData]
			for u, m := range pending {
				if origin[u] == st && lo.reaches(u, data, origin) {
					m.toState = lo.names[st]
				}
				if origin[u] == st {
					delete(pending, u)
					delete(origin, u)
				}
			}
		}
	}
}

// reaches reports whether the update u is data itself or was updated further
// into it.
func (lo *lowerer) reaches(u, data int, origin map[int]int) bool {
	if u == data {
		return true
	}
	for _, n := range lo.nodes {
		if n.op.Type == "slice_update" && n.ins[0] == u {
			if _, ok := origin[n.outs[0]]; ok && lo.reaches(n.outs[0], data, origin) {
				return true
			}
		}
	}
	return false
}
