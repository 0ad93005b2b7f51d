package main

import (
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"howett.net/plist"

	"github.com/anepkg/anepkg/manifest"
)

// propertyList is a property list of the package: Info.plist of an app or
// framework that carries models, or what stands in a model folder. Only its
// plain values are shown.
type propertyList struct {
	Path   string         `json:"path"`
	Format string         `json:"format"` // xml, binary, openstep or gnustep; "" when it cannot be read
	Values map[string]any `json:"values"`
	Error  string         `json:"error,omitempty"`
}

// Bounds of property lists: of a file in bytes, of the files of a package, of
// the values shown of one, of a text in bytes.
const (
	maxPlistBytes  = 1 << 20
	maxPlists      = 50
	maxPlistValues = 50
	maxPlistText   = 200
)

// propertyLists reads the property lists of a package.
func propertyLists(pkg *manifest.Package) []propertyList {
	var out []propertyList
	for _, f := range pkg.Files {
		if !strings.EqualFold(path.Ext(f.Path), ".plist") || len(out) == maxPlists {
			continue
		}
		l := propertyList{Path: f.Path, Values: map[string]any{}}
		if err := l.read(pkg.FS, f.Bytes); err != nil {
			l.Error = err.Error()
		}
		out = append(out, l)
	}
	return out
}

func (l *propertyList) read(fsys fs.FS, size int64) error {
	if size > maxPlistBytes {
		return fmt.Errorf("%d bytes, at most %d are read", size, maxPlistBytes)
	}
	data, err := fs.ReadFile(fsys, l.Path)
	if err != nil {
		return err
	}
	var root any
	format, err := plist.Unmarshal(data, &root)
	if err != nil {
		return err
	}
	l.Format = strings.ToLower(plist.FormatNames[format])
	dict, ok := root.(map[string]any)
	if !ok {
		return fmt.Errorf("its root is no dictionary")
	}
	for _, k := range slices.Sorted(maps.Keys(dict)) {
		if len(l.Values) == maxPlistValues {
			break
		}
		switch v := dict[k].(type) {
		case string:
			if len(v) > maxPlistText {
				v = strings.ToValidUTF8(v[:maxPlistText], "") + "…"
			}
			l.Values[k] = v
		case bool, int64, uint64, float64:
			l.Values[k] = v
		}
	}
	return nil
}

// writePropertyLists prints a line for each.
func writePropertyLists(w io.Writer, lists []propertyList) error {
	for i, l := range lists {
		if i == 0 {
			if _, err := io.WriteString(w, "\nProperty lists\n"); err != nil {
				return err
			}
		}
		text := l.Error
		if text == "" {
			var parts []string
			for _, k := range slices.Sorted(maps.Keys(l.Values)) {
				parts = append(parts, fmt.Sprintf("%s %v", k, l.Values[k]))
			}
			text = strings.Join(parts, ", ")
		}
		if utf8.RuneCountInString(text) > maxPlistText {
			text = string([]rune(text)[:maxPlistText]) + "…"
		}
		if _, err := fmt.Fprintf(w, "  %s  %s\n", visible(l.Path), visible(text)); err != nil {
			return err
		}
	}
	return nil
}
