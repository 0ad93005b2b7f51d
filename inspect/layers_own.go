package inspect

import (
	"strconv"
	"strings"

	"github.com/anepkg/anepkg/coreml"
)

// ownLayer is a layer that writes a state, in program order.
type ownLayer struct {
	typ   string
	state string
	slot  int
}

// ownLayers derives the layers that keep a state from the order of the
// program's state writes. A KV cache of 2n slots holds keys at i and values
// at n+i (or interleaved in CoreML-LLM's stateful chunks); a cache with both
// in one slot has one write a layer.
func ownLayers(f *coreml.Function, ix *program, interleaved bool) []ownLayer {
	var out []ownLayer
	seen := map[string]bool{}
	linear := 0
	for _, w := range ix.stateWrites() {
		s := f.State(w.state)
		if s == nil || len(s.Shape) == 0 {
			continue
		}
		role := stateRole(s.Name)
		l := ownLayer{state: s.Name, slot: w.slot, typ: "full"}
		switch role {
		case roleConv, roleRecurrent:
			l.typ = "linear"
		case roleLocal:
			l.typ = "sliding"
		}
		pair := pairedSlots(s)
		switch {
		case role == roleRecurrent || role == roleConv:
			key := role + "/" + strconv.Itoa(w.slot)
			if seen[key] {
				continue
			}
			seen[key] = true
			if other := map[string]string{roleConv: roleRecurrent, roleRecurrent: roleConv}[role]; pendingLinear(seen, other, role) {
				continue // the second state of the same layer
			}
			l.slot = linear
			linear++
		case pair && interleaved:
			l.slot = w.slot / 2
		case pair && w.slot >= s.Shape[0]/2:
			continue // the value half
		}
		key := s.Name + "#" + strconv.Itoa(l.slot)
		if l.typ != "linear" && seen[key] {
			continue
		}
		seen[key] = true
		out = append(out, l)
	}
	return out
}

// pendingLinear reports whether a linear layer has so far written only the
// other of its two states: then this write completes it.
func pendingLinear(seen map[string]bool, other, role string) bool {
	a, b := 0, 0
	for k := range seen {
		if strings.HasPrefix(k, other+"/") {
			a++
		}
		if strings.HasPrefix(k, role+"/") {
			b++
		}
	}
	return a >= b
}

// pairedSlots reports whether a KV cache keeps keys and values in separate
// slots. The seed's gemma4 caches [slots, 2 kv heads, ...] do not; their
// names are those of gemma3, whose caches do: the first dimension is then
// even and the writes reach its second half.
func pairedSlots(s *coreml.Feature) bool { return len(s.Shape) == 4 && s.Shape[0]%2 == 0 }

// gemma4Own lists the layers of a seed gemma4 chunk: every slot of a cache
// holds keys and values of one layer.
func gemma4Own(f *coreml.Function, ix *program) []ownLayer {
	var out []ownLayer
	seen := map[stateSlot]bool{}
	for _, w := range ix.stateWrites() {
		s := f.State(w.state)
		if s == nil || seen[stateSlot{s.Name, w.slot}] {
			continue
		}
		seen[stateSlot{s.Name, w.slot}] = true
		typ := "full"
		if stateRole(s.Name) == roleLocal {
			typ = "sliding"
		}
		out = append(out, ownLayer{typ: typ, state: s.Name, slot: w.slot})
	}
	return out
}

type stateSlot struct {
	state string
	slot  int
}
