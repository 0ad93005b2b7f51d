package runner

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestContextVariants: infer_ctxN functions take the mask of N positions, and
// every token goes through the smallest that holds it (anemll.md 3.2). The
// aliases infer and prefill may be there or not.
func TestContextVariants(t *testing.T) {
	for _, tc := range []struct {
		name  string
		alias bool
		split bool // prefill in files of its own
	}{{"with aliases", true, false}, {"without", false, false}, {"prefill split off", false, true}} {
		fsys := fakeFiles(fakeKV, "", false)
		for c := 1; c <= 2; c++ {
			fns := []string{
				fakeDecoderFor(4, "infer_ctx4", 1, fakeKV, 1), fakeDecoderFor(16, "infer_ctx16", 1, fakeKV, 1), fakeDecoderFor(8, "infer_ctx8", 1, fakeKV, 1),
			}
			prefill := []string{fakeDecoderFor(16, "prefill_ctx16", fakeBatch, fakeKV, 1+(2-c)*(fakeBatch-1))}
			if tc.alias {
				fns = append(fns, fakeDecoder(fnInfer, 1, fakeKV, 1))
				prefill = append(prefill, fakeDecoder(fnPrefill, fakeBatch, fakeKV, 1+(2-c)*(fakeBatch-1)))
			}
			if tc.split {
				fsys[fmt.Sprintf("qwen_prefill_statex_chunk_0%dof02.mlmodelc/model.mil", c)] = fakeProgram(prefill...)
				fsys["meta.yaml"] = file(string(fsys["meta.yaml"].Data) + map[int]string{1: "    ffn_prefill: qwen_prefill_statex_chunk_01of02.mlmodelc\n"}[c])
			} else {
				fns = append(fns, prefill...)
			}
			fsys[fmt.Sprintf("qwen_FFN_PF_chunk_0%dof02.mlmodelc/model.mil", c)] = fakeProgram(fns...)
		}
		b := &fakeBackend{}
		r := openFake(t, fsys, b, Options{})
		prompt := randomIDs(6, 2)
		res, err := r.Generate(t.Context(), Request{PromptIDs: prompt, MaxTokens: 5}, nil)
		if err != nil || !slices.Equal(res.GeneratedIDs, fakeGreedy(prompt, 5)) {
			t.Errorf("%s: got %v, %v, want %v", tc.name, res, err, fakeGreedy(prompt, 5))
		}
		pre := "prefill_ctx16@0 x4"
		if tc.alias {
			pre = "prefill@0 x4"
		}
		calls := slices.DeleteFunc(b.calls, func(s string) bool { return strings.HasPrefix(s, "embed") })
		if want := []string{pre, "infer_ctx8@4 x1", "infer_ctx8@5 x1", "infer_ctx8@6 x1", "infer_ctx8@7 x1", "infer_ctx16@8 x1", "infer_ctx16@9 x1"}; !slices.Equal(calls, want) {
			t.Errorf("%s:\n got %v\nwant %v", tc.name, calls, want)
		}
		if r.ContextLength() != 16 || !strings.Contains(r.Reason(), "infer_ctx of [4 8 16]") {
			t.Errorf("%s: context %d, %s", tc.name, r.ContextLength(), r.Reason())
		}
	}
}
