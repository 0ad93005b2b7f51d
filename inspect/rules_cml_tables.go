package inspect

import (
	"encoding/json"
	"strconv"

	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/coreml/tensor"
)

// sideZero reports a side file that holds nothing but zeros.
func (p *Pass) sideZero(name string) bool {
	data := p.readSide(name, maxSideRead)
	for _, b := range data {
		if b != 0 {
			return false
		}
	}
	if len(data) == 0 {
		return false
	}
	p.Report(diag.AtOffset(name, 0), "the first %d bytes are all zero: the file has no content", len(data)).Compare("zeros", "a table").Fix("fetch or make the file again")
	return true
}

// sideHalves reports fp16 numbers of a side file that are not finite, and a
// file of zeros.
func (p *Pass) sideHalves(name string) {
	if p.sideZero(name) {
		return
	}
	data := p.readSide(name, maxSideRead)
	bad, first := 0, -1
	for i := 0; i+1 < len(data); i += 2 {
		if data[i+1]&0x7c == 0x7c { // all bits of the exponent: infinite or NaN
			if bad++; first < 0 {
				first = i
			}
		}
	}
	if bad == 0 {
		return
	}
	v := tensor.F16ToF32(uint16(data[first]) | uint16(data[first+1])<<8)
	p.Report(diag.AtOffset(name, int64(first)), "%d of %d fp16 numbers are not finite, the first one, number %d, is %g", bad, len(data)/2, first/2, v).
		Compare(strconv.FormatFloat(float64(v), 'g', -1, 32), "a finite number").Fix("fetch or make the file again")
}

// headMeta compares head_meta.json, which the converter of Qwen3.5 writes,
// with the programs (measured-defects.md).
func (p *Pass) headMeta(name string) {
	var m struct {
		Vocab  *int `json:"vocab_size"`
		Hidden *int `json:"hidden_size"`
	}
	if err := json.Unmarshal(p.readSide(name, 1<<20), &m); err != nil {
		p.Report(diag.In(name), "the file is not readable: %v", err).As(Warning).Compare("not readable", "JSON")
		return
	}
	for _, c := range []struct {
		key  string
		have *int
		want number
	}{{"vocab_size", m.Vocab, p.facts.vocab}, {"hidden_size", m.Hidden, p.facts.hidden}} {
		if c.have != nil && c.want.n > 0 && *c.have != c.want.n {
			p.Report(diag.In(name), "%s is %d, %s has %d", c.key, *c.have, c.want.source, c.want.n).As(Warning).Compare(*c.have, c.want.n).Also(c.want.pos).Fix("write \"%s\": %d", c.key, c.want.n)
		}
	}
}
