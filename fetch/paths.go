package fetch

import (
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"github.com/anepkg/anepkg/coreml/diag"
)

// Bounds for names, in bytes: what common file systems take.
const (
	maxName      = 255
	maxPath      = 1024
	maxPathDepth = 32
)

// reserved are the names that Windows keeps for devices, with any extension.
var reserved = map[string]bool{
	"con": true, "prn": true, "aux": true, "nul": true, "conin$": true, "conout$": true,
	"com0": true, "com1": true, "com2": true, "com3": true, "com4": true, "com5": true, "com6": true, "com7": true, "com8": true, "com9": true,
	"lpt0": true, "lpt1": true, "lpt2": true, "lpt3": true, "lpt4": true, "lpt5": true, "lpt6": true, "lpt7": true, "lpt8": true, "lpt9": true,
}

// checkPath refuses a name from the network or an archive that could leave
// its folder or mean another file on some system. The rules are those of all
// systems together, so that a package fetched on one can be copied to the
// next.
func checkPath(name string) error {
	bad := func(format string, args ...any) error {
		e := diag.Errorf(diag.Pos{}, diag.Malformed, format, args...)
		e.Msg = "file name " + quoteName(name) + " " + e.Msg
		return e.WithHint("nothing was written; tell the owner of the repository")
	}
	switch {
	case name == "":
		return bad("is empty")
	case len(name) > maxPath:
		return bad("is %d bytes long, at most %d are accepted", len(name), maxPath)
	case !utf8.ValidString(name):
		return bad("is not UTF-8")
	case strings.HasPrefix(name, "/"):
		return bad("is absolute")
	case strings.ContainsAny(name, "\\"):
		return bad("holds a backslash")
	}
	segs := strings.Split(name, "/")
	if len(segs) > maxPathDepth {
		return bad("is %d folders deep, at most %d are accepted", len(segs), maxPathDepth)
	}
	for _, s := range segs {
		switch {
		case s == "" || s == ".":
			return bad("holds an empty part")
		case s == "..":
			return bad("leaves its folder")
		case len(s) > maxName:
			return bad("has a part of %d bytes, at most %d are accepted", len(s), maxName)
		case strings.ContainsAny(s, `<>:"|?*`):
			return bad("holds a character that Windows does not allow")
		case strings.HasSuffix(s, ".") || strings.HasSuffix(s, " "):
			return bad("has a part that ends with a dot or blank, which Windows drops")
		}
		for _, r := range s {
			if unicode.IsControl(r) {
				return bad("holds a control character")
			}
		}
		stem, _, _ := strings.Cut(s, ".")
		if reserved[strings.ToLower(strings.TrimRight(stem, " "))] {
			return bad("is the name of a device on Windows")
		}
		if strings.EqualFold(s, ".git") {
			return bad("reaches into a .git folder")
		}
	}
	return nil
}

// foldName maps names that are one file on macOS or Windows to one key.
func foldName(name string) string {
	return norm.NFC.String(cases.Fold().String(norm.NFD.String(name)))
}

// checkPaths refuses single names and sets in which two names are one file on
// a file system that ignores case, or a file is also a folder.
func checkPaths(names []string) error {
	seen := map[string]string{}
	for _, n := range names {
		if err := checkPath(n); err != nil {
			return err
		}
		key := foldName(n)
		if old, ok := seen[key]; ok {
			return diag.Errorf(diag.Pos{}, diag.Malformed, "%s and %s are one file where case does not count", quoteName(old), quoteName(n)).
				WithHint("fetch one of them with --include or --exclude")
		}
		seen[key] = n
	}
	for _, n := range names {
		for dir := path.Dir(n); dir != "."; dir = path.Dir(dir) {
			if old, ok := seen[foldName(dir)]; ok {
				return diag.Errorf(diag.Pos{}, diag.Malformed, "%s is a file and the folder of %s", quoteName(old), quoteName(n))
			}
		}
	}
	return nil
}

// quoteName prints a name from the network so that it cannot harm a terminal.
func quoteName(s string) string {
	const most = 120
	if len(s) > most {
		s = s[:most] + "…"
	}
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		if r == '"' || r == utf8.RuneError || !unicode.IsPrint(r) {
			b.WriteByte('?')
			continue
		}
		b.WriteRune(r)
	}
	b.WriteByte('"')
	return b.String()
}
