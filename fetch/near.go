package fetch

import (
	"path"
	"strings"

	"github.com/anepkg/anepkg/coreml/diag"
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
		d := diag.Distance(strings.ToLower(name), strings.ToLower(n), dist)
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
