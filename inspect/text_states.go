package inspect

import (
	"fmt"
	"io"
	"strings"

	"github.com/anepkg/anepkg/coreml/tensor"
)

// WriteText prints the states for people.
func (r *StatesReport) WriteText(w io.Writer, color bool) error {
	ew := &errWriter{w: w}
	s := style{color}
	if len(r.States) == 0 {
		fmt.Fprintln(ew, "The package has no states.")
		return ew.err
	}
	fmt.Fprintf(ew, "%s  %s\n", s.in(bold, plural(len(r.States), "state")), s.in(dim, Bytes(r.TotalBytes)))
	t := &table{head: []string{"name", "role", "type", "shape", "size", "layers", "declared by"}, right: map[int]bool{4: true}}
	for i := range r.States {
		st := &r.States[i]
		for k, p := range st.Parts {
			where := p.Part + " (" + strings.Join(p.Functions, ", ") + ")"
			if k > 0 {
				t.add("", "", "", "", "", "", where)
				continue
			}
			t.add(st.Name, st.Role, st.DType, tensor.ShapeString(st.Shape), Bytes(st.Bytes), intRanges(st.Layers), where)
		}
	}
	t.write(ew, s, "  ")
	return ew.err
}

// WriteText prints the layers for people.
func (r *LayersReport) WriteText(w io.Writer, color bool) error {
	ew := &errWriter{w: w}
	s := style{color}
	fmt.Fprintf(ew, "%s in %s\n", s.in(bold, plural(r.NumLayers, "layer")), plural(len(r.Chunks), "part"))
	t := &table{head: []string{"chunk", "part", "layers", "functions", "known by"}}
	for _, c := range r.Chunks {
		layers := "?"
		if c.First >= 0 {
			layers = fmt.Sprintf("%d-%d", c.First, c.Last)
		}
		t.add(fmt.Sprintf("%d/%d", c.Chunk, c.Of), c.Part, layers, strings.Join(c.Functions, ", "), c.Source)
	}
	t.write(ew, s, "  ")
	if len(r.Layers) == 0 {
		return ew.err
	}
	fmt.Fprintln(ew)
	t = &table{head: []string{"layer", "type", "chunk", "slot", "shares with", "weights", "stored as"}, right: map[int]bool{0: true, 2: true, 3: true, 4: true, 5: true}}
	for _, l := range r.Layers {
		weights := ""
		if l.WeightBytes > 0 {
			weights = Bytes(l.WeightBytes)
		}
		t.add(fmt.Sprint(l.Index), l.Type, fmt.Sprint(l.Chunk), numberOr(l.KVSlot, ""), numberOr(l.SharesWith, ""), weights, schemeWords(l.Schemes))
	}
	t.write(ew, s, "  ")
	return ew.err
}
