package coreml

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/edsrzf/mmap-go"

	"github.com/anepkg/anepkg/coreml/blob"
	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/coreml/mil"
	"github.com/anepkg/anepkg/coreml/tensor"
)

// maxUnseekable bounds a weight file that cannot be read at random (a member
// of a zip file) and so has to be kept in memory.
const maxUnseekable = 8 << 30

// Weights gives access to the weight files of a model. Files open on first
// use; those on a real disk are memory-mapped. Its methods may be called
// concurrently, except that Close must come last.
type Weights struct {
	fsys fs.FS
	dir  string // @model_path
	refs []weightRef

	mu     sync.Mutex
	closed bool
	files  map[string]*weightFile // by BLOBFILE path
}

// weightRef is a weight file as the program names it.
type weightRef struct {
	ref    string
	pos    diag.Pos
	uses   int
	blobs  map[uint64]bool
	wanted int64
}

// weightFile is an opened file, or why it could not be opened.
type weightFile struct {
	once  sync.Once
	file  *blob.File
	err   error
	close func() error
}

func newWeights(fsys fs.FS, dir string, uses []BlobUse) *Weights {
	w := &Weights{fsys: fsys, dir: dir, files: map[string]*weightFile{}}
	for _, u := range uses {
		i := slices.IndexFunc(w.refs, func(r weightRef) bool { return r.ref == u.Ref.Path })
		if i < 0 {
			i = len(w.refs)
			w.refs = append(w.refs, weightRef{ref: u.Ref.Path, pos: u.Pos, blobs: map[uint64]bool{}})
		}
		r := &w.refs[i]
		r.uses++
		r.blobs[u.Ref.Offset] = true
		r.wanted = max(r.wanted, u.end())
	}
	return w
}

// Record returns the metadata record that ref points to, without reading the
// data. A path that leaves the model folder, a missing file, an LFS pointer
// and an offset without a record are errors with the file and offset.
func (w *Weights) Record(ref *mil.BlobRef) (blob.Record, error) {
	f, err := w.File(ref)
	if err != nil {
		return blob.Record{}, err
	}
	if ref.Offset > math.MaxInt64 {
		return blob.Record{}, diag.Errorf(diag.In(f.Name()), diag.Malformed, "BLOBFILE offset %d is out of range", ref.Offset)
	}
	return f.Record(int64(ref.Offset))
}

// Data returns the bytes of the blob, packed as stored. The slice may be a
// memory mapping: it is read-only and valid until Close.
func (w *Weights) Data(ref *mil.BlobRef) ([]byte, error) {
	r, err := w.Record(ref)
	if err != nil {
		return nil, err
	}
	f, err := w.File(ref)
	if err != nil {
		return nil, err
	}
	return f.Data(r)
}

// File opens the weight file that ref names, once.
func (w *Weights) File(ref *mil.BlobRef) (*blob.File, error) {
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		return nil, diag.Errorf(diag.In(ref.Path), diag.Usage, "the model is closed")
	}
	f := w.files[ref.Path]
	if f == nil {
		f = &weightFile{}
		w.files[ref.Path] = f
	}
	w.mu.Unlock()
	f.once.Do(func() {
		var name string
		if name, f.err = w.resolve(ref.Path); f.err == nil {
			f.err = f.open(w.fsys, name)
		}
	})
	return f.file, f.err
}

// Close releases every file. Slices from Data must not be used after it.
func (w *Weights) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil
	}
	w.closed = true
	var errs []error
	for _, f := range w.files {
		f.once.Do(func() {})
		if f.close != nil {
			errs = append(errs, f.close())
		}
	}
	return errors.Join(errs...)
}

// resolve turns a BLOBFILE path into one of the file system. @model_path is
// the folder of the program; nothing outside it may be named.
func (w *Weights) resolve(ref string) (string, error) {
	rel := strings.TrimPrefix(ref, "@model_path")
	if rel != ref {
		rel = strings.TrimLeft(rel, "/")
	}
	c := path.Clean(rel)
	if rel == "" || c == "." || path.IsAbs(rel) || c == ".." || strings.HasPrefix(c, "../") || strings.ContainsAny(rel, "\\\x00") {
		return "", diag.Errorf(diag.In(path.Join(w.dir, programFile)), diag.Malformed, "weight file %q is not inside the model folder", ref)
	}
	return path.Join(w.dir, c), nil
}

// open opens and checks the file. In order of preference it is memory-mapped,
// read at random, or read as a whole.
func (f *weightFile) open(fsys fs.FS, name string) error {
	file, err := fsys.Open(name)
	if err != nil {
		return ioError(name, err)
	}
	info, err := file.Stat()
	if err == nil && info.IsDir() {
		err = errors.New("is a folder")
	}
	if err != nil {
		return errors.Join(ioError(name, err), file.Close())
	}
	if osf, ok := file.(*os.File); ok && info.Size() > 0 {
		if m, err := mmap.Map(osf, mmap.RDONLY, 0); err == nil {
			f.close = func() error { return errors.Join(m.Unmap(), osf.Close()) }
			f.file, err = blob.NewBytes(name, m)
			return err
		}
	}
	f.close = file.Close
	if r, ok := file.(io.ReaderAt); ok {
		f.file, err = blob.New(name, r, info.Size())
		return err
	}
	var buf bytes.Buffer
	n, err := io.Copy(&buf, io.LimitReader(file, maxUnseekable+1))
	switch {
	case err != nil:
		return ioError(name, err)
	case n > maxUnseekable:
		return diag.Errorf(diag.In(name), diag.TooLarge, "more than %d bytes in a file that cannot be read at random", int64(maxUnseekable))
	}
	f.file, err = blob.NewBytes(name, buf.Bytes())
	return err
}

// WeightFile is a weight file that the program names, there or not.
type WeightFile struct {
	Ref     string   // as the program writes it
	Path    string   // inside the file system; "" when Ref leaves the model
	Pos     diag.Pos // of its first use in the program
	Present bool     // a regular file is there
	Size    int64    // of what is there, in bytes
	LFSSize int64    // true size when a Git LFS pointer is there, else 0
	LFSOID  string   // sha256 of the true content, when the pointer says
	// Expected is the end of the last blob that the program uses. A file is
	// this long or ends with padding to a multiple of 64.
	Expected int64
	Blobs    int   // different blobs in use
	Uses     int   // references in the program
	Err      error // why the path cannot be used; nil for a missing file
}

// TrueSize is the size of the content: LFSSize for a pointer, else Size.
func (f WeightFile) TrueSize() int64 {
	if f.LFSSize > 0 {
		return f.LFSSize
	}
	return f.Size
}

// Files returns the weight files that the program names, in order of first
// use. It looks at sizes and pointers but not at the weights.
func (w *Weights) Files() []WeightFile {
	out := make([]WeightFile, 0, len(w.refs))
	for _, r := range w.refs {
		wf := WeightFile{Ref: r.ref, Pos: r.pos, Expected: r.wanted, Blobs: len(r.blobs), Uses: r.uses}
		if wf.Path, wf.Err = w.resolve(r.ref); wf.Err == nil {
			w.look(&wf)
		}
		out = append(out, wf)
	}
	return out
}

func (w *Weights) look(wf *WeightFile) {
	info, err := fs.Stat(w.fsys, wf.Path)
	if err != nil || info.IsDir() {
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			wf.Err = ioError(wf.Path, err)
		}
		return
	}
	wf.Present, wf.Size = true, info.Size()
	if wf.Size > 1024 { // longer than any pointer
		return
	}
	f, err := w.fsys.Open(wf.Path)
	if err != nil {
		wf.Err = ioError(wf.Path, err)
		return
	}
	defer func() { _ = f.Close() }()
	head, err := io.ReadAll(io.LimitReader(f, 1024))
	if err != nil {
		wf.Err = ioError(wf.Path, err)
		return
	}
	if p, ok := blob.ParsePointer(head); ok {
		wf.LFSSize, wf.LFSOID = p.Size, p.OID
	}
}

// BlobUse is one BLOBFILE reference of the program.
type BlobUse struct {
	Function string
	Op       *mil.Op
	Operand  string // argument or attribute name
	Type     mil.Type
	Ref      *mil.BlobRef
	Pos      diag.Pos // of the value
}

// Bytes returns how many bytes the declared type takes, packed; 0 when its
// shape is not known.
func (u BlobUse) Bytes() int64 {
	n, err := tensor.NumElements(u.Type.Shape)
	if err != nil {
		return 0
	}
	return u.Type.DType.ByteSize(n)
}

// end returns the offset after the blob's data, as far as the program tells.
func (u BlobUse) end() int64 {
	if u.Ref.Offset > 1<<60 {
		return 0
	}
	return int64(u.Ref.Offset) + blob.HeaderSize + u.Bytes()
}

// BlobRefs returns every BLOBFILE reference of the program, in order.
func (m *Model) BlobRefs() []BlobUse {
	var out []BlobUse
	for _, f := range m.Program.Functions {
		f.Body.Walk(func(op *mil.Op) {
			add := func(name string, v *mil.Value) {
				if v != nil && v.Blob != nil {
					out = append(out, BlobUse{f.Name, op, name, v.Type, v.Blob, m.Program.At(v.Pos)})
				}
			}
			for i := range op.Args {
				for _, b := range op.Args[i].Bindings {
					add(op.Args[i].Name, b.Value)
				}
			}
			for _, a := range op.Attrs {
				add(a.Name, a.Value)
			}
		})
	}
	return out
}

// ExpectedWeightSize predicts the size of each weight file, by BLOBFILE path,
// from the program alone: the end of the last blob. Some writers pad the file
// to the next multiple of 64 after it.
func ExpectedWeightSize(m *Model) map[string]int64 {
	out := map[string]int64{}
	for _, u := range m.BlobRefs() {
		out[u.Ref.Path] = max(out[u.Ref.Path], u.end())
	}
	return out
}
