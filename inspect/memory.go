package inspect

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/manifest"
)

// MemoryReport says what a package takes at run time. It marshals to
// "anepkg.memory/1". Totals are estimates made of the package's own numbers;
// each has its formula. Leftover models do not count.
type MemoryReport struct {
	Schema   string          `json:"schema"`
	Totals   []MemoryTotal   `json:"totals"`
	Parts    []PartMemory    `json:"parts"`
	Layers   []LayerMemory   `json:"layers"`
	Kinds    []Scheme        `json:"kinds"`
	States   []StateMemory   `json:"states"`
	Contexts []ContextMemory `json:"contexts"`
}

// MemoryTotal is one number of bytes and where it comes from.
type MemoryTotal struct {
	Name    string `json:"name"` // stored, dense, neural_engine, states, read_per_token
	Bytes   int64  `json:"bytes"`
	Formula string `json:"formula"`
}

// PartMemory is one model. Dense counts every element in the type that it has
// after decompression. NeuralEngine counts the weights of each function
// anew.
type PartMemory struct {
	Part         string `json:"part"`
	Role         string `json:"role"`
	Functions    int    `json:"functions"`
	Stored       int64  `json:"stored_bytes"`
	Dense        int64  `json:"dense_bytes"`
	NeuralEngine int64  `json:"neural_engine_bytes"`
	Read         int64  `json:"read_per_token_bytes"` // weights that one decode step reads
	Table        int64  `json:"table_bytes"`          // of Stored: look-up tables, of which a step reads one row
}

// LayerMemory is one decoder layer.
type LayerMemory struct {
	Index   int      `json:"index"`
	Type    string   `json:"type"`
	Stored  int64    `json:"stored_bytes"`
	Schemes []Scheme `json:"schemes"`
}

// StateMemory is one state. PerPosition is what a position more of context
// takes; 0 for states whose size does not depend on the context.
type StateMemory struct {
	Name        string `json:"name"`
	Role        string `json:"role"`
	Bytes       int64  `json:"bytes"`
	PerPosition int64  `json:"bytes_per_position"`
}

// ContextMemory is what the states would take if the package were converted
// for another context length.
type ContextMemory struct {
	Context   int   `json:"context"`
	KV        int64 `json:"kv_bytes"`
	Recurrent int64 `json:"recurrent_bytes"`
	Total     int64 `json:"total_bytes"`
	Own       bool  `json:"own"` // the context that the package has
}

// The formulas, as the report prints them.
const (
	storedFormula = "sum over weights of stored bytes (indices or data, tables, scales), a weight that functions share once"
	denseFormula  = "sum over weights of elements x bytes of the type after decompression"
	aneFormula    = "sum over functions of the stored bytes that each reads, look-up tables left out, 3-bit indices as 4-bit: each function has its own copy on the Neural Engine (measured on an M5 Max, seed format)"
	stateFormula  = "sum over states of elements x bytes of the type"
	readFormula   = "stored bytes that the single-token functions read, one row of each look-up table, and every state once: attention reads the whole cache at each step"
)

// Memory estimates what a package takes at run time, for its own context and
// for those given (in tokens). It reads no weight data.
func Memory(ctx context.Context, pkg *manifest.Package, contexts ...int) (*MemoryReport, error) {
	v, err := look(ctx, pkg)
	if err != nil {
		return nil, err
	}
	r := &MemoryReport{Schema: "anepkg.memory/1", Parts: []PartMemory{}, Layers: []LayerMemory{}, Kinds: []Scheme{}, States: []StateMemory{}, Contexts: []ContextMemory{}}
	layers := v.layers()
	var all []*Weight
	var sum PartMemory
	for _, pt := range v.usable() {
		all = append(all, pt.weights...)
		m := partMemory(pt)
		r.Parts = append(r.Parts, m)
		sum.Stored += m.Stored
		sum.Dense += m.Dense
		sum.NeuralEngine += m.NeuralEngine
		sum.Read += m.Read
	}
	r.Kinds = schemes(all)
	for _, l := range layers.Layers {
		r.Layers = append(r.Layers, LayerMemory{l.Index, l.Type, l.WeightBytes, l.Schemes})
	}
	states := v.states(layers)
	for _, s := range states.States {
		r.States = append(r.States, StateMemory{s.Name, s.Role, s.Bytes, perPosition(&s, v.facts.context.n)})
	}
	r.addContexts(v.facts.context.n, contexts)
	r.Totals = []MemoryTotal{
		{"stored", sum.Stored, storedFormula},
		{"dense", sum.Dense, denseFormula},
		{"neural_engine", sum.NeuralEngine, aneFormula},
		{"states", states.TotalBytes, stateFormula},
		{"read_per_token", sum.Read + states.TotalBytes, readFormula},
	}
	return r, nil
}

// steps returns the functions that a decode step calls.
func steps(pt *partView) []*coreml.Function {
	switch pt.Role {
	case manifest.PrefillOf:
		return nil
	case manifest.Chunk, manifest.Mono:
		for _, name := range []string{"infer_rotate", "infer"} { // a rotating package decodes by infer until the window is full
			if f := pt.model.Function(name); f != nil {
				return []*coreml.Function{f}
			}
		}
	case manifest.ChunkRot:
		return nil // the same weights as the chunk's
	}
	if f := pt.fn(""); f != nil {
		return []*coreml.Function{f}
	}
	return nil
}

func partMemory(pt *partView) PartMemory {
	m := PartMemory{Part: pt.label(), Role: string(pt.Role), Functions: len(pt.model.Functions)}
	lookUps := map[string]map[string]int{}
	for name, ix := range pt.programs {
		lookUps[name] = tables(ix)
	}
	step := steps(pt)
	for _, w := range pt.weights {
		m.Stored += w.Bytes
		if w.Elements > 0 {
			m.Dense += w.Type.DType.ByteSize(w.Elements)
		}
		onlyTable := true
		for _, fn := range w.Functions {
			if lookUps[fn][w.Name] == 0 {
				onlyTable = false
				m.NeuralEngine += engineBytes(w)
			}
		}
		if onlyTable {
			m.Table += w.Bytes
		}
		for _, f := range step {
			if !slices.Contains(w.Functions, f.Name) {
				continue
			}
			m.Read += w.Bytes / int64(max(1, lookUps[f.Name][w.Name]))
		}
	}
	return m
}

// tables lists the weights that nothing but gathers read, with their number
// of rows. A table that is also the head's matrix is none.
func tables(ix *program) map[string]int {
	out, other := map[string]int{}, map[string]bool{}
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

// engineBytes is a weight's size on the Neural Engine: 3-bit indices cost as
// much as 4-bit ones.
func engineBytes(w *Weight) int64 {
	if strings.HasPrefix(w.Kind, "lut") && w.Bits == 3 {
		return w.Bytes + w.Elements/8
	}
	return w.Bytes
}

// perPosition is what one more position of context takes in a state: caches
// have the position as their third dimension.
func perPosition(s *StateInfo, context int) int64 {
	if context > 0 && len(s.Shape) == 4 && s.Shape[2] == context && s.Role != roleRecurrent && s.Role != roleConv {
		return s.Bytes / int64(context)
	}
	return 0
}

func (r *MemoryReport) addContexts(own int, more []int) {
	list := []int{}
	for _, n := range append([]int{own}, more...) {
		if n > 0 {
			list = append(list, n)
		}
	}
	slices.Sort(list)
	for _, n := range slices.Compact(list) {
		c := ContextMemory{Context: n, Own: n == own}
		for _, s := range r.States {
			b := s.Bytes
			if s.PerPosition > 0 {
				b = s.PerPosition * int64(n)
			}
			switch s.Role {
			case roleRecurrent, roleConv:
				c.Recurrent += b
			default:
				c.KV += b
			}
			c.Total += b
		}
		r.Contexts = append(r.Contexts, c)
	}
}

// WriteText prints the totals with their formulas, then parts, states and
// contexts.
func (r *MemoryReport) WriteText(w io.Writer, color bool) error {
	e := &errWriter{w: w}
	s := style{color}
	for _, t := range r.Totals {
		fmt.Fprintf(e, "%-15s %10s   %s\n", s.in(bold, t.Name), Bytes(t.Bytes), s.in(dim, t.Formula))
	}
	t := &table{head: []string{"PART", "FUNCTIONS", "STORED", "DENSE", "NEURAL ENGINE", "PER TOKEN"}, right: map[int]bool{1: true, 2: true, 3: true, 4: true, 5: true}}
	for _, p := range r.Parts {
		t.add(p.Part, fmt.Sprint(p.Functions), Bytes(p.Stored), Bytes(p.Dense), Bytes(p.NeuralEngine), Bytes(p.Read))
	}
	fmt.Fprintln(e)
	t.write(e, s, "")
	if len(r.States) > 0 {
		t = &table{head: []string{"STATE", "ROLE", "SIZE", "PER POSITION"}, right: map[int]bool{2: true, 3: true}}
		for _, x := range r.States {
			t.add(x.Name, x.Role, Bytes(x.Bytes), Bytes(x.PerPosition))
		}
		fmt.Fprintln(e)
		t.write(e, s, "")
		t = &table{head: []string{"CONTEXT", "KV CACHE", "RECURRENT", "STATES"}, right: map[int]bool{0: true, 1: true, 2: true, 3: true}}
		for _, c := range r.Contexts {
			t.add(fmt.Sprint(c.Context), Bytes(c.KV), Bytes(c.Recurrent), Bytes(c.Total))
		}
		fmt.Fprintln(e)
		t.write(e, s, "")
	}
	return e.err
}
