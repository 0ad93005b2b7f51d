package main

import (
	"archive/zip"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"anepkg": main})
}

// TestScripts runs testdata/script/*.txtar. Beside the commands of
// testscript, a script may use
//
//	json KEY...      the last output is one JSON object that begins with its
//	                 schema and has every key; a.b.0.c walks into it, and
//	                 KEY=VALUE asks for a value (as JSON, or as a bare word)
//	zip DIR FILE     packs a folder, with its name as the top folder
//
// and $PACKAGES, the packages of this repository. ANEPKG_UPDATE=1 rewrites the expected outputs.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		UpdateScripts:       os.Getenv("ANEPKG_UPDATE") != "",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("NO_COLOR", "1")
			packages, err := filepath.Abs(filepath.Join("..", "..", "runner", "testdata", "packages"))
			env.Setenv("PACKAGES", packages)
			return err
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"json": scriptJSON,
			"zip":  scriptZip,
		},
	})
}

// scriptJSON checks the last standard output.
func scriptJSON(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: json KEY...")
	}
	text := ts.ReadFile("stdout")
	if !strings.HasPrefix(text, "{\n  \"schema\": \"anepkg.") {
		ts.Fatalf("output does not begin with its schema:\n%s", text)
	}
	var root any
	if err := json.Unmarshal([]byte(text), &root); err != nil {
		ts.Fatalf("not one JSON object: %v", err)
	}
	for _, arg := range args {
		key, want, compare := strings.Cut(arg, "=")
		got, ok := walkJSON(root, key)
		if !ok {
			ts.Fatalf("no %s in\n%s", key, text)
		}
		if !compare {
			continue
		}
		data, err := json.Marshal(got)
		ts.Check(err)
		if text, isText := got.(string); string(data) != want && (!isText || text != want) {
			ts.Fatalf("%s is %s, want %s", key, data, want)
		}
	}
}

// walkJSON follows a path such as parts.0.role; "len" is the length of a list.
func walkJSON(v any, path string) (any, bool) {
	for _, step := range strings.Split(path, ".") {
		switch node := v.(type) {
		case map[string]any:
			next, ok := node[step]
			if !ok {
				return nil, false
			}
			v = next
		case []any:
			if step == "len" {
				v = len(node)
				continue
			}
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(node) {
				return nil, false
			}
			v = node[i]
		default:
			return nil, false
		}
	}
	return v, true
}

// scriptZip packs a folder.
func scriptZip(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: zip DIR FILE")
	}
	dir := ts.MkAbs(args[0])
	ts.Check(zipFolder(os.DirFS(dir), filepath.Base(dir), ts.MkAbs(args[1])))
}

// zipFolder packs the files of fsys below the folder top ("" for none).
func zipFolder(fsys fs.FS, top, file string) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	w := zip.NewWriter(f)
	err = fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		if top != "" {
			name = top + "/" + name
		}
		dst, err := w.Create(name)
		if err != nil {
			return err
		}
		_, err = dst.Write(data)
		return err
	})
	if err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return f.Close()
}
