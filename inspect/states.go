package inspect

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/coreml/tensor"
	"github.com/anepkg/anepkg/manifest"
)

// The roles of a state.
const (
	roleKV        = "kv_cache"
	roleLocal     = "kv_cache_local"
	roleGlobal    = "kv_cache_global"
	roleRecurrent = "recurrent"
	roleConv      = "conv"
	roleOther     = "other"
)

// StatesReport lists the states of a package. It marshals to the JSON of
// "anepkg states".
type StatesReport struct {
	Schema     string      `json:"schema"` // "anepkg.states/1"
	States     []StateInfo `json:"states"`
	TotalBytes int64       `json:"total_bytes"`
}

// StateInfo is one state object as a runtime has to make it. Parts of a seed
// or ANEMLL package that declare the same state share one object; parts of a
// CoreML-LLM package each have their own.
type StateInfo struct {
	Name   string      `json:"name"`
	DType  string      `json:"dtype"`
	Shape  []int       `json:"shape"`
	Bytes  int64       `json:"bytes"`
	Role   string      `json:"role"`
	Layers []int       `json:"layers"`
	Parts  []StatePart `json:"parts"`
}

// StatePart says which functions of a part declare a state.
type StatePart struct {
	Part      string   `json:"part"`
	Functions []string `json:"functions"`
}

// stateRole tells a state's purpose by its name.
func stateRole(name string) string {
	switch {
	case strings.Contains(name, "conv"):
		return roleConv
	case manifest.IsRecurrentState(name):
		return roleRecurrent
	case strings.Contains(name, "local") || strings.Contains(name, "sliding"):
		return roleLocal
	case strings.Contains(name, "global") || strings.Contains(name, "full"):
		return roleGlobal
	case strings.Contains(name, "kv") || strings.Contains(name, "cache"):
		return roleKV
	}
	return roleOther
}

// sharesStates reports whether one state object serves every part.
func sharesStates(pkg *manifest.Package) bool {
	return pkg.Kind == manifest.Seed || pkg.Kind == manifest.ANEMLL
}

// States reports the states of a package, the functions that declare them
// and the layers that write them.
func States(ctx context.Context, pkg *manifest.Package) (*StatesReport, error) {
	v, err := look(ctx, pkg)
	if err != nil {
		return nil, err
	}
	return v.states(v.layers()), nil
}

func (v *view) states(layers *LayersReport) *StatesReport {
	r := &StatesReport{Schema: "anepkg.states/1", States: []StateInfo{}}
	for _, p := range v.parts {
		if p.model == nil || p.err != nil || p.Role == manifest.Leftover {
			continue
		}
		for _, f := range p.model.Functions {
			for i := range f.States {
				r.add(p, f, &f.States[i], sharesStates(v.pkg))
			}
		}
	}
	for i := range r.States {
		s := &r.States[i]
		s.Layers = layers.writing(s)
		if s.Bytes > 0 {
			r.TotalBytes += s.Bytes
		}
	}
	return r
}

func (r *StatesReport) add(p *partView, f *coreml.Function, s *coreml.Feature, shared bool) {
	for i := range r.States {
		old := &r.States[i]
		if old.Name != s.Name || old.DType != s.DType.Long() || !slices.Equal(old.Shape, s.Shape) {
			continue
		}
		last := &old.Parts[len(old.Parts)-1]
		if last.Part == p.label() {
			if !slices.Contains(last.Functions, f.Name) {
				last.Functions = append(last.Functions, f.Name)
			}
			return
		}
		if shared {
			old.Parts = append(old.Parts, StatePart{Part: p.label(), Functions: []string{f.Name}})
			return
		}
	}
	info := StateInfo{Name: s.Name, DType: s.DType.Long(), Shape: slices.Clone(s.Shape), Role: stateRole(s.Name), Layers: []int{},
		Parts: []StatePart{{Part: p.label(), Functions: []string{f.Name}}}}
	if n, err := tensor.NumElements(s.Shape); err == nil {
		info.Bytes = s.DType.ByteSize(n)
	}
	r.States = append(r.States, info)
}

func itoa(n int) string { return fmt.Sprint(n) }
