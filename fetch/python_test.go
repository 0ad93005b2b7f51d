package fetch_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anepkg/anepkg/fetch"
	"github.com/anepkg/anepkg/fetch/hubtest"
)

// needPython skips the test when there is no python3 with huggingface_hub.
func needPython(t *testing.T) string {
	t.Helper()
	exe, err := exec.LookPath("python3")
	if err == nil {
		err = exec.Command(exe, "-c", "import huggingface_hub").Run()
	}
	if err != nil {
		t.Skip("python3 with huggingface_hub is not installed")
	}
	return exe
}

// python runs a program against the fake hub with huggingface_hub, or skips
// when that is not installed.
func python(t *testing.T, h *hubtest.Hub, cache, program string) string {
	t.Helper()
	exe := needPython(t)
	cmd := exec.Command(exe, "-c", program)
	cmd.Env = append(os.Environ(), "HF_ENDPOINT="+h.URL, "HF_HUB_CACHE="+cache, "HF_HOME="+filepath.Dir(cache),
		"HF_HUB_DISABLE_XET=1", "HF_HUB_DISABLE_TELEMETRY=1", "HF_HUB_DISABLE_PROGRESS_BARS=1", "HF_HUB_OFFLINE=0", "HF_TOKEN=")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("python: %v\n%s", err, stderr.String())
	}
	return strings.TrimSpace(string(out))
}

const snapshot = `from huggingface_hub import snapshot_download
print(snapshot_download("org/pkg"))`

// TestPythonReadsOurs: huggingface_hub finds everything that we fetched.
func TestPythonReadsOurs(t *testing.T) {
	h := newHub(t)
	files := packageFiles()
	h.Add(repoName, files)
	c := newClient(t, h, nil)
	res := mustGet(t, c, ref(t, repoName), fetch.PlanOptions{})
	h.Forget()
	got := python(t, h, c.CacheDir(), snapshot)
	if want, _ := filepath.EvalSymlinks(res.Path); got != res.Path && got != want {
		t.Errorf("python says %s, we say %s", got, res.Path)
	}
	sameTree(t, got, files)
	for _, s := range h.Seen() {
		if s.Method == "GET" && s.Server == "storage" {
			t.Errorf("python fetched %s again", s.Path)
		}
	}
	listed := python(t, h, c.CacheDir(), `from huggingface_hub import scan_cache_dir
i = scan_cache_dir()
r = list(i.repos)[0]
print(len(i.warnings), r.repo_id, r.nb_files, sorted(r.refs))`)
	if listed != "0 org/pkg 7 ['main']" {
		t.Errorf("scan_cache_dir: %s", listed)
	}
}

// TestWeReadPythons: we find everything that huggingface_hub fetched.
func TestWeReadPythons(t *testing.T) {
	h := newHub(t)
	files := packageFiles()
	h.Add(repoName, files)
	c := newClient(t, h, nil)
	got := python(t, h, c.CacheDir(), snapshot)
	sameTree(t, got, files)
	h.Forget()
	res := mustGet(t, c, ref(t, repoName), fetch.PlanOptions{})
	if res.Downloaded != 0 {
		t.Errorf("%d bytes came again", res.Downloaded)
	}
	sameTree(t, res.Path, files)
	ca, err := fetch.OpenCache(c.CacheDir())
	if err != nil {
		t.Fatal(err)
	}
	if checks, err := ca.Verify(t.Context(), nil, nil); err != nil || fetch.Faults(checks) != 0 || len(checks) != len(files) {
		t.Errorf("%d checks, %d faults, %v", len(checks), fetch.Faults(checks), err)
	}
	off := newClient(t, h, func(cfg *fetch.Config) { cfg.CacheDir, cfg.Offline = c.CacheDir(), true })
	sameTree(t, mustGet(t, off, ref(t, repoName), fetch.PlanOptions{}).Path, files)
}

// TestPythonAtTheSameTime: both fetch into one cache; every content comes once.
func TestPythonAtTheSameTime(t *testing.T) {
	needPython(t) // before the other fetch starts
	h := newHub(t)
	files := packageFiles()
	files["big.bin"] = blob(20<<20, 12)
	h.Add(repoName, files)
	c := newClient(t, h, nil)
	done := make(chan error, 1)
	go func() {
		_, err := get(c, ref(t, repoName), fetch.PlanOptions{})
		done <- err
	}()
	sameTree(t, python(t, h, c.CacheDir(), snapshot), files)
	if err := <-done; err != nil {
		t.Error(err)
	}
	if sent := h.SentOf("big.bin"); sent != 20<<20 {
		t.Errorf("%d bytes were sent for a file of %d", sent, 20<<20)
	}
}

// TestPythonLocalDir: both know each other's records of a plain folder.
func TestPythonLocalDir(t *testing.T) {
	h := newHub(t)
	files := packageFiles()
	h.Add(repoName, files)
	c := newClient(t, h, nil)
	dir := t.TempDir()
	mustGet(t, c, ref(t, repoName), fetch.PlanOptions{To: dir})
	h.Forget()
	python(t, h, c.CacheDir(), `from huggingface_hub import snapshot_download
snapshot_download("org/pkg", local_dir=r"`+dir+`")`)
	if sent := h.SentOf(weightPath); sent != 0 {
		t.Errorf("python fetched %d bytes again", sent)
	}
	other := t.TempDir()
	python(t, h, c.CacheDir(), `from huggingface_hub import snapshot_download
snapshot_download("org/pkg", local_dir=r"`+other+`")`)
	if res := mustGet(t, c, ref(t, repoName), fetch.PlanOptions{To: other}); res.Downloaded != 0 {
		t.Errorf("we fetched %d bytes again", res.Downloaded)
	}
	sameTree(t, other, files)
}
