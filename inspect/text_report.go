package inspect

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/anepkg/anepkg/coreml/tensor"
)

// WriteText prints the report for people.
func (r *Report) WriteText(w io.Writer, color bool) error {
	ew := &errWriter{w: w}
	s := style{color}
	r.writeHead(ew, s)
	if len(r.Parts) > 0 {
		fmt.Fprintf(ew, "\n%s\n", s.in(bold, "Parts"))
		t := &table{head: []string{"role", "path", "min OS", "functions", "weights", "stored as"}, right: map[int]bool{4: true}}
		for i := range r.Parts {
			p := &r.Parts[i]
			role := p.Role
			if p.Chunk != nil {
				role = fmt.Sprintf("%s %d/%s", p.Role, *p.Chunk, numberOr(p.Of, "?"))
			}
			if len(p.Functions) == 0 {
				why := p.Error
				if why == "" {
					why = "missing"
				}
				t.add(role, p.Path, "", why)
				continue
			}
			t.add(role, p.Path, p.MinOS, partFunctions(p), Bytes(p.Weights.Bytes), schemeWords(p.Weights.Schemes))
		}
		t.write(ew, s, "  ")
	}
	r.writeFunctions(ew, s)
	r.writeTokenizer(ew, s)
	r.writeRuntimes(ew, s)
	r.writeFiles(ew, s)
	return ew.err
}

func (r *Report) writeHead(w io.Writer, s style) {
	p := &r.Package
	title := p.Name
	if title == "" {
		title = p.Path
	}
	fmt.Fprintf(w, "%s  %s\n", s.in(bold, printable(title)), s.in(dim, Bytes(p.Bytes)))
	kind := p.Kind
	if p.Layout != "" {
		kind += ", " + p.Layout
	}
	if p.Architecture != "" {
		kind += ", " + printable(p.Architecture)
	}
	fmt.Fprintf(w, "  %s\n", kind)
	fmt.Fprintf(w, "  %s\n", s.in(dim, printable(p.Reason)))
	for _, seen := range p.Seen {
		fmt.Fprintf(w, "  seen: %s\n", printable(seen))
	}
	var facts []string
	for _, f := range []struct {
		name string
		n    *int
	}{{"context", p.ContextLength}, {"batch", p.BatchSize}, {"hidden", p.HiddenSize}, {"vocabulary", p.VocabSize}, {"layers", p.NumLayers}, {"chunks", p.NumChunks}} {
		if f.n != nil {
			facts = append(facts, fmt.Sprintf("%s %s", s.in(dim, f.name), s.in(cyan, fmt.Sprint(*f.n))))
		}
	}
	if len(facts) > 0 {
		fmt.Fprintf(w, "  %s\n", strings.Join(facts, "   "))
	}
}

func partFunctions(p *PartInfo) string {
	var names []string
	for _, f := range p.Functions {
		names = append(names, f.Name)
	}
	return strings.Join(names, ", ")
}

func schemeWords(list []Scheme) string {
	var out []string
	for _, c := range list {
		word := fmt.Sprintf("%s %d-bit", c.Kind, c.Bits)
		if c.GroupSize > 0 {
			word += fmt.Sprintf("/%d", c.GroupSize)
		}
		out = append(out, fmt.Sprintf("%s x%d", word, c.Count))
		if len(out) == 3 && len(list) > 3 {
			out = append(out, "...")
			break
		}
	}
	return strings.Join(out, ", ")
}

func (r *Report) writeFunctions(w io.Writer, s style) {
	for i := range r.Parts {
		p := &r.Parts[i]
		if len(p.Functions) == 0 || p.Role == "leftover" {
			continue
		}
		fmt.Fprintf(w, "\n%s\n", s.in(bold, printable(p.Path)))
		for _, f := range p.Functions {
			name := f.Name
			if f.Default && len(p.Functions) > 1 {
				name += " (default)"
			}
			ops := 0
			for _, n := range f.OpHistogram {
				ops += n
			}
			fmt.Fprintf(w, "  %s %s\n", s.in(cyan, name), s.in(dim, plural(ops, "operation")))
			t := &table{head: []string{"", "name", "type", "shape"}}
			for _, in := range f.Inputs {
				t.add("in", in.Name, in.DType, featureShape(in))
			}
			for _, st := range f.States {
				t.add("state", st.Name, st.DType, tensor.ShapeString(st.Shape))
			}
			for _, out := range f.Outputs {
				t.add("out", out.Name, out.DType, featureShape(out))
			}
			if len(t.rows) > 40 {
				rest := len(t.rows) - 40
				t.rows = t.rows[:40]
				t.add("", fmt.Sprintf("... %d more", rest))
			}
			t.write(w, s, "    ")
		}
	}
}

func featureShape(f FeatureInfo) string {
	text := tensor.ShapeString(f.Shape)
	var forms []string
	for _, e := range f.Enumerated {
		forms = append(forms, tensor.ShapeString(e))
	}
	if len(forms) > 0 {
		text = strings.Join(forms, " or ")
	}
	for i, r := range f.Range {
		if i == 0 {
			text += " range"
		}
		hi := fmt.Sprint(r[1])
		if r[1] < 0 {
			hi = ""
		}
		text += fmt.Sprintf(" %d..%s", r[0], hi)
	}
	if f.Optional {
		text += " optional"
	}
	return text
}

func (r *Report) writeTokenizer(w io.Writer, s style) {
	t := &r.Tokenizer
	if t.Dir == "" {
		return
	}
	fmt.Fprintf(w, "\n%s\n", s.in(bold, "Tokenizer"))
	kind := t.Type
	if kind == "" {
		kind = "not readable"
	}
	line := kind
	if t.VocabSize != nil {
		line += ", " + plural(*t.VocabSize, "id")
	}
	if t.ChatTemplate != "" {
		line += ", chat template in " + t.ChatTemplate
	} else {
		line += ", no chat template"
	}
	fmt.Fprintf(w, "  %s\n", printable(line))
	for _, st := range t.StopIDs {
		fmt.Fprintf(w, "  stops at %d %s  %s\n", st.ID, printable(st.Token), s.in(dim, printable(strings.Join(st.Sources, "; "))))
	}
}

func (r *Report) writeFiles(w io.Writer, s style) {
	var odd []FileInfo
	for _, f := range r.Files {
		if f.Status != "ok" {
			odd = append(odd, f)
		}
	}
	if len(odd) == 0 {
		fmt.Fprintf(w, "\n%s  %s\n", s.in(bold, "Files"), s.in(dim, fmt.Sprintf("%d, no pointer, web page, empty or unfinished one", len(r.Files))))
		return
	}
	fmt.Fprintf(w, "\n%s  %s\n", s.in(bold, "Files"), s.in(dim, fmt.Sprintf("%d, of which %d are not what they should be", len(r.Files), len(odd))))
	slices.SortStableFunc(odd, func(a, b FileInfo) int { return strings.Compare(a.Status, b.Status) })
	t := &table{head: []string{"status", "file", "on disk", "true size"}, right: map[int]bool{2: true, 3: true}}
	for _, f := range odd {
		size := ""
		if f.TrueBytes != nil {
			size = Bytes(*f.TrueBytes)
		}
		t.add(f.Status, f.Path, Bytes(f.Bytes), size)
	}
	t.write(w, s, "  ")
}
