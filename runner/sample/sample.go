// Package sample chooses the next token from logits. Every function is pure
// but for the random source of a Sampler, and gives the same result on every
// platform: exponentials are computed with plain float64 operations in a
// fixed order, and the generator is PCG-DXSM of math/rand/v2.
//
// Files: sample.go (Config, Sampler, Greedy, Penalize), nucleus.go (top-k,
// top-p and min-p), exp.go (the exponential function).
package sample

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/anepkg/anepkg/coreml/diag"
)

// DefaultRepeatWindow is how many of the latest tokens, prompt included, the
// repeat penalty looks at.
const DefaultRepeatWindow = 64

// Config says how to choose. The zero value is greedy choice.
type Config struct {
	// Temperature divides the logits; 0 chooses greedily, whatever TopK,
	// TopP and MinP say.
	Temperature float64
	TopK        int     // keep the k best; 0 = all
	TopP        float64 // keep the fewest best whose probability reaches p; 0 or 1 = all
	MinP        float64 // keep those with at least p times the best's probability; 0 = all
	// RepeatPenalty divides positive and multiplies other logits of each
	// distinct token in the window (the rule of Keskar et al., 2019); 0 or 1
	// = off. It also applies to greedy choice.
	RepeatPenalty float64
	// RepeatWindow is how many latest tokens are penalized, each once
	// however often it occurs; 0 = DefaultRepeatWindow, negative = all.
	RepeatWindow int
	Seed         uint64
}

// Greedy reports whether the choice involves no chance.
func (c Config) Greedy() bool { return c.Temperature == 0 || c.TopK == 1 }

// Plain reports whether the choice is the highest logit, nothing else. Only
// then a head that gives no logits but its best token will do.
func (c Config) Plain() bool {
	return c.Greedy() && (c.RepeatPenalty == 0 || c.RepeatPenalty == 1)
}

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
	}
	return nil
}

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
// it is; history holds the ids so far, prompt included, oldest first. The
// order is: penalty, temperature, top-k, top-p, min-p, draw. Empty logits or
// a NaN among them are an error of class diag.RunFailed.
func (s *Sampler) Next(logits []float32, history []int) (int, error) {
	if s.cfg.RepeatPenalty != 0 && s.cfg.RepeatPenalty != 1 {
		s.buf = append(s.buf[:0], logits...)
		Penalize(s.buf, s.window(history), s.cfg.RepeatPenalty)
		logits = s.buf
	}
	best, err := Greedy(logits)
	if err != nil || s.cfg.Greedy() {
		return best, err
	}
	return s.draw(logits, best), nil
}

func (s *Sampler) window(history []int) []int {
	n := s.cfg.RepeatWindow
	if n == 0 {
		n = DefaultRepeatWindow
	}
	if n < 0 || n >= len(history) {
		return history
	}
	return history[len(history)-n:]
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

// Penalize lowers, in place, the logit of every distinct id of history: a
// positive one is divided by penalty, any other multiplied. Ids outside
// logits are ignored.
func Penalize(logits []float32, history []int, penalty float64) {
	seen := make(map[int]bool, len(history))
	for _, id := range history {
		if id < 0 || id >= len(logits) || seen[id] {
			continue
		}
		seen[id] = true
		if v := float64(logits[id]); v > 0 {
			logits[id] = float32(v / penalty)
		} else {
			logits[id] = float32(v * penalty)
		}
	}
}

// String describes the configuration in one line.
func (c Config) String() string {
	s := "greedy"
	if !c.Greedy() {
		s = fmt.Sprintf("temperature %g, top-k %d, top-p %g, min-p %g, seed %d", c.Temperature, c.TopK, c.TopP, c.MinP, c.Seed)
	}
	if c.RepeatPenalty != 0 && c.RepeatPenalty != 1 {
		s += fmt.Sprintf(", repeat penalty %g", c.RepeatPenalty)
	}
	return s
}
