package inspect

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// WriteText prints the report for people, with the formula of every derived
// number.
func (r *MemoryReport) WriteText(w io.Writer, color bool) error {
	ew := &errWriter{w: w}
	s := style{color}
	fmt.Fprintf(ew, "%s  %s\n", s.in(bold, "weights"), Bytes(r.Weights))
	t := &table{head: []string{"part", "role", "stored", "read by each function"}, right: map[int]bool{2: true}}
	for _, p := range r.Parts {
		var fns []string
		for name, n := range p.Functions {
			fns = append(fns, name+" "+Bytes(n))
		}
		slices.Sort(fns)
		t.add(p.Part, p.Role, Bytes(p.Bytes), strings.Join(fns, ", "))
	}
	t.write(ew, s, "  ")
	if len(r.Layers) > 0 {
		fmt.Fprintln(ew)
		t = &table{head: []string{"layer", "stored"}, right: map[int]bool{0: true, 1: true}}
		for _, l := range r.Layers {
			name := itoa(l.Index)
			if l.Index < 0 {
				name = "no layer"
			}
			t.add(name, Bytes(l.Bytes))
		}
		t.write(ew, s, "  ")
	}
	if len(r.Kinds) > 0 {
		fmt.Fprintln(ew)
		t = &table{head: []string{"stored as", "weights", "bytes"}, right: map[int]bool{1: true, 2: true}}
		for i := range r.Kinds {
			t.add(schemeWords(r.Kinds[i:i+1]), itoa(r.Kinds[i].Count), Bytes(r.Kinds[i].Bytes))
		}
		t.write(ew, s, "  ")
	}
	if len(r.States) > 0 {
		fmt.Fprintln(ew)
		t = &table{head: []string{"state", "role", "size", "positions", "each position"}, right: map[int]bool{2: true, 3: true, 4: true}}
		for _, st := range r.States {
			each := ""
			if st.BytesPerPosition != nil {
				each = Bytes(*st.BytesPerPosition)
			}
			t.add(st.Name, st.Role, Bytes(st.Bytes), numberOr(st.Positions, ""), each)
		}
		t.write(ew, s, "  ")
	}
	fmt.Fprintln(ew)
	for _, f := range r.Figures {
		fmt.Fprintf(ew, "%s  %s\n  %s\n", s.in(bold, f.Name), Bytes(f.Bytes), s.in(dim, f.Formula))
	}
	return ew.err
}
