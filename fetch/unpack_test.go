package fetch_test

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/fetch"
)

// zipItem is an entry of a test archive.
type zipItem struct {
	name string
	data []byte
	mode fs.FileMode
}

// zipOf packs items in order.
func zipOf(t testing.TB, items ...zipItem) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, it := range items {
		h := &zip.FileHeader{Name: it.name, Method: zip.Deflate}
		if it.mode != 0 {
			h.SetMode(it.mode)
		}
		f, err := w.CreateHeader(h)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write(it.data); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// unpackInto writes the archive into a new folder and unpacks it to m.mlmodelc
// there.
func unpackInto(t testing.TB, data []byte, change func(*fetch.Config)) (dir string, err error) {
	t.Helper()
	cfg := fetch.Config{}
	if change != nil {
		change(&cfg)
	}
	c, err := fetch.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	archive := filepath.Join(dir, "m.mlmodelc.zip")
	if err := os.WriteFile(archive, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir, c.Unpack(t.Context(), archive, filepath.Join(dir, "m.mlmodelc"))
}

func TestUnpack(t *testing.T) {
	mil, weights := blob(100_000, 1), make([]byte, 2_000_000)
	want := map[string][]byte{"model.mil": mil, "weights/weight.bin": weights}
	tests := []struct {
		name string
		zip  []byte
	}{
		{"with the folder", zipOf(t, zipItem{name: "m.mlmodelc/"}, zipItem{name: "m.mlmodelc/model.mil", data: mil}, zipItem{name: "m.mlmodelc/weights/weight.bin", data: weights})},
		{"without the folder", zipOf(t, zipItem{name: "model.mil", data: mil}, zipItem{name: "weights/weight.bin", data: weights})},
		{"made on a Mac", zipOf(t, zipItem{name: "m.mlmodelc/model.mil", data: mil}, zipItem{name: "__MACOSX/m.mlmodelc/._model.mil", data: blob(80, 2)},
			zipItem{name: "m.mlmodelc/.DS_Store", data: blob(80, 3)}, zipItem{name: "m.mlmodelc/weights/weight.bin", data: weights})},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir, err := unpackInto(t, tt.zip, nil)
			if err != nil {
				t.Fatal(err)
			}
			sameTree(t, filepath.Join(dir, "m.mlmodelc"), want)
			onlyEntries(t, dir, "m.mlmodelc", "m.mlmodelc.zip")
		})
	}
}

// onlyEntries fails when dir holds anything else, temporary names included.
func onlyEntries(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("the folder holds %v, want %v", got, want)
	}
}

// zeros never ends.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func TestUnpackRefuses(t *testing.T) {
	good := zipOf(t, zipItem{name: "model.mil", data: blob(5000, 1)})
	broken := bytes.Clone(good)
	broken[60] ^= 0x40 // inside the packed data: CRC-32 or deflate notice
	encrypted := bytes.Clone(good)
	central := bytes.Index(encrypted, []byte("PK\x01\x02"))
	encrypted[central+8] |= 1
	lying := bytes.Clone(good)
	binary.LittleEndian.PutUint32(lying[bytes.Index(lying, []byte("PK\x01\x02"))+24:], 10)
	huge := bytes.Clone(good)
	binary.LittleEndian.PutUint32(huge[bytes.Index(huge, []byte("PK\x01\x02"))+20:], 0xfffffff0)
	var bomb bytes.Buffer
	w := zip.NewWriter(&bomb)
	if f, err := w.Create("weight.bin"); err != nil {
		t.Fatal(err)
	} else if _, err := io.CopyN(f, zeros{}, 5<<28); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		zip  []byte
		code diag.Code
		msg  string
	}{
		{"1.25 GiB of zeros", bomb.Bytes(), diag.TooLarge, "times as many"},
		{"leaves its folder", zipOf(t, zipItem{name: "../evil"}), diag.Malformed, "leaves its folder"},
		{"leaves it inside", zipOf(t, zipItem{name: "a/../../evil"}), diag.Malformed, "leaves its folder"},
		{"absolute", zipOf(t, zipItem{name: "/evil"}), diag.Malformed, "absolute"},
		{"backslashes", zipOf(t, zipItem{name: `..\evil`}), diag.Malformed, "backslash"},
		{"drive", zipOf(t, zipItem{name: "c:evil"}), diag.Malformed, "Windows"},
		{"device", zipOf(t, zipItem{name: "weights/NUL.bin"}), diag.Malformed, "device"},
		{"link", zipOf(t, zipItem{name: "weights", data: []byte("/etc"), mode: fs.ModeSymlink | 0o777}), diag.Malformed, "link"},
		{"pipe", zipOf(t, zipItem{name: "p", mode: fs.ModeNamedPipe | 0o666}), diag.Malformed, "link or device"},
		{"case", zipOf(t, zipItem{name: "a/Model.mil"}, zipItem{name: "a/model.mil"}), diag.Malformed, "one file"},
		{"twice", zipOf(t, zipItem{name: "model.mil"}, zipItem{name: "model.mil"}), diag.Malformed, "one file"},
		{"file and folder", zipOf(t, zipItem{name: "a"}, zipItem{name: "a/b"}), diag.Malformed, "folder of"},
		{"nothing", zipOf(t, zipItem{name: "__MACOSX/x"}), diag.Malformed, "no files"},
		{"no zip", []byte("<html>sign in</html>"), diag.Malformed, "zip"},
		{"cut", good[:len(good)-30], diag.Malformed, "zip"},
		{"damaged", broken, diag.Malformed, "model.mil"},
		{"more than announced", lying, diag.Malformed, "model.mil"},
		{"packed size beyond the archive", huge, diag.Malformed, "more than the archive has"},
		{"encrypted", encrypted, diag.Unsupported, "encrypted"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir, err := unpackInto(t, tt.zip, nil)
			if diag.CodeOf(err) != tt.code || !strings.Contains(err.Error(), tt.msg) {
				t.Errorf("got %q (%s), want %q (%s)", err, diag.CodeOf(err), tt.msg, tt.code)
			}
			onlyEntries(t, dir, "m.mlmodelc.zip")
			if _, err := os.Stat(filepath.Join(filepath.Dir(dir), "evil")); err == nil {
				t.Error("a file outside was written")
			}
		})
	}
}

func TestUnpackFullDisk(t *testing.T) {
	data := zipOf(t, zipItem{name: "w", data: make([]byte, 5_000_000)})
	dir, err := unpackInto(t, data, func(c *fetch.Config) { c.FreeSpace = func(string) (int64, error) { return 4_999_999, nil } })
	is(t, err, fetch.ErrDiskFull, diag.IO)
	onlyEntries(t, dir, "m.mlmodelc.zip")
}

// TestUnpackReplaces checks that a wrong archive leaves the old folder and a
// right one replaces it.
func TestUnpackReplaces(t *testing.T) {
	dir, err := unpackInto(t, zipOf(t, zipItem{name: "old", data: []byte("1")}), nil)
	if err != nil {
		t.Fatal(err)
	}
	c, err := fetch.New(fetch.Config{})
	if err != nil {
		t.Fatal(err)
	}
	archive, target := filepath.Join(dir, "m.mlmodelc.zip"), filepath.Join(dir, "m.mlmodelc")
	put := func(data []byte) {
		if err := os.WriteFile(archive, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put(zipOf(t, zipItem{name: "new", data: []byte("2")}, zipItem{name: "../x"}))
	if err := c.Unpack(t.Context(), archive, target); err == nil {
		t.Fatal("no error")
	}
	sameTree(t, target, map[string][]byte{"old": []byte("1")})
	put(zipOf(t, zipItem{name: "new", data: []byte("2")}))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Unpack(ctx, archive, target); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	sameTree(t, target, map[string][]byte{"old": []byte("1")})
	if err := c.Unpack(t.Context(), archive, target); err != nil {
		t.Fatal(err)
	}
	sameTree(t, target, map[string][]byte{"new": []byte("2")})
	onlyEntries(t, dir, "m.mlmodelc", "m.mlmodelc.zip")
}

// TestFetchZippedParts fetches a package of zipped models, into a folder and
// into the cache, and unpacks it once.
func TestFetchZippedParts(t *testing.T) {
	h := newHub(t)
	mil := blob(20_000, 5)
	h.Add(repoName, map[string][]byte{
		"meta.yaml":          []byte("model_info:\n  name: x\n"),
		"a.mlmodelc.zip":     zipOf(t, zipItem{name: "a.mlmodelc/model.mil", data: mil}),
		"sub/b.mlmodelc.zip": zipOf(t, zipItem{name: "model.mil", data: mil}),
	})
	for _, to := range []string{"", filepath.Join(t.TempDir(), "out")} {
		c := newClient(t, h, nil)
		var first []os.FileInfo
		for run := range 2 {
			p, err := c.Plan(t.Context(), ref(t, repoName), fetch.PlanOptions{To: to})
			if err != nil {
				t.Fatal(err)
			}
			res, err := c.Download(t.Context(), p, nil)
			if err != nil {
				t.Fatal(err)
			}
			dirs, err := c.UnpackZips(t.Context(), p, res)
			if err != nil || len(dirs) != 2 {
				t.Fatalf("%v, %v", dirs, err)
			}
			for i, d := range dirs {
				sameTree(t, d, map[string][]byte{"model.mil": mil})
				info, err := os.Stat(filepath.Join(d, "model.mil"))
				if err != nil {
					t.Fatal(err)
				}
				if run == 0 {
					first = append(first, info)
				} else if !os.SameFile(first[i], info) {
					t.Errorf("%s was unpacked again", d)
				}
			}
			if dirs[0] != filepath.Join(p.Path, "a.mlmodelc") {
				t.Errorf("unpacked to %s", dirs[0])
			}
		}
	}
}

// FuzzUnpack: no archive writes outside its folder or leaves anything after
// an error.
func FuzzUnpack(f *testing.F) {
	f.Add(zipOf(f, zipItem{name: "m.mlmodelc/model.mil", data: []byte("x")}))
	f.Add(zipOf(f, zipItem{name: "../x", data: []byte("x")}, zipItem{name: "l", data: []byte("/"), mode: fs.ModeSymlink | 0o777}))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<16 {
			return
		}
		dir, err := unpackInto(t, data, func(c *fetch.Config) { c.FreeSpace = func(string) (int64, error) { return 1 << 20, nil } })
		if err != nil {
			if diag.CodeOf(err) == "" {
				t.Errorf("error without a class: %v", err)
			}
			onlyEntries(t, dir, "m.mlmodelc.zip")
			return
		}
		onlyEntries(t, dir, "m.mlmodelc", "m.mlmodelc.zip")
	})
}

// TestUnpackedVerified changes what was unpacked: a plain fetch notices sizes
// and absence, --repair and the cache's verification also content.
func TestUnpackedVerified(t *testing.T) {
	mil, weights := blob(20_000, 5), blob(4000, 6)
	want := map[string][]byte{"model.mil": mil, "weights/weight.bin": weights}
	other := bytes.Clone(weights)
	other[100] ^= 1
	tests := []struct {
		name   string
		damage func(dir string) error
		status fetch.CheckStatus
		plain  bool // a plain fetch unpacks again
	}{
		{"deleted", func(d string) error { return os.Remove(filepath.Join(d, "weights", "weight.bin")) }, fetch.Absent, true},
		{"folder deleted", func(d string) error { return os.RemoveAll(filepath.Join(d, "weights")) }, fetch.Absent, true},
		{"file for a folder", func(d string) error {
			return errors.Join(os.RemoveAll(filepath.Join(d, "weights")), os.WriteFile(filepath.Join(d, "weights"), nil, 0o600))
		}, fetch.Absent, true},
		{"cut", func(d string) error { return os.Truncate(filepath.Join(d, "weights", "weight.bin"), 3999) }, fetch.Corrupt, true},
		{"changed", func(d string) error { return os.WriteFile(filepath.Join(d, "weights", "weight.bin"), other, 0o600) }, fetch.Corrupt, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := newHub(t)
			h.Add(repoName, map[string][]byte{"a.mlmodelc.zip": zipOf(t, zipItem{name: "model.mil", data: mil}, zipItem{name: "weights/weight.bin", data: weights})})
			cache := filepath.Join(t.TempDir(), "hub")
			c := newClient(t, h, func(cfg *fetch.Config) { cfg.CacheDir = cache })
			run := func(repair bool) string {
				t.Helper()
				p, err := c.Plan(t.Context(), ref(t, repoName), fetch.PlanOptions{})
				if err != nil {
					t.Fatal(err)
				}
				var res *fetch.Result
				if repair {
					res, _, err = c.Repair(t.Context(), p, nil)
				} else {
					res, err = c.Download(t.Context(), p, nil)
				}
				if err != nil {
					t.Fatal(err)
				}
				if err := c.Complete(t.Context(), p, res); err != nil {
					t.Fatal(err)
				}
				return filepath.Join(p.Path, "a.mlmodelc")
			}
			verify := func() []fetch.Check {
				t.Helper()
				ca, err := fetch.OpenCache(cache)
				if err != nil {
					t.Fatal(err)
				}
				checks, err := ca.Verify(t.Context(), nil, nil)
				if err != nil {
					t.Fatal(err)
				}
				return checks
			}
			dir := run(false)
			if checks := verify(); fetch.Faults(checks) != 0 || len(checks) != 3 {
				t.Errorf("fresh: %+v", checks)
			}
			if err := tt.damage(dir); err != nil {
				t.Fatal(err)
			}
			checks := verify()
			if fetch.Faults(checks) != 1 || fetch.ErrorOf(checks) == nil {
				t.Errorf("damaged: %+v", checks)
			}
			for _, k := range checks {
				if k.File == "a.mlmodelc/weights/weight.bin" && (k.Status != tt.status || k.Repo != repoName) {
					t.Errorf("got %s of %s, want %s", k.Status, k.Repo, tt.status)
				}
			}
			if run(false); tt.plain {
				sameTree(t, dir, want)
			}
			run(true)
			sameTree(t, dir, want)
			if n := fetch.Faults(verify()); n != 0 {
				t.Errorf("%d faults after repair", n)
			}
		})
	}
}
