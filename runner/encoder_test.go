package runner

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/anepkg/anepkg/coreml/cpu"
	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/coreml/sharedtest"
)

// TestEncoder: text goes through the package's tokenizer to the reference's
// ids and embedding (by cosine), and bad ids are refused.
func TestEncoder(t *testing.T) {
	dir := sharedtest.Path(t, "models", "tiny", "cml-embeddinggemma")
	data, err := os.ReadFile(filepath.Join(dir, "golden.json"))
	if err != nil {
		t.Fatal(err)
	}
	var g struct {
		Tolerance Tolerance
		Cases     []struct {
			goldenCase
			Text string `json:"text"`
		}
	}
	if err := json.Unmarshal(data, &g); err != nil {
		t.Fatal(err)
	}
	r, err := Open(t.Context(), openShared(t, "models", "tiny", "cml-embeddinggemma", "compiled"), cpu.New(), Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	texts := 0
	for _, c := range g.Cases {
		if c.Text == "" {
			continue
		}
		texts++
		p, err := r.Prompt(PromptInput{Text: c.Text})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(p.IDs, c.InputIDs) || p.Note != "" || p.Format != "raw" {
			t.Errorf("%s: got %v (%s, %q), want %v", c.Name, p.IDs, p.Format, p.Note, c.InputIDs)
		}
		want, err := rows(os.DirFS(dir), "golden.json", c.Embedding, 1, c.EmbShape[0])
		if err != nil {
			t.Fatal(err)
		}
		e, err := r.EmbedResult(t.Context(), p.IDs)
		if err != nil {
			t.Fatal(err)
		}
		if cos := cosine(e.Embedding, want[0]); !(cos >= g.Tolerance.CosineMin) || !slices.Equal(e.PromptIDs, c.InputIDs) || e.Contract != "encoder" {
			t.Errorf("%s: cosine %v, %+v", c.Name, cos, e)
		}
	}
	if texts == 0 {
		t.Error("no case has a text")
	}
	if p, err := r.Prompt(PromptInput{Text: "plain words"}); err != nil || !strings.Contains(p.Note, "task prefix") {
		t.Errorf("text without a prefix: got %+v, %v, want a note", p, err)
	}
	for _, tc := range []struct {
		name string
		ids  []int
		code diag.Code
	}{{"none", nil, diag.Context}, {"too many", make([]int, 33), diag.Context}, {"negative", []int{2, -1}, diag.Usage}, {"beyond the vocabulary", []int{768}, diag.Usage}} {
		if _, err := r.Embed(t.Context(), tc.ids); diag.CodeOf(err) != tc.code {
			t.Errorf("%s: got %v, want class %s", tc.name, err, tc.code)
		}
	}
}
