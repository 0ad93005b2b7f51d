package tokenizer

import (
	"sort"
	"unicode"
)

// scriptMatch cuts text where the script changes. Spaces go with what is before them, and are dropped at the beginning;
// Hiragana, Katakana and the long vowel mark count as Han.
type scriptMatch struct{}

func (scriptMatch) spans(s string, f func(from, to int, matched bool)) error {
	from := 0
	last := ""
	for i, r := range s {
		now := scriptOf(r)
		if now != "" && now != last {
			if last != "" {
				f(from, i, true)
			}
			from = i
		}
		if now != "" {
			last = now
		}
	}
	if last != "" {
		f(from, len(s), true)
	}
	return nil
}

// scriptOf returns the script of r; "" stands for any.
func scriptOf(r rune) string {
	if r == ' ' {
		return ""
	}
	if r == 0x30FC || props(r)&pHan != 0 {
		return "Han"
	}
	for _, name := range scriptNames {
		if unicode.Is(unicode.Scripts[name], r) {
			if name == "Hiragana" || name == "Katakana" {
				return "Han"
			}
			return name
		}
	}
	return "Unknown"
}

var scriptNames = func() []string {
	names := make([]string, 0, len(unicode.Scripts))
	for n := range unicode.Scripts {
		names = append(names, n)
	}
	sort.Strings(names)
	return names
}()
