package inspect

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"

	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/manifest"
)

// maxAccessFindings bounds the findings of checkAccess.
const maxAccessFindings = 8

// checkAccess opens every file that a runtime reads.
func checkAccess(p *Pass) {
	n := 0
	for _, f := range p.pkg.Files {
		if !p.needed(f.Path) {
			continue
		}
		err := tryOpen(p.pkg.FS, f.Path)
		if err == nil {
			continue
		}
		why := err.Error()
		var pe *fs.PathError
		if errors.As(err, &pe) {
			why = pe.Err.Error()
		}
		if n++; n > maxAccessFindings {
			p.Report(diag.In(f.Path), "more files cannot be opened").Compare("more than "+strconv.Itoa(maxAccessFindings), 0)
			return
		}
		r := p.Report(diag.In(f.Path), "the file cannot be opened: %s", why).Compare(why, "a readable file")
		if errors.Is(err, fs.ErrPermission) {
			r.Fix("give the user of the runtime the right to read it: chmod -R u+rwX on the folder, or chown")
		} else {
			r.Fix("copy or fetch the file again")
		}
	}
}

func tryOpen(fsys fs.FS, name string) error {
	f, err := fsys.Open(name)
	if err != nil {
		return err
	}
	return f.Close()
}

// checkTwins: weight files of equal size are compared. Equal ones could be
// stored once; a prefill chunk has the weights of its decode chunk.
func checkTwins(p *Pass) {
	bySize := map[int64][]*manifest.File{}
	some := false
	for i := range p.pkg.Files {
		f := &p.pkg.Files[i]
		if f.Status == manifest.FileOK && f.Bytes > 0 && isWeightFile(f.Path) && p.needed(f.Path) && !p.alternative(f.Path) {
			bySize[f.Bytes] = append(bySize[f.Bytes], f)
			some = true
		}
	}
	if !some {
		p.Skip("no weight file is there")
		return
	}
	for _, f := range p.pkg.Files { // in their order
		same := bySize[f.Bytes]
		if len(same) < 2 || same[0].Path != f.Path {
			continue
		}
		p.compareTwins(same)
	}
}

func isWeightFile(name string) bool {
	return strings.HasSuffix(name, ".bin") && path.Base(path.Dir(name)) == "weights"
}

// alternative reports whether the file belongs to the other form of a part.
func (p *Pass) alternative(name string) bool {
	for _, pt := range p.pkg.Parts {
		if pt.Alternative != "" && strings.HasPrefix(name, pt.Alternative+"/") {
			return true
		}
	}
	return false
}

func (p *Pass) compareTwins(same []*manifest.File) {
	first := map[[sha256.Size]byte]*manifest.File{}
	for _, f := range same {
		sum, err := p.digest(f.Path)
		if err != nil {
			p.Skip("%s cannot be read", f.Path)
			continue
		}
		a := first[sum]
		if a == nil {
			first[sum] = f
			continue
		}
		if sameFile(p.pkg.FS, a.Path, f.Path) {
			continue
		}
		p.Report(diag.In(f.Path), "%s and %s have the same bytes (%s)", f.Path, a.Path, Bytes(f.Bytes)).Also(diag.In(a.Path)).Compare("stored twice", "stored once").
			Fix("make one a hard link of the other: it saves %s", Bytes(f.Bytes))
	}
	for i, f := range same {
		for _, g := range same[:i] {
			x, y := p.digestOf(first, f), p.digestOf(first, g)
			if x != y && twinParts(f.Path, g.Path) {
				p.Report(diag.In(f.Path), "%s and %s are of equal size and hold different weights: a prefill chunk has the weights of its decode chunk", f.Path, g.Path).As(Warning).Also(diag.In(g.Path)).
					Compare("different", "equal weights").Fix("convert both from one checkpoint")
			}
		}
	}
}

// digestOf is the file that stands for f's content.
func (p *Pass) digestOf(first map[[sha256.Size]byte]*manifest.File, f *manifest.File) *manifest.File {
	sum, err := p.digest(f.Path)
	if err != nil {
		return f
	}
	return first[sum]
}

// twinParts reports whether two weight files are of chunkN and prefill_chunkN.
func twinParts(a, b string) bool {
	stem := func(name string) string {
		s, _, _ := strings.Cut(path.Base(path.Dir(path.Dir(name))), ".")
		return s
	}
	x, y := stem(a), stem(b)
	return x != y && strings.TrimPrefix(x, "prefill_") == strings.TrimPrefix(y, "prefill_")
}

func sameFile(fsys fs.FS, a, b string) bool {
	x, err1 := fs.Stat(fsys, a)
	y, err2 := fs.Stat(fsys, b)
	return err1 == nil && err2 == nil && os.SameFile(x, y)
}

func (p *Pass) digest(name string) (sum [sha256.Size]byte, err error) {
	if d, ok := p.digests[name]; ok {
		return d, nil
	}
	f, err := p.pkg.FS.Open(name)
	if err != nil {
		return sum, err
	}
	defer func() { _ = f.Close() }()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return sum, err
	}
	h.Sum(sum[:0])
	if p.digests == nil {
		p.digests = map[string][sha256.Size]byte{}
	}
	p.digests[name] = sum
	return sum, nil
}

// checkBlobNames: huggingface_hub names large files of its cache by their
// SHA-256 and links to them.
func checkBlobNames(p *Pass) {
	some := false
	for _, f := range p.pkg.Files {
		target, err := fs.ReadLink(p.pkg.FS, f.Path)
		if err != nil {
			continue
		}
		name := path.Base(strings.ReplaceAll(target, "\\", "/"))
		want, err := hex.DecodeString(name)
		if err != nil || len(want) != sha256.Size || f.Status != manifest.FileOK {
			continue // small files are named by the SHA-1 of git
		}
		some = true
		sum, err := p.digest(f.Path)
		if err != nil {
			p.Skip("%s cannot be read", f.Path)
			continue
		}
		if !bytes.Equal(sum[:], want) {
			p.Report(diag.In(f.Path), "the file in the cache is named %s, its content has the SHA-256 %x", name, sum).Compare(hex.EncodeToString(sum[:]), name).
				Fix("repair it: anepkg fetch --repair, or delete the blob and fetch again")
		}
	}
	if !some {
		p.Skip("no file is a link to a blob named by its hash")
	}
}
