package sample

import (
	"math"
	"slices"
	"testing"

	"github.com/anepkg/anepkg/coreml/diag"
)

func TestPenalizeCounts(t *testing.T) {
	got := []float32{4, -4, 0, 4}
	PenalizeCounts(got, []int{0, 1, 1, 99, -1}, 0.5, 1)
	if want := []float32{2.5, -6, 0, 4}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestAddBias(t *testing.T) {
	got := []float32{4, inf, 0, 4}
	AddBias(got, map[int]float64{0: -1.5, 1: math.Inf(-1), 3: 100, 9: 1})
	if want := []float32{2.5, negInf, 0, 104}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestPenaltiesInNext(t *testing.T) {
	for _, tc := range []struct {
		name              string
		cfg               Config
		prompt, generated []int
		want              int
	}{
		{"frequency grows with the count", Config{FrequencyPenalty: 0.3}, nil, []int{1, 1}, 0},
		{"one count is not enough", Config{FrequencyPenalty: 0.3}, nil, []int{1}, 1},
		{"the prompt does not count", Config{FrequencyPenalty: 2, PresencePenalty: 2}, []int{1, 1}, nil, 1},
		{"presence counts once", Config{PresencePenalty: 0.6}, nil, []int{1}, 0},
		{"negative presence holds on", Config{PresencePenalty: -2}, nil, []int{2}, 2},
		{"bias", Config{LogitBias: map[int]float64{2: 5}}, nil, nil, 2},
		{"a forbidden token", Config{LogitBias: map[int]float64{1: math.Inf(-1)}}, nil, nil, 0},
		{"repeat penalty sees the prompt", Config{RepeatPenalty: 2}, []int{1}, []int{2}, 0},
		{"its window ends inside the prompt", Config{RepeatPenalty: 2, RepeatWindow: 2}, []int{1, 0}, []int{2}, 1},
		{"its window ends inside what was generated", Config{RepeatPenalty: 2, RepeatWindow: 1}, nil, []int{1, 2}, 1},
		{"no window", Config{RepeatPenalty: 2, RepeatWindow: -1}, []int{1, 0}, []int{2}, 1}, // 0.5, 0.75, -0
	} {
		s, err := New(tc.cfg)
		if err != nil {
			t.Fatalf("%s: %v", tc.name, err)
		}
		logits := []float32{1, 1.5, 0}
		if got, err := s.Next(logits, tc.prompt, tc.generated); err != nil || got != tc.want {
			t.Errorf("%s: got %d, %v, want %d", tc.name, got, err, tc.want)
		}
		if !slices.Equal(logits, []float32{1, 1.5, 0}) {
			t.Errorf("%s: logits were changed", tc.name)
		}
		if tc.cfg.Plain() {
			t.Errorf("%s: Plain is true", tc.name)
		}
	}
}

// TestTypical: the kept ids were computed with numpy by the lines of
// transformers' TypicalLogitsWarper.
func TestTypical(t *testing.T) {
	for _, tc := range []struct {
		logits []float32
		p      float64
		want   []int
	}{
		{[]float32{4, 3, 2, 1, 0, -1}, 0.2, []int{1}},
		{[]float32{4, 3, 2, 1, 0, -1}, 0.5, []int{0, 1}},
		{[]float32{4, 3, 2, 1, 0, -1}, 0.9, []int{0, 1, 2}},
		{[]float32{10, 0, 0, 0, 0, 0}, 0.2, []int{0}},
		{[]float32{10, 0, 0, 0, 0, 0}, 0.5, []int{0}},
		{[]float32{10, 0, 0, 0, 0, 0}, 0.9, []int{0}},
		{[]float32{1, 1, 1, 1}, 0.2, []int{0, 1, 2, 3}},
		{[]float32{1, 1, 1, 1}, 0.5, []int{0, 1, 2, 3}},
		{[]float32{1, 1, 1, 1}, 0.9, []int{0, 1, 2, 3}},
		{[]float32{2, 1.5, 1.4, 1.3, 1.2, -3}, 0.2, []int{1, 2}},
		{[]float32{2, 1.5, 1.4, 1.3, 1.2, -3}, 0.5, []int{1, 2, 3}},
		{[]float32{2, 1.5, 1.4, 1.3, 1.2, -3}, 0.9, []int{0, 1, 2, 3, 4}},
	} {
		cands := weigh(nil, tc.logits, float64(slices.Max(tc.logits)), 1)
		var ids []int
		for _, c := range typical(cands, tc.p) {
			ids = append(ids, c.id)
		}
		slices.Sort(ids)
		if !slices.Equal(ids, tc.want) {
			t.Errorf("%v, p %g: got %v, want %v", tc.logits, tc.p, ids, tc.want)
		}
	}
}

func TestLog(t *testing.T) {
	for i := range 20000 {
		x := math.Exp(float64(i-10000) * 0.0701)
		if got, want := log(x), math.Log(x); math.Abs(got-want) > 4.5e-16*math.Abs(want) {
			t.Fatalf("log(%v) = %v, want %v", x, got, want)
		}
	}
	for _, x := range []float64{1, math.Nextafter(1, 2), math.Nextafter(1, 0), 151936, 0.5, 2.3e-308} {
		if got, want := log(x), math.Log(x); math.Abs(got-want) > 4.5e-16*math.Abs(want) {
			t.Errorf("log(%v) = %v, want %v", x, got, want)
		}
	}
	if got := log(5e-324); math.Abs(got+744.4400719213812) > 1e-12 { // math.Log is wrong here on amd64
		t.Errorf("log of the smallest number: %v", got)
	}
}

// TestLogprobs: values of numpy's float64 log-softmax.
func TestLogprobs(t *testing.T) {
	logits := []float32{1.5, -2, 0.25, 1.5, -7.125}
	want := []float64{-0.8402222042201366, -4.340222204220137, -2.0902222042201366, -0.8402222042201366, -9.465222204220137}
	of, top, err := Logprobs(logits, 3, 0, 1, 2, 3, 4, 99)
	if err != nil {
		t.Fatal(err)
	}
	for i, w := range want {
		if math.Abs(of[i]-w) > 1e-14 {
			t.Errorf("token %d: %v, want %v", i, of[i], w)
		}
	}
	if !math.IsInf(of[5], -1) {
		t.Errorf("an id outside: %v, want -Inf", of[5])
	}
	if ids := []int{top[0].ID, top[1].ID, top[2].ID}; !slices.Equal(ids, []int{0, 3, 2}) || top[2].Logprob != of[2] {
		t.Errorf("top: %v, want 0, 3, 2", top)
	}
	for _, tc := range []struct {
		name   string
		logits []float32
		n      int
		code   diag.Code
		top    int
	}{
		{"NaN", []float32{1, nan}, 1, diag.RunFailed, 0},
		{"empty", nil, 1, diag.RunFailed, 0},
		{"negative", []float32{1}, -1, diag.Usage, 0},
		{"more than there are", []float32{1, 2}, 5, "", 2},
		{"none", []float32{1, 2}, 0, "", 0},
		{"infinite", []float32{inf, negInf}, 2, "", 2},
	} {
		of, top, err := Logprobs(tc.logits, tc.n, 0)
		if diag.CodeOf(err) != tc.code || len(top) != tc.top {
			t.Errorf("%s: got %v, %v, %v", tc.name, of, top, err)
		}
		for _, p := range append(top, Logprob{}) {
			if p.Logprob != p.Logprob {
				t.Errorf("%s: a log probability is NaN", tc.name)
			}
		}
	}
}
