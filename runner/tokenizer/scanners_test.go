package tokenizer

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/text/unicode/norm"
)

// cutBy returns the parts of s with a mark before those that matched.
func cutBy(t testing.TB, m match, s string) []string {
	t.Helper()
	var out []string
	whole := ""
	err := m.spans(s, func(from, to int, matched bool) {
		mark := "-"
		if matched {
			mark = "+"
		}
		out = append(out, mark+s[from:to])
		whole += s[from:to]
	})
	if err != nil {
		t.Fatal(err)
	}
	if whole != s {
		t.Errorf("parts of %q join to %q", s, whole)
	}
	return out
}

// checkScanners compares each hand-written scanner with the regular expression that it stands for.
func checkScanners(t testing.TB, engines map[string]match, s string) {
	t.Helper()
	for expr, f := range knownScanners {
		want, got := cutBy(t, engines[expr], s), cutBy(t, f, s)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s on %q: (-regular expression +scanner)\n%s", expr, s, diff)
		}
	}
}

func regexEngines(t testing.TB) map[string]match {
	t.Helper()
	out := map[string]match{}
	for expr := range knownScanners {
		m, err := newRegexMatch(expr)
		if err != nil {
			t.Fatal(err)
		}
		out[expr] = m
	}
	return out
}

var scannerSeeds = []string{
	"", " ", "  a", "a  b", "it's IT'S we'Ll 'ſ 'x''", "abc123 4567", " \n\n x\r\n", "x\t\t", "!!! ?\n/", "aBCdEF ǅʰAa", "日本語カタカナ",
	"e\u0301\u0301 \u0301x", "\u00a0\u3000x", "١٢٣ ½", "\U00013b9c\U000105e7", "_a_1", "don't", " 'tis", "A\u0301B", "AAʰBB'S", "/\n/", "$abc",
	"-x", "\u200b\u200b", "\ufeff", "#A #_", "\x00\x01",
}

// TestScanners runs the scanners on the seeds and on random mixtures.
func TestScanners(t *testing.T) {
	engines := regexEngines(t)
	for _, s := range scannerSeeds {
		checkScanners(t, engines, s)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	alphabet := []rune("  \n\r\t'sStTrReEvVmMlLdDſaZé0129½!?/_-$日カǅʰ\u0301\u00a0\u2028\u200b")
	for range 1500 {
		var b strings.Builder
		for range 1 + rng.IntN(12) {
			if rng.IntN(8) == 0 {
				b.WriteString(validText(string(rune(rng.IntN(0x20000)))))
			} else {
				b.WriteRune(alphabet[rng.IntN(len(alphabet))])
			}
		}
		checkScanners(t, engines, b.String())
	}
}

func FuzzScanners(f *testing.F) {
	for _, s := range scannerSeeds {
		f.Add(s)
	}
	engines := regexEngines(f)
	f.Fuzz(func(t *testing.T, s string) {
		if len(s) > 1000 {
			return
		}
		checkScanners(t, engines, validText(s))
	})
}

func TestNFC(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"plain", "abc é", "abc é"},
		{"composes", "e\u0301\u0323", "\u1eb9\u0301"},
		{"tag letter before a grave stays", "\U000e0065\u0300", "\U000e0065\u0300"},
		{"composes beside a supplementary one", "\U000e0065\u0300e\u0300", "\U000e0065\u0300è"},
		{"supplementary pair composes", "\U00011099\U000110ba", "\U0001109a"},
		{"low bits of a supplementary pair do not", "\u1099\U000110ba", "\u1099\U000110ba"},
		{"Hangul", "\u1100\u1161\u11a8\U0001f600", "각\U0001f600"},
		{"blocked", "a\u0315\u0300\u05ae\u0300b\U0001f600", "à\u05ae\u0300\u0315b\U0001f600"},
		{"mark first", "\u0301a\U0001f600", "\u0301a\U0001f600"},
		// The Rust tokenizers order marks by Unicode 9; later ones stay where they are.
		{"marks of Unicode 9 are ordered", "\u0345\u0f39", "\u0f39\u0345"},
		{"marks of Unicode 10 and later are not", "\u0363\u0d3b\u0323\U00010f47", "\u0363\u0d3b\u0323\U00010f47"},
		{"no composition across a later mark", "e\u1ac6\u0301", "e\u1ac6\u0301"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := nfc(tt.in); got != tt.want {
				t.Errorf("nfc(%+q) = %+q, want %+q", tt.in, got, tt.want)
			}
		})
	}
}

// TestComposeAgrees checks the composition of this package where the norm package composes rightly.
func TestComposeAgrees(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	const face = "\U0001f600" // makes nfc compose by itself
	for range 20000 {
		var rs []rune
		for range 1 + rng.IntN(6) {
			switch rng.IntN(3) {
			case 0:
				rs = append(rs, 0x300+rune(rng.IntN(0x70)))
			case 1:
				rs = append(rs, 'A'+rune(rng.IntN(60)))
			default:
				rs = append(rs, rune(rng.IntN(0xD800)))
			}
		}
		s := string(rs)
		if strings.IndexFunc(s, func(r rune) bool { return props(r)&pKept != 0 }) >= 0 {
			continue
		}
		if got, want := nfc(face+s), norm.NFC.String(face+s); got != want {
			t.Fatalf("nfc(%+q) = %+q, want %+q", face+s, got, want)
		}
		if got, want := nfkc(face+s), norm.NFKC.String(face+s); got != want {
			t.Fatalf("nfkc(%+q) = %+q, want %+q", face+s, got, want)
		}
	}
}

func TestTranslateRegex(t *testing.T) {
	tests := []struct{ name, expr, text, want string }{
		{"class", `\p{L}+`, "ab1", "+ab -1"},
		{"new letter", `\p{L}`, "\U000105e7", "+\U000105e7"},
		{"negated class", `\P{N}+`, "ab1", "+ab -1"},
		{"negated by a caret", `\p{^N}+`, "ab1", "+ab -1"},
		{"in a set", `[\p{N}x]+`, "1x2y", "+1x2 -y"},
		{"in a negated set", `[^\p{N}x]+`, "1yzx", "-1 +yz -x"},
		{"punctuation", `[\p{P}]+`, `a]-[\^b`, `-a +]-[\ -^b`},
		{"bracket first in a set", `[]a]+`, "a]b", "+a] -b"},
		{"escaped bracket", `[\]]+`, "]]", "+]]"},
		{"subtraction", `[\p{L}&&[^\p{Han}]]+`, "ab日c", "+ab -日 +c"},
		{"word class", `\w+`, "a²_é-\u200db", "+a²_é --\u200d +b"},
		{"digit class", `[^\d]+`, "a1٣½", "+a -1٣ +½"},
		{"script", `\p{Greek}`, "aα", "-a +α"},
		{"look-ahead", `\s+(?!\S)`, "  a", "+  - a"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m, err := newRegexMatch(tt.expr)
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(cutBy(t, m, tt.text), " "); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
	for _, bad := range []string{`[a&&b]`, `[a[b]]`, `\h`, `\pL`, `(`, `\p{^Greek}`, strings.Repeat("a", maxRegexLen+1)} {
		if _, err := newRegexMatch(bad); err == nil {
			t.Errorf("%.20q: got no error, want one", bad)
		}
	}
}

func TestIncompleteTail(t *testing.T) {
	tests := []struct {
		name, in string
		want     int
	}{
		{"none", "abc", 0},
		{"lead", "a\xe4", 1},
		{"two of three", "a\xe4\xbd", 2},
		{"whole", "a\xe4\xbd\xa0", 0},
		{"three of four", "\xf0\x9f\x98", 3},
		{"surrogate", "\xed\xa0", 0},
		{"continuation only", "\x80\x80\x80\x80", 0},
		{"never a lead", "\xff", 0},
		{"overlong", "\xc0", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := incompleteTail([]byte(tt.in)); got != tt.want {
				t.Errorf("incompleteTail(%q) = %d, want %d", tt.in, got, tt.want)
			}
		})
	}
}
