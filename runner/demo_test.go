package runner

import (
	"encoding/json"
	"os"
	"slices"
	"testing"

	"github.com/anepkg/anepkg/coreml/sharedtest"
	"github.com/anepkg/anepkg/runner/chattmpl"
)

// TestDemoPrompts: prompts of the demo package's golden cases, as a user
// gives them, become the ids that transformers made of them, and generated
// ids the text.
func TestDemoPrompts(t *testing.T) {
	data, err := os.ReadFile(sharedtest.Path(t, "models", "demo", "golden.json"))
	if err != nil {
		t.Fatal(err)
	}
	var g struct {
		EndIDs []int `json:"end_ids"`
		Cases  []struct {
			Name     string
			Text     string
			Messages []chattmpl.Message
			Prompt   []int  `json:"prompt_ids"`
			IDs      []int  `json:"generated_ids"`
			Answer   string `json:"generated_text"`
		}
	}
	if err := json.Unmarshal(data, &g); err != nil {
		t.Fatal(err)
	}
	for _, form := range []string{"package", "compiled"} {
		r, err := Open(t.Context(), openShared(t, "models", "demo", form), &idleBackend{}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		var stops []int
		for _, s := range r.StopSources() {
			stops = append(stops, s.ID)
		}
		for _, id := range g.EndIDs {
			if !slices.Contains(stops, id) {
				t.Errorf("%s: end id %d is not among the stop ids %v", form, id, stops)
			}
		}
		tok, err := r.Tokenizer()
		if err != nil {
			t.Fatal(err)
		}
		prompts := 0
		for _, c := range g.Cases {
			if got := tok.Decode(c.IDs, true); got != c.Answer {
				t.Errorf("%s %s: text %q, want %q", form, c.Name, got, c.Answer)
			}
			if c.Text == "" && c.Messages == nil {
				continue
			}
			prompts++
			p, err := r.Prompt(PromptInput{Text: c.Text, Messages: c.Messages, Raw: c.Text != ""})
			if err != nil || !slices.Equal(p.IDs, c.Prompt) {
				t.Errorf("%s %s: prompt %+v, %v, want %v", form, c.Name, p, err, c.Prompt)
			}
		}
		if prompts < 7 {
			t.Errorf("%d cases with a text or messages, want at least 7", prompts)
		}
	}
}
