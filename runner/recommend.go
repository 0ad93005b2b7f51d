package runner

import (
	"fmt"

	"github.com/anepkg/anepkg/manifest"
	"github.com/anepkg/anepkg/runner/sample"
)

// SamplingValue is one number of a sampling configuration and where it comes
// from. DoSample is 0 or 1.
type SamplingValue struct {
	Name   SamplingName
	Value  float64
	Source string // "meta.yaml: recommended_sampling.top_k"
}

// SamplingName is a key of generation_config.json.
type SamplingName string

// The names.
const (
	DoSample          SamplingName = "do_sample"
	Temperature       SamplingName = "temperature"
	TopK              SamplingName = "top_k"
	TopP              SamplingName = "top_p"
	MinP              SamplingName = "min_p"
	TypicalP          SamplingName = "typical_p"
	RepetitionPenalty SamplingName = "repetition_penalty"
)

// samplingKeys are the keys of each name, in the order in which they are
// reported; ANEMLL's Swift reader also takes topK and topP (anemll.md 1.1).
var samplingKeys = []struct {
	name SamplingName
	keys []string
}{
	{Temperature, []string{"temperature"}}, {TopK, []string{"top_k", "topK"}}, {TopP, []string{"top_p", "topP"}},
	{MinP, []string{"min_p"}}, {TypicalP, []string{"typical_p"}}, {RepetitionPenalty, []string{"repetition_penalty"}},
}

// Recommendation is what the files of a package say about sampling.
type Recommendation struct {
	// Values begins with DoSample when a file says or implies it. Each value
	// is that of the first file which has it.
	Values []SamplingValue
	// Problems names values that mean nothing and were left out.
	Problems []string
}

// Recommended reads recommended_sampling of the package description
// (meta.yaml), then generation_config.json. The description samples when it
// gives a temperature above 0 and no do_sample; generation_config.json, as
// transformers reads it, only with do_sample true. Without do_sample the
// numbers but repetition_penalty are without effect and are left out.
func Recommended(pkg *manifest.Package) Recommendation {
	var rec Recommendation
	meta := pkg.Params.Get("recommended_sampling")
	gen := pkg.ReadJSON(pkg.Tokenizer.GenConfig)
	files := []struct {
		p      *manifest.Param
		source string
	}{
		{meta, fmt.Sprintf("%s: recommended_sampling.", pkg.ConfigFile)},
		{&gen, pkg.Tokenizer.GenConfig + ": "},
	}
	samples, source := doSample(meta, &gen, files[0].source, files[1].source)
	if source != "" {
		v := 0.0
		if samples {
			v = 1
		}
		rec.Values = append(rec.Values, SamplingValue{DoSample, v, source})
	}
	for _, k := range samplingKeys {
		if !samples && k.name != RepetitionPenalty {
			continue
		}
		for _, f := range files {
			if rec.take(f.p, f.source, k.name, k.keys) {
				break
			}
		}
	}
	return rec
}

// doSample finds whether the package wants chance, and who says so.
func doSample(meta, gen *manifest.Param, metaSource, genSource string) (samples bool, source string) {
	if v, ok := meta.Member("do_sample").Bool(); ok {
		return v, metaSource + "do_sample"
	}
	if t, ok := meta.Member("temperature").Float(); ok {
		return t > 0, metaSource + "temperature"
	}
	if v, ok := gen.Member("do_sample").Bool(); ok {
		return v, genSource + "do_sample"
	}
	return false, ""
}

// take adds the value of the first of keys that p has; false when there is
// none that means something.
func (rec *Recommendation) take(p *manifest.Param, source string, name SamplingName, keys []string) bool {
	for _, key := range keys {
		m := p.Member(key)
		if m == nil || m.Value == nil {
			continue
		}
		v, ok := m.Float()
		if ok && name == TopK && (v < 0 || v > 1<<30 || v != float64(int(v))) {
			ok = false
		}
		var cfg sample.Config
		if ok {
			set(&cfg, name, v)
		}
		if err := cfg.Check(); !ok || err != nil {
			rec.Problems = append(rec.Problems, fmt.Sprintf("%s%s is %v, which is left out", source, key, m.Value))
			continue
		}
		rec.Values = append(rec.Values, SamplingValue{name, v, source + key})
		return true
	}
	return false
}

func set(cfg *sample.Config, name SamplingName, v float64) {
	switch name {
	case Temperature:
		cfg.Temperature = v
	case TopK:
		cfg.TopK = int(v)
	case TopP:
		cfg.TopP = v
	case MinP:
		cfg.MinP = v
	case TypicalP:
		cfg.TypicalP = v
	case RepetitionPenalty:
		cfg.RepeatPenalty = v
	}
}

// Config makes a sampling configuration of the values; greedy without
// DoSample. A recommendation to sample without a temperature means 1.
func (rec Recommendation) Config() sample.Config {
	var cfg sample.Config
	samples, warm := false, false
	for _, v := range rec.Values {
		set(&cfg, v.Name, v.Value)
		samples = samples || v.Name == DoSample && v.Value == 1
		warm = warm || v.Name == Temperature
	}
	if samples && !warm {
		cfg.Temperature = 1
	}
	return cfg
}

// String gives name, value and source.
func (v SamplingValue) String() string { return fmt.Sprintf("%s=%g %s", v.Name, v.Value, v.Source) }
