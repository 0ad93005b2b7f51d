package inspect

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/manifest"
)

// SuppressionFile is the file in a package's folder that accepts findings:
//
//	suppress:
//	  - id: CFG018            # a rule or a family
//	    file: "*.mlmodelc/*"  # optional: pattern of path.Match, or the exact path
//	    message: logits9      # optional: part of the finding's message
//	    reason: only our own runtime reads this package
const SuppressionFile = ".anepkg.yaml"

// Suppression accepts findings for a stated reason.
type Suppression struct {
	ID      string `json:"id" yaml:"id"`
	File    string `json:"file,omitempty" yaml:"file"`
	Message string `json:"message,omitempty" yaml:"message"`
	Reason  string `json:"reason" yaml:"reason"`

	Pos diag.Pos `json:"-" yaml:"-"`
}

// SuppressionUse says how many findings a suppression took away. One that
// took none can be deleted.
type SuppressionUse struct {
	Suppression
	Used int `json:"used"`
}

// maxSuppressionFile bounds the file in bytes.
const maxSuppressionFile = 1 << 20

// Suppressions reads the package's suppression file. A package without one
// has none.
func Suppressions(pkg *manifest.Package) ([]Suppression, error) {
	if pkg.FS == nil {
		return nil, nil
	}
	info, err := fs.Stat(pkg.FS, SuppressionFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, diag.Errorf(diag.In(SuppressionFile), diag.IO, "%w", err)
	case info.IsDir() || info.Size() > maxSuppressionFile:
		return nil, diag.Errorf(diag.In(SuppressionFile), diag.Malformed, "want a file of at most %d bytes", maxSuppressionFile)
	}
	data, err := fs.ReadFile(pkg.FS, SuppressionFile)
	if err != nil {
		return nil, diag.Errorf(diag.In(SuppressionFile), diag.IO, "%w", err)
	}
	return ParseSuppressions(SuppressionFile, data)
}

// ParseSuppressions reads the text of a suppression file called name. Unknown
// keys, ids that no rule has and entries without a reason are errors of class
// diag.Malformed with their line.
func ParseSuppressions(name string, data []byte) ([]Suppression, error) {
	if len(data) > maxSuppressionFile {
		return nil, diag.Errorf(diag.In(name), diag.TooLarge, "%d bytes, want at most %d", len(data), maxSuppressionFile)
	}
	var root yaml.Node
	if err := yaml.Unmarshal(data, &root); err != nil {
		return nil, diag.Errorf(diag.In(name), diag.Malformed, "%s", strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if len(root.Content) == 0 {
		return nil, nil
	}
	top := root.Content[0]
	at := func(n *yaml.Node) diag.Pos { return diag.Pos{File: name, Line: n.Line, Col: n.Column} }
	if top.Kind != yaml.MappingNode {
		return nil, diag.Errorf(at(top), diag.Malformed, "want the key suppress with a list")
	}
	var out []Suppression
	for i := 0; i+1 < len(top.Content); i += 2 {
		key, list := top.Content[i], top.Content[i+1]
		if key.Value != "suppress" || list.Kind != yaml.SequenceNode {
			return nil, diag.Errorf(at(key), diag.Malformed, "got key %q, want suppress with a list", key.Value)
		}
		for _, n := range list.Content {
			s, err := parseSuppression(n, at)
			if err != nil {
				return nil, err
			}
			out = append(out, *s)
		}
	}
	return out, nil
}

func parseSuppression(n *yaml.Node, at func(*yaml.Node) diag.Pos) (*Suppression, error) {
	s := &Suppression{Pos: at(n)}
	if n.Kind != yaml.MappingNode {
		return nil, diag.Errorf(at(n), diag.Malformed, "want id and reason")
	}
	fields := map[string]*string{"id": &s.ID, "file": &s.File, "message": &s.Message, "reason": &s.Reason}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, val := n.Content[i], n.Content[i+1]
		to := fields[key.Value]
		if to == nil || val.Kind != yaml.ScalarNode {
			return nil, diag.Errorf(at(key), diag.Malformed, "got key %q, want texts called id, file, message, reason", key.Value)
		}
		*to = val.Value
	}
	switch {
	case strings.TrimSpace(s.Reason) == "":
		return nil, diag.Errorf(at(n), diag.Malformed, "the suppression of %q gives no reason", s.ID)
	case !slices.ContainsFunc(Catalogue(), func(r Rule) bool { return matchesRule(&r, s.ID) }):
		return nil, diag.Errorf(at(n), diag.Malformed, "no check is called %q", s.ID).WithHint("anepkg checks lists them all")
	}
	if _, err := path.Match(s.File, ""); err != nil {
		return nil, diag.Errorf(at(n), diag.Malformed, "file %q is no pattern: %w", s.File, err)
	}
	return s, nil
}

// covers reports whether the suppression accepts a finding.
func (s *Suppression) covers(f *Finding) bool {
	if !strings.EqualFold(s.ID, f.ID) && !strings.EqualFold(s.ID, strings.TrimRight(f.ID, "0123456789")) {
		return false
	}
	if s.Message != "" && !strings.Contains(f.Message, s.Message) {
		return false
	}
	return s.File == "" || slices.ContainsFunc(f.Where, func(w Where) bool {
		ok, _ := path.Match(s.File, w.File)
		return ok || w.File == s.File
	})
}

// suppress takes away the findings that the options accept and counts them.
func (r *ValidateReport) suppress(opts Options) {
	uses := make([]SuppressionUse, len(opts.Suppress))
	for i, s := range opts.Suppress {
		uses[i].Suppression = s
	}
	r.Findings = slices.DeleteFunc(r.Findings, func(f *Finding) bool {
		hit := false
		for i := range uses {
			if uses[i].covers(f) {
				uses[i].Used++
				hit = true
			}
		}
		if hit {
			r.Suppressed++
		}
		return hit
	})
	r.Suppressions = uses
}
