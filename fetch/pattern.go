package fetch

import "strings"

// match is Python's fnmatch.fnmatchcase: "*" and "?" also match "/".
func match(pattern, name string) bool {
	// back is where to continue when a literal fails after the last star.
	p, n, star, back := 0, 0, -1, 0
	for n < len(name) {
		if p < len(pattern) {
			if pattern[p] == '*' {
				star, back = p, n
				p++
				continue
			}
			if width, ok := matchOne(pattern[p:], name[n:]); ok {
				p += width
				n += runeLen(name[n:])
				continue
			}
		}
		if star < 0 {
			return false
		}
		back += runeLen(name[back:])
		p, n = star+1, back
	}
	return strings.Trim(pattern[p:], "*") == ""
}

// matchOne matches the first element of pattern to the first character of
// name and returns the element's width. A "[" without its "]" is a literal.
func matchOne(pattern, name string) (int, bool) {
	c := first(name)
	switch pattern[0] {
	case '?':
		return 1, true
	case '[':
		if end := setEnd(pattern); end > 0 {
			return end + 1, inSet(pattern[1:end], c)
		}
	}
	return runeLen(pattern), first(pattern) == c
}

// setEnd is the index of the "]" that ends the set at the start of pattern.
func setEnd(pattern string) int {
	i := 1
	if i < len(pattern) && pattern[i] == '!' {
		i++
	}
	if i < len(pattern) && pattern[i] == ']' {
		i++
	}
	if k := strings.IndexByte(pattern[min(i, len(pattern)):], ']'); k >= 0 {
		return i + k
	}
	return -1
}

func inSet(set string, c rune) bool {
	set, not := strings.CutPrefix(set, "!")
	r, found := []rune(set), false
	for i := 0; i < len(r); i++ {
		if i+2 < len(r) && r[i+1] == '-' {
			found = found || r[i] <= c && c <= r[i+2]
			i += 2
			continue
		}
		found = found || r[i] == c
	}
	return found != not
}

func first(s string) rune {
	for _, r := range s {
		return r
	}
	return -1
}

func runeLen(s string) int {
	for i := range s {
		if i > 0 {
			return i
		}
	}
	return len(s)
}

// validPattern bounds a pattern.
func validPattern(p string) bool { return p != "" && len(p) <= maxPath && !strings.ContainsRune(p, 0) }
