package main

import (
	"fmt"
	"strings"
)

// nearest returns the candidate with the smallest edit distance to word, ""
// when none is near enough to be meant.
func nearest(word string, candidates []string) string {
	best, bestDistance := "", max(1, len(word)/3)+1
	for _, c := range candidates {
		if d := distance(strings.ToLower(word), strings.ToLower(c)); d < bestDistance {
			best, bestDistance = c, d
		}
	}
	if best == "" && len(word) >= 3 {
		for _, c := range candidates {
			if strings.HasPrefix(c, word) {
				return c
			}
		}
	}
	return best
}

// didYouMean makes a hint out of the nearest candidate, or returns otherwise.
func didYouMean(word string, candidates []string, otherwise string) string {
	if n := nearest(word, candidates); n != "" {
		return fmt.Sprintf("did you mean %s?", n)
	}
	return otherwise
}

// distance is the edit distance with insertion, deletion, substitution and
// the swap of two neighbours, over bytes.
func distance(a, b string) int {
	const longest = 256
	if len(a) > longest || len(b) > longest {
		return max(len(a), len(b))
	}
	before, prev, cur := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cur[j] = min(cur[j], before[j-2]+1)
			}
		}
		before, prev, cur = prev, cur, before
	}
	return prev[len(b)]
}

// orList prints "a, b or c".
func orList(items []string) string {
	switch len(items) {
	case 0:
		return "nothing"
	case 1:
		return items[0]
	}
	return strings.Join(items[:len(items)-1], ", ") + " or " + items[len(items)-1]
}
