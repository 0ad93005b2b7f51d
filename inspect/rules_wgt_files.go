package inspect

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/anepkg/anepkg/coreml/blob"
	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/coreml/mil"
	"github.com/anepkg/anepkg/manifest"
)

// weightFile is one weight file of a part with the references to it, sorted
// by offset, each offset once.
type weightFile struct {
	name string // inside the package, "" when it leaves the model folder
	path string // as the program writes it
	part *partView
	uses []blobUse
}

// weightFiles groups the references of a part by file.
func weightFiles(pt *partView) []*weightFile {
	byPath := map[string]*weightFile{}
	var out []*weightFile
	for _, fn := range pt.model.Program.Functions {
		for _, u := range blobUses(fn) {
			w := byPath[u.ref.Path]
			if w == nil {
				w = &weightFile{path: u.ref.Path, part: pt, name: resolveBlob(pt, u.ref.Path)}
				byPath[u.ref.Path] = w
				out = append(out, w)
			}
			w.uses = append(w.uses, u)
		}
	}
	for _, w := range out {
		slices.SortStableFunc(w.uses, func(a, b blobUse) int {
			switch {
			case a.ref.Offset < b.ref.Offset:
				return -1
			case a.ref.Offset > b.ref.Offset:
				return 1
			}
			return 0
		})
	}
	return out
}

// resolveBlob turns "@model_path/weights/weight.bin" into a path inside the
// package, "" when it leaves the model folder.
func resolveBlob(pt *partView, name string) string {
	rest, ok := strings.CutPrefix(name, "@model_path/")
	if !ok {
		return ""
	}
	clean := path.Clean(rest)
	if path.IsAbs(rest) || clean == ".." || strings.HasPrefix(clean, "../") || strings.Contains(rest, "\\") || !fs.ValidPath(clean) {
		return ""
	}
	return path.Join(path.Dir(pt.model.ProgramFile), clean)
}

// blobPos is where a program refers to a blob.
func blobPos(pt *partView, u blobUse) diag.Pos {
	pos := u.ref.Pos
	if pos.Line == 0 {
		pos = u.op.Pos
	}
	at := pt.model.Program.At(pos)
	at.File = pt.model.ProgramFile
	return at
}

// eachWeightFile calls fn for the weight files of every part in use.
func (p *Pass) eachWeightFile(fn func(w *weightFile, f *manifest.File)) {
	for _, pt := range p.parts {
		if pt.model == nil || pt.err != nil || pt.model.Program == nil || pt.Role == manifest.Leftover {
			continue
		}
		for _, w := range weightFiles(pt) {
			var f *manifest.File
			if w.name != "" {
				f = p.pkg.File(w.name)
			}
			fn(w, f)
		}
	}
}

// checkWeightPaths reports weight files that are absent or lie outside.
func checkWeightPaths(p *Pass) {
	p.eachWeightFile(func(w *weightFile, f *manifest.File) {
		at := blobPos(w.part, w.uses[0])
		switch {
		case w.name == "":
			p.Report(at, "the program reads %q, which lies outside the model folder", w.path).Compare(w.path, "@model_path/weights/weight.bin")
		case f == nil:
			p.Report(diag.In(w.name), "the weight file is missing; %s reads %d blobs from it", w.part.label(), len(offsets(w))).Compare("absent", path.Base(w.name)).Also(at).
				Fix("fetch %s", w.name)
		}
	})
}

func offsets(w *weightFile) []uint64 {
	var out []uint64
	for _, u := range w.uses {
		if len(out) == 0 || out[len(out)-1] != u.ref.Offset {
			out = append(out, u.ref.Offset)
		}
	}
	return out
}

// expectedSize is where the last blob of the program ends.
func expectedSize(w *weightFile) (end int64, last blobUse) {
	for _, u := range w.uses {
		n := u.payload()
		if n < 0 || u.ref.Offset > 1<<62 {
			continue
		}
		if e := int64(u.ref.Offset) + blob.HeaderSize + n; e > end {
			end, last = e, u
		}
	}
	return end, last
}

// checkWeightSize compares the size of a weight file, or the true size that
// its pointer states, with the end of the program's last blob
// (anemll.md 6.1b: exact in every package seen).
func checkWeightSize(p *Pass) {
	p.eachWeightFile(func(w *weightFile, f *manifest.File) {
		if f == nil {
			p.Skip("a weight file is missing")
			return
		}
		if f.Status != manifest.FileOK && f.Status != manifest.FileLFSPointer || f.TrueBytes() < 0 {
			p.Skip("%s is no weight file", f.Path)
			return
		}
		want, last := expectedSize(w)
		if want == 0 {
			return
		}
		size, whose := f.TrueBytes(), "the file has"
		if f.Status == manifest.FileLFSPointer {
			whose = "its pointer says"
		}
		at := diag.AtOffset(w.name, size)
		switch {
		case size < want:
			p.Report(at, "%s %d bytes, the program reads %d: %d are missing", whose, size, want, want-size).Compare(size, want).
				Also(blobPos(w.part, last)).Fix("fetch the file again")
		case size >= blob.Align(want)+blob.Alignment:
			p.Report(diag.AtOffset(w.name, want), "%s %d bytes, the program reads %d: %d bytes at the end belong to nothing", whose, size, want, size-want).
				Compare(size, want).Also(blobPos(w.part, last)).Fix("fetch the file that belongs to this program; this one is of another conversion")
		case size > want && size != blob.Align(want):
			p.Report(diag.AtOffset(w.name, want), "%s %d bytes, the program reads %d", whose, size, want).Compare(size, want).Also(blobPos(w.part, last)).
				Fix("fetch the file that belongs to this program; this one is of another conversion")
		}
	})
}

// checkPointerSizes says that the true sizes of pointers match the programs.
func checkPointerSizes(p *Pass) {
	some := false
	p.eachWeightFile(func(w *weightFile, f *manifest.File) {
		if f == nil || f.Status != manifest.FileLFSPointer || f.LFSSize < 0 {
			return
		}
		some = true
		if want, _ := expectedSize(w); want == f.LFSSize {
			p.Report(diag.In(w.name), "the pointer's true size of %d bytes (%s) is exactly what the program reads", f.LFSSize, Bytes(f.LFSSize)).Compare(f.LFSSize, want)
		}
	})
	if !some {
		p.Skip("no weight file is a Git LFS pointer")
	}
}

// checkOverlap reports blobs that overlap by the program alone.
func checkOverlap(p *Pass) {
	p.eachWeightFile(func(w *weightFile, _ *manifest.File) {
		var prev *blobUse
		for i := range w.uses {
			u := &w.uses[i]
			if prev != nil && u.ref.Offset == prev.ref.Offset {
				if u.payload() != prev.payload() || u.value.Type.DType != prev.value.Type.DType {
					p.Report(blobPos(w.part, *u), "the blob at offset %d is read as %s and as %s", u.ref.Offset, u.value.Type, prev.value.Type).
						Compare(u.value.Type.String(), prev.value.Type.String()).Also(blobPos(w.part, *prev))
				}
				continue
			}
			if prev != nil && prev.payload() >= 0 {
				if end := int64(prev.ref.Offset) + blob.HeaderSize + prev.payload(); int64(u.ref.Offset) < end {
					p.Report(blobPos(w.part, *u), "the blob at offset %d begins before the one at %d ends (%d)", u.ref.Offset, prev.ref.Offset, end).
						Compare(u.ref.Offset, end).Also(blobPos(w.part, *prev))
				}
			}
			prev = u
		}
	})
}

// maxRecordFindings bounds the findings of one weight file: a wrong file has
// a wrong record everywhere.
const maxRecordFindings = 5

// checkRecords compares every blob's record in the weight file with the type
// that the program gives it.
func checkRecords(p *Pass) {
	p.eachWeightFile(func(w *weightFile, f *manifest.File) {
		if f == nil || f.Status != manifest.FileOK {
			p.Skip("a weight file is missing or a stub")
			return
		}
		found := 0
		seen := map[uint64]bool{}
		for _, u := range w.uses {
			if found >= maxRecordFindings {
				return
			}
			if seen[u.ref.Offset] {
				continue
			}
			seen[u.ref.Offset] = true
			if p.record(w, u) {
				found++
			}
		}
	})
}

func (p *Pass) record(w *weightFile, u blobUse) bool {
	rec, err := w.part.model.Weights.Record(u.ref)
	if err != nil {
		var e *diag.Error
		if !errors.As(err, &e) {
			e = &diag.Error{Pos: diag.AtOffset(w.name, int64(u.ref.Offset)), Msg: err.Error()}
		}
		p.ReportError(e).Also(blobPos(w.part, u))
		return true
	}
	at := diag.AtOffset(w.name, int64(u.ref.Offset))
	if want := u.value.Type.DType; rec.DType != want && !sameStorage(rec, u.value) {
		p.Report(at, "the blob holds %s, the program reads it as %s", rec.DType.Long(), want.Long()).Compare(rec.DType.Long(), want.Long()).Also(blobPos(w.part, u))
		return true
	}
	if n := u.payload(); n >= 0 && rec.Size != n {
		p.Report(at, "the blob holds %d bytes, %s takes %d", rec.Size, u.value.Type, n).Compare(rec.Size, n).Also(blobPos(w.part, u)).
			Fix("fetch weight file and program from one source; these are of different conversions")
		return true
	}
	if rec.DataOffset != rec.Offset+blob.HeaderSize {
		p.Report(at, "the blob's data begin at %d, want %d, right after its record", rec.DataOffset, rec.Offset+blob.HeaderSize).
			Compare(rec.DataOffset, rec.Offset+blob.HeaderSize).As(Warning)
		return true
	}
	return false
}

// sameStorage: bool and the raw-byte types share storage with uint8 and int8.
func sameStorage(rec blob.Record, v *mil.Value) bool {
	want := v.Type.DType
	return rec.DType.Bits() == want.Bits() && !rec.DType.IsFloat() && !want.IsFloat() && rec.DType.IsInt() == want.IsInt() && rec.DType.IsUnsigned() == want.IsUnsigned() ||
		want.String() == "bool" && rec.DType.Bits() == 8
}
