package tokenizer_test

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestComponents compares small tokenizers, one for each kind of component, with the Rust tokenizers 0.23.2. Most
// have a WordPiece model of single characters, whose ids show where pieces begin.
func TestComponents(t *testing.T) {
	var file struct {
		WordPiece json.RawMessage
		Tests     []struct {
			Name      string
			Tokenizer map[string]json.RawMessage
			Cases     []struct {
				Text string
				vector
			}
			Decode []struct {
				IDs  []int
				Text string
			}
		}
	}
	readJSON(t, filepath.Join("testdata", "components.json"), &file)
	if len(file.Tests) < 60 {
		t.Fatalf("got %d tests, want at least 60", len(file.Tests))
	}
	for _, tt := range file.Tests {
		t.Run(tt.Name, func(t *testing.T) {
			if string(tt.Tokenizer["model"]) == `"wordpiece"` {
				tt.Tokenizer["model"] = file.WordPiece
			}
			data, err := json.Marshal(tt.Tokenizer)
			if err != nil {
				t.Fatal(err)
			}
			tok := load(t, data)
			for _, c := range tt.Cases {
				if diff := cmp.Diff(c.vector, compute(t, tok, c.Text)); diff != "" {
					t.Errorf("%q: (-rust +got)\n%s", c.Text, diff)
				}
				checkStream(t, tok, c.Special)
			}
			for _, d := range tt.Decode {
				if got := tok.Decode(d.IDs, false); got != d.Text {
					t.Errorf("decoding %v gives %q, want %q", d.IDs, got, d.Text)
				}
				checkStream(t, tok, d.IDs)
			}
		})
	}
}
