package runner

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/manifest"
	"github.com/anepkg/anepkg/runner/sample"
)

const lastOutClaim = "    prefill_last_token_output: true\n"

// fakeCases are the packages that the generic tests run over.
var fakeCases = []struct {
	name     string
	states   string
	more     string
	kind     fakeKind
	rotate   bool
	contract manifest.Layout
}{
	{"stock", fakeKV, "", fakePlain, false, manifest.Chunked},
	{"seed", fakeKV, lastOutClaim, fakePlain, false, manifest.Chunked},
	{"recurrent", fakeGDN, lastOutClaim, fakeRecurrent, false, manifest.ChunkedRecurrent},
	{"recurrent without last-token output", fakeGDN, "", fakeRecurrent, false, manifest.ChunkedRecurrent},
	{"rotate", fakeLocal, "", fakePlain, true, manifest.Rotate},
}

// TestGenerateEveryLength: for every prompt length and prefill mode the ids
// are those of the reference, up to the context's end.
func TestGenerateEveryLength(t *testing.T) {
	for _, tc := range fakeCases {
		t.Run(tc.name, func(t *testing.T) {
			b := &fakeBackend{kind: tc.kind, lastOut: tc.more == lastOutClaim}
			r := openFake(t, fakeFiles(tc.states, tc.more, tc.rotate), b, Options{AllModes: true})
			if r.Contract() != string(tc.contract) || r.ContextLength() != fakeCtx || r.VocabSize() != fakeVocab || r.Reason() == "" {
				t.Fatalf("contract %s (%s), context %d, vocabulary %d", r.Contract(), r.Reason(), r.ContextLength(), r.VocabSize())
			}
			for n := 1; n <= fakeCtx; n++ {
				for _, mode := range []PrefillMode{PrefillAuto, PrefillBatch, PrefillSingle} {
					prompt := randomIDs(n, n+3)
					const most = 5
					want, reason := fakeGreedy(prompt, min(most, fakeCtx-n+1)), FinishLength
					if len(want) < most {
						reason = FinishContext
					}
					res, err := r.Generate(t.Context(), Request{PromptIDs: prompt, MaxTokens: most, Prefill: mode}, nil)
					if err != nil {
						t.Fatalf("length %d %s: %v", n, mode, err)
					}
					if !slices.Equal(res.GeneratedIDs, want) || res.FinishReason != reason {
						t.Errorf("length %d %s: got %v %s, want %v %s", n, mode, res.GeneratedIDs, res.FinishReason, want, reason)
					}
					if tm := res.Timings; tm.PrefillTokens != n || tm.DecodeTokens != len(want)-1 {
						t.Errorf("length %d: %d prefill and %d decode tokens, want %d and %d", n, tm.PrefillTokens, tm.DecodeTokens, n, len(want)-1)
					}
				}
			}
		})
	}
}

func TestCallSequence(t *testing.T) {
	for _, tc := range []struct {
		name   string
		states string
		more   string
		rotate bool
		n      int
		mode   PrefillMode
		want   []string
	}{
		{"stock, remainder", fakeKV, "", false, 6, PrefillAuto, []string{"embed x4", "prefill@0 x4", "embed x1", "infer@4 x1", "embed x1", "infer@5 x1", "embed x1", "infer@6 x1"}},
		{"stock, whole batches", fakeKV, "", false, 4, PrefillAuto, []string{"embed x4", "prefill@0 x4", "embed x1", "infer@3 x1", "embed x1", "infer@4 x1"}},
		{"seed, whole batches", fakeKV, lastOutClaim, false, 4, PrefillAuto, []string{"embed x4", "prefill@0 x4", "embed x1", "infer@4 x1"}},
		{"recurrent, whole batches, no last-token output", fakeGDN, "", false, 4, PrefillAuto,
			[]string{"embed x1", "infer@0 x1", "embed x1", "infer@1 x1", "embed x1", "infer@2 x1", "embed x1", "infer@3 x1", "embed x1", "infer@4 x1"}},
		{"rotate", fakeLocal, "", true, 9, PrefillAuto,
			[]string{"embed x4", "prefill@0 x4", "embed x4", "prefill@4 x4", "embed x1", "infer_rotate@8 x1", "embed x1", "infer_rotate@9 x1"}},
		{"rotate, batch", fakeLocal, "", true, 13, PrefillBatch,
			[]string{"embed x4", "prefill@0 x4", "embed x4", "prefill@4 x4", "embed x4", "prefill_rotate@8 x4", "embed x1", "infer_rotate@12 x1", "embed x1", "infer_rotate@13 x1"}},
	} {
		b := &fakeBackend{lastOut: tc.more != ""}
		r := openFake(t, fakeFiles(tc.states, tc.more, tc.rotate), b, Options{Prefill: tc.mode})
		if _, err := r.Generate(t.Context(), Request{PromptIDs: randomIDs(tc.n, 2), MaxTokens: 2}, nil); err != nil {
			t.Fatalf("%s: %v", tc.name, err)
		}
		if !slices.Equal(b.calls, tc.want) {
			t.Errorf("%s:\n got %v\nwant %v", tc.name, b.calls, tc.want)
		}
	}
}

// TestLoadsOnlyWhatItCalls: each loaded function costs memory on Apple's
// hardware, so the prefill mode decides what is loaded.
func TestLoadsOnlyWhatItCalls(t *testing.T) {
	for _, tc := range []struct {
		mode PrefillMode
		want string
	}{
		{PrefillSingle, "infer infer_rotate"},
		{PrefillAuto, "infer prefill infer_rotate"},
		{PrefillBatch, "infer prefill infer_rotate prefill_rotate"},
	} {
		b := &fakeBackend{}
		var events []Event
		openFake(t, fakeFiles(fakeLocal, "", true), b, Options{Prefill: tc.mode, Progress: func(e Event) { events = append(events, e) }})
		var got []string
		for _, l := range b.loads {
			if fn, ok := strings.CutPrefix(l, "qwen_FFN_PF_chunk_01of02/"); ok {
				got = append(got, fn)
			}
		}
		if strings.Join(got, " ") != tc.want {
			t.Errorf("%s: loaded %v, want %s", tc.mode, got, tc.want)
		}
		last := events[len(events)-1]
		if last.Phase != Loading || last.Done != last.Total || last.Total != len(b.loads) {
			t.Errorf("%s: last event %+v, want all of %d loads", tc.mode, last, len(b.loads))
		}
	}
}

func TestContextEnd(t *testing.T) {
	b := &fakeBackend{}
	r := openFake(t, fakeFiles(fakeKV, "", false), b, Options{})
	if _, err := r.Generate(t.Context(), Request{PromptIDs: randomIDs(17, 1)}, nil); diag.CodeOf(err) != diag.Context ||
		!strings.Contains(err.Error(), "17 tokens") || !strings.Contains(err.Error(), "holds 16") {
		t.Errorf("17 tokens: got %v, want an error of class context_full with both counts", err)
	}
	res, err := r.Generate(t.Context(), Request{PromptIDs: randomIDs(16, 1)}, nil)
	if err != nil || len(res.GeneratedIDs) != 1 || res.FinishReason != FinishContext {
		t.Errorf("16 tokens: got %+v, %v, want one token and reason context", res, err)
	}
	r = openFake(t, fakeFiles(fakeKV, "", false), b, Options{StrictContext: true})
	res, err = r.Generate(t.Context(), Request{PromptIDs: randomIDs(14, 1)}, nil)
	if diag.CodeOf(err) != diag.Context || len(res.GeneratedIDs) != 3 {
		t.Errorf("strict: got %v, %v, want three tokens and an error of class context_full", res, err)
	}
	// Asking for no more than fits is no error.
	if _, err = r.Generate(t.Context(), Request{PromptIDs: randomIDs(14, 1), MaxTokens: 3}, nil); err != nil {
		t.Errorf("strict, 3 of 3: %v", err)
	}
	// A local cache that nothing rotates ends the context.
	r = openFake(t, fakeFiles(fakeLocal, "", false), b, Options{})
	if r.ContextLength() != fakeWin || !strings.Contains(r.Reason(), "infer_rotate") {
		t.Errorf("window without rotate: context %d (%s)", r.ContextLength(), r.Reason())
	}
}

func TestStopIDs(t *testing.T) {
	r := openFake(t, fakeFiles(fakeKV, "", false), &fakeBackend{}, Options{})
	prompt := randomIDs(3, 4)
	want := fakeGreedy(prompt, 8)
	stop := want[4]
	cut := slices.Index(want, stop)
	res, err := r.Generate(t.Context(), Request{PromptIDs: prompt, MaxTokens: 8, StopIDs: []int{stop}, KeepLogits: true}, nil)
	if err != nil || !slices.Equal(res.GeneratedIDs, want[:cut]) || res.FinishReason != FinishStop || res.StopID == nil || *res.StopID != stop {
		t.Fatalf("got %+v, %v, want %v then stop at %d", res, err, want[:cut], stop)
	}
	if len(res.Logits) != cut+1 {
		t.Fatalf("%d rows of logits, want %d: one for each choice", len(res.Logits), cut+1)
	}
	for i, row := range res.Logits {
		if id, err := sample.Greedy(row); err != nil || id != want[i] || len(row) != fakeVocab {
			t.Errorf("row %d of %d values chose %d, %v, want %d", i, len(row), id, err, want[i])
		}
	}
}

func TestPackageStopIDs(t *testing.T) {
	prompt := randomIDs(3, 4)
	want := fakeGreedy(prompt, 8)
	fsys := fakeFiles(fakeKV, "", false)
	fsys["tokenizer_config.json"] = file("{}")
	fsys["generation_config.json"] = file(fmt.Sprintf(`{"eos_token_id": [99, %d]}`, want[2]))
	r := openFake(t, fsys, &fakeBackend{}, Options{})
	for _, tc := range []struct {
		ignore bool
		want   []int
		reason FinishReason
	}{{false, want[:slices.Index(want, want[2])], FinishStop}, {true, want, FinishLength}} {
		res, err := r.Generate(t.Context(), Request{PromptIDs: prompt, MaxTokens: 8, IgnoreEOS: tc.ignore}, nil)
		if err != nil || !slices.Equal(res.GeneratedIDs, tc.want) || res.FinishReason != tc.reason {
			t.Errorf("ignore eos %v: got %v %s, %v, want %v %s", tc.ignore, res.GeneratedIDs, res.FinishReason, err, tc.want, tc.reason)
		}
	}
}

func TestArgmaxHead(t *testing.T) {
	fsys := fakeFiles(fakeKV, "    argmax_in_model: true\n", false)
	head := func(sizes ...int) {
		var body strings.Builder
		for i, n := range sizes {
			fmt.Fprintf(&body, "            tensor<fp16, [1, 1, %d]> l%d = fake()[name = string(\"l\")];\n", n, i)
			fmt.Fprintf(&body, "            tensor<int32, [1, 1, 1]> a%d = reduce_argmax(x = l%d)[name = string(\"a\")];\n", i, i)
		}
		body.WriteString("            tensor<int32, [3]> argmax_idx = concat(values = (a0, a1, a2))[name = string(\"c\")];\n")
		body.WriteString("            tensor<fp16, [3]> argmax_val = fake()[name = string(\"v\")];\n")
		fsys["qwen_lm_head.mlmodelc/model.mil"] = fakeProgram("    func main<ios18>(tensor<fp16, [1, 1, 4]> hidden_states) {\n" + body.String() + "        } -> (argmax_idx, argmax_val);\n")
	}
	head(8, 8, 7)
	r := openFake(t, fsys, &fakeBackend{}, Options{})
	if r.HasLogits() || r.VocabSize() != fakeVocab {
		t.Fatalf("logits %v, vocabulary %d", r.HasLogits(), r.VocabSize())
	}
	prompt := randomIDs(5, 4)
	res, err := r.Generate(t.Context(), Request{PromptIDs: prompt, MaxTokens: 6}, nil)
	if want := fakeGreedy(prompt, 6); err != nil || !slices.Equal(res.GeneratedIDs, want) {
		t.Errorf("got %v, %v, want %v", res.GeneratedIDs, err, want)
	}
	if _, err := r.Generate(t.Context(), Request{PromptIDs: prompt, KeepLogits: true}, nil); diag.CodeOf(err) != diag.Usage {
		t.Errorf("logits: got %v, want an error of class usage", err)
	}
	s, _ := sample.New(sample.Config{Temperature: 1})
	if _, err := r.Generate(t.Context(), Request{PromptIDs: prompt, Sampler: s}, nil); diag.CodeOf(err) != diag.Usage {
		t.Errorf("sampling: got %v, want an error of class usage", err)
	}
	// The program's widths win over the claimed ones, which would be 8, 8, 7.
	head(5, 8, 10)
	r = openFake(t, fsys, &fakeBackend{}, Options{})
	if got := r.contract.Head().Parts; !slices.Equal(got, []int{5, 8, 10}) {
		t.Errorf("parts %v, want those of the program", got)
	}
}

func TestSplitHeadOrder(t *testing.T) {
	fsys := fakeFiles(fakeKV, "", false)
	var outs []string
	for i := 1; i <= 11; i++ { // 1 + 10x2 + 2: logits10 must not stand after logits1
		n := 2
		if i == 1 {
			n = 3
		}
		outs = append(outs, fmt.Sprintf("tensor<fp16, [1, 1, %d]> = logits%d", n, i))
	}
	byName := func(s string) string { _, name, _ := strings.Cut(s, " = "); return name }
	slices.SortFunc(outs, func(a, b string) int { return strings.Compare(byName(a), byName(b)) })
	fsys["qwen_lm_head.mlmodelc/model.mil"] = fakeProgram(fakeFn("main", "tensor<fp16, [1, 1, 4]> hidden_states", outs...))
	r := openFake(t, fsys, &fakeBackend{}, Options{})
	if got := r.contract.Head().Parts; r.VocabSize() != 23 || !slices.Equal(got, []int{3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2}) {
		t.Fatalf("vocabulary %d, parts %v", r.VocabSize(), got)
	}
	prompt := randomIDs(5, 4)
	res, err := r.Generate(t.Context(), Request{PromptIDs: prompt, MaxTokens: 8}, nil)
	if want := fakeGreedy(prompt, 8); err != nil || !slices.Equal(res.GeneratedIDs, want) {
		t.Errorf("got %v, %v, want %v", res.GeneratedIDs, err, want)
	}
}

func TestNaNNamesThePart(t *testing.T) {
	r := openFake(t, fakeFiles(fakeKV, "", false), &fakeBackend{nanAt: 5}, Options{})
	res, err := r.Generate(t.Context(), Request{PromptIDs: randomIDs(3, 4), MaxTokens: 8}, nil)
	if diag.CodeOf(err) != diag.RunFailed || !strings.Contains(err.Error(), "chunk_02of02") || !strings.Contains(err.Error(), "position 5") {
		t.Fatalf("got %v, want an error of class run_failed that names chunk 2 and position 5", err)
	}
	if len(res.GeneratedIDs) != 3 {
		t.Errorf("%d tokens before the failure, want 3", len(res.GeneratedIDs))
	}
	// The state is not trusted after a failure: nothing is reused.
	res, err = r.Generate(t.Context(), Request{PromptIDs: randomIDs(3, 4), MaxTokens: 1, Reuse: true}, nil)
	if err != nil || res.Timings.PrefillTokens != 3 {
		t.Errorf("after the failure: %+v, %v, want all 3 tokens fed", res, err)
	}
}

func TestCancel(t *testing.T) {
	r := openFake(t, fakeFiles(fakeKV, "", false), &fakeBackend{}, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Generate(ctx, Request{PromptIDs: randomIDs(3, 4)}, nil); diag.CodeOf(err) != diag.Interrupted {
		t.Errorf("got %v, want an error of class interrupted", err)
	}
	pkg, err := manifest.Open(t.Context(), fakeFiles(fakeKV, "", false), "fake")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(ctx, pkg, &fakeBackend{}, Options{}); err == nil {
		t.Error("Open with a cancelled context succeeded")
	}
}

func TestReuse(t *testing.T) {
	for _, tc := range []struct {
		name   string
		states string
		kind   fakeKind
		first  int // prompt length; 3 tokens are generated, 2 of them fed
		change int // token of the second prompt that differs; -1 = none
		fed    int // of a second prompt of 9 tokens that begins with the first answer
	}{
		{"plain, extended", fakeKV, fakePlain, 5, -1, 2},
		{"plain, changed at 4", fakeKV, fakePlain, 5, 4, 5},
		{"plain, changed at 0", fakeKV, fakePlain, 5, 0, 9},
		{"recurrent, extended", fakeGDN, fakeRecurrent, 5, -1, 2},
		{"recurrent, changed at 6", fakeGDN, fakeRecurrent, 5, 6, 9},
	} {
		r := openFake(t, fakeFiles(tc.states, lastOutClaim, false), &fakeBackend{kind: tc.kind, lastOut: true}, Options{})
		prompt := randomIDs(tc.first, 4)
		res, err := r.Generate(t.Context(), Request{PromptIDs: prompt, MaxTokens: 3}, nil)
		if err != nil {
			t.Fatalf("%s: %v", tc.name, err)
		}
		second := append(append(slices.Clone(prompt), res.GeneratedIDs...), randomIDs(9, 5)[:9-tc.first-3]...)
		if tc.change >= 0 {
			second[tc.change] = (second[tc.change] + 1) % fakeVocab
		}
		res, err = r.Generate(t.Context(), Request{PromptIDs: second, MaxTokens: 4, Reuse: true}, nil)
		if err != nil {
			t.Fatalf("%s: %v", tc.name, err)
		}
		if want := fakeGreedy(second, 4); !slices.Equal(res.GeneratedIDs, want) || res.Timings.PrefillTokens != tc.fed {
			t.Errorf("%s: got %v after feeding %d tokens, want %v after %d", tc.name, res.GeneratedIDs, res.Timings.PrefillTokens, want, tc.fed)
		}
	}
}

func TestCheckpoint(t *testing.T) {
	r := openFake(t, fakeFiles(fakeGDN, lastOutClaim, false), &fakeBackend{kind: fakeRecurrent, lastOut: true}, Options{})
	prompt := randomIDs(6, 4)
	if _, err := r.Generate(t.Context(), Request{PromptIDs: prompt, MaxTokens: 1}, nil); err != nil {
		t.Fatal(err)
	}
	cp, err := r.Checkpoint()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Generate(t.Context(), Request{PromptIDs: randomIDs(9, 1), MaxTokens: 4}, nil); err != nil {
		t.Fatal(err)
	}
	if err := r.Rollback(cp); err != nil || r.Position() != 6 {
		t.Fatalf("rollback: %v, position %d", err, r.Position())
	}
	longer := append(slices.Clone(prompt), 3, 1)
	res, err := r.Generate(t.Context(), Request{PromptIDs: longer, MaxTokens: 4, Reuse: true}, nil)
	if want := fakeGreedy(longer, 4); err != nil || !slices.Equal(res.GeneratedIDs, want) || res.Timings.PrefillTokens != 2 {
		t.Errorf("got %+v, %v, want %v after feeding 2 tokens", res, err, want)
	}
}

func TestEmbeddingsWithoutBatch(t *testing.T) {
	fsys := fakeFiles(fakeKV, lastOutClaim, false)
	fsys["qwen_embeddings.mlmodelc/model.mil"] = fakeProgram(fakeFn("main", "tensor<int32, [1, 1]> input_ids", "tensor<fp16, [1, 1, 4]> = hidden_states"))
	b := &fakeBackend{lastOut: true}
	r := openFake(t, fsys, b, Options{})
	prompt := randomIDs(9, 4)
	res, err := r.Generate(t.Context(), Request{PromptIDs: prompt, MaxTokens: 4}, nil)
	if want := fakeGreedy(prompt, 4); err != nil || !slices.Equal(res.GeneratedIDs, want) {
		t.Errorf("got %+v, %v, want %v", res, err, want)
	}
	if slices.Contains(b.calls, "prefill@0 x4") {
		t.Error("prefill was called although the embeddings take one token only")
	}
}

func TestMonolithic(t *testing.T) {
	fsys := fakeFiles(fakeKV, "", false)
	params := func(n int) string {
		return fmt.Sprintf("tensor<fp16, [1, 1, %d, %d]> causal_mask, tensor<int32, [1]> current_pos, tensor<int32, [1, %d]> input_ids, %s, tensor<int32, [%d]> position_ids", n, fakeCtx, n, fakeKV, n)
	}
	for name := range fsys {
		if strings.HasSuffix(name, ".mil") {
			delete(fsys, name)
		}
	}
	fsys["meta.yaml"] = file("model_info:\n  name: fake\n  model_type: monolithic\n  parameters:\n    context_length: 16\n    batch_size: 4\n    model_prefix: qwen\n    monolithic_model: qwen_monolithic_full.mlmodelc\n")
	fsys["qwen_monolithic_full.mlmodelc/model.mil"] = fakeProgram(
		fakeFn(fnInfer, params(1), "tensor<fp16, [1, 1, 12]> = logits1", "tensor<fp16, [1, 1, 11]> = logits2"),
		fakeFn(fnPrefill, params(4), "tensor<fp16, [1, 4, 4]> = output_hidden_states"))
	b := &fakeBackend{}
	r := openFake(t, fsys, b, Options{})
	if r.Contract() != string(manifest.Monolithic) {
		t.Fatalf("contract %s", r.Contract())
	}
	for n := 1; n <= 12; n++ {
		prompt := randomIDs(n, 4)
		res, err := r.Generate(t.Context(), Request{PromptIDs: prompt, MaxTokens: 4}, nil)
		if want := fakeGreedy(prompt, 4); err != nil || !slices.Equal(res.GeneratedIDs, want) {
			t.Errorf("length %d: got %+v, %v, want %v", n, res, err, want)
		}
	}
	if !slices.Contains(b.calls, "prefill@4 x4") {
		t.Errorf("no prefill among %v", b.calls)
	}
}

func TestOpenRefuses(t *testing.T) {
	for _, tc := range []struct {
		name string
		edit func(m map[string]string)
		code diag.Code
		want string
	}{
		{"unknown input", func(m map[string]string) {
			m["qwen_FFN_PF_chunk_02of02.mlmodelc/model.mil"] = "tensor<fp16, [1]> mystery, "
		}, diag.Unsupported, "mystery"},
		{"no lm_head", func(m map[string]string) { m["qwen_lm_head.mlmodelc/model.mil"] = "-" }, diag.NotFound, "lm_head"},
	} {
		fsys := fakeFiles(fakeKV, "", false)
		edits := map[string]string{}
		tc.edit(edits)
		for name, s := range edits {
			if s == "-" {
				delete(fsys, name)
				continue
			}
			fsys[name] = file(strings.ReplaceAll(string(fsys[name].Data), "ios18>(", "ios18>("+s))
		}
		_, err := tryFake(t, fsys, &fakeBackend{}, Options{})
		if diag.CodeOf(err) != tc.code || !strings.Contains(fmt.Sprint(err), tc.want) {
			t.Errorf("%s: got %v, want class %s and %q", tc.name, err, tc.code, tc.want)
		}
	}
}

func TestBadRequests(t *testing.T) {
	r := openFake(t, fakeFiles(fakeKV, "", false), &fakeBackend{}, Options{})
	for _, req := range []Request{
		{}, {PromptIDs: []int{}}, {PromptIDs: []int{-1}}, {PromptIDs: []int{fakeVocab}}, {PromptIDs: []int{1}, MaxTokens: -1},
	} {
		if _, err := r.Generate(t.Context(), req, nil); diag.CodeOf(err) != diag.Usage {
			t.Errorf("%+v: got %v, want an error of class usage", req, err)
		}
	}
	if _, err := tryFake(t, fakeFiles(fakeKV, "", false), &fakeBackend{}, Options{Prefill: "fast"}); diag.CodeOf(err) != diag.Usage {
		t.Errorf("prefill mode: got %v, want an error of class usage", err)
	}
}
