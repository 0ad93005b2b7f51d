package sample

import (
	"math"
	"slices"
	"testing"

	"github.com/anepkg/anepkg/coreml/diag"
)

var (
	nan    = float32(math.NaN())
	inf    = float32(math.Inf(1))
	negInf = float32(math.Inf(-1))
)

func TestGreedy(t *testing.T) {
	for _, tc := range []struct {
		name   string
		logits []float32
		want   int
		fails  bool
	}{
		{"highest", []float32{1, 3, 2}, 1, false},
		{"lowest id of equals", []float32{0, 7, 7, 7}, 1, false},
		{"all -Inf", []float32{negInf, negInf}, 0, false},
		{"+Inf wins", []float32{1, inf, 2}, 1, false},
		{"NaN first", []float32{nan, 1}, 0, true},
		{"NaN last", []float32{1, nan}, 0, true},
		{"empty", nil, 0, true},
	} {
		got, err := Greedy(tc.logits)
		if (err != nil) != tc.fails || err == nil && got != tc.want {
			t.Errorf("%s: got %d, %v", tc.name, got, err)
		}
		if tc.fails && diag.CodeOf(err) != diag.RunFailed {
			t.Errorf("%s: class %q, want %q", tc.name, diag.CodeOf(err), diag.RunFailed)
		}
	}
}

func TestPenalize(t *testing.T) {
	got := []float32{4, -4, 0, 4}
	Penalize(got, []int{0, 1, 1, 2, 99, -1}, 2)
	if want := []float32{2, -8, 0, 4}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestKeep: probabilities by hand. Weights 8, 4, 2, 2 are shares 1/2, 1/4,
// 1/8, 1/8; given out of order to exercise the heap.
func TestKeep(t *testing.T) {
	for _, tc := range []struct {
		name       string
		k          int
		topP, minP float64
		want       []int // ids, best first; equals by id
	}{
		{"everything", 0, 0, 0, []int{3, 1, 0, 2}},
		{"top-p 1 is everything", 0, 1, 0, []int{3, 1, 0, 2}},
		{"top-k 1", 1, 0, 0, []int{3}},
		{"top-k 3 takes the lower id of equals", 3, 0, 0, []int{3, 1, 0}},
		{"top-k above the count", 9, 0, 0, []int{3, 1, 0, 2}},
		{"top-p exactly at the border", 0, 0.5, 0, []int{3}},
		{"top-p just above", 0, 0.51, 0, []int{3, 1}},
		{"tiny top-p keeps one", 0, 1e-9, 0, []int{3}},
		{"top-p among the k best", 2, 0.6, 0, []int{3}}, // 2/3 of the two best
		{"top-p among the k best, next", 2, 0.7, 0, []int{3, 1}},
		{"min-p", 0, 0, 0.5, []int{3, 1}},
		{"min-p 1 keeps the best", 0, 0, 1, []int{3}},
		{"all three", 3, 0.95, 0.25, []int{3, 1, 0}},
	} {
		c := []candidate{{0, 0.25}, {1, 0.5}, {2, 0.25}, {3, 1}}
		kept := keep(c, tc.k, tc.topP, tc.minP)
		slices.SortFunc(kept, func(a, b candidate) int {
			if better(a, b) {
				return -1
			}
			return 1
		})
		var ids []int
		for _, x := range kept {
			ids = append(ids, x.id)
		}
		if !slices.Equal(ids, tc.want) {
			t.Errorf("%s: got %v, want %v", tc.name, ids, tc.want)
		}
	}
}

func TestPick(t *testing.T) {
	c := []candidate{{10, 1}, {11, 2}, {12, 1}}
	for _, tc := range []struct {
		u    float64
		want int
	}{{0, 10}, {0.2499, 10}, {0.25, 11}, {0.7499, 11}, {0.75, 12}, {math.Nextafter(1, 0), 12}} {
		if got := pick(c, tc.u); got != tc.want {
			t.Errorf("u = %v: got %d, want %d", tc.u, got, tc.want)
		}
	}
}

func TestExp(t *testing.T) {
	for _, x := range []float64{0, -1e-300, -1e-9, -0.1, -0.34657, -0.34658, -1, -2.5, -10, -88.7, -700, -707.9} {
		got, want := exp(x), math.Exp(x)
		if math.Abs(got-want) > 4e-16*want {
			t.Errorf("exp(%v) = %v, want %v", x, got, want)
		}
	}
	for _, x := range []float64{-709, math.Inf(-1)} {
		if got := exp(x); got != 0 {
			t.Errorf("exp(%v) = %v, want 0", x, got)
		}
	}
	for i := range 20000 {
		x := -float64(i) * 0.01237
		if got, want := exp(x), math.Exp(x); math.Abs(got-want) > 4.5e-16*want {
			t.Fatalf("exp(%v) = %v, want %v", x, got, want)
		}
	}
}

// TestFrequencies draws many times: shares must match softmax(logits/T).
func TestFrequencies(t *testing.T) {
	s, err := New(Config{Temperature: 2, Seed: 7})
	if err != nil {
		t.Fatal(err)
	}
	logits := []float32{2, 0, negInf, 4}
	const n = 40000
	var count [4]int
	for range n {
		id, err := s.Next(logits, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		count[id]++
	}
	sum := math.E + 1 + math.E*math.E
	for id, p := range []float64{math.E / sum, 1 / sum, 0, math.E * math.E / sum} {
		if got := float64(count[id]) / n; math.Abs(got-p) > 0.01 {
			t.Errorf("token %d: share %.4f, want %.4f", id, got, p)
		}
	}
}

// TestSameEverywhere pins draws: the same seed must give the same text on
// every platform. The expected ids come from an independent program (PCG-DXSM
// and the order of the filters written out in Python).
func TestSameEverywhere(t *testing.T) {
	logits := make([]float32, 50)
	for i := range logits {
		logits[i] = float32(i*37%50) / 8
	}
	for _, tc := range []struct {
		cfg  Config
		want []int
	}{
		{Config{Temperature: 0.8, TopK: 20, TopP: 0.95, Seed: 1}, []int{24, 39, 5, 43, 8, 35, 35, 39, 1, 4, 39, 4}},
		{Config{Temperature: 0.8, TopK: 20, TopP: 0.95, Seed: 2}, []int{31, 39, 28, 5, 27, 27, 35, 24, 32, 27, 4, 27}},
		{Config{Temperature: 1.5, TopK: 0, TopP: 1, Seed: 1}, []int{43, 31, 47, 39, 25, 27, 27, 33, 44, 9, 33, 12}},
		{Config{Temperature: 1.0, TopK: 0, TopP: 0.9, Seed: 18446744073709551615}, []int{20, 39, 39, 43, 4, 32, 4, 4, 16, 32, 4, 8}},
	} {
		s, err := New(tc.cfg)
		if err != nil {
			t.Fatal(err)
		}
		var got []int
		for range tc.want {
			id, err := s.Next(logits, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, id)
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s: got %v, want %v", tc.cfg, got, tc.want)
		}
	}
}

func TestNextCornerCases(t *testing.T) {
	for _, tc := range []struct {
		name    string
		cfg     Config
		logits  []float32
		history []int
		want    int
	}{
		{"zero config is greedy", Config{}, []float32{1, 2, 0}, nil, 1},
		{"top-k 1 is greedy", Config{Temperature: 5, TopK: 1}, []float32{1, 2, 0}, nil, 1},
		{"huge logits", Config{Temperature: 1}, []float32{-60000, 65504, 0}, nil, 1},
		{"+Inf takes all", Config{Temperature: 1}, []float32{65504, inf, 0}, nil, 1},
		{"tiny temperature", Config{Temperature: 1e-30}, []float32{1, 1.001, 0}, nil, 1},
		{"penalty changes greedy choice", Config{RepeatPenalty: 2}, []float32{1, 1.5, 0}, []int{1}, 0},
		{"window forgets", Config{RepeatPenalty: 2, RepeatWindow: 1}, []float32{1, 1.5, 0}, []int{1, 2}, 1},
	} {
		s, err := New(tc.cfg)
		if err != nil {
			t.Fatalf("%s: %v", tc.name, err)
		}
		before := slices.Clone(tc.logits)
		if got, err := s.Next(tc.logits, tc.history, nil); err != nil || got != tc.want {
			t.Errorf("%s: got %d, %v, want %d", tc.name, got, err, tc.want)
		}
		if !slices.Equal(before, tc.logits) {
			t.Errorf("%s: logits were changed", tc.name)
		}
	}
	s, _ := New(Config{Temperature: 1})
	if _, err := s.Next([]float32{1, nan}, nil, nil); diag.CodeOf(err) != diag.RunFailed {
		t.Errorf("NaN: got %v, want an error of class run_failed", err)
	}
}

func TestCheck(t *testing.T) {
	for _, cfg := range []Config{
		{Temperature: -1}, {Temperature: math.NaN()}, {Temperature: math.Inf(1)}, {TopK: -1},
		{TopP: 1.5}, {TopP: math.NaN()}, {MinP: -0.1}, {RepeatPenalty: -1}, {TypicalP: 1.5}, {TypicalP: math.NaN()},
		{FrequencyPenalty: math.NaN()}, {PresencePenalty: math.Inf(1)}, {LogitBias: map[int]float64{-1: 1}},
		{LogitBias: map[int]float64{1: math.NaN()}}, {LogitBias: map[int]float64{1: math.Inf(1)}},
	} {
		if _, err := New(cfg); diag.CodeOf(err) != diag.Usage {
			t.Errorf("%+v: got %v, want an error of class usage", cfg, err)
		}
	}
}

func BenchmarkTopP(b *testing.B) {
	logits := make([]float32, 151936)
	for i := range logits {
		logits[i] = float32(math.Sin(float64(i)*1.7)) * 8
	}
	logits[77] = 14
	s, _ := New(Config{Temperature: 0.6, TopP: 0.95, TopK: 20, Seed: 1})
	for b.Loop() {
		if _, err := s.Next(logits, nil, nil); err != nil {
			b.Fatal(err)
		}
	}
}
