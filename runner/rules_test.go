package runner

import (
	"fmt"
	"slices"
	"testing"
)

// TestPlan: the call sequences of the package format ("Call sequence") and,
// for rotating caches, of the runtimes it was measured with.
func TestPlan(t *testing.T) {
	plain := rules{limit: 64, batch: 4, rerun: true}
	seed := rules{limit: 64, batch: 4, rerun: true, lastOut: true}
	recurrent := rules{limit: 64, batch: 4, lastOut: true}
	stockRecurrent := rules{limit: 64, batch: 4}
	rotate := rules{limit: 64, batch: 4, window: 8, rotateBatch: true}
	ring := rules{limit: 64, batch: 4, ring: 8, rerun: true, lastOut: true}
	sizes := rules{limit: 16, batch: 4, rerun: true, sizes: []int{4, 8, 16}}
	for _, tc := range []struct {
		name   string
		rules  rules
		pos, n int
		mode   PrefillMode
		want   []string
	}{
		{"one token", seed, 0, 1, PrefillAuto, []string{"infer@0"}},
		{"below a batch", seed, 0, 3, PrefillAuto, []string{"infer@0", "infer@1", "infer@2"}},
		{"exactly a batch, last-token output", seed, 0, 4, PrefillAuto, []string{"prefill@0 x4"}},
		{"exactly a batch, plain caches: last token again", plain, 0, 4, PrefillAuto, []string{"prefill@0 x4", "infer@3"}},
		{"exactly two batches, recurrent", recurrent, 0, 8, PrefillAuto, []string{"prefill@0 x4", "prefill@4 x4"}},
		{"exactly a batch, recurrent without last-token output", stockRecurrent, 0, 4, PrefillAuto, []string{"infer@0", "infer@1", "infer@2", "infer@3"}},
		{"two batches, recurrent without last-token output", stockRecurrent, 0, 8, PrefillAuto,
			[]string{"prefill@0 x4", "infer@4", "infer@5", "infer@6", "infer@7"}},
		{"batches and remainder", plain, 0, 10, PrefillAuto, []string{"prefill@0 x4", "prefill@4 x4", "infer@8", "infer@9"}},
		{"from a position inside the context", plain, 3, 5, PrefillAuto, []string{"prefill@3 x4", "infer@7"}},
		{"single", plain, 0, 5, PrefillSingle, []string{"infer@0", "infer@1", "infer@2", "infer@3", "infer@4"}},
		{"no prefill function", rules{limit: 64, rerun: true}, 0, 2, PrefillAuto, []string{"infer@0", "infer@1"}},
		{"rotate below the window", rotate, 0, 8, PrefillAuto, []string{"prefill@0 x4", "infer@4", "infer@5", "infer@6", "infer@7"}},
		{"rotate past the window, auto", rotate, 0, 10, PrefillAuto, []string{"prefill@0 x4", "prefill@4 x4", "infer_rotate@8", "infer_rotate@9"}},
		{"rotate past the window, batch", rotate, 0, 14, PrefillBatch,
			[]string{"prefill@0 x4", "prefill@4 x4", "prefill_rotate@8 x4", "infer_rotate@12", "infer_rotate@13"}},
		{"ring, auto: singly from where a batch would overwrite", ring, 0, 13, PrefillAuto,
			[]string{"prefill@0 x4", "prefill@4 x4", "infer@8", "infer@9", "infer@10", "infer@11", "infer@12"}},
		{"ring, batch: as the stock runtime, within a round", ring, 0, 13, PrefillBatch, []string{"prefill@0 x4", "prefill@4 x4", "prefill@8 x4", "infer@12"}},
		{"ring, batch: not across the ring's end", ring, 6, 6, PrefillBatch, []string{"infer@6", "infer@7", "prefill@8 x4"}},
		{"contexts by size", sizes, 2, 7, PrefillSingle,
			[]string{"infer_ctx4@2", "infer_ctx4@3", "infer_ctx8@4", "infer_ctx8@5", "infer_ctx8@6", "infer_ctx8@7", "infer_ctx16@8"}},
		{"contexts by size, after a batch", sizes, 0, 4, PrefillAuto, []string{"prefill@0 x4", "infer_ctx4@3"}},
		{"a batch must not cross the window", rotate, 6, 4, PrefillBatch, []string{"infer@6", "infer@7", "infer_rotate@8", "infer_rotate@9"}},
	} {
		steps := tc.rules.plan(tc.pos, tc.n, tc.mode)
		var got []string
		for i, st := range steps {
			s := fmt.Sprintf("%s@%d", st.fn, st.pos)
			if st.n > 1 {
				s += fmt.Sprintf(" x%d", st.n)
			}
			got = append(got, s)
			if st.want != (i == len(steps)-1) {
				t.Errorf("%s: step %s: want = %v", tc.name, s, st.want)
			}
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s:\n got %v\nwant %v", tc.name, got, tc.want)
		}
	}
}

// TestPlanFeedsEachPosition tries every length: positions come in order,
// each once (but for the one repetition plain caches allow), batches are
// full, and the last call holds the last token.
func TestPlanFeedsEachPosition(t *testing.T) {
	for _, r := range []rules{
		{limit: 40, batch: 4, rerun: true}, {limit: 40, batch: 4, rerun: true, lastOut: true}, {limit: 40, batch: 4, lastOut: true},
		{limit: 40, batch: 4}, {limit: 40}, {limit: 40, batch: 4, window: 10, rotateBatch: true}, {limit: 40, batch: 8, window: 8, rotateBatch: true},
		{limit: 40, batch: 4, ring: 8, rerun: true, lastOut: true}, {limit: 40, batch: 4, ring: 10, rerun: true, lastOut: true},
	} {
		for _, mode := range []PrefillMode{PrefillAuto, PrefillBatch, PrefillSingle} {
			for pos := range 14 {
				for n := 1; pos+n <= r.limit; n++ {
					next := pos
					steps := r.plan(pos, n, mode)
					for i, st := range steps {
						again := i == len(steps)-1 && i > 0 && st.n == 1 && st.pos == next-1 && r.rerun && !r.lastOut
						if st.pos != next && !again || st.n != 1 && st.n != r.batch {
							t.Fatalf("%+v %s pos %d n %d: step %+v after position %d", r, mode, pos, n, st, next)
						}
						if !again {
							next += st.n
						}
					}
					if last := steps[len(steps)-1]; next != pos+n || last.n > 1 && !r.lastOut {
						t.Fatalf("%+v %s pos %d n %d: ends at %d with %+v", r, mode, pos, n, next, last)
					}
				}
			}
		}
	}
}

func TestRewindable(t *testing.T) {
	for _, tc := range []struct {
		name    string
		rules   rules
		fed, to int
		want    bool
	}{
		{"plain", rules{rerun: true}, 9, 3, true},
		{"plain beyond", rules{rerun: true}, 9, 10, false},
		{"recurrent goes on", rules{}, 9, 9, true},
		{"recurrent back", rules{}, 9, 8, false},
		{"window not passed", rules{window: 8}, 8, 3, true},
		{"window passed", rules{window: 8}, 9, 3, false},
		{"window passed goes on", rules{window: 8}, 9, 9, true},
		{"ring not passed", rules{ring: 8, rerun: true}, 8, 3, true},
		{"ring passed", rules{ring: 8, rerun: true}, 10, 8, false},
		{"ring passed by one, and the last again", rules{ring: 8, rerun: true}, 10, 9, true},
	} {
		if got := tc.rules.rewindable(tc.fed, tc.to); got != tc.want {
			t.Errorf("%s: got %v", tc.name, got)
		}
	}
}
