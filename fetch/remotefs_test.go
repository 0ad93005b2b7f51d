package fetch_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/anepkg/anepkg/coreml/sharedtest"
	"github.com/anepkg/anepkg/fetch"
	"github.com/anepkg/anepkg/fetch/hubtest"
	"github.com/anepkg/anepkg/inspect"
	"github.com/anepkg/anepkg/manifest"
)

// judge is everything that the commands show without weights, as JSON.
func judge(t *testing.T, fsys fs.FS) string {
	t.Helper()
	pkg, err := manifest.Open(t.Context(), fsys, "pkg")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = pkg.Close() }()
	rep, err := inspect.Inspect(t.Context(), pkg)
	if err != nil {
		t.Fatal(err)
	}
	val, err := inspect.Validate(t.Context(), pkg, inspect.Options{Fast: true})
	if err != nil {
		t.Fatal(err)
	}
	states, err := inspect.States(t.Context(), pkg)
	if err != nil {
		t.Fatal(err)
	}
	layers, err := inspect.Layers(t.Context(), pkg)
	if err != nil {
		t.Fatal(err)
	}
	out, err := json.MarshalIndent([]any{rep, val, states, layers}, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// TestJudgeRemotely opens every tiny package over the network: the reports
// are those of the folder, and of the weights only headers came.
func TestJudgeRemotely(t *testing.T) {
	root := sharedtest.Path(t, "models/tiny")
	dirs, err := filepath.Glob(filepath.Join(root, "*", "compiled"))
	if err != nil || len(dirs) < 10 {
		t.Fatalf("%d packages, %v", len(dirs), err)
	}
	var all, weights, asked int64
	for _, dir := range dirs {
		name := "org/" + filepath.Base(filepath.Dir(dir))
		t.Run(path.Base(name), func(t *testing.T) {
			h := newHub(t)
			if _, err := h.AddFS(name, os.DirFS(dir)); err != nil {
				t.Fatal(err)
			}
			c := newClient(t, h, nil)
			fsys, err := c.FS(t.Context(), ref(t, name))
			if err != nil {
				t.Fatal(err)
			}
			if got, want := judge(t, fsys), judge(t, os.DirFS(dir)); got != want {
				t.Errorf("the reports differ: %s", firstDifference(got, want))
			}
			for _, s := range h.Seen() {
				if s.Method != http.MethodGet || path.Base(s.Path) != "weight.bin" {
					continue
				}
				asked++
				weights += s.Sent
				if s.Server == "storage" && s.Sent > 256 {
					t.Errorf("%d bytes of %s were sent (%s), want at most the first 256 that tell what a file is, or a header of 64", s.Sent, s.Path, s.Range)
				}
			}
			if fsys.Traffic().Bytes == 0 || fsys.Traffic().Bytes > c.Traffic().Bytes {
				t.Errorf("traffic %+v of %+v", fsys.Traffic(), c.Traffic())
			}
			all += c.Traffic().Bytes
		})
	}
	t.Logf("%d packages: %d bytes came in all, %d of them of weights in %d requests", len(dirs), all, weights, asked)
}

func firstDifference(a, b string) string {
	la, lb := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(la), len(lb)) {
		if la[i] != lb[i] {
			return la[i] + " / " + lb[i]
		}
	}
	return "lengths"
}

func TestRemoteFS(t *testing.T) {
	h := newHub(t)
	files := packageFiles()
	files["big.json"] = blob(3_000_000, 9)
	delete(files, "empty.txt")
	h.Add(repoName, files)
	c := newClient(t, h, nil)
	fsys, err := c.FS(t.Context(), ref(t, repoName))
	if err != nil {
		t.Fatal(err)
	}
	for p, want := range files {
		if got, err := fs.ReadFile(fsys, p); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes, %v", p, len(got), err)
		}
	}
	sub, err := c.FS(t.Context(), ref(t, repoName+"/a.mlmodelc"))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := fs.ReadFile(sub, "model.mil"); err != nil || !bytes.Equal(got, files["a.mlmodelc/model.mil"]) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if _, err := fs.Stat(sub, "meta.yaml"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file above the folder shows: %v", err)
	}
}

// TestRemoteFSRules runs the standard library's checks. They read every byte
// of its own, so the files are small.
func TestRemoteFSRules(t *testing.T) {
	h := newHub(t)
	files := map[string][]byte{"a/x.mlmodelc/weights/w.bin": blob(64, 1), "a/b.json": blob(100, 2), "c": []byte("c")}
	h.Add(repoName, files)
	fsys, err := newClient(t, h, nil).FS(t.Context(), ref(t, repoName))
	if err != nil {
		t.Fatal(err)
	}
	if err := fstest.TestFS(fsys, "a/x.mlmodelc/weights/w.bin", "a/b.json", "c"); err != nil {
		t.Error(err)
	}
}

// TestRemoteRanges reads a weight file in pieces, from many goroutines, while
// the server cuts connections and forgets signatures.
func TestRemoteRanges(t *testing.T) {
	h := newHub(t)
	files := packageFiles()
	h.Add(repoName, files)
	want := files[weightPath]
	h.Fault = func(r hubtest.Request) *hubtest.Fault {
		switch {
		case r.Kind != "storage" || r.Path != weightPath:
		case r.N%7 == 3:
			return &hubtest.Fault{Status: 403, Body: []byte("<Error>expired</Error>")}
		case r.N%7 == 5:
			return &hubtest.Fault{CutAfter: 10}
		}
		return nil
	}
	c := newClient(t, h, nil)
	fsys, err := c.FS(t.Context(), ref(t, repoName))
	if err != nil {
		t.Fatal(err)
	}
	f, err := fsys.Open(weightPath)
	if err != nil {
		t.Fatal(err)
	}
	r, ok := f.(io.ReaderAt)
	if !ok {
		t.Fatal("no io.ReaderAt")
	}
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 10 {
				off := int64((i*130_000 + g*40_000) % len(want))
				buf := make([]byte, 1000)
				n, err := r.ReadAt(buf, off)
				if err != nil && !errors.Is(err, io.EOF) || !bytes.Equal(buf[:n], want[off:off+int64(n)]) || n == 0 {
					t.Errorf("at %d: %d bytes, %v", off, n, err)
				}
			}
		})
	}
	wg.Wait()
	if _, err := r.ReadAt(make([]byte, 1), int64(len(want))); !errors.Is(err, io.EOF) {
		t.Errorf("after the end: %v", err)
	}
	if _, err := r.ReadAt(make([]byte, 1), -1); err == nil {
		t.Error("before the start: no error")
	}
	if sent := h.SentOf(weightPath); sent > 80_000 {
		t.Errorf("%d bytes were sent for 40 reads of 1000", sent)
	}
}

// TestRemoteFSUsesCache reads what is in the cache from there.
func TestRemoteFSUsesCache(t *testing.T) {
	h := newHub(t)
	files := packageFiles()
	h.Add(repoName, files)
	c := newClient(t, h, nil)
	mustGet(t, c, ref(t, repoName), fetch.PlanOptions{})
	fsys, err := c.FS(t.Context(), ref(t, repoName))
	if err != nil {
		t.Fatal(err)
	}
	h.Forget()
	f, err := fsys.Open(weightPath)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if _, ok := f.(*os.File); !ok {
		t.Errorf("a file of the cache is a %T", f)
	}
	if got, err := io.ReadAll(f); err != nil || !bytes.Equal(got, files[weightPath]) || len(h.Seen()) != 0 {
		t.Errorf("%d bytes, %v, %d requests", len(got), err, len(h.Seen()))
	}
}

// TestRemoteWrongBytes does not hand out a small file with a wrong hash.
func TestRemoteWrongBytes(t *testing.T) {
	h := newHub(t)
	files := packageFiles()
	h.Add(repoName, files)
	h.Fault = func(r hubtest.Request) *hubtest.Fault {
		if r.Kind == "content" && r.Path == "config.json" {
			return &hubtest.Fault{Content: bytes.Repeat([]byte("x"), len(files["config.json"]))}
		}
		return nil
	}
	fsys, err := newClient(t, h, nil).FS(t.Context(), ref(t, repoName))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fs.ReadFile(fsys, "config.json"); !errors.Is(err, fetch.ErrDigest) {
		t.Errorf("error %v", err)
	}
}
