package tokenizer

import (
	"fmt"
	"unicode/utf8"
)

// unigram picks the parts whose scores add up to the most.
type unigram struct {
	v        *vocab
	scores   []float64
	unk      int // -1: none
	unkScore float64
	fallback *[256]int32
	maxLen   int // longest token in bytes
}

// unkPenalty is how much worse than the worst token an unknown character is.
const unkPenalty = 10

func newUnigram(m *rawModel) (*unigram, error) {
	if m.scores == nil {
		return nil, fmt.Errorf("vocab of a Unigram model is an object, want a list of [token, score]")
	}
	g := &unigram{v: m.vocab, scores: m.scores, unk: -1}
	if p := m.settings.UnkID; p != nil {
		if *p < 0 || *p >= len(g.scores) {
			return nil, fmt.Errorf("unk_id is %d, want 0 to %d", *p, len(g.scores)-1)
		}
		g.unk = *p
	}
	if m.settings.ByteFallback {
		g.fallback = g.v.byteTokens()
	}
	for i, s := range g.scores {
		if i == 0 || s < g.unkScore {
			g.unkScore = s
		}
	}
	g.unkScore -= unkPenalty
	for t := range g.v.ids {
		g.maxLen = max(g.maxLen, len(t))
	}
	return g, nil
}

func (g *unigram) kind() string       { return "Unigram" }
func (g *unigram) vocabulary() *vocab { return g.v }

// node of the best path: the best way to end at a byte.
type pathNode struct {
	score float64
	start int // -1: not reached
	id    int
}

// encode implements model.
func (g *unigram) encode(s string, _ bool, _ *work, out []int) ([]int, error) {
	best, err := g.bestPath(s)
	if err != nil {
		return nil, err
	}
	type part struct{ from, to, id int }
	var parts []part // from the right
	for end := len(s); end > 0; {
		n := best[end]
		if k := len(parts); n.id == g.unk && k > 0 && parts[k-1].id == g.unk {
			parts[k-1].from = n.start
		} else {
			parts = append(parts, part{n.start, end, n.id})
		}
		end = n.start
	}
	for i := len(parts) - 1; i >= 0; i-- {
		p := parts[i]
		if id, ok := g.v.ids[s[p.from:p.to]]; ok {
			out = append(out, int(id))
			continue
		}
		if g.fallback != nil {
			if ids, ok := appendBytes(nil, s[p.from:p.to], g.fallback); ok {
				for _, id := range ids {
					out = append(out, int(id))
				}
				continue
			}
		}
		out = append(out, g.unk)
	}
	return out, nil
}

func (g *unigram) bestPath(s string) ([]pathNode, error) {
	best := make([]pathNode, len(s)+1)
	for i := range best {
		best[i].start = -1
	}
	for from := 0; from < len(s); {
		_, width := utf8.DecodeRuneInString(s[from:])
		till, single := best[from].score, false
		reach := func(to, id int, score float64) {
			if n := &best[to]; n.start < 0 || score > n.score {
				*n = pathNode{score, from, id}
			}
		}
		for to := from + 1; to <= min(len(s), from+g.maxLen); to++ {
			if to < len(s) && !utf8.RuneStart(s[to]) {
				continue
			}
			if id, ok := g.v.ids[s[from:to]]; ok {
				reach(to, int(id), till+g.scores[id])
				single = single || to == from+width
			}
		}
		if !single {
			if g.unk < 0 {
				return nil, fmt.Errorf("%q is not in the vocabulary and there is no unk_id", s[from:from+width])
			}
			reach(from+width, g.unk, till+g.unkScore)
		}
		from += width
	}
	return best, nil
}
