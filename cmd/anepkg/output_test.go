package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

type inner struct {
	A int    `json:"a"`
	B string `json:"b,omitempty"`
}

type outer struct {
	Schema string           `json:"schema"`
	Shape  []int            `json:"shape"`
	None   []string         `json:"none"`
	NoMap  map[string]int   `json:"no_map"`
	NaN    float64          `json:"nan"`
	Inf    float32          `json:"inf"`
	Num    float64          `json:"num"`
	Third  float32          `json:"third"`
	Text   string           `json:"text"`
	Ptr    *inner           `json:"ptr"`
	List   []inner          `json:"list"`
	Map    map[string]inner `json:"map"`
	Any    any              `json:"any"`
	Raw    json.RawMessage  `json:"raw"`
	Hidden int              `json:"-"`
	inner
}

func TestWriteJSON(t *testing.T) {
	var b bytes.Buffer
	tl := &tool{stdout: &output{w: &b}}
	tl.writeJSON("anepkg.test/1", outer{
		Schema: "left out", Shape: []int{1, 2}, NaN: math.NaN(), Inf: float32(math.Inf(-1)), Num: 1e-7, Third: 1.0 / 3,
		Text: "<a&b> \"é\" \u2028", List: []inner{{1, "x"}, {}}, Map: map[string]inner{"k": {2, ""}}, Any: []any{1, "s", nil, math.NaN()},
		Raw: json.RawMessage(`{"r":1}`),
	})
	want := `{
  "schema": "anepkg.test/1",
  "shape": [1, 2],
  "none": [],
  "no_map": {},
  "nan": null,
  "inf": null,
  "num": 1e-07,
  "third": 0.33333334,
  "text": "<a&b> \"é\" \u2028",
  "ptr": null,
  "list": [
    {
      "a": 1,
      "b": "x"
    },
    {
      "a": 0
    }
  ],
  "map": {
    "k": {
      "a": 2
    }
  },
  "any": [
    1,
    "s",
    null,
    null
  ],
  "raw": {"r":1},
  "a": 0
}
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
	if !json.Valid(b.Bytes()) {
		t.Error("not valid JSON")
	}
}

// TestCompactJSONAgreesWithStandard compares with encoding/json where both
// must agree.
func TestCompactJSONAgreesWithStandard(t *testing.T) {
	for _, v := range []any{
		inner{7, "x"}, []inner{{1, "a"}}, map[string]any{"b": 1.5, "a": []int{1, 2}}, 1e21, 1e-9, 0.1, 123456789.0, float32(16777216),
		struct {
			P *int    `json:"p,omitempty"`
			F float64 `json:"f"`
			T bool
		}{},
		tokensJSON{"s", []int{1}, []string{"\x00\n\t\u00ff"}, "tab\t"},
	} {
		want, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		var got, std any
		if err := json.Unmarshal(compactJSON(v), &got); err != nil {
			t.Fatalf("%s: %v", compactJSON(v), err)
		}
		if err := json.Unmarshal(want, &std); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(std, got); diff != "" {
			t.Errorf("%T (-encoding/json +ours):\n%s", v, diff)
		}
		if bytes.ContainsRune(compactJSON(v), '\n') {
			t.Errorf("%T: more than one line", v)
		}
	}
}

func TestTable(t *testing.T) {
	tb := table{indent: "  ", right: map[int]bool{1: true}}
	tb.row("name", "bytes", "note")
	tb.row("日本", "5", "wide")
	tb.row("e\u0301", "12,345", cell{"painted", func(s string) string { return "<" + s + ">" }})
	tb.row("x", "1", "")
	var b strings.Builder
	tb.write(&b)
	want := "  name   bytes  note\n  日本       5  wide\n  e\u0301     12,345  <painted>\n  x          1\n"
	if got := b.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestNumbers(t *testing.T) {
	for _, tt := range []struct{ got, want string }{
		{thousands(0), "0"}, {thousands(999), "999"}, {thousands(1000), "1,000"}, {thousands(-1234567), "-1,234,567"},
		{ranges(nil), ""}, {ranges([]int{0, 1, 2, 5, 7, 8}), "0-2, 5, 7-8"},
		{shellQuote("plain-1.0/x"), "plain-1.0/x"}, {shellQuote("two words"), "'two words'"}, {shellQuote("it's"), `'it'\''s'`}, {shellQuote(""), "''"},
		{plural(1, "layer"), "1 layer"}, {plural(0, "layer"), "0 layers"},
		{strings.Join(wrap("one two three four", 9), "|"), "one two|three|four"},
		{visible("a\x1b[31mb\xffc"), "a\ufffd[31mb\ufffdc"},
		{orList([]string{"a", "b", "c"}), "a, b or c"},
	} {
		if tt.got != tt.want {
			t.Errorf("got %q, want %q", tt.got, tt.want)
		}
	}
}

type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }

func TestFullDiskIsReported(t *testing.T) {
	var stderr bytes.Buffer
	status := run(t.Context(), []string{"version"}, strings.NewReader(""), failingWriter{errors.New("no space left on device")}, &stderr, func(string) string { return "" })
	if status != exitIO || !strings.Contains(stderr.String(), "no space left") {
		t.Errorf("got status %d and %q, want %d and the reason", status, stderr.String(), exitIO)
	}
}
