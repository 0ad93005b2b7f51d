package runner

import (
	"context"
	"os"
	"reflect"
	"testing"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/coreml/sharedtest"
	"github.com/anepkg/anepkg/coreml/tensor"
	"github.com/anepkg/anepkg/manifest"
)

func openShared(t testing.TB, elem ...string) *manifest.Package {
	t.Helper()
	dir := sharedtest.Path(t, elem...)
	pkg, err := manifest.Open(t.Context(), os.DirFS(dir), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pkg.Close() })
	return pkg
}

// idleBackend loads anything and runs nothing.
type idleBackend struct{ loads []string }

func (b *idleBackend) Name() string { return "idle" }
func (b *idleBackend) Load(_ context.Context, m *coreml.Model, fn string, _ coreml.LoadOptions) (coreml.Session, error) {
	b.loads = append(b.loads, m.Name+"/"+fn)
	return idleSession{f: m.Function(fn)}, nil
}
func (b *idleBackend) NewState([]coreml.Feature) (coreml.State, error) { return &fakeState{}, nil }

type idleSession struct {
	coreml.Session
	f *coreml.Function
}

func (s idleSession) Function() *coreml.Function { return s.f }
func (s idleSession) Close() error               { return nil }
func (s idleSession) Predict(context.Context, map[string]*tensor.Tensor, coreml.State) (map[string]*tensor.Tensor, error) {
	panic("idle")
}

// TestContractOfSamples: what HOW.md and golden.json of each package say.
func TestContractOfSamples(t *testing.T) {
	for _, tc := range []struct {
		name     string
		contract manifest.Layout
		context  int
		vocab    int
		logits   bool
		rules    rules
	}{
		{"seed-qwen3-lut6", manifest.Chunked, 64, 515, true, rules{batch: 16, lastOut: true, rerun: true}},
		{"seed-qwen3-int8", manifest.Chunked, 64, 515, true, rules{batch: 16, lastOut: true, rerun: true}},
		{"seed-qwen3_5-2chunks-fp16", manifest.ChunkedRecurrent, 64, 515, true, rules{batch: 16, lastOut: true}},
		{"seed-gemma4-full-local-fp16", manifest.ChunkedGemma4, 64, 768, true, rules{batch: 16, lastOut: true, rerun: true}},
		{"seed-gemma4-block-window-lut6-2chunks", manifest.ChunkedGemma4, 128, 768, true, rules{batch: 16, lastOut: true}},
		{"anemll-qwen3-fp16", manifest.Chunked, 128, 515, true, rules{batch: 16, rerun: true}},
		{"anemll-llama-lut4", manifest.Chunked, 128, 512, true, rules{batch: 16, rerun: true}},
		{"anemll-qwen25-argmax", manifest.Chunked, 64, 515, false, rules{batch: 16, rerun: true}},
		{"anemll-gemma3-rotate", manifest.Rotate, 256, 768, true, rules{batch: 16, window: 32, rotateBatch: true}},
		{"anemll-gemma3-mono", manifest.Rotate, 256, 768, true, rules{batch: 16, window: 32, rotateBatch: true}},
		{"anemll-qwen3-mono-lut6", manifest.Monolithic, 64, 640, true, rules{batch: 16, rerun: true}},
	} {
		for _, form := range []string{"package", "compiled"} {
			r, err := Open(t.Context(), openShared(t, "models", "tiny", tc.name, form), &idleBackend{}, Options{})
			if err != nil {
				t.Errorf("%s/%s: %v", tc.name, form, err)
				continue
			}
			tc.rules.limit = tc.context
			if got := r.contract.(*stepper).rules; r.Contract() != string(tc.contract) || r.ContextLength() != tc.context ||
				r.VocabSize() != tc.vocab || r.HasLogits() != tc.logits || !reflect.DeepEqual(got, tc.rules) {
				t.Errorf("%s/%s: contract %s, context %d, vocabulary %d, logits %v, rules %+v; want %+v", tc.name, form,
					r.Contract(), r.ContextLength(), r.VocabSize(), r.HasLogits(), got, tc)
			}
		}
	}
}
