package runner

import (
	"encoding/binary"
	"encoding/json"
	"io/fs"
	"math"
	"path"

	"github.com/anepkg/anepkg/coreml/diag"
)

// golden is a golden.json: reference outputs of a package, one case each.
// Members that comparing does not need are ignored.
type golden struct {
	Name      string       `json:"name"`
	Tolerance Tolerance    `json:"tolerance"`
	Cases     []goldenCase `json:"cases"`
	// States are compared after the prompt of the case that they name.
	States *goldenStates `json:"states"`
}

type goldenCase struct {
	Name      string      `json:"name"`
	PromptIDs []int       `json:"prompt_ids"`
	Generated []int       `json:"generated_ids"`
	Prefill   PrefillMode `json:"prefill"`
	Logits    string      `json:"logits"` // path of float32 rows, relative to golden.json
	Shape     []int       `json:"logits_shape"`
	InputIDs  []int       `json:"input_ids"` // encoders
	Embedding string      `json:"embedding"`
	EmbShape  []int       `json:"embedding_shape"`
}

// Tolerance is how far outputs may differ: each row's cosine must reach
// CosineMin, no value may differ by more than MaxAbs (0 = not checked).
type Tolerance struct {
	CosineMin float64 `json:"cosine_min"`
	MaxAbs    float64 `json:"max_abs"`
}

// maxGoldenValues bounds the values of one golden file: 2^28 (1 GiB).
const maxGoldenValues = maxFile / 4

// readGolden reads and checks the file at name inside fsys.
func readGolden(fsys fs.FS, name string) (*golden, error) {
	data, err := readFile(fsys, name)
	if err != nil {
		return nil, err
	}
	g := &golden{}
	if err := json.Unmarshal(data, g); err != nil {
		return nil, diag.Errorf(diag.In(name), diag.Malformed, "not a golden file: %w", err)
	}
	if len(g.Cases) == 0 {
		return nil, diag.Errorf(diag.In(name), diag.Malformed, "not a golden file: no cases")
	}
	if t := g.Tolerance; !(t.CosineMin >= -1 && t.CosineMin <= 1) || !(t.MaxAbs >= 0) {
		return nil, diag.Errorf(diag.In(name), diag.Malformed, "tolerance cosine_min %v, max_abs %v: want -1 to 1, and not negative", t.CosineMin, t.MaxAbs)
	}
	if g.States != nil {
		if err := g.States.check(name); err != nil {
			return nil, err
		}
	}
	for i := range g.Cases {
		if err := g.Cases[i].check(name, i); err != nil {
			return nil, err
		}
	}
	return g, nil
}

func (c *goldenCase) check(file string, i int) error {
	bad := func(format string, args ...any) error {
		e := diag.Errorf(diag.In(file), diag.Malformed, format, args...)
		e.Msg = "case " + c.label(i) + ": " + e.Msg
		return e
	}
	switch c.Prefill {
	case "", PrefillAuto, PrefillBatch, PrefillSingle:
	default:
		return bad("prefill %q, want auto, batch or single", c.Prefill)
	}
	if c.Embedding != "" {
		if len(c.InputIDs) == 0 {
			return bad("embedding without input_ids")
		}
		return nil
	}
	switch {
	case len(c.PromptIDs) == 0:
		return bad("no prompt_ids")
	case len(c.Generated) == 0:
		return bad("no generated_ids")
	case c.Logits != "" && (len(c.Shape) != 2 || c.Shape[0] != len(c.Generated) || c.Shape[1] <= 0):
		return bad("logits_shape %v, want [%d, vocabulary]", c.Shape, len(c.Generated))
	}
	return nil
}

func (c *goldenCase) label(i int) string {
	if c.Name != "" {
		return c.Name
	}
	return "number " + itoa(i+1)
}

// rows reads little-endian float32 rows of the given width. n = 0 takes as
// many as there are.
func rows(fsys fs.FS, golden, rel string, n, width int) ([][]float32, error) {
	name := path.Join(path.Dir(golden), rel)
	if !fs.ValidPath(name) || path.IsAbs(rel) {
		return nil, diag.Errorf(diag.In(golden), diag.Malformed, "path %q leaves the folder", rel)
	}
	data, err := readFile(fsys, name)
	if err != nil {
		return nil, err
	}
	if width <= 0 || width > maxGoldenValues || n < 0 || n > maxGoldenValues/width || len(data) != 4*n*width {
		return nil, diag.Errorf(diag.In(name), diag.Malformed, "got %d bytes, want %d x %d float32 values", len(data), n, width)
	}
	out := make([][]float32, n)
	for i := range out {
		row := make([]float32, width)
		for j := range row {
			row[j] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*(i*width+j):]))
		}
		out[i] = row
	}
	return out, nil
}
