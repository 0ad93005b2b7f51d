package fetch

import (
	"path"
	"strings"
)

// nearPath finds the file or folder of all that is most like name, "" when
// nothing is near. A name that differs only in its folder is near.
func nearPath(name string, all []File) string {
	seen := map[string]bool{}
	var names []string
	for _, f := range all {
		for p := f.Path; p != "." && p != "/" && !seen[p]; p = path.Dir(p) {
			seen[p] = true
			names = append(names, p)
		}
		if len(names) > 5000 {
			break
		}
	}
	best, dist := "", max(2, len(name)/4)+1
	for _, n := range names {
		d := editDistance(strings.ToLower(name), strings.ToLower(n), dist)
		if strings.EqualFold(path.Base(n), path.Base(name)) {
			d = min(d, 1)
		}
		if d < dist {
			best, dist = n, d
		}
	}
	if checkPath(best) != nil {
		return ""
	}
	return best
}

// editDistance is the Levenshtein distance of a and b in bytes, or most when
// it is at least that.
func editDistance(a, b string, most int) int {
	if len(a)-len(b) >= most || len(b)-len(a) >= most {
		return most
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		prev := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := prev
			if a[i] != b[j] {
				cost = 1 + min(prev, row[j], row[j+1])
			}
			prev, row[j+1] = row[j+1], cost
		}
	}
	return min(row[len(b)], most)
}
