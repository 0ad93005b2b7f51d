package runner

import "github.com/anepkg/anepkg/manifest"

// The functions of a decoder, as ANEMLL and the package format name them.
const (
	fnInfer         = "infer"
	fnPrefill       = "prefill"
	fnInferRotate   = "infer_rotate"
	fnPrefillRotate = "prefill_rotate"
)

// rules are the facts that decide which calls feed which positions.
type rules struct {
	limit int // positions
	batch int // tokens of a prefill call; 0 = there is no prefill function
	// lastOut: a prefill call gives the scores of its last token. Without
	// it the last token goes through infer.
	lastOut bool
	// rerun: a position may be fed again (a plain KV cache writes the same
	// keys and values again; recurrent states and shifting windows do not).
	rerun bool
	// window is the length of a local cache that must be rotated from
	// position window on; 0 = none.
	window      int
	rotateBatch bool // there is a prefill_rotate
	// ring is the length of local caches that are rings: position p stands
	// in slot p mod ring; 0 = none. A batch that begins at ring or later
	// overwrites slots that its own first tokens still see, so that only
	// PrefillBatch does it, within one round, as the stock runtime.
	ring int
	// sizes are the contexts N of functions infer_ctxN, ascending, the last
	// one the limit. A token takes the smallest that holds its position.
	sizes []int
}

// step is one pass through the parts: n tokens from pos through function fn.
type step struct {
	fn   string
	pos  int
	n    int
	want bool // scores are needed
}

// plan lists the calls that feed n tokens from position pos. The last call
// gives the scores. Batches are always full: a padded one could write keys
// beyond the end of the cache and is absorbed by recurrent states. mode must
// be one of the three.
func (r rules) plan(pos, n int, mode PrefillMode) []step {
	end := pos + n
	full := end // where batches must stop
	if !r.lastOut && !r.rerun {
		full = end - 1
	}
	var out []step
	for p := pos; p < end; {
		if fn := r.batchAt(p, mode); fn != "" && p+r.batch <= full {
			out = append(out, step{fn: fn, pos: p, n: r.batch})
			p += r.batch
			continue
		}
		out = append(out, step{fn: r.singleAt(p), pos: p, n: 1})
		p++
	}
	if last := out[len(out)-1]; last.n > 1 && !r.lastOut {
		out = append(out, step{fn: r.singleAt(end - 1), pos: end - 1, n: 1})
	}
	out[len(out)-1].want = true
	return out
}

// batchAt names the function for a batch at p, "" for none. A batch that
// crosses the window may not use prefill, which writes at the position.
// prefill_rotate shows each token of a batch the later ones of the same
// batch, so that only PrefillBatch uses it.
func (r rules) batchAt(p int, mode PrefillMode) string {
	switch {
	case r.batch == 0 || mode == PrefillSingle:
		return ""
	case r.ring > 0 && p+r.batch > r.ring:
		if mode == PrefillBatch && p%r.ring+r.batch <= r.ring {
			return fnPrefill
		}
		return ""
	case r.window == 0 || p+r.batch <= r.window:
		return fnPrefill
	case p >= r.window && mode == PrefillBatch && r.rotateBatch:
		return fnPrefillRotate
	}
	return ""
}

func (r rules) singleAt(p int) string {
	if r.window > 0 && p >= r.window {
		return fnInferRotate
	}
	for _, n := range r.sizes {
		if p < n {
			return variant(fnInfer, n)
		}
	}
	return fnInfer
}

// rewindable is Contract.Rewindable: after fed tokens, may position to be
// fed next.
func (r rules) rewindable(fed, to int) bool {
	switch {
	case to == fed:
		return true
	case to < 0 || to > fed:
		return false
	case r.window > 0:
		return fed <= r.window
	case r.ring > 0: // the last position's slot held one that it does not see
		return r.rerun && (fed <= r.ring || to == fed-1)
	}
	return r.rerun
}

// layoutNames are the contracts that follow rules.
var layoutNames = map[manifest.Layout]bool{
	manifest.Chunked: true, manifest.ChunkedRecurrent: true, manifest.ChunkedGemma4: true,
	manifest.Rotate: true, manifest.Monolithic: true,
}
