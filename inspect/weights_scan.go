package inspect

import (
	"encoding/binary"
	"math"

	"github.com/anepkg/anepkg/coreml/tensor"
	"github.com/anepkg/anepkg/manifest"
)

// tally counts what is unusual in the numbers of a blob.
type tally struct {
	nan, inf, negInf, zero, subnormal, n int
}

// tallyFloats looks at every element of a float blob. Four fp16 numbers are
// looked at in one step.
func tallyFloats(d tensor.DType, data []byte) tally {
	var t tally
	le := binary.LittleEndian
	switch d {
	case tensor.FP16:
		t.n = len(data) / 2
		for len(data) >= 8 {
			x := le.Uint64(data)
			if ordinaryF16(x) {
				data = data[8:]
				continue
			}
			for k := range 4 {
				t.half(uint16(x >> (16 * k)))
			}
			data = data[8:]
		}
		for ; len(data) >= 2; data = data[2:] {
			t.half(le.Uint16(data))
		}
	case tensor.FP32:
		t.n = len(data) / 4
		for ; len(data) >= 4; data = data[4:] {
			bits := le.Uint32(data)
			exp, frac := bits>>23&0xff, bits&0x7fffff
			t.count(exp == 0xff, exp == 0, frac != 0, bits>>31 != 0)
		}
	}
	return t
}

// ordinaryF16 reports whether all four fp16 numbers in x have an exponent
// that is neither all zeros nor all ones.
func ordinaryF16(x uint64) bool {
	const exp, low = 0x7c007c007c007c00, 0x0400040004000400
	e := x & exp
	top := e + low // a full exponent carries into its sign bit
	if top&0x8000800080008000 != 0 {
		return false
	}
	below := (e | 0x8000800080008000) - low // an empty one borrows from it
	return below&0x8000800080008000 == 0x8000800080008000
}

func (t *tally) half(h uint16) {
	exp, frac := h>>10&0x1f, h&0x3ff
	t.count(exp == 0x1f, exp == 0, frac != 0, h>>15 != 0)
}

func (t *tally) count(full, empty, frac, negative bool) {
	switch {
	case full && frac:
		t.nan++
	case full && negative:
		t.negInf++
	case full:
		t.inf++
	case empty && frac:
		t.subnormal++
	case empty:
		t.zero++
	}
}

// scanned is a float blob with its tally.
type scanned struct {
	blobUse
	operand string
	tally
}

// scan tallies the float blobs of the part's weight files once each.
func (v *view) scan(pt *partView) []scanned {
	if pt.scannedAll {
		return pt.scans
	}
	pt.scannedAll = true
	for _, w := range weightFiles(pt) {
		f := v.pkg.File(w.name)
		if w.name == "" || f == nil || f.Status != manifest.FileOK {
			continue
		}
		last := uint64(math.MaxUint64)
		for _, u := range w.uses {
			if d := u.value.Type.DType; u.ref.Offset == last || d != tensor.FP16 && d != tensor.FP32 {
				continue
			}
			last = u.ref.Offset
			data, err := pt.model.Weights.Data(u.ref)
			if err != nil {
				continue // the rules of records report it
			}
			pt.scans = append(pt.scans, scanned{u, operandOf(u), tallyFloats(u.value.Type.DType, data)})
		}
	}
	return pt.scans
}

// operandOf names the operand of its op that a blob is.
func operandOf(u blobUse) string {
	for i := range u.op.Args {
		for _, b := range u.op.Args[i].Bindings {
			if b.Value == u.value {
				return u.op.Args[i].Name
			}
		}
	}
	for i := range u.op.Attrs {
		if u.op.Attrs[i].Value == u.value {
			return u.op.Attrs[i].Name
		}
	}
	return ""
}

// what names a blob in messages.
func (s *scanned) what() string {
	name := s.op.Name()
	if len(s.op.Outputs) > 0 {
		name = s.op.Outputs[0].Name
	}
	if s.operand == "" || s.operand == "val" {
		return name
	}
	return s.operand + " of " + name
}

// eachScan calls fn for the float blobs of every part in use.
func (p *Pass) eachScan(fn func(pt *partView, s *scanned)) {
	some := false
	for _, pt := range p.usable() {
		all := p.scan(pt)
		for i := range all {
			some = true
			fn(pt, &all[i])
		}
	}
	if !some {
		p.Skip("no weight file with float data can be read")
	}
}
