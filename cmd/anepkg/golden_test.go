package main

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// goldenCases are the members of golden.json that this test reads.
type goldenCases struct {
	EndIDs []int `json:"end_ids"`
	Cases  []struct {
		Name      string  `json:"name"`
		PromptIDs []int   `json:"prompt_ids"`
		Generated []int   `json:"generated_ids"`
		Margin    float64 `json:"min_top1_margin"`
	} `json:"cases"`
}

// TestGoldenSamples runs the packages whose logits an outside oracle knows,
// in both container forms, the way a user does.
func TestGoldenSamples(t *testing.T) {
	if testing.Short() {
		t.Skip("runs every sample")
	}
	dirs := samples(t, "demo", "tiny/seed-qwen3-*", "tiny/anemll-qwen3-*", "tiny/anemll-llama-*", "tiny/anemll-qwen25-*")
	for _, dir := range dirs {
		golden := filepath.Join(dir, "golden.json")
		for _, form := range []string{"package", "compiled"} {
			t.Run(filepath.Base(dir)+"/"+form, func(t *testing.T) {
				t.Parallel()
				pkg := filepath.Join(dir, form)
				for _, precision := range []string{"fast", "strict"} {
					status, stdout, stderr := execute(t.Context(), "", "compare", pkg, "--golden", golden, "--precision", precision)
					if status != exitOK || stderr != "" {
						t.Errorf("compare, %s: status %d\n%s%s", precision, status, stdout, stderr)
					}
				}
				var g goldenCases
				readJSON(t, golden, &g)
				checkGenerated(t, pkg, &g)
			})
		}
	}
}

// checkGenerated compares the ids of run with the oracle's.
func checkGenerated(t *testing.T, pkg string, g *goldenCases) {
	t.Helper()
	for _, c := range g.Cases {
		args := []string{"run", pkg, "--json", "--greedy", "--prompt-ids", joinIDs(c.PromptIDs), "-n", joinIDs([]int{len(c.Generated)})}
		want := c.Generated
		if last := len(want) - 1; last >= 0 && slices.Contains(g.EndIDs, want[last]) {
			want = want[:last] // run leaves the stop id out
		} else {
			args = append(args, "--ignore-eos")
		}
		status, stdout, stderr := execute(t.Context(), "", args...)
		var res struct {
			IDs []int `json:"generated_ids"`
		}
		if err := json.Unmarshal([]byte(stdout), &res); err != nil || status != exitOK {
			t.Errorf("%s: status %d: %s%s", c.Name, status, stdout, stderr)
			continue
		}
		if !slices.Equal(res.IDs, want) {
			t.Errorf("%s: got %v, want %v (the oracle's smallest margin is %g)", strings.TrimSpace(c.Name), res.IDs, want, c.Margin)
		}
	}
}
