package inspect

import (
	"fmt"
	"slices"
	"strings"

	"github.com/anepkg/anepkg/coreml/blob"
	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/coreml/mil"
	"github.com/anepkg/anepkg/coreml/tensor"
	"github.com/anepkg/anepkg/manifest"
)

// checkAlignment: records lie at multiples of 64.
func checkAlignment(p *Pass) {
	p.eachWeightFile(func(w *weightFile, _ *manifest.File) {
		n := 0
		for i, u := range w.uses {
			if u.ref.Offset%blob.Alignment == 0 && u.ref.Offset >= blob.HeaderSize || i > 0 && w.uses[i-1].ref.Offset == u.ref.Offset {
				continue
			}
			if n++; n <= maxRecordFindings {
				p.Report(blobPos(w.part, u), "the blob at offset %d does not begin at a multiple of %d after the header", u.ref.Offset, blob.Alignment).Compare(u.ref.Offset, blob.Align(int64(min(u.ref.Offset, 1<<60)))).
					Fix("convert the part again; the program was edited or damaged")
			}
		}
	})
}

// checkGaps: bytes between blobs that no constant reads.
func checkGaps(p *Pass) {
	p.eachWeightFile(func(w *weightFile, f *manifest.File) {
		if f == nil || f.Status != manifest.FileOK {
			p.Skip("a weight file is missing or a stub")
			return
		}
		end, gaps, lost, first := int64(blob.HeaderSize), 0, int64(0), int64(0)
		for _, u := range w.uses {
			n := u.payload()
			if n < 0 || u.ref.Offset > 1<<60 {
				return
			}
			if at := int64(u.ref.Offset); at > end {
				if gaps++; gaps == 1 {
					first = end
				}
				lost += at - end
			}
			end = max(end, blob.Align(int64(u.ref.Offset)+blob.HeaderSize+n))
		}
		if gaps > 0 {
			p.Report(diag.AtOffset(w.name, first), "%s in %s of the file are read by no constant", Bytes(lost), plural(gaps, "place")).Compare(lost, 0).
				Fix("convert again; weights of removed layers or functions were left in the file")
		}
	})
}

// checkFinite: NaN anywhere, and infinities other than the -inf of a mask.
func checkFinite(p *Pass) {
	n := map[*partView]int{}
	p.eachScan(func(pt *partView, s *scanned) {
		inf := s.inf
		if s.op.Type != "const" {
			inf += s.negInf
		}
		if s.nan+inf == 0 {
			return
		}
		if n[pt]++; n[pt] > maxRecordFindings {
			return
		}
		f := p.Report(blobPos(pt, s.blobUse), "%s has %s and %s infinities in %d elements", s.what(), plural(s.nan, "NaN"), fmt.Sprint(inf), s.n).Compare(s.nan+inf, 0).
			Fix("convert the part again; a damaged checkpoint or a division by zero in the quantizer makes them")
		if s.nan == 0 && s.op.Type == "const" {
			f.As(Warning)
		}
	})
}

// checkZeros: whole matrices, tables or scales of zeros.
func checkZeros(p *Pass) {
	n := map[*partView]int{}
	p.eachScan(func(pt *partView, s *scanned) {
		if s.zero != s.n || s.n < 2 || s.op.Type == "const" && !s.matrix(pt) {
			return // biases, masks and paddings of zeros are common
		}
		if n[pt]++; n[pt] <= maxRecordFindings {
			p.Report(blobPos(pt, s.blobUse), "%s is zero in all %d elements", s.what(), s.n).Compare("all zero", "weights").
				Fix("convert the part again; the checkpoint's tensor may not have been loaded")
		}
	})
}

// matrix reports whether the constant is the weight of a projection or a
// look-up table.
func (s *scanned) matrix(pt *partView) bool {
	if longAxes(s.value.Type.Shape) < 2 || len(s.op.Outputs) == 0 {
		return false
	}
	name := s.op.Outputs[0].Name
	for _, op := range pt.program(s.fn.Name).ops {
		switch op.Type {
		case "conv", "linear", "conv_transpose":
			if ref(op, "weight") == name {
				return true
			}
		case "gather":
			if ref(op, "x") == name {
				return true
			}
		case "matmul":
			if ref(op, "y") == name || ref(op, "x") == name {
				return true
			}
		}
	}
	return false
}

func longAxes(shape []int) int {
	n := 0
	for _, d := range shape {
		if d > 1 {
			n++
		}
	}
	return n
}

// checkZeroScales: single zero scales, which divide by zero when made.
func checkZeroScales(p *Pass) {
	n := map[*partView]int{}
	p.eachScan(func(pt *partView, s *scanned) {
		if s.operand != "scale" || s.zero == 0 || s.zero == s.n {
			return
		}
		if n[pt]++; n[pt] <= maxRecordFindings {
			p.Report(blobPos(pt, s.blobUse), "%d of %d scales of %s are zero: the rows they scale are lost", s.zero, s.n, s.op.Outputs[0].Name).Compare(s.zero, 0)
		}
	})
}

// checkSubnormal: palettes and scales below fp16's normal range.
func checkSubnormal(p *Pass) {
	count := map[*partView]int{}
	first := map[*partView]*scanned{}
	p.eachScan(func(pt *partView, s *scanned) {
		if s.op.Type == "const" || s.value.Type.DType != tensor.FP16 || s.subnormal == 0 || 2*s.subnormal < s.n {
			return
		}
		if count[pt]++; first[pt] == nil {
			first[pt] = s
		}
	})
	for _, pt := range p.usable() {
		if s := first[pt]; s != nil {
			p.Report(blobPos(pt, s.blobUse), "%s of %s with mostly subnormal fp16 values, first %s (%d of %d): the Neural Engine takes them for zero", plural(count[pt], "table or scale"), pt.label(), s.what(), s.subnormal, s.n).
				On("ane").Compare(s.subnormal, 0).Fix("scale the weight up and its result down")
		}
	}
}

// checkPalettes: tables that repeat entries waste their bits.
func checkPalettes(p *Pass) {
	some := false
	for _, pt := range p.usable() {
		tables, poor := 0, 0
		var first *mil.Op
		for _, u := range lutUses(pt) {
			f := p.pkg.File(resolveBlob(pt, u.ref.Path))
			if f == nil || f.Status != manifest.FileOK {
				continue
			}
			data, err := pt.model.Weights.Data(u.ref)
			if err != nil {
				continue
			}
			some = true
			n, bad := repeated(u.value.Type, data)
			tables += n
			if poor += bad; bad > 0 && first == nil {
				first = u.op
			}
		}
		if poor > 0 {
			p.Report(pt.position(first.Pos), "%d of %d tables of %s use at most half of their entries (first: %s)", poor, tables, pt.label(), first.Outputs[0].Name).Compare(poor, 0).
				Fix("use fewer bits or larger groups: the same values in less room")
		}
	}
	if !some {
		p.Skip("no palette can be read")
	}
}

// lutUses are the tables of ios18 palettes, each blob once.
func lutUses(pt *partView) []blobUse {
	seen := map[weightKey]bool{}
	var out []blobUse
	for _, fn := range pt.model.Program.Functions {
		for _, u := range blobUses(fn) {
			key := weightKey{u.ref.Path, u.ref.Offset}
			if u.op.Type == "constexpr_lut_to_dense" && operandOf(u) == "lut" && !seen[key] {
				seen[key] = true
				out = append(out, u)
			}
		}
	}
	return out
}

// repeated counts the tables of a lut [groups..., entries, vector] and those
// with at most half as many different entries.
func repeated(t mil.Type, data []byte) (tables, poor int) {
	size, entries, width := t.DType.Bits()/8, 0, 0
	if n := len(t.Shape); n >= 3 {
		entries, width = t.Shape[n-2], t.Shape[n-1]*size
	} else if n == 1 {
		entries, width = t.Shape[0], size
	}
	if entries < 4 || width <= 0 || size == 0 {
		return 0, 0
	}
	values := make([]string, entries)
	for ; len(data) >= entries*width; data = data[entries*width:] {
		tables++
		row := string(data[:entries*width])
		for i := range values {
			values[i] = row[i*width : (i+1)*width]
		}
		slices.Sort(values)
		distinct := 1
		for i := 1; i < entries; i++ {
			if values[i] != values[i-1] {
				distinct++
			}
		}
		if 2*distinct <= entries {
			poor++
		}
	}
	return tables, poor
}

// checkSharing: functions of one model that keep weights of their own.
func checkSharing(p *Pass) {
	for _, pt := range p.usable() {
		if len(pt.model.Functions) < 2 {
			continue
		}
		byFn := map[string]int64{}
		shared := map[string]int64{}
		var total int64
		for _, w := range pt.weights {
			total += w.Bytes
			for _, f := range w.Functions {
				byFn[f] += w.Bytes
				if len(w.Functions) > 1 {
					shared[f] += w.Bytes
				}
			}
		}
		var alone []string
		var lost int64
		for _, f := range pt.model.Functions {
			if n := byFn[f.Name]; n > 1<<16 && shared[f.Name] < n/2 {
				alone = append(alone, f.Name)
				lost += n - shared[f.Name]
			}
		}
		if len(alone) > 1 {
			slices.Sort(alone)
			p.Report(diag.In(pt.model.ProgramFile), "functions %s of %s share less than half of their weights: %s of %s are stored for one function only", strings.Join(alone, " and "), pt.label(), Bytes(lost), Bytes(total)).
				Compare(lost, 0).Fix("combine the functions with coremltools' save_multifunction, which stores equal weights once")
		}
	}
}

// checkTaps: convolutions whose leading or trailing taps are zero in every
// channel.
func checkTaps(p *Pass) {
	some := false
	for _, pt := range p.usable() {
		for _, f := range pt.model.Program.Functions {
			ix := pt.program(f.Name)
			for _, op := range ix.ops {
				w := ix.operand(op, "weight")
				if op.Type != "conv" || w == nil || w.Blob == nil || w.Type.DType != tensor.FP16 || len(w.Type.Shape) < 3 {
					continue
				}
				taps := w.Type.Shape[len(w.Type.Shape)-1]
				if taps < 2 {
					continue
				}
				data, err := pt.model.Weights.Data(w.Blob)
				if err != nil {
					continue
				}
				some = true
				if zero := zeroTaps(data, taps); zero > 0 && zero < taps {
					p.Report(pt.position(op.Pos), "function %s of %s: %d of the %d taps of conv %s are zero in every channel", f.Name, pt.label(), zero, taps, op.Outputs[0].Name).
						Compare(zero, 0).Fix("convert with a kernel of %d: padding with zeros made LFM2 repeat one word in fp16", taps-zero)
				}
			}
		}
	}
	if !some {
		p.Skip("no convolution with several taps has readable weights")
	}
}

// zeroTaps counts the columns of fp16 rows that are zero in every row.
func zeroTaps(data []byte, taps int) int {
	zero := make([]bool, taps)
	for i := range zero {
		zero[i] = true
	}
	for i := 0; i+1 < len(data); i += 2 {
		if data[i] != 0 || data[i+1]&0x7f != 0 {
			zero[i/2%taps] = false
		}
	}
	n := 0
	for _, z := range zero {
		if z {
			n++
		}
	}
	return n
}
