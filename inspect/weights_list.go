package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"path"
	"slices"
	"strings"

	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/coreml/mil"
	"github.com/anepkg/anepkg/coreml/tensor"
	"github.com/anepkg/anepkg/inspect/dense"
	"github.com/anepkg/anepkg/manifest"
)

// WeightsReport lists the stored constants of a package. It marshals to the
// JSON of "anepkg weights".
type WeightsReport struct {
	Schema     string         `json:"schema"` // "anepkg.weights/1"
	Weights    []WeightRecord `json:"weights"`
	Count      int            `json:"count"`
	TotalBytes int64          `json:"total_bytes"` // stored; a constant that functions share counts once
}

// WeightRecord is one constant with data in a weight file. Constants of
// several functions that read the same bytes are one record.
type WeightRecord struct {
	Name      string   `json:"name"`     // the identifier in the program
	Part      string   `json:"part"`     // path of the model
	Function  string   `json:"function"` // the first that has it
	Op        string   `json:"op"`       // "const" or a constexpr op
	DType     string   `json:"dtype"`    // of the elements after decompression
	Shape     []int    `json:"shape"`
	Kind      string   `json:"kind"` // dense, lut, affine, blockwise, sparse and joints
	Bits      int      `json:"bits"` // of a stored element
	GroupSize int      `json:"group_size"`
	Elements  int64    `json:"elements"`
	Bytes     int64    `json:"bytes"`  // stored: indices, tables, scales
	Offset    int64    `json:"offset"` // of the main blob's record
	File      string   `json:"file"`
	Layer     *int     `json:"layer"`     // in the whole model, as Layers counts
	SharedBy  []string `json:"shared_by"` // the functions that read the same bytes, when there are several
	UsedBy    string   `json:"used_by"`   // op that reads it first, "" when none does
	Also      []string `json:"also_named,omitempty"`
}

// Weights lists the stored constants of every readable part in program
// order. It reads no weight data.
func Weights(ctx context.Context, pkg *manifest.Package) (*WeightsReport, error) {
	v, err := look(ctx, pkg)
	if err != nil {
		return nil, err
	}
	r := &WeightsReport{Schema: "anepkg.weights/1", Weights: []WeightRecord{}}
	base := v.layerBases()
	for _, pt := range v.parts {
		if pt.model == nil || pt.err != nil {
			continue
		}
		users := pt.firstUsers()
		for _, w := range pt.weights {
			rec := recordOf(pt, w)
			if rec.Layer != nil {
				*rec.Layer += base[pt]
			}
			rec.UsedBy = users[w.Functions[0]+"/"+w.Name]
			r.Weights = append(r.Weights, rec)
			r.TotalBytes += w.Bytes
		}
	}
	r.Count = len(r.Weights)
	return r, nil
}

// layerBases tells what to add to the layer numbers in each part's weight
// names, which may count from 0 in every chunk.
func (v *view) layerBases() map[*partView]int {
	out := map[*partView]int{}
	for _, c := range v.layers().Chunks {
		out[c.view] = c.base
		for _, p := range v.parts { // a chunk's prefill program has the same layers
			if p.Role == manifest.PrefillOf && max(1, p.Chunk) == c.Chunk {
				out[p] = c.base
			}
		}
	}
	return out
}

func recordOf(pt *partView, w *Weight) WeightRecord {
	rec := WeightRecord{Name: w.Name, Part: pt.label(), Function: w.Functions[0], Op: w.Op.Type, DType: w.Type.DType.Long(), Shape: shape(w.Type.Shape),
		Kind: w.Kind, Bits: w.Bits, GroupSize: w.GroupSize, Elements: w.Elements, Bytes: w.Bytes, SharedBy: []string{}, Also: w.Aliases}
	if w.Blob.Offset <= math.MaxInt64 {
		rec.Offset = int64(w.Blob.Offset)
	}
	rec.File = resolveBlob(pt, w.Blob.Path)
	if rec.File == "" {
		rec.File = w.Blob.Path
	}
	if w.Layer >= 0 {
		rec.Layer = ptr(w.Layer)
	}
	if len(w.Functions) > 1 {
		rec.SharedBy = w.Functions
	}
	return rec
}

// firstUsers maps "function/constant" to the type of the first op that reads
// it.
func (v *partView) firstUsers() map[string]string {
	out := map[string]string{}
	for _, fn := range v.model.Program.Functions {
		for _, op := range v.program(fn.Name).ops {
			if op.IsConst() {
				continue
			}
			for i := range op.Args {
				for _, b := range op.Args[i].Bindings {
					if key := fn.Name + "/" + b.Ref; b.Ref != "" && out[key] == "" {
						out[key] = op.Type
					}
				}
			}
		}
	}
	return out
}

// Export decodes one constant of the package, stored or immediate, into plain
// numbers: float32 for every float type, integers in their own type. name is
// the identifier in the program; "part:name" or "part:function:name" picks
// one where several parts or functions have it. Constants of one name that
// hold the same stored bytes count as one.
//
// Errors: diag.NotFound for an unknown name, with the nearest one;
// diag.Usage for an ambiguous one; those of dense.Decode and of reading the
// weight file.
func Export(ctx context.Context, pkg *manifest.Package, name string) (*tensor.Tensor, error) {
	v, err := look(ctx, pkg)
	if err != nil {
		return nil, err
	}
	c, err := v.findConstant(name)
	if err != nil {
		return nil, err
	}
	outs, err := dense.Decode(c.source(), c.op)
	if err != nil {
		var e *diag.Error
		if errors.As(err, &e) && e.Pos.File == "" {
			e.Pos.File = c.part.model.ProgramFile
		}
		return nil, err
	}
	for i, o := range c.op.Outputs {
		if o.Name == c.name && i < len(outs) {
			return outs[i].Tensor()
		}
	}
	return outs[0].Tensor()
}

// constant is a constant of one function.
type constant struct {
	part *partView
	fn   *program
	op   *mil.Op
	name string
}

func (c *constant) source() dense.Source {
	return dense.Source{
		Op:   func(name string) *mil.Op { return c.fn.defs[name] },
		Data: c.part.model.Weights.Data,
	}
}

// key tells constants apart by what they store.
func (c *constant) key() string {
	if w := weightOf(c.fn, c.op); w != nil {
		return fmt.Sprintf("%s@%s:%d %s", c.part.label(), w.Blob.Path, w.Blob.Offset, w.Type)
	}
	return c.part.label() + "/" + c.fn.fn.Name + "/" + c.name
}

// findConstant resolves a name as Export describes it.
func (v *view) findConstant(name string) (*constant, error) {
	part, fn, plain := "", "", name
	switch f := strings.Split(name, ":"); len(f) {
	case 2:
		part, plain = f[0], f[1]
	case 3:
		part, fn, plain = f[0], f[1], f[2]
	}
	var found []*constant
	seen := map[string]bool{}
	nearest, distance := "", math.MaxInt
	for _, pt := range v.usable() {
		if part != "" && part != pt.label() && part != path.Base(pt.label()) && part != pt.model.Name && part != string(pt.Role) {
			continue
		}
		for _, f := range pt.model.Program.Functions {
			if fn != "" && fn != f.Name {
				continue
			}
			ix := pt.program(f.Name)
			op := ix.defs[plain]
			if op == nil || !op.IsConst() {
				if n, d := ix.nearestConstant(plain); d < distance {
					nearest, distance = n, d
				}
				continue
			}
			c := &constant{part: pt, fn: ix, op: op, name: plain}
			if key := c.key(); !seen[key] {
				seen[key] = true
				found = append(found, c)
			}
		}
	}
	switch {
	case len(found) == 0:
		err := diag.Errorf(diag.Pos{}, diag.NotFound, "no constant is called %q", name).WithHint("anepkg weights lists them all")
		if nearest != "" {
			err = err.WithHint("did you mean %s? anepkg weights lists them all", nearest)
		}
		return nil, err
	case len(found) > 1:
		a := found[1]
		return nil, diag.Errorf(diag.Pos{}, diag.Usage, "%d different constants are called %q", len(found), name).
			WithHint("write part:function:name, for example %s:%s:%s", path.Base(a.part.label()), a.fn.fn.Name, plain)
	}
	return found[0], nil
}

// nearestConstant returns the constant that contains name, or shares the
// longest prefix with it; the distance counts what is left.
func (p *program) nearestConstant(name string) (best string, distance int) {
	distance = math.MaxInt
	for _, op := range p.ops {
		if !op.IsConst() || len(op.Outputs) == 0 {
			continue
		}
		n := op.Outputs[0].Name
		d := len(n) + len(name) - 2*commonPrefix(n, name)
		if strings.Contains(n, name) {
			d = len(n) - len(name)
		}
		if d < distance && d < len(n) {
			best, distance = n, d
		}
	}
	return best, distance
}

func commonPrefix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// WriteText prints one line for each constant, the largest first.
func (r *WeightsReport) WriteText(w io.Writer, color bool) error {
	e := &errWriter{w: w}
	rows := slices.Clone(r.Weights)
	slices.SortStableFunc(rows, func(a, b WeightRecord) int { return cmp.Compare(b.Bytes, a.Bytes) })
	t := &table{head: []string{"NAME", "PART", "FUNCTION", "SHAPE", "DTYPE", "STORED AS", "SIZE", "LAYER", "USED BY", "OFFSET"}, right: map[int]bool{6: true, 7: true, 9: true}}
	for _, x := range rows {
		stored := fmt.Sprintf("%s %d-bit", x.Kind, x.Bits)
		if x.GroupSize > 0 {
			stored += fmt.Sprintf("/%d", x.GroupSize)
		}
		fn := x.Function
		if len(x.SharedBy) > 0 {
			fn = strings.Join(x.SharedBy, ", ")
		}
		t.add(x.Name, x.Part, fn, tensor.ShapeString(x.Shape), x.DType, stored, Bytes(x.Bytes), numberOr(x.Layer, "-"), x.UsedBy, fmt.Sprint(x.Offset))
	}
	t.write(e, style{color}, "")
	fmt.Fprintf(e, "%s, %s\n", plural(r.Count, "constant"), Bytes(r.TotalBytes))
	return e.err
}
