package mil_test

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/coreml/mil"
)

// expectation is what stands after //ERROR: "column: text", or
// "lines:column: text" when the error is reported that many lines below.
type expectation struct {
	line, col int
	text      string
	met       bool
}

func expectations(t *testing.T, data string) (src string, want []*expectation) {
	t.Helper()
	lines := strings.Split(data, "\n")
	for i, l := range lines {
		code, text, ok := strings.Cut(l, "  //ERROR ")
		if !ok {
			continue
		}
		lines[i] = code
		place, text, _ := strings.Cut(text, ": ")
		e := &expectation{line: i + 1, text: text}
		if down, col, ok := strings.Cut(place, ":"); ok {
			n, err := strconv.Atoi(down)
			if err != nil {
				t.Fatalf("line %d: %v", i+1, err)
			}
			e.line, place = e.line+n, col
			e.col = 0
		}
		col, err := strconv.Atoi(place)
		if err != nil {
			t.Fatalf("line %d: %v", i+1, err)
		}
		e.col = col
		want = append(want, e)
	}
	return strings.Join(lines, "\n"), want
}

func TestErrors(t *testing.T) {
	data, err := os.ReadFile("testdata/errors.mil")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range txtar.Parse(data).Files {
		t.Run(f.Name, func(t *testing.T) {
			src, want := expectations(t, string(f.Data))
			p, err := mil.Parse("model.mil", []byte(src))
			if err == nil {
				err = mil.Check(p)
			}
			var list diag.List
			if err != nil && !errors.As(err, &list) {
				t.Fatalf("error is a %T, want a diag.List: %v", err, err)
			}
		errors:
			for _, e := range list {
				for _, w := range want {
					if !w.met && w.line == e.Pos.Line && w.col == e.Pos.Col && strings.Contains(e.Msg, w.text) && e.Pos.File == "model.mil" {
						w.met = true
						continue errors
					}
				}
				t.Errorf("not expected: %v", e)
			}
			for _, w := range want {
				if !w.met {
					t.Errorf("missing: model.mil:%d:%d: %s", w.line, w.col, w.text)
				}
			}
		})
	}
}

func TestHint(t *testing.T) {
	src := `program(1.3) { func main<ios18>(int32 hidden_states) { int32 a = relu(x = hiden_states); } -> (a); }`
	p, err := mil.Parse("model.mil", []byte(src))
	if err != nil {
		t.Fatal(err)
	}
	var e *diag.Error
	if err := mil.Check(p); !errors.As(err, &e) || e.Hint != "did you mean hidden_states?" {
		t.Errorf("hint of %v: %+v", err, e)
	}
}

// TestMutations cuts and flips real programs. Whatever comes out must not
// panic or hang, and every error must carry a position inside the file.
func TestMutations(t *testing.T) {
	for _, src := range mutationSeeds(t) {
		for i := range 400 {
			b := []byte(src)
			at := i * len(b) / 400
			if i%2 == 0 {
				b = b[:at]
			} else {
				b[at] ^= 1 << (i / 2 % 8)
			}
			p, err := mil.Parse("model.mil", b)
			if err == nil {
				err = mil.Check(p)
			}
			var list diag.List
			if err != nil && !errors.As(err, &list) {
				t.Fatalf("mutation %d: error is a %T", i, err)
			}
			for _, e := range list {
				if e.Pos.Line > strings.Count(string(b), "\n")+1 || e.Msg == "" {
					t.Fatalf("mutation %d: %v", i, e)
				}
			}
		}
	}
}

func mutationSeeds(t *testing.T) []string {
	t.Helper()
	seeds := []string{small}
	for _, path := range milFiles(t) {
		if src, err := os.ReadFile(path); err == nil && len(src) < 30000 && len(src)%5 == 0 {
			seeds = append(seeds, string(src))
		}
	}
	return seeds
}

func FuzzParse(f *testing.F) {
	f.Add(small)
	data, err := os.ReadFile("testdata/errors.mil")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range txtar.Parse(data).Files {
		f.Add(string(file.Data))
	}
	f.Add("program(1.0)\n[a = dict<tensor<string, []>, tensor<fp32, [2, ?]>>({{\"k\\n\", [[-0x1.8p-3], [nan]]}})]\n{\n}")
	f.Add(`program(1.3) { func f<ios18>() [F = tuple<list<tensor<int32, [2]>, ?>, uint64, bool, fp64>(([[1, 2]], 18446744073709551615, true, 1e-5))] { } -> (); }`)
	f.Fuzz(func(t *testing.T, src string) {
		p, err := mil.Parse("f.mil", []byte(src))
		if err != nil {
			return
		}
		_ = mil.Check(p)
		once := p.String()
		again, err := mil.Parse("f.mil", []byte(once))
		if err != nil {
			t.Fatalf("what was printed does not parse: %v\n%s", err, once)
		}
		if twice := again.String(); twice != once {
			t.Fatalf("printing is not stable:\n%s\n%s", once, twice)
		}
	})
}
