package tensor

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// maxNPYHeader bounds the text header of a .npy file; real ones are padded to
// 128 bytes or little more.
const maxNPYHeader = 1 << 16

const npyMagic = "\x93NUMPY"

// npyTypes maps a descr without its byte order.
var npyTypes = map[string]DType{
	"f2": FP16, "f4": FP32, "f8": FP64, "i1": Int8, "i2": Int16, "i4": Int32, "i8": Int64,
	"u1": UInt8, "u2": UInt16, "u4": UInt32, "u8": UInt64, "b1": Bool,
}

// ReadNPY reads a .npy file (NumPy format versions 1 to 3, numpy/lib/format.py)
// of little-endian numbers or bools in C order. Fortran order, big-endian data
// and other element types are errors that say so. It reads no further than the
// data.
func ReadNPY(r io.Reader) (*Tensor, error) {
	t, err := ReadNPYHeader(r)
	if err != nil {
		return nil, err
	}
	want := t.DType.ByteSize(int64(Count(t.Shape)))
	// The buffer grows with what arrives, so that a false shape costs nothing.
	if t.Data, err = io.ReadAll(io.LimitReader(r, want)); err != nil {
		return nil, fmt.Errorf("npy: the data: %w", err)
	}
	if int64(len(t.Data)) != want {
		return nil, fmt.Errorf("npy: %d bytes of data, want %d for %s %s", len(t.Data), want, t.DType, ShapeString(t.Shape))
	}
	if t.DType == Bool {
		for i, b := range t.Data {
			if b > 1 {
				t.Data[i] = 1
			}
		}
	}
	return t, nil
}

// ReadNPYHeader reads the header only, by the rules of ReadNPY, and leaves r
// at the first byte of the data. The tensor has a type and a shape, but no
// data.
func ReadNPYHeader(r io.Reader) (*Tensor, error) {
	var head [8]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, fmt.Errorf("npy: the magic: %w", noEOF(err))
	}
	if string(head[:6]) != npyMagic {
		return nil, fmt.Errorf("npy: magic is %q, want %q", head[:6], npyMagic)
	}
	sizeLen := 4
	if head[6] == 1 {
		sizeLen = 2
	} else if head[6] > 3 || head[6] == 0 {
		return nil, fmt.Errorf("npy: format version is %d.%d, want 1 to 3", head[6], head[7])
	}
	size := make([]byte, 4)
	if _, err := io.ReadFull(r, size[:sizeLen]); err != nil {
		return nil, fmt.Errorf("npy: the header length: %w", noEOF(err))
	}
	n := binary.LittleEndian.Uint32(size)
	if n > maxNPYHeader {
		return nil, fmt.Errorf("npy: header of %d bytes, the limit is %d", n, maxNPYHeader)
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(r, text); err != nil {
		return nil, fmt.Errorf("npy: the header: %w", noEOF(err))
	}
	t, err := parseNPYHeader(string(text))
	if err != nil {
		return nil, fmt.Errorf("npy: %w", err)
	}
	return t, nil
}

func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// parseNPYHeader reads the Python dict
// {'descr': '<f4', 'fortran_order': False, 'shape': (1, 2), }.
func parseNPYHeader(s string) (*Tensor, error) {
	p := npyHeader{rest: strings.TrimSpace(s)}
	t := &Tensor{}
	seen := map[string]bool{}
	fortran := false
	p.expect("{")
	for p.err == nil && !p.skip("}") {
		key := p.quoted()
		p.expect(":")
		if seen[key] {
			return nil, fmt.Errorf("header has %q twice", key)
		}
		seen[key] = true
		switch key {
		case "descr":
			t.DType = p.dtype()
		case "fortran_order":
			fortran = p.boolean()
		case "shape":
			t.Shape = p.shape()
		default:
			return nil, fmt.Errorf("header has the key %q, want descr, fortran_order and shape", key)
		}
		if !p.skip(",") && p.err == nil && !strings.HasPrefix(p.rest, "}") {
			p.fail(`"," or "}"`)
		}
	}
	switch {
	case p.err != nil:
		return nil, p.err
	case len(seen) != 3:
		return nil, fmt.Errorf("header %q lacks descr, fortran_order or shape", strings.TrimSpace(s))
	case fortran && len(t.Shape) > 1:
		return nil, errors.New("the data is in Fortran order, want C order (numpy.ascontiguousarray)")
	}
	_, err := NumElements(t.Shape)
	return t, err
}

type npyHeader struct {
	rest string
	err  error
}

func (p *npyHeader) fail(want string) {
	if p.err == nil {
		p.err = fmt.Errorf("header at %.20q: want %s", p.rest, want)
	}
}

func (p *npyHeader) skip(s string) bool {
	rest, ok := strings.CutPrefix(p.rest, s)
	if ok {
		p.rest = strings.TrimLeft(rest, " \t\r\n")
	}
	return ok
}

func (p *npyHeader) expect(s string) {
	if !p.skip(s) {
		p.fail(strconv.Quote(s))
	}
}

func (p *npyHeader) quoted() string {
	if p.rest == "" || p.rest[0] != '\'' && p.rest[0] != '"' {
		p.fail("a quoted string")
		return ""
	}
	end := strings.IndexByte(p.rest[1:], p.rest[0])
	if end < 0 {
		p.fail("a closing quote")
		return ""
	}
	s := p.rest[1 : 1+end]
	p.skip(p.rest[:end+2])
	return s
}

func (p *npyHeader) dtype() DType {
	if strings.HasPrefix(p.rest, "[") {
		p.err = errors.New("structured arrays are not supported, want plain numbers")
		return Invalid
	}
	descr := p.quoted()
	if p.err != nil {
		return Invalid
	}
	order, name := byte('|'), descr
	if descr != "" && strings.IndexByte("<>|=", descr[0]) >= 0 {
		order, name = descr[0], descr[1:]
	}
	d, ok := npyTypes[name]
	switch {
	case !ok:
		p.err = fmt.Errorf("element type %q is not supported; f2 f4 f8 i1 i2 i4 i8 u1 u2 u4 u8 and b1 are", descr)
	case order == '>' && d.Bits() > 8:
		p.err = fmt.Errorf("the data is big endian (%q), want little endian", descr)
	}
	return d
}

func (p *npyHeader) boolean() bool {
	switch {
	case p.skip("True"):
		return true
	case !p.skip("False"):
		p.fail("True or False")
	}
	return false
}

func (p *npyHeader) shape() []int {
	shape := []int{}
	p.expect("(")
	for p.err == nil && !p.skip(")") {
		i := 0
		for i < len(p.rest) && p.rest[i] >= '0' && p.rest[i] <= '9' {
			i++
		}
		n, err := strconv.Atoi(p.rest[:i])
		if err != nil || len(shape) == MaxRank {
			p.fail(fmt.Sprintf("up to %d dimensions", MaxRank))
			return nil
		}
		p.skip(p.rest[:i])
		shape = append(shape, n)
		p.skip("L") // Python 2
		if !p.skip(",") && !strings.HasPrefix(p.rest, ")") {
			p.fail(`"," or ")"`)
		}
	}
	return shape
}

// WriteNPY writes t as a .npy file of format version 1.0. BF16 and other
// types that NumPy lacks are an error.
func WriteNPY(w io.Writer, t *Tensor) error {
	if err := t.Check(); err != nil {
		return err
	}
	name := ""
	for s, d := range npyTypes {
		if d == t.DType {
			name = s
		}
	}
	if name == "" {
		return fmt.Errorf("npy: element type %s has no NumPy form", t.DType)
	}
	order := "<"
	if t.DType.Bits() == 8 {
		order = "|"
	}
	var shape strings.Builder
	for i, d := range t.Shape {
		if i > 0 {
			shape.WriteByte(' ')
		}
		fmt.Fprintf(&shape, "%d,", d)
	}
	dims := shape.String()
	if len(t.Shape) > 1 {
		dims = strings.TrimSuffix(dims, ",")
	}
	head := fmt.Sprintf("{'descr': '%s%s', 'fortran_order': False, 'shape': (%s), }", order, name, dims)
	// Magic, version, length, header and a new line fill blocks of 64 bytes.
	const fixed = len(npyMagic) + 2 + 2
	pad := -(fixed + len(head) + 1) & 63
	head += strings.Repeat(" ", pad) + "\n"
	out := append([]byte(npyMagic), 1, 0)
	out = binary.LittleEndian.AppendUint16(out, uint16(len(head)))
	out = append(out, head...)
	if _, err := w.Write(out); err != nil {
		return err
	}
	_, err := w.Write(t.Data)
	return err
}
