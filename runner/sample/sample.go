// Package sample chooses the next token from logits. Every function is pure
// but for the random source of a Sampler, and gives the same result on every
// platform: exponentials and logarithms are computed with plain float64
// operations in a fixed order. The generator is PCG-DXSM, the PCG of
// math/rand/v2, whose 128-bit state begins as the seed and the constant
// 0x616e65706b67; each choice takes one 64-bit value and uses its low 53
// bits as a fraction of 1. Greedy choice takes none.
//
// Files: sample.go (Config, Sampler, Greedy), penalty.go (penalties and
// bias), nucleus.go (top-k, top-p, min-p), typical.go (typical-p), logprob.go
// (log probabilities), exp.go and log.go (the two functions).
package sample

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/anepkg/anepkg/coreml/diag"
)

// DefaultRepeatWindow is how many of the latest tokens, prompt included, the
// repeat penalty looks at.
const DefaultRepeatWindow = 64

// Config says how to choose. The zero value is greedy choice.
type Config struct {
	// Temperature divides the logits; 0 chooses greedily, whatever TopK,
	// TopP, MinP and TypicalP say.
	Temperature float64
	TopK        int     // keep the k best; 0 = all
	TopP        float64 // keep the fewest best whose probability reaches p; 0 or 1 = all
	MinP        float64 // keep those with at least p times the best's probability; 0 = all
	// TypicalP keeps the tokens whose information is nearest to the entropy,
	// as few as reach probability p (Meister et al., 2022); 0 or 1 = all.
	TypicalP float64
	// RepeatPenalty divides positive and multiplies other logits of each
	// distinct token in the window (the rule of Keskar et al., 2019); 0 or 1
	// = off. It also applies to greedy choice.
	RepeatPenalty float64
	// RepeatWindow is how many latest tokens are penalized, each once
	// however often it occurs; 0 = DefaultRepeatWindow, negative = all.
	RepeatWindow int
	// FrequencyPenalty is subtracted from the logit of each generated token
	// as often as it occurs, PresencePenalty once; both may be negative and
	// apply to greedy choice too. The prompt does not count.
	FrequencyPenalty float64
	PresencePenalty  float64
	// LogitBias is added to the logits of its ids first of all; -Inf forbids
	// a token.
	LogitBias map[int]float64
	Seed      uint64
}

// Greedy reports whether the choice involves no chance.
func (c Config) Greedy() bool { return c.Temperature == 0 || c.TopK == 1 }

// Plain reports whether the choice is the highest logit, nothing else. Only
// then a head that gives no logits but its best token will do.
func (c Config) Plain() bool { return c.Greedy() && !c.changes() }

// changes reports whether logits are changed before the choice.
func (c Config) changes() bool {
	return c.repeats() || c.counts() || len(c.LogitBias) > 0
}

func (c Config) repeats() bool { return c.RepeatPenalty != 0 && c.RepeatPenalty != 1 }

func (c Config) counts() bool { return c.FrequencyPenalty != 0 || c.PresencePenalty != 0 }

// Check returns an error of class diag.Usage for a value without meaning.
func (c Config) Check() error {
	bad := func(name string, v float64, want string) error {
		return diag.Errorf(diag.Pos{}, diag.Usage, "%s is %v, want %s", name, v, want)
	}
	switch {
	case !(c.Temperature >= 0) || math.IsInf(c.Temperature, 1):
		return bad("temperature", c.Temperature, "a number that is not negative")
	case c.TopK < 0:
		return bad("top-k", float64(c.TopK), "0 (off) or more")
	case !(c.TopP >= 0 && c.TopP <= 1):
		return bad("top-p", c.TopP, "a number from 0 to 1")
	case !(c.MinP >= 0 && c.MinP <= 1):
		return bad("min-p", c.MinP, "a number from 0 to 1")
	case !(c.RepeatPenalty >= 0) || math.IsInf(c.RepeatPenalty, 1):
		return bad("repeat penalty", c.RepeatPenalty, "a number above 0 (1 = off)")
	case !(c.TypicalP >= 0 && c.TypicalP <= 1):
		return bad("typical-p", c.TypicalP, "a number from 0 to 1")
	case !finite(c.FrequencyPenalty):
		return bad("frequency penalty", c.FrequencyPenalty, "a number")
	case !finite(c.PresencePenalty):
		return bad("presence penalty", c.PresencePenalty, "a number")
	}
	for id, b := range c.LogitBias {
		if id < 0 || !finite(b) && !math.IsInf(b, -1) {
			return diag.Errorf(diag.Pos{}, diag.Usage, "logit bias of token %d is %v, want an id from 0 on and a number or -inf", id, b)
		}
	}
	return nil
}

func finite(v float64) bool { return v == v && !math.IsInf(v, 0) }

// Sampler chooses tokens. It is not safe for concurrent use.
type Sampler struct {
	cfg   Config
	rng   *rand.Rand
	buf   []float32
	cands []candidate
}

// stream is the second word of the PCG state; the seed is the first.
const stream = 0x616e65706b67 // "anepkg"

// New makes a sampler, or returns the error of cfg.Check.
func New(cfg Config) (*Sampler, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	rng := rand.New(rand.NewPCG(cfg.Seed, stream)) //nolint:gosec // chance for text, not for secrets
	return &Sampler{cfg: cfg, rng: rng}, nil
}

// Config returns what the sampler was made with.
func (s *Sampler) Config() Config { return s.cfg }

// Next chooses a token id. logits has one value for each id and is left as
// it is; prompt and generated hold the ids so far, oldest first. The order
// is: bias, repeat penalty, frequency and presence penalty, temperature,
// top-k, top-p, min-p, typical-p, draw. Of equal logits greedy choice takes
// the lowest id. Empty logits or a NaN among them are an error of class
// diag.RunFailed.
func (s *Sampler) Next(logits []float32, prompt, generated []int) (int, error) {
	if s.cfg.changes() {
		s.buf = append(s.buf[:0], logits...)
		logits = s.buf
		AddBias(logits, s.cfg.LogitBias)
		if s.cfg.repeats() {
			older, newer := s.window(prompt, generated)
			Penalize(logits, slices.Concat(older, newer), s.cfg.RepeatPenalty)
		}
		if s.cfg.counts() {
			PenalizeCounts(logits, generated, s.cfg.FrequencyPenalty, s.cfg.PresencePenalty)
		}
	}
	best, err := Greedy(logits)
	if err != nil || s.cfg.Greedy() {
		return best, err
	}
	return s.draw(logits, best), nil
}

// window returns the latest ids that the repeat penalty looks at.
func (s *Sampler) window(prompt, generated []int) (older, newer []int) {
	n := s.cfg.RepeatWindow
	if n == 0 {
		n = DefaultRepeatWindow
	}
	if n < 0 {
		return prompt, generated
	}
	newer = generated[max(0, len(generated)-n):]
	return prompt[max(0, len(prompt)-(n-len(newer))):], newer
}

// Greedy returns the id of the highest logit, the lowest id of equals. Empty
// logits or a NaN are an error of class diag.RunFailed.
func Greedy(logits []float32) (int, error) {
	best := -1
	for i, v := range logits {
		if v != v {
			return -1, diag.Errorf(diag.Pos{}, diag.RunFailed, "logit of token %d is NaN", i)
		}
		if best < 0 || v > logits[best] {
			best = i
		}
	}
	if best < 0 {
		return -1, diag.Errorf(diag.Pos{}, diag.RunFailed, "no logits to choose from")
	}
	return best, nil
}

// String describes the configuration in one line.
func (c Config) String() string {
	s := "greedy"
	if !c.Greedy() {
		s = fmt.Sprintf("temperature %g, top-k %d, top-p %g, min-p %g, seed %d", c.Temperature, c.TopK, c.TopP, c.MinP, c.Seed)
		if c.TypicalP > 0 && c.TypicalP < 1 {
			s += fmt.Sprintf(", typical-p %g", c.TypicalP)
		}
	}
	if c.repeats() {
		s += fmt.Sprintf(", repeat penalty %g", c.RepeatPenalty)
	}
	if c.FrequencyPenalty != 0 {
		s += fmt.Sprintf(", frequency penalty %g", c.FrequencyPenalty)
	}
	if c.PresencePenalty != 0 {
		s += fmt.Sprintf(", presence penalty %g", c.PresencePenalty)
	}
	for _, id := range slices.Sorted(maps.Keys(c.LogitBias)) {
		s += fmt.Sprintf(", bias %d=%g", id, c.LogitBias[id])
	}
	return s
}
