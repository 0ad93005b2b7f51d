package manifest

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
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
// Param with a nil value.
func parseYAML(file string, data []byte) (root Param, dups []*diag.Error, err error) {
	d := &yamlDoc{file: file, lines: strings.Split(string(data), "\n")}
	defer func() {
		if r := recover(); r != nil { // yaml.v3 panics on some broken inputs
			err = &diag.Error{Pos: diag.In(file), Code: diag.Malformed, Msg: fmt.Sprintf("yaml: %v", r), Err: ErrSyntax}
		}
	}()
	var node yaml.Node
	if err := yaml.Unmarshal(data, &node); err != nil {
		return Param{}, nil, d.syntax(err)
	}
	if node.Kind != yaml.DocumentNode || len(node.Content) == 0 {
		return Param{Pos: diag.Pos{File: file, Line: 1, Col: 1}}, nil, nil
	}
	root, err = d.param(node.Content[0], 0)
	return root, d.dups, err
}

var yamlLine = regexp.MustCompile(`line (\d+): `)

// syntax gives an error of yaml.v3 a position and, for tabs, a clear text.
func (d *yamlDoc) syntax(err error) error {
	msg := strings.TrimPrefix(err.Error(), "yaml: ")
	e := &diag.Error{Pos: diag.In(d.file), Code: diag.Malformed, Err: ErrSyntax}
	if m := yamlLine.FindStringSubmatch(msg); m != nil {
		n, _ := strconv.Atoi(m[1])
		e.Pos.Line = max(1, min(n, len(d.lines)))
		e.Pos.Col = 1
		msg = strings.Replace(msg, m[0], "", 1)
	}
	e.Msg = "not valid YAML: " + msg
	for i, l := range d.lines {
		if k := strings.IndexFunc(l, isControl); k >= 0 {
			e.Pos = diag.Pos{File: d.file, Line: i + 1, Col: k + 1}
			e.Msg = fmt.Sprintf("not valid YAML: control character %#02x", l[k])
			break
		}
		indent := l[:len(l)-len(strings.TrimLeft(l, " \t"))]
		if k := strings.IndexByte(indent, '\t'); k >= 0 && strings.TrimSpace(l) != "" {
			e.Pos = diag.Pos{File: d.file, Line: i + 1, Col: k + 1}
			e.Msg = "not valid YAML: a tab stands in the indentation"
			e.Hint = "replace the tab by spaces, four for a key of parameters"
			break
		}
	}
	return e
}

// isControl reports the characters that YAML forbids.
func isControl(r rune) bool {
	return r < 0x20 && r != '\t' && r != '\r' || r == 0x7f
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
