package compile

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/coreml/mil"
	"github.com/anepkg/anepkg/coreml/mlmodelc"
	"github.com/anepkg/anepkg/coreml/mlpackage"
	"github.com/anepkg/anepkg/coreml/tensor"
)

// printable refuses what has no known text form.
func printable(p *mil.Program) error {
	bad := func(f *mil.Function, format string, args ...any) error {
		e := diag.Errorf(diag.In(p.File), diag.Unsupported, format, args...)
		e.Msg = "function " + f.Name + ": " + e.Msg
		return e.WithHint("compile it on a Mac: xcrun coremlcompiler compile MODEL DIR")
	}
	for _, f := range p.Functions {
		var err error
		name := func(n string) {
			if err == nil && !isIdentifier(n) {
				err = bad(f, "%q is no identifier; how Apple's compiler renames it is not known", n)
			}
		}
		name(f.Name)
		for _, a := range f.Params {
			name(a.Name)
		}
		eachOp(f.Body, func(op *mil.Op) {
			if len(op.Blocks) > 0 && err == nil {
				err = bad(f, "%s %q has nested blocks, whose text form is not known", op.Type, op.Name())
			}
			for _, o := range op.Outputs {
				name(o.Name)
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func isIdentifier(s string) bool {
	for i, r := range s {
		switch {
		case r == '_', r >= 'A' && r <= 'Z', r >= 'a' && r <= 'z':
		case r >= '0' && r <= '9' && i > 0:
		default:
			return false
		}
	}
	return s != ""
}

// complete adds to the program what a compiler adds: its build information
// and the flexible shapes of the description.
func complete(m *mlpackage.Model, opts Options) error {
	p := m.Program
	bare := p.Version != "1.0"
	info := map[string]string{
		"coremlc-component-MIL": cmp.Or(opts.MILVersion, "0.0.0"), "coremlc-version": cmp.Or(opts.CompilerVersion, "0.0.0"),
	}
	p.Attrs = slices.DeleteFunc(p.Attrs, func(a mil.Attr) bool {
		if a.Name != "buildInfo" {
			return false
		}
		for i := 0; i+1 < len(a.Value.Elems); i += 2 {
			k, ok1 := a.Value.Elems[i].Str()
			v, ok2 := a.Value.Elems[i+1].Str()
			if _, ours := info[k]; ok1 && ok2 && !ours {
				info[k] = v
			}
		}
		return true
	})
	str := mil.Type{DType: tensor.String, Bare: bare}
	d := &mil.Value{Type: mil.Type{Kind: mil.DictType, Elems: []mil.Type{str, str}}}
	for _, k := range slices.Sorted(maps.Keys(info)) {
		d.Elems = append(d.Elems, text(str, k), text(str, info[k]))
	}
	p.Attrs = append(p.Attrs, mil.Attr{Name: "buildInfo", Value: d})
	sortAttrs(p.Attrs)
	for _, f := range p.Functions {
		flex, err := flexible(featuresOf(m.Description, f.Name), bare)
		if err != nil {
			return diag.Errorf(diag.In(p.File), diag.Unsupported, "function %s: %w", f.Name, err)
		}
		if flex != nil {
			f.Attrs = append(f.Attrs, mil.Attr{Name: "FlexibleShapeInformation", Value: flex})
			sortAttrs(f.Attrs)
		}
	}
	return nil
}

func sortAttrs(as []mil.Attr) {
	slices.SortFunc(as, func(a, b mil.Attr) int { return strings.Compare(a.Name, b.Name) })
}

func text(t mil.Type, s string) *mil.Value { return &mil.Value{Type: t, Strings: []string{s}} }

// featuresOf are the described inputs of a function. A description without a
// list of functions is about the only one.
func featuresOf(d *mlmodelc.Metadata, fn string) []mlmodelc.FeatureMeta {
	for _, f := range d.Functions {
		if f.Name == fn {
			return f.Inputs
		}
	}
	if len(d.Functions) == 1 {
		return d.Functions[0].Inputs
	}
	return nil
}

// flexible makes FlexibleShapeInformation: the default shapes of the inputs
// that are flexible, the shapes that enumerated ones may have, and the bounds
// of each dimension of the others; nil when every shape is fixed.
func flexible(inputs []mlmodelc.FeatureMeta, bare bool) (*mil.Value, error) {
	str := mil.Type{DType: tensor.String, Bare: bare}
	shape := mil.TensorOf(tensor.Int32, mil.Unknown)
	shapes := mil.Type{Kind: mil.DictType, Elems: []mil.Type{str, shape}}
	inputs = slices.Clone(inputs)
	slices.SortFunc(inputs, func(a, b mlmodelc.FeatureMeta) int { return strings.Compare(a.Name, b.Name) })
	defaults, ranges := &mil.Value{Type: shapes}, &mil.Value{}
	pair := mil.Type{Kind: mil.ListType, Len: mil.Unknown, Elems: []mil.Type{mil.TensorOf(tensor.Int32, 2)}}
	ranges.Type = mil.Type{Kind: mil.DictType, Elems: []mil.Type{str, pair}}
	var listed []mlmodelc.FeatureMeta
	for _, f := range inputs {
		if f.Type != "MultiArray" || len(f.Enumerated) == 0 && len(f.Range) == 0 {
			continue
		}
		defaults.Elems = append(defaults.Elems, text(str, f.Name), ints(shape, f.Shape))
		if len(f.Enumerated) > 0 {
			listed = append(listed, f)
			continue
		}
		bounds := &mil.Value{Type: pair}
		for _, r := range f.Range {
			bounds.Elems = append(bounds.Elems, ints(pair.Elems[0], r[:]))
		}
		ranges.Elems = append(ranges.Elems, text(str, f.Name), bounds)
	}
	if len(defaults.Elems) == 0 {
		return nil, nil
	}
	out := &mil.Value{Type: mil.Type{Kind: mil.TupleType}}
	add := func(name string, v *mil.Value) {
		entry := &mil.Value{Type: mil.Type{Kind: mil.TupleType, Elems: []mil.Type{str, v.Type}}, Elems: []*mil.Value{text(str, name), v}}
		out.Type.Elems = append(out.Type.Elems, entry.Type)
		out.Elems = append(out.Elems, entry)
	}
	add("DefaultShapes", defaults)
	if len(listed) > 0 {
		v, err := enumerated(listed, str, shape)
		if err != nil {
			return nil, err
		}
		add("EnumeratedShapes", v)
	}
	if len(ranges.Elems) > 0 {
		add("RangeDims", ranges)
	}
	return out, nil
}

// enumerated lists the combinations of shapes. Several inputs are paired in
// the order of their lists.
func enumerated(inputs []mlmodelc.FeatureMeta, str, shape mil.Type) (*mil.Value, error) {
	one := mil.Type{Kind: mil.DictType, Elems: []mil.Type{str, shape}}
	n := len(inputs[0].Enumerated)
	entries := map[string]*mil.Value{}
	for i := range n {
		v := &mil.Value{Type: one}
		var spelled []string
		for _, f := range inputs {
			if len(f.Enumerated) != n {
				return nil, diag.Errorf(diag.Pos{}, diag.Unsupported, "input %q has %d enumerated shapes, %q has %d: how they pair is not known", f.Name, len(f.Enumerated), inputs[0].Name, n)
			}
			v.Elems = append(v.Elems, text(str, f.Name), ints(shape, f.Enumerated[i]))
			spelled = append(spelled, "('"+f.Name+"', "+tuple(f.Enumerated[i])+")")
		}
		entries[shapesKey(spelled)] = v
	}
	out := &mil.Value{Type: mil.Type{Kind: mil.DictType, Elems: []mil.Type{str, one}}}
	for _, k := range slices.Sorted(maps.Keys(entries)) {
		out.Elems = append(out.Elems, text(str, k), entries[k])
	}
	return out, nil
}

// seenKeys are entries of EnumeratedShapes in files of Apple's compiler. How
// it makes the keys is not known; they only name the entry.
var seenKeys = map[string]string{
	"('input', (1,))": "543d0f94", "('input', (2,))": "697b758f", "('input', (4,))": "9e38c1a4",
	"('input_ids', (1, 1))": "79ae981e", "('input_ids', (1, 64))": "ed9b58c8",
}

// shapesKey is a key of Apple's, else hex digits of a hash of the shapes, the
// same that the project's earlier tool in Python made.
func shapesKey(spelled []string) string {
	if len(spelled) == 1 {
		if k := seenKeys[spelled[0]]; k != "" {
			return k
		}
		spelled = append(spelled, "")
	}
	sum := sha256.Sum256([]byte("(" + strings.TrimSuffix(strings.Join(spelled, ", "), " ") + ")"))
	return hex.EncodeToString(sum[:4])
}

// tuple spells a shape as Python does.
func tuple(shape []int) string {
	s := strings.Trim(tensor.ShapeString(shape), "[]")
	if len(shape) == 1 {
		s += ","
	}
	return "(" + s + ")"
}

func ints(t mil.Type, vals []int) *mil.Value {
	v := &mil.Value{Type: t}
	for _, n := range vals {
		v.Ints = append(v.Ints, int64(n))
	}
	return v
}

// dimsText joins dimensions as metadata.json shows them to people.
func dimsText(shape []int) string {
	parts := make([]string, len(shape))
	for i, d := range shape {
		parts[i] = strconv.Itoa(d)
	}
	return strings.Join(parts, times)
}
