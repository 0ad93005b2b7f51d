package inspect_test

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"

	"github.com/anepkg/anepkg/coreml/sharedtest"
	"github.com/anepkg/anepkg/inspect"
)

// TestMemory: the numbers of a small package, worked out by hand from its
// shapes.
func TestMemory(t *testing.T) {
	dir := sharedtest.Path(t, "models/tiny/seed-qwen3_5-lut6/compiled")
	p := open(t, os.DirFS(dir), dir)
	r, err := inspect.Memory(context.Background(), p, 128, 4096)
	if err != nil {
		t.Fatal(err)
	}
	st, err := inspect.States(context.Background(), p)
	if err != nil {
		t.Fatal(err)
	}
	var kv, fixed int64
	for _, s := range st.States {
		if s.Role == "kv_cache" {
			kv += s.Bytes
		} else {
			fixed += s.Bytes
		}
	}
	if kv == 0 || fixed == 0 {
		t.Fatalf("states: %+v", st.States)
	}
	own := 0
	for _, c := range r.Contexts {
		if c.Own {
			own = c.Context
		}
	}
	for _, c := range r.Contexts {
		want := kv / int64(own) * int64(c.Context)
		if c.KV != want || c.Recurrent != fixed || c.Total != want+fixed {
			t.Errorf("context %d: got %+v, want KV %d and recurrent %d", c.Context, c, want, fixed)
		}
	}
	if len(r.Contexts) != 3 {
		t.Errorf("contexts: %+v", r.Contexts)
	}
	totals := map[string]int64{}
	for _, x := range r.Totals {
		totals[x.Name] = x.Bytes
		if len(x.Formula) < 20 {
			t.Errorf("%s has no formula", x.Name)
		}
	}
	list, err := inspect.Weights(context.Background(), p)
	if err != nil {
		t.Fatal(err)
	}
	var stored, dense, engine int64
	for _, w := range list.Weights {
		stored += w.Bytes
		dense += 2 * w.Elements // fp16
		if w.UsedBy != "gather" {
			engine += w.Bytes * int64(max(1, len(w.SharedBy)))
		}
	}
	if totals["stored"] != stored || totals["dense"] != dense || totals["neural_engine"] != engine || totals["states"] != st.TotalBytes {
		t.Errorf("got %v, want stored %d, dense %d, neural_engine %d, states %d", totals, stored, dense, engine, st.TotalBytes)
	}
	if totals["read_per_token"] >= stored+st.TotalBytes || totals["read_per_token"] <= st.TotalBytes {
		t.Errorf("read per token %d must lie between the states and everything", totals["read_per_token"])
	}
	var b bytes.Buffer
	if err := r.WriteText(&b, false); err != nil || !strings.Contains(b.String(), "CONTEXT") {
		t.Errorf("text: %v\n%s", err, b.String())
	}
}
