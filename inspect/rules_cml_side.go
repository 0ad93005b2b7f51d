package inspect

import (
	"io"
	"io/fs"
	"math"
	"path"
	"strconv"
	"strings"

	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/coreml/tensor"
	"github.com/anepkg/anepkg/manifest"
)

// checkSideValues reads the beginnings of CoreML-LLM's side files: scales are
// positive and finite, position tables begin with an angle of zero.
func checkSideValues(p *Pass) {
	some := false
	for _, f := range p.pkg.Files {
		base := path.Base(f.Path)
		if f.Status != manifest.FileOK {
			continue
		}
		switch {
		case strings.HasSuffix(base, "_scales.bin"):
			some = true
			if !p.sideZero(f.Path) {
				p.sideScales(f.Path)
			}
		case strings.HasSuffix(base, ".npy") && (strings.HasPrefix(base, "cos_") || strings.HasPrefix(base, "sin_")):
			some = true
			p.firstAngles(f.Path, strings.HasPrefix(base, "cos_"))
		case base == "embed_tokens_q8.bin":
			some = true
			if n, ok := p.pkg.Params.Int("hidden_size"); ok && !p.sideZero(f.Path) {
				p.sideRows(&f, n)
			}
		case base == "embed_tokens_per_layer_q8.bin":
			some = true
			l, ok1 := p.pkg.Params.Int("num_layers")
			if d, ok2 := p.pkg.Params.Int("per_layer_dim"); ok1 && ok2 && !p.sideZero(f.Path) {
				p.sideRows(&f, l*d)
			}
		case base == "per_layer_projection.bin" || base == "embed_weight.bin" || base == "final_norm.bin":
			some = true
			if base != "final_norm.bin" || f.Bytes == 2*int64(p.facts.hidden.n) {
				p.sideHalves(f.Path)
			}
		case base == "head_meta.json":
			some = true
			p.headMeta(f.Path)
		case base == normWeights:
			some = true
			n, ok := p.pkg.Params.Int("per_layer_dim")
			if ok && f.Bytes == int64(2*n) {
				p.sideHalves(f.Path)
			}
			if ok && n > 0 && f.Bytes == int64(2*n) {
				p.Report(diag.In(f.Path), "%d bytes hold %d fp16 numbers; the runtime reads float32", f.Bytes, n).Compare(f.Bytes, 4*n).As(Warning).On(coremlLLM).Fix("write the weights as float32")
			}
		}
	}
	if !some {
		p.Skip("no side files")
	}
}

// maxSideRead bounds what is read of a side file.
const maxSideRead = 64 << 20

func (p *Pass) readSide(name string, limit int64) []byte {
	f, err := p.pkg.FS.Open(name)
	if err != nil {
		p.Skip("%s cannot be read", name)
		return nil
	}
	defer func(f fs.File) { _ = f.Close() }(f)
	data, err := io.ReadAll(io.LimitReader(f, limit))
	if err != nil {
		p.Skip("%s cannot be read", name)
	}
	return data
}

func (p *Pass) sideScales(name string) {
	data := p.readSide(name, maxSideRead)
	for i := 0; i+1 < len(data); i += 2 {
		v := tensor.F16ToF32(uint16(data[i]) | uint16(data[i+1])<<8)
		if v > 0 && !math.IsInf(float64(v), 0) {
			continue
		}
		f := p.Report(diag.AtOffset(name, int64(i)), "scale %d is %g, want a positive number", i/2, v).Compare(v, "> 0").Fix("make the table again")
		if v == 0 {
			f.As(Note) // rows of zeros, such as unused ids
			f.Message = "scale " + strconv.Itoa(i/2) + " is zero: the row is empty"
		}
		f.Got = strconv.FormatFloat(float64(v), 'g', -1, 32)
		return
	}
}

// firstAngles checks row 0 of a table, whose angle is zero.
func (p *Pass) firstAngles(name string, cosine bool) {
	t, err := tensor.ReadNPYHeader(strings.NewReader(string(p.readSide(name, 1<<12))))
	if err != nil {
		p.Report(diag.In(name), "not a NumPy file of numbers: %v", err).Compare("not readable", "an fp16 table")
		return
	}
	if t.DType != tensor.FP16 || len(t.Shape) < 2 {
		p.Report(diag.In(name), "the table is %s %s; the runtime reads two dimensions of fp16", t.DType.Long(), tensor.ShapeString(t.Shape)).Compare(t.DType.Long(), "float16")
		return
	}
	width := t.Shape[len(t.Shape)-1]
	if width <= 0 || width > 1<<16 {
		return
	}
	data := p.readSide(name, int64(128+2*width))
	if len(data) < 128+2*width {
		return
	}
	want := float32(0)
	if cosine {
		want = 1
	}
	for i := range width {
		v := tensor.F16ToF32(uint16(data[128+2*i]) | uint16(data[129+2*i])<<8)
		if v != want {
			p.Report(diag.AtOffset(name, int64(128+2*i)), "element %d of row 0 is %g, want %g: position 0 has the angle 0", i, v, want).Compare(v, want).Fix("make the table again")
			return
		}
	}
	p.secondAngle(name, cosine, width)
}

// secondAngle: the first frequency turns by one radian for each position,
// whatever theta is.
func (p *Pass) secondAngle(name string, cosine bool, width int) {
	at := 128 + 2*width
	data := p.readSide(name, int64(at+2))
	if len(data) < at+2 {
		return
	}
	want := math.Sin(1)
	if cosine {
		want = math.Cos(1)
	}
	if v := tensor.F16ToF32(uint16(data[at]) | uint16(data[at+1])<<8); math.Abs(float64(v)-want) > 2e-3 {
		p.Report(diag.AtOffset(name, int64(at)), "element 0 of row 1 is %g, want %.4f: the first frequency turns by one radian for each position", v, want).Compare(v, want).Fix("make the table again")
	}
}

// sideRows samples the rows of an int8 table: a scale is its row's largest
// magnitude, so that a row that is not empty reaches 127.
func (p *Pass) sideRows(f *manifest.File, width int) {
	const rows = 64
	if width <= 0 || f.Bytes%int64(width) != 0 || width > 1<<20 {
		return
	}
	data := p.readSide(f.Path, int64(rows*width))
	for i := 0; (i+1)*width <= len(data); i++ {
		most := 0
		for _, b := range data[i*width : (i+1)*width] {
			most = max(most, int(int8(b)), -int(int8(b)))
		}
		if most != 0 && most != 127 {
			p.Report(diag.AtOffset(f.Path, int64(i*width)), "the largest magnitude of row %d is %d, want 127: the runtime multiplies by scale/127, the scale being the row's maximum", i, most).As(Warning).On(coremlLLM).
				Compare(most, 127).Fix("make the table again with the converter")
			return
		}
	}
}

// checkFullRoPE: Gemma 4's full-attention layers rotate a quarter of their
// frequencies; the converter's tables rotate all.
func checkFullRoPE(p *Pass) {
	if !strings.HasPrefix(p.pkg.Architecture, "gemma4") {
		p.Skip("not a Gemma 4 package")
		return
	}
	some := false
	for _, f := range p.pkg.Files {
		if path.Base(f.Path) != "sin_full.npy" || f.Status != manifest.FileOK {
			continue
		}
		data := p.readSide(f.Path, maxSideRead)
		t, err := tensor.ReadNPYHeader(strings.NewReader(string(data[:min(len(data), 1<<12)])))
		if err != nil || t.DType != tensor.FP16 || len(t.Shape) < 2 {
			continue
		}
		some = true
		width := t.Shape[len(t.Shape)-1]
		if width < 8 || width > 1<<16 || len(data) < 128+2*width {
			continue
		}
		last := data[128+(len(data)-128)/(2*width)*2*width-2*width:][:2*width] // the largest position
		for i := width / 8; i < width/2; i++ {
			if v := tensor.F16ToF32(uint16(last[2*i]) | uint16(last[2*i+1])<<8); v != 0 {
				p.Report(diag.AtOffset(f.Path, 0), "the table rotates all %d frequencies of the full-attention layers, transformers the first %d: cosine 0.9997 measured on a small model, 0.85 with sharper attention", width/2, width/8).
					Compare(width/2, width/8).Fix("set the angles of the other frequencies to zero: cos 1, sin 0")
				return
			}
		}
	}
	if !some {
		p.Skip("no table for the full-attention layers")
	}
}
