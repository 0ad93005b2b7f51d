package fetch_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/fetch"
	"github.com/anepkg/anepkg/fetch/hubtest"
)

// damage flips a byte in the middle of a file.
func damage(t *testing.T, name string) {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)/2] ^= 1
	if err := os.WriteFile(name, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestVerifyAndRepair(t *testing.T) {
	for _, mode := range []string{"links", "copies", "dir"} {
		t.Run(mode, func(t *testing.T) {
			h := newHub(t)
			files := packageFiles()
			h.Add(repoName, files)
			c := newClient(t, h, func(cfg *fetch.Config) { cfg.DisableSymlinks = mode == "copies" })
			opts := fetch.PlanOptions{}
			if mode == "dir" {
				opts.To = t.TempDir()
			}
			res := mustGet(t, c, ref(t, repoName), opts)
			damage(t, filepath.Join(res.Path, filepath.FromSlash(weightPath)))
			damage(t, filepath.Join(res.Path, "config.json"))
			if mode != "dir" {
				ca, err := fetch.OpenCache(c.CacheDir())
				if err != nil {
					t.Fatal(err)
				}
				checks, err := ca.Verify(t.Context(), nil, nil)
				if err != nil || len(checks) != len(files) || fetch.Faults(checks) != 2 {
					t.Errorf("%d checks, %d faults, %v", len(checks), fetch.Faults(checks), err)
				}
			}
			p, err := c.Plan(t.Context(), ref(t, repoName), opts)
			if err != nil {
				t.Fatal(err)
			}
			h.Forget()
			fixed, checks, err := c.Repair(t.Context(), p, nil)
			if err != nil {
				t.Fatal(err)
			}
			if fetch.Faults(checks) != 2 || diag.CodeOf(fetch.ErrorOf(checks)) != diag.Mismatch {
				t.Errorf("%d faults: %v", fetch.Faults(checks), fetch.ErrorOf(checks))
			}
			sameTree(t, res.Path, files)
			if want := int64(len(files[weightPath]) + len(files["config.json"])); fixed.Downloaded != want {
				t.Errorf("repair fetched %d bytes, want %d", fixed.Downloaded, want)
			}
		})
	}
}

func TestLockFile(t *testing.T) {
	h := newHub(t)
	files := packageFiles()
	commit := h.Add(repoName, files)
	c := newClient(t, h, nil)
	res := mustGet(t, c, ref(t, repoName), fetch.PlanOptions{Selection: fetch.Selection{Exclude: []string{"*.txt"}}})
	var buf bytes.Buffer
	if err := res.Lock().Write(&buf); err != nil {
		t.Fatal(err)
	}
	text := buf.String()
	changed := packageFiles()
	changed["config.json"] = []byte("{}")
	h.Add(repoName, changed) // main has moved on; the lock file names the old commit
	lock, err := fetch.ReadLock(strings.NewReader(text), "x.lock")
	if err != nil {
		t.Fatal(err)
	}
	fresh := newClient(t, h, nil)
	dir := t.TempDir()
	p, err := fresh.PlanLock(t.Context(), lock, dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fresh.Download(t.Context(), p, nil); err != nil {
		t.Fatal(err)
	}
	delete(files, "empty.txt")
	sameTree(t, dir, files)

	cases := []struct{ name, old, new string }{
		{"hash of an LFS file", sha(files[weightPath]), strings.Repeat("0", 64)},
		{"hash of a git file", sha(files["config.json"]), strings.Repeat("0", 64)},
		{"name", `"config.json"`, `"config2.json"`},
		{"size", `"bytes": 40000`, `"bytes": 40001`},
	}
	for _, tc := range cases {
		if !strings.Contains(text, tc.old) {
			t.Fatalf("%s: %q is not in the lock file", tc.name, tc.old)
		}
		l, err := fetch.ReadLock(strings.NewReader(strings.ReplaceAll(text, tc.old, tc.new)), "x.lock")
		if err != nil {
			t.Fatal(err)
		}
		p, err := fresh.PlanLock(t.Context(), l, t.TempDir())
		if err == nil {
			_, err = fresh.Download(t.Context(), p, nil)
		}
		is(t, err, nil, diag.Mismatch)
	}
	for _, bad := range []string{"", "{}", `{"schema":"anepkg.lock/2"}`, strings.Replace(text, commit, "main", 1), strings.Replace(text, `"meta.yaml"`, `"../x"`, 1)} {
		if _, err := fetch.ReadLock(strings.NewReader(bad), "x.lock"); diag.CodeOf(err) == "" {
			t.Errorf("%.60q: %v", bad, err)
		}
	}
}

func TestCacheRemoveAndPrune(t *testing.T) {
	h := newHub(t)
	old := packageFiles()
	first := h.Add(repoName, old)
	c := newClient(t, h, nil)
	mustGet(t, c, ref(t, repoName), fetch.PlanOptions{})
	changed := packageFiles()
	changed["config.json"] = []byte(`{"model_type":"y"}`)
	changed["new.bin"] = blob(5000, 6)
	second := h.Add(repoName, changed)
	mustGet(t, c, ref(t, repoName), fetch.PlanOptions{})
	h.Add("org/other", map[string][]byte{"x.bin": blob(100, 7)})
	mustGet(t, c, ref(t, "org/other"), fetch.PlanOptions{})
	ca, err := fetch.OpenCache(c.CacheDir())
	if err != nil {
		t.Fatal(err)
	}
	repos, err := ca.List(t.Context())
	if err != nil || len(repos) != 2 {
		t.Fatalf("%d repositories, %v", len(repos), err)
	}
	for _, r := range repos {
		if r.Repo == repoName && (len(r.Snapshots) != 2 || r.Refs["main"] != second || r.Unused != 0) {
			t.Errorf("listed: %+v", r)
		}
	}
	partial := filepath.Join(c.CacheDir(), "models--org--pkg", "blobs", strings.Repeat("ab", 32)+".anepkg-partial")
	if err := os.WriteFile(partial, blob(100, 1), 0o644); err != nil {
		t.Fatal(err)
	}
	if rm, err := ca.Prune(t.Context(), fetch.PruneOptions{}); err != nil || rm.Bytes != 0 {
		t.Errorf("nothing to prune, got %+v, %v", rm, err)
	}
	dry, err := ca.Prune(t.Context(), fetch.PruneOptions{Detached: true, Partials: true, DryRun: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(partial); err != nil {
		t.Error("the dry run deleted the partial")
	}
	real, err := ca.Prune(t.Context(), fetch.PruneOptions{Detached: true, Partials: true})
	if err != nil {
		t.Fatal(err)
	}
	want := int64(100 + len(old["config.json"]))
	if dry.Bytes != want || real.Bytes != want {
		t.Errorf("dry run frees %d, prune %d, want %d", dry.Bytes, real.Bytes, want)
	}
	snap := filepath.Join(c.CacheDir(), "models--org--pkg", "snapshots")
	sameTree(t, filepath.Join(snap, second), changed)
	if _, err := os.Stat(filepath.Join(snap, first)); err == nil {
		t.Error("the detached snapshot is still there")
	}
	if _, err := ca.Remove(t.Context(), ref(t, "org/pkt"), false); diag.CodeOf(err) != diag.NotFound || !strings.Contains(hintOf(err), repoName) {
		t.Errorf("%v, hint %q", err, hintOf(err))
	}
	if _, err := ca.Remove(t.Context(), ref(t, repoName+"@main"), false); err != nil {
		t.Error(err)
	}
	if repos, _ := ca.List(t.Context()); len(repos) != 2 || repos[1].Bytes != 0 {
		t.Errorf("after removing the only revision: %+v", repos)
	}
	if _, err := ca.Remove(t.Context(), ref(t, "org/other"), false); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(c.CacheDir(), "models--org--other")); err == nil {
		t.Error("org/other is still there")
	}
}

// TestPruneWhileFetching never takes a content that a download needs.
func TestPruneWhileFetching(t *testing.T) {
	h := newHub(t)
	files := packageFiles()
	h.Add(repoName, files)
	c := newClient(t, h, nil)
	ca, err := fetch.OpenCache(c.CacheDir())
	if err != nil {
		t.Fatal(err)
	}
	stop, done := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			select {
			case <-stop:
				done <- nil
				return
			default:
			}
			if _, err := ca.Prune(t.Context(), fetch.PruneOptions{Partials: true}); err != nil {
				done <- err
				return
			}
		}
	}()
	for range 5 {
		res := mustGet(t, c, ref(t, repoName), fetch.PlanOptions{})
		sameTree(t, res.Path, files)
		if _, err := ca.Remove(t.Context(), ref(t, repoName), false); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestRemoveWhileFetching leaves a repository alone that is being fetched.
func TestRemoveWhileFetching(t *testing.T) {
	h := newHub(t)
	files := packageFiles()
	h.Add(repoName, files)
	h.SetFault(func(r hubtest.Request) *hubtest.Fault {
		if r.Kind == "storage" {
			return &hubtest.Fault{Hang: 300 * time.Millisecond}
		}
		return nil
	})
	c := newClient(t, h, nil)
	ca, err := fetch.OpenCache(c.CacheDir())
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	var res *fetch.Result
	go func() {
		var err error
		res, err = get(c, ref(t, repoName), fetch.PlanOptions{})
		done <- err
	}()
	var out *fetch.Removal
	for range 100 { // until the transfer holds a lock
		time.Sleep(5 * time.Millisecond)
		if out, err = ca.Remove(t.Context(), ref(t, repoName), true); err == nil && len(out.Busy) > 0 {
			break
		}
	}
	if err != nil || len(out.Busy) == 0 {
		t.Fatalf("never busy: %+v, %v", out, err)
	}
	if out, err = ca.Remove(t.Context(), ref(t, repoName), false); err != nil || len(out.Busy) == 0 || len(out.Paths) != 0 {
		t.Errorf("removed: %+v, %v", out, err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	sameTree(t, res.Path, files)
}
