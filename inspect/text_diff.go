package inspect

import (
	"fmt"
	"io"
	"strconv"
)

// maxDiffLines bounds the constants that the text of a diff lists.
const maxDiffLines = 20

// WriteText prints the differences, grouped by kind.
func (r *DiffReport) WriteText(w io.Writer, color bool) error {
	e := &errWriter{w: w}
	s := style{color}
	fmt.Fprintf(e, "A  %s\nB  %s\n", printable(r.A.Path), printable(r.B.Path))
	if r.Equal {
		fmt.Fprintf(e, "%s (weights: %s)\n", s.in(green, "no differences"), r.Weights.summary())
		return e.err
	}
	section := func(title string, head []string, rows [][]string) {
		if len(rows) == 0 {
			return
		}
		fmt.Fprintf(e, "\n%s\n", s.in(bold, title))
		t := &table{head: head}
		for _, row := range rows {
			t.add(row...)
		}
		t.write(e, s, "  ")
	}
	section("parameters", []string{"KEY", "A", "B"}, changeRows(r.Params))
	section("parts", []string{"PART", "A", "B"}, changeRows(r.Parts))
	section("functions", []string{"PART", "FUNCTION", "WHAT", "A", "B"}, scopedRows(r.Functions))
	section("states", []string{"PART", "FUNCTION", "WHAT", "A", "B"}, scopedRows(r.States))
	var ops [][]string
	for _, o := range r.Ops {
		ops = append(ops, []string{o.Part, o.Function, o.Op, strconv.Itoa(o.A), strconv.Itoa(o.B)})
	}
	section("ops", []string{"PART", "FUNCTION", "OP", "A", "B"}, ops)
	var ws [][]string
	for i, c := range r.Weights.Changes {
		if i == maxDiffLines {
			ws = append(ws, []string{"", fmt.Sprintf("and %d more", len(r.Weights.Changes)-i)})
			break
		}
		most := "-"
		if c.MaxAbs != nil {
			most = fmt.Sprintf("%.3g", *c.MaxAbs)
		}
		ws = append(ws, []string{c.Part, c.Name, c.Status, c.A, c.B, most})
	}
	section("weights: "+r.Weights.summary(), []string{"PART", "NAME", "STATUS", "A", "B", "MAX DIFFERENCE"}, ws)
	for _, list := range []struct {
		title string
		found []*Finding
	}{{"findings only in B", r.Findings.Appeared}, {"findings only in A", r.Findings.Vanished}} {
		var rows [][]string
		for _, f := range list.found {
			rows = append(rows, []string{string(f.Severity), f.ID, f.Message})
		}
		section(list.title, []string{"SEVERITY", "CHECK", "MESSAGE"}, rows)
	}
	return e.err
}

func changeRows(cs []ValueChange) [][]string {
	var rows [][]string
	for _, c := range cs {
		rows = append(rows, []string{c.Key, side(c.A), side(c.B)})
	}
	return rows
}

func scopedRows(cs []ScopedChange) [][]string {
	var rows [][]string
	for _, c := range cs {
		rows = append(rows, []string{c.Part, c.Function, c.What, side(c.A), side(c.B)})
	}
	return rows
}

func side(v any) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprint(v)
}
