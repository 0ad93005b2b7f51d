package runner

import (
	"bytes"
	"encoding/binary"
	"io"
	"math"
	"path"

	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/coreml/tensor"
	"github.com/anepkg/anepkg/manifest"
)

// maxUnseekable bounds a side file that cannot be read at random (a member of
// a zip file) and so has to be kept in memory; the largest known, Gemma 4
// E4B's per-layer table, has 2.8 GB.
const maxUnseekable = 4 << 30

// table is a side file of rows, read row by row from disk (coreml-llm.md
// 3.9). Nothing of it is kept in memory.
type table struct {
	name  string // path inside the package
	r     io.ReaderAt
	size  int64 // of the file
	start int64 // offset of row 0
	rows  int
	width int // elements of a row
	elem  int // bytes of an element
	close func() error
	buf   []byte
}

// openTable opens a side file in one of the folders, the first that has it. A
// Git LFS pointer, a web page or an empty file in its place is an error that
// says so. The caller sets start, rows, width and elem.
func openTable(pkg *manifest.Package, name string, folders ...string) (*table, error) {
	for _, dir := range folders {
		p := path.Join(dir, name)
		entry := pkg.File(p)
		if entry == nil {
			continue
		}
		switch entry.Status {
		case manifest.FileLFSPointer:
			return nil, diag.Errorf(diag.In(p), diag.LFSPointer, "a Git LFS pointer stands where %d bytes should be", entry.LFSSize).WithHint("fetch the file with: git lfs pull")
		case manifest.FileHTML, manifest.FileEmpty, manifest.FilePartial:
			return nil, diag.Errorf(diag.In(p), diag.Malformed, "the side file is not complete (%s)", entry.Status).WithHint("download %s again", p)
		}
		return openReaderAt(pkg, p)
	}
	return nil, diag.Errorf(diag.In(path.Join(folders[0], name)), diag.NotFound, "the side file is missing; the decoder chunks need it").
		WithHint("copy %s next to the chunks", name)
}

func openReaderAt(pkg *manifest.Package, name string) (*table, error) {
	f, err := pkg.FS.Open(name)
	if err != nil {
		return nil, diag.Errorf(diag.In(name), diag.IO, "cannot be opened: %w", err)
	}
	info, err := f.Stat()
	if err != nil {
		_ = f.Close()
		return nil, diag.Errorf(diag.In(name), diag.IO, "cannot be read: %w", err)
	}
	if r, ok := f.(io.ReaderAt); ok {
		return &table{name: name, r: r, size: info.Size(), close: f.Close}, nil
	}
	data, err := io.ReadAll(io.LimitReader(f, maxUnseekable+1))
	_ = f.Close()
	switch {
	case err != nil:
		return nil, diag.Errorf(diag.In(name), diag.IO, "cannot be read: %w", err)
	case int64(len(data)) > maxUnseekable:
		return nil, diag.Errorf(diag.In(name), diag.TooLarge, "more than %d bytes in a file that cannot be read at random", int64(maxUnseekable))
	}
	return &table{name: name, r: bytes.NewReader(data), size: int64(len(data)), close: func() error { return nil }}, nil
}

// shape says that the file holds rows of width elements and nothing else.
// rows 0 takes as many as the file has.
func (t *table) shape(rows, width, elem int) error {
	if width <= 0 || width > math.MaxInt32 || rows < 0 || rows > math.MaxInt32 {
		return diag.Errorf(diag.In(t.name), diag.Unsupported, "a table of %d rows of %d elements", rows, width)
	}
	row := int64(width) * int64(elem)
	if rows == 0 && t.size%row == 0 && t.size/row <= math.MaxInt32 {
		rows = int(t.size / row)
	}
	if rows == 0 {
		return diag.Errorf(diag.In(t.name), diag.Mismatch, "got %d bytes, want a multiple of %d (rows of %d elements)", t.size, row, width)
	}
	if t.size != int64(rows)*row { // both factors are below 2^31 and elem is small
		return diag.Errorf(diag.In(t.name), diag.Mismatch, "got %d bytes, want %d (%d rows of %d elements)", t.size, int64(rows)*row, rows, width)
	}
	t.rows, t.width, t.elem = rows, width, elem
	return nil
}

// npy says that the file is a .npy table of fp16 rows of the given width and
// at least rows rows.
func (t *table) npy(rows, width int) error {
	counted := &countingReader{r: io.NewSectionReader(t.r, 0, t.size)}
	head, err := tensor.ReadNPYHeader(counted)
	if err != nil {
		return diag.Errorf(diag.In(t.name), diag.Malformed, "not a table of rotary angles: %w", err)
	}
	if head.DType != tensor.FP16 || len(head.Shape) != 2 || head.Shape[1] != width {
		return diag.Errorf(diag.In(t.name), diag.Mismatch, "got %s %s, want fp16 [positions, %d]", head.DType, tensor.ShapeString(head.Shape), width)
	}
	if head.Shape[0] < rows {
		return diag.Errorf(diag.In(t.name), diag.Mismatch, "got %d rows, want one for each of the %d positions", head.Shape[0], rows)
	}
	if want := counted.n + head.DType.ByteSize(int64(tensor.Count(head.Shape))); t.size != want {
		return diag.Errorf(diag.In(t.name), diag.Malformed, "got %d bytes, want %d for fp16 %s", t.size, want, tensor.ShapeString(head.Shape))
	}
	t.start, t.rows, t.width, t.elem = counted.n, head.Shape[0], width, 2
	return nil
}

// row reads row i; the bytes are valid until the next call.
func (t *table) row(i int) ([]byte, error) {
	if i < 0 || i >= t.rows {
		return nil, diag.Errorf(diag.In(t.name), diag.Usage, "row %d is asked for, the table has rows 0 to %d", i, t.rows-1)
	}
	n := t.width * t.elem
	if len(t.buf) != n {
		t.buf = make([]byte, n)
	}
	if _, err := t.r.ReadAt(t.buf, t.start+int64(i)*int64(n)); err != nil {
		return nil, diag.Errorf(diag.Pos{File: t.name, Binary: true, Offset: t.start + int64(i)*int64(n)}, diag.IO, "row %d cannot be read: %w", i, err)
	}
	return t.buf, nil
}

type countingReader struct {
	r io.Reader
	n int64
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// rowSource gives one fp16 row for each token or position.
type rowSource interface {
	// put writes row i as fp16 into dst, which has the row's length in bytes.
	put(dst []byte, i int) error
	dims() (rows, width int)
	Close() error
}

// halfRows are rows of fp16 numbers, copied as they are.
type halfRows struct{ *table }

func (h halfRows) dims() (rows, width int) { return h.rows, h.width }
func (h halfRows) Close() error            { return h.close() }
func (h halfRows) put(dst []byte, i int) error {
	row, err := h.row(i)
	copy(dst, row)
	return err
}

// quantRows are int8 rows with one fp16 scale each, the row's largest
// magnitude: fp16(int8 * (scale/127) * factor), as the writer and the runtime
// have it (coreml-llm.md 3.9).
type quantRows struct {
	q, scales *table
	factor    float32
}

func (q quantRows) dims() (rows, width int) { return q.q.rows, q.q.width }
func (q quantRows) Close() error {
	err := q.q.close()
	if e := q.scales.close(); err == nil {
		err = e
	}
	return err
}

func (q quantRows) put(dst []byte, i int) error {
	s, err := q.scales.row(i)
	if err != nil {
		return err
	}
	scale := tensor.F16ToF32(binary.LittleEndian.Uint16(s))
	if !(scale >= 0) || math.IsInf(float64(scale), 0) {
		return diag.Errorf(diag.Pos{File: q.scales.name, Binary: true, Offset: q.scales.start + 2*int64(i)}, diag.Malformed, "the scale of row %d is %v, want a finite number that is not negative", i, scale)
	}
	row, err := q.q.row(i)
	if err != nil {
		return err
	}
	step := scale / 127
	for j, b := range row {
		binary.LittleEndian.PutUint16(dst[2*j:], tensor.F32ToF16(float32(int8(b))*step*q.factor))
	}
	return nil
}

// rotary are rows of cosines or sines of rotary angles, both halves alike,
// computed in fp32 (coreml-llm.md 3.5).
type rotary struct {
	fn    func(float64) float64
	inv   []float32
	limit int
}

func newRotary(fn func(float64) float64, width, limit int, theta float64) rotary {
	inv := make([]float32, width/2)
	for i := range inv {
		inv[i] = float32(1 / math.Pow(theta, float64(2*i)/float64(width)))
	}
	return rotary{fn: fn, inv: inv, limit: limit}
}

func (r rotary) dims() (rows, width int) { return r.limit, 2 * len(r.inv) }
func (r rotary) Close() error            { return nil }

func (r rotary) put(dst []byte, i int) error {
	half := len(r.inv)
	for j, f := range r.inv {
		h := tensor.F32ToF16(float32(r.fn(float64(float32(i) * f))))
		binary.LittleEndian.PutUint16(dst[2*j:], h)
		binary.LittleEndian.PutUint16(dst[2*(half+j):], h)
	}
	return nil
}
