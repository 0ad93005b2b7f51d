package diag

import "testing"

func TestDistance(t *testing.T) {
	tests := []struct {
		name  string
		a, b  string
		limit int
		want  int
	}{
		{"equal", "matmul", "matmul", 3, 0},
		{"both empty", "", "", 0, 0},
		{"one inserted", "matmul", "matmull", 3, 1},
		{"one deleted", "matmul", "matul", 3, 1},
		{"one replaced", "matmul", "matmal", 3, 1},
		{"swap is two", "matmul", "matmlu", 3, 2},
		{"textbook", "kitten", "sitting", 5, 3},
		{"at the limit", "kitten", "sitting", 3, 3},
		{"above the limit", "kitten", "sitting", 2, 3},
		{"lengths alone", "a", "abcdefgh", 3, 4},
		{"from nothing", "", "abc", 3, 3},
		{"early end", "aaaaaaaa", "bbbbbbbb", 2, 3},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			if got := Distance(tc.a, tc.b, tc.limit); got != tc.want {
				t.Errorf("Distance(%q, %q, %d) = %d, want %d", tc.a, tc.b, tc.limit, got, tc.want)
			}
			if got := Distance(tc.b, tc.a, tc.limit); got != tc.want {
				t.Errorf("Distance(%q, %q, %d) = %d, want %d", tc.b, tc.a, tc.limit, got, tc.want)
			}
		})
	}
}
