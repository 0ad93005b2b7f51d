package manifest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"path"
	"sort"
	"strconv"
	"strings"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/coreml/diag"
)

// Bounds for the walk over a folder.
const (
	maxFiles     = 50_000
	maxDirs      = 10_000
	maxWalkDepth = 24
	maxStray     = 4_000   // files and folders looked at before anything of a package is seen
	maxPackDepth = 3       // how deep a model or description file may lie to be a sign of a package
	maxLinks     = 2       // folders reached through symbolic links inside each other
	sniffSize    = 256     // bytes looked at in every file
	sniffBelow   = 8 << 20 // larger files are neither pointers nor error pages
	maxConfig    = 64 << 20
)

// container is a model folder.
type container struct {
	path string // inside the package
	stem string // last element without the suffix
	kind coreml.Container
}

// walker lists a folder. Symbolic links count as what they point to (the
// cache of huggingface_hub consists of links); loops end at the bounds.
type walker struct {
	fsys       fs.FS
	files      []File
	containers []container
	dirs       int
	known      bool // a model folder or a description file was seen
	truncated  bool
}

func (w *walker) walk(ctx context.Context, dir string, depth, links int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if w.dirs++; w.full() || w.dirs > maxDirs || depth > maxWalkDepth {
		w.truncated = true
		return nil
	}
	entries, err := fs.ReadDir(w.fsys, dir)
	if err != nil {
		if dir == "." {
			return err
		}
		return nil // an unreadable folder holds nothing that a runtime could use
	}
	// files come before folders, so that a description file at the top is
	// known before a large folder beside it is entered
	for _, folders := range []bool{false, true} {
		for _, e := range entries {
			if (e.IsDir() || e.Type()&fs.ModeSymlink != 0) != folders {
				continue
			}
			if err := w.entry(ctx, dir, e, depth, links); err != nil {
				return err
			}
		}
	}
	return nil
}

// full reports whether so much was seen, and nothing of a package, that the
// folder is a home folder or a whole disk.
func (w *walker) full() bool { return !w.known && len(w.files)+w.dirs > maxStray }

func (w *walker) entry(ctx context.Context, dir string, e fs.DirEntry, depth, links int) error {
	name := path.Join(dir, e.Name())
	mode := e.Type()
	if mode&fs.ModeSymlink != 0 {
		mode = linkTarget(w.fsys, name)
		if mode.IsDir() {
			if leavesFolder(w.fsys, name) {
				return nil // a rule names the link; what lies there is no part of the package
			}
			if links++; links > maxLinks {
				return nil
			}
		}
	}
	switch {
	case mode.IsDir():
		if e.Name() == ".git" || e.Name() == "__MACOSX" {
			return nil
		}
		if stem, kind := containerName(e.Name()); kind != "" {
			w.known = w.known || depth <= maxPackDepth
			w.containers = append(w.containers, container{path: name, stem: stem, kind: kind})
		}
		return w.walk(ctx, name, depth+1, links)
	case mode.IsRegular():
		if w.full() || len(w.files) >= maxFiles {
			w.truncated = true
			return nil
		}
		switch e.Name() {
		case "meta.yaml", "meta.yml", "model_config.json", "Manifest.json", "model.mil", "coremldata.bin":
			w.known = w.known || depth <= maxPackDepth
		}
		w.files = append(w.files, lookAt(w.fsys, name))
	}
	return nil
}

// leavesFolder reports whether a symbolic link to a folder leads out of the
// package, or to a folder that it lies in. The cache of huggingface_hub links
// files, not folders.
func leavesFolder(fsys fs.FS, name string) bool {
	target, err := fs.ReadLink(fsys, name)
	if err != nil {
		return false // the file system cannot tell
	}
	to := path.Join(path.Dir(name), target)
	if path.IsAbs(target) || !fs.ValidPath(to) {
		_, kind := containerName(name)
		return kind == "" // a link named as a model folder is meant as a part
	}
	return to == "." || strings.HasPrefix(name, to+"/")
}

// linkTarget is the type of what a symbolic link points to; a dangling link
// is irregular.
func linkTarget(fsys fs.FS, name string) fs.FileMode {
	info, err := fs.Stat(fsys, name)
	if err != nil {
		return fs.ModeIrregular
	}
	return info.Mode().Type()
}

// containerName splits "x.mlmodelc" into its stem and kind.
func containerName(name string) (stem string, kind coreml.Container) {
	switch {
	case strings.HasSuffix(name, ".mlmodelc"):
		return strings.TrimSuffix(name, ".mlmodelc"), coreml.MLModelC
	case strings.HasSuffix(name, ".mlpackage"):
		return strings.TrimSuffix(name, ".mlpackage"), coreml.MLPackage
	}
	return name, ""
}

// listFiles fills Files and the containers of the package.
func (p *Package) listFiles(ctx context.Context) error {
	w := &walker{fsys: p.FS}
	if err := w.walk(ctx, ".", 0, 0); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		code := diag.IO
		if errors.Is(err, fs.ErrNotExist) {
			code = diag.NotFound
		}
		return diag.Errorf(diag.In(p.Path), code, "folder is not readable: %w", err)
	}
	sort.Slice(w.files, func(i, j int) bool { return w.files[i].Path < w.files[j].Path })
	sort.Slice(w.containers, func(i, j int) bool { return w.containers[i].path < w.containers[j].path })
	p.Files, p.containers, p.Truncated = w.files, w.containers, w.truncated
	return nil
}

// lookAt classifies one file by its name, size and first bytes.
func lookAt(fsys fs.FS, name string) File {
	f := File{Path: name, Status: FileOK}
	info, err := fs.Stat(fsys, name)
	if err != nil {
		return f
	}
	f.Bytes = info.Size()
	switch {
	case partialName(name):
		f.Status = FilePartial
	case f.Bytes == 0 && !strings.HasSuffix(name, ".etag"): // a tag of a download tool is a leftover, however long
		f.Status = FileEmpty
	case f.Bytes <= sniffBelow:
		head := readHead(fsys, name)
		if size, oid, ok := parsePointer(head); ok {
			f.Status, f.LFSSize, f.LFSOID = FileLFSPointer, size, oid
		} else if isErrorPage(name, head) {
			f.Status = FileHTML
		}
	}
	return f
}

func readHead(fsys fs.FS, name string) []byte {
	f, err := fsys.Open(name)
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }()
	buf := make([]byte, sniffSize)
	n, _ := io.ReadFull(f, buf)
	return buf[:n]
}

func partialName(name string) bool {
	for _, suffix := range []string{".incomplete", ".part", ".partial", ".crdownload", ".aria2", ".download", ".tmp"} {
		if strings.HasSuffix(name, suffix) {
			return true
		}
	}
	return false
}

// parsePointer reads a Git LFS pointer (https://git-lfs.com/spec/v1): lines
// of "key value", version first. A pointer cut before its size still counts;
// its size is then -1.
func parsePointer(head []byte) (size int64, oid string, ok bool) {
	if !bytes.HasPrefix(head, []byte("version https://git-lfs.github.com/spec/")) &&
		!bytes.HasPrefix(head, []byte("version https://hawser.github.com/spec/")) {
		return 0, "", false
	}
	size = -1
	for line := range strings.SplitSeq(string(head), "\n") {
		key, val, _ := strings.Cut(strings.TrimRight(line, "\r"), " ")
		switch key {
		case "oid":
			oid = strings.TrimPrefix(val, "sha256:")
		case "size":
			if n, err := strconv.ParseInt(val, 10, 64); err == nil && n >= 0 {
				size = n
			}
		}
	}
	return size, oid, true
}

// isErrorPage reports whether a web page or a server's error text stands in
// the file.
func isErrorPage(name string, head []byte) bool {
	ext := strings.ToLower(path.Ext(name))
	switch ext {
	case ".html", ".htm", ".xhtml", ".md", ".svg", ".xml", ".plist", ".rst":
		return false
	}
	t := strings.ToLower(string(bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")), " \t\r\n")))
	for _, start := range []string{"<!doctype html", "<html", "<head", "<?xml", "<error>", "entry not found",
		"repository not found", "invalid username or password", "access to model ", "404: not found", "404 not found", "not found\n"} {
		if strings.HasPrefix(t, start) {
			return true
		}
	}
	return strings.TrimSpace(t) == "not found"
}

// readFile reads a whole file of at most limit bytes.
func readFile(fsys fs.FS, name string, limit int64) ([]byte, error) {
	f, err := fsys.Open(name)
	if err != nil {
		code := diag.IO
		if errors.Is(err, fs.ErrNotExist) {
			code = diag.NotFound
		}
		return nil, diag.Errorf(diag.In(name), code, "file is not readable: %w", err)
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, diag.Errorf(diag.In(name), diag.IO, "reading stopped after %d bytes: %w", len(data), err)
	}
	if int64(len(data)) > limit {
		return nil, diag.Errorf(diag.In(name), diag.TooLarge, "got more than %d bytes, the most a file of this kind may have", limit)
	}
	return data, nil
}

// readable returns the entry of a file that holds content: not absent, not a
// pointer, not an error page, not empty.
func (p *Package) readable(name string) *File {
	f := p.File(name)
	if f == nil || f.Status != FileOK {
		return nil
	}
	return f
}
