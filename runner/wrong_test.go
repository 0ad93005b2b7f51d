package runner

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/coreml/cpu"
	"github.com/anepkg/anepkg/coreml/sharedtest"
	"github.com/anepkg/anepkg/runner/sample"
)

// wrongRun is a call sequence that the reference shows to be wrong: the last
// prompt token is run a second time before the logits are taken, at once
// (rerun-...) or after 16 generated tokens (rewind-...).
type wrongRun struct {
	Name   string    `json:"name"`
	Case   string    `json:"case"`
	Argmax []int     `json:"argmax_ids"`
	Cosine []float64 `json:"cosine"`
}

// TestWrongSequences repeats the wrong call sequences of the samples and gets
// the reference's wrong tokens and cosines, so that the agreement of the right
// sequence means something.
func TestWrongSequences(t *testing.T) {
	for _, name := range []string{
		"seed-qwen3_5-2chunks-fp16", "seed-qwen3_5-lut6", "seed-qwen3_5-moe-fp16", "seed-gemma4-block-window-fp16", "seed-gemma4-block-window-lut6-2chunks",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := sharedtest.Path(t, "models", "tiny", name)
			g, err := readGolden(os.DirFS(dir), "golden.json")
			if err != nil {
				t.Fatal(err)
			}
			data, err := os.ReadFile(filepath.Join(dir, "golden.json"))
			if err != nil {
				t.Fatal(err)
			}
			var more struct{ Wrong []wrongRun }
			if err := json.Unmarshal(data, &more); err != nil {
				t.Fatal(err)
			}
			if len(more.Wrong) == 0 {
				t.Fatal("no wrong sequences in golden.json")
			}
			r, err := Open(t.Context(), openShared(t, "models", "tiny", name, "compiled"), cpu.New(), Options{Precision: coreml.Strict, Threads: 1})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = r.Close() })
			for _, w := range more.Wrong {
				at := slices.IndexFunc(g.Cases, func(c goldenCase) bool { return c.Name == w.Case })
				if at < 0 {
					t.Fatalf("%s: no case %s", w.Name, w.Case)
				}
				repeatWrong(t, r, dir, &g.Cases[at], w, g.Tolerance)
			}
		})
	}
}

func repeatWrong(t *testing.T, r *Runner, dir string, c *goldenCase, w wrongRun, tol Tolerance) {
	right, err := rows(os.DirFS(dir), "golden.json", c.Logits, c.Shape[0], c.Shape[1])
	if err != nil {
		t.Fatal(err)
	}
	n := len(c.PromptIDs)
	if err := r.contract.Reset(); err != nil {
		t.Fatal(err)
	}
	sc, err := r.contract.Prefill(t.Context(), c.PromptIDs, 0, PrefillAuto, nil)
	for i := 0; i < 16 && strings.HasPrefix(w.Name, "rewind"); i++ {
		top, _ := sample.Greedy(sc.Logits)
		if sc, err = r.contract.Decode(t.Context(), top, n+i); err != nil {
			break
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	id, pos, others := c.PromptIDs[n-1], n-1, 0
	var res CaseResult
	j := newJudge(tol, &res)
	for i, want := range w.Argmax {
		sc, err := r.contract.Decode(t.Context(), id, pos)
		if err != nil {
			t.Fatal(err)
		}
		top, err := sample.Greedy(sc.Logits)
		if err != nil {
			t.Fatal(err)
		}
		if top != want {
			others++
		}
		if cos := cosine(sc.Logits, right[i]); i < len(w.Cosine) && (cos > w.Cosine[i]+0.01 || cos < w.Cosine[i]-0.01) {
			t.Errorf("%s of %s, row %d: cosine %.4f, the wrong run of the reference has %.4f", w.Name, w.Case, i, cos, w.Cosine[i])
		}
		if err := j.scores(sc, r.contract.Head(), c.Generated[i], right[i]); err != nil {
			t.Fatal(err)
		}
		id, pos = c.Generated[i], n+i
	}
	if others > 1 { // one may be as good as a tie between fp16 and the reference's fp32
		t.Errorf("%s of %s: %d of %d best tokens are not those of the reference's wrong run", w.Name, w.Case, others, len(w.Argmax))
	}
	j.done()
	if res.Pass {
		t.Errorf("%s of %s passes the comparison", w.Name, w.Case)
	}
}

// TestStockBatchRule: prefill batch feeds CoreML-LLM's stateful chunks in
// batches past the window, as the stock runtime does; the reference lists the
// first token that comes of it (measured-defects.md 8). auto gives the right
// one.
func TestStockBatchRule(t *testing.T) {
	dir := sharedtest.Path(t, "models", "tiny", "cml-gemma4-stateful")
	data, err := os.ReadFile(filepath.Join(dir, "golden.json"))
	if err != nil {
		t.Fatal(err)
	}
	var g struct {
		Cases []struct {
			goldenCase
			Stock *struct {
				First   int `json:"first_token"`
				Batches int `json:"batched_calls"`
			} `json:"runtime_rule_without_window_guard"`
		}
	}
	if err := json.Unmarshal(data, &g); err != nil {
		t.Fatal(err)
	}
	r, err := Open(t.Context(), openShared(t, "models", "tiny", "cml-gemma4-stateful", "package"), cpu.New(), Options{Threads: 1, AllModes: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	differ := 0
	for _, c := range g.Cases {
		if c.Stock == nil {
			continue
		}
		steps := r.contract.(*stepper).rules.plan(0, len(c.PromptIDs), PrefillBatch)
		batches := 0
		for _, st := range steps {
			if st.n > 1 {
				batches++
			}
		}
		res, err := r.Generate(t.Context(), Request{PromptIDs: c.PromptIDs, MaxTokens: 1, IgnoreEOS: true, Prefill: PrefillBatch}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if batches != c.Stock.Batches || res.GeneratedIDs[0] != c.Stock.First {
			t.Errorf("%s: %d batches give %d, want %d batches and %d", c.Name, batches, res.GeneratedIDs[0], c.Stock.Batches, c.Stock.First)
		}
		if c.Stock.First != c.Generated[0] {
			differ++
		}
	}
	if differ == 0 {
		t.Error("no case of the reference shows a wrong token")
	}
}
