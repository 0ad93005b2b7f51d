package fetch_test

import (
	"encoding/binary"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/anepkg/anepkg/fetch"
	"github.com/anepkg/anepkg/fetch/hubtest"
)

// counter is a content of any size that is not held in memory: eight bytes at
// offset 8k are k, mixed.
type counter struct{}

func (counter) ReadAt(p []byte, off int64) (int, error) {
	var word [8]byte
	for i := 0; i < len(p); {
		at := off + int64(i)
		binary.LittleEndian.PutUint64(word[:], uint64(at/8)*0x9e3779b97f4a7c15)
		i += copy(p[i:], word[at%8:])
	}
	return len(p), nil
}

// TestMain lets the test binary be the process that TestKilled kills.
func TestMain(m *testing.M) {
	if url := os.Getenv("ANEPKG_FETCH_CHILD"); url != "" {
		c, err := fetch.New(fetch.Config{Endpoint: url, CacheDir: os.Getenv("ANEPKG_FETCH_CACHE")})
		if err == nil {
			_, err = get(c, fetch.Ref{Kind: fetch.Models, Repo: repoName}, fetch.PlanOptions{})
		}
		if err != nil {
			_, _ = os.Stderr.WriteString(err.Error() + "\n")
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// TestKilled kills a fetching process at random moments until it completes:
// the result is right, and no finished file is fetched again.
func TestKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("starts some dozens of processes")
	}
	h := newHub(t)
	files := packageFiles()
	for i := range 6 {
		files["m"+strconv.Itoa(i)+".mlmodelc/weights/weight.bin"] = blob(3_000_000, uint64(20+i))
	}
	h.Add(repoName, files)
	// Slow enough that kills hit every stage.
	h.SetFault(func(hubtest.Request) *hubtest.Fault { return &hubtest.Fault{Hang: 3 * time.Millisecond} })
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cache := filepath.Join(t.TempDir(), "hub")
	kills, rounds := 0, 0
	for kills < 50 {
		rounds++
		cmd := exec.Command(self)
		cmd.Env = append(os.Environ(), "ANEPKG_FETCH_CHILD="+h.URL, "ANEPKG_FETCH_CACHE="+cache)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		timer := time.AfterFunc(time.Duration(5+rand.IntN(120))*time.Millisecond, func() { _ = cmd.Process.Kill() })
		err := cmd.Wait()
		timer.Stop()
		if err == nil { // complete before the kill: check and start over
			checkKilled(t, h, cache, files)
			continue
		}
		kills++
	}
	c := newClient(t, h, func(cfg *fetch.Config) { cfg.CacheDir = cache })
	mustGet(t, c, ref(t, repoName), fetch.PlanOptions{})
	checkKilled(t, h, cache, files)
	t.Logf("%d kills in %d runs", kills, rounds)
}

func checkKilled(t *testing.T, h *hubtest.Hub, cache string, files map[string][]byte) {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(cache, "models--org--pkg", "snapshots", "*"))
	if err != nil || len(found) != 1 {
		t.Fatalf("snapshots: %v, %v", found, err)
	}
	sameTree(t, found[0], files)
	if refs, _ := os.ReadDir(filepath.Join(cache, "models--org--pkg", "refs")); len(refs) > 1 {
		t.Errorf("refs holds %v", refs)
	}
	if err := os.RemoveAll(cache); err != nil {
		t.Fatal(err)
	}
	h.Forget()
}

// BenchmarkDownload measures a large file over loopback, hashed and synced.
func BenchmarkDownload(b *testing.B) {
	const size = 2 << 30
	h := newHub(b)
	h.AddContent(repoName, map[string]hubtest.Content{"w.bin": {Size: size, At: counter{}}})
	b.SetBytes(size)
	for b.Loop() {
		dir := b.TempDir()
		c := newClient(b, h, func(cfg *fetch.Config) { cfg.CacheDir = dir })
		mustGet(b, c, ref(b, repoName), fetch.PlanOptions{})
		if err := os.RemoveAll(dir); err != nil {
			b.Fatal(err)
		}
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	b.ReportMetric(float64(m.Sys)/(1<<20), "MB-from-system")
}
