package manifest

import (
	"regexp"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/anepkg/anepkg/coreml/diag"
)

var commentLine = regexp.MustCompile(`^#\s+([A-Za-z][A-Za-z0-9_]*):\s*(.*?)\s*$`)

const maxComments = 1000

// parseComments reads the "# key: value" lines that ANEMLL's generator
// appends to meta.yaml (anemll.md 1.5 item 3).
func parseComments(file string, data []byte) Params {
	var out Params
	no := 0
	for line := range strings.SplitSeq(string(data), "\n") {
		no++
		line = strings.TrimRight(line, "\r")
		m := commentLine.FindStringSubmatchIndex(line)
		if m == nil || len(out) >= maxComments || m[5]-m[4] > 4096 {
			continue
		}
		raw := line[m[4]:m[5]]
		p := Param{Key: line[m[2]:m[3]], Raw: raw, Value: raw,
			KeyPos: diag.Pos{File: file, Line: no, Col: m[2] + 1}, Pos: diag.Pos{File: file, Line: no, Col: m[4] + 1}}
		if len(raw) >= 2 && raw[0] == '"' && raw[len(raw)-1] == '"' {
			p.Raw, p.Quoted = raw[1:len(raw)-1], true
			p.Value = p.Raw
		} else {
			p.Value = scalarValue(&yaml.Node{Kind: yaml.ScalarNode, Value: raw})
		}
		out = append(out, p)
	}
	return out
}
