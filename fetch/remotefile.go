package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"sort"

	"github.com/anepkg/anepkg/coreml/diag"
)

// How a file is read, in bytes.
const (
	wholeSize   = 1 << 20   // files up to this come whole at once
	headSize    = 4 << 10   // of larger ones this comes first: most are only looked at
	wholeLater  = 128 << 20 // files up to this come whole at the second look; not weights
	readAhead   = 4 << 20   // for one who reads a large file from front to back
	maxKept     = 8 << 20   // small ranges kept per file
	maxPieces   = 1 << 14   // their number
	keepBelow   = 64 << 10  // larger ranges are not kept
	maxSkip     = 8 << 20   // skipped when a server ignores ranges
	maxInMemory = 1 << 30
)

// piece is a range that is kept.
type piece struct {
	off  int64
	data []byte
}

// remoteFile is an opened file.
type remoteFile struct {
	n      *node
	off    int64
	ahead  piece // read in advance
	reads  int
	closed bool
}

var (
	_ io.ReaderAt = (*remoteFile)(nil)
	_ io.Seeker   = (*remoteFile)(nil)
)

func (f *remoteFile) Stat() (fs.FileInfo, error) { return info{f.n}, nil }

func (f *remoteFile) Close() error {
	f.closed, f.ahead = true, piece{}
	return nil
}

// Read reads on. From the second read of a large file on, more is fetched
// than was asked for.
func (f *remoteFile) Read(p []byte) (int, error) {
	size := f.n.file.Bytes
	switch {
	case f.closed:
		return 0, fs.ErrClosed
	case len(p) == 0:
		return 0, nil
	case f.off >= size:
		return 0, io.EOF
	}
	if f.reads++; f.reads > 1 && f.n.ranged() && len(p) < readAhead {
		if f.off < f.ahead.off || f.off >= f.ahead.off+int64(len(f.ahead.data)) {
			buf := make([]byte, min(readAhead, size-f.off))
			if _, err := f.n.readAt(buf, f.off); err != nil {
				return 0, err
			}
			f.ahead = piece{off: f.off, data: buf}
		}
		n := copy(p, f.ahead.data[f.off-f.ahead.off:])
		f.off += int64(n)
		return n, nil
	}
	n, err := f.n.readAt(p[:min(int64(len(p)), size-f.off)], f.off)
	f.off += int64(n)
	return n, err
}

// ReadAt implements io.ReaderAt.
func (f *remoteFile) ReadAt(p []byte, off int64) (int, error) {
	size := f.n.file.Bytes
	switch {
	case off < 0:
		return 0, &fs.PathError{Op: "readat", Path: f.n.file.Path, Err: fs.ErrInvalid}
	case off >= size:
		return 0, io.EOF
	}
	want := min(int64(len(p)), size-off)
	n, err := f.n.readAt(p[:want], off)
	if err == nil && want < int64(len(p)) {
		err = io.EOF
	}
	return n, err
}

// Seek implements io.Seeker.
func (f *remoteFile) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += f.off
	case io.SeekEnd:
		offset += f.n.file.Bytes
	}
	if offset < 0 || whence < 0 || whence > 2 {
		return 0, &fs.PathError{Op: "seek", Path: f.n.file.Path, Err: fs.ErrInvalid}
	}
	f.off = offset
	return offset, nil
}

// ranged reports whether only the parts that are read are fetched.
func (n *node) ranged() bool { return isWeight(n.file.Path) || n.file.Bytes > wholeLater }

// readAt fills p, which lies inside the file.
func (n *node) readAt(p []byte, off int64) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.whole != nil {
		return copy(p, n.whole[off:]), nil
	}
	if got := n.find(off, int64(len(p))); got != nil {
		return copy(p, got), nil
	}
	switch {
	case n.ranged():
		return n.fetchRange(p, off)
	case n.file.Bytes > wholeSize && off+int64(len(p)) <= headSize && n.kept == 0:
		head := make([]byte, headSize)
		if _, err := n.fetchRange(head, 0); err != nil {
			return 0, err
		}
		return copy(p, head[off:]), nil
	}
	data, err := n.fs.c.content(n.fs.ctx, n.fs.repo, n.file, n.fs.note)
	if err != nil {
		return 0, n.pathError(err)
	}
	n.whole, n.pieces = data, nil
	return copy(p, data[off:]), nil
}

func (n *node) pathError(err error) error {
	return &fs.PathError{Op: "read", Path: n.file.Path, Err: err}
}

// note counts a request and what it brought.
func (f *FS) note(bytes int64) {
	f.requests.Add(1)
	f.bytes.Add(bytes)
}

// find looks for the range among the kept ones.
func (n *node) find(off, size int64) []byte {
	i := sort.Search(len(n.pieces), func(i int) bool { return n.pieces[i].off > off }) - 1
	if i < 0 {
		return nil
	}
	p := n.pieces[i]
	if end := off - p.off + size; end <= int64(len(p.data)) {
		return p.data[off-p.off : end]
	}
	return nil
}

// keep keeps a range unless it is large or there are too many.
func (n *node) keep(off int64, data []byte) {
	if len(data) > keepBelow || n.kept+len(data) > maxKept || len(n.pieces) >= maxPieces {
		return
	}
	i := sort.Search(len(n.pieces), func(i int) bool { return n.pieces[i].off > off })
	n.pieces = append(n.pieces, piece{})
	copy(n.pieces[i+1:], n.pieces[i:])
	n.pieces[i] = piece{off: off, data: append([]byte(nil), data...)}
	n.kept += len(data)
}

// fetchRange fills p from the network.
func (n *node) fetchRange(p []byte, off int64) (int, error) {
	tries := n.fs.c.newRetrier(subject{ref: n.fs.repo.Ref, file: n.file.Path})
	for {
		err := n.rangeOnce(n.fs.ctx, p, off)
		if err == nil {
			n.keep(off, p)
			return len(p), nil
		}
		var se *statusError
		if n.url != "" && errors.As(err, &se) && se.status < 500 && se.status != 429 {
			n.url = "" // the signature has run out: ask the hub again
			continue
		}
		if err := tries.again(n.fs.ctx, err); err != nil {
			return 0, n.pathError(err)
		}
	}
}

// rangeOnce makes one request, to the storage server when it is known.
func (n *node) rangeOnce(ctx context.Context, p []byte, off int64) error {
	c := n.fs.c
	at := n.url
	if at == "" {
		at = c.fileURL(n.fs.repo, n.file.Path)
	}
	h := http.Header{"Range": {fmt.Sprintf("bytes=%d-%d", off, off+int64(len(p))-1)}}
	a, err := c.once(ctx, call{method: http.MethodGet, url: at, header: h, about: subject{ref: n.fs.repo.Ref, file: n.file.Path}})
	if err != nil {
		return err
	}
	defer func() {
		n.fs.note(a.body.own)
		a.close()
	}()
	if enc := a.Header.Get("Content-Encoding"); enc != "" && enc != "identity" {
		return &brokenError{kind: ErrChanged, msg: "the server sends the content encoded"}
	}
	if a.StatusCode != http.StatusPartialContent {
		if off > maxSkip {
			return fail(diag.Unsupported, ErrServer, "%s: the server cannot send a part of a file", n.file.Path).WithHint("fetch the package first")
		}
		if _, err := io.CopyN(io.Discard, a.body, off); err != nil {
			return &brokenError{kind: ErrTruncated, msg: "the transfer was cut short"}
		}
	} else if first, total, ok := parseContentRange(a.Header.Get("Content-Range")); !ok || first != off || total >= 0 && total != n.file.Bytes {
		return &brokenError{kind: ErrChanged, msg: "the server answers with another range than asked for"}
	}
	if _, err := io.ReadFull(a.body, p); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return &brokenError{kind: ErrTruncated, msg: "the transfer was cut short"}
	}
	if u := a.Request.URL; !sameOrigin(u, c.base) {
		n.url = u.String()
	}
	return nil
}

// content fetches a file into memory and checks its hash. note is told what
// every try brought.
func (c *Client) content(ctx context.Context, r Repo, f File, note func(int64)) ([]byte, error) {
	if f.Bytes > maxInMemory {
		return nil, diag.Errorf(diag.In(f.Path), diag.TooLarge, "%d bytes are too many to hold in memory", f.Bytes)
	}
	if f.Bytes == 0 {
		return []byte{}, nil
	}
	about := subject{ref: r.Ref, file: f.Path}
	tries := c.newRetrier(about)
	for {
		data, err := c.contentOnce(ctx, r, f, note)
		if err == nil {
			return data, nil
		}
		if err := tries.again(ctx, err); err != nil {
			return nil, err
		}
	}
}

func (c *Client) contentOnce(ctx context.Context, r Repo, f File, note func(int64)) ([]byte, error) {
	a, err := c.once(ctx, call{method: http.MethodGet, url: c.fileURL(r, f.Path), about: subject{ref: r.Ref, file: f.Path}})
	if err != nil {
		return nil, err
	}
	defer func() {
		note(a.body.own)
		a.close()
	}()
	s := &sink{f: f, hash: newHasher(f.Digest, f.Bytes)}
	if err := s.accept(a); err != nil {
		return nil, err
	}
	data := make([]byte, f.Bytes)
	n, err := io.ReadFull(a.body, data)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, &brokenError{kind: ErrTruncated, msg: fmt.Sprintf("the transfer ended after %d of %d bytes", n, f.Bytes)}
	}
	if _, _ = s.hash.Write(data); f.Digest.Valid() && !s.hash.ok() {
		s.html = looksHTML(data)
		return nil, s.wrongHash(false)
	}
	return data, nil
}
