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

const maxChunks = 512

var (
	chunkName   = regexp.MustCompile(`^(.*)_chunk_(\d+)of(\d+)(_rot)?$`)
	lutTail     = regexp.MustCompile(`_(lut|int)\d+$`)
	embedStem   = regexp.MustCompile(`_embeddings(_(lut|int)\d+)?$`)
	headStem    = regexp.MustCompile(`_lm_head(_(lut|int)\d+)?$`)
	monoStem    = regexp.MustCompile(`_monolithic_(full|combined)(_(lut|int)\d+)?$`)
	ffnPFStem   = regexp.MustCompile(`FFN_PF`)
	anyFFNStem  = regexp.MustCompile(`FFN|prefill_statex`)
	anemllNames = regexp.MustCompile(`(_embeddings|_lm_head|FFN[^/]*_chunk_\d+of\d+|_monolithic_(full|combined))`)
)

// partFinder finds the parts of an ANEMLL package by the rules of its
// readers (anemll.md 2.3).
type partFinder struct {
	p      *Package
	byStem map[string][]container // root level, .mlmodelc before .mlpackage
	stems  []string               // sorted
	used   map[string]bool
}

func newPartFinder(p *Package) *partFinder {
	f := &partFinder{p: p, byStem: map[string][]container{}, used: map[string]bool{}}
	for _, c := range p.containers {
		if path.Dir(c.path) != "." {
			continue
		}
		if f.byStem[c.stem] == nil {
			f.stems = append(f.stems, c.stem)
		}
		f.byStem[c.stem] = append(f.byStem[c.stem], c)
	}
	sort.Strings(f.stems)
	for _, cs := range f.byStem { // compiled first
		sort.SliceStable(cs, func(i, j int) bool { return cs[i].kind == coreml.MLModelC && cs[j].kind != coreml.MLModelC })
	}
	return f
}

// part makes a Part of a stem that exists.
func (f *partFinder) part(role Role, stem string) *Part {
	cs := f.byStem[stem]
	if len(cs) == 0 {
		return nil
	}
	f.used[stem] = true
	pt := &Part{Role: role, Path: cs[0].path, Container: cs[0].kind}
	if len(cs) > 1 {
		pt.Alternative = cs[1].path
	}
	return pt
}

// claim returns the file name of a parameter, checked to stay inside.
func (f *partFinder) claim(key string) (name string, prm *Param) {
	prm = f.p.Params.Get(key)
	s, ok := prm.Str()
	if !ok || s == "" || s == "none" {
		return "", prm
	}
	clean := path.Clean(strings.ReplaceAll(s, "\\", "/"))
	if path.IsAbs(clean) || clean == ".." || strings.HasPrefix(clean, "../") || len(clean) > 1 && clean[1] == ':' {
		f.p.problem(prm.Pos, diag.Malformed, ErrEscape, fmt.Sprintf("%s: got %q, want a name inside the package", key, s), "write the bare file name")
		return "", prm
	}
	return clean, prm
}

// one finds a single part: the claimed name, then the name that prefix and
// LUT bits give, then the only folder whose name has the right form.
func (f *partFinder) one(role Role, key, base, lut string, form *regexp.Regexp) *Part {
	claimed, prm := f.claim(key)
	var pt *Part
	stem, _ := containerName(claimed)
	built := base + lut
	for _, s := range []string{stem, built, lutTail.ReplaceAllString(stem, ""), base} {
		if s != "" && pt == nil {
			pt = f.part(role, s)
		}
	}
	if pt == nil {
		var found []string
		for _, s := range f.stems {
			if form.MatchString(s) && !f.used[s] {
				found = append(found, s)
			}
		}
		if len(found) == 1 {
			pt = f.part(role, found[0])
		}
	}
	if claimed == "" {
		claimed = built + ".mlmodelc"
		if claimed == ".mlmodelc" {
			claimed = ""
		}
	}
	if pt == nil {
		pt = &Part{Role: role}
	} else if got, _ := containerName(path.Base(pt.Path)); stem != "" && got != stem {
		f.p.problem(prm.Pos, diag.Mismatch, ErrOtherName,
			fmt.Sprintf("%s: got name %q, the folder has %s", key, claimed, path.Base(pt.Path)), "write the name of the file that is there")
	}
	pt.Claimed = claimed
	if prm != nil {
		pt.ClaimedAt = prm.Pos
	}
	return pt
}

// findParts fills Parts from meta.yaml's claims and the folder.
func (p *Package) findParts() {
	f := newPartFinder(p)
	prefix, ok := p.Params.Str("model_prefix")
	if !ok || prefix == "" {
		prefix = f.guessPrefix()
	}
	if f.isMonolithic() {
		lut := p.lutSuffix("lut_bits", "quant_bits")
		p.Parts = append(p.Parts, f.one(Mono, "monolithic_model", prefix+"_monolithic_full", lut, monoStem))
	} else {
		p.Parts = append(p.Parts, f.one(Embeddings, "embeddings", prefix+"_embeddings", p.lutSuffix("lut_embeddings", "quant_embeddings"), embedStem))
		p.Parts = append(p.Parts, f.chunks(prefix)...)
		p.Parts = append(p.Parts, f.one(LMHead, "lm_head", prefix+"_lm_head", p.lutSuffix("lut_lmhead", "quant_lmhead"), headStem))
	}
	for _, s := range f.stems {
		if !f.used[s] {
			p.Parts = append(p.Parts, f.part(Leftover, s))
		}
	}
	p.findZips()
}

func (f *partFinder) isMonolithic() bool {
	if t, ok := f.p.Params.Str("model_info.model_type"); ok && t == "monolithic" {
		return true
	}
	if name, _ := f.claim("monolithic_model"); name != "" {
		return true
	}
	chunked, mono := false, false
	for _, s := range f.stems {
		chunked = chunked || chunkName.MatchString(s)
		mono = mono || monoStem.MatchString(s)
	}
	return mono && !chunked && f.p.Params.Get("ffn") == nil && f.p.Params.Get("num_chunks") == nil
}

// guessPrefix takes the prefix from the file names.
func (f *partFinder) guessPrefix() string {
	for _, s := range f.stems {
		for _, form := range []*regexp.Regexp{embedStem, headStem, monoStem} {
			if loc := form.FindStringIndex(s); loc != nil {
				return s[:loc[0]]
			}
		}
	}
	return "llama" // the readers' default (anemll.md 1.3)
}

// chunkFile is a folder whose name ends in _chunk_NNofMM.
type chunkFile struct {
	stem, base string
	no, of     int
	rot        bool
}

func (f *partFinder) chunkFiles() []chunkFile {
	var out []chunkFile
	for _, s := range f.stems {
		m := chunkName.FindStringSubmatch(s)
		if len(m) == 0 || !anyFFNStem.MatchString(m[1]) {
			continue
		}
		no, err1 := strconv.Atoi(m[2])
		of, err2 := strconv.Atoi(m[3])
		if err1 != nil || err2 != nil || no > maxChunks || of > maxChunks {
			continue
		}
		out = append(out, chunkFile{stem: s, base: m[1], no: no, of: of, rot: m[4] != ""})
	}
	return out
}

// chunkBase chooses the family of chunk files: the claimed one, else the one
// that prefix and LUT bits give, else the first in the folder.
func (f *partFinder) chunkBase(prefix string, files []chunkFile) (base string, of int) {
	claimed, _ := f.claim("ffn")
	stem, _ := containerName(claimed)
	if m := chunkName.FindStringSubmatch(stem); m != nil {
		base = m[1]
		of, _ = strconv.Atoi(m[3])
	} else if stem != "" {
		base = stem // the 0.3.4 alias without _chunk_NNofMM
	}
	bases := []string{base, prefix + "_FFN_PF" + f.p.lutSuffix("lut_ffn", "quant_ffn")}
	for _, want := range []*regexp.Regexp{ffnPFStem, anyFFNStem} {
		for _, c := range files {
			if want.MatchString(c.base) {
				bases = append(bases, c.base)
			}
		}
	}
	for _, b := range bases {
		n := 0
		for _, c := range files {
			if b != "" && c.base == b && !c.rot {
				n = max(n, c.of)
			}
		}
		if n > 0 {
			if b != base || of == 0 {
				of = f.chunkCount(b, files)
			}
			return b, of
		}
	}
	if of == 0 {
		of, _ = f.p.Params.Int("num_chunks")
	}
	if base == "" {
		base = bases[1]
	}
	return base, max(1, min(of, maxChunks))
}

// chunkCount is the count that most file names of the family state.
func (f *partFinder) chunkCount(base string, files []chunkFile) int {
	votes := map[int]int{}
	best := 0
	for _, c := range files {
		if c.base == base {
			votes[c.of]++
			if best == 0 || votes[c.of] > votes[best] || votes[c.of] == votes[best] && c.of > best {
				best = c.of
			}
		}
	}
	return best
}

// chunks finds the decoder chunks and their _rot files.
func (f *partFinder) chunks(prefix string) []*Part {
	files := f.chunkFiles()
	base, of := f.chunkBase(prefix, files)
	of = max(1, min(of, maxChunks))
	_, ffn := f.claim("ffn")
	at := diag.Pos{}
	if ffn != nil {
		at = ffn.Pos
	}
	main := make([]*Part, of+1)
	rot := make([]*Part, of+1)
	anyRot := false
	for _, c := range files {
		if c.base != base {
			continue
		}
		slot := main
		role := Chunk
		if c.rot {
			slot, role, anyRot = rot, ChunkRot, true
		}
		if c.of != of || c.no < 1 || c.no > of || slot[c.no] != nil {
			if pt := f.part(Leftover, c.stem); pt != nil {
				f.used[c.stem] = false // listed with the other leftovers
				f.p.problem(diag.In(pt.Path), diag.Mismatch, ErrExtraChunk, fmt.Sprintf("got chunk %d of %d, the package has chunks 1 to %d of %d", c.no, c.of, of, of), "")
			}
			continue
		}
		pt := f.part(role, c.stem)
		pt.Chunk, pt.Of = c.no, of
		slot[c.no] = pt
	}
	split, _ := f.p.Params.Bool("split_rotate")
	var out []*Part
	for n := 1; n <= of; n++ {
		out = append(out, f.chunkOr(main[n], Chunk, base, n, of, "", at))
		if anyRot || split {
			pf := at
			if _, prm := f.claim("pf"); prm != nil {
				pf = prm.Pos
			}
			out = append(out, f.chunkOr(rot[n], ChunkRot, base, n, of, "_rot", pf))
		}
	}
	return append(out, f.prefillChunks(base, of, files)...)
}

// prefillChunks finds the chunks' prefill files of a package that splits them
// off (ffn_prefill, anemll.md 1.4 h).
func (f *partFinder) prefillChunks(base string, of int, files []chunkFile) []*Part {
	name, prm := f.claim("ffn_prefill")
	stem, _ := containerName(name)
	m := chunkName.FindStringSubmatch(stem)
	if len(m) < 2 || m[1] == base {
		return nil
	}
	found := make([]*Part, of+1)
	for _, c := range files {
		if c.base == m[1] && !c.rot && c.of == of && c.no >= 1 && c.no <= of && found[c.no] == nil {
			found[c.no] = f.part(PrefillOf, c.stem)
			found[c.no].Chunk, found[c.no].Of = c.no, of
		}
	}
	var out []*Part
	for n := 1; n <= of; n++ {
		out = append(out, f.chunkOr(found[n], PrefillOf, m[1], n, of, "", prm.Pos))
	}
	return out
}

func (f *partFinder) chunkOr(pt *Part, role Role, base string, n, of int, tail string, at diag.Pos) *Part {
	if pt == nil {
		pt = &Part{Role: role, Chunk: n, Of: of}
	}
	pt.Claimed = fmt.Sprintf("%s_chunk_%02dof%02d%s.mlmodelc", base, n, of, tail)
	pt.ClaimedAt = at
	return pt
}

// findZips reports parts that are there only as .zip archives, the older
// form of distribution (anemll.md 2.1).
func (p *Package) findZips() {
	for _, file := range p.Files {
		stem, isZip := strings.CutSuffix(file.Path, ".zip")
		if !isZip || !strings.HasSuffix(stem, ".mlmodelc") && !strings.HasSuffix(stem, ".mlpackage") {
			continue
		}
		if p.hasContainer(stem) {
			continue
		}
		p.problem(diag.In(file.Path), diag.NotFound, ErrZipped, path.Base(stem)+" is there only as a zip archive", "unzip "+file.Path+" in the package folder")
	}
}

func (p *Package) hasContainer(name string) bool {
	for _, c := range p.containers {
		if c.path == name {
			return true
		}
	}
	return false
}
