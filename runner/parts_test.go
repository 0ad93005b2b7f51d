package runner

import (
	"context"
	"strings"
	"testing"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/coreml/tensor"
	"github.com/anepkg/anepkg/manifest"
)

// offBackend is the fake with noise in the outputs of one part.
type offBackend struct {
	fakeBackend
	part  string
	calls int // calls of the part that stay right
}

type offSession struct {
	coreml.Session
	b *offBackend
}

func (b *offBackend) Load(ctx context.Context, m *coreml.Model, fn string, o coreml.LoadOptions) (coreml.Session, error) {
	s, err := b.fakeBackend.Load(ctx, m, fn, o)
	if err == nil && b.part != "" && strings.Contains(m.Path, b.part) {
		return &offSession{s, b}, nil
	}
	return s, err
}

func (s *offSession) Predict(ctx context.Context, in map[string]*tensor.Tensor, st coreml.State) (map[string]*tensor.Tensor, error) {
	out, err := s.Session.Predict(ctx, in, st)
	if s.b.calls--; s.b.calls >= 0 {
		return out, err
	}
	for _, t := range out {
		for i := 0; i+1 < len(t.Data); i += 2 {
			t.Data[i+1] ^= 0x80 // the sign
		}
	}
	return out, err
}

func TestCompareBackends(t *testing.T) {
	pkg, err := manifest.Open(t.Context(), fakeFiles(fakeKV, "", false), "fake")
	if err != nil {
		t.Fatal(err)
	}
	defer pkg.Close() //nolint:errcheck // in memory
	pair := PackagePair{Prompts: [][]int{{1, 2}, randomIDs(8, 3)}, Steps: 3}
	same, err := CompareBackends(t.Context(), pkg, &fakeBackend{}, &fakeBackend{}, Options{}, pair)
	if err != nil || !same.Pass || same.FirstPart != nil || len(same.Parts) < 4 {
		t.Fatalf("the same backend twice: %+v, %v", same, err)
	}
	for _, p := range same.Parts {
		if !p.Pass || p.Calls == 0 || p.MaxAbs != 0 {
			t.Errorf("got %+v", p)
		}
	}
	for _, c := range same.Cases {
		if len(c.States) == 0 {
			t.Errorf("case %s compares no states", c.Name)
		}
	}
	off, err := CompareBackends(t.Context(), pkg, &fakeBackend{}, &offBackend{part: "lm_head", calls: 1}, Options{}, pair)
	if err != nil || off.Pass || off.FirstPart == nil {
		t.Fatalf("a head that is wrong: %+v, %v", off, err)
	}
	if f := off.FirstPart; !strings.Contains(f.Part, "lm_head") || f.Cosine == nil || *f.Cosine > -0.9 || f.Case != off.Cases[0].Name || f.Call == 0 {
		t.Errorf("the first part is %+v", f)
	}
	for _, p := range off.Parts {
		if wrong := strings.Contains(p.Part, "lm_head"); wrong == p.Pass {
			t.Errorf("got %+v", p)
		}
	}
	nan, err := CompareBackends(t.Context(), pkg, &fakeBackend{}, &fakeBackend{nanAt: 9}, Options{}, pair)
	if err != nil || nan.Pass {
		t.Errorf("NaN: %+v, %v", nan, err)
	}
	if _, err := CompareBackends(t.Context(), pkg, &fakeBackend{}, &choosing{}, Options{}, pair); diag.CodeOf(err) != diag.Usage {
		t.Errorf("a choice of backends: %v", err)
	}
}

// choosing offers a backend that refuses, and the fake.
type choosing struct {
	fakeBackend
	refuse error
}

type refusing struct {
	fakeBackend
	err error
}

func (r *refusing) Name() string { return "refusing" }

func (r *refusing) Load(ctx context.Context, m *coreml.Model, fn string, o coreml.LoadOptions) (coreml.Session, error) {
	if len(r.loads) > 1 {
		return nil, r.err
	}
	return r.fakeBackend.Load(ctx, m, fn, o)
}

func (c *choosing) Choose(models []*coreml.Model, _ coreml.LoadOptions) []coreml.Choice {
	if len(models) < 3 {
		return nil
	}
	return []coreml.Choice{{Backend: &refusing{err: c.refuse}, Reason: "first"}, {Backend: &c.fakeBackend, Reason: "second"}}
}

func TestOpenChoosesABackend(t *testing.T) {
	tests := []struct {
		name    string
		err     error
		backend string
		reason  string
		class   diag.Code
	}{
		{"refused half way", diag.Errorf(diag.Pos{}, diag.RunFailed, "no memory on the device"), "fake", "second: no memory on the device", ""},
		{"a damaged model", diag.Errorf(diag.Pos{}, diag.Malformed, "cut short"), "", "", diag.Malformed},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			pkg, err := manifest.Open(t.Context(), fakeFiles(fakeKV, "", false), "fake")
			if err != nil {
				t.Fatal(err)
			}
			defer pkg.Close() //nolint:errcheck // in memory
			r, err := Open(t.Context(), pkg, &choosing{refuse: tc.err}, Options{})
			if diag.CodeOf(err) != tc.class {
				t.Fatalf("got %v, want class %q", err, tc.class)
			}
			if err != nil {
				return
			}
			defer r.Close() //nolint:errcheck // a test
			if r.Backend() != tc.backend || !strings.Contains(r.BackendReason(), tc.reason) {
				t.Errorf("got %s because %q", r.Backend(), r.BackendReason())
			}
			res, err := r.Generate(t.Context(), Request{PromptIDs: []int{1, 2}, MaxTokens: 1}, nil)
			if err != nil || res.Backend != tc.backend || res.BackendReason != r.BackendReason() {
				t.Errorf("got %+v, %v", res, err)
			}
		})
	}
}
