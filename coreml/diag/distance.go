package diag

// Distance is Levenshtein's edit distance of a and b over bytes, limit+1 when
// it is more than limit. It serves "did you mean" hints; its cost is bounded
// by len(a)*len(b), and by nothing at all when the lengths alone decide.
func Distance(a, b string, limit int) int {
	if len(a)-len(b) > limit || len(b)-len(a) > limit {
		return limit + 1
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal, least := row[0], i+1
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], cost
			least = min(least, cost)
		}
		if least > limit {
			return limit + 1
		}
	}
	return min(row[len(b)], limit+1)
}
