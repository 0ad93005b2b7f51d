package fetch_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/fetch"
)

func TestParseRef(t *testing.T) {
	m := func(repo, rev, sub string) fetch.Ref {
		return fetch.Ref{Kind: fetch.Models, Repo: repo, Revision: rev, Sub: sub}
	}
	cases := []struct {
		in   string
		want fetch.Ref
	}{
		{"org/name", m("org/name", "", "")},
		{"org/name/", m("org/name", "", "")},
		{"org/name@v1.0", m("org/name", "v1.0", "")},
		{"org/name@feature%2Fx/sub/dir", m("org/name", "feature/x", "sub/dir")},
		{"org/name@refs/pr/3", m("org/name", "refs/pr/3", "")},
		{"org/name@refs/pr/3/sub", m("org/name", "refs/pr/3", "sub")},
		{"org/name/sub dir/a.mlmodelc", m("org/name", "", "sub dir/a.mlmodelc")},
		{"hf://org/name@main/x", m("org/name", "main", "x")},
		{"hf://models/org/name", m("org/name", "", "")},
		{"hf://datasets/org/name", fetch.Ref{Kind: fetch.Datasets, Repo: "org/name"}},
		{"https://huggingface.co/org/name", m("org/name", "", "")},
		{"https://hf.co/org/name/tree/main", m("org/name", "main", "")},
		{"https://huggingface.co/org/name/tree/v%2F1/sub/a%20b?x=1#y", m("org/name", "v/1", "sub/a b")},
		{"https://huggingface.co/org/name/blob/main/meta.yaml", m("org/name", "main", "meta.yaml")},
		{"https://huggingface.co/org/name/resolve/refs/pr/1/m.bin", m("org/name", "refs/pr/1", "m.bin")},
		{"https://huggingface.co/datasets/org/name/tree/main/d", fetch.Ref{Kind: fetch.Datasets, Repo: "org/name", Revision: "main", Sub: "d"}},
		{"https://mirror.example/hub/org/name", m("org/name", "", "")},
	}
	for _, tc := range cases {
		got, err := fetch.ParseRef(tc.in, "https://mirror.example/hub")
		if err != nil || got != tc.want {
			t.Errorf("%s: %+v, %v; want %+v", tc.in, got, err, tc.want)
			continue
		}
		if again, err := fetch.ParseRef(got.String(), ""); err != nil || again != got {
			t.Errorf("%s: printed as %s, read back as %+v, %v", tc.in, got, again, err)
		}
	}
	bad := []string{"", "name", "/name", "org/", "org/name@", "org/../x", "org/name/../x", "org/name@../x", "org/na--me", "org/name@a%2F..%2Fb", "org/.git", "-o/n!",
		"https://other.example/org/name", "https://huggingface.co/org", "https://huggingface.co/org/name/discussions/1", "https://user:pw@huggingface.co.evil.example/org/name",
		"org/name/\x00", "org/name@" + string(make([]byte, 300)), "org/name@%zz"}
	for _, in := range bad {
		if got, err := fetch.ParseRef(in, ""); diag.CodeOf(err) != diag.Usage || hintOf(err) == "" {
			t.Errorf("%q: %+v, %v", in, got, err)
		}
	}
}

func FuzzParseRef(f *testing.F) {
	for _, s := range []string{"org/name", "org/name@refs/pr/3/sub", "hf://datasets/org/name", "https://huggingface.co/org/name/tree/v%2F1/s"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r, err := fetch.ParseRef(s, "")
		if err != nil {
			return
		}
		if again, err := fetch.ParseRef(r.String(), ""); err != nil || again != r {
			t.Errorf("%q: printed as %q, read back as %+v, %v", s, r, again, err)
		}
	})
}

func TestConfigFromEnv(t *testing.T) {
	home := t.TempDir()
	write := func(name, text string) string {
		p := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return p
	}
	write(".cache/huggingface/token", "hf_file\n")
	other := write("elsewhere", " hf_other\r\n")
	hub := filepath.Join(home, ".cache", "huggingface", "hub")
	cases := []struct {
		name string
		env  map[string]string
		want fetch.Config
	}{
		{"nothing set", nil, fetch.Config{Token: "hf_file", CacheDir: hub}},
		{"token", map[string]string{"HF_TOKEN": " hf_env\n", "HUGGING_FACE_HUB_TOKEN": "old"}, fetch.Config{Token: "hf_env", CacheDir: hub}},
		{"old token", map[string]string{"HUGGING_FACE_HUB_TOKEN": "old"}, fetch.Config{Token: "old", CacheDir: hub}},
		{"token path", map[string]string{"HF_TOKEN_PATH": other}, fetch.Config{Token: "hf_other", CacheDir: hub}},
		{"no implicit token", map[string]string{"HF_TOKEN": "x", "HF_HUB_DISABLE_IMPLICIT_TOKEN": "1"}, fetch.Config{CacheDir: hub}},
		{"HF_HOME", map[string]string{"HF_HOME": "~/hf"}, fetch.Config{CacheDir: filepath.Join(home, "hf", "hub")}},
		{"XDG", map[string]string{"XDG_CACHE_HOME": "$BASE/c", "BASE": home}, fetch.Config{CacheDir: filepath.Join(home, "c", "huggingface", "hub")}},
		{"cache", map[string]string{"HF_HUB_CACHE": "/c", "HUGGINGFACE_HUB_CACHE": "/d"}, fetch.Config{Token: "hf_file", CacheDir: filepath.Clean("/c")}},
		{"old cache", map[string]string{"HUGGINGFACE_HUB_CACHE": "/d"}, fetch.Config{Token: "hf_file", CacheDir: filepath.Clean("/d")}},
		{"offline", map[string]string{"TRANSFORMERS_OFFLINE": "yes"}, fetch.Config{Token: "hf_file", CacheDir: hub, Offline: true}},
		{"offline said no", map[string]string{"HF_HUB_OFFLINE": "0", "TRANSFORMERS_OFFLINE": "1"}, fetch.Config{Token: "hf_file", CacheDir: hub}},
		{"times", map[string]string{"HF_HUB_ETAG_TIMEOUT": "3", "HF_HUB_DOWNLOAD_TIMEOUT": "60"}, fetch.Config{Token: "hf_file", CacheDir: hub, MetaTimeout: 3 * time.Second, StallTimeout: time.Minute}},
		{"endpoint", map[string]string{"HF_ENDPOINT": "http://h/", "HF_HUB_DISABLE_SYMLINKS": "true"}, fetch.Config{Token: "hf_file", CacheDir: hub, Endpoint: "http://h/", DisableSymlinks: true}},
	}
	for _, tc := range cases {
		got, err := fetch.ConfigFromEnv(func(n string) string { return tc.env[n] }, home)
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
			continue
		}
		if got.Token != tc.want.Token || got.CacheDir != tc.want.CacheDir || got.Offline != tc.want.Offline || got.Endpoint != tc.want.Endpoint ||
			got.MetaTimeout != tc.want.MetaTimeout || got.StallTimeout != tc.want.StallTimeout || got.DisableSymlinks != tc.want.DisableSymlinks || got.Proxy == nil {
			t.Errorf("%s: got %+v, want %+v", tc.name, got, tc.want)
		}
	}
	if _, err := fetch.ConfigFromEnv(func(n string) string { return map[string]string{"HF_HUB_ETAG_TIMEOUT": "ten"}[n] }, home); diag.CodeOf(err) != diag.Usage {
		t.Errorf("HF_HUB_ETAG_TIMEOUT=ten: %v", err)
	}
	for _, cfg := range []fetch.Config{{Endpoint: "ftp://x"}, {Endpoint: "://"}, {Token: "a\nb"}} {
		if _, err := fetch.New(cfg); diag.CodeOf(err) != diag.Usage {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
}

// TestEndpointKeepsItsPassword: an endpoint that cannot be used is named
// without what it holds of secrets.
func TestEndpointKeepsItsPassword(t *testing.T) {
	for _, e := range []string{"user:PASSWD@127.0.0.1:1", "ftp://user:PASSWD@host", "user:PASSWD@", "//u:PASSWD@h?key=PASSWD"} {
		if _, err := fetch.New(fetch.Config{Endpoint: e}); err == nil || strings.Contains(err.Error(), "PASSWD") {
			t.Errorf("%s: %v", e, err)
		}
	}
}
