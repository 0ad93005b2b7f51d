package inspect_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/anepkg/anepkg/inspect"
	"github.com/anepkg/anepkg/manifest"
)

// mutation spoils a copy of a package. It returns false where it does not
// apply.
type mutation struct {
	name   string
	want   []string // one of these must fire as an error
	mutate func(m *mutant) bool
}

// mutant is a package in memory that may be changed.
type mutant struct {
	fstest.MapFS
	pkg *manifest.Package // of the unchanged files
}

func (m *mutant) set(name string, data []byte) bool {
	m.MapFS[name] = &fstest.MapFile{Data: data, Mode: 0o644}
	return true
}

func (m *mutant) data(name string) []byte {
	if f := m.MapFS[name]; f != nil {
		return slices.Clone(f.Data)
	}
	return nil
}

// files returns the names that end in suffix and belong to a used part or,
// for other files, all of them.
func (m *mutant) files(suffix string) []string {
	var out []string
	for name := range m.MapFS {
		if strings.HasSuffix(name, suffix) && !strings.Contains(name, "analytics") {
			out = append(out, name)
		}
	}
	sort.Strings(out)
	return out
}

func (m *mutant) weight() string {
	names := m.files("weights/weight.bin")
	if len(names) == 0 {
		return ""
	}
	return names[len(names)-1]
}

// config replaces text in the description file.
func (m *mutant) config(pattern string, repl func(string) string) bool {
	re := regexp.MustCompile(pattern)
	name := m.pkg.ConfigFile
	old := m.data(name)
	loc := re.FindIndex(old)
	if name == "" || loc == nil {
		return false
	}
	now := string(old[:loc[0]]) + repl(string(old[loc[0]:loc[1]])) + string(old[loc[1]:])
	return m.set(name, []byte(now))
}

// number changes a number of the description file.
func number(key string, change func(int) int) func(*mutant) bool {
	return func(m *mutant) bool {
		return m.config(`(?m)^\s*"?`+key+`"?: \d+`, func(s string) string {
			i := strings.LastIndexByte(s, ' ')
			n, err := strconv.Atoi(s[i+1:])
			if err != nil {
				return s
			}
			return s[:i+1] + strconv.Itoa(change(n))
		})
	}
}

func double(n int) int { return 2 * n }
func plus(n int) int   { return n + 1 }

func replaceIn(suffix string, pattern, repl string) func(*mutant) bool {
	re := regexp.MustCompile(pattern)
	return func(m *mutant) bool {
		for _, name := range m.files(suffix) {
			old := m.data(name)
			loc := re.FindSubmatchIndex(old)
			if loc == nil {
				continue
			}
			now := append(slices.Clone(old[:loc[0]]), re.Expand(nil, []byte(repl), old, loc)...)
			return m.set(name, append(now, old[loc[1]:]...))
		}
		return false
	}
}

func lfs[N int | int64](size N) []byte {
	return fmt.Appendf(nil, "version https://git-lfs.github.com/spec/v1\noid sha256:%064d\nsize %d\n", 7, size)
}

func (m *mutant) rename(from, to string) {
	for name, f := range maps.Clone(m.MapFS) {
		if rest, ok := strings.CutPrefix(name, from+"/"); ok {
			delete(m.MapFS, name)
			m.MapFS[to+"/"+rest] = f
		}
	}
}

var page = []byte("<!DOCTYPE html>\n<html><head><title>404</title></head></html>\n")

var mutations = []mutation{
	{"weight file cut to half", []string{"WGT001"}, func(m *mutant) bool {
		w := m.weight()
		return w != "" && m.set(w, m.data(w)[:len(m.data(w))/2])
	}},
	{"weight file cut by one byte", []string{"WGT001"}, func(m *mutant) bool {
		w := m.weight()
		return w != "" && m.set(w, m.data(w)[:len(m.data(w))-1])
	}},
	{"weight file with a tail", []string{"WGT001"}, func(m *mutant) bool {
		w := m.weight()
		return w != "" && m.set(w, append(m.data(w), make([]byte, 4096)...))
	}},
	{"weight file is a pointer", []string{"PKG006"}, func(m *mutant) bool {
		w := m.weight()
		return w != "" && m.set(w, lfs(len(m.data(w))))
	}},
	{"pointer of another size", []string{"WGT001"}, func(m *mutant) bool {
		w := m.weight()
		return w != "" && m.set(w, lfs(len(m.data(w))-64))
	}},
	{"weight file is a web page", []string{"PKG007"}, func(m *mutant) bool { w := m.weight(); return w != "" && m.set(w, page) }},
	{"weight file is empty", []string{"PKG008"}, func(m *mutant) bool { w := m.weight(); return w != "" && m.set(w, nil) }},
	{"weight file is gone", []string{"WGT004"}, func(m *mutant) bool {
		w := m.weight()
		delete(m.MapFS, w)
		return w != ""
	}},
	{"blob magic", []string{"WGT002"}, func(m *mutant) bool {
		w := m.weight()
		d := m.data(w)
		copy(d[64:], []byte{0, 0, 0, 0})
		return m.set(w, d)
	}},
	{"blob element type", []string{"WGT002"}, func(m *mutant) bool {
		w := m.weight()
		d := m.data(w)
		d[68] = map[byte]byte{1: 2}[d[68]] + 1
		return m.set(w, d)
	}},
	{"blob size", []string{"WGT002"}, func(m *mutant) bool {
		w := m.weight()
		d := m.data(w)
		d[72] ^= 2
		return m.set(w, d)
	}},
	{"coremldata.bin is gone", []string{"PKG005"}, func(m *mutant) bool {
		for _, pt := range m.pkg.Parts {
			name := path.Join(pt.Path, "coremldata.bin")
			if m.MapFS[name] != nil {
				delete(m.MapFS, name)
				return true
			}
		}
		return false
	}},
	{"Manifest.json is gone", []string{"PKG005", "PKG003"}, func(m *mutant) bool {
		names := m.files("Manifest.json")
		if len(names) > 0 {
			delete(m.MapFS, names[0])
		}
		return len(names) > 0
	}},
	{"model.mil is gone", []string{"PKG005"}, func(m *mutant) bool {
		names := m.files("model.mil")
		if len(names) > 0 {
			delete(m.MapFS, names[0])
		}
		return len(names) > 0
	}},
	{"model.mil cut", []string{"PKG003"}, func(m *mutant) bool {
		names := m.files("model.mil")
		return len(names) > 0 && m.set(names[0], m.data(names[0])[:len(m.data(names[0]))*2/3])
	}},
	{"model.mlmodel cut", []string{"PKG003"}, func(m *mutant) bool {
		names := m.files("model.mlmodel")
		return len(names) > 0 && m.set(names[0], m.data(names[0])[:len(m.data(names[0]))*2/3])
	}},
	{"model.mil is a web page", []string{"PKG007"}, func(m *mutant) bool {
		names := m.files("model.mil")
		return len(names) > 0 && m.set(names[0], page)
	}},
	{"undefined identifier", []string{"PKG003", "MIL001"}, replaceIn("model.mil", `x = ([a-z_0-9]+)\)\[name`, "x = ${1}_gone)[name")},
	{"repeated identifier", []string{"PKG003", "MIL001"}, replaceIn("model.mil", `(tensor<fp16, \[[^\]]*\]> )([a-zA-Z_0-9]+)( = [^\n]*\n)`, "$1$2$3$1$2$3")},
	{"mask of another length", []string{"MIL004", "MIL007", "CFG010"}, replaceIn("model.mil", `(\[1, 1, 1, \d+)(\]> causal_mask)`, "${1}0$2")},
	{"state of another shape", []string{"MIL002", "MIL007"}, replaceIn("model.mil", `(state<tensor<fp16, \[)(\d+)`, "${1}1$2")},
	{"hidden states of another width", []string{"MIL003", "MIL007", "MIL012", "CFG012"}, replaceIn("model.mil", `(tensor<fp16, \[1, 1, \d+)(\]> hidden_(?:states|in))`, "${1}0$2")},
	{"sum of another shape", []string{"MIL012"}, replaceIn("model.mil", `(tensor<fp16, \[1, 1, )(\d+\]> [a-zA-Z_0-9]+ = add\()`, "${1}1$2")},
	{"projection of another shape", []string{"MIL012"}, replaceIn("model.mil", `(tensor<fp16, \[1, )(\d+, 1, \d+\]> [a-zA-Z_0-9]+ = conv\()`, "${1}1$2")},
	{"weight of another shape", []string{"MIL012", "WGT001", "WGT002", "WGT003", "PKG003"}, replaceIn("model.mil", `(indices = tensor<uint\d, \[)(\d+)`, "${1}1$2")},
	{"metadata.json with another shape", []string{"MIL007"}, func(m *mutant) bool { // the default function's schema stands there twice
		names := m.files("metadata.json")
		re := regexp.MustCompile(`("shape" : "\[1, )(\d+)`)
		return len(names) > 0 && re.Match(m.data(names[0])) && m.set(names[0], re.ReplaceAll(m.data(names[0]), []byte("${1}9$2")))
	}},
	{"metadata.json with another count", []string{"MIL007"}, replaceIn("metadata.json", `("Ios1[0-9]\.[a-zA-Z]+" : )(\d+)`, "${1}9$2")},
	{"num_chunks", []string{"PKG004"}, number("num_chunks", plus)},
	{"context_length", []string{"CFG010"}, number("context_length", double)},
	{"batch_size", []string{"CFG011"}, number("batch_size", double)},
	{"hidden_size", []string{"CFG012"}, number("hidden_size", plus)},
	{"vocab_size", []string{"CFG013"}, number("vocab_size", plus)},
	{"num_layers", []string{"CFG014"}, number("num_layers", plus)},
	{"split_lm_head", []string{"CFG015"}, number("split_lm_head", plus)},
	{"lm_head_chunk_sizes shifted", []string{"CFG016"}, func(m *mutant) bool {
		return m.config(`lm_head_chunk_sizes: \[\d+, \d+`, func(s string) string {
			i := strings.IndexByte(s, '[')
			a, b, _ := strings.Cut(s[i+1:], ", ")
			x, _ := strconv.Atoi(a)
			y, _ := strconv.Atoi(b)
			return fmt.Sprintf("%s[%d, %d", s[:i], x+1, y-1)
		})
	}},
	{"argmax_in_model", []string{"CFG017"}, func(m *mutant) bool {
		if m.pkg.Params.Get("argmax_in_model") != nil {
			return m.config(`argmax_in_model: true`, func(string) string { return "argmax_in_model: false" })
		}
		return m.config(`    batch_size:`, func(s string) string { return "    argmax_in_model: true\n" + s })
	}},
	{"state shape in meta.yaml", []string{"CFG020"}, func(m *mutant) bool {
		return m.config(`shape: \[`, func(s string) string { return s + "1" })
	}},
	{"state name in meta.yaml", []string{"CFG020"}, func(m *mutant) bool {
		return m.config(`- name: model_`, func(string) string { return "- name: models_" })
	}},
	{"state layers in meta.yaml", []string{"CFG020"}, func(m *mutant) bool {
		return m.config(`layers: \[\d`, func(string) string { return "layers: [7" })
	}},
	{"recurrent_state", []string{"CFG021"}, func(m *mutant) bool {
		return m.config(`recurrent_state: true`, func(string) string { return "recurrent_state: false" })
	}},
	{"local_cache_length", []string{"CFG022"}, number("local_cache_length", plus)},
	{"layer_types short", []string{"CFG023"}, func(m *mutant) bool {
		return m.config(`layer_types: \[\w+, `, func(string) string { return "layer_types: [" })
	}},
	{"layer type unknown", []string{"CFG023"}, func(m *mutant) bool {
		return m.config(`layer_types: \[\w+`, func(string) string { return "layer_types: [round" })
	}},
	{"per_layer_inputs", []string{"CFG026"}, number("per_layer_inputs", plus)},
	{"kv_shared_layers", []string{"CFG026"}, func(m *mutant) bool {
		return m.config(`kv_shared_layers: \{4: \d`, func(string) string { return "kv_shared_layers: {4: 9" })
	}},
	{"sliding_window", []string{"CFG025", "CFG031"}, func(m *mutant) bool {
		l := m.pkg.Layout
		return (l == manifest.Rotate || l == manifest.KVIO || l == manifest.StatefulChunks) && number("sliding_window", double)(m)
	}},
	{"tab in the YAML", []string{"CFG001"}, func(m *mutant) bool {
		return m.config(`(?m)^    context_length`, func(string) string { return "\tcontext_length" })
	}},
	{"broken YAML", []string{"CFG001"}, func(m *mutant) bool {
		return m.config(`(?m)^    context_length: `, func(s string) string { return s + "[1, " })
	}},
	{"broken JSON", []string{"CFG001"}, func(m *mutant) bool {
		return strings.HasSuffix(m.pkg.ConfigFile, ".json") && m.config(`":`, func(string) string { return `"` })
	}},
	{"meta.yaml without model_info", []string{"CFG001"}, func(m *mutant) bool {
		return m.config(`model_info:`, func(string) string { return "model:" })
	}},
	{"meta.yaml is gone", []string{"CFG001"}, func(m *mutant) bool {
		_, ok := m.MapFS["meta.yaml"]
		delete(m.MapFS, "meta.yaml")
		return ok
	}},
	{"text instead of a number", []string{"CFG003"}, func(m *mutant) bool {
		return strings.HasSuffix(m.pkg.ConfigFile, ".yaml") && m.config(`context_length: \d+`, func(string) string { return "context_length: many" })
	}},
	{"part name leaves the package", []string{"PKG011"}, func(m *mutant) bool {
		return m.config(`(?m)^    lm_head: `, func(s string) string { return s + "../" })
	}},
	{"chunks swapped", []string{"MIL005", "MIL010", "MIL011"}, func(m *mutant) bool {
		chunks := m.pkg.PartsOf(manifest.Chunk)
		if len(chunks) < 2 {
			return false
		}
		a, b := chunks[0].Path, chunks[1].Path
		m.rename(a, "x")
		m.rename(b, a)
		m.rename("x", b)
		return true
	}},
	{"last chunks swapped", []string{"MIL005", "MIL006", "MIL010", "MIL011"}, func(m *mutant) bool {
		chunks := m.pkg.PartsOf(manifest.Chunk)
		if len(chunks) < 3 {
			return false
		}
		a, b := chunks[len(chunks)-2].Path, chunks[len(chunks)-1].Path
		m.rename(a, "x")
		m.rename(b, a)
		m.rename("x", b)
		return true
	}},
	{"foreign chunk number", []string{"PKG002", "PKG004"}, func(m *mutant) bool {
		chunks := m.pkg.PartsOf(manifest.Chunk)
		if len(chunks) < 2 || !strings.Contains(chunks[0].Path, "of02") {
			return false
		}
		m.rename(chunks[1].Path, strings.Replace(chunks[1].Path, "02of02", "03of03", 1))
		return true
	}},
	{"cache input of another length", []string{"MIL025"}, replaceIn("model.mil", `(\[\d+, \d+, \d+)(, \d+\]> (?:K|V)_(?:full|sliding)_in)`, "${1}0$2")},
	{"cache state of another length", []string{"MIL025", "MIL004", "MIL002"}, replaceIn("model.mil", `(state<tensor<fp16, \[\d+, \d+, \d+)(, \d+\]>> \w*kv_cache)`, "${1}0$2")},
	{"key of model_config.json is gone", []string{"CFG030"}, func(m *mutant) bool {
		l := m.pkg.Layout
		return (l == manifest.KVIO || l == manifest.StatefulChunks) && m.config(`"vocab_size": \d+,`, func(string) string { return "" })
	}},
	{"metadata.json of another state", []string{"MIL007"}, replaceIn("metadata.json", `(?s)("stateSchema" : \[.*?"shape" : "\[)(\d)`, "${1}9$2")},
	{"opset too old", []string{"MIL014"}, replaceIn("model.mil", `<ios18>`, "<ios15>")},
	{"softmax over an axis that is not there", []string{"MIL015"}, replaceIn("model.mil", `softmax\(axis = \w+`, "softmax(axis = int32(7)")},
	{"tokenizer.json is gone", []string{"TOK001"}, func(m *mutant) bool {
		delete(m.MapFS, m.pkg.Tokenizer.File)
		return m.pkg.Layout != manifest.MLKV // its runtime fetches the tokenizer
	}},
	{"tokenizer.json is a pointer", []string{"PKG006"}, func(m *mutant) bool { return m.set(m.pkg.Tokenizer.File, lfs(1000)) }},
	{"tokenizer.json is cut", []string{"TOK002"}, func(m *mutant) bool {
		d := m.data(m.pkg.Tokenizer.File)
		return m.set(m.pkg.Tokenizer.File, d[:len(d)/2])
	}},
	{"tokenizer_config.json is broken", []string{"TOK002"}, func(m *mutant) bool {
		return m.set(m.pkg.Tokenizer.ConfigFile, bytes.Replace(m.data(m.pkg.Tokenizer.ConfigFile), []byte(`,`), []byte(`;`), 1))
	}},
	{"token id too large", []string{"TOK003"}, func(m *mutant) bool {
		re := regexp.MustCompile(`"id":\s*\d+`)
		d := m.data(m.pkg.Tokenizer.File)
		loc := re.FindIndex(d)
		return len(loc) > 0 && m.set(m.pkg.Tokenizer.File, append(append(slices.Clone(d[:loc[0]]), `"id": 99999`...), d[loc[1]:]...))
	}},
	{"stop id outside the vocabulary", []string{"TOK004"}, func(m *mutant) bool {
		return m.pkg.Tokenizer.GenConfig != "" && m.set(m.pkg.Tokenizer.GenConfig, []byte(`{"eos_token_id": 99999}`))
	}},
	{"embedding table cut", []string{"PKG013"}, func(m *mutant) bool {
		for _, suffix := range []string{"embed_tokens_q8.bin", "embed_tokens_per_layer_q8.bin"} {
			for _, name := range m.files(suffix) {
				return m.set(name, m.data(name)[1:])
			}
		}
		return false
	}},
	{"RoPE table is gone", []string{"PKG013"}, func(m *mutant) bool {
		name := "sin_full.npy"
		_, ok := m.MapFS[name]
		delete(m.MapFS, name)
		return ok && (m.pkg.Layout == manifest.KVIO || m.pkg.Layout == manifest.StatefulChunks)
	}},
	{"RoPE table is short", []string{"PKG013"}, func(m *mutant) bool {
		name := "cos_full.npy"
		d := m.data(name)
		return (m.pkg.Layout == manifest.KVIO || m.pkg.Layout == manifest.StatefulChunks) && m.set(name, d[:len(d)/4])
	}},
}

// partMutations deletes each part that a runtime needs.
func partMutations(pkg *manifest.Package) []mutation {
	var out []mutation
	for _, pt := range pkg.Parts {
		if pt.Role == manifest.PrefillOf || pt.Role == manifest.Model {
			continue
		}
		dir := pt.Path
		out = append(out, mutation{"without " + dir, []string{"PKG002"}, func(m *mutant) bool {
			for name := range maps.Clone(m.MapFS) {
				if strings.HasPrefix(name, dir+"/") {
					delete(m.MapFS, name)
				}
			}
			return true
		}})
	}
	return out
}

func errorIDs(r *inspect.ValidateReport) []string {
	var ids []string
	for _, f := range r.Findings {
		if f.Severity == inspect.Error && !slices.Contains(ids, f.ID) {
			ids = append(ids, f.ID)
		}
	}
	return ids
}

// ofContainer are the mutations of model folders.
var ofContainer = regexp.MustCompile(`without|weight|pointer|blob|Manifest|mlmodel|chunk`)

// TestMutations: every mutation of every good package gives the error that
// belongs to it, and none makes a check fail. Each mutation meets the rules
// that should see it; every fifth meets all rules. The rate is logged.
func TestMutations(t *testing.T) {
	var mu sync.Mutex
	applied, caught := map[string]int{}, 0
	t.Run("packages", func(t *testing.T) {
		for k, dir := range packages(t) {
			t.Run(shortName(dir), func(t *testing.T) {
				t.Parallel()
				if filepath.Base(dir) == "package" && k%3 != 0 && os.Getenv("ANEPKG_ALL_MUTATIONS") == "" {
					t.Skip("the compiled form stands for this one; ANEPKG_ALL_MUTATIONS=1 runs it")
				}
				files := load(t, dir)
				pkg := open(t, files, "pkg")
				for i, m := range append(partMutations(pkg), mutations...) {
					if filepath.Base(dir) == "package" && !ofContainer.MatchString(m.name) {
						continue // the other files are those of the compiled form
					}
					spoiled := &mutant{MapFS: maps.Clone(files), pkg: pkg}
					if !m.mutate(spoiled) {
						continue
					}
					hit := judgeMutant(t, m, files, spoiled, (i+k)%5 == 0)
					mu.Lock()
					applied[m.name]++
					if hit {
						caught++
					}
					mu.Unlock()
				}
			})
		}
	})
	total := 0
	for _, n := range applied {
		total += n
	}
	t.Logf("%d of %d mutations caught (%.1f %%), %d kinds", caught, total, 100*float64(caught)/float64(max(1, total)), len(applied))
	if total < 150 {
		t.Errorf("only %d mutations were made", total)
	}
	for _, m := range mutations {
		if applied[m.name] == 0 {
			t.Errorf("mutation %q applied to no package", m.name)
		}
	}
}

// judgeMutant reports whether the mutation gives one of the errors that it
// should.
func judgeMutant(t *testing.T, m mutation, before fstest.MapFS, spoiled *mutant, all bool) bool {
	opts := inspect.Options{Only: m.want}
	if all {
		opts.Only = nil
	}
	p, err := manifest.Open(context.Background(), spoiled.MapFS, "pkg")
	if err != nil {
		t.Errorf("%s: %v", m.name, err)
		return false
	}
	defer func() { _ = p.Close() }()
	r, err := inspect.Validate(context.Background(), p, opts)
	if err != nil {
		t.Errorf("%s: %v", m.name, err)
		return false
	}
	for _, f := range r.Findings {
		if strings.HasPrefix(f.Message, "the check itself failed") {
			t.Errorf("%s: %s: %s", m.name, f.ID, f.Message)
		}
	}
	ids := errorIDs(r)
	hit := slices.ContainsFunc(m.want, func(id string) bool { return slices.Contains(ids, id) })
	if !hit {
		t.Errorf("%s: got errors %v, want one of %v", m.name, ids, m.want)
		return false
	}
	if err := placed(m, r, before, spoiled.MapFS); err != nil {
		t.Errorf("%s: %v", m.name, err)
		return false
	}
	return true
}

// placed demands that one of the errors that a mutation should give names a
// file that it changed, and in a description file the line.
func placed(m mutation, r *inspect.ValidateReport, before, after fstest.MapFS) error {
	changed := map[string]bool{}
	for name := range before {
		if a := after[name]; a == nil || !bytes.Equal(a.Data, before[name].Data) {
			changed[name] = true
		}
	}
	for name := range after {
		if before[name] == nil {
			changed[name] = true
		}
	}
	var places []string
	for _, f := range r.Findings {
		if f.Severity != inspect.Error || !slices.Contains(m.want, f.ID) {
			continue
		}
		for _, w := range f.Where {
			places = append(places, f.ID+" at "+w.String())
			for name := range changed {
				folder := strings.TrimSuffix(w.File, ".mlmodelc") // claimed in either form
				if w.File != name && !strings.HasPrefix(name, w.File+"/") && !strings.HasPrefix(name, folder+".mlpackage/") {
					continue
				}
				if len(changed) > 3 || f.Got == "absent" || rightLine(w, before[name], after[name]) == nil { // whole models were moved; what is absent has no line
					return nil
				}
			}
		}
	}
	return fmt.Errorf("no error at a changed place: changed are %v, errors are %v", slices.Sorted(maps.Keys(changed)), places)
}

// rightLine: a place in YAML, JSON or MIL has a line, which is one of the
// changed ones or lies below them: a syntax error may show later.
func rightLine(w inspect.Where, before, after *fstest.MapFile) error {
	if before == nil || after == nil || !strings.HasSuffix(w.File, ".yaml") && !strings.HasSuffix(w.File, "model_config.json") && !strings.HasSuffix(w.File, ".mil") {
		return nil
	}
	if w.Line == nil {
		if bytes.Count(after.Data, []byte("\n")) < 3 {
			return nil // a web page or another stub
		}
		return errors.New("no line")
	}
	x, y := bytes.Split(before.Data, []byte("\n")), bytes.Split(after.Data, []byte("\n"))
	first := 0
	for first < min(len(x), len(y)) && bytes.Equal(x[first], y[first]) {
		first++
	}
	if *w.Line < first+1-1 {
		return fmt.Errorf("line %d, the change is at %d", *w.Line, first+1)
	}
	return nil
}
