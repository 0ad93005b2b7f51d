package tokenizer

import "math/bits"

// pairTable maps pairs of ids to the rank and result of their merge; open addressing, never over half full.
type pairTable struct {
	keys  []uint64 // pair + 1; 0: empty
	vals  []mergeValue
	shift uint
}

type mergeValue struct{ rank, id int32 }

func newPairTable(n int) pairTable {
	log := bits.Len(uint(n)) + 1
	return pairTable{keys: make([]uint64, 1<<log), vals: make([]mergeValue, 1<<log), shift: uint(64 - log)}
}

func pairKey(left, right int32) uint64 { return uint64(uint32(left))<<32 | uint64(uint32(right)) + 1 }

func (t *pairTable) slot(key uint64) int {
	mask := len(t.keys) - 1
	i := int(key * 0x9E3779B97F4A7C15 >> t.shift)
	for t.keys[i] != 0 && t.keys[i] != key {
		i = (i + 1) & mask
	}
	return i
}

func (t *pairTable) set(p mergePair, rank, id int32) {
	key := pairKey(p.left, p.right)
	i := t.slot(key)
	t.keys[i], t.vals[i] = key, mergeValue{rank, id}
}

// noMerge is the rank of a pair that does not merge.
const noMerge = 1<<31 - 1

func (t *pairTable) get(left, right int32) mergeValue {
	key := pairKey(left, right)
	i := t.slot(key)
	if t.keys[i] == 0 {
		return mergeValue{rank: noMerge}
	}
	return t.vals[i]
}

// bpeWork holds the buffers of merge.
type bpeWork struct {
	syms  []int32
	pairs []mergeValue
	links []link
	heap  []candidate
}

// smallWord is the length up to which looking through all pairs is faster than a heap.
const smallWord = 48

// merge applies the merges to w.syms and appends the result to out.
func (b *bpe) merge(w *bpeWork, out []int) []int {
	if len(w.syms) > smallWord {
		return b.mergeLong(w, out)
	}
	syms := w.syms
	pairs := w.pairs[:0]
	for i := 0; i+1 < len(syms); i++ {
		pairs = append(pairs, b.merges.get(syms[i], syms[i+1]))
	}
	for len(pairs) > 0 {
		best := 0
		for i := range pairs {
			if pairs[i].rank < pairs[best].rank {
				best = i
			}
		}
		if pairs[best].rank == noMerge {
			break
		}
		syms[best] = pairs[best].id
		copy(syms[best+1:], syms[best+2:])
		syms = syms[:len(syms)-1]
		copy(pairs[best:], pairs[best+1:])
		pairs = pairs[:len(pairs)-1]
		if best < len(pairs) {
			pairs[best] = b.merges.get(syms[best], syms[best+1])
		}
		if best > 0 {
			pairs[best-1] = b.merges.get(syms[best-1], syms[best])
		}
	}
	for _, id := range syms {
		out = append(out, int(id))
	}
	w.pairs = pairs
	return out
}

// link is a symbol of a long word; id -1 marks one that was merged into its left neighbour.
type link struct{ id, prev, next int32 }

// candidate is a merge that may be done: of the symbol at pos with the next one.
type candidate struct{ rank, pos, id int32 }

func (c candidate) before(d candidate) bool {
	return c.rank < d.rank || c.rank == d.rank && c.pos < d.pos
}

// mergeLong is merge with a linked list and a heap.
func (b *bpe) mergeLong(w *bpeWork, out []int) []int {
	links := w.links[:0]
	w.heap = w.heap[:0]
	for i, id := range w.syms {
		links = append(links, link{id, int32(i - 1), int32(i + 1)})
	}
	links[len(links)-1].next = -1
	push := func(left, right int32) {
		if v := b.merges.get(links[left].id, links[right].id); v.rank != noMerge {
			w.push(candidate{v.rank, left, v.id})
		}
	}
	for i := 0; i+1 < len(links); i++ {
		push(int32(i), int32(i+1))
	}
	for len(w.heap) > 0 {
		c := w.pop()
		l := &links[c.pos]
		if l.id < 0 || l.next < 0 {
			continue
		}
		r := &links[l.next]
		if v := b.merges.get(l.id, r.id); v.rank == noMerge || v.id != c.id {
			continue
		}
		l.id, l.next, r.id = c.id, r.next, -1
		if l.next >= 0 {
			links[l.next].prev = c.pos
			push(c.pos, l.next)
		}
		if l.prev >= 0 {
			push(l.prev, c.pos)
		}
	}
	for _, l := range links {
		if l.id >= 0 {
			out = append(out, int(l.id))
		}
	}
	w.links = links
	return out
}

func (w *bpeWork) push(c candidate) {
	w.heap = append(w.heap, c)
	h := w.heap
	i := len(h) - 1
	for i > 0 {
		up := (i - 1) / 2
		if !c.before(h[up]) {
			break
		}
		h[i] = h[up]
		i = up
	}
	h[i] = c
	w.heap = h
}

func (w *bpeWork) pop() candidate {
	h := w.heap
	top, last := h[0], h[len(h)-1]
	h = h[:len(h)-1]
	w.heap = h
	if len(h) == 0 {
		return top
	}
	i := 0
	for {
		k := 2*i + 1
		if k >= len(h) {
			break
		}
		if k+1 < len(h) && h[k+1].before(h[k]) {
			k++
		}
		if !h[k].before(last) {
			break
		}
		h[i] = h[k]
		i = k
	}
	h[i] = last
	return top
}
