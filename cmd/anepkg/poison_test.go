package main

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// poison writes NaN into the middle of every fp16 blob of a weight file
// (weight.bin: a header of 64 bytes, then records with magic, type, size and
// offset; mil.md section C).
func poison(t *testing.T, file string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	const magic, fp16 = 0xDEADBEEF, 1
	n := 0
	for i := 64; i+64 <= len(data); {
		if binary.LittleEndian.Uint32(data[i:]) != magic {
			i += 64
			continue
		}
		size, off := int(binary.LittleEndian.Uint64(data[i+8:])), int(binary.LittleEndian.Uint64(data[i+16:]))
		if binary.LittleEndian.Uint32(data[i+4:]) == fp16 && size >= 2 {
			copy(data[off+size/4*2:], []byte{0x00, 0x7E})
			n++
		}
		i = (off + size + 63) / 64 * 64
	}
	if n == 0 {
		t.Fatalf("%s has no fp16 blob", file)
	}
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestPoisonedPackage: a NaN in a part's weights ends the run with status 6
// and names the part, greedy or by chance, also inside a batch.
func TestPoisonedPackage(t *testing.T) {
	for _, part := range []string{"qwen_FFN_PF_lut6_chunk_01of02.mlmodelc", "qwen_FFN_PF_lut6_chunk_02of02.mlmodelc", "qwen_lm_head_lut6.mlmodelc"} {
		dir := t.TempDir()
		if err := os.CopyFS(dir, os.DirFS(extractedDemo(t))); err != nil {
			t.Fatal(err)
		}
		poison(t, filepath.Join(dir, part, "weights", "weight.bin"))
		for _, args := range [][]string{{}, {"--temperature", "1"}, {"--logprobs", "1"}, {"--precision", "strict"}} {
			status, out, errs := execute(t.Context(), "", append([]string{"run", dir, "--force", "-p", "hi", "-n", "4"}, args...)...)
			if status != exitRun || !strings.Contains(errs, part) || !strings.Contains(errs, "NaN") {
				t.Errorf("%s %v: status %d, %q, %q", part, args, status, out, errs)
			}
		}
		status, out, _ := execute(t.Context(), "hi\nho\n", "run", dir, "--force", "--batch", "-n", "4")
		if status != exitRun || strings.Count(out, `"code":"run_failed"`) != 2 || !strings.Contains(out, part) {
			t.Errorf("%s in a batch: status %d, %s", part, status, out)
		}
	}
}
