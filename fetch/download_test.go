package fetch_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/fetch"
	"github.com/anepkg/anepkg/fetch/hubtest"
)

const weightPath = "a.mlmodelc/weights/weight.bin"

func TestDownloadIntoCache(t *testing.T) {
	h := newHub(t)
	h.PageSize = 2
	files := packageFiles()
	commit := h.Add(repoName, files)
	c := newClient(t, h, nil)
	var last fetch.Event
	p, err := c.Plan(t.Context(), ref(t, repoName), fetch.PlanOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if p.Missing != p.Bytes || len(p.Files) != len(files) {
		t.Errorf("plan has %d files and %d of %d bytes missing", len(p.Files), p.Missing, p.Bytes)
	}
	res, err := c.Download(t.Context(), p, func(e fetch.Event) { last = e })
	if err != nil {
		t.Fatal(err)
	}
	sameTree(t, res.Path, files)
	noPartials(t, c.CacheDir())
	if last.AllDone != last.AllTotal || !last.Finished {
		t.Errorf("last event is %+v", last)
	}
	if res.Repo.Commit != commit || res.Downloaded != p.Bytes || res.Reused != 0 {
		t.Errorf("result: commit %s, %d downloaded, %d reused", res.Repo.Commit, res.Downloaded, res.Reused)
	}
	for _, f := range res.Files {
		if f.SHA256 != sha(files[f.Path]) || f.Status != fetch.Downloaded {
			t.Errorf("%s: sha256 %s, status %s", f.Path, f.SHA256, f.Status)
		}
	}
	repo := filepath.Join(c.CacheDir(), "models--org--pkg")
	if data, err := os.ReadFile(filepath.Join(repo, "refs", "main")); err != nil || string(data) != commit {
		t.Errorf("refs/main is %q, %v", data, err)
	}
	if runtime.GOOS != "windows" {
		link, err := os.Readlink(filepath.Join(repo, "snapshots", commit, filepath.FromSlash(weightPath)))
		if want := filepath.Join("..", "..", "..", "..", "blobs", sha(files[weightPath])); err != nil || link != want {
			t.Errorf("the weight links to %q, want %q (%v)", link, want, err)
		}
	}
	h.Forget()
	again := mustGet(t, c, ref(t, repoName), fetch.PlanOptions{})
	if again.Downloaded != 0 || again.Reused != p.Bytes {
		t.Errorf("second run: %d downloaded, %d reused", again.Downloaded, again.Reused)
	}
	if seen := h.Seen(); len(seen) != 1 {
		t.Errorf("second run made %d requests, want the one for the revision: %+v", len(seen), seen)
	}
}

func TestTokenStaysAtTheHub(t *testing.T) {
	h := newHub(t)
	h.Tokens = map[string]hubtest.Access{"hf_secret": hubtest.Granted}
	h.Add(repoName, packageFiles())
	h.Restrict(repoName, true, true)
	c := newClient(t, h, func(cfg *fetch.Config) { cfg.Token = "hf_secret" })
	mustGet(t, c, ref(t, repoName), fetch.PlanOptions{})
	storage := 0
	for _, s := range h.Seen() {
		if s.Accept != "identity" {
			t.Errorf("%s %s accepts %q", s.Method, s.Path, s.Accept)
		}
		if s.Server == "hub" && s.Auth != "Bearer hf_secret" {
			t.Errorf("hub request %s without the token", s.Path)
		}
		if s.Server == "storage" {
			storage++
			if s.Auth != "" {
				t.Errorf("the storage server got the token with %s", s.Path)
			}
		}
	}
	if storage == 0 {
		t.Error("no request went to the storage server")
	}
}

// TestFaults downloads from a hub that misbehaves and then recovers.
func TestFaults(t *testing.T) {
	first := func(kind string, f hubtest.Fault) func(hubtest.Request) *hubtest.Fault {
		return func(r hubtest.Request) *hubtest.Fault {
			if r.Kind == kind && r.N == 0 && (r.Path == weightPath || r.Path == "") {
				return &f
			}
			return nil
		}
	}
	cases := []struct {
		name  string
		fault func(hubtest.Request) *hubtest.Fault
	}{
		{"cut body", first("storage", hubtest.Fault{CutAfter: 700_001})},
		{"cut body, then no range", func(r hubtest.Request) *hubtest.Fault {
			if r.Path != weightPath || r.Kind != "storage" {
				return nil
			}
			if r.N == 0 {
				return &hubtest.Fault{CutAfter: 700_001}
			}
			return &hubtest.Fault{IgnoreRange: true}
		}},
		{"cut body, then 416", func(r hubtest.Request) *hubtest.Fault {
			if r.Path == weightPath && r.Kind == "storage" && r.N == 0 {
				return &hubtest.Fault{CutAfter: 700_001}
			}
			if r.Path == weightPath && r.Kind == "storage" && r.N == 1 {
				return &hubtest.Fault{Status: 416}
			}
			return nil
		}},
		{"cut body, then a wrong range", func(r hubtest.Request) *hubtest.Fault {
			if r.Path == weightPath && r.Kind == "storage" && r.N == 0 {
				return &hubtest.Fault{CutAfter: 700_001}
			}
			if r.Path == weightPath && r.Kind == "storage" && r.N == 1 {
				return &hubtest.Fault{WrongRange: 5}
			}
			return nil
		}},
		{"wrong bytes once", first("storage", hubtest.Fault{Content: blob(1_500_000, 99)})},
		{"too short once", first("storage", hubtest.Fault{Content: blob(1000, 99)})},
		{"too long once", first("storage", hubtest.Fault{Content: blob(1_600_000, 99)})},
		{"gzip once", first("storage", hubtest.Fault{Gzip: true})},
		{"announces less", first("storage", hubtest.Fault{Announce: 1000})},
		{"503 with a pause", first("content", hubtest.Fault{Status: 503, Header: http.Header{"Retry-After": {"2"}}})},
		{"500", first("storage", hubtest.Fault{Status: 500})},
		{"408", first("storage", hubtest.Fault{Status: 408})},
		{"429 at the listing", first("tree", hubtest.Fault{Status: 429, Header: http.Header{"Ratelimit": {`"api";r=0;t=3`}}})},
		{"502 at the revision", first("revision", hubtest.Fault{Status: 502})},
		{"broken JSON", first("tree", hubtest.Fault{Status: 200, Body: []byte(`[{"type":`)})},
		{"relative redirect", func(r hubtest.Request) *hubtest.Fault {
			if r.Kind == "content" && r.Path == weightPath && r.N == 0 {
				return &hubtest.Fault{Redirect: "/" + repoName + "/resolve/main/" + weightPath}
			}
			return nil
		}},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			h := newHub(t)
			files := packageFiles()
			h.Add(repoName, files)
			var fired atomic.Int64
			h.Fault = func(r hubtest.Request) *hubtest.Fault {
				f := tc.fault(r)
				if f != nil {
					fired.Add(1)
				}
				return f
			}
			c := newClient(t, h, nil)
			res := mustGet(t, c, ref(t, repoName), fetch.PlanOptions{})
			sameTree(t, res.Path, files)
			noPartials(t, c.CacheDir())
			if fired.Load() == 0 {
				t.Error("the fault did not happen")
			}
		})
	}
}

func TestCutsResume(t *testing.T) {
	h := newHub(t)
	data := blob(2<<20, 5)
	h.Add(repoName, map[string][]byte{"w.bin": data})
	h.Fault = func(r hubtest.Request) *hubtest.Fault {
		if r.Kind == "storage" {
			return &hubtest.Fault{CutAfter: 64 << 10}
		}
		return nil
	}
	c := newClient(t, h, func(cfg *fetch.Config) { cfg.Tries = 2 })
	res := mustGet(t, c, ref(t, repoName), fetch.PlanOptions{})
	sameTree(t, res.Path, map[string][]byte{"w.bin": data})
	if sent := h.SentOf("w.bin"); sent > int64(len(data))+(64<<10) {
		t.Errorf("%d bytes were sent for a file of %d", sent, len(data))
	}
}

// TestResumeNextRun interrupts a run and checks that the next one continues.
func TestResumeNextRun(t *testing.T) {
	for _, to := range []string{"", "dir"} {
		t.Run("to="+to, func(t *testing.T) {
			h := newHub(t)
			files := packageFiles()
			h.Add(repoName, files)
			h.Fault = func(r hubtest.Request) *hubtest.Fault {
				if r.Kind == "storage" && r.Path == weightPath {
					if r.N == 0 {
						return &hubtest.Fault{CutAfter: 1_000_000}
					}
					return &hubtest.Fault{Status: 403, Body: []byte("<Error/>")}
				}
				return nil
			}
			opts := fetch.PlanOptions{}
			if to != "" {
				opts.To = filepath.Join(t.TempDir(), to)
			}
			c := newClient(t, h, nil)
			_, err := get(c, ref(t, repoName), opts)
			if err == nil {
				t.Fatal("no error")
			}
			h.SetFault(nil)
			h.Forget()
			p, err := c.Plan(t.Context(), ref(t, repoName), opts)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range p.Files {
				if f.Path == weightPath && (f.Status != fetch.Partial || f.Have < 900_000) {
					t.Errorf("plan says %s with %d bytes", f.Status, f.Have)
				}
			}
			res, err := c.Download(t.Context(), p, nil)
			if err != nil {
				t.Fatal(err)
			}
			sameTree(t, res.Path, files)
			if sent := h.SentOf(weightPath); sent > 600_000 {
				t.Errorf("%d bytes were sent again", sent)
			}
			for _, f := range res.Files {
				if f.Path == weightPath && f.Status != fetch.Resumed {
					t.Errorf("status is %s", f.Status)
				}
			}
		})
	}
}

// TestBadPartial continues a partial that holds other bytes.
func TestBadPartial(t *testing.T) {
	for _, size := range []int{1000, 1_500_000, 2_000_000} {
		h := newHub(t)
		files := packageFiles()
		h.Add(repoName, files)
		c := newClient(t, h, nil)
		dir := filepath.Join(c.CacheDir(), "models--org--pkg", "blobs")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, sha(files[weightPath])+".anepkg-partial"), blob(size, 77), 0o644); err != nil {
			t.Fatal(err)
		}
		res := mustGet(t, c, ref(t, repoName), fetch.PlanOptions{})
		sameTree(t, res.Path, files)
	}
}

func TestToDir(t *testing.T) {
	h := newHub(t)
	files := packageFiles()
	h.Add(repoName, files)
	dir := t.TempDir()
	c := newClient(t, h, nil)
	opts := fetch.PlanOptions{To: dir}
	if res := mustGet(t, c, ref(t, repoName), opts); res.Path != dir {
		t.Errorf("path is %s", res.Path)
	}
	sameTree(t, dir, files)
	if res := mustGet(t, c, ref(t, repoName), opts); res.Downloaded != 0 {
		t.Errorf("second run fetched %d bytes", res.Downloaded)
	}
	// A file without its record is hashed, not fetched; a changed one is replaced.
	if err := os.RemoveAll(filepath.Join(dir, ".cache")); err != nil {
		t.Fatal(err)
	}
	broken := blob(1_500_000, 8)
	if err := os.WriteFile(filepath.Join(dir, filepath.FromSlash(weightPath)), broken, 0o644); err != nil {
		t.Fatal(err)
	}
	res := mustGet(t, c, ref(t, repoName), opts)
	sameTree(t, dir, files)
	if res.Downloaded != int64(len(broken)) {
		t.Errorf("third run fetched %d bytes, want %d", res.Downloaded, len(broken))
	}
}

func TestWithoutLinks(t *testing.T) {
	h := newHub(t)
	files := packageFiles()
	h.Add(repoName, files)
	c := newClient(t, h, func(cfg *fetch.Config) { cfg.DisableSymlinks = true })
	res := mustGet(t, c, ref(t, repoName), fetch.PlanOptions{})
	sameTree(t, res.Path, files)
	info, err := os.Lstat(filepath.Join(res.Path, "meta.yaml"))
	if err != nil || !info.Mode().IsRegular() {
		t.Errorf("meta.yaml is %v, %v", info, err)
	}
	if res := mustGet(t, c, ref(t, repoName), fetch.PlanOptions{}); res.Downloaded != 0 {
		t.Errorf("second run fetched %d bytes", res.Downloaded)
	}
}

func TestTwoAtOnce(t *testing.T) {
	h := newHub(t)
	files := packageFiles()
	h.Add(repoName, files)
	cache := filepath.Join(t.TempDir(), "hub")
	var wg sync.WaitGroup
	errs := make([]error, 4)
	for i := range errs {
		c := newClient(t, h, func(cfg *fetch.Config) { cfg.CacheDir = cache })
		wg.Go(func() { _, errs[i] = get(c, ref(t, repoName), fetch.PlanOptions{}) })
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			t.Error(err)
		}
	}
	if sent := h.SentOf(weightPath); sent != int64(len(files[weightPath])) {
		t.Errorf("%d bytes were sent for the weight, want it once", sent)
	}
}

func TestCancelKeepsPartial(t *testing.T) {
	h := newHub(t)
	files := packageFiles()
	h.Add(repoName, files)
	h.Fault = func(r hubtest.Request) *hubtest.Fault {
		if r.Kind == "storage" && r.Path == weightPath && r.N > 0 {
			return &hubtest.Fault{Hang: time.Minute}
		}
		if r.Kind == "storage" && r.Path == weightPath {
			return &hubtest.Fault{CutAfter: 500_000}
		}
		return nil
	}
	c := newClient(t, h, nil)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	p, err := c.Plan(ctx, ref(t, repoName), fetch.PlanOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Download(ctx, p, nil); err == nil || ctx.Err() == nil {
		t.Fatalf("error %v", err)
	}
	h.SetFault(nil)
	res := mustGet(t, c, ref(t, repoName), fetch.PlanOptions{})
	sameTree(t, res.Path, files)
	if res.Reused < 400_000 {
		t.Errorf("only %d bytes reused", res.Reused)
	}
}

func TestDiskFull(t *testing.T) {
	h := newHub(t)
	h.Add(repoName, packageFiles())
	c := newClient(t, h, func(cfg *fetch.Config) { cfg.FreeSpace = func(string) (int64, error) { return 1000, nil } })
	h.Forget()
	_, err := get(c, ref(t, repoName), fetch.PlanOptions{})
	is(t, err, fetch.ErrDiskFull, diag.IO)
	if n := h.SentOf(weightPath); n != 0 {
		t.Errorf("%d bytes were fetched", n)
	}
}

// TestHostileNames plans repositories with names that could do harm.
func TestHostileNames(t *testing.T) {
	names := []string{"../x", "a/../../x", "/etc/x", `a\..\x`, `C:\x`, "c:x", "a\x00b", "a/./b", "a//b", "NUL", "con.txt", "dir/COM1.bin", "x.", "x ", "a\nb", "…/../x",
		".git/config", "a/.GIT/hooks/x", fmt.Sprintf("%0300d", 0), "a:b", "a?b"}
	for _, n := range names {
		h := newHub(t)
		h.Add(repoName, map[string][]byte{"ok.txt": []byte("x"), n: []byte("evil")})
		c := newClient(t, h, nil)
		_, err := get(c, ref(t, repoName), fetch.PlanOptions{})
		if diag.CodeOf(err) != diag.Malformed {
			t.Errorf("%q: %v", n, err)
		}
		if _, err := os.Stat(filepath.Join(c.CacheDir(), "models--org--pkg", "snapshots")); err == nil {
			t.Errorf("%q: something was written", n)
		}
	}
	for _, set := range [][]string{{"a.txt", "A.TXT"}, {"ü", "u\u0308"}, {"dir", "Dir/x"}} {
		h := newHub(t)
		files := map[string][]byte{}
		for _, n := range set {
			files[n] = []byte(n)
		}
		h.Add(repoName, files)
		if _, err := get(newClient(t, h, nil), ref(t, repoName), fetch.PlanOptions{}); diag.CodeOf(err) != diag.Malformed {
			t.Errorf("%q: %v", set, err)
		}
	}
	h := newHub(t)
	h.Add(repoName, map[string][]byte{".cache/huggingface/download/x.metadata": []byte("x")})
	if _, err := get(newClient(t, h, nil), ref(t, repoName), fetch.PlanOptions{To: t.TempDir()}); diag.CodeOf(err) != diag.Malformed {
		t.Errorf("record folder: %v", err)
	}
}

// TestLinksAreNotWrittenThrough: what somebody put in the place of a partial
// or a lock leads to a file outside, which stays as it is.
func TestLinksAreNotWrittenThrough(t *testing.T) {
	h := newHub(t)
	files := map[string][]byte{"w.bin": blob(50_000, 1)}
	h.Add(repoName, files)
	digest := sha(files["w.bin"])
	outside := filepath.Join(t.TempDir(), "victim")
	for _, have := range []bool{true, false} {
		c := newClient(t, h, nil)
		for _, name := range []string{
			filepath.Join(c.CacheDir(), "models--org--pkg", "blobs", digest+".anepkg-partial"),
			filepath.Join(c.CacheDir(), ".locks", "models--org--pkg", digest+".lock"),
		} {
			if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(outside, name); err != nil {
				t.Skip(err)
			}
		}
		if have {
			if err := os.WriteFile(outside, []byte("keep me"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		res := mustGet(t, c, ref(t, repoName), fetch.PlanOptions{})
		sameTree(t, res.Path, files)
		data, err := os.ReadFile(outside)
		if have && string(data) != "keep me" || !have && err == nil {
			t.Errorf("the file outside holds %d bytes (%v)", len(data), err)
		}
		_ = os.Remove(outside)
		if info, err := os.Lstat(filepath.Join(c.CacheDir(), "models--org--pkg", "blobs", digest)); err != nil || !info.Mode().IsRegular() {
			t.Errorf("the blob is no file: %v, %v", info, err)
		}
	}
}

// TestNoEndlessRestarts: a server that cuts every transfer and answers every
// Range wrongly is given up.
func TestNoEndlessRestarts(t *testing.T) {
	for _, wrong := range []int64{5, -5} {
		h := newHub(t)
		h.Add(repoName, map[string][]byte{"w.bin": blob(100_000, 1)})
		h.Fault = func(r hubtest.Request) *hubtest.Fault {
			if r.Kind != "storage" {
				return nil
			}
			if r.Range == "" {
				return &hubtest.Fault{CutAfter: 50_000}
			}
			return &hubtest.Fault{WrongRange: wrong}
		}
		c := newClient(t, h, nil)
		if _, err := get(c, ref(t, repoName), fetch.PlanOptions{}); err == nil {
			t.Fatal("no error")
		}
		if n := h.SentOf("w.bin"); n > 2_000_000 {
			t.Errorf("%d bytes came for a file of 100000", n)
		}
	}
}

// TestStorageSignsAnew: an address that the storage refuses is asked for
// again at the hub; refused for good, it is no matter of the token.
func TestStorageSignsAnew(t *testing.T) {
	for _, always := range []bool{false, true} {
		h := newHub(t)
		files := map[string][]byte{"w.bin": blob(50_000, 1)}
		h.Add(repoName, files)
		h.Fault = func(r hubtest.Request) *hubtest.Fault {
			if r.Kind == "storage" && (always || r.N == 0) {
				return &hubtest.Fault{Status: 403}
			}
			return nil
		}
		c := newClient(t, h, nil)
		res, err := get(c, ref(t, repoName), fetch.PlanOptions{})
		if always {
			is(t, err, fetch.ErrUnreachable, diag.IO)
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		sameTree(t, res.Path, files)
	}
}
