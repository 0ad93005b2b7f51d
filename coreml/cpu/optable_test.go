package cpu_test

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/anepkg/anepkg/coreml/cpu"
	"github.com/anepkg/anepkg/coreml/sharedtest"
)

// neverInFiles are ops of coremltools that no package contains: symbolic
// constants stay in the converter, conv_quantized belongs to the old format.
var neverInFiles = map[string]bool{"_const_symbolic": true, "conv_quantized": true}

// TestOpTable holds the table to coremltools' op definitions: every op is
// there, with the opset that defined it first, and is described.
func TestOpTable(t *testing.T) {
	b, err := os.ReadFile(sharedtest.Path(t, "reference", "mil-op-signatures.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	first := map[string]int{"write_state": 18}
	for _, line := range strings.Split(strings.TrimSpace(string(b)), "\n")[1:] {
		f := strings.Split(line, "\t")
		since, err := strconv.Atoi(strings.TrimPrefix(f[0], "iOS"))
		if err != nil {
			since = 18 // the dialect of coreml_update_state
		}
		if have, ok := first[f[1]]; !ok || since < have {
			first[f[1]] = since
		}
	}
	known := map[string]bool{}
	for _, op := range cpu.Ops() {
		known[op.Name] = true
		if op.Doc == "" || op.Types == "" {
			t.Errorf("%s lacks a description: doc %q, types %q", op.Name, op.Doc, op.Types)
		}
		if want, ok := first[op.Name]; !ok {
			t.Errorf("%s is no op of coremltools", op.Name)
		} else if op.Opset != want {
			t.Errorf("%s: first opset is ios%d, want ios%d", op.Name, op.Opset, want)
		}
	}
	for name := range first {
		if !known[name] && !neverInFiles[name] {
			t.Errorf("%s is not in the table", name)
		}
	}
}
