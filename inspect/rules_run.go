package inspect

import (
	"strings"

	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/coreml/tensor"
	"github.com/anepkg/anepkg/manifest"
)

// checkStateShapes: states of different shapes fail on the oldest Neural
// Engines.
func checkStateShapes(p *Pass) {
	r := p.states(p.layers())
	if len(r.States) < 2 || !p.anemllLike() {
		p.Skip("fewer than two states")
		return
	}
	a := r.States[0]
	for _, b := range r.States[1:] {
		if tensor.ShapeString(a.Shape) != tensor.ShapeString(b.Shape) {
			p.Report(diag.In(b.Parts[0].Part), "states %s %s and %s %s differ in shape: M1 and A14 cannot load the package", a.Name, tensor.ShapeString(a.Shape), b.Name, tensor.ShapeString(b.Shape)).
				Compare(b.Shape, a.Shape).On("m1", "a14").Fix("convert with --single-cache for these chips")
			return
		}
	}
}

// checkStateAlign: a last axis of 3 fails on the Neural Engine.
func checkStateAlign(p *Pass) {
	for _, s := range p.states(p.layers()).States {
		if n := len(s.Shape); n > 0 && s.Shape[n-1] == 3 {
			p.Report(diag.In(s.Parts[0].Part), "state %s has a last axis of 3: the Neural Engine fails at run time", s.Name).Compare(s.Shape, "another last axis").On("ane").
				Fix("store the state with its axes exchanged")
		}
	}
}

// checkLinearWeights: linear quantization computes garbage on the Neural
// Engine.
func checkLinearWeights(p *Pass) {
	for _, pt := range p.parts {
		if pt.model == nil || pt.err != nil || pt.Role == manifest.Leftover {
			continue
		}
		n := 0
		var first *Weight
		for _, w := range pt.weights {
			if strings.HasPrefix(w.Kind, "affine") || w.Kind == "blockwise" {
				if n++; first == nil {
					first = w
				}
			}
		}
		if n > 0 {
			at := pt.model.Program.At(first.Op.Pos)
			at.File = pt.model.ProgramFile
			p.Report(at, "%d weights of %s are quantized linearly (%s, %d bits): measured on the Neural Engine, int8 gives wrong results and int4 does not compile; the GPU is right", n, pt.label(), first.Kind, first.Bits).
				Compare(first.Kind, "lut or dense").On("ane").Fix("run on the GPU, or convert with LUTs")
		}
	}
}

const gib = 1 << 30

// chunkLimit is ANEMLL's default of max-chunk-mb.
const chunkLimit = 950 << 20

// checkWeightLimit: weight files above 1 GiB fail on iPhones.
func checkWeightLimit(p *Pass) {
	p.eachWeightFile(func(w *weightFile, f *manifest.File) {
		if f != nil && f.TrueBytes() > gib && !strings.Contains(w.part.Path, "embeddings") {
			p.Report(diag.In(f.Path), "%s is larger than 1 GiB (%s): iPhones refuse it", f.Path, Bytes(f.TrueBytes())).Compare(f.TrueBytes(), gib).On(iPhones...).
				Fix("convert into more chunks")
		} else if f != nil && f.TrueBytes() > chunkLimit && w.part.Role == manifest.Chunk {
			p.Report(diag.In(f.Path), "%s has %s; ANEMLL splits chunks at %s, and larger ones have failed to compile (coremltools#2758)", f.Path, Bytes(f.TrueBytes()), Bytes(chunkLimit)).Compare(f.TrueBytes(), int64(chunkLimit)).
				Fix("convert into more chunks")
		}
	})
}

// checkRecurrentRuntime: stock ANEMLL feeds the last prompt token twice.
func checkRecurrentRuntime(p *Pass) {
	switch p.pkg.Layout {
	case manifest.ChunkedRecurrent:
		p.Report(p.posOf("recurrent_state"), "the recurrent states cannot be rewound: ANEMLL's runtimes feed the last prompt token twice and corrupt them").On(anemllPython, anemllSwift).
			Compare("recurrent state", "KV cache only").Fix("use a runtime that feeds every token once")
	case manifest.ChunkedGemma4:
		if _, window := p.pkg.Params.Int("local_cache_length"); window {
			p.Report(p.posOf("local_cache_length"), "the local cache is a shifting window: ANEMLL's runtimes, which feed the last prompt token twice, shift it once too often").On(anemllPython, anemllSwift).
				Compare("shifting window", "full-length cache").Fix("use a runtime that feeds every token once")
		}
	case manifest.Rotate:
		w := p.facts.window
		p.Report(w.pos, "from position %d on every call shifts the local cache: ANEMLL's runtimes feed the last prompt token twice and shift it once too often (cosine 0.89 measured)", w.n).On(anemllPython, anemllSwift).
			Compare("shifting window", "full-length cache").Fix("use a runtime that feeds every token once, or prompts shorter than %d tokens", w.n)
	}
}

// checkRotatePrefill names the measured defect of prefill_rotate.
func checkRotatePrefill(p *Pass) {
	for _, pt := range p.of(manifest.ChunkRot, manifest.Chunk, manifest.Mono) {
		if fn := pt.model.Function("prefill_rotate"); fn != nil {
			w := p.facts.window.n
			p.Report(fact(pt, fn, "", 1).pos, "prefill_rotate of %s is not causal in the local layers: from position %d on, tokens of a batch see later ones (cosine 0.6 to 0.93 to the reference)", pt.label(), w).
				Compare("prefill_rotate", "infer_rotate").Fix("feed tokens from position %d on one at a time, through infer_rotate", w)
			return
		}
	}
	p.Skip("no function prefill_rotate")
}

// checkSplitRotate: chat.py cannot run _rot files.
func checkSplitRotate(p *Pass) {
	rot := p.pkg.PartsOf(manifest.ChunkRot)
	if len(rot) == 0 {
		p.Skip("no _rot files")
		return
	}
	p.Report(rot[0].ClaimedAt, "the rotate functions lie in files of their own, which ANEMLL's chat.py counts as chunks and then does not run").On(anemllPython).Compare("split", "one file")
}

// maxANEDim is the largest dimension of a tensor on the Neural Engine.
const maxANEDim = 16384

// checkPositionLimit: the RoPE table has two rows for each position.
func checkPositionLimit(p *Pass) {
	if n := p.facts.context; n.n > maxANEDim/2 && p.anemllLike() {
		p.Report(n.pos, "a context of %d makes RoPE tables of %d rows; the Neural Engine takes at most %d", n.n, 2*n.n, maxANEDim).On("ane").Compare(n.n, maxANEDim/2)
	}
}

// checkPrefillPath compares the flags of batched prefill with its inputs.
func checkPrefillPath(p *Pass) {
	dynamic, _ := p.pkg.Params.Bool("prefill_dynamic_slice")
	mask, _ := p.pkg.Params.Bool("update_mask_prefill")
	for _, pt := range p.of(manifest.Chunk, manifest.Mono) {
		fn := pt.fn("prefill")
		if fn == nil {
			continue
		}
		has := fn.Input("update_mask") != nil
		switch {
		case mask && !has:
			p.Report(p.posOf("update_mask_prefill"), "update_mask_prefill is true, prefill of %s takes no update_mask", pt.label()).As(Error).Compare(true, false)
		case !mask && has:
			p.Report(fact(pt, fn, "update_mask", 1).pos, "prefill of %s takes update_mask; without update_mask_prefill no runtime sends it", pt.label()).Compare(false, true).
				On(anemllPython, anemllSwift).Fix("write update_mask_prefill: true")
		case !dynamic && !mask:
			p.Report(p.posOf("prefill_dynamic_slice"), "neither prefill_dynamic_slice nor update_mask_prefill is given: chat.py then feeds the prompt token by token").As(Note).Compare("absent", true)
		}
		return
	}
	p.Skip("no readable prefill function")
}

// checkFinalNorm finds the final norm in chunks other than the last
// (ANEMLL 0.3.4 put it into each).
func checkFinalNorm(p *Pass) {
	chunks := p.of(manifest.Chunk)
	if len(chunks) < 2 || p.pkg.Kind != manifest.ANEMLL {
		p.Skip("fewer than two chunks")
		return
	}
	r := p.layers()
	for i := range r.Chunks {
		c := &r.Chunks[i]
		f := c.view.fn("infer")
		if c.First < 0 || f == nil || c.Chunk == c.Of || c.view.Role != manifest.Chunk {
			continue
		}
		n := c.view.program(f.Name).histogram()["layer_norm"]
		if layers := c.Last - c.First + 1; n > 0 && n%layers == 1 && layers > 1 {
			p.Report(diag.In(c.view.model.ProgramFile), "%s has %d norms for %d layers: one more than its layers need, as packages of ANEMLL 0.3.4 that apply the final norm in every chunk", c.Part, n, layers).
				Compare(n, n-1).Fix("convert again with 0.3.5")
		}
	}
}
