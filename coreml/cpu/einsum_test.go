package cpu

import (
	"strings"
	"testing"
)

func TestParseEquation(t *testing.T) {
	tests := []struct{ in, problem string }{
		{"nchw,nwhu->nchu", ""},
		{" a b , b -> a ", ""},
		{"a,b->", ""},
		{"ab,bc", "want two operands"},
		{"ab->ba", "want two operands"},
		{"a,b,c->abc", "want two operands"},
		{"a...,b->a", "has the label"},
		{"ab,bc->aa", "twice in its result"},
		{"ab,bc->ad", "in its result only"},
	}
	for _, tt := range tests {
		_, err := parseEquation(tt.in)
		switch {
		case tt.problem == "" && err != nil:
			t.Errorf("%q: %v", tt.in, err)
		case tt.problem != "" && (err == nil || !strings.Contains(err.Error(), tt.problem)):
			t.Errorf("%q: got %v, want an error with %q", tt.in, err, tt.problem)
		}
	}
}

// FuzzEquation wants every equation that is accepted to sort its labels into
// groups without one missing or twice.
func FuzzEquation(f *testing.F) {
	for _, s := range []string{"nchw,nwhu->nchu", "aa,ab->b", "->", ",->", "a,b->ab"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		e, err := parseEquation(s)
		if err != nil {
			return
		}
		shapes := [2][]int{make([]int, len(e.in[0])), make([]int, len(e.in[1]))}
		for o := range shapes {
			for d := range shapes[o] {
				shapes[o][d] = 2
			}
		}
		size, _, err := e.sizes(shapes)
		if err != nil {
			t.Fatalf("%q: equal lengths are refused: %v", s, err)
		}
		batch, sum, left, right := e.groups()
		seen := map[byte]bool{}
		for _, l := range append(append(append(batch, sum...), left...), right...) {
			if seen[l] {
				t.Fatalf("%q: label %c is in two groups", s, l)
			}
			seen[l] = true
		}
		if len(seen) != len(size) {
			t.Fatalf("%q: %d of %d labels are in a group", s, len(seen), len(size))
		}
	})
}
