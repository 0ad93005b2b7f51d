package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/anepkg/anepkg/fetch/hubtest"
)

// hubCommand runs the command against a hub of our own.
type hubCommand struct {
	t   *testing.T
	hub *hubtest.Hub
	env map[string]string
}

func newHubCommand(t *testing.T) *hubCommand {
	t.Helper()
	hub := hubtest.New()
	t.Cleanup(hub.Close)
	hub.LFSFrom = 64 << 10
	if _, err := hub.AddFS("org/demo", demoPackage()); err != nil {
		t.Fatal(err)
	}
	return &hubCommand{t, hub, map[string]string{"HF_ENDPOINT": hub.URL, "HF_HUB_CACHE": filepath.Join(t.TempDir(), "hub"), "HOME": t.TempDir()}}
}

func (h *hubCommand) run(args ...string) (status int, stdout, stderr string) {
	var out, errs bytes.Buffer
	status = run(h.t.Context(), args, strings.NewReader(""), &out, &errs, func(k string) string { return h.env[k] })
	return status, out.String(), errs.String()
}

// ok runs a command that must succeed and returns its output.
func (h *hubCommand) ok(args ...string) string {
	h.t.Helper()
	status, stdout, stderr := h.run(args...)
	if status != exitOK {
		h.t.Fatalf("%v: status %d\n%s%s", args, status, stdout, stderr)
	}
	return stdout
}

// decode reads a JSON output into a map.
func decode(t *testing.T, text string) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return v
}

// TestRemoteJudging: a repository is described and judged without its
// weights.
func TestRemoteJudging(t *testing.T) {
	h := newHubCommand(t)
	for _, args := range [][]string{
		{"inspect", "org/demo"}, {"states", "org/demo"}, {"layers", "hf://org/demo"}, {"validate", "--fast", "org/demo"},
		{"mil", "org/demo", "--part", "lm_head", "--ops"}, {"weights", "org/demo"}, {"tokenize", "org/demo", "a robot"},
	} {
		if out := h.ok(args...); out == "" {
			t.Errorf("%v prints nothing", args)
		}
	}
	for _, s := range h.hub.Seen() {
		if strings.HasSuffix(s.Path, "weight.bin") && s.Sent > 4<<10 {
			t.Errorf("%s %s: %d bytes of weights were read", s.Method, s.Path, s.Sent)
		}
	}
	err := filepath.WalkDir(h.env["HF_HUB_CACHE"], func(p string, _ fs.DirEntry, err error) error {
		if err == nil && strings.Contains(filepath.ToSlash(p), "/snapshots/") && strings.HasSuffix(p, "weight.bin") {
			t.Errorf("judging kept %s in the cache", p)
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

func TestFetchCommand(t *testing.T) {
	h := newHubCommand(t)
	dry := decode(t, h.ok("fetch", "org/demo", "--dry-run", "--json"))
	if dry["schema"] != "anepkg.fetch/1" || dry["dry_run"] != true || len(dry["files"].([]any)) < 10 || dry["bytes_reused"] != 0.0 {
		t.Errorf("dry run: %v", dry)
	}
	lock := filepath.Join(t.TempDir(), "demo.lock")
	first := decode(t, h.ok("fetch", "org/demo", "--json", "--lock", lock))
	for _, key := range []string{"repo", "revision", "commit", "path", "files", "bytes_downloaded", "bytes_reused"} {
		if _, ok := first[key]; !ok {
			t.Errorf("fetch --json lacks %s", key)
		}
	}
	path := strings.TrimSpace(h.ok("pull", "org/demo", "-q"))
	if path != first["path"] {
		t.Errorf("the path is %q, before %q", path, first["path"])
	}
	if again := decode(t, h.ok("fetch", "--lock", lock, "--json")); again["bytes_downloaded"] != 0.0 || again["commit"] != first["commit"] {
		t.Errorf("from the lock file: %v", again)
	}
	h.ok("validate", path)
	if got := h.ok("run", "org/demo", "-p", "What is a KV cache?", "-n", "5", "--offline"); !strings.HasPrefix(got, "A KV cache") {
		t.Errorf("run says %q", got)
	}
	dir := filepath.Join(t.TempDir(), "plain")
	h.ok("fetch", "org/demo", "--to", dir, "--without", "weights")
	if _, err := os.Stat(filepath.Join(dir, "meta.yaml")); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "qwen_embeddings.mlmodelc", "weights", "weight.bin")); err == nil {
		t.Error("weights are there although they were left out")
	}
}

func TestCacheCommand(t *testing.T) {
	h := newHubCommand(t)
	path := strings.TrimSpace(h.ok("fetch", "org/demo", "-q"))
	if list := decode(t, h.ok("cache", "ls", "--json")); len(list["repos"].([]any)) != 1 {
		t.Errorf("ls: %v", list)
	}
	h.ok("cache", "verify")
	blob, err := filepath.EvalSymlinks(filepath.Join(path, "meta.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(blob, []byte("wrong"), 0o600); err != nil {
		t.Fatal(err)
	}
	if status, out, _ := h.run("cache", "verify"); status != exitFindings || !strings.Contains(out, "corrupt") {
		t.Errorf("verify: status %d, %s", status, out)
	}
	h.ok("fetch", "org/demo", "--repair")
	h.ok("cache", "verify", "org/demo")
	if out := h.ok("cache", "rm", "org/demo", "--dry-run"); !strings.Contains(out, "would be freed") {
		t.Errorf("rm --dry-run: %s", out)
	}
	h.ok("cache", "prune")
	h.ok("cache", "rm", "org/demo")
	if list := decode(t, h.ok("cache", "ls", "--json")); len(list["repos"].([]any)) != 0 {
		t.Errorf("after rm: %v", list)
	}
	for _, args := range [][]string{{"cache"}, {"cache", "list"}, {"cache", "rm"}, {"fetch"}, {"fetch", "a", "b"}, {"fetch", "org/demo", "--without", "x"}} {
		if status, _, _ := h.run(args...); status != exitUsage {
			t.Errorf("%v: status %d, want %d", args, status, exitUsage)
		}
	}
}

func TestHubErrors(t *testing.T) {
	h := newHubCommand(t)
	if _, err := h.hub.AddFS("org/gated", demoPackage()); err != nil {
		t.Fatal(err)
	}
	h.hub.Restrict("org/gated", true, false)
	tests := []struct {
		args   []string
		status int
	}{
		{[]string{"inspect", "org/gated"}, 4},
		{[]string{"fetch", "org/gated"}, 4},
		{[]string{"inspect", "org/demi"}, 4}, // the hub does not tell absent from private
		{[]string{"inspect", "org/demo@nowhere"}, 3},
		{[]string{"fetch", "org/demo", "--offline"}, 3},
		{[]string{"run", "org/none", "-p", "x"}, 4},
	}
	for _, tc := range tests {
		status, out, stderr := h.run(append(tc.args, "--json")...)
		e, _ := decode(t, out)["error"].(map[string]any)
		if status != tc.status || e == nil || e["message"] == "" {
			t.Errorf("%v: status %d, want %d\n%s%s", tc.args, status, tc.status, out, stderr)
		}
	}
}

// TestTokenIsNeverPrinted: also where a server sends it back.
func TestTokenIsNeverPrinted(t *testing.T) {
	h := newHubCommand(t)
	const token = "hf_averysecrettoken"
	h.env["HF_TOKEN"] = token
	h.hub.SetFault(func(hubtest.Request) *hubtest.Fault {
		return &hubtest.Fault{Status: 401, Header: http.Header{"X-Error-Message": {"Invalid credentials Bearer " + token}}}
	})
	for _, args := range [][]string{{"fetch", "org/demo"}, {"fetch", "org/demo", "--json"}, {"inspect", "org/demo", "-v"}, {"doctor"}} {
		_, out, stderr := h.run(args...)
		if strings.Contains(out+stderr, token) {
			t.Errorf("%v prints the token:\n%s%s", args, out, stderr)
		}
	}
}

// TestRemoteModel judges one model of a repository, named as fetch takes it.
func TestRemoteModel(t *testing.T) {
	h := newHubCommand(t)
	models, err := fs.Glob(demoPackage(), "*.mlmodelc")
	if err != nil || len(models) == 0 {
		t.Fatalf("%v, %v", models, err)
	}
	local := filepath.Join(t.TempDir(), "demo")
	if err := os.CopyFS(local, demoPackage()); err != nil {
		t.Fatal(err)
	}
	for _, m := range models {
		got, want := decode(t, h.ok("inspect", "org/demo/"+m, "--json")), decode(t, h.ok("inspect", filepath.Join(local, m), "--json"))
		if !reflect.DeepEqual(got["parts"], want["parts"]) || got["parts"] == nil {
			t.Errorf("%s: the parts differ: %v, want %v", m, got["parts"], want["parts"])
		}
	}
	if n := h.hub.SentOf("weight.bin"); n > 4096 {
		t.Errorf("%d bytes of weights came", n)
	}
}

// TestLockOfAnotherRevision: what is named beside a lock file must be what it
// is of.
func TestLockOfAnotherRevision(t *testing.T) {
	h := newHubCommand(t)
	lock := filepath.Join(t.TempDir(), "l.lock")
	h.ok("fetch", "org/demo", "--lock", lock)
	h.ok("fetch", "org/demo@main", "--lock", lock)
	status, _, stderr := h.run("fetch", "org/demo@v9", "--lock", lock)
	if status == exitOK || !strings.Contains(stderr, "revision") || !strings.Contains(stderr, "l.lock") {
		t.Errorf("status %d: %s", status, stderr)
	}
}
