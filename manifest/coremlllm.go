package manifest

import (
	"fmt"
	"path"
	"regexp"
	"sort"
	"strconv"
	"strings"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/coreml/diag"
)

// cmlSet is one folder's models in a CoreML-LLM package, by stem.
type cmlSet struct {
	dir    string
	byStem map[string]*Part
	taken  map[string]bool
}

var (
	cmlPrefill   = regexp.MustCompile(`^prefill_(t\d+|chunk\d+|chunk_\d+)$|_prefill_T\d+$`)
	cmlAuxiliary = regexp.MustCompile(`^(vision.*|audio.*|mtp_drafter|eagle3_.*|verify_chunk\d+|chunk_0_vision|qwen_drafter|prefill_chunk_0_vision)$`)
)

// detectCoreMLLLM recognises a CoreML-LLM package by its file set or its
// model_config.json (coreml-llm.md 1) and finds the parts. The chunked file
// sets win over model.*, as in the library's own order of detection.
func (p *Package) detectCoreMLLLM() bool {
	config := ""
	if p.File("model_config.json") != nil {
		config = "model_config.json"
	}
	hf := p.hasPrefix("hf_model/")
	for _, set := range p.cmlSets() {
		if set.dir != "." && p.File(path.Join(set.dir, "model_config.json")) != nil {
			config = path.Join(set.dir, "model_config.json")
		}
		hf := hf || p.hasPrefix(path.Join(set.dir, "hf_model")+"/")
		parts, layout, why := set.match(config != "" || hf)
		if parts == nil {
			continue
		}
		p.Kind, p.Layout, p.Parts = CoreMLLLM, layout, parts
		p.Reason = why
		if set.dir != "." {
			p.Reason += " in " + set.dir
		}
		break
	}
	if p.Kind != CoreMLLLM {
		if config == "" {
			return false
		}
		p.Kind, p.Reason = CoreMLLLM, "model_config.json"
		p.Layout = Monolithic
	}
	p.readModelConfig(config)
	if d := path.Dir(p.firstPath()); config == "" && d != "." && d != "" {
		p.Name = path.Base(d)
	}
	if len(p.Parts) == 0 {
		p.claimedCMLParts()
	}
	return true
}

// cmlSets groups the model folders by the folder that they lie in, root
// first.
func (p *Package) cmlSets() []*cmlSet {
	sets := map[string]*cmlSet{}
	for _, c := range p.containers {
		if insideContainer(c.path) || strings.Count(c.path, "/") > 1 {
			continue
		}
		dir := path.Dir(c.path)
		s := sets[dir]
		if s == nil {
			s = &cmlSet{dir: dir, byStem: map[string]*Part{}, taken: map[string]bool{}}
			sets[dir] = s
		}
		if prev := s.byStem[c.stem]; prev == nil {
			s.byStem[c.stem] = &Part{Path: c.path, Container: c.kind}
		} else if c.kind == coreml.MLModelC {
			prev.Alternative, prev.Path, prev.Container = prev.Path, c.path, c.kind
		} else {
			prev.Alternative = c.path
		}
	}
	dirs := make([]string, 0, len(sets))
	for d := range sets {
		dirs = append(dirs, d)
	}
	sort.Strings(dirs) // "." sorts first
	out := make([]*cmlSet, len(dirs))
	for i, d := range dirs {
		out[i] = sets[d]
	}
	return out
}

func (s *cmlSet) has(stem string) bool { return s.byStem[stem] != nil }

// take makes the numbered chunks of the stems; absent ones are claimed.
func (s *cmlSet) take(stems ...string) []*Part {
	var out []*Part
	for i, stem := range stems {
		pt := s.byStem[stem]
		if pt == nil {
			pt = &Part{}
		}
		s.taken[stem] = true
		pt.Role, pt.Chunk, pt.Of = Chunk, i+1, len(stems)
		pt.Claimed = path.Join(s.dir, stem+".mlmodelc")
		out = append(out, pt)
	}
	return out
}

func (s *cmlSet) one(role Role, stem string) *Part {
	pt := s.byStem[stem]
	pt.Role, pt.Claimed = role, path.Join(s.dir, stem+".mlmodelc")
	s.taken[stem] = true
	return pt
}

// match returns the parts of the first known file set, nil when none fits.
// described says that model_config.json or hf_model/ is there, without
// which model.* and encoder.* are ordinary single models.
func (s *cmlSet) match(described bool) (parts []*Part, layout Layout, why string) {
	switch {
	case s.has("chunk_a") || s.has("chunk_b") && s.has("chunk_c"):
		stems := []string{"chunk_a", "chunk_b", "chunk_c", "chunk_d"}
		parts, layout, why = s.take(stems...), MLKV, "chunk_a to chunk_d"
	case s.has("chunk1") || s.has("chunk2") && s.has("chunk3"):
		parts, layout, why = s.kvioChunks(), KVIO, "chunk1 and its successors"
		if len(parts) == 3 {
			why = "chunk1, chunk2_3way and chunk3_3way"
			if s.has("chunk2") || s.has("chunk3") || s.has("chunk4") {
				why += ", which win over chunk2 to chunk4 beside them"
			}
		}
	case s.has("chunk_0") && (s.has("chunk_1") || s.has("chunk_head")):
		parts, layout, why = s.take("chunk_0", "chunk_1", "chunk_2", "chunk_3"), StatefulChunks, "chunk_0 to chunk_3"
	case s.has("model") && s.has("chunk_1"):
		parts, layout, why = s.take("model"), StatefulChunks, "model beside chunk_1: the one-chunk form wins"
	case s.has("chunk_1") || s.has("chunk_2") && s.has("chunk_3"):
		stems := []string{"chunk_1", "chunk_2", "chunk_3"}
		if s.has("chunk_4") {
			stems = append(stems, "chunk_4")
		}
		parts, layout, why = s.take(stems...), StatefulChunks, "chunk_1 and its successors"
	case described && s.has("encoder"):
		parts, layout, why = []*Part{s.one(EncoderOf, "encoder")}, Encoder, "encoder beside a description"
	case described && s.has("model"):
		parts, layout, why = []*Part{s.one(Mono, "model")}, Monolithic, "model beside a description"
	default:
		return nil, NoLayout, ""
	}
	if s.has("chunk_head") {
		parts = append(parts, s.one(LMHead, "chunk_head"))
	}
	return append(parts, s.rest()...), layout, why
}

// kvioChunks applies the loader's rule for three-chunk files: they win when
// both are there (coreml-llm.md 1, L2).
func (s *cmlSet) kvioChunks() []*Part {
	if s.has("chunk2_3way") && s.has("chunk3_3way") {
		return s.take("chunk1", "chunk2_3way", "chunk3_3way")
	}
	return s.take("chunk1", "chunk2", "chunk3", "chunk4")
}

// rest gives a role to every other model of the folder.
func (s *cmlSet) rest() []*Part {
	var stems []string
	for stem := range s.byStem {
		if !s.taken[stem] {
			stems = append(stems, stem)
		}
	}
	sort.Strings(stems)
	var out []*Part
	for _, stem := range stems {
		pt := s.byStem[stem]
		switch {
		case cmlPrefill.MatchString(stem):
			pt.Role = PrefillOf
			if n, ok := strings.CutPrefix(stem, "prefill_chunk"); ok {
				pt.Chunk, _ = strconv.Atoi(strings.TrimPrefix(n, "_"))
			}
		case cmlAuxiliary.MatchString(stem):
			pt.Role = Model
		default:
			pt.Role = Leftover
		}
		out = append(out, pt)
	}
	return out
}

// readModelConfig reads model_config.json into Params.
func (p *Package) readModelConfig(name string) {
	if name == "" || p.File(name) == nil {
		return
	}
	p.ConfigFile = name
	if p.readable(name) == nil {
		return
	}
	data, err := readFile(p.FS, name, maxConfig)
	if err != nil {
		p.Problems = append(p.Problems, asError(name, err))
		return
	}
	p.Source = data
	root, dups, err := parseJSON(name, data)
	if err != nil {
		p.Problems = append(p.Problems, asError(name, err))
		return
	}
	p.Problems = append(p.Problems, dups...)
	if _, ok := root.Value.(map[string]any); !ok {
		p.problem(root.Pos, diag.Malformed, ErrStructure, "got no JSON object, want one at the top", "")
		return
	}
	p.Params = root.Elems
	if s, ok := p.Params.Str("model_name"); ok && s != "" {
		p.Name = s
	}
	if s, ok := p.Params.Str("architecture"); ok {
		p.Architecture = s
	}
}

// claimedCMLParts adds what the "parts" map names; none of it is there.
func (p *Package) claimedCMLParts() {
	parts := p.Params.Get("parts")
	if parts != nil {
		for _, e := range parts.Elems {
			name, ok := e.Str()
			if !ok {
				continue
			}
			role := Mono
			if e.Key == "encoder" {
				role = EncoderOf
				p.Layout = Encoder
			}
			p.Parts = append(p.Parts, &Part{Role: role, Claimed: name, ClaimedAt: e.Pos})
		}
	}
	if len(p.Parts) == 0 {
		p.Parts = append(p.Parts, &Part{Role: Mono, Claimed: "model.mlmodelc"})
	}
	for _, pt := range p.groupContainers() {
		pt.Role = Leftover
		p.Parts = append(p.Parts, pt)
	}
	p.Reason += fmt.Sprintf(" names %s, which is missing", p.Parts[0].Claimed)
}

// firstPath is the path of the first part that is there, "" without one.
func (p *Package) firstPath() string {
	for _, pt := range p.Parts {
		if pt.Path != "" {
			return pt.Path
		}
	}
	return ""
}
