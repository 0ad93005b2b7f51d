package inspect_test

import (
	"context"
	"encoding/binary"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/anepkg/anepkg/inspect"
)

// storedBytes sums the data of every record of the weight files below dir,
// read by its own small reader of the format.
func storedBytes(t *testing.T, dir string) int64 {
	t.Helper()
	var total int64
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() != "weight.bin" {
			return err
		}
		data, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		for at, left := 64, binary.LittleEndian.Uint32(data); left > 0; left-- {
			size := int(binary.LittleEndian.Uint64(data[at+8:]))
			total += int64(size)
			at = (at + 64 + size + 63) / 64 * 64
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return total
}

// TestMemory compares the sums with the weight files themselves and with the
// shape of the state in the program's text.
func TestMemory(t *testing.T) {
	for _, name := range []string{"seed-qwen3-lut6", "anemll-qwen3-fp16", "seed-qwen3_5-lut6", "cml-qwen2-mono-fp16"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := sharedDir(t, "models/tiny/"+name+"/compiled")
			r, err := inspect.Memory(context.Background(), open(t, os.DirFS(dir), dir))
			if err != nil {
				t.Fatal(err)
			}
			if want := storedBytes(t, dir); r.Weights > want || r.Weights < want*95/100 {
				t.Errorf("weights: got %d bytes, the files hold %d (small constants may be left out)", r.Weights, want)
			}
			var layers, kinds int64
			for _, l := range r.Layers {
				layers += l.Bytes
			}
			for _, k := range r.Kinds {
				kinds += k.Bytes
			}
			if layers != r.Weights || kinds != r.Weights {
				t.Errorf("got %d bytes by layer and %d by kind, want %d", layers, kinds, r.Weights)
			}
			for _, f := range r.Figures {
				if f.Bytes < 0 || len(f.Formula) < 10 {
					t.Errorf("figure %s: %d bytes, formula %q", f.Name, f.Bytes, f.Formula)
				}
			}
			var b strings.Builder
			if err := r.WriteText(&b, false); err != nil || !strings.Contains(b.String(), "read_per_token_estimate") {
				t.Errorf("text lacks the estimate: %v\n%s", err, b.String())
			}
			checkCacheBytes(t, dir, r)
		})
	}
}

var stateDecl = regexp.MustCompile(`state<tensor<fp16, \[([\d, ]+)\]>> (\w*kv_cache\w*)`)

func checkCacheBytes(t *testing.T, dir string, r *inspect.MemoryReport) {
	t.Helper()
	found := 0
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() != "model.mil" {
			return err
		}
		text, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		m := stateDecl.FindSubmatch(text)
		if m == nil {
			return nil
		}
		n := int64(2)
		var dims []int
		for s := range strings.SplitSeq(string(m[1]), ", ") {
			k, err := strconv.Atoi(s)
			if err != nil {
				return err
			}
			n *= int64(k)
			dims = append(dims, k)
		}
		i := slices.IndexFunc(r.States, func(s inspect.StateMemory) bool { return s.Name == string(m[2]) })
		if i < 0 || r.States[i].Bytes != n || r.States[i].Positions == nil || *r.States[i].Positions != dims[2] {
			t.Errorf("state %s: want %d bytes in %d positions, got %+v", m[2], n, dims[2], r.States)
		}
		found++
		return nil
	})
	if err != nil || found == 0 {
		t.Errorf("no state found in the programs: %v", err)
	}
}
