package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path"
	"strconv"
	"strings"
	"sync"
)

// bufferSize is how much is read, hashed and written at a time, in bytes.
const bufferSize = 1 << 20

var buffers = sync.Pool{New: func() any { b := make([]byte, bufferSize); return &b }}

// maxDigestTries is how often a whole content with a wrong hash is fetched
// anew: the first time the fault may lie in an old partial.
const maxDigestTries = 2

// transferred is what a transfer did.
type transferred struct {
	sha256  string
	moved   int64 // bytes that came and were kept
	resumed bool  // an earlier run had begun it
}

// transfer brings the content of f into the file partial, continuing what is
// there, and returns when it is whole, has the right hash and is on the disk.
// The caller holds the lock. On failure the partial stays, except when its
// hash is wrong.
func (c *Client) transfer(ctx context.Context, r Repo, f File, partial string, report func(have int64)) (transferred, error) {
	s := &sink{f: f, report: report}
	if err := s.open(ctx, partial); err != nil {
		return transferred{}, err
	}
	defer func() { _ = s.file.Close() }()
	t := transferred{resumed: s.size > 0}
	start := s.size
	about := subject{ref: r.Ref, file: f.Path}
	tries := c.newRetrier(about)
	best := s.size // what was reached before; getting there again is no progress
	for wrong := 0; ; {
		err := c.transferOnce(ctx, r, s, about)
		if err == nil {
			if s.hash.ok() {
				break
			}
			err = s.wrongHash(wrong+1 >= maxDigestTries)
			wrong++
			start, t.resumed = 0, false
			if rerr := s.reset(); rerr != nil {
				return t, rerr
			}
		}
		var be *brokenError
		if errors.As(err, &be) && s.size > best {
			be.progress = true
			tries.progress()
		}
		best = max(best, s.size)
		if err := tries.again(ctx, err); err != nil {
			return t, err
		}
		start = min(start, s.size)
	}
	t.sha256, t.moved = s.hash.sha256(), f.Bytes-start
	t.resumed = t.resumed && start > 0
	if err := errors.Join(s.file.Sync(), s.file.Close()); err != nil {
		return t, ioErr(partial, err)
	}
	return t, nil
}

// transferOnce makes one request for what is missing.
func (c *Client) transferOnce(ctx context.Context, r Repo, s *sink, about subject) error {
	if s.size == s.f.Bytes {
		return nil
	}
	h := http.Header{}
	if s.size > 0 {
		h.Set("Range", "bytes="+strconv.FormatInt(s.size, 10)+"-")
	}
	a, err := c.once(ctx, call{method: http.MethodGet, url: c.fileURL(r, s.f.Path), header: h, about: about})
	var se *statusError
	if errors.As(err, &se) && se.status == http.StatusRequestedRangeNotSatisfiable && s.size > 0 {
		if err := s.reset(); err != nil {
			return err
		}
		return &brokenError{kind: ErrChanged, msg: "the server refuses to continue the transfer"}
	}
	if se != nil && !se.fromHub && (se.status == http.StatusForbidden || se.status == http.StatusUnauthorized || se.status == http.StatusBadRequest) {
		// The address was signed for a while; the hub signs a new one.
		return &brokenError{kind: ErrUnreachable, msg: fmt.Sprintf("the storage refuses the address that the hub signed (status %d)", se.status)}
	}
	if err != nil {
		return err
	}
	defer a.close()
	if err := s.accept(a); err != nil {
		return err
	}
	return s.copy(a)
}

// sink is the partial file with its running hash.
type sink struct {
	f      File
	file   *os.File
	size   int64
	hash   *hasher
	html   bool // the content begins like a web page
	report func(int64)
}

// open opens or creates the partial and hashes what it holds.
func (s *sink) open(ctx context.Context, name string) error {
	file, err := openOwn(name)
	if err != nil {
		return ioErr(name, err)
	}
	s.file, s.hash = file, newHasher(s.f.Digest, s.f.Bytes)
	info, err := file.Stat()
	switch {
	case err != nil:
	case info.Size() > s.f.Bytes:
		err = file.Truncate(0)
	default:
		s.size, err = copyContext(ctx, s.hash, file)
	}
	if err != nil {
		return errors.Join(ioErr(name, err), file.Close())
	}
	s.report(s.size)
	return nil
}

// reset throws away what the partial holds.
func (s *sink) reset() error {
	s.size, s.hash, s.html = 0, newHasher(s.f.Digest, s.f.Bytes), false
	_, err := s.file.Seek(0, io.SeekStart)
	if err = errors.Join(s.file.Truncate(0), err); err != nil {
		return ioErr(s.file.Name(), err)
	}
	s.report(0)
	return nil
}

// accept checks the headers of an answer before a byte of it is kept.
func (s *sink) accept(a *answer) error {
	if enc := a.Header.Get("Content-Encoding"); enc != "" && !strings.EqualFold(enc, "identity") {
		return &brokenError{kind: ErrChanged, msg: fmt.Sprintf("the server sends the content %s-encoded, which cannot be verified", printable(enc))}
	}
	for _, name := range []string{"X-Linked-Etag", "ETag"} {
		d, ok := parseETag(a.hub.Get(name))
		if !ok || d.IsSHA256() != s.f.Digest.IsSHA256() {
			continue
		}
		if d != s.f.Digest {
			return &brokenError{kind: ErrChanged, msg: fmt.Sprintf("the hub serves content %s, its listing names %s", d, s.f.Digest), final: true}
		}
		break
	}
	if a.StatusCode == http.StatusPartialContent {
		return s.acceptRange(a.Header.Get("Content-Range"))
	}
	if s.size > 0 {
		if err := s.reset(); err != nil {
			return err
		}
	}
	if n := a.ContentLength; n >= 0 && n != s.f.Bytes {
		head := make([]byte, 512)
		k, _ := io.ReadFull(a.body, head)
		if looksHTML(head[:k]) && !htmlName(s.f.Path) {
			return &brokenError{kind: ErrHTML, msg: "a web page came instead of the file", final: true}
		}
		return &brokenError{kind: ErrChanged, msg: fmt.Sprintf("the server announces %d bytes, want %d", n, s.f.Bytes)}
	}
	return nil
}

func (s *sink) acceptRange(v string) error {
	first, total, ok := parseContentRange(v)
	if ok && first == s.size && (total < 0 || total == s.f.Bytes) {
		return nil
	}
	want := s.size
	if err := s.reset(); err != nil {
		return err
	}
	return &brokenError{kind: ErrChanged, msg: fmt.Sprintf("the server answers with range %q, want one from %d of %d", printable(v), want, s.f.Bytes)}
}

// parseContentRange reads "bytes FIRST-LAST/TOTAL"; total is -1 for "*".
func parseContentRange(v string) (first, total int64, ok bool) {
	v, found := strings.CutPrefix(v, "bytes ")
	span, all, cut := strings.Cut(v, "/")
	a, b, dash := strings.Cut(span, "-")
	if !found || !cut || !dash {
		return 0, 0, false
	}
	first, err1 := strconv.ParseInt(a, 10, 64)
	last, err2 := strconv.ParseInt(b, 10, 64)
	total = -1
	var err3 error
	if all != "*" {
		total, err3 = strconv.ParseInt(all, 10, 64)
	}
	ok = err1 == nil && err2 == nil && err3 == nil && first >= 0 && last >= first && (total < 0 || last < total)
	return first, total, ok
}

// copy keeps the body. More bytes than announced by the listing are an error.
func (s *sink) copy(a *answer) error {
	bp, _ := buffers.Get().(*[]byte)
	defer buffers.Put(bp)
	buf := *bp
	for {
		n, err := io.ReadAtLeast(a.body, buf, 64<<10)
		if int64(n) > s.f.Bytes-s.size {
			if err := s.reset(); err != nil {
				return err
			}
			return &brokenError{kind: ErrChanged, msg: fmt.Sprintf("more than the expected %d bytes came", s.f.Bytes)}
		}
		if n > 0 {
			if werr := s.write(buf[:n]); werr != nil {
				return werr
			}
		}
		switch {
		case err == nil:
			continue
		case s.size == s.f.Bytes:
			return nil
		case a.Request.Context().Err() != nil && errors.Is(context.Cause(a.Request.Context()), context.Canceled):
			return context.Canceled
		}
		return &brokenError{kind: ErrTruncated, msg: fmt.Sprintf("the transfer ended after %d of %d bytes", s.size, s.f.Bytes)}
	}
}

func (s *sink) write(p []byte) error {
	if s.size == 0 {
		s.html = looksHTML(p)
	}
	if _, err := s.file.Write(p); err != nil {
		return ioErr(s.file.Name(), err)
	}
	_, _ = s.hash.Write(p)
	s.size += int64(len(p))
	s.report(s.size)
	return nil
}

// wrongHash is the error for a whole content that is not the right one.
func (s *sink) wrongHash(final bool) error {
	if s.html && !htmlName(s.f.Path) {
		return &brokenError{kind: ErrHTML, msg: "a web page came instead of the file", final: true}
	}
	return &brokenError{kind: ErrDigest, msg: fmt.Sprintf("the content has hash %s, want %s", s.hash.got(), s.f.Digest), final: final}
}

func htmlName(name string) bool {
	switch strings.ToLower(path.Ext(name)) {
	case ".html", ".htm", ".xhtml", ".md", ".svg", ".xml":
		return true
	}
	return false
}

// copyContext is io.Copy that stops when ctx ends.
func copyContext(ctx context.Context, w io.Writer, r io.Reader) (int64, error) {
	bp, _ := buffers.Get().(*[]byte)
	defer buffers.Put(bp)
	var sum int64
	for {
		if err := ctx.Err(); err != nil {
			return sum, err
		}
		n, err := r.Read(*bp)
		if n > 0 {
			if _, werr := w.Write((*bp)[:n]); werr != nil {
				return sum, werr
			}
			sum += int64(n)
		}
		if err == io.EOF {
			return sum, nil
		}
		if err != nil {
			return sum, err
		}
	}
}

// hashFile hashes a local file in the form of f's digest.
func hashFile(ctx context.Context, name string, f File) (*hasher, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, ioErr(name, err)
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return nil, ioErr(name, err)
	}
	h := newHasher(f.Digest, info.Size())
	if _, err := copyContext(ctx, h, file); err != nil {
		return nil, ioErr(name, err)
	}
	return h, nil
}
