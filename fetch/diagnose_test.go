package fetch_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/fetch"
	"github.com/anepkg/anepkg/fetch/hubtest"
)

const secret = "hf_verysecret"

// TestDiagnosis checks that each trouble has its own kind and class.
func TestDiagnosis(t *testing.T) {
	page := []byte("<!DOCTYPE html><html><body>Please log in</body></html>")
	always := func(kind string, f hubtest.Fault) func(h *hubtest.Hub) {
		return func(h *hubtest.Hub) {
			h.Fault = func(r hubtest.Request) *hubtest.Fault {
				if r.Kind == kind {
					return &f
				}
				return nil
			}
		}
	}
	gate := func(a hubtest.Access) func(*hubtest.Hub) {
		return func(h *hubtest.Hub) {
			h.Tokens = map[string]hubtest.Access{secret: a}
			h.Restrict(repoName, true, false)
		}
	}
	cases := []struct {
		name  string
		ref   string
		token string
		setup func(*hubtest.Hub)
		kind  error
		code  diag.Code
		hint  string
	}{
		{"no repository, no token", "org/other", "", nil, fetch.ErrNoToken, diag.Auth, "HF_TOKEN"},
		{"no repository, token", "org/other", secret, nil, fetch.ErrRepoNotFound, diag.NotFound, "spelling"},
		{"no revision", repoName + "@v9", "", nil, fetch.ErrRevisionNotFound, diag.NotFound, "branch"},
		{"no commit", repoName + "@" + strings.Repeat("a", 40), "", nil, fetch.ErrRevisionNotFound, diag.NotFound, "branch"},
		{"no folder", repoName + "/a.mlmodel", "", nil, fetch.ErrFileNotFound, diag.NotFound, "did you mean a.mlmodelc?"},
		{"private", repoName, "", func(h *hubtest.Hub) { h.Restrict(repoName, false, true) }, fetch.ErrNoToken, diag.Auth, "HF_TOKEN"},
		{"gated, no token", repoName, "", gate(hubtest.Granted), fetch.ErrNoToken, diag.Auth, "accept the terms"},
		{"gated, not accepted", repoName, secret, gate(hubtest.None), fetch.ErrNotAccepted, diag.Auth, "accept the terms"},
		{"gated, pending", repoName, secret, gate(hubtest.Pending), fetch.ErrPending, diag.Auth, "see "},
		{"gated, denied", repoName, secret, gate(hubtest.Rejected), fetch.ErrDenied, diag.Auth, "see "},
		{"wrong token", repoName, "hf_other", gate(hubtest.Granted), fetch.ErrBadToken, diag.Auth, "new token"},
		{"403", repoName, secret, always("content", hubtest.Fault{Status: 403}), fetch.ErrBadToken, diag.Auth, "right"},
		{"portal at the API", repoName, "", always("revision", hubtest.Fault{Status: 200, Body: page}), fetch.ErrHTML, diag.IO, "login page"},
		{"portal at a file", repoName, "", always("storage", hubtest.Fault{Status: 200, Body: page}), fetch.ErrHTML, diag.IO, "login page"},
		{"wrong bytes always", repoName, "", always("storage", hubtest.Fault{Content: blob(1_500_000, 66)}), nil, diag.IO, ""},
		{"truncated always", repoName, "", always("storage", hubtest.Fault{Status: 200, Body: []byte("x")}), fetch.ErrChanged, diag.IO, ""},
		{"listing changed", repoName, "", always("content", hubtest.Fault{ETag: strings.Repeat("1", 64)}), fetch.ErrChanged, diag.IO, ""},
		{"gzip always", repoName, "", always("content", hubtest.Fault{Gzip: true}), fetch.ErrChanged, diag.IO, ""},
		{"429 for an hour", repoName, "", always("tree", hubtest.Fault{Status: 429, Header: http.Header{"Retry-After": {"3600"}}}), fetch.ErrRateLimited, diag.IO, "token"},
		{"500 always", repoName, "", always("tree", hubtest.Fault{Status: 500}), fetch.ErrServer, diag.IO, "later"},
		{"redirect loop", repoName, "", always("revision", hubtest.Fault{Redirect: "/api/models/org/pkg/revision/main"}), nil, diag.IO, ""},
		{"redirect to a file", repoName, "", always("revision", hubtest.Fault{Redirect: "file:///etc/passwd"}), nil, diag.IO, ""},
		{"empty", "org/empty", "", func(h *hubtest.Hub) { h.Add("org/empty", nil) }, fetch.ErrEmpty, diag.NotFound, ""},
		{"silent", repoName, "", always("storage", hubtest.Fault{Hang: time.Minute}), fetch.ErrUnreachable, diag.IO, "HF_HUB_DOWNLOAD_TIMEOUT"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			h := newHub(t)
			h.Add(repoName, packageFiles())
			if tc.setup != nil {
				tc.setup(h)
			}
			c := newClient(t, h, func(cfg *fetch.Config) {
				cfg.Token, cfg.MetaTimeout, cfg.Tries = tc.token, 300*time.Millisecond, 3
			})
			_, err := get(c, ref(t, tc.ref), fetch.PlanOptions{})
			if err == nil {
				t.Fatal("no error")
			}
			if tc.kind != nil && !errors.Is(err, tc.kind) || diag.CodeOf(err) != tc.code {
				t.Errorf("%q: class %q, want %q and kind %v", err, diag.CodeOf(err), tc.code, tc.kind)
			}
			if !strings.Contains(hintOf(err), tc.hint) {
				t.Errorf("%q: hint %q, want %q in it", err, hintOf(err), tc.hint)
			}
			if text := err.Error() + hintOf(err); strings.Contains(text, secret) || strings.Contains(text, "key=") {
				t.Errorf("the error tells a secret: %s", text)
			}
			if len(tc.name) > 0 && tc.name != "wrong bytes always" {
				noFinal(t, c.CacheDir(), tc.name)
			}
		})
	}
}

// noFinal fails when the weight got its final name.
func noFinal(t *testing.T, cache, name string) {
	t.Helper()
	if found, _ := filepath.Glob(filepath.Join(cache, "models--org--pkg", "snapshots", "*", "a.mlmodelc", "weights", "weight.bin")); len(found) > 0 && name != "gzip always" {
		t.Errorf("%s is there", found[0])
	}
}

func TestWrongBytesNeverStay(t *testing.T) {
	h := newHub(t)
	h.Add(repoName, map[string][]byte{"w.bin": blob(100_000, 1)})
	h.Fault = func(r hubtest.Request) *hubtest.Fault {
		if r.Kind == "storage" {
			return &hubtest.Fault{Content: blob(100_000, 2)}
		}
		return nil
	}
	c := newClient(t, h, nil)
	_, err := get(c, ref(t, repoName), fetch.PlanOptions{})
	is(t, err, fetch.ErrDigest, diag.IO)
	if n := h.SentOf("w.bin"); n != 200_000 {
		t.Errorf("%d bytes came, want two tries of 100000", n)
	}
	if found, _ := filepath.Glob(filepath.Join(c.CacheDir(), "models--org--pkg", "blobs", "*")); len(found) != 1 {
		t.Errorf("in blobs: %v, want an empty partial", found)
	}
}

func TestOffline(t *testing.T) {
	h := newHub(t)
	files := packageFiles()
	h.Add(repoName, files)
	cache := filepath.Join(t.TempDir(), "hub")
	use := func(offline bool) *fetch.Client {
		return newClient(t, h, func(cfg *fetch.Config) { cfg.CacheDir, cfg.Offline = cache, offline })
	}
	_, err := get(use(true), ref(t, repoName), fetch.PlanOptions{})
	is(t, err, fetch.ErrOffline, diag.IO)
	mustGet(t, use(false), ref(t, repoName), fetch.PlanOptions{Selection: fetch.Selection{Include: []string{"*.json"}}})
	h.Forget()
	res := mustGet(t, use(true), ref(t, repoName), fetch.PlanOptions{Selection: fetch.Selection{Include: []string{"*.json"}}})
	if res.Reused == 0 || res.Downloaded != 0 {
		t.Errorf("reused %d, downloaded %d", res.Reused, res.Downloaded)
	}
	_, err = get(use(true), ref(t, repoName), fetch.PlanOptions{})
	is(t, err, fetch.ErrOffline, diag.IO)
	if seen := h.Seen(); len(seen) != 0 {
		t.Errorf("requests were made offline: %+v", seen)
	}
}

func TestUnreachable(t *testing.T) {
	c, err := fetch.New(fetch.Config{Endpoint: "http://127.0.0.1:1", CacheDir: t.TempDir(), Sleep: func(context.Context, time.Duration) error { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Resolve(t.Context(), ref(t, repoName))
	is(t, err, fetch.ErrUnreachable, diag.IO)
}

// TestDowngrade refuses a step from https to http.
func TestDowngrade(t *testing.T) {
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	s := httptest.NewTLSServer(http.RedirectHandler(plain.URL+"/x", http.StatusFound))
	defer s.Close()
	c, err := fetch.New(fetch.Config{Endpoint: s.URL, CacheDir: t.TempDir(), Transport: s.Client().Transport})
	if err != nil {
		t.Fatal(err)
	}
	if _, err = c.Resolve(t.Context(), ref(t, repoName)); err == nil || !strings.Contains(err.Error(), "https to http") {
		t.Errorf("error %v", err)
	}
}

// TestWaits checks that servers are obeyed and waiting is bounded.
func TestWaits(t *testing.T) {
	date := time.Now().Add(20 * time.Second).UTC().Format(http.TimeFormat)
	cases := []struct {
		name     string
		header   http.Header
		min, max time.Duration
	}{
		{"seconds", http.Header{"Retry-After": {"7"}}, 7 * time.Second, 7 * time.Second},
		{"date", http.Header{"Retry-After": {date}}, 15 * time.Second, 21 * time.Second},
		{"RateLimit", http.Header{"Ratelimit": {`"api";r=0;t=55`}}, 56 * time.Second, 56 * time.Second},
		{"RateLimit with rest", http.Header{"Ratelimit": {`"api";r=3;t=55`}}, 100 * time.Millisecond, time.Second},
		{"nothing", nil, 100 * time.Millisecond, time.Second},
		{"nonsense", http.Header{"Retry-After": {"soon"}, "Ratelimit": {`;;=;r=0;t=x`}}, 100 * time.Millisecond, time.Second},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			h := newHub(t)
			h.Add(repoName, packageFiles())
			h.Fault = func(r hubtest.Request) *hubtest.Fault {
				if r.Kind == "revision" && r.N == 0 {
					return &hubtest.Fault{Status: 429, Header: tc.header}
				}
				return nil
			}
			var waited []time.Duration
			c := newClient(t, h, func(cfg *fetch.Config) {
				cfg.Sleep = func(_ context.Context, d time.Duration) error {
					waited = append(waited, d)
					return nil
				}
			})
			if _, err := c.Resolve(t.Context(), ref(t, repoName)); err != nil {
				t.Fatal(err)
			}
			if len(waited) != 1 || waited[0] < tc.min || waited[0] > tc.max {
				t.Errorf("waited %v, want %v to %v", waited, tc.min, tc.max)
			}
		})
	}
}

func TestStatAndAbsent(t *testing.T) {
	h := newHub(t)
	files := packageFiles()
	commit := h.Add(repoName, files)
	c := newClient(t, h, nil)
	r, f, err := c.Stat(t.Context(), ref(t, repoName), weightPath)
	if err != nil || r.Commit != commit || f.Bytes != int64(len(files[weightPath])) || string(f.Digest) != sha(files[weightPath]) {
		t.Errorf("%+v %+v %v", r, f, err)
	}
	for _, s := range h.Seen() {
		if s.Server == "storage" {
			t.Error("HEAD went on to the storage server")
		}
	}
	_, _, err = c.Stat(t.Context(), ref(t, repoName+"@"+commit), "nix.json")
	if !errors.Is(err, fetch.ErrFileNotFound) {
		t.Errorf("%v", err)
	}
	if found, _ := filepath.Glob(filepath.Join(c.CacheDir(), "models--org--pkg", ".no_exist", commit, "nix.json")); len(found) != 1 {
		t.Error("absence was not noted")
	}
}

// TestRedirectNowhere: an address that cannot be read is not tried again, and
// not shown, since it may be signed.
func TestRedirectNowhere(t *testing.T) {
	h := newHub(t)
	h.Add(repoName, map[string][]byte{"w.bin": blob(100, 1)})
	n := 0
	h.Fault = func(r hubtest.Request) *hubtest.Fault {
		if r.Kind == "content" || r.Kind == "head" {
			n++
			return &hubtest.Fault{Status: 302, Header: http.Header{"Location": {"http://storage.example/%zz?Signature=SECRET"}}}
		}
		return nil
	}
	_, err := get(newClient(t, h, nil), ref(t, repoName), fetch.PlanOptions{})
	if diag.CodeOf(err) != diag.IO || strings.Contains(err.Error(), "SECRET") || !strings.Contains(err.Error(), "cannot be used") || n != 1 {
		t.Errorf("after %d requests: %v", n, err)
	}
}
