package runner

import (
	"encoding/binary"
	"sort"
	"strconv"
	"strings"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/coreml/mil"
	"github.com/anepkg/anepkg/coreml/tensor"
	"github.com/anepkg/anepkg/manifest"
)

// head reads scores from the outputs of a function: logits in one or several
// parts, the best token of each part, or the best token of all.
type head struct {
	logits []string // outputs in order of their number
	sizes  []int    // width of each part; of argmax heads too
	argmax bool     // argmax_idx and argmax_val
	token  string   // output with the best token of all, "" if none
	vocab  int
	// What read gave last, for the next one.
	scores []float32
	values []float32
}

// newHead looks at the outputs of f. claims are the package's parameters,
// used only where the program does not tell.
func newHead(f *coreml.Function, claims manifest.Params, path string) (*head, error) {
	h := &head{}
	if f.Output("argmax_idx") != nil && f.Output("argmax_val") != nil {
		err := h.readArgmax(f, claims, path)
		return h, err
	}
	for _, name := range []string{"token_id", "next_token"} {
		if f.Output(name) != nil {
			h.token = name
			h.vocab, _ = claims.Int("vocab_size")
			h.vocab = max(0, h.vocab)
			return h, nil
		}
	}
	h.logits = logitOutputs(f)
	if len(h.logits) == 0 {
		return nil, diag.Errorf(diag.In(path), diag.Unsupported,
			"function %s gives %s, want logits, logits1..logitsN, argmax_idx and argmax_val, token_id, or next_token", f.Name, featureNames(f.Outputs))
	}
	for _, name := range h.logits {
		shape := f.Output(name).Shape
		if len(shape) == 0 || shape[len(shape)-1] < 0 {
			h.sizes, h.vocab = nil, 0
			return h, nil
		}
		h.sizes = append(h.sizes, shape[len(shape)-1])
		h.vocab += shape[len(shape)-1]
	}
	return h, nil
}

// logitOutputs returns the names logits1..logitsN in the order of their
// numbers (logits10 stands after logits9), or a single logits output.
func logitOutputs(f *coreml.Function) []string {
	type numbered struct {
		name string
		n    int
	}
	var split []numbered
	for _, o := range f.Outputs {
		if rest, ok := strings.CutPrefix(o.Name, "logits"); ok && rest != "" {
			if n, err := strconv.Atoi(strings.TrimPrefix(rest, "_split_")); err == nil {
				split = append(split, numbered{o.Name, n})
			}
		}
	}
	sort.SliceStable(split, func(i, j int) bool { return split[i].n < split[j].n })
	var out []string
	for _, s := range split {
		out = append(out, s.name)
	}
	if out != nil {
		return out
	}
	for _, name := range []string{"logits", "output_logits"} {
		if f.Output(name) != nil {
			return []string{name}
		}
	}
	return nil
}

// readArgmax finds the width of each part. The program tells it: the inputs
// of the reduce_argmax ops that argmax_idx is made of. Where it does not,
// lm_head_chunk_sizes and then vocab_size are used (the first parts one
// wider). A guess from observed indices, as some runtimes make it, gives
// wrong ids.
func (h *head) readArgmax(f *coreml.Function, claims manifest.Params, path string) error {
	h.argmax = true
	n := tensor.Count(f.Output("argmax_idx").Shape)
	if f.Program != nil {
		h.sizes = argmaxSizes(f.Program, "argmax_idx")
	}
	if n <= 0 {
		n = len(h.sizes)
	}
	if len(h.sizes) != n {
		h.sizes, _ = claims.Get("lm_head_chunk_sizes").Ints()
	}
	if vocab, ok := claims.Int("vocab_size"); len(h.sizes) != n && ok && n > 0 && vocab > 0 {
		h.sizes = nil
		for i := range n {
			size := vocab / n
			if i < vocab%n {
				size++
			}
			h.sizes = append(h.sizes, size)
		}
	}
	if n <= 0 || len(h.sizes) != n {
		return diag.Errorf(diag.In(path), diag.Unsupported,
			"argmax head of %d parts: neither the program nor lm_head_chunk_sizes nor vocab_size tells their widths", n).
			WithHint("add vocab_size to meta.yaml")
	}
	for i, s := range h.sizes {
		if s <= 0 || s > 1<<28 {
			return diag.Errorf(diag.In(path), diag.Malformed, "part %d of the argmax head has width %d", i+1, s)
		}
		h.vocab += s
	}
	return nil
}

// argmaxSizes walks back from an output to the reduce_argmax ops it is made
// of, in order of concatenation, and returns the size of the reduced axis of
// each. It returns nil when a size is not known.
func argmaxSizes(f *mil.Function, output string) []int {
	ops := map[string]*mil.Op{}
	types := map[string]mil.Type{}
	for _, op := range f.Body.Ops {
		for _, o := range op.Outputs {
			ops[o.Name], types[o.Name] = op, o.Type
		}
	}
	var sizes []int
	seen := map[string]bool{}
	ok := true
	var visit func(name string)
	visit = func(name string) {
		op := ops[name]
		if op == nil || seen[name] || op.IsConst() {
			return
		}
		seen[name] = true
		if op.Type == "reduce_argmax" {
			x := op.Operand("x")
			if len(x) == 1 && len(types[x[0].Ref].Shape) > 0 {
				shape := types[x[0].Ref].Shape
				if last := shape[len(shape)-1]; last > 0 {
					sizes = append(sizes, last)
					return
				}
			}
			ok = false
			return
		}
		for _, a := range op.Args {
			for _, b := range a.Bindings {
				visit(b.Ref)
			}
		}
	}
	visit(output)
	if !ok {
		return nil
	}
	return sizes
}

func (h *head) info() HeadInfo {
	return HeadInfo{Logits: len(h.logits) > 0, Vocab: h.vocab, Parts: h.sizes}
}

// read turns the outputs of u into scores, which are good until the next
// call. A NaN is an error of class
// diag.RunFailed that names the part.
func (h *head) read(u *unit, out map[string]*tensor.Tensor) (Scores, error) {
	switch {
	case h.argmax:
		return h.readParts(u, out)
	case h.token != "":
		return h.readToken(u, out)
	}
	logits := h.scores[:0]
	for i, name := range h.logits {
		t := out[name]
		if t == nil {
			return Scores{}, diag.Errorf(u.pos(), diag.Mismatch, "function %s gave no output %s", u.fn.Name, name)
		}
		start := len(logits)
		logits = appendFloats(logits, lastRow(t))
		part := logits[start:]
		if want := h.width(i); len(part) == 0 || want > 0 && len(part) != want {
			return Scores{}, diag.Errorf(u.pos(), diag.Mismatch, "function %s: %s has %d values, want %d", u.fn.Name, name, len(part), want)
		}
		for at, v := range part {
			if v != v {
				return Scores{}, diag.Errorf(u.pos(), diag.RunFailed, "function %s: %s holds NaN at %d", u.fn.Name, name, at)
			}
		}
	}
	h.scores = logits
	return Scores{Logits: logits, Token: -1}, nil
}

// appendFloats appends the elements of t; fp16, what heads give, is quick.
func appendFloats(dst []float32, t *tensor.Tensor) []float32 {
	if t.DType != tensor.FP16 {
		return append(dst, t.Float32s()...)
	}
	for i := 0; i+1 < len(t.Data); i += 2 {
		dst = append(dst, tensor.F16ToF32(binary.LittleEndian.Uint16(t.Data[i:])))
	}
	return dst
}

// width of part i, 0 when the program does not tell.
func (h *head) width(i int) int {
	if i < len(h.sizes) {
		return h.sizes[i]
	}
	return 0
}

// readParts takes the best of the parts' best tokens. argmax_idx counts
// within its part; the lowest id of equals wins.
func (h *head) readParts(u *unit, out map[string]*tensor.Tensor) (Scores, error) {
	idx, val := out["argmax_idx"], out["argmax_val"]
	if idx == nil || val == nil || idx.Len() != len(h.sizes) || val.Len() != len(h.sizes) {
		return Scores{}, diag.Errorf(u.pos(), diag.Mismatch, "function %s: argmax_idx and argmax_val must have %d elements", u.fn.Name, len(h.sizes))
	}
	if at := firstNaN(val); at >= 0 {
		return Scores{}, diag.Errorf(u.pos(), diag.RunFailed, "function %s: argmax_val of part %d is NaN", u.fn.Name, at+1)
	}
	best := Scores{Token: -1, PartValues: h.values[:0]}
	offset := 0
	for i, size := range h.sizes {
		local, v := idx.Int(i), float32(val.Float64(i))
		if local < 0 || local >= size {
			return Scores{}, diag.Errorf(u.pos(), diag.RunFailed, "function %s: argmax_idx of part %d is %d, want 0 to %d", u.fn.Name, i+1, local, size-1)
		}
		if best.Token < 0 || v > best.Value {
			best.Token, best.Value = offset+local, v
		}
		best.PartValues = append(best.PartValues, v)
		offset += size
	}
	h.values = best.PartValues
	return best, nil
}

func (h *head) readToken(u *unit, out map[string]*tensor.Tensor) (Scores, error) {
	t := out[h.token]
	if t == nil || t.Len() < 1 {
		return Scores{}, diag.Errorf(u.pos(), diag.Mismatch, "function %s gave no %s", u.fn.Name, h.token)
	}
	s := Scores{Token: t.Int(t.Len() - 1)}
	if v := out["token_logit"]; v != nil && v.Len() > 0 {
		if firstNaN(v) >= 0 {
			return Scores{}, diag.Errorf(u.pos(), diag.RunFailed, "function %s: token_logit is NaN", u.fn.Name)
		}
		s.Value = float32(v.Float64(v.Len() - 1))
	}
	if s.Token < 0 || h.vocab > 0 && s.Token >= h.vocab {
		return Scores{}, diag.Errorf(u.pos(), diag.RunFailed, "function %s: %s is %d, want 0 to %d", u.fn.Name, h.token, s.Token, h.vocab-1)
	}
	return s, nil
}

func featureNames(fs []coreml.Feature) string {
	names := make([]string, len(fs))
	for i := range fs {
		names[i] = fs[i].Name
	}
	if len(names) == 0 {
		return "nothing"
	}
	return strings.Join(names, ", ")
}
