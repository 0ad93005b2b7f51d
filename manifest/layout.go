package manifest

import (
	"context"
	"strings"

	"github.com/anepkg/anepkg/coreml"
)

// chooseLayout decides the calling convention from the programs: their
// functions, states, inputs and outputs. Claims only help where a program
// cannot be read. It returns an error only when ctx is done.
func (p *Package) chooseLayout(ctx context.Context) error {
	switch p.Kind {
	case ANEMLL, Seed:
		p.anemllLayout(ctx)
	case CoreMLLLM:
		p.coremlLLMLayout(ctx)
	}
	return ctx.Err()
}

func (p *Package) because(reason string) {
	if p.Reason != "" {
		p.Reason += "; "
	}
	p.Reason += reason
}

func (p *Package) anemllLayout(ctx context.Context) {
	if len(p.PartsOf(Mono)) > 0 {
		p.Layout = Monolithic
		p.because("one model from ids to logits")
		return
	}
	p.Layout = Chunked
	seen := false
	for _, role := range []Role{Chunk, ChunkRot} {
		for _, pt := range p.PartsOf(role) {
			m, err := p.Model(ctx, pt)
			if err != nil || m == nil {
				continue
			}
			seen = true
			if l, why := layoutOf(m); l != Chunked {
				p.Layout = l
				p.because(why + " of " + pt.Path)
				return
			}
		}
	}
	if seen {
		p.because("chunks without rotate functions, recurrent states or per_layer_inputs")
		return
	}
	p.claimedLayout()
}

// claimedLayout uses meta.yaml when no chunk can be read.
func (p *Package) claimedLayout() {
	if b, _ := p.Params.Bool("recurrent_state"); b {
		p.Layout = ChunkedRecurrent
		p.because("no chunk is readable; recurrent_state is claimed")
	} else if p.Params.Get("per_layer_inputs") != nil {
		p.Layout = ChunkedGemma4
		p.because("no chunk is readable; per_layer_inputs is claimed")
	} else if b, _ := p.Params.Bool("split_rotate"); b {
		p.Layout = Rotate
		p.because("no chunk is readable; split_rotate is claimed")
	} else {
		p.because("no chunk is readable")
	}
}

// layoutOf looks at one decoder chunk.
func layoutOf(m *coreml.Model) (Layout, string) {
	for _, f := range m.Functions {
		if strings.HasSuffix(f.Name, "_rotate") {
			return Rotate, "function " + f.Name
		}
		if f.Input("per_layer_inputs") != nil {
			return ChunkedGemma4, "input per_layer_inputs"
		}
		for _, s := range f.States {
			if IsRecurrentState(s.Name) {
				return ChunkedRecurrent, "state " + s.Name
			}
		}
	}
	return Chunked, ""
}

// IsRecurrentState reports whether a state of that name is updated by every
// call and cannot be rewound: the delta-rule and convolution states.
func IsRecurrentState(name string) bool {
	for _, word := range []string{"gdn_state", "conv_state", "rec_state", "recurrent_state", "ssm_state", "delta_"} {
		if strings.Contains(name, word) {
			return true
		}
	}
	return false
}

func (p *Package) coremlLLMLayout(ctx context.Context) {
	main := p.PartsOf(Chunk)
	main = append(main, p.PartsOf(Mono)...)
	main = append(main, p.PartsOf(EncoderOf)...)
	if len(main) == 0 {
		return
	}
	if p.Layout == StatefulChunks {
		p.dropStaleChunk(ctx)
	}
	m, err := p.Model(ctx, main[0])
	if err != nil || m == nil {
		p.because("the program is not readable")
		return
	}
	f := m.Function("")
	if f == nil {
		return
	}
	switch {
	case f.Input("K_sliding_in") != nil || f.Input("K_full_in") != nil:
		p.Layout = KVIO
		p.because("input K_sliding_in or K_full_in of " + main[0].Path)
	case f.Input("hidden_in") != nil && len(f.States) > 0 && hasPrefixInput(f, "rec_state_"):
		p.Layout = MLKV
		p.because("state " + f.States[0].Name + " and inputs rec_state_* of " + main[0].Path)
	case f.Output("embedding") != nil && len(f.States) == 0:
		p.Layout = Encoder
		p.because("output embedding of " + main[0].Path)
	case main[0].Role == Chunk && len(f.States) > 0:
		p.Layout = StatefulChunks
		p.because("state " + f.States[0].Name + " of " + main[0].Path)
	case main[0].Role == Mono && f.Input("input_ids") != nil:
		p.Layout = Monolithic
		p.because("input input_ids of " + main[0].Path)
	}
}

// dropStaleChunk applies the loader's rule: chunk_4 is an orphan when
// chunk_3 already gives token_id (coreml-llm.md 1, L4).
func (p *Package) dropStaleChunk(ctx context.Context) {
	chunks := p.PartsOf(Chunk)
	if len(chunks) != 4 || chunks[2].Path == "" {
		return
	}
	m, err := p.Model(ctx, chunks[2])
	if err != nil {
		return
	}
	if f := m.Function(""); f != nil && f.Output("token_id") != nil {
		chunks[3].Role, chunks[3].Chunk, chunks[3].Of = Leftover, 0, 0
		for _, c := range chunks[:3] {
			c.Of = 3
		}
		p.because("chunk_3 gives token_id, so that " + chunks[3].Path + " is left over")
	}
}

func hasPrefixInput(f *coreml.Function, prefix string) bool {
	for _, in := range f.Inputs {
		if strings.HasPrefix(in.Name, prefix) {
			return true
		}
	}
	return false
}
