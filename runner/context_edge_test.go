package runner

import (
	"testing"

	"github.com/anepkg/anepkg/coreml/diag"
)

// TestPromptAtContext: prompts of one token less than the context, of the
// context, and of one more.
func TestPromptAtContext(t *testing.T) {
	r := openFake(t, fakeFiles(fakeKV, "", false), &fakeBackend{}, Options{})
	n := r.ContextLength()
	for _, tc := range []struct{ prompt, generated int }{{n - 1, 2}, {n, 1}} {
		res, err := r.Generate(t.Context(), Request{PromptIDs: randomIDs(tc.prompt, 1)}, nil)
		if err != nil || len(res.GeneratedIDs) != tc.generated || res.FinishReason != FinishContext {
			t.Errorf("%d of %d tokens: got %+v, %v, want %d tokens and reason context", tc.prompt, n, res, err, tc.generated)
		}
	}
	if _, err := r.Generate(t.Context(), Request{PromptIDs: randomIDs(n+1, 1)}, nil); diag.CodeOf(err) != diag.Context {
		t.Errorf("%d of %d tokens: got %v, want an error of class context_full", n+1, n, err)
	}
}
