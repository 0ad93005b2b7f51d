package coreml

import (
	"slices"

	"github.com/anepkg/anepkg/coreml/mil"
	"github.com/anepkg/anepkg/coreml/mlmodelc"
	"github.com/anepkg/anepkg/coreml/tensor"
)

// describe makes the description of one function. Element types and shapes
// come from the program; order, optionality and flexibility from the model
// description where it has them.
func describe(f *mil.Function, desc *mlmodelc.Metadata, isDefault bool) *Function {
	out := &Function{Name: f.Name, Opset: f.Opset, Default: isDefault, Program: f}
	claim := claimOf(f, desc)
	flex := flexibility(f.Attr("FlexibleShapeInformation"))
	for _, p := range f.Params {
		if p.Type.IsState() {
			out.States = append(out.States, feature1(p.Name, p.Type.State(), claim.States, nil))
			continue
		}
		out.Inputs = append(out.Inputs, feature1(p.Name, p.Type, claim.Inputs, flex))
	}
	inOrder(out.Inputs, claim.Inputs)
	inOrder(out.States, claim.States)
	types := resultTypes(f)
	for _, r := range f.Body.Outputs {
		out.Outputs = append(out.Outputs, feature1(r.Name, types[r.Name], claim.Outputs, nil))
	}
	return out
}

// claimOf finds the description of f: by name, or the only one of a program
// with one function.
func claimOf(f *mil.Function, desc *mlmodelc.Metadata) mlmodelc.FunctionMeta {
	for _, c := range desc.Functions {
		if c.Name == f.Name {
			return c
		}
	}
	if len(desc.Functions) == 1 && desc.DefaultFunction == "" {
		return desc.Functions[0]
	}
	return mlmodelc.FunctionMeta{}
}

// resultTypes returns the types of the values that f returns.
func resultTypes(f *mil.Function) map[string]mil.Type {
	types := make(map[string]mil.Type, len(f.Body.Outputs))
	for _, r := range f.Body.Outputs {
		types[r.Name] = mil.Type{}
	}
	note := func(ps []mil.Param) {
		for i := range ps {
			if _, ok := types[ps[i].Name]; ok {
				types[ps[i].Name] = ps[i].Type
			}
		}
	}
	note(f.Params)
	for _, op := range f.Body.Ops {
		note(op.Outputs)
	}
	return types
}

// feature1 describes one value of type t.
func feature1(name string, t mil.Type, claims []mlmodelc.FeatureMeta, flex map[string]*flexible) Feature {
	ft := Feature{Name: name, DType: t.DType, Shape: slices.Clone(t.Shape)}
	var claim mlmodelc.FeatureMeta
	if i := claimIndex(claims, name); i >= 0 {
		claim = claims[i]
	}
	ft.Optional = claim.Optional
	ft.IsImage = claim.Type == "Image"
	if tensor.Known(t.Shape) {
		ft.Default = slices.Clone(t.Shape)
		return ft
	}
	if fx := flex[name]; fx != nil {
		ft.Default, ft.Enumerated, ft.Range = fx.def, fx.enumerated, fx.bounds
	}
	if ft.Default == nil && len(claim.Shape) > 0 && tensor.Compatible(claim.Shape, t.Shape) && tensor.Known(claim.Shape) {
		ft.Default = slices.Clone(claim.Shape)
	}
	// The program lists enumerated shapes by hash, the description in the
	// order of their declaration.
	if len(ft.Enumerated) == 0 || sameShapes(ft.Enumerated, claim.Enumerated) {
		ft.Enumerated = claim.Enumerated
	}
	if ft.Range == nil && len(claim.Range) == len(t.Shape) {
		ft.Range = claim.Range
	}
	return ft
}

func claimIndex(claims []mlmodelc.FeatureMeta, name string) int {
	return slices.IndexFunc(claims, func(c mlmodelc.FeatureMeta) bool { return c.Name == name })
}

// inOrder sorts features as the description lists them; those that it does
// not list stay behind in program order.
func inOrder(fs []Feature, claims []mlmodelc.FeatureMeta) {
	rank := make(map[string]int, len(claims))
	for i, c := range claims {
		if _, ok := rank[c.Name]; !ok {
			rank[c.Name] = i - len(claims)
		}
	}
	slices.SortStableFunc(fs, func(a, b Feature) int { return rank[a.Name] - rank[b.Name] })
}

// sameShapes reports whether two lists hold the same shapes in any order.
func sameShapes(a, b [][]int) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(s []int) bool {
		return !slices.ContainsFunc(b, func(t []int) bool { return slices.Equal(s, t) })
	})
}

// flexible is what FlexibleShapeInformation says about one input.
type flexible struct {
	def        []int
	enumerated [][]int
	bounds     [][2]int
}

// flexibility decodes the attribute FlexibleShapeInformation (mil.md section
// B.4): a tuple of named dicts.
func flexibility(v *mil.Value) map[string]*flexible {
	out := map[string]*flexible{}
	if v == nil {
		return out
	}
	get := func(key *mil.Value) *flexible {
		name, _ := key.Str()
		if out[name] == nil {
			out[name] = &flexible{}
		}
		return out[name]
	}
	for _, section := range v.Elems {
		if len(section.Elems) != 2 {
			continue
		}
		name, _ := section.Elems[0].Str()
		pairs := section.Elems[1].Elems
		for i := 0; i+1 < len(pairs); i += 2 {
			key, val := pairs[i], pairs[i+1]
			switch name {
			case "DefaultShapes":
				get(key).def = toInts(val.Ints)
			case "EnumeratedShapes": // by hash, one shape for each input
				for j := 0; j+1 < len(val.Elems); j += 2 {
					f := get(val.Elems[j])
					f.enumerated = append(f.enumerated, toInts(val.Elems[j+1].Ints))
				}
			case "RangeDims":
				for _, r := range val.Elems {
					if len(r.Ints) == 2 {
						f := get(key)
						f.bounds = append(f.bounds, [2]int{int(r.Ints[0]), int(r.Ints[1])})
					}
				}
			}
		}
	}
	return out
}

func toInts(v []int64) []int {
	out := make([]int, len(v))
	for i, n := range v {
		out[i] = int(n)
	}
	return out
}
