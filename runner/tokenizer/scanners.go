package tokenizer

import "strings"

// knownScanners maps the patterns of widespread models to hand-written scanners. The differential test runs
// each against the regular expression engine.
var knownScanners = map[string]scan{
	patternGPT2:     scanGPT2,
	patternQwen2:    scanQwen2,
	patternLlama3:   scanLlama3,
	patternQwen35:   scanQwen35,
	patternO200k:    scanO200k,
	patternDeepSeek: scanDeepSeek,
	patternThree:    scanThreeNumbers,
	patternJapanese: scanJapanese,
}

const (
	patternGPT2 = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
	tailNewline = `[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	contraction = `(?i:'s|'t|'re|'ve|'m|'ll|'d)`

	patternQwen2  = contraction + `|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+` + tailNewline
	patternLlama3 = contraction + `|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+` + tailNewline
	patternQwen35 = contraction + `|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+` + tailNewline
	patternO200k  = `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+` + contraction +
		`?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*` + contraction +
		`?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	patternDeepSeek = "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| " +
		"?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"
	patternThree    = `\p{N}{1,3}`
	patternJapanese = `[一-龥぀-ゟ゠-ヿ]+`
)

// run returns the end of the run of code points at i that have one of the bits.
func (u *unicodeTable) run(s string, i int, bits uint64) int {
	for {
		p, n := u.at(s, i)
		if n == 0 || p&bits == 0 {
			return i
		}
		i += n
	}
}

// runNot returns the end of the run of code points at i that have none of the bits.
func (u *unicodeTable) runNot(s string, i int, bits uint64) int {
	for {
		p, n := u.at(s, i)
		if n == 0 || p&bits != 0 {
			return i
		}
		i += n
	}
}

// runMax is run with at most limit code points.
func (u *unicodeTable) runMax(s string, i int, bits uint64, limit int) int {
	for ; limit > 0; limit-- {
		p, n := u.at(s, i)
		if n == 0 || p&bits == 0 {
			break
		}
		i += n
	}
	return i
}

// runOf returns the end of the run of bytes from set at i.
func runOf(s string, i int, set string) int {
	for i < len(s) && strings.IndexByte(set, s[i]) >= 0 {
		i++
	}
	return i
}

// spaces matches \s+(?!\S)|\s+ at i, and \s*[\r\n]+ before them if newline is true.
func (u *unicodeTable) spaces(s string, i int, newline bool) int {
	end, last, afterNewline := i, i, -1
	for {
		p, n := u.at(s, end)
		if n == 0 || p&pSpace == 0 {
			break
		}
		last = end
		end += n
		if c := s[last]; c == '\n' || c == '\r' {
			afterNewline = end
		}
	}
	switch {
	case newline && afterNewline >= 0:
		return afterNewline
	case end == len(s) || last == i:
		return end
	}
	return last
}

// contractionEnd matches 's 't 're 've 'm 'll 'd at i; fold ignores case, where the long s counts as an s.
func contractionEnd(s string, i int, fold bool) int {
	if i+1 >= len(s) || s[i] != '\'' {
		return i
	}
	a := foldByte(s[i+1], fold)
	switch a {
	case 's', 't', 'm', 'd':
		return i + 2
	}
	if fold && strings.HasPrefix(s[i+1:], "ſ") {
		return i + 1 + len("ſ")
	}
	if i+2 >= len(s) {
		return i
	}
	b := foldByte(s[i+2], fold)
	if a == 'r' && b == 'e' || a == 'v' && b == 'e' || a == 'l' && b == 'l' {
		return i + 3
	}
	return i
}

func foldByte(c byte, fold bool) byte {
	if fold && c >= 'A' && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

func scanGPT2(u *unicodeTable, s string, i int) int {
	if e := contractionEnd(s, i, false); e > i {
		return e
	}
	j := i
	if s[i] == ' ' {
		j++
	}
	p, n := u.at(s, j)
	switch {
	case n == 0 || p&pSpace != 0:
		return u.spaces(s, i, false)
	case p&pL != 0:
		return u.run(s, j, pL)
	case p&pN != 0:
		return u.run(s, j, pN)
	}
	return u.runNot(s, j, pSpace|pL|pN)
}

func scanQwen2(u *unicodeTable, s string, i int) int  { return scanCL100k(u, s, i, pL, 1) }
func scanLlama3(u *unicodeTable, s string, i int) int { return scanCL100k(u, s, i, pL, 3) }
func scanQwen35(u *unicodeTable, s string, i int) int { return scanCL100k(u, s, i, pL|pM, 1) }

// scanCL100k matches the patterns that differ in what belongs to a word and how many numbers go together.
func scanCL100k(u *unicodeTable, s string, i int, word uint64, numbers int) int {
	if e := contractionEnd(s, i, true); e > i {
		return e
	}
	p, n := u.at(s, i)
	if p&word != 0 && p&pL != 0 {
		return u.run(s, i, word)
	}
	if p&pN == 0 && s[i] != '\r' && s[i] != '\n' { // it may stand before a word
		if e := u.run(s, i+n, word); e > i+n {
			return e
		}
	}
	switch {
	case p&word != 0:
		return i + n
	case p&pN != 0:
		return u.runMax(s, i, pN, numbers)
	}
	return u.symbolsOrSpaces(s, i, pSpace|word|pN, "\r\n")
}

// symbolsOrSpaces matches an optional space, a run without the bits and a tail of the bytes of tail, or white space.
func (u *unicodeTable) symbolsOrSpaces(s string, i int, without uint64, tail string) int {
	j := i
	if s[i] == ' ' {
		j++
	}
	if e := u.runNot(s, j, without); e > j {
		return runOf(s, e, tail)
	}
	return u.spaces(s, i, true)
}

const (
	o200kUpper = pLu | pLt | pLm | pLo | pM
	o200kLower = pLl | pLm | pLo | pM
)

func scanO200k(u *unicodeTable, s string, i int) int {
	p, n := u.at(s, i)
	prefix := -1
	if p&(pL|pN) == 0 && s[i] != '\r' && s[i] != '\n' {
		prefix = i + n
	}
	for _, f := range []func(string, int) int{u.upperThenLower, u.upperOnly} {
		if prefix >= 0 {
			if e := f(s, prefix); e > prefix {
				return contractionEnd(s, e, true)
			}
		}
		if e := f(s, i); e > i {
			return contractionEnd(s, e, true)
		}
	}
	if p&pN != 0 {
		return u.runMax(s, i, pN, 3)
	}
	return u.symbolsOrSpaces(s, i, pSpace|pL|pN, "\r\n/")
}

// upperThenLower matches o200kUpper* o200kLower+ at i. Code points in both sets may be given back by the first.
func (u *unicodeTable) upperThenLower(s string, i int) int {
	j, both := i, -1
	for {
		p, n := u.at(s, j)
		if n == 0 || p&o200kUpper == 0 {
			break
		}
		j += n
		if p&o200kLower != 0 {
			both = j
		}
	}
	if e := u.run(s, j, o200kLower); e > j {
		return e
	}
	if both >= 0 {
		return both
	}
	return i
}

// upperOnly matches o200kUpper+ o200kLower* at i.
func (u *unicodeTable) upperOnly(s string, i int) int {
	j := u.run(s, i, o200kUpper)
	if j == i {
		return i
	}
	return u.run(s, j, o200kLower)
}

func scanDeepSeek(u *unicodeTable, s string, i int) int {
	p, n := u.at(s, i)
	if s[i] < 0x80 && p&(pP|pS) != 0 {
		j := i + 1
		for j < len(s) && (s[j]|0x20) >= 'a' && (s[j]|0x20) <= 'z' {
			j++
		}
		if j > i+1 {
			return j
		}
	}
	if p&(pL|pP|pS) == 0 && s[i] != '\r' && s[i] != '\n' {
		if e := u.run(s, i+n, pL|pM); e > i+n {
			return e
		}
	}
	if e := u.run(s, i, pL|pM); e > i {
		return e
	}
	j := i
	if s[i] == ' ' {
		j++
	}
	if e := u.run(s, j, pP|pS); e > j {
		return runOf(s, e, "\r\n")
	}
	if p&pSpace != 0 {
		return u.spaces(s, i, true)
	}
	return i
}

func scanThreeNumbers(u *unicodeTable, s string, i int) int { return u.runMax(s, i, pN, 3) }

func scanJapanese(_ *unicodeTable, s string, i int) int {
	for j, r := range s[i:] {
		if (r < '一' || r > '龥') && (r < 0x3040 || r > 0x30FF) {
			return i + j
		}
	}
	return len(s)
}

// scanWords matches \w+|[^\w\s]+ as the Whitespace pre-tokenizer understands it.
func scanWords(_ *unicodeTable, s string, i int) int {
	first := 0
	for j, r := range s[i:] {
		kind := 1
		if isWordRune(r) {
			kind = 2
		} else if isSpaceRune(r) {
			return i + j
		}
		if first == 0 {
			first = kind
		}
		if kind != first {
			return i + j
		}
	}
	return len(s)
}
