package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"github.com/anepkg/anepkg/coreml/diag"
)

// Bounds for YAML description files. Aliases are followed and count every
// time, so a "billion laughs" file stops at maxYAMLNodes.
const (
	maxYAML      = 4 << 20
	maxYAMLDepth = 100
	maxYAMLNodes = 200_000
)

// yamlDoc turns yaml.v3 nodes into Params with positions in bytes.
type yamlDoc struct {
	file  string
	lines []string
	nodes int
	dups  []*diag.Error
}

// parseYAML reads the first document of a YAML file. An empty file gives a
// Param with a nil value. problems are faults that leave the file readable
// here: keys that stand twice, a second document, UTF-16.
func parseYAML(file string, data []byte) (root Param, problems []*diag.Error, err error) {
	data, wide := fromUTF16(data)
	d := &yamlDoc{file: file, lines: strings.Split(string(data), "\n")}
	if wide {
		d.dups = append(d.dups, &diag.Error{Pos: diag.In(file), Code: diag.Malformed, Err: ErrSyntax,
			Msg: "the file is UTF-16; ANEMLL's Python and Swift readers take UTF-8 only", Hint: "save the file as UTF-8"})
	}
	defer func() {
		if r := recover(); r != nil { // yaml.v3 panics on some broken inputs
			err = &diag.Error{Pos: diag.In(file), Code: diag.Malformed, Msg: fmt.Sprintf("yaml: %v", r), Err: ErrSyntax}
		}
	}()
	node, second, err := yamlDocuments(data)
	if err != nil {
		return Param{}, nil, d.syntax(err, data)
	}
	if second > 0 {
		d.dups = append(d.dups, &diag.Error{Pos: diag.Pos{File: file, Line: min(second, len(d.lines)), Col: 1}, Code: diag.Malformed, Err: ErrSyntax,
			Msg:  "a second document begins here; ANEMLL's Python and Swift readers refuse a file of several documents",
			Hint: "delete this line and what follows, or move its keys into the first document"})
	}
	if node.Kind != yaml.DocumentNode || len(node.Content) == 0 {
		return Param{Pos: diag.Pos{File: file, Line: 1, Col: 1}}, d.dups, nil
	}
	root, err = d.param(node.Content[0], 0)
	return root, d.dups, err
}

// yamlDocuments parses the first document; second is the line at which
// another begins, 0 without one.
func yamlDocuments(data []byte) (first yaml.Node, second int, err error) {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	if err := dec.Decode(&first); err != nil {
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return first, 0, err
	}
	var next yaml.Node
	switch err := dec.Decode(&next); {
	case errors.Is(err, io.EOF):
		return first, 0, nil
	case err != nil:
		return first, 0, err
	}
	return first, max(1, next.Line), nil
}

// pos converts yaml.v3's column, which counts characters, to bytes.
func (d *yamlDoc) pos(n *yaml.Node) diag.Pos {
	p := diag.Pos{File: d.file, Line: n.Line, Col: n.Column}
	if n.Line < 1 || n.Line > len(d.lines) {
		return p
	}
	line := strings.TrimPrefix(d.lines[n.Line-1], "\ufeff")
	col := 0
	for k := 1; k < n.Column && col < len(line); k++ {
		_, w := utf8.DecodeRuneInString(line[col:])
		col += w
	}
	p.Col = col + 1
	return p
}

func (d *yamlDoc) param(n *yaml.Node, depth int) (Param, error) {
	p := Param{Pos: d.pos(n)}
	if d.nodes++; d.nodes > maxYAMLNodes {
		return p, diag.Errorf(p.Pos, diag.TooLarge, "more than %d values (aliases counted each time)", maxYAMLNodes)
	}
	if depth > maxYAMLDepth {
		return p, diag.Errorf(p.Pos, diag.TooLarge, "nested deeper than %d levels", maxYAMLDepth)
	}
	switch n.Kind {
	case yaml.AliasNode:
		if n.Alias == nil {
			return p, nil
		}
		at := p.Pos
		p, err := d.param(n.Alias, depth+1)
		p.Pos = at
		return p, err
	case yaml.MappingNode:
		err := d.mapping(&p, n, depth)
		return p, err
	case yaml.SequenceNode:
		list := make([]any, 0, len(n.Content))
		for _, c := range n.Content {
			e, err := d.param(c, depth+1)
			if err != nil {
				return p, err
			}
			p.Elems = append(p.Elems, e)
			list = append(list, e.Value)
		}
		p.Value = list
	case yaml.ScalarNode:
		p.Raw = n.Value
		p.Quoted = n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0
		p.Value = scalarValue(n)
	}
	return p, nil
}

func (d *yamlDoc) mapping(p *Param, n *yaml.Node, depth int) error {
	m := make(map[string]any, len(n.Content)/2)
	index := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		e, err := d.param(n.Content[i+1], depth+1)
		if err != nil {
			return err
		}
		e.Key, e.KeyPos = k.Value, d.pos(k)
		if first, dup := index[e.Key]; dup {
			d.dups = append(d.dups, &diag.Error{Pos: e.KeyPos, Code: diag.Malformed, Err: ErrDuplicateKey,
				Msg:  fmt.Sprintf("key %q stands twice, first at line %d; some readers refuse the file, others take the last", e.Key, p.Elems[first].KeyPos.Line),
				Hint: "remove one of the two"})
			p.Elems[first] = e
		} else {
			index[e.Key] = len(p.Elems)
			p.Elems = append(p.Elems, e)
		}
		m[e.Key] = e.Value
	}
	p.Value = m
	return nil
}

// scalarValue resolves a scalar to nil, bool, int, float64 or string.
func scalarValue(n *yaml.Node) any {
	switch n.ShortTag() {
	case "!!null":
		return nil
	case "!!bool", "!!int", "!!float":
		var v any
		if err := n.Decode(&v); err != nil {
			return n.Value
		}
		switch x := v.(type) {
		case int64:
			return int(x)
		case uint64:
			return float64(x)
		case int, float64, bool:
			return x
		}
	}
	return n.Value
}

// asError makes a *diag.Error of any parse error.
func asError(file string, err error) *diag.Error {
	var e *diag.Error
	if errors.As(err, &e) {
		return e
	}
	return &diag.Error{Pos: diag.In(file), Code: diag.Malformed, Msg: err.Error(), Err: err}
}
