package manifest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/coreml/sharedtest"
	"github.com/anepkg/anepkg/manifest"
)

// folder makes a file system of names; a value of "" makes a file with one
// byte.
func folder(files map[string]string) fstest.MapFS {
	m := fstest.MapFS{}
	for name, text := range files {
		if text == "" {
			text = "x"
		}
		m[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return m
}

func open(t testing.TB, m fstest.MapFS) *manifest.Package {
	t.Helper()
	p, err := manifest.Open(context.Background(), m, "dir/pkg")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

const meta = `model_info:
  name: anemll-Some-ctx512
  version: 0.3.5
  architecture: qwen3
  parameters:
    context_length: 512
    batch_size: "64"
    lut_embeddings: none
    lut_ffn: 6
    lut_lmhead: null
    num_chunks: 2
    model_prefix: qwen
    embeddings: qwen_embeddings.mlmodelc
    lm_head: qwen_lm_head_lut6.mlmodelc
    ffn: qwen_FFN_PF_lut6_chunk_01of02.mlmodelc
    lm_head_chunk_sizes: [3, 2]
    recommended_sampling: {do_sample: true, temperature: 0.6, top_k: 20}
`

func TestParams(t *testing.T) {
	p := open(t, folder(map[string]string{"meta.yaml": meta + "\n# command_line: x --y\n# fp16_scale: \"null\"\n# split_rotate: false\n"}))
	at := func(key string) string { return p.Params.Get(key).Pos.String() }
	for _, c := range []struct{ got, want any }{
		{p.Kind, manifest.ANEMLL},
		{p.Name, "anemll-Some-ctx512"},
		{p.Architecture, "qwen3"},
		{p.Params.Get("context_length").Value, 512},
		{p.Params.Get("batch_size").Value, "64"},
		{p.Params.Get("batch_size").Quoted, true},
		{p.Params.Get("lut_embeddings").Value, "none"},
		{p.Params.Get("lut_lmhead").Value, nil},
		{p.Params.Get("recommended_sampling").Member("temperature").Value, 0.6},
		{p.Params.Get("model_info.version").Value, "0.3.5"},
		{at("context_length"), "meta.yaml:6:21"},
		{p.Params.Get("context_length").KeyPos.String(), "meta.yaml:6:5"},
		{p.Params.Get("lm_head_chunk_sizes").Elems[1].Pos.String(), "meta.yaml:16:30"},
		{p.Comments.Get("command_line").Value, "x --y"},
		{p.Comments.Get("fp16_scale").Raw, "null"},
		{p.Comments.Get("split_rotate").Value, false},
		{p.Comments.Get("split_rotate").Pos.String(), "meta.yaml:21:17"},
	} {
		if c.got != c.want {
			t.Errorf("got %v, want %v", c.got, c.want)
		}
	}
	if n, ok := p.Params.Int("batch_size"); !ok || n != 64 {
		t.Errorf("a quoted integer: got %d, %t", n, ok)
	}
	if n, ok := p.Params.Get("lm_head_chunk_sizes").Ints(); !ok || !slices.Equal(n, []int{3, 2}) {
		t.Errorf("a list: got %v, %t", n, ok)
	}
}

// TestYAMLTraps: files that break or mislead readers (anemll.md 1.5).
func TestYAMLTraps(t *testing.T) {
	deep := strings.Repeat("[", 5000) + strings.Repeat("]", 5000)
	bomb := "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for i := range 8 {
		bomb += fmt.Sprintf("%c: &%c [*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c]\n", 'b'+i, 'b'+i, 'a'+i, 'a'+i, 'a'+i, 'a'+i, 'a'+i, 'a'+i, 'a'+i, 'a'+i, 'a'+i, 'a'+i)
	}
	for _, c := range []struct {
		name, text string
		context    int    // 0: not readable
		problem    error  // nil: none
		pos        string // of the first problem
	}{
		{"plain", meta, 512, nil, ""},
		{"CRLF", strings.ReplaceAll(meta, "\n", "\r\n"), 512, nil, ""},
		{"byte order mark", "\ufeff" + meta, 512, nil, ""},
		{"two spaces more", strings.ReplaceAll(meta, "    ", "        "), 512, nil, ""},
		{"flow style", "{model_info: {name: x, parameters: {context_length: 512, num_chunks: 1}}}", 512, nil, ""},
		{"tab", strings.Replace(meta, "    context_length", "\tcontext_length", 1), 0, manifest.ErrSyntax, "meta.yaml:6:1"},
		{"unclosed list", strings.Replace(meta, "[3, 2]", "[3, 2", 1), 0, manifest.ErrSyntax, ""},
		{"control character", strings.Replace(meta, "qwen3", "qwen\x01", 1), 0, manifest.ErrSyntax, "meta.yaml:4:21"},
		{"duplicate key", strings.Replace(meta, "    num_chunks: 2", "    context_length: 256\n    num_chunks: 2", 1), 256, manifest.ErrDuplicateKey, "meta.yaml:11:5"},
		{"no model_info", "context_length: 512\nnum_chunks: 1\n", 512, manifest.ErrStructure, "meta.yaml:1:1"},
		{"no parameters", "model_info:\n  name: x\n  context_length: 512\n", 512, manifest.ErrStructure, "meta.yaml:1:1"},
		{"a list", "- 1\n- 2\n", 0, manifest.ErrStructure, "meta.yaml:1:1"},
		{"alias", "x: &p {context_length: 512, num_chunks: 1}\nmodel_info: {parameters: *p}\n", 512, nil, ""},
		{"deep nesting", deep, 0, nil, ""},
		{"alias bomb", bomb, 0, nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := open(t, folder(map[string]string{"meta.yaml": c.text}))
			if n, _ := p.Params.Int("context_length"); n != c.context {
				t.Errorf("context_length: got %d, want %d", n, c.context)
			}
			if c.context == 0 && len(p.Problems) == 0 {
				t.Error("an unreadable file without a problem")
			}
			if c.problem == nil {
				return
			}
			i := slices.IndexFunc(p.Problems, func(e *diag.Error) bool { return errors.Is(e, c.problem) })
			if i < 0 {
				t.Fatalf("problems: got %v, want %v", p.Problems, c.problem)
			}
			if got := p.Problems[i].Pos.String(); c.pos != "" && got != c.pos {
				t.Errorf("position: got %s, want %s", got, c.pos)
			}
		})
	}
}

func models(names ...string) map[string]string {
	m := map[string]string{}
	for _, n := range names {
		if strings.HasSuffix(n, ".mlmodelc") {
			m[n+"/model.mil"] = ""
		} else {
			m[n+"/Manifest.json"] = ""
			m[n+"/Data/com.apple.CoreML/model.mlmodel"] = ""
		}
	}
	return m
}

// TestFindParts: the file-finding rules of ANEMLL's readers (anemll.md 2.3).
func TestFindParts(t *testing.T) {
	base := []string{"qwen_embeddings.mlmodelc", "qwen_FFN_PF_lut6_chunk_01of02.mlmodelc", "qwen_FFN_PF_lut6_chunk_02of02.mlmodelc", "qwen_lm_head_lut6.mlmodelc"}
	swap := func(from, to string) []string {
		out := slices.Clone(base)
		out[slices.Index(out, from)] = to
		return out
	}
	for _, c := range []struct {
		name  string
		files []string
		meta  func(string) string
		want  string // role chunk/of path
	}{
		{"exact", base, nil, "embeddings qwen_embeddings.mlmodelc; chunk 1/2 qwen_FFN_PF_lut6_chunk_01of02.mlmodelc; chunk 2/2 qwen_FFN_PF_lut6_chunk_02of02.mlmodelc; lm_head qwen_lm_head_lut6.mlmodelc"},
		{"other suffix", swap("qwen_embeddings.mlmodelc", "qwen_embeddings.mlpackage"), nil, "embeddings qwen_embeddings.mlpackage; chunk 1/2 qwen_FFN_PF_lut6_chunk_01of02.mlmodelc; chunk 2/2 qwen_FFN_PF_lut6_chunk_02of02.mlmodelc; lm_head qwen_lm_head_lut6.mlmodelc"},
		{"no suffix claimed", base, func(s string) string {
			return strings.ReplaceAll(s, "qwen_lm_head_lut6.mlmodelc", "qwen_lm_head_lut6")
		}, "embeddings qwen_embeddings.mlmodelc; chunk 1/2 qwen_FFN_PF_lut6_chunk_01of02.mlmodelc; chunk 2/2 qwen_FFN_PF_lut6_chunk_02of02.mlmodelc; lm_head qwen_lm_head_lut6.mlmodelc"},
		{"without _lutN", swap("qwen_lm_head_lut6.mlmodelc", "qwen_lm_head.mlmodelc"), nil, "embeddings qwen_embeddings.mlmodelc; chunk 1/2 qwen_FFN_PF_lut6_chunk_01of02.mlmodelc; chunk 2/2 qwen_FFN_PF_lut6_chunk_02of02.mlmodelc; lm_head qwen_lm_head.mlmodelc"},
		{"0.3.4 alias", base, func(s string) string { return strings.ReplaceAll(s, "_chunk_01of02", "") }, "embeddings qwen_embeddings.mlmodelc; chunk 1/2 qwen_FFN_PF_lut6_chunk_01of02.mlmodelc; chunk 2/2 qwen_FFN_PF_lut6_chunk_02of02.mlmodelc; lm_head qwen_lm_head_lut6.mlmodelc"},
		{"names from prefix and bits", base, func(s string) string {
			var keep []string
			for l := range strings.Lines(s) {
				if !strings.Contains(l, ".mlmodelc") {
					keep = append(keep, l)
				}
			}
			return strings.ReplaceAll(strings.Join(keep, ""), "lut_lmhead: null", "lut_lmhead: 6")
		}, "embeddings qwen_embeddings.mlmodelc; chunk 1/2 qwen_FFN_PF_lut6_chunk_01of02.mlmodelc; chunk 2/2 qwen_FFN_PF_lut6_chunk_02of02.mlmodelc; lm_head qwen_lm_head_lut6.mlmodelc"},
		{"missing chunk", base[:2], nil, "embeddings qwen_embeddings.mlmodelc; chunk 1/2 qwen_FFN_PF_lut6_chunk_01of02.mlmodelc; chunk 2/2 (qwen_FFN_PF_lut6_chunk_02of02.mlmodelc); lm_head (qwen_lm_head_lut6.mlmodelc)"},
		{"rot files", append(slices.Clone(base), "qwen_FFN_PF_lut6_chunk_01of02_rot.mlmodelc", "qwen_FFN_PF_lut6_chunk_02of02_rot.mlmodelc"), nil,
			"embeddings qwen_embeddings.mlmodelc; chunk 1/2 qwen_FFN_PF_lut6_chunk_01of02.mlmodelc; chunk_rotate 1/2 qwen_FFN_PF_lut6_chunk_01of02_rot.mlmodelc; chunk 2/2 qwen_FFN_PF_lut6_chunk_02of02.mlmodelc; chunk_rotate 2/2 qwen_FFN_PF_lut6_chunk_02of02_rot.mlmodelc; lm_head qwen_lm_head_lut6.mlmodelc"},
		{"leftovers", append(slices.Clone(base), "qwen_FFN_lut6_chunk_01of02.mlpackage", "qwen_prefill_lut6_chunk_01of02.mlpackage"), nil,
			"embeddings qwen_embeddings.mlmodelc; chunk 1/2 qwen_FFN_PF_lut6_chunk_01of02.mlmodelc; chunk 2/2 qwen_FFN_PF_lut6_chunk_02of02.mlmodelc; lm_head qwen_lm_head_lut6.mlmodelc; leftover qwen_FFN_lut6_chunk_01of02.mlpackage; leftover qwen_prefill_lut6_chunk_01of02.mlpackage"},
		{"foreign numbering", append(slices.Clone(base), "qwen_FFN_PF_lut6_chunk_03of03.mlmodelc"), nil,
			"embeddings qwen_embeddings.mlmodelc; chunk 1/2 qwen_FFN_PF_lut6_chunk_01of02.mlmodelc; chunk 2/2 qwen_FFN_PF_lut6_chunk_02of02.mlmodelc; lm_head qwen_lm_head_lut6.mlmodelc; leftover qwen_FFN_PF_lut6_chunk_03of03.mlmodelc"},
		{"escape", base, func(s string) string {
			return strings.ReplaceAll(s, "lm_head: qwen", "lm_head: ../../qwen")
		}, "embeddings qwen_embeddings.mlmodelc; chunk 1/2 qwen_FFN_PF_lut6_chunk_01of02.mlmodelc; chunk 2/2 qwen_FFN_PF_lut6_chunk_02of02.mlmodelc; lm_head qwen_lm_head_lut6.mlmodelc"},
	} {
		t.Run(c.name, func(t *testing.T) {
			files := models(c.files...)
			files["meta.yaml"] = meta
			if c.meta != nil {
				files["meta.yaml"] = c.meta(meta)
			}
			p := open(t, folder(files))
			if got := parts(p); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func parts(p *manifest.Package) string {
	var out []string
	for _, pt := range p.Parts {
		s := string(pt.Role)
		if pt.Chunk > 0 {
			s += fmt.Sprintf(" %d/%d", pt.Chunk, pt.Of)
		}
		if pt.Path == "" {
			s += " (" + pt.Claimed + ")"
		} else {
			s += " " + pt.Path
		}
		out = append(out, s)
	}
	return strings.Join(out, "; ")
}

func TestKinds(t *testing.T) {
	with := func(m map[string]string, more map[string]string) map[string]string {
		for k, v := range more {
			m[k] = v
		}
		return m
	}
	for _, c := range []struct {
		name   string
		files  map[string]string
		kind   manifest.Kind
		layout manifest.Layout
		parts  string
	}{
		{"nothing", map[string]string{"README.md": ""}, manifest.Unknown, "", ""},
		{"one model", models("m.mlmodelc"), manifest.SingleModel, manifest.Single, "model m.mlmodelc"},
		{"both forms", models("m.mlmodelc", "m.mlpackage"), manifest.SingleModel, manifest.Single, "model m.mlmodelc"},
		{"inside of a compiled model", map[string]string{"model.mil": "", "coremldata.bin": ""}, manifest.SingleModel, manifest.Single, "model ."},
		{"inside of an mlpackage", map[string]string{"Manifest.json": "{}", "Data/com.apple.CoreML/model.mlmodel": ""}, manifest.SingleModel, manifest.Single, "model ."},
		{"espresso", map[string]string{"a.mlmodelc/model.espresso.net": "", "a.mlmodelc/coremldata.bin": ""}, manifest.NeuralNetwork, "", "model a.mlmodelc"},
		{"mlmodel", map[string]string{"a.mlmodel": ""}, manifest.NeuralNetwork, "", ""},
		{"Core AI", map[string]string{"a.aimodel/main.bin": ""}, manifest.CoreAI, "", ""},
		{"two unrelated models", models("a.mlmodelc", "b.mlmodelc"), manifest.Unknown, "", "model a.mlmodelc; model b.mlmodelc"},
		{"ANEMLL without meta.yaml", models("x_embeddings.mlmodelc", "x_FFN_PF_chunk_01of01.mlmodelc", "x_lm_head.mlmodelc"), manifest.ANEMLL, manifest.Chunked,
			"embeddings x_embeddings.mlmodelc; chunk 1/1 x_FFN_PF_chunk_01of01.mlmodelc; lm_head x_lm_head.mlmodelc"},
		{"L2 four chunks", models("chunk1.mlmodelc", "chunk2.mlmodelc", "chunk3.mlmodelc", "chunk4.mlmodelc"), manifest.CoreMLLLM, manifest.KVIO,
			"chunk 1/4 chunk1.mlmodelc; chunk 2/4 chunk2.mlmodelc; chunk 3/4 chunk3.mlmodelc; chunk 4/4 chunk4.mlmodelc"},
		{"L2 three chunks win", models("chunk1.mlmodelc", "chunk2.mlmodelc", "chunk3.mlmodelc", "chunk4.mlmodelc", "chunk2_3way.mlmodelc", "chunk3_3way.mlmodelc", "prefill_chunk1.mlmodelc"), manifest.CoreMLLLM, manifest.KVIO,
			"chunk 1/3 chunk1.mlmodelc; chunk 2/3 chunk2_3way.mlmodelc; chunk 3/3 chunk3_3way.mlmodelc; leftover chunk2.mlmodelc; leftover chunk3.mlmodelc; leftover chunk4.mlmodelc; prefill 1/0 prefill_chunk1.mlmodelc"},
		{"L2 half a set of three", models("chunk1.mlmodelc", "chunk2.mlmodelc", "chunk3.mlmodelc", "chunk2_3way.mlmodelc"), manifest.CoreMLLLM, manifest.KVIO,
			"chunk 1/4 chunk1.mlmodelc; chunk 2/4 chunk2.mlmodelc; chunk 3/4 chunk3.mlmodelc; chunk 4/4 (chunk4.mlmodelc); leftover chunk2_3way.mlmodelc"},
		{"L4", models("chunk_1.mlpackage", "chunk_2.mlpackage", "chunk_3.mlpackage"), manifest.CoreMLLLM, manifest.StatefulChunks,
			"chunk 1/3 chunk_1.mlpackage; chunk 2/3 chunk_2.mlpackage; chunk 3/3 chunk_3.mlpackage"},
		{"L5 in its folder", with(models("qwen3_5_0_8b_decode_chunks_mlkv/chunk_a.mlpackage", "qwen3_5_0_8b_decode_chunks_mlkv/chunk_b.mlpackage"), map[string]string{"hf_model/tokenizer.json": "{}"}), manifest.CoreMLLLM, manifest.MLKV,
			"chunk 1/4 qwen3_5_0_8b_decode_chunks_mlkv/chunk_a.mlpackage; chunk 2/4 qwen3_5_0_8b_decode_chunks_mlkv/chunk_b.mlpackage; chunk 3/4 (qwen3_5_0_8b_decode_chunks_mlkv/chunk_c.mlmodelc); chunk 4/4 (qwen3_5_0_8b_decode_chunks_mlkv/chunk_d.mlmodelc)"},
		{"L1", with(models("model.mlpackage"), map[string]string{"model_config.json": `{"architecture":"qwen2"}`}), manifest.CoreMLLLM, manifest.Monolithic, "monolithic model.mlpackage"},
		{"L9", with(models("encoder.mlpackage"), map[string]string{"model_config.json": `{}`}), manifest.CoreMLLLM, manifest.Encoder, "encoder encoder.mlpackage"},
		{"L1 without its model", map[string]string{"model_config.json": `{"parts":{"model":"model.mlpackage"}}`}, manifest.CoreMLLLM, manifest.Monolithic, "monolithic (model.mlpackage)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := open(t, folder(c.files))
			if p.Kind != c.kind || p.Layout != c.layout {
				t.Errorf("got %q %q (%s), want %q %q", p.Kind, p.Layout, p.Reason, c.kind, c.layout)
			}
			if got := parts(p); got != c.parts {
				t.Errorf("parts:\ngot  %s\nwant %s", got, c.parts)
			}
			if p.Reason == "" {
				t.Error("no reason")
			}
		})
	}
}

func TestNestedFolder(t *testing.T) {
	files := map[string]string{}
	for name, text := range models("qwen_embeddings.mlmodelc") {
		files["a/b/"+name] = text
	}
	files["a/b/meta.yaml"] = meta
	files["__MACOSX/a/._b"] = ""
	p := open(t, folder(files))
	if p.ConfigFile != "meta.yaml" || p.Path != "dir/pkg/a/b" || p.Parts[0].Path != "qwen_embeddings.mlmodelc" {
		t.Errorf("got %s in %s with %s", p.ConfigFile, p.Path, parts(p))
	}
}

// TestStray: in a folder with thousands of files and nothing of a package the
// walk ends early; a description file at the top keeps it going.
func TestStray(t *testing.T) {
	files := map[string]string{}
	for i := range 300 {
		for k := range 40 {
			files[fmt.Sprintf("home/d%d/f%d.txt", i, k)] = "x"
		}
	}
	if p := open(t, folder(files)); !p.Truncated || len(p.Files) > 5000 || p.Kind != manifest.Unknown || !strings.Contains(p.Reason, "more than the") {
		t.Errorf("got %d files, truncated %t, %s: %s", len(p.Files), p.Truncated, p.Kind, p.Reason)
	}
	files["meta.yaml"] = meta
	if p := open(t, folder(files)); p.Truncated || len(p.Files) != 12001 {
		t.Errorf("with meta.yaml: got %d files, truncated %t", len(p.Files), p.Truncated)
	}
}

func TestFiles(t *testing.T) {
	pointer := "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n"
	m := folder(map[string]string{
		"p.bin": pointer, "crlf.bin": strings.ReplaceAll(pointer, "\n", "\r\n"), "cut.bin": pointer[:60], "page.bin": "  <!DOCTYPE html>\n<html>", "gone.json": "Entry not found",
		"index.html": "<!DOCTYPE html>", "good.bin": "data", "x.bin.incomplete": "abc",
	})
	m["empty.bin"] = &fstest.MapFile{}
	p := open(t, m)
	for name, want := range map[string]manifest.FileStatus{
		"p.bin": manifest.FileLFSPointer, "crlf.bin": manifest.FileLFSPointer, "cut.bin": manifest.FileLFSPointer, "page.bin": manifest.FileHTML, "gone.json": manifest.FileHTML,
		"index.html": manifest.FileOK, "good.bin": manifest.FileOK, "x.bin.incomplete": manifest.FilePartial, "empty.bin": manifest.FileEmpty,
	} {
		if f := p.File(name); f == nil || f.Status != want {
			t.Errorf("%s: got %+v, want %s", name, f, want)
		}
	}
	if f := p.File("crlf.bin"); f.LFSSize != 12345 || !strings.HasPrefix(f.LFSOID, "4d7a") || f.TrueBytes() != 12345 {
		t.Errorf("pointer: got %+v", f)
	}
	if f := p.File("cut.bin"); f.LFSSize != -1 {
		t.Errorf("a cut pointer: got size %d, want -1", f.LFSSize)
	}
}

// TestLinks: the cache of huggingface_hub consists of links; loops end.
func TestLinks(t *testing.T) {
	dir := t.TempDir()
	blobs := filepath.Join(dir, "blobs")
	snap := filepath.Join(dir, "snap")
	for _, d := range []string{blobs, snap} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(blobs, "1"), []byte(meta), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]string{"meta.yaml": "../blobs/1", "loop": ".", "gone": "nowhere"} {
		if err := os.Symlink(to, filepath.Join(snap, name)); err != nil {
			t.Skipf("no symbolic links here: %v", err)
		}
	}
	p, err := manifest.Open(context.Background(), os.DirFS(snap), snap)
	if err != nil {
		t.Fatal(err)
	}
	if n, _ := p.Params.Int("context_length"); n != 512 {
		t.Errorf("meta.yaml behind a link is not read: %v", p.Problems)
	}
	if len(p.Files) > 4 {
		t.Errorf("a loop was followed: %d files", len(p.Files))
	}
}

func TestOpenErrors(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "none")
	if _, err := manifest.Open(context.Background(), os.DirFS(dir), dir); diag.CodeOf(err) != diag.NotFound {
		t.Errorf("absent folder: got %v, want not found", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := manifest.Open(ctx, folder(map[string]string{"meta.yaml": meta}), "x"); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: got %v", err)
	}
}

func TestTokenizer(t *testing.T) {
	p := open(t, folder(map[string]string{
		"meta.yaml":               meta,
		"tokenizer.json":          `{"added_tokens":[{"id":10,"content":"<|im_end|>","special":true},{"id":11,"content":"</s>","special":false}],"model":{"type":"BPE","vocab":{"a":0,"b":9},"merges":[["a","b"]]}}`,
		"tokenizer_config.json":   "{\n \"eos_token\": {\"content\": \"<|im_end|>\"},\n \"bos_token\": null,\n \"unk_token\": \"<nobody>\",\n \"chat_template\": [{\"name\": \"tool_use\", \"template\": \"T\"}, {\"name\": \"default\", \"template\": \"D\"}]\n}",
		"generation_config.json":  `{"eos_token_id": [10, 7]}`,
		"special_tokens_map.json": `{"pad_token": "a"}`,
		"config.json":             `{"eos_token_id": 5}`,
	}))
	tk := p.Tokenizer
	if tk.Type != "BPE" || tk.VocabSize != 12 {
		t.Errorf("got %s with %d ids, want BPE with 12", tk.Type, tk.VocabSize)
	}
	if s := tk.Special["eos"]; s.ID != 10 || s.Pos.String() != "tokenizer_config.json:2:15" {
		t.Errorf("eos: got %+v", s)
	}
	if s := tk.Special["unk"]; s.ID != -1 {
		t.Errorf("unk: got %+v, want no id", s)
	}
	if s := tk.Special["pad"]; s.ID != 0 {
		t.Errorf("pad: got %+v, want id 0", s)
	}
	var stops []string
	for _, s := range tk.StopSources {
		stops = append(stops, fmt.Sprintf("%d %s", s.ID, s.Source))
	}
	want := []string{"5 config.json: eos_token_id", "10 generation_config.json: eos_token_id", "7 generation_config.json: eos_token_id", "10 tokenizer_config.json: eos_token", "10 tokenizer.json: chat end token"}
	if !slices.Equal(stops, want) {
		t.Errorf("stops: got %q, want %q", stops, want)
	}
	if tk.ChatTemplate != "D" || tk.ChatTemplateFrom != "tokenizer_config.json" {
		t.Errorf("template: got %q from %s", tk.ChatTemplate, tk.ChatTemplateFrom)
	}
}

// TestJSON: positions, escapes, large numbers and broken texts.
func TestJSON(t *testing.T) {
	for _, c := range []struct {
		name, text string
		key        string
		want       any
		pos        string
		problem    bool
	}{
		{"integer", "{\"hidden_size\": 64}", "hidden_size", 64, "model_config.json:1:17", false},
		{"escape", `{"architecture": "qwen\u0032\n"}`, "architecture", "qwen2\n", "model_config.json:1:18", false},
		{"float", `{"embed_scale": 39.191835884530846}`, "embed_scale", 39.191835884530846, "", false},
		{"beyond int64", `{"n": 123456789012345678901234567890}`, "n", 123456789012345678901234567890.0, "", false},
		{"python's NaN", `{"n": 1, "m": NaN}`, "n", 1, "", true},
		{"second line", "{\n  \"a\": 1,\n  \"b\": [1, {\"c\": true}]\n}", "a", 1, "model_config.json:2:8", false},
		{"duplicate key", `{"a": 1, "a": 2}`, "a", 2, "", true},
		{"trailing text", `{"a": 1} x`, "", nil, "", true},
		{"unclosed", `{"a": [1, 2`, "", nil, "", true},
		{"no colon", `{"a" 1}`, "", nil, "", true},
		{"deep", strings.Repeat("[", 100000), "", nil, "", true},
		{"a list", `[1]`, "", nil, "", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := open(t, folder(map[string]string{"model_config.json": c.text}))
			if c.problem != (len(p.Problems) > 0) {
				t.Errorf("problems: got %v, want some: %t", p.Problems, c.problem)
			}
			if c.key == "" {
				return
			}
			prm := p.Params.Get(c.key)
			if prm == nil || prm.Value != c.want {
				t.Fatalf("got %+v, want %v", prm, c.want)
			}
			if c.pos != "" && prm.Pos.String() != c.pos {
				t.Errorf("position: got %s, want %s", prm.Pos, c.pos)
			}
		})
	}
}

// TestRealMeta reads the files that ANEMLL's own generator wrote.
func TestRealMeta(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(sharedtest.Path(t, "models/meta-yaml"), "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatal("no sample", err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		p := open(t, folder(map[string]string{"meta.yaml": string(data)}))
		if p.Kind != manifest.ANEMLL || p.Architecture == "" || len(p.Problems) > 0 {
			t.Errorf("%s: got %s %s %v", filepath.Base(file), p.Kind, p.Architecture, p.Problems)
		}
		if n, ok := p.Params.Int("context_length"); !ok || n < 512 {
			t.Errorf("%s: context_length %d, %t", filepath.Base(file), n, ok)
		}
	}
}
