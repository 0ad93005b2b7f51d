package inspect

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/coreml/mil"
	"github.com/anepkg/anepkg/coreml/tensor"
	"github.com/anepkg/anepkg/manifest"
)

// eachOp calls fn for the ops of every part in use, part by part.
func (p *Pass) eachOp(fn func(pt *partView, ix *program, op *mil.Op)) {
	for _, pt := range p.usable() {
		for _, f := range pt.model.Program.Functions {
			ix := pt.program(f.Name)
			for _, op := range ix.ops {
				fn(pt, ix, op)
			}
		}
	}
}

// opSite is the first op of a kind in a part and how many there are.
type opSite struct {
	pt    *partView
	fn    string
	op    *mil.Op
	count int
	note  string
}

// sites finds ops by a predicate; the text that it returns belongs to the
// first op of a part.
func (p *Pass) sites(match func(pt *partView, ix *program, op *mil.Op) (string, bool)) []*opSite {
	var out []*opSite
	p.eachOp(func(pt *partView, ix *program, op *mil.Op) {
		note, ok := match(pt, ix, op)
		if !ok {
			return
		}
		if n := len(out); n > 0 && out[n-1].pt == pt {
			out[n-1].count++
			return
		}
		out = append(out, &opSite{pt, ix.fn.Name, op, 1, note})
	})
	return out
}

func (s *opSite) pos() diag.Pos { return s.pt.position(s.op.Pos) }

// checkOffEngine names ops that fall back to the CPU inside a decoder.
func checkOffEngine(p *Pass) {
	off := []string{"gather_nd", "scatter", "scatter_nd", "scatter_along_axis", "one_hot", "non_zero", "while_loop", "cond", "cumsum", "topk", "argsort", "non_maximum_suppression"}
	for _, pt := range p.usable() {
		if !pt.decoder() && pt.Role != manifest.PrefillOf {
			continue
		}
		count := map[string]int{}
		var first *mil.Op
		for _, f := range pt.model.Program.Functions {
			for _, op := range pt.program(f.Name).ops {
				if slices.Contains(off, op.Type) {
					if count[op.Type]++; first == nil {
						first = op
					}
				}
			}
		}
		if first != nil {
			p.Report(pt.position(first.Pos), "%s has ops that run on the CPU, with a copy to it and back: %s", pt.label(), counts(count)).Compare(counts(count), "ops of the Neural Engine")
		}
	}
}

func counts(m map[string]int) string {
	var out []string
	for _, k := range sorted(keys(m)) {
		out = append(out, fmt.Sprintf("%d %s", m[k], k))
	}
	return strings.Join(out, ", ")
}

// checkDynamicGather: gather_nd with computed indices gives zeros there.
func checkDynamicGather(p *Pass) {
	for _, s := range p.sites(func(_ *partView, ix *program, op *mil.Op) (string, bool) {
		return "", op.Type == "gather_nd" && ix.operand(op, "indices") == nil
	}) {
		p.Report(s.pos(), "function %s of %s: gather_nd with computed indices gives zeros on the Neural Engine (%s)", s.fn, s.pt.label(), plural(s.count, "op")).On("ane").
			Compare("computed indices", "constant indices").Fix("use gather or gather_along_axis")
	}
}

const maxTopK = 65536

// checkTopK: indices wrap beyond 65536 elements.
func checkTopK(p *Pass) {
	for _, s := range p.sites(func(_ *partView, ix *program, op *mil.Op) (string, bool) {
		t, ok := ix.typeOf(op, "x")
		if op.Type != "topk" || !ok || len(t.Shape) == 0 {
			return "", false
		}
		axis, known := ix.operand(op, "axis").Int()
		if !known {
			axis = -1
		}
		if axis < 0 {
			axis += len(t.Shape)
		}
		if axis < 0 || axis >= len(t.Shape) {
			return "", false
		}
		return fmt.Sprint(t.Shape[axis]), t.Shape[axis] > maxTopK
	}) {
		p.Report(s.pos(), "function %s of %s: topk over %s elements; its indices wrap at %d on the Neural Engine", s.fn, s.pt.label(), s.note, maxTopK).On("ane").
			Compare(s.note, maxTopK).Fix("use reduce_argmax, or topk over parts")
	}
}

// checkActivationQuant: quantize and dequantize at run time do not compile.
func checkActivationQuant(p *Pass) {
	for _, s := range p.sites(func(_ *partView, _ *program, op *mil.Op) (string, bool) {
		return "", op.Type == "quantize" || op.Type == "dequantize"
	}) {
		p.Report(s.pos(), "%s quantizes activations at run time (%s, function %s): the Neural Engine's compiler fails on iPhones", s.pt.label(), plural(s.count, "op"), s.fn).
			On(iPhones...).Compare(s.op.Type, "weights quantized only").Fix("convert without activation quantization")
	}
}

// checkMixedCompression: palettes in two dimensions, or with scales or
// integer entries on top.
func checkMixedCompression(p *Pass) {
	for _, s := range p.sites(func(_ *partView, ix *program, op *mil.Op) (string, bool) {
		switch op.Type {
		case "constexpr_blockwise_shift_scale":
			for _, name := range []string{"data"} {
				if d := ix.defs[ref(op, name)]; d != nil && strings.HasPrefix(d.Type, "constexpr_lut") {
					return "a palette followed by scales", true
				}
			}
		case "constexpr_lut_to_dense":
			if d := ix.defs[ref(op, "lut")]; d != nil && strings.HasPrefix(d.Type, "constexpr_") {
				return "a palette with quantized entries", true
			}
			t, ok := ix.typeOf(op, "lut")
			if !ok || len(t.Shape) < 4 {
				return "", false
			}
			if t.DType.IsInt() {
				return "a palette of integers", !ix.scaled(op)
			}
			return "tables along two axes", longAxes(t.Shape[:len(t.Shape)-2]) > 1
		}
		return "", false
	}) {
		p.Report(s.pos(), "%s of %s %s stored as %s: such models fail to load (error -14), or leave the Neural Engine", plural(s.count, "weight"), s.pt.label(), isAre(s.count), s.note).On("ane").
			Compare(s.note, "palettes grouped along one axis").Fix("palettize with groups along the output channels only")
	}
}

// scaled reports whether the result of a compression op is the data of
// constexpr_blockwise_shift_scale.
func (p *program) scaled(op *mil.Op) bool {
	return slices.ContainsFunc(p.ops, func(user *mil.Op) bool {
		return user.Type == "constexpr_blockwise_shift_scale" && len(op.Outputs) > 0 && ref(user, "data") == op.Outputs[0].Name
	})
}

// checkSparsePalette: sparse palettes cost room and precision.
func checkSparsePalette(p *Pass) {
	for _, s := range p.sites(func(_ *partView, _ *program, op *mil.Op) (string, bool) {
		return "", op.Type == "constexpr_lut_to_sparse" || op.Type == "constexpr_sparse_blockwise_shift_scale"
	}) {
		p.Report(s.pos(), "%s of %s %s sparse and quantized at once: measured twice the size of the palette alone, cosine 0.45", plural(s.count, "weight"), s.pt.label(), isAre(s.count)).Compare(s.op.Type, "one compression")
	}
}

// checkNarrowPalette: three bits and fewer.
func checkNarrowPalette(p *Pass) {
	for _, pt := range p.usable() {
		n, bits := 0, 8
		var first *Weight
		for _, w := range pt.weights {
			if strings.HasPrefix(w.Kind, "lut") && w.Bits <= 3 && w.Bits > 0 && w.Elements > 1<<10 {
				if n++; first == nil {
					first = w
				}
				bits = min(bits, w.Bits)
			}
		}
		if n > 0 {
			p.Report(pt.position(first.Op.Pos), "%d-bit palettes in %s of %s: post-training palettes of 3 bits and fewer are reported to give unusable text", bits, plural(n, "weight"), pt.label()).Compare(bits, "4 or 6").
				Fix("compare the package with its source (anepkg compare), or use 4 or 6 bits")
		}
	}
}

// checkGroupSpeed: one table for each output channel halves the speed.
func checkGroupSpeed(p *Pass) {
	for _, pt := range p.usable() {
		n := 0
		var first *Weight
		for _, w := range pt.weights {
			if w.Kind == "lut" && w.GroupSize == 1 && len(w.Type.Shape) > 0 && w.Type.Shape[0] > 1 {
				if n++; first == nil {
					first = w
				}
			}
		}
		if n > 0 {
			p.Report(pt.position(first.Op.Pos), "a table for each output channel in %s of %s: most accurate, and half as fast in decoding as groups of 8 (41 against 92 tokens/s measured)", plural(n, "weight"), pt.label()).Compare(1, 8)
		}
	}
}

// largeTable is the dense size from which a palettized look-up table costs
// noticeable memory.
const largeTable = 64 << 20

// checkTableMemory: a palettized look-up table is expanded at load time.
func checkTableMemory(p *Pass) {
	for _, pt := range p.usable() {
		lookUps := map[string]map[string]int{}
		for name, ix := range pt.programs {
			lookUps[name] = tables(ix)
		}
		for _, w := range pt.weights {
			dense := w.Type.DType.ByteSize(w.Elements)
			if lookUps[w.Functions[0]][w.Name] > 0 && w.Kind != "dense" && dense >= largeTable {
				p.Report(pt.position(w.Op.Pos), "the look-up table %s of %s is compressed (%s): Core ML expands it to %s when the model loads, a plain fp16 table stays mapped", w.Name, pt.label(), w.Kind, Bytes(dense)).
					Compare(w.Kind, "dense").Fix("leave the embedding table in fp16")
			}
		}
	}
}

// checkSmallEpsilon: an epsilon that fp16 holds only as a subnormal.
func checkSmallEpsilon(p *Pass) {
	const normal = 0x1p-14
	for _, s := range p.sites(func(_ *partView, ix *program, op *mil.Op) (string, bool) {
		if op.Type != "rsqrt" && op.Type != "sqrt" && op.Type != "real_div" && op.Type != "inverse" && op.Type != "log" {
			return "", false
		}
		vanishes := func(v *mil.Value) (string, bool) {
			f, ok := v.Float()
			return fmt.Sprintf("%.3g", f), ok && v.Type.DType == tensor.FP16 && f < normal && f > 0
		}
		if note, ok := vanishes(ix.operand(op, "epsilon")); ok {
			return note, true
		}
		// rsqrt(mean(x^2) + epsilon), the plain form of RMSNorm
		if sum := ix.defs[ref(op, "x")]; sum != nil && sum.Type == "add" {
			for _, side := range []string{"x", "y"} {
				if note, ok := vanishes(ix.operand(sum, side)); ok {
					return note, true
				}
			}
		}
		return "", false
	}) {
		p.Report(s.pos(), "function %s of %s: the epsilon %s of %s is an fp16 subnormal, which the Neural Engine takes for zero", s.fn, s.pt.label(), s.note, s.op.Type).On("ane").
			Compare(s.note, "at least 6.1e-05").Fix("use layer_norm over [x, -x], or a larger epsilon")
	}
}

// checkGelu: the exact form is reported to fail.
func checkGelu(p *Pass) {
	for _, s := range p.sites(func(_ *partView, ix *program, op *mil.Op) (string, bool) {
		if op.Type != "gelu" {
			return "", false
		}
		mode, ok := ix.operand(op, "mode").Str()
		return mode, !ok || mode == "EXACT"
	}) {
		p.Report(s.pos(), "exact gelu in %s of %s; the tanh form is the one reported to run on the Neural Engine (second-hand)", plural(s.count, "op"), s.pt.label()).Compare("EXACT", "TANH_APPROXIMATION")
	}
}

// checkSingleTypes: fp32 arithmetic runs on the CPU.
func checkSingleTypes(p *Pass) {
	for _, s := range p.sites(func(pt *partView, _ *program, op *mil.Op) (string, bool) {
		if !pt.decoder() && pt.Role != manifest.LMHead || op.IsConst() || op.Type == "cast" || len(op.Outputs) == 0 {
			return "", false
		}
		return op.Type, op.Outputs[0].Type.DType == tensor.FP32
	}) {
		p.Report(s.pos(), "%s of %s compute in fp32 and run on the CPU (first: %s in function %s)", plural(s.count, "op"), s.pt.label(), s.note, s.fn).Compare("fp32", "fp16").
			Fix("convert with compute_precision FLOAT16")
	}
}

// checkScores: attention scores beyond the engine's fast memory.
func checkScores(p *Pass) {
	const limit = 32 << 20
	for _, s := range p.sites(func(_ *partView, _ *program, op *mil.Op) (string, bool) {
		if op.Type != "softmax" || len(op.Outputs) != 1 {
			return "", false
		}
		n, err := tensor.NumElements(op.Outputs[0].Type.Shape)
		return Bytes(2 * n), err == nil && 2*n > limit
	}) {
		p.Report(s.pos(), "function %s of %s: attention scores of %s exceed the 32 MiB that stay on the chip: about 30 %% slower", s.fn, s.pt.label(), s.note).Compare(s.note, "32 MiB").
			Fix("use smaller prefill batches or a shorter context")
	}
}

// checkDepthwise: large depthwise convolutions fall back to the CPU.
func checkDepthwise(p *Pass) {
	for _, s := range p.sites(func(_ *partView, ix *program, op *mil.Op) (string, bool) {
		groups, ok := ix.operand(op, "groups").Int()
		t, ok2 := ix.typeOf(op, "x")
		return fmt.Sprint(groups), op.Type == "conv" && ok && ok2 && len(t.Shape) > 1 && groups == t.Shape[1] && groups >= 1024
	}) {
		p.Report(s.pos(), "function %s of %s: a depthwise convolution of %s channels runs on the CPU, about 5 ms each (%s)", s.fn, s.pt.label(), s.note, plural(s.count, "op")).Compare(s.note, "fewer than 1024").
			Fix("write it as a sum of shifted products")
	}
}

// checkScaledAttention: the fused op has a fixed scale.
func checkScaledAttention(p *Pass) {
	for _, s := range p.sites(func(_ *partView, _ *program, op *mil.Op) (string, bool) {
		return "", op.Type == "scaled_dot_product_attention" && strings.HasPrefix(p.pkg.Architecture, "gemma4")
	}) {
		p.Report(s.pos(), "%s of %s: scaled_dot_product_attention always divides by sqrt(d), and Gemma 4's attention has scale 1", plural(s.count, "op"), s.pt.label()).Compare("1/sqrt(d)", 1).
			Fix("multiply the query by sqrt(d) first, or write the attention out")
	}
}

// checkManyOps: very long functions.
func checkManyOps(p *Pass) {
	const limit = 1500
	for _, pt := range p.usable() {
		for _, f := range pt.model.Functions {
			n := 0
			if ix := pt.program(f.Name); ix != nil {
				for _, c := range ix.histogram() {
					n += c
				}
			}
			if n > limit {
				p.Report(fact(pt, f, "", 1).pos, "function %s of %s has %d ops; chunks of up to about 1000 are known to run on the Neural Engine as a whole", f.Name, pt.label(), n).Compare(n, limit).Fix("convert into more chunks")
			}
		}
	}
}

// checkCompiles: each function is compiled on its own.
func checkCompiles(p *Pass) {
	const limit = 100
	n := 0
	for _, pt := range p.usable() {
		n += len(pt.model.Functions)
	}
	if n > limit {
		p.Report(diag.Pos{}, "the package has %d functions; a process is reported to manage about 100 compilations for the Neural Engine", n).Compare(n, limit)
	}
}

// checkHeadArgmax: ties of fp16 logits are broken differently by chips.
func checkHeadArgmax(p *Pass) {
	for _, s := range p.sites(func(_ *partView, ix *program, op *mil.Op) (string, bool) {
		t, ok := ix.typeOf(op, "x")
		return "", op.Type == "reduce_argmax" && ok && t.DType == tensor.FP16
	}) {
		p.Report(s.pos(), "%s picks the token from fp16 logits inside the program: equal logits are broken differently by chips, and sampling is not possible", s.pt.label()).Compare("argmax of fp16", "logits")
	}
}

// checkCast: constants that overflow when cast to fp16.
func checkCast(p *Pass) {
	for _, s := range p.sites(func(_ *partView, ix *program, op *mil.Op) (string, bool) {
		if op.Type == "const" {
			f, ok := op.Attr("val").Float()
			return fmt.Sprintf("%g", f), ok && op.Attr("val").Type.DType == tensor.FP32 && f < -65504 && !math.IsInf(f, 0) && ix.castToHalf(op.Outputs[0].Name)
		}
		return "", false
	}) {
		p.Report(s.pos(), "function %s of %s: the constant %s becomes -inf in fp16; a row of a mask that is all -inf gives NaN", s.fn, s.pt.label(), s.note).Compare(s.note, -65504).
			Fix("use -65504 or -1e4 in masks")
	}
}

// castToHalf reports whether a value is cast to fp16.
func (p *program) castToHalf(name string) bool {
	for _, op := range p.ops {
		if op.Type == "cast" && ref(op, "x") == name {
			if d, _ := p.operand(op, "dtype").Str(); d == "fp16" {
				return true
			}
		}
	}
	return false
}

// checkRowWidth: last axes that are padded to 64 bytes.
func checkRowWidth(p *Pass) {
	for _, pt := range p.usable() {
		var odd []string
		var first *coreml.Function
		for _, f := range pt.model.Functions {
			for _, s := range f.States {
				n := len(s.Shape)
				if n == 0 || s.Shape[n-1] <= 0 || s.Shape[n-1]*s.DType.Bits()/8%64 == 0 || slices.Contains(odd, s.Name) {
					continue
				}
				if first == nil {
					first = f
				}
				odd = append(odd, s.Name)
			}
		}
		if first != nil {
			p.Report(pt.position(statePos(first, odd[0])), "states %s of %s have rows that are no multiple of 64 bytes: the Neural Engine pads each row (coremltools#2631, #2553)", strings.Join(odd, ", "), pt.label()).
				Compare(odd, "last axis a multiple of 32")
		}
	}
}
