package inspect_test

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/anepkg/anepkg/coreml/sharedtest"
	"github.com/anepkg/anepkg/inspect"
)

// TestExamples makes the example of every rule: a case of the tables or a
// mutation, the lines that it changes, and the finding that it gives.
// examples.txtar holds them for "anepkg checks ID"; ANEPKG_UPDATE=1 rewrites
// it.
func TestExamples(t *testing.T) {
	sharedtest.Path(t, "models/tiny")
	cases := map[string]ruleCase{}
	for _, c := range slices.Concat(fireCases, moreCases, newCases) {
		r, err := inspect.Explain(c.rule)
		if err != nil {
			t.Fatal(err)
		}
		if old, ok := cases[c.rule]; !ok || old.severity != r.Severity && c.severity == r.Severity {
			cases[c.rule] = c
		}
	}
	loaded := map[string]fstest.MapFS{}
	files := func(pkg string) fstest.MapFS {
		if loaded[pkg] == nil {
			loaded[pkg] = load(t, sharedtest.Path(t, "models/"+pkg))
		}
		return loaded[pkg]
	}
	var ar txtar.Archive
	for _, r := range inspect.Catalogue() {
		c, ok := cases[r.ID]
		var text string
		if ok {
			before, after := files(c.pkg), maps.Clone(files(c.pkg))
			if c.change != nil {
				c.change(after)
			}
			text = example(t, r.ID, c.severity, c.pkg, before, after)
		} else {
			text = mutationExample(t, r.ID, files)
		}
		if text == "" {
			t.Errorf("%s has no example", r.ID)
			continue
		}
		if n := strings.Count(text, "\n"); n > 40 || utf8.RuneCountInString(text) > 4000 {
			t.Errorf("%s: the example has %d lines and %d letters", r.ID, n, utf8.RuneCountInString(text))
		}
		ar.Files = append(ar.Files, txtar.File{Name: r.ID, Data: []byte(text)})
	}
	got := txtar.Format(&ar)
	if os.Getenv("ANEPKG_UPDATE") != "" {
		if err := os.WriteFile("examples.txtar", got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("examples.txtar")
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Errorf("examples.txtar is not what the rules give (ANEPKG_UPDATE=1 rewrites it):\n%s", d)
	}
}

// mutationExample takes the first mutation and package that make the rule
// fire.
func mutationExample(t *testing.T, rule string, files func(string) fstest.MapFS) string {
	t.Helper()
	dirs := []string{qwen}
	all, err := filepath.Glob(filepath.Join(sharedtest.Path(t, "models"), "tiny", "*", "compiled"))
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range all {
		dirs = append(dirs, "tiny/"+shortName(d))
	}
	for _, pkg := range dirs {
		before := files(pkg)
		p := open(t, before, "pkg")
		list := slices.DeleteFunc(append(slices.Clone(mutations), partMutations(p)...), func(m mutation) bool { return !slices.Contains(m.want, rule) })
		slices.SortStableFunc(list, func(a, b mutation) int { return len(a.want) - len(b.want) }) // the most specific one
		for _, m := range list {
			spoiled := &mutant{MapFS: maps.Clone(before), pkg: p}
			if !m.mutate(spoiled) {
				continue
			}
			if text := example(t, rule, inspect.Error, pkg, before, spoiled.MapFS); text != "" {
				return text
			}
		}
	}
	return ""
}

// example prints what changed in a package and the rule's first finding of a
// severity, "" when there is none.
func example(t *testing.T, rule string, severity inspect.Severity, pkg string, before, after fstest.MapFS) string {
	t.Helper()
	name := strings.TrimSuffix(strings.TrimPrefix(pkg, "tiny/"), "/compiled")
	r, err := inspect.Validate(context.Background(), open(t, after, name), inspect.Options{Only: []string{rule}})
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(r.Findings, func(f *inspect.Finding) bool { return f.ID == rule && f.Severity == severity })
	if i < 0 {
		return ""
	}
	r.Findings = r.Findings[i : i+1]
	var text bytes.Buffer
	if err := r.WriteText(&text, false); err != nil {
		t.Fatal(err)
	}
	_, finding, _ := strings.Cut(text.String(), "\n") // the file's name
	finding, _, _ = strings.Cut(finding, "\n\n")
	var b strings.Builder
	if lines := changes(before, after); len(lines) > 0 {
		fmt.Fprintf(&b, "In the package %s\n", name)
		for _, l := range lines {
			fmt.Fprintf(&b, "  %s\n", l)
		}
	} else {
		fmt.Fprintf(&b, "The package %s as its converter made it\n", name)
	}
	for l := range strings.SplitSeq(finding, "\n") {
		fmt.Fprintf(&b, "%s\n", l)
	}
	return b.String()
}

// maxChanges bounds the files, and the lines of one file, that are shown.
const maxChanges = 3

// changes lists what differs between two packages.
func changes(before, after fstest.MapFS) []string {
	all := maps.Clone(before)
	maps.Copy(all, after)
	var out []string
	n := 0
	folders := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		a, b := before[name], after[name]
		if a != nil && b != nil && bytes.Equal(a.Data, b.Data) && a.Mode == b.Mode {
			continue
		}
		what := name
		if dir, _, nested := strings.Cut(name, "/"); nested && (a == nil || b == nil) && wholeFolder(before, after, dir) {
			if folders[dir] {
				continue
			}
			folders[dir] = true
			what = dir
		}
		if n++; n > maxChanges {
			out = append(out, "and other files")
			break
		}
		switch {
		case b == nil:
			out = append(out, what+" is deleted")
		case a == nil && what != name && programOf(after, what) != "":
			out = append(out, what+" is added, its program")
			out = append(out, added(programOf(after, what))...)
		case a == nil && what != name:
			out = append(out, what+" is added")
		case b.Mode&fs.ModeSymlink != 0:
			out = append(out, fmt.Sprintf("%s is a link to %s", name, b.Data))
		case a == nil:
			out = append(out, name+" is added")
			out = append(out, added(string(b.Data))...)
		case bytes.Equal(a.Data, b.Data):
			out = append(out, fmt.Sprintf("%s has the mode %s", name, b.Mode))
		case len(b.Data) == 0:
			out = append(out, name+" is empty")
		case bytes.HasPrefix(a.Data, b.Data):
			out = append(out, fmt.Sprintf("%s is cut from %d to %d bytes", name, len(a.Data), len(b.Data)))
		case !text(a.Data) && text(b.Data):
			out = append(out, name)
			out = append(out, added(string(b.Data))...)
		default:
			out = append(out, name)
			out = append(out, changedLines(a.Data, b.Data)...)
		}
	}
	return out
}

func programOf(m fstest.MapFS, dir string) string {
	if f := m[dir+"/model.mil"]; f != nil {
		return string(f.Data)
	}
	return ""
}

// wholeFolder reports whether every file of a folder appears or vanishes.
func wholeFolder(before, after fstest.MapFS, dir string) bool {
	has := func(m fstest.MapFS) bool {
		for name := range m {
			if strings.HasPrefix(name, dir+"/") {
				return true
			}
		}
		return false
	}
	return has(before) != has(after)
}

func text(data []byte) bool {
	return utf8.Valid(data) && !bytes.ContainsRune(data, 0)
}

// added shows the first lines of a new file.
func added(s string) []string {
	if !text([]byte(s)) {
		return nil
	}
	var out []string
	for _, l := range strings.Split(strings.TrimRight(s, "\n"), "\n") {
		if strings.Trim(l, " {}") == "" || strings.HasPrefix(l, "program(") || strings.HasPrefix(l, "[buildInfo") {
			continue
		}
		if len(out) == 2*maxChanges {
			return append(out, "  + ...")
		}
		out = append(out, "  + "+cutLine(strings.TrimSpace(l), 0))
	}
	return out
}

func changedLines(a, b []byte) []string {
	if !text(a) || !text(b) {
		return []string{"  " + changedBytes(a, b)}
	}
	x, y := strings.Split(string(a), "\n"), strings.Split(string(b), "\n")
	for len(x) > 0 && len(y) > 0 && x[0] == y[0] {
		x, y = x[1:], y[1:]
	}
	for len(x) > 0 && len(y) > 0 && x[len(x)-1] == y[len(y)-1] {
		x, y = x[:len(x)-1], y[:len(y)-1]
	}
	if len(x) > 2*len(y) && len(y) > 2 && bytes.HasPrefix(b, []byte("program(")) {
		return append([]string{"  + program(1.3)"}, added(string(b))...)
	}
	col := 0
	if len(x) > 0 && len(y) > 0 {
		for col < min(len(x[0]), len(y[0])) && x[0][col] == y[0][col] {
			col++
		}
	}
	most := maxChanges
	if len(x) == len(y) {
		most = 1 // the same change in many lines
	}
	var out []string
	for _, side := range []struct {
		mark  string
		lines []string
	}{{"-", x}, {"+", y}} {
		for i, l := range side.lines {
			if i == most || side.mark == "-" && i == 2 {
				out = append(out, "  "+side.mark+" ...")
				break
			}
			if c := cutLine(l, col); strings.TrimSpace(c) != "" {
				out = append(out, "  "+side.mark+" "+c)
			}
		}
	}
	return out
}

func changedBytes(a, b []byte) string {
	if len(a) != len(b) {
		return fmt.Sprintf("%d bytes become %d", len(a), len(b))
	}
	i := 0
	for a[i] == b[i] {
		i++
	}
	end := min(len(a), i+8)
	return fmt.Sprintf("at 0x%x: % x becomes % x", i, a[i:end], b[i:end])
}

// cutLine shows the part of a long line around a column.
func cutLine(l string, col int) string {
	const most = 108
	r := []rune(strings.TrimRight(strings.ReplaceAll(l, "\t", `\t`), " \r"))
	cut := len(r) - len([]rune(strings.TrimLeft(string(r), " ")))
	if col > 0 && cut <= col {
		r, col = r[cut:], col-cut
	}
	if len(r) <= most {
		return string(r)
	}
	start := max(0, min(col-most/3, len(r)-most))
	out := string(r[start:min(len(r), start+most)])
	if start > 0 {
		out = "..." + out
	}
	if start+most < len(r) {
		out += "..."
	}
	return out
}
