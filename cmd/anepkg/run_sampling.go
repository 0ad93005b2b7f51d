package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/anepkg/anepkg/runner"
	"github.com/anepkg/anepkg/runner/sample"
)

// samplingFlags are the flags that say how tokens are chosen.
func samplingFlags() []cli.Flag {
	return []cli.Flag{
		&cli.Float64Flag{Name: "temperature", Usage: "divide logits by `T`; 0 = greedy; 1 when only a flag below asks for chance"},
		&cli.IntFlag{Name: "top-k", Usage: "choose among the `K` best; 0 = all"},
		&cli.Float64Flag{Name: "top-p", Usage: "choose among the fewest that reach probability `P`; 0 = all"},
		&cli.Float64Flag{Name: "min-p", Usage: "choose among those with `P` times the best's probability; 0 = all"},
		&cli.Float64Flag{Name: "typical-p", Usage: "choose among the most typical that reach probability `P`; 0 = all"},
		&cli.Float64Flag{Name: "repeat-penalty", Usage: "lower the logits of the latest tokens by factor `R`; 1 = off"},
		&cli.Float64Flag{Name: "frequency-penalty", Usage: "lower logits by `F` for each time a token was generated; 0 = off"},
		&cli.Float64Flag{Name: "presence-penalty", Usage: "lower logits by `F` once a token was generated; 0 = off"},
		&cli.StringSliceFlag{Name: "logit-bias", Usage: "add to a logit: `ID=V`, -inf forbids the token; may be repeated"},
		&cli.Uint64Flag{Name: "seed", Usage: "`SEED` of the chance; a random one is shown"},
		&cli.BoolFlag{Name: "greedy", Usage: "always take the best token, whatever the package recommends"},
	}
}

// samplingValue is one number of the choice and who set it.
type samplingValue struct {
	Name   string `json:"name"`
	Value  any    `json:"value"`
	Source string `json:"source"`
}

// sampling is how tokens are chosen and why.
type sampling struct {
	cfg    sample.Config
	values []samplingValue
}

// samplingOf reads the sampling flags without a package, for what is wrong
// on the line itself.
func samplingOf(c *cli.Context) error {
	if c.IsSet("repeat-penalty") && c.Float64("repeat-penalty") == 0 {
		return usagef("--repeat-penalty 0: want a number above 0 (1 = off)")
	}
	if c.Bool("greedy") && c.Float64("temperature") > 0 {
		return usagef("--greedy and --temperature %g contradict each other", c.Float64("temperature"))
	}
	s, err := chooseSampling(c, runner.Recommendation{})
	if err != nil {
		return err
	}
	return s.cfg.Check()
}

// chooseSampling joins what the package recommends with the flags, which win
// one by one. --greedy and --temperature 0 leave the recommendation out, and
// so do --prompt-ids and --logits: they are for repeating a computation.
func chooseSampling(c *cli.Context, rec runner.Recommendation) (sampling, error) {
	greedy := c.Bool("greedy")
	if greedy || c.IsSet("temperature") && c.Float64("temperature") == 0 || c.IsSet("prompt-ids") || c.IsSet("logits") {
		rec = runner.Recommendation{}
	}
	s := sampling{cfg: rec.Config()}
	set := map[string]samplingValue{}
	for _, v := range rec.Values {
		if v.Name != runner.DoSample {
			set[string(v.Name)] = samplingValue{string(v.Name), v.Value, v.Source}
		}
	}
	flagged := func(flag, name string, to *float64) {
		if c.IsSet(flag) {
			*to = c.Float64(flag)
			set[name] = samplingValue{name, *to, "--" + flag}
		}
	}
	flagged("temperature", "temperature", &s.cfg.Temperature)
	flagged("top-p", "top_p", &s.cfg.TopP)
	flagged("min-p", "min_p", &s.cfg.MinP)
	flagged("typical-p", "typical_p", &s.cfg.TypicalP)
	flagged("repeat-penalty", "repetition_penalty", &s.cfg.RepeatPenalty)
	flagged("frequency-penalty", "frequency_penalty", &s.cfg.FrequencyPenalty)
	flagged("presence-penalty", "presence_penalty", &s.cfg.PresencePenalty)
	if c.IsSet("top-k") {
		s.cfg.TopK = c.Int("top-k")
		set["top_k"] = samplingValue{"top_k", s.cfg.TopK, "--top-k"}
	}
	chance := c.IsSet("top-k") || c.IsSet("top-p") || c.IsSet("min-p") || c.IsSet("typical-p")
	switch {
	case greedy:
		s.cfg.Temperature, s.cfg.TopK, s.cfg.TopP, s.cfg.MinP, s.cfg.TypicalP = 0, 0, 0, 0, 0
	case chance && !c.IsSet("temperature") && s.cfg.Temperature == 0:
		s.cfg.Temperature = 1
	}
	if _, ok := set["temperature"]; !ok && s.cfg.Temperature > 0 {
		set["temperature"] = samplingValue{"temperature", s.cfg.Temperature, "default"}
	}
	var err error
	if s.cfg.LogitBias, err = biasOf(c.StringSlice("logit-bias")); err != nil {
		return s, err
	}
	seed := "--seed"
	if s.cfg.Seed = c.Uint64("seed"); !c.IsSet("seed") && !s.cfg.Greedy() {
		s.cfg.Seed, seed = uint64(rand.Uint32()), "random" //nolint:gosec // chance for text, not for secrets
	}
	s.list(set, doSampleSource(c, rec, s.cfg, chance), seed)
	return s, nil
}

// doSampleSource tells who decided between chance and the best token.
func doSampleSource(c *cli.Context, rec runner.Recommendation, cfg sample.Config, chance bool) string {
	switch {
	case c.Bool("greedy"):
		return "--greedy"
	case c.IsSet("temperature"):
		return "--temperature"
	case cfg.TopK == 1 && c.IsSet("top-k"):
		return "--top-k"
	}
	for _, v := range rec.Values {
		if v.Name == runner.DoSample && (v.Value == 1 || !chance) {
			return v.Source
		}
	}
	for _, flag := range []string{"top-k", "top-p", "min-p", "typical-p"} {
		if c.IsSet(flag) {
			return "--" + flag
		}
	}
	return "default"
}

// list puts the values that have an effect in order.
func (s *sampling) list(set map[string]samplingValue, doSample, seed string) {
	names := []string{"repetition_penalty", "frequency_penalty", "presence_penalty"}
	if !s.cfg.Greedy() {
		names = append([]string{"temperature", "top_k", "top_p", "min_p", "typical_p"}, names...)
	}
	s.values = []samplingValue{{"do_sample", !s.cfg.Greedy(), doSample}}
	for _, name := range names {
		if v, ok := set[name]; ok {
			s.values = append(s.values, v)
		}
	}
	if n := len(s.cfg.LogitBias); n > 0 {
		s.values = append(s.values, samplingValue{"logit_bias", n, "--logit-bias"})
	}
	if !s.cfg.Greedy() {
		s.values = append(s.values, samplingValue{"seed", s.cfg.Seed, seed})
	}
}

// biasOf reads ID=V.
func biasOf(list []string) (map[int]float64, error) {
	if len(list) == 0 {
		return nil, nil
	}
	out := map[int]float64{}
	for _, item := range list {
		left, right, found := strings.Cut(item, "=")
		id, err := strconv.ParseInt(strings.TrimSpace(left), 10, 32)
		v, verr := strconv.ParseFloat(strings.TrimSpace(right), 64)
		switch {
		case !found || err != nil || verr != nil || id < 0:
			return nil, usagef("--logit-bias %s: want ID=V, such as 42=-1.5 or 42=-inf", item).WithHint(`"anepkg tokenize" shows the ids of a text`)
		case out[int(id)] != 0 && out[int(id)] != v:
			return nil, usagef("--logit-bias names token %d twice: %g and %g", id, out[int(id)], v)
		}
		out[int(id)] = v
	}
	return out, nil
}

// resolveSampling is chooseSampling for a loaded package: an argmax head
// allows no chance, so that a recommendation of it is left out.
func (t *tool) resolveSampling(c *cli.Context, r *runner.Runner) (sampling, error) {
	if r.IsEncoder() {
		return sampling{}, nil
	}
	rec := runner.Recommended(r.Package())
	for _, p := range rec.Problems {
		t.notef("note: %s\n", p)
	}
	if !r.HasLogits() && !rec.Config().Plain() {
		t.notef("note: the head gives only the best token: the sampling that the package recommends is left out\n")
		rec = runner.Recommendation{}
	}
	return chooseSampling(c, rec)
}

// String tells the values and who set them; "" for plain greedy choice.
func (s sampling) String() string {
	if s.cfg.Plain() {
		return ""
	}
	var groups []string
	var names []string
	for i, v := range s.values {
		if v.Name == "do_sample" {
			if v.Value == true {
				continue
			}
			names = append(names, "greedy")
		} else {
			names = append(names, strings.ReplaceAll(v.Name, "_", "-")+fmt.Sprintf(" %v", v.Value))
		}
		source := shortSource(v.Source)
		if i+1 < len(s.values) && shortSource(s.values[i+1].Source) == source {
			continue
		}
		groups = append(groups, fmt.Sprintf("%s (%s)", strings.Join(names, ", "), source))
		names = nil
	}
	return "sampling: " + strings.Join(groups, ", ")
}

// shortSource leaves the key out of a source in a file.
func shortSource(source string) string {
	file, key, found := strings.Cut(source, ": ")
	if section, _, ok := strings.Cut(key, "."); found && ok {
		return file + ": " + section
	}
	return file
}

// json returns a copy of the values, for output.
func (s sampling) json() []samplingValue { return slices.Clone(s.values) }
