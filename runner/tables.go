package runner

import (
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"path"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/manifest"
)

// inHiddenIn is the first input of Qwen3.5's chunks.
const inHiddenIn = "hidden_in"

// byToken are the inputs whose rows are chosen by token id; those of the
// other tables are chosen by position.
var byToken = map[string]bool{inHidden: true, inHiddenIn: true, "per_layer_raw": true}

// rotaryTables are the files of Gemma 4's rotary tables, by input.
var rotaryTables = map[string]string{
	"cos_s": "cos_sliding.npy", "sin_s": "sin_sliding.npy", "cos_f": "cos_full.npy", "sin_f": "sin_full.npy",
}

// openTables opens the side files that some chunk needs and checks them
// against the programs: their sizes, element types and number of rows.
func (l *linked) openTables(ld *loader, d dialect, fc linkFacts, dir string) error {
	folders := []string{dir}
	if dir != "." {
		folders = append(folders, ".")
	}
	for i, p := range l.chunks {
		fn := p.units[fnInfer].fn
		for j := range fn.Inputs {
			f := &fn.Inputs[j]
			if l.rows[f.Name] != nil || i > 0 && (f.Name == inHidden || f.Name == inHiddenIn) {
				continue
			}
			src, err := l.openTable(ld, d, fc, p.units[fnInfer], f, folders)
			if err != nil {
				return err
			}
			if src != nil {
				l.rows[f.Name] = src
			}
		}
	}
	return l.checkVocab()
}

// openTable opens the source of one input; nil when it needs no side file.
func (l *linked) openTable(ld *loader, d dialect, fc linkFacts, u *unit, f *coreml.Feature, folders []string) (rowSource, error) {
	width := lastDim(f)
	vocab, _ := ld.pkg.Params.Int("vocab_size")
	if vocab < 0 {
		vocab = 0
	}
	switch f.Name {
	case inHidden:
		return openQuant(ld.pkg, "embed_tokens", vocab, width, factor(ld, "embed_scale", "hidden_size", float64(width)), folders)
	case "per_layer_raw":
		return openQuant(ld.pkg, "embed_tokens_per_layer", vocab, width, factor(ld, "per_layer_embed_scale", "per_layer_dim", 256), folders)
	case inHiddenIn:
		t, err := openTable(ld.pkg, "embed_weight.bin", folders...)
		if err != nil {
			return nil, err
		}
		return halfRows{t}, closing(t, t.shape(vocab, width, 2))
	case "cos_s", "sin_s", "cos_f", "sin_f":
		t, err := openTable(ld.pkg, rotaryTables[f.Name], folders...)
		if err != nil {
			return nil, err
		}
		return halfRows{t}, closing(t, t.npy(fc.context, width))
	case "cos", "sin":
		if width <= 0 || width%2 != 0 || width > 1<<16 {
			return nil, diag.Errorf(u.pos(), diag.Unsupported, "input %s has %d columns, want an even number", f.Name, width)
		}
		fn := math.Cos
		if f.Name == "sin" {
			fn = math.Sin
		}
		return newRotary(fn, width, fc.context, rotaryBase(ld.pkg, d.theta)), nil
	}
	return nil, nil
}

// closing closes t when err is set.
func closing(t *table, err error) error {
	if err != nil {
		err = errors.Join(err, t.close())
	}
	return err
}

// openQuant opens NAME_q8.bin and NAME_scales.bin.
func openQuant(pkg *manifest.Package, name string, vocab, width int, factor float64, folders []string) (rowSource, error) {
	q, err := openTable(pkg, name+"_q8.bin", folders...)
	if err != nil {
		return nil, err
	}
	if err := closing(q, q.shape(vocab, width, 1)); err != nil {
		return nil, err
	}
	s, err := openTable(pkg, name+"_scales.bin", folders...)
	if err != nil {
		return nil, closing(q, err)
	}
	src := quantRows{q: q, scales: s, factor: float32(factor)}
	if err := s.shape(q.rows, 1, 2); err != nil {
		return nil, errors.Join(err, src.Close())
	}
	return src, nil
}

// factor is what the rows of a table are multiplied with: the claim, or the
// root of the dimension it is made from in every known converter.
func factor(ld *loader, key, dim string, width float64) float64 {
	if v, ok := ld.pkg.Params.Get(key).Float(); ok && v > 0 && v <= math.MaxFloat32 {
		return v
	}
	if n, ok := ld.pkg.Params.Int(dim); ok && n > 0 {
		width = float64(n)
	}
	ld.opts.Logger.Warn("model_config.json does not tell the scale of a table; the root of its dimension is used", "key", key, "scale", math.Sqrt(width))
	return math.Sqrt(width)
}

// checkVocab makes sure that every token of the head has an embedding.
func (l *linked) checkVocab() error {
	for _, name := range []string{inHidden, inHiddenIn, "per_layer_raw"} {
		src := l.rows[name]
		if src == nil {
			continue
		}
		rows, _ := src.dims()
		if l.reader.vocab == 0 {
			l.reader.vocab = rows
		}
		if rows < l.reader.vocab {
			u := l.chunks[0].units[fnInfer]
			return diag.Errorf(u.pos(), diag.Mismatch, "the table of input %s has %d rows, the head %d tokens", name, rows, l.reader.vocab)
		}
	}
	return nil
}

// rotaryBase reads rope_theta from the model's config.json, where a package
// has one: the programs do not hold it.
func rotaryBase(pkg *manifest.Package, otherwise float64) float64 {
	if otherwise <= 0 {
		otherwise = 1e4
	}
	name := pkg.Tokenizer.ModelConfig
	if name == "" {
		name = path.Join("hf_model", "config.json")
	}
	if f := pkg.File(name); f == nil || f.Bytes > 1<<20 {
		return otherwise
	}
	data, err := fs.ReadFile(pkg.FS, name)
	if err != nil {
		return otherwise
	}
	type rope struct {
		Theta  float64 `json:"rope_theta"`
		Params struct {
			Theta float64 `json:"rope_theta"`
		} `json:"rope_parameters"`
	}
	var c struct {
		rope
		Text rope `json:"text_config"`
	}
	if json.Unmarshal(data, &c) != nil {
		return otherwise
	}
	for _, v := range []float64{c.Text.Params.Theta, c.Text.Theta, c.Params.Theta, c.Theta} {
		if v > 1 && v <= 1e12 {
			return v
		}
	}
	return otherwise
}
