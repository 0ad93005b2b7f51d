package inspect

import (
	"context"
	"slices"
	"strings"

	"github.com/anepkg/anepkg/manifest"
)

// MemoryReport says where a package's bytes are and what running it takes.
// It marshals to JSON ("anepkg.memory/1"). It reads no weight data.
type MemoryReport struct {
	Schema  string        `json:"schema"`
	Weights int64         `json:"weight_bytes"` // stored, each once
	Parts   []PartMemory  `json:"parts"`
	Layers  []LayerMemory `json:"layers"`
	Kinds   []Scheme      `json:"schemes"`
	States  []StateMemory `json:"states"`
	Figures []Figure      `json:"figures"`
}

// PartMemory is the stored weights of one model.
type PartMemory struct {
	Part      string           `json:"part"`
	Role      string           `json:"role"`
	Bytes     int64            `json:"bytes"`     // stored, each weight once
	Functions map[string]int64 `json:"functions"` // what each function reads
}

// LayerMemory is the stored weights of one layer; Index is -1 for those of
// no layer (embedding, head, tables).
type LayerMemory struct {
	Index int   `json:"index"`
	Bytes int64 `json:"bytes"`
}

// StateMemory is one state object.
type StateMemory struct {
	Name             string `json:"name"`
	Role             string `json:"role"`
	Bytes            int64  `json:"bytes"`
	Positions        *int   `json:"positions"`          // length of a cache; nil for other states
	BytesPerPosition *int64 `json:"bytes_per_position"` // nil for other states
}

// Figure is a derived number with the formula that gave it. Estimates are
// called so in their names.
type Figure struct {
	Name    string `json:"name"`
	Bytes   int64  `json:"bytes"`
	Formula string `json:"formula"`
}

// Memory reports the bytes of a package's weights and states and what a
// decoder step reads. Parts that cannot be read are left out. Only a
// cancelled ctx is an error.
func Memory(ctx context.Context, pkg *manifest.Package) (*MemoryReport, error) {
	v, err := look(ctx, pkg)
	if err != nil {
		return nil, err
	}
	r := &MemoryReport{Schema: "anepkg.memory/1", Parts: []PartMemory{}, Layers: []LayerMemory{}, Kinds: []Scheme{}, States: []StateMemory{}, Figures: []Figure{}}
	var all []*Weight
	for _, pt := range v.parts {
		if pt.model == nil || pt.err != nil || pt.model.Program == nil || pt.Role == manifest.Leftover {
			continue
		}
		r.Parts = append(r.Parts, partMemory(pt))
		all = append(all, pt.weights...)
	}
	for _, w := range all {
		r.Weights += w.Bytes
	}
	r.Kinds = schemes(all)
	r.layers(v, all)
	r.states(v)
	r.figures(v, all)
	return r, nil
}

func partMemory(pt *partView) PartMemory {
	m := PartMemory{Part: pt.label(), Role: string(pt.Role), Functions: map[string]int64{}}
	for _, fn := range pt.model.Functions {
		m.Functions[fn.Name] = 0
	}
	for _, w := range pt.weights {
		m.Bytes += w.Bytes
		for _, fn := range w.Functions {
			m.Functions[fn] += w.Bytes
		}
	}
	return m
}

// layers sums by layer; a weight of no layer counts for the part's rest.
func (r *MemoryReport) layers(v *view, all []*Weight) {
	known := v.layers()
	rest := r.Weights
	for _, l := range known.Layers {
		r.Layers = append(r.Layers, LayerMemory{Index: l.Index, Bytes: l.WeightBytes})
		rest -= l.WeightBytes
	}
	if len(all) > 0 {
		r.Layers = append(r.Layers, LayerMemory{Index: -1, Bytes: rest})
	}
}

func (r *MemoryReport) states(v *view) {
	for _, s := range v.states(v.layers()).States {
		m := StateMemory{Name: s.Name, Role: s.Role, Bytes: s.Bytes}
		cache := s.Role == roleKV || s.Role == roleLocal || s.Role == roleGlobal
		if cache && len(s.Shape) == 4 && s.Shape[2] > 0 {
			m.Positions = ptr(s.Shape[2])
			m.BytesPerPosition = ptr(s.Bytes / int64(s.Shape[2]))
		}
		r.States = append(r.States, m)
	}
}

func (r *MemoryReport) add(name string, bytes int64, formula string) {
	r.Figures = append(r.Figures, Figure{name, bytes, formula})
}

func (r *MemoryReport) figures(v *view, all []*Weight) {
	var elements, caches, recurrent, perPosition int64
	for _, w := range all {
		elements += w.Elements
	}
	for _, s := range r.States {
		if s.Positions == nil {
			recurrent += s.Bytes
			continue
		}
		caches += s.Bytes
		perPosition += *s.BytesPerPosition
	}
	r.add("weights", r.Weights, "sum of the stored blobs, each once")
	r.add("weights_dense_fp16", 2*elements, "elements of all weights * 2 bytes")
	if len(r.States) > 0 {
		r.add("kv_cache", caches, "sum over cache states of the product of their dimensions * bytes of an element")
		r.add("kv_cache_per_position", perPosition, "sum over cache states of bytes / length of the cache")
		r.add("recurrent_state", recurrent, "sum over the other states, whatever the context")
	}
	step, rows := stepBytes(v)
	if step > 0 {
		r.add("read_per_token_estimate", step+rows+caches+2*recurrent, "weights that the one-token functions read, tables of embeddings with one row only, + every cache once + recurrent states read and written")
	}
	r.add("neural_engine_estimate", functionCopies(v), "sum over decoder and head functions of the weights they read: each function holds its own copy there, 3-bit indices take the room of 4 bits (measured, seed format); embedding tables stay mapped")
}

// stepBytes sums what one decoder step reads: the weights of every part's
// one-token function, and of tables that gathers read a single row.
func stepBytes(v *view) (weights, rows int64) {
	for _, pt := range v.of(manifest.Embeddings, manifest.Chunk, manifest.Mono, manifest.LMHead) {
		fn := pt.fn("infer")
		if fn == nil {
			continue
		}
		ix := pt.program(fn.Name)
		if ix == nil {
			continue
		}
		length := tables(ix)
		for _, w := range pt.weights {
			if !slices.Contains(w.Functions, fn.Name) {
				continue
			}
			if n := length[w.Name]; n > 0 {
				rows += w.Bytes / int64(n)
				continue
			}
			weights += w.Bytes
		}
	}
	return weights, rows
}

// tables lists the weights that nothing but gathers read, with their number
// of rows.
func tables(ix *program) map[string]int {
	out := map[string]int{}
	other := map[string]bool{}
	for _, op := range ix.ops {
		for i := range op.Args {
			for _, b := range op.Args[i].Bindings {
				t, ok := ix.typ[b.Ref]
				if ok && strings.HasPrefix(op.Type, "gather") && op.Args[i].Name == "x" && len(t.Shape) > 0 && t.Shape[0] > 0 {
					out[b.Ref] = t.Shape[0]
				} else {
					other[b.Ref] = true
				}
			}
		}
	}
	for name := range other {
		delete(out, name)
	}
	return out
}

// functionCopies sums the weights of every function of the decoder and the
// head. A table that only gathers read stays in the file.
func functionCopies(v *view) int64 {
	var total int64
	for _, pt := range v.of(manifest.Chunk, manifest.ChunkRot, manifest.Mono, manifest.LMHead, manifest.PrefillOf, manifest.EncoderOf) {
		length := map[string]map[string]int{}
		for name, ix := range pt.programs {
			length[name] = tables(ix)
		}
		for _, w := range pt.weights {
			n := w.Bytes
			if strings.HasPrefix(w.Kind, "lut") && w.Bits == 3 {
				n += w.Elements / 8 // one bit more for each element
			}
			for _, fn := range w.Functions {
				if length[fn][w.Name] == 0 {
					total += n
				}
			}
		}
	}
	return total
}
