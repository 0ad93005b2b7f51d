package runner

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/coreml/tensor"
	"github.com/anepkg/anepkg/manifest"
)

// The fake backend runs fake packages: their programs only declare inputs,
// outputs and states. What the "model" computes is a hash of the tokens that
// it was shown, so that any wrong position, mask, order, repetition or state
// changes the next token.

const (
	fakeCtx   = 16
	fakeBatch = 4
	fakeVocab = 23
	fakeWin   = 8
)

// fakeKind is how the fake's state behaves.
type fakeKind int

const (
	fakePlain     fakeKind = iota // cells by position
	fakeRecurrent                 // a running hash: order and count of calls matter
)

// hashTokens is the reference: what the fake says after these tokens.
func hashTokens(ids []int) int {
	h := 7
	for i, id := range ids {
		h = (h*31 + id*(i+1) + 5) % 100003
	}
	return h
}

func fakeNext(ids []int) int { return hashTokens(ids) % fakeVocab }

// fakeGreedy continues a prompt by the reference.
func fakeGreedy(prompt []int, n int) []int {
	ids := slices.Clone(prompt)
	for range n {
		ids = append(ids, fakeNext(ids))
	}
	return ids[len(prompt):]
}

// fakeBackend implements coreml.Backend.
type fakeBackend struct {
	kind    fakeKind
	lastOut bool // prefill gives the last token's hidden state
	nanAt   int  // position whose chunk output is NaN; 0 = never
	calls   []string
	loads   []string
}

func (b *fakeBackend) Name() string { return "fake" }

func (b *fakeBackend) Load(_ context.Context, m *coreml.Model, fn string, _ coreml.LoadOptions) (coreml.Session, error) {
	f := m.Function(fn)
	if f == nil {
		return nil, fmt.Errorf("no function %q", fn)
	}
	b.loads = append(b.loads, m.Name+"/"+f.Name)
	return &fakeSession{b: b, f: f, model: m.Name}, nil
}

func (b *fakeBackend) NewState(fs []coreml.Feature) (coreml.State, error) {
	s := &fakeState{}
	for _, f := range fs {
		s.names = append(s.names, f.Name)
	}
	slices.Sort(s.names)
	err := s.Reset()
	return s, err
}

// fakeState holds the token of each position, or a running hash.
type fakeState struct {
	names []string
	cells [2][fakeCtx]int // per chunk; token + 1, 0 = empty
	run   [2]int
	count [2]int
}

func (s *fakeState) Names() []string { return s.names }
func (s *fakeState) Read(string) (*tensor.Tensor, error) {
	vals := make([]int, 0, 2*fakeCtx+4)
	for c := range s.cells {
		vals = append(vals, s.cells[c][:]...)
		vals = append(vals, s.run[c], s.count[c])
	}
	return tensor.FromInts(tensor.Int32, []int{len(vals)}, vals)
}
func (s *fakeState) Write(_ string, t *tensor.Tensor) error {
	for c := range s.cells {
		at := c * (fakeCtx + 2)
		for i := range s.cells[c] {
			s.cells[c][i] = t.Int(at + i)
		}
		s.run[c], s.count[c] = t.Int(at+fakeCtx), t.Int(at+fakeCtx+1)
	}
	return nil
}
func (s *fakeState) Snapshot() (coreml.Snapshot, error) {
	t, err := s.Read("")
	return coreml.Snapshot{"all": t}, err
}
func (s *fakeState) Restore(snap coreml.Snapshot) error { return s.Write("", snap["all"]) }
func (s *fakeState) Reset() error {
	s.cells, s.run, s.count = [2][fakeCtx]int{}, [2]int{7, 7}, [2]int{}
	return nil
}
func (s *fakeState) Close() error { return nil }

type fakeSession struct {
	b     *fakeBackend
	f     *coreml.Function
	model string
}

func (s *fakeSession) Function() *coreml.Function { return s.f }
func (s *fakeSession) Close() error               { return nil }

func (s *fakeSession) Predict(_ context.Context, in map[string]*tensor.Tensor, st coreml.State) (map[string]*tensor.Tensor, error) {
	for _, f := range s.f.Inputs {
		t := in[f.Name]
		if t == nil || t.DType != f.DType || !tensor.Compatible(f.Shape, t.Shape) {
			return nil, fmt.Errorf("input %s is missing or wrong: want %s %s", f.Name, f.DType, tensor.ShapeString(f.Shape))
		}
	}
	if len(in) != len(s.f.Inputs) {
		return nil, fmt.Errorf("got inputs %v", slices.Sorted(maps.Keys(in)))
	}
	switch {
	case strings.Contains(s.model, "embed"):
		return s.embed(in[inIDs])
	case strings.Contains(s.model, "lm_head"):
		return scoresOf(s.f, int(in[inHidden].Float64(1)))
	}
	return s.chunk(in, st.(*fakeState))
}

// embed puts the id in element 0 of each row.
func (s *fakeSession) embed(ids *tensor.Tensor) (map[string]*tensor.Tensor, error) {
	n := ids.Len()
	vals := make([]float32, 4*n)
	for i := range n {
		vals[4*i] = float32(ids.Int(i))
	}
	s.b.calls = append(s.b.calls, fmt.Sprintf("embed x%d", n))
	h, err := tensor.FromFloat32(tensor.FP16, []int{1, n, 4}, vals)
	return map[string]*tensor.Tensor{inHidden: h}, err
}

// chunk stores the tokens and gives, in element 1, the hash of what the mask
// shows. Only a row's own mask counts.
func (s *fakeSession) chunk(in map[string]*tensor.Tensor, st *fakeState) (map[string]*tensor.Tensor, error) {
	pos, positions, mask := in[inCurrent].Int(0), in[inPositions], in[inMask]
	n := positions.Len()
	c := 0
	if strings.Contains(s.model, "chunk_02") {
		c = 1
	}
	if c == 0 {
		s.b.calls = append(s.b.calls, fmt.Sprintf("%s@%d x%d", s.f.Name, pos, n))
	}
	var ids []int
	if h := in[inHidden]; h != nil {
		for i := range n {
			ids = append(ids, int(h.Float64(4*i)))
		}
	} else {
		for i := range n {
			ids = append(ids, in[inIDs].Int(i))
		}
	}
	vals := make([]float32, 4*n)
	for i, id := range ids {
		p := positions.Int(i)
		if p != pos+i {
			return nil, fmt.Errorf("position_ids[%d] is %d, current_pos %d", i, p, pos)
		}
		st.cells[c][p] = id + 1
		st.count[c]++
		st.run[c] = (st.run[c]*31 + id*st.count[c] + 5) % 100003
		vals[4*i], vals[4*i+1] = float32(id), float32(s.see(st, c, mask, i)%fakeVocab)
		if s.b.nanAt > 0 && p == s.b.nanAt && c == 1 {
			vals[4*i+1] = float32(math.NaN())
		}
	}
	if in[inIDs] != nil {
		return scoresOf(s.f, int(vals[4*(n-1)+1]))
	}
	rows := []int{1, n, 4}
	if out := s.f.Output(outHidden); n > 1 && slices.Equal(out.Shape, []int{1, 1, 4}) {
		rows = []int{1, 1, 4}
		if s.b.lastOut {
			vals = vals[4*(n-1):]
		} else {
			vals = []float32{vals[0], 1, 0, 0} // as stock packages: useless
		}
	}
	h, err := tensor.FromFloat32(tensor.FP16, rows, vals)
	return map[string]*tensor.Tensor{outHidden: h}, err
}

// see hashes the tokens that row i of the mask shows.
func (s *fakeSession) see(st *fakeState, c int, mask *tensor.Tensor, i int) int {
	if s.b.kind == fakeRecurrent {
		return st.run[c]
	}
	var seen []int
	for col := range mask.Shape[3] {
		if mask.Float64(i*mask.Shape[3]+col) == 0 {
			seen = append(seen, st.cells[c][col]-1)
		}
	}
	return hashTokens(seen)
}

// scoresOf makes the head's outputs: the token's logit is the highest.
func scoresOf(f *coreml.Function, token int) (map[string]*tensor.Tensor, error) {
	out := map[string]*tensor.Tensor{}
	if f.Output("argmax_idx") != nil {
		idx, val := []int{1, 2, 3}, []float32{1, 1, 1}
		part, local := token/8, token%8
		idx[part], val[part] = local, 9
		out["argmax_idx"], _ = tensor.FromInts(tensor.Int32, []int{3}, idx)
		out["argmax_val"], _ = tensor.FromFloat32(tensor.FP16, []int{3}, val)
		return out, nil
	}
	at := 0
	for _, name := range logitOutputs(f) {
		n := lastDim(f.Output(name))
		vals := make([]float32, n)
		for i := range vals {
			if vals[i] = float32(at+i) / 64; at+i == token {
				vals[i] = 9
			}
			if token < 0 {
				vals[i] = float32(math.NaN())
			}
		}
		out[name], _ = tensor.FromFloat32(tensor.FP16, []int{1, 1, n}, vals)
		at += n
	}
	return out, nil
}

// fakeFn declares a function. Its only op makes the outputs' types known.
func fakeFn(name, params string, outs ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "    func %s<ios18>(%s) {\n", name, params)
	var names []string
	for _, o := range outs {
		typ, id, _ := strings.Cut(o, " = ")
		fmt.Fprintf(&b, "            %s %s = fake()[name = string(\"%s\")];\n", typ, id, id)
		names = append(names, id)
	}
	fmt.Fprintf(&b, "        } -> (%s);\n", strings.Join(names, ", "))
	return b.String()
}

func fakeProgram(fns ...string) *fstest.MapFile {
	return &fstest.MapFile{Data: []byte("program(1.3)\n[buildInfo = dict<string, string>({{\"coremlc-version\", \"0\"}})]\n{\n" + strings.Join(fns, "") + "}")}
}

// fakeDecoder declares a decoder function for n tokens.
func fakeDecoder(name string, n int, states string, out int) string {
	return fakeDecoderFor(fakeCtx, name, n, states, out)
}

// fakeDecoderFor declares one whose mask has ctx columns.
func fakeDecoderFor(ctx int, name string, n int, states string, out int) string {
	return fakeFn(name, fmt.Sprintf("tensor<fp16, [1, 1, %d, %d]> causal_mask, tensor<int32, [1]> current_pos, tensor<fp16, [1, %d, 4]> hidden_states, %s, tensor<int32, [%d]> position_ids",
		n, ctx, n, states, n), fmt.Sprintf("tensor<fp16, [1, %d, 4]> = output_hidden_states", out))
}

const (
	fakeKV    = "state<tensor<fp16, [4, 1, 16, 4]>> model_model_kv_cache_0"
	fakeGDN   = "state<tensor<fp16, [4, 4, 4]>> model_model_gdn_state_0, state<tensor<fp16, [4, 1, 16, 4]>> model_model_kv_cache_0"
	fakeLocal = "state<tensor<fp16, [2, 1, 16, 4]>> model_model_kv_cache_global, state<tensor<fp16, [2, 1, 8, 4]>> model_model_kv_cache_local"
)

// fakeFlexible lets the embeddings take 1 or 4 tokens.
const fakeFlexible = `[FlexibleShapeInformation = tuple<tuple<string, dict<string, tensor<int32, [?]>>>, tuple<string, dict<string, dict<string, tensor<int32, [?]>>>>>((("DefaultShapes", {{"input_ids", [1, 1]}}), ("EnumeratedShapes", {{"a", {{"input_ids", [1, 1]}}}, {"b", {{"input_ids", [1, 4]}}}})))]`

// fakeFiles is a package of two chunks.
func fakeFiles(states, more string, rotate bool) fstest.MapFS {
	fsys := fstest.MapFS{}
	fsys["meta.yaml"] = &fstest.MapFile{Data: []byte("model_info:\n  name: fake\n  version: 0.3.5\n  architecture: qwen3\n  parameters:\n" +
		"    context_length: 16\n    batch_size: 4\n    lut_embeddings: none\n    lut_ffn: none\n    lut_lmhead: none\n    num_chunks: 2\n    model_prefix: qwen\n" +
		"    embeddings: qwen_embeddings.mlmodelc\n    lm_head: qwen_lm_head.mlmodelc\n    ffn: qwen_FFN_PF_chunk_01of02.mlmodelc\n    vocab_size: 23\n" + more)}
	fsys["qwen_embeddings.mlmodelc/model.mil"] = fakeProgram(strings.Replace(
		fakeFn("main", "tensor<int32, [1, ?]> input_ids", "tensor<fp16, [1, ?, 4]> = hidden_states"), ") {", ") "+fakeFlexible+" {", 1))
	for c := 1; c <= 2; c++ {
		out := fakeBatch
		if c == 2 {
			out = 1
		}
		fns := []string{fakeDecoder(fnInfer, 1, states, 1), fakeDecoder(fnPrefill, fakeBatch, states, out)}
		if rotate {
			fns = append(fns, fakeDecoder(fnInferRotate, 1, states, 1), fakeDecoder(fnPrefillRotate, fakeBatch, states, out))
		}
		fsys[fmt.Sprintf("qwen_FFN_PF_chunk_0%dof02.mlmodelc/model.mil", c)] = fakeProgram(fns...)
	}
	fsys["qwen_lm_head.mlmodelc/model.mil"] = fakeProgram(fakeFn("main", "tensor<fp16, [1, 1, 4]> hidden_states",
		"tensor<fp16, [1, 1, 12]> = logits1", "tensor<fp16, [1, 1, 11]> = logits2"))
	return fsys
}

func openFake(t *testing.T, fsys fstest.MapFS, b *fakeBackend, opts Options) *Runner {
	t.Helper()
	r, err := tryFake(t, fsys, b, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

func tryFake(t *testing.T, fsys fstest.MapFS, b *fakeBackend, opts Options) (*Runner, error) {
	t.Helper()
	pkg, err := manifest.Open(context.Background(), fsys, "fake")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pkg.Close() })
	return Open(context.Background(), pkg, b, opts)
}

func randomIDs(n, seed int) []int {
	ids := make([]int, n)
	for i := range ids {
		ids[i] = (i*i*5 + i*seed + seed) % fakeVocab
	}
	return ids
}

func file(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
