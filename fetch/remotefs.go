package fetch

import (
	"context"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anepkg/anepkg/coreml/diag"
)

// FS is a repository, or a folder of one, read over the network. Sizes come
// from the listing. Small files are fetched whole when they are first read and
// their hash is checked; of weight files and other large ones only the ranges
// come that are read. Files that are in the cache are read from there.
//
// Its files are io.ReaderAt and io.Seeker and may be used concurrently. It
// implements fs.StatFS, fs.ReadDirFS and fs.ReadFileFS.
type FS struct {
	ctx   context.Context //nolint:containedctx // fs.FS has no place for it
	c     *Client
	repo  Repo
	nodes map[string]*node

	requests, bytes atomic.Int64
	// Left is what of the repository is not shown: files whose names are
	// not safe.
	Left []Skipped
}

// FS lists ref and returns its files. ctx ends every later read as well. When
// ref names a single file, the folder around it is shown, so that the models
// beside it can be opened.
//
// Errors: those of Resolve and Tree.
func (c *Client) FS(ctx context.Context, ref Ref) (*FS, error) {
	r, err := c.Resolve(ctx, ref)
	if err != nil {
		return nil, err
	}
	files, err := c.Tree(ctx, r)
	if err != nil {
		return nil, err
	}
	if len(files) == 1 && files[0].Path == r.Sub {
		r.Sub = strings.TrimPrefix(path.Dir(r.Sub), ".")
		if files, err = c.Tree(ctx, r); err != nil {
			return nil, err
		}
	}
	return c.newFS(ctx, r, files)
}

// newFS shows files, which lie below r.Sub.
func (c *Client) newFS(ctx context.Context, r Repo, files []File) (*FS, error) {
	f := &FS{ctx: ctx, c: c, repo: r, nodes: map[string]*node{".": {name: ".", dir: true}}}
	for _, file := range files {
		name := strings.TrimPrefix(strings.TrimPrefix(file.Path, r.Sub), "/")
		if err := checkPath(file.Path); err != nil || name == "" {
			f.Left = append(f.Left, Skipped{Path: file.Path, Bytes: file.Bytes, Reason: "the name is not safe"})
			continue
		}
		f.add(name, file)
	}
	for _, n := range f.nodes {
		n.fs = f
		slices.SortFunc(n.children, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	}
	return f, nil
}

func (f *FS) add(name string, file File) {
	n := &node{name: path.Base(name), file: file}
	for p := name; ; {
		if f.nodes[p] != nil {
			return
		}
		f.nodes[p] = n
		dir := path.Dir(p)
		parent := f.nodes[dir]
		if parent != nil && !parent.dir {
			return // a file is in the way of a folder
		}
		if parent == nil {
			parent = &node{name: path.Base(dir), dir: true}
			parent.children = append(parent.children, entry{n})
			n, p = parent, dir
			continue
		}
		parent.children = append(parent.children, entry{n})
		return
	}
}

// Repo returns the repository, the commit and the folder that f shows.
func (f *FS) Repo() Repo { return f.repo }

// Traffic returns what reading through f has cost so far. The listing is not
// in it.
func (f *FS) Traffic() Traffic {
	return Traffic{Requests: f.requests.Load(), Bytes: f.bytes.Load()}
}

func (f *FS) node(op, name string) (*node, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	}
	n := f.nodes[name]
	if n == nil {
		return nil, &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
	}
	return n, nil
}

// Open implements fs.FS. Nothing is fetched before the first read. A file of
// the cache is an *os.File.
func (f *FS) Open(name string) (fs.File, error) {
	n, err := f.node("open", name)
	if err != nil {
		return nil, err
	}
	if n.dir {
		return &remoteDir{n: n}, nil
	}
	if local := f.local(n.file); local != "" {
		if file, err := os.Open(local); err == nil {
			return file, nil
		}
	}
	return &remoteFile{n: n}, nil
}

// local is the path of a file in the cache, "" when it is not there.
func (f *FS) local(file File) string {
	rc := f.c.cacheOf(f.repo.Ref)
	if rc.dir == "" {
		return ""
	}
	if p := rc.file(f.repo.Commit, file.Path); isWhole(p, file.Bytes) {
		return p
	}
	return ""
}

// Stat implements fs.StatFS.
func (f *FS) Stat(name string) (fs.FileInfo, error) {
	n, err := f.node("stat", name)
	if err != nil {
		return nil, err
	}
	return info{n}, nil
}

// ReadDir implements fs.ReadDirFS.
func (f *FS) ReadDir(name string) ([]fs.DirEntry, error) {
	n, err := f.node("readdir", name)
	if err != nil {
		return nil, err
	}
	if !n.dir {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: fs.ErrInvalid}
	}
	return slices.Clone(n.children), nil
}

// ReadFile implements fs.ReadFileFS. A file larger than 1 GiB is refused.
func (f *FS) ReadFile(name string) ([]byte, error) {
	file, err := f.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	st, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if st.Size() > maxInMemory {
		return nil, diag.Errorf(diag.In(name), diag.TooLarge, "%d bytes are too many to read at once", st.Size())
	}
	data := make([]byte, st.Size())
	if _, err := io.ReadFull(file, data); err != nil {
		return nil, err
	}
	return data, nil
}

// node is a file or folder.
type node struct {
	fs       *FS
	name     string
	dir      bool
	file     File
	children []fs.DirEntry

	mu     sync.Mutex // guards what follows
	whole  []byte
	pieces []piece
	kept   int
	url    string // of the storage server, "" until known
}

type info struct{ n *node }

func (i info) Name() string { return i.n.name }
func (i info) Size() int64  { return i.n.file.Bytes }
func (i info) Mode() fs.FileMode {
	if i.n.dir {
		return fs.ModeDir | 0o555
	}
	return 0o444
}
func (i info) ModTime() time.Time { return time.Time{} }
func (i info) IsDir() bool        { return i.n.dir }
func (i info) Sys() any           { return nil }

type entry struct{ n *node }

func (e entry) Name() string               { return e.n.name }
func (e entry) IsDir() bool                { return e.n.dir }
func (e entry) Type() fs.FileMode          { return info(e).Mode().Type() }
func (e entry) Info() (fs.FileInfo, error) { return info(e), nil }
func (e entry) String() string             { return fs.FormatDirEntry(e) }

// remoteDir is an opened folder.
type remoteDir struct {
	n   *node
	pos int
}

func (d *remoteDir) Stat() (fs.FileInfo, error) { return info{d.n}, nil }
func (d *remoteDir) Close() error               { return nil }

func (d *remoteDir) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: d.n.name, Err: fs.ErrInvalid}
}

// ReadDir implements fs.ReadDirFile.
func (d *remoteDir) ReadDir(n int) ([]fs.DirEntry, error) {
	rest := d.n.children[d.pos:]
	if n > 0 && len(rest) == 0 {
		return nil, io.EOF
	}
	if n > 0 && n < len(rest) {
		rest = rest[:n]
	}
	d.pos += len(rest)
	return slices.Clone(rest), nil
}
