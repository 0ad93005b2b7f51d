package inspect

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/coreml/tensor"
	"github.com/anepkg/anepkg/manifest"
)

func describeOutput(f *coreml.Feature) string {
	if f == nil {
		return "none"
	}
	return tensor.ShapeString(f.Shape)
}

// checkEmbeddings checks the embeddings part of a chunked package.
func checkEmbeddings(p *Pass) {
	for _, pt := range p.of(manifest.Embeddings) {
		fn := pt.fn("")
		if fn == nil {
			continue
		}
		in := fn.Input("input_ids")
		if in == nil || fn.Output("hidden_states") == nil {
			p.Report(fact(pt, fn, "", 1).pos, "%s takes %s and gives %s, want input_ids and hidden_states", pt.label(), featureNames(fn.Inputs), featureNames(fn.Outputs)).
				Compare(featureNames(fn.Inputs), "input_ids")
			continue
		}
		if len(in.Enumerated) == 0 || p.facts.batch.n == 0 {
			continue
		}
		for _, want := range []int{1, p.facts.batch.n} {
			if !slices.ContainsFunc(in.Enumerated, func(s []int) bool { return len(s) == 2 && s[1] == want }) {
				p.Report(fact(pt, fn, in.Name, 1).pos, "%s does not allow %d tokens in a call; the chunks are called with %d", pt.label(), want, want).
					Compare(in.Enumerated, []int{1, want}).Also(p.facts.batch.pos)
			}
		}
	}
}

func featureNames(fs []coreml.Feature) string {
	var out []string
	for _, f := range fs {
		out = append(out, f.Name)
	}
	return listOr(out)
}

// checkHead checks the lm_head part of a chunked package.
func checkHead(p *Pass) {
	for _, pt := range p.of(manifest.LMHead, manifest.Mono) {
		fn := pt.fn("infer")
		if fn == nil || p.pkg.Kind == manifest.CoreMLLLM {
			continue
		}
		outs := logitsOutputs(fn)
		if len(outs) == 0 && fn.Output("argmax_idx") == nil {
			p.Report(fact(pt, fn, "", 1).pos, "%s gives %s, want logits1 to logitsN or argmax_idx and argmax_val", pt.label(), featureNames(fn.Outputs)).Compare(featureNames(fn.Outputs), "logits1")
		}
		rest := 0
		for _, o := range fn.Outputs {
			if strings.HasPrefix(o.Name, "logits") {
				rest++
			}
		}
		if len(outs) > 0 && rest != len(outs) {
			p.Report(fact(pt, fn, "", 1).pos, "%s gives %d outputs logits*, only logits1 to logits%d are consecutive", pt.label(), rest, len(outs)).Compare(rest, len(outs))
		}
	}
}

// checkAnemllMeta compares the com.anemll.* entries of a model with the
// package and with its file name.
func checkAnemllMeta(p *Pass) {
	for _, pt := range p.parts {
		if pt.model == nil || pt.err != nil || pt.Role == manifest.Leftover {
			continue
		}
		file := pt.model.ProgramFile
		if pt.Container == coreml.MLModelC {
			file = path.Join(pt.Path, "metadata.json")
		}
		check := func(key string, want int, what string) {
			s, ok := pt.model.UserMeta["com.anemll."+key]
			if !ok || want == 0 {
				return
			}
			if n, err := strconv.Atoi(strings.TrimSpace(s)); err == nil && n != want {
				p.Report(diag.In(file), "%s was made with %s %d, %s has %d", pt.label(), key, n, what, want).Compare(n, want).
					Fix("fetch the part that was made for this package; this one was renamed or comes from another conversion")
			}
		}
		if pt.Role == manifest.Chunk || pt.Role == manifest.ChunkRot {
			check("chunk_no", pt.Chunk, "its file name")
			check("num_chunks", pt.Of, "its file name")
		}
		check("context_length", p.facts.context.n, "the package")
		if pt.decoder() {
			check("batch_size", p.facts.batch.n, "the package")
		}
		if pt.Role == manifest.LMHead || pt.Role == manifest.Mono {
			check("vocab_size", p.facts.vocab.n, "its output")
		}
		if s, ok := pt.model.UserMeta["com.anemll.lm_head_chunk_sizes"]; ok && len(p.facts.parts) > 0 {
			if sizes, ok := (&manifest.Param{Value: s}).Ints(); ok && !slices.Equal(sizes, p.facts.parts) {
				p.Report(diag.In(file), "%s was made with lm_head_chunk_sizes %v, its outputs have %v", pt.label(), sizes, p.facts.parts).Compare(sizes, p.facts.parts)
			}
		}
	}
}

func intRanges(ns []int) string {
	if len(ns) == 0 {
		return "none"
	}
	var parts []string
	for i := 0; i < len(ns); {
		j := i
		for j+1 < len(ns) && ns[j+1] == ns[j]+1 {
			j++
		}
		switch j - i {
		case 0:
			parts = append(parts, strconv.Itoa(ns[i]))
		case 1:
			parts = append(parts, strconv.Itoa(ns[i]), strconv.Itoa(ns[j]))
		default:
			parts = append(parts, fmt.Sprintf("%d-%d", ns[i], ns[j]))
		}
		i = j + 1
	}
	return strings.Join(parts, ", ")
}
