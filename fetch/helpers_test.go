package fetch_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/fetch"
	"github.com/anepkg/anepkg/fetch/hubtest"
)

const repoName = "org/pkg"

// blob makes n bytes that do not repeat.
func blob(n int, seed uint64) []byte {
	r := rand.New(rand.NewPCG(seed, 1))
	out := make([]byte, n)
	for i := 0; i+8 <= n; i += 8 {
		v := r.Uint64()
		for k := range 8 {
			out[i+k] = byte(v >> (8 * k))
		}
	}
	return out
}

// packageFiles is a small repository: files in git, files in LFS, folders.
func packageFiles() map[string][]byte {
	return map[string][]byte{
		"meta.yaml":                        []byte("model_info:\n  name: x\n"),
		"tokenizer.json":                   blob(300_000, 1),
		"config.json":                      []byte(`{"model_type":"x"}`),
		"empty.txt":                        {},
		"a.mlmodelc/model.mil":             blob(40_000, 2),
		"a.mlmodelc/weights/weight.bin":    blob(1_500_000, 3),
		"deep/b c/ü.mlmodelc/coreml#1.bin": blob(1000, 4),
	}
}

func newHub(t testing.TB) *hubtest.Hub {
	t.Helper()
	h := hubtest.New()
	t.Cleanup(h.Close)
	return h
}

// newClient makes a client with an own cache that waits for nothing. Waits
// are added up in *waited when it is not nil.
func newClient(t testing.TB, h *hubtest.Hub, change func(*fetch.Config)) *fetch.Client {
	t.Helper()
	cfg := fetch.Config{Endpoint: h.URL, CacheDir: filepath.Join(t.TempDir(), "hub"), MetaTimeout: 5 * time.Second, StallTimeout: 5 * time.Second,
		Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() }}
	if change != nil {
		change(&cfg)
	}
	c, err := fetch.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func ref(t testing.TB, s string) fetch.Ref {
	t.Helper()
	r, err := fetch.ParseRef(s, "")
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// get plans and downloads.
func get(c *fetch.Client, r fetch.Ref, opts fetch.PlanOptions) (*fetch.Result, error) {
	p, err := c.Plan(context.Background(), r, opts)
	if err != nil {
		return nil, err
	}
	return c.Download(context.Background(), p, nil)
}

func mustGet(t testing.TB, c *fetch.Client, r fetch.Ref, opts fetch.PlanOptions) *fetch.Result {
	t.Helper()
	res, err := get(c, r, opts)
	if err != nil {
		t.Fatalf("download: %v (hint: %s)", err, hintOf(err))
	}
	return res
}

func hintOf(err error) string {
	var e *diag.Error
	errors.As(err, &e)
	if e == nil {
		return ""
	}
	return e.Hint
}

// sameTree fails unless dir holds exactly want, apart from our records.
func sameTree(t testing.TB, dir string, want map[string][]byte) {
	t.Helper()
	left := map[string]bool{}
	for p := range want {
		left[p] = true
	}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, p)
		rel = filepath.ToSlash(rel)
		if d.IsDir() {
			if rel == ".cache" {
				return fs.SkipDir
			}
			return nil
		}
		data, err := os.ReadFile(p)
		if err != nil {
			t.Errorf("%s: %v", rel, err)
			return nil
		}
		exp, ok := want[rel]
		if !ok {
			t.Errorf("%s should not be there", rel)
		} else if !bytes.Equal(exp, data) {
			t.Errorf("%s has %d bytes that differ from the %d of the hub", rel, len(data), len(exp))
		}
		delete(left, rel)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for p := range left {
		t.Errorf("%s is missing", p)
	}
}

// noPartials fails when an unfinished or temporary file lies below dir.
func noPartials(t testing.TB, dir string) {
	t.Helper()
	_ = filepath.WalkDir(dir, func(p string, d fs.DirEntry, _ error) error {
		if d != nil && strings.Contains(d.Name(), "anepkg-") {
			t.Errorf("left behind: %s", p)
		}
		return nil
	})
}

func sha(data []byte) string {
	s := sha256.Sum256(data)
	return hex.EncodeToString(s[:])
}

// is fails unless err is of the kind and class and has a hint.
func is(t testing.TB, err, kind error, code diag.Code) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want %v", kind)
	}
	if kind != nil && !errors.Is(err, kind) {
		t.Errorf("error %q is not %q", err, kind)
	}
	if got := diag.CodeOf(err); got != code {
		t.Errorf("error %q has class %q, want %q", err, got, code)
	}
	if hintOf(err) == "" {
		t.Errorf("error %q has no hint", err)
	}
}
