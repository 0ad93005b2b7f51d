package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const macPlist = `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
	<key>ProductBuildVersion</key>
	<string>24A335</string>
	<key>ProductName</key>
	<string>macOS</string>
	<key>ProductVersion</key>
	<string>15.0</string>
</dict>
</plist>
`

func TestMacVersion(t *testing.T) {
	v, err := readMacVersion(strings.NewReader(macPlist))
	if err != nil {
		t.Fatal(err)
	}
	if got := v.String(); got != "macOS 15.0 (24A335)" || v.major() != 15 {
		t.Errorf("got %q, major %d", got, v.major())
	}
	for _, bad := range []string{"", "<plist><dict/></plist>", "bplist00 no", macPlist[:200]} {
		if v, err := readMacVersion(strings.NewReader(bad)); err == nil {
			t.Errorf("%.20q is read as %v", bad, v)
		}
	}
}

func TestMacDiagnoses(t *testing.T) {
	for version, want := range map[string]health{"11.7": warning, "14.4": warning, "15.0": healthy, "26.1": healthy, "x": warning} {
		if got := macDiagnoses(macVersion{Version: version})[0].Status; got != want {
			t.Errorf("macOS %s: %s, want %s", version, got, want)
		}
	}
}

// diagnose runs the parts of doctor that depend on the environment.
func diagnose(t *testing.T, env map[string]string) map[string]diagnosis {
	t.Helper()
	tl := &tool{getenv: func(k string) string { return env[k] }}
	out := map[string]diagnosis{}
	for _, d := range tl.examine(t.Context()) {
		out[d.Name] = d
	}
	return out
}

func TestDoctor(t *testing.T) {
	hub := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer hub.Close()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("hf_secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	down := httptest.NewServer(http.NotFoundHandler())
	down.Close()
	tests := []struct {
		name   string
		env    map[string]string
		check  string
		status health
		value  string // part of it
	}{
		{"endpoint answers", map[string]string{"HF_ENDPOINT": hub.URL}, "hub endpoint", healthy, "answers 200"},
		{"endpoint is down", map[string]string{"HF_ENDPOINT": down.URL}, "hub endpoint", warning, down.URL},
		{"endpoint is none", map[string]string{"HF_ENDPOINT": "http://[::bad"}, "hub endpoint", problem, ""},
		{"offline", map[string]string{"HF_HUB_OFFLINE": "1"}, "hub endpoint", healthy, "not asked"},
		{"cache", map[string]string{"HF_HUB_CACHE": dir}, "hub cache", healthy, dir},
		{"cache to be made", map[string]string{"HF_HOME": filepath.Join(dir, "a", "b")}, "hub cache", healthy, "not there yet"},
		{"cache is a file", map[string]string{"HF_HUB_CACHE": file}, "hub cache", problem, file},
		{"disk", map[string]string{"HF_HUB_CACHE": dir}, "free disk", "", "at " + dir},
		{"token", map[string]string{"HF_TOKEN": "hf_secret"}, "hub token", healthy, "set in HF_TOKEN"},
		{"token in a file", map[string]string{"HF_TOKEN_PATH": file}, "hub token", healthy, "in " + file},
		{"no token", map[string]string{"HF_HOME": dir}, "hub token", healthy, "none"},
		{"proxy", map[string]string{"HTTPS_PROXY": "http://me:secret@proxy.test:3128"}, "proxy", healthy, "HTTPS_PROXY=http://...@proxy.test:3128"},
		{"locale", map[string]string{"LANG": "C"}, "locale", warning, "C"},
		{"utf-8", map[string]string{"LC_ALL": "de_DE.UTF-8", "LANG": "C"}, "locale", healthy, "de_DE.UTF-8"},
		{"processor", nil, "processor", healthy, "thread"},
		{"terminal", nil, "terminal", healthy, "no"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			env := map[string]string{"HF_HUB_OFFLINE": "1"}
			for k, v := range tc.env {
				env[k] = v
			}
			if tc.env["HF_ENDPOINT"] != "" {
				delete(env, "HF_HUB_OFFLINE")
			}
			all := diagnose(t, env)
			d, ok := all[tc.check]
			if !ok {
				t.Fatalf("there is no line %q", tc.check)
			}
			if tc.status != "" && d.Status != tc.status || !strings.Contains(d.Value, tc.value) {
				t.Errorf("got %s, %q; want %s, %q", d.Status, d.Value, tc.status, tc.value)
			}
			for _, d := range all {
				if strings.Contains(d.Value+d.Hint, "secret") {
					t.Errorf("%s shows a secret: %s", d.Name, d.Value)
				}
				if d.Status != healthy && d.Hint == "" && d.Name != "free disk" {
					t.Errorf("%s is a %s without a hint", d.Name, d.Status)
				}
			}
		})
	}
}

func TestCompileCacheDiagnosis(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "weights"), make([]byte, 2048), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, dir string
		status    health
		value     string
	}{
		{"there", dir, "", "2.0 KiB"},
		{"to be made", filepath.Join(dir, "a", "b"), "", "not there yet"},
		{"a file", filepath.Join(dir, "weights"), problem, "weights"},
		{"none", "", warning, "names no folder"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			d := compileCacheDiagnosis(tc.dir)
			if tc.status != "" && d.Status != tc.status || !strings.Contains(d.Value, tc.value) || d.Status != healthy && d.Hint == "" {
				t.Errorf("got %+v", d)
			}
		})
	}
	if left, err := filepath.Glob(filepath.Join(dir, ".anepkg*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if d := bridgeDiagnosis(os.ErrNotExist); d.Status != warning || d.Hint == "" {
		t.Errorf("no bridge: %+v", d)
	}
	if d := bridgeDiagnosis(nil); d.Status != healthy {
		t.Errorf("a bridge: %+v", d)
	}
}
