// Package inspect describes and judges packages: what a package is (Inspect),
// its states and layers (States, Layers), and what is wrong with it
// (Validate). Everything comes from the programs; description files are
// claims that the rules compare with them.
//
// Files: inspect.go and report.go (Inspect), view.go (the facts of the
// programs), program.go (index over a function), weights.go, weights_list.go
// and weights_scan.go (how weights are stored, their list and export, a look
// at their numbers), states.go, layers.go and layers_own.go, memory.go,
// diff.go and diff_weights.go, runtimes.go, runtimes_text.go and
// text_runtimes.go (what other runtimes read, and how inspect shows it), rule.go (Rule, Pass, Finding), validate.go (running rules),
// suppress.go and targets.go (its options), catalogue.go (the list of rules),
// rules_<family>_<topic>.go (the rules; rules_cml*.go has those of
// CoreML-LLM, rules_ane*.go those of the Neural Engine), examples.go and
// examples.txtar (a failing example of each rule, made by a test), excerpt.go
// and text_<report>.go (text output). Below it, verify checks a program op by op
// and dense expands one constant.
package inspect

import (
	"context"
	"fmt"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/manifest"
)

// Inspect reports what a package is. Parts that cannot be read are listed
// with the reason; only a cancelled ctx is an error.
func Inspect(ctx context.Context, pkg *manifest.Package) (*Report, error) {
	v, err := look(ctx, pkg)
	if err != nil {
		return nil, err
	}
	layers := v.layers()
	r := &Report{Schema: "anepkg.inspect/1", Parts: []PartInfo{}, Files: []FileInfo{}}
	r.Package = v.packageInfo(layers)
	for _, p := range v.parts {
		r.Parts = append(r.Parts, partInfo(p))
	}
	r.Tokenizer = tokenizerInfo(&pkg.Tokenizer)
	for _, f := range pkg.Files {
		fi := FileInfo{Path: f.Path, Bytes: f.Bytes, Status: string(f.Status)}
		if f.Status == manifest.FileLFSPointer {
			fi.SHA256 = f.LFSOID
			if f.LFSSize >= 0 {
				fi.TrueBytes = ptr(f.LFSSize)
			}
		}
		r.Files = append(r.Files, fi)
	}
	r.Runtimes = v.runtimes()
	return r, nil
}

func (v *view) packageInfo(layers *LayersReport) PackageInfo {
	pkg := v.pkg
	info := PackageInfo{Path: pkg.Path, Kind: string(pkg.Kind), Layout: string(pkg.Layout), Reason: pkg.Reason,
		Name: pkg.Name, Architecture: pkg.Architecture, Seen: pkg.Seen}
	for _, f := range pkg.Files {
		info.Bytes += max(0, f.TrueBytes())
	}
	if pkg.Kind != manifest.Seed && pkg.Kind != manifest.ANEMLL && pkg.Kind != manifest.CoreMLLLM {
		return info
	}
	info.ContextLength = v.or(v.facts.context, "context_length", "max_seq_len")
	info.BatchSize = v.or(v.facts.batch, "batch_size")
	info.HiddenSize = v.or(v.facts.hidden, "hidden_size")
	info.VocabSize = v.or(v.facts.vocab, "vocab_size")
	if info.VocabSize == nil && v.facts.embedRows.n > 0 {
		info.VocabSize = ptr(v.facts.embedRows.n)
	}
	info.NumLayers = known(layers.NumLayers)
	if info.NumLayers == nil {
		info.NumLayers = v.or(number{}, "num_layers", "num_hidden_layers")
	}
	if chunks := pkg.PartsOf(manifest.Chunk); len(chunks) > 0 {
		info.NumChunks = ptr(chunks[0].Of)
	} else if len(pkg.PartsOf(manifest.Mono)) > 0 {
		info.NumChunks = ptr(1)
	}
	return info
}

func partInfo(p *partView) PartInfo {
	info := PartInfo{Role: string(p.Role), Chunk: known(p.Chunk), Of: known(p.Of), Path: p.Path, Container: string(p.Container),
		Alternative: p.Alternative, Functions: []FunctionInfo{}, Weights: WeightInfo{Schemes: []Scheme{}}}
	if p.Path == "" {
		info.Path = p.Claimed
	}
	if p.err != nil || p.model == nil {
		if p.err != nil {
			info.Error = p.err.Error()
		}
		return info
	}
	m := p.model
	info.SpecVersion = known(m.SpecVersion)
	for _, f := range m.Functions {
		if info.Opset == "" || f.Default {
			info.Opset = f.Opset
		}
		info.Functions = append(info.Functions, functionInfo(p, f))
	}
	info.MinOS = minOS(m.SpecVersion, info.Opset)
	info.Weights.Count = len(p.weights)
	for _, w := range p.weights {
		info.Weights.Bytes += w.Bytes
	}
	info.Weights.Schemes = schemes(p.weights)
	return info
}

func functionInfo(p *partView, f *coreml.Function) FunctionInfo {
	fi := FunctionInfo{Name: f.Name, Default: f.Default, Inputs: features(f.Inputs), Outputs: features(f.Outputs),
		States: []StateFeature{}, OpHistogram: map[string]int{}}
	for _, s := range f.States {
		fi.States = append(fi.States, StateFeature{Name: s.Name, DType: s.DType.Long(), Shape: shape(s.Shape)})
	}
	if ix := p.program(f.Name); ix != nil {
		fi.OpHistogram = ix.histogram()
	}
	return fi
}

func features(fs []coreml.Feature) []FeatureInfo {
	out := []FeatureInfo{}
	for _, f := range fs {
		fi := FeatureInfo{Name: f.Name, DType: f.DType.Long(), Shape: shape(f.Shape), Enumerated: f.Enumerated, Range: f.Range, Optional: f.Optional}
		if fi.Enumerated == nil {
			fi.Enumerated = [][]int{}
		}
		if fi.Range == nil {
			fi.Range = [][2]int{}
		}
		out = append(out, fi)
	}
	return out
}

func shape(s []int) []int {
	if s == nil {
		return []int{}
	}
	return s
}

// systems maps specification versions and opsets to the first systems that
// can load them.
var systems = []struct {
	spec  int
	opset string
	macOS string
	iOS   string
}{
	{6, "ios15", "12", "15"}, {7, "ios16", "13", "16"}, {8, "ios17", "14", "17"}, {9, "ios18", "15", "18"}, {10, "ios26", "26", "26"},
}

// minOS names the oldest systems that a model runs on. The opset decides
// when it is newer than the specification version says.
func minOS(spec int, opset string) string {
	best := -1
	for i, s := range systems {
		if s.spec == spec || s.opset == opset {
			best = i
		}
	}
	if best < 0 {
		return ""
	}
	return fmt.Sprintf("macOS %s, iOS %s", systems[best].macOS, systems[best].iOS)
}

func tokenizerInfo(t *manifest.Tokenizer) TokenizerInfo {
	info := TokenizerInfo{Type: t.Type, VocabSize: known(t.VocabSize), Special: map[string]SpecialToken{}, ChatTemplate: t.ChatTemplateFrom,
		StopIDs: []StopID{}, Dir: t.Dir}
	for name, s := range t.Special {
		st := SpecialToken{Token: s.Content}
		if s.ID >= 0 {
			st.ID = ptr(s.ID)
		}
		info.Special[name] = st
	}
	for _, s := range t.StopSources {
		k := -1
		for i := range info.StopIDs {
			if info.StopIDs[i].ID == s.ID {
				k = i
			}
		}
		if k < 0 {
			info.StopIDs = append(info.StopIDs, StopID{ID: s.ID, Token: s.Token})
			k = len(info.StopIDs) - 1
		}
		info.StopIDs[k].Sources = append(info.StopIDs[k].Sources, s.Source)
	}
	return info
}
