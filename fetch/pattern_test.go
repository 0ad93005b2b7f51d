package fetch

import "testing"

// TestMatch has its expectations from Python's fnmatch.fnmatchcase.
func TestMatch(t *testing.T) {
	cases := []struct {
		pattern, name string
		want          bool
	}{
		{"*.json", "a/b.json", true}, {"*.json", "a.jsonl", false}, {"a/*", "a/b/c", true}, {"a?c", "a/c", true}, {"a?c", "ac", false},
		{"[a-c]x", "bx", true}, {"[!a-c]x", "bx", false}, {"[]]x", "]x", true}, {"[ax", "[ax", true}, {"[!]a]x", "bx", true},
		{"*", "", true}, {"", "", true}, {"", "a", false}, {"**", "a", true}, {"a*b*c", "aXbYc", true}, {"a*b*c", "aXcYb", false},
		{"ü?", "üé", true}, {"*é", "aé", true}, {"a", "A", false}, {"*[0-9][0-9]of*", "chunk_01of02.x", true}, {"[a-]", "-", true}, {"a*a*a*a*a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false},
	}
	for _, tc := range cases {
		if got := match(tc.pattern, tc.name); got != tc.want {
			t.Errorf("match(%q, %q) is %v", tc.pattern, tc.name, got)
		}
	}
}

func FuzzMatch(f *testing.F) {
	f.Add("a*[b-", "abc")
	f.Add("*[!]]?", "\xff\xfe")
	f.Fuzz(func(t *testing.T, pattern, name string) {
		if len(pattern) > 100 || len(name) > 1000 {
			return
		}
		match(pattern, name)
		if !match("*"+pattern, name) && match(pattern, name) {
			t.Errorf("%q matches %q, with a star before it does not", pattern, name)
		}
	})
}

func TestContentRange(t *testing.T) {
	cases := []struct {
		in           string
		first, total int64
		ok           bool
	}{
		{"bytes 5-9/10", 5, 10, true}, {"bytes 0-0/*", 0, -1, true}, {"bytes */10", 0, 0, false}, {"bytes 5-4/10", 0, 0, false},
		{"bytes 5-10/10", 0, 0, false}, {"items 0-1/2", 0, 0, false}, {"", 0, 0, false}, {"bytes 0-99999999999999999999/1", 0, 0, false}, {"bytes -5-9/10", 0, 0, false},
	}
	for _, tc := range cases {
		first, total, ok := parseContentRange(tc.in)
		if ok != tc.ok || ok && (first != tc.first || total != tc.total) {
			t.Errorf("%q: %d, %d, %v", tc.in, first, total, ok)
		}
	}
}

// TestETag keeps what is no digest from becoming a file name.
func TestETag(t *testing.T) {
	d40, d64 := "0123456789abcdef0123456789abcdef01234567", "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	cases := []struct {
		in   string
		want Digest
		ok   bool
	}{
		{`"` + d40 + `"`, Digest(d40), true}, {`W/"` + d64 + `"`, Digest(d64), true}, {d40, Digest(d40), true},
		{`"../../x"`, "", false}, {`"` + d40 + `-3"`, "", false}, {"", "", false}, {`"` + d40[1:] + `/"`, "", false}, {`"` + d64 + d40 + `"`, "", false},
	}
	for _, tc := range cases {
		got, ok := parseETag(tc.in)
		if ok != tc.ok || ok && got != tc.want {
			t.Errorf("%q: %q, %v", tc.in, got, ok)
		}
	}
	// git hash-object of "hello\n" and sha256sum of the same.
	for _, want := range []Digest{"ce013625030ba8dba906f756967f9e9ca394464a", "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03"} {
		h := newHasher(want, 6)
		_, _ = h.Write([]byte("hello\n"))
		if !h.ok() {
			t.Errorf("got %s, want %s", h.got(), want)
		}
	}
}
