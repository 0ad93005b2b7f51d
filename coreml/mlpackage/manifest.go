package mlpackage

import (
	"encoding/json"
	"path"
	"slices"
	"strings"

	"github.com/anepkg/anepkg/coreml/diag"
)

// maxManifest bounds Manifest.json; real ones have a few hundred bytes.
const maxManifest = 4 << 20

// Manifest is Manifest.json of an .mlpackage.
type Manifest struct {
	FormatVersion string
	Items         []Item // sorted by identifier
	Root          string // identifier of the model specification
}

// Item is one entry of the package.
type Item struct {
	ID, Name, Author, Description string
	Path                          string // inside the package, "Data/" included
}

// ParseManifest reads Manifest.json. Paths that leave the package are errors
// of class diag.Malformed.
func ParseManifest(file string, data []byte) (*Manifest, error) {
	at := diag.In(file)
	if len(data) > maxManifest {
		return nil, diag.Errorf(at, diag.TooLarge, "manifest of %d bytes, the limit is %d", len(data), maxManifest)
	}
	var raw struct {
		FileFormatVersion   string `json:"fileFormatVersion"`
		RootModelIdentifier string `json:"rootModelIdentifier"`
		ItemInfoEntries     map[string]struct {
			Author, Name, Description, Path string
		} `json:"itemInfoEntries"`
	}
	if err := json.Unmarshal(data, &raw); err != nil {
		return nil, diag.Errorf(at, diag.Malformed, "%w", err)
	}
	m := &Manifest{FormatVersion: raw.FileFormatVersion, Root: raw.RootModelIdentifier}
	for id, e := range raw.ItemInfoEntries {
		if !safe(e.Path) {
			return nil, diag.Errorf(at, diag.Malformed, "item %s has the path %q, want one inside the package", id, e.Path)
		}
		m.Items = append(m.Items, Item{ID: id, Name: e.Name, Author: e.Author, Description: e.Description, Path: path.Join("Data", e.Path)})
	}
	slices.SortFunc(m.Items, func(a, b Item) int { return strings.Compare(a.ID, b.ID) })
	return m, nil
}

// safe reports whether p is a relative slash-separated path that stays below
// its folder.
func safe(p string) bool {
	c := path.Clean(p)
	return p != "" && !path.IsAbs(p) && c != ".." && !strings.HasPrefix(c, "../") && !strings.ContainsAny(p, "\\\x00")
}

// SpecPath returns the path of the model specification, "Data/" included: the
// root item, else the only item that is named *.mlmodel.
func (m *Manifest) SpecPath(file string) (string, error) {
	var models []string
	for _, it := range m.Items {
		if it.ID == m.Root {
			return it.Path, nil
		}
		if strings.HasSuffix(it.Path, ".mlmodel") {
			models = append(models, it.Path)
		}
	}
	if m.Root == "" && len(models) == 1 {
		return models[0], nil
	}
	return "", diag.Errorf(diag.In(file), diag.Malformed, "rootModelIdentifier is %q, which is none of the %d items", m.Root, len(m.Items))
}
