package hubtest

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// storageKey signs the addresses of the storage server.
const storageKey = "signed"

// serveFile answers {org}/{name}/resolve/{rev}/{path}.
func (h *Hub) serveFile(w http.ResponseWriter, r *http.Request, name, commit, p string, f file) {
	kind := "content"
	if r.Method == http.MethodHead {
		kind = "head"
	}
	fault := h.ask(Request{Kind: kind, Repo: name, Path: p, Range: r.Header.Get("Range")})
	hd := w.Header()
	hd.Set("X-Repo-Commit", commit)
	etag := f.gitID
	if f.sha256 != "" {
		etag = f.sha256
	}
	if fault.ETag != "" {
		etag = fault.ETag
	}
	hd.Set("ETag", `"`+etag+`"`)
	if f.sha256 != "" {
		hd.Set("ETag", `"the-storage-has-its-own"`)
		hd.Set("X-Linked-Etag", `"`+etag+`"`)
		hd.Set("X-Linked-Size", strconv.FormatInt(f.Size, 10))
	}
	if fault.early(w, r) {
		return
	}
	if f.sha256 != "" && fault.Content == nil {
		u := url.URL{Path: "/" + name + "/" + commit + "/" + p, RawQuery: "key=" + storageKey}
		hd.Set("Location", h.storage.URL+u.String())
		w.WriteHeader(http.StatusFound)
		return
	}
	h.send(w, r, f, fault)
}

// serveStorage is the second server: it knows no tokens, only signatures.
func (h *Hub) serveStorage(w http.ResponseWriter, r *http.Request) {
	w = h.watch("storage", w, r)
	parts := strings.SplitN(strings.TrimPrefix(r.URL.Path, "/"), "/", 4)
	if r.URL.Query().Get("key") != storageKey || len(parts) != 4 {
		http.Error(w, "<?xml version=\"1.0\"?><Error><Code>AccessDenied</Code></Error>", http.StatusForbidden)
		return
	}
	name := parts[0] + "/" + parts[1]
	h.mu.Lock()
	f, ok := h.repo(name).commits[parts[2]][parts[3]]
	h.mu.Unlock()
	if !ok {
		http.NotFound(w, r)
		return
	}
	fault := h.ask(Request{Kind: "storage", Repo: name, Path: parts[3], Range: r.Header.Get("Range")})
	w.Header().Set("ETag", `"0123456789abcdef0123456789abcdef-3"`)
	if fault.early(w, r) {
		return
	}
	h.send(w, r, f, fault)
}

// send writes the content, or the range that was asked for.
func (h *Hub) send(w http.ResponseWriter, r *http.Request, f file, fault *Fault) {
	c := f.Content
	if fault.Content != nil {
		c = Bytes(fault.Content)
	}
	first, last, status := int64(0), c.Size-1, http.StatusOK
	if a, b, ok := wantedRange(r.Header.Get("Range"), c.Size); ok && !fault.IgnoreRange {
		if a >= c.Size {
			w.Header().Set("Content-Range", fmt.Sprintf("bytes */%d", c.Size))
			w.WriteHeader(http.StatusRequestedRangeNotSatisfiable)
			return
		}
		first, last, status = min(a+fault.WrongRange, c.Size-1), b, http.StatusPartialContent
		w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", first, last, c.Size))
	}
	body := io.Reader(io.NewSectionReader(c.At, first, last-first+1))
	size := last - first + 1
	if fault.Gzip {
		data, _ := io.ReadAll(body)
		data = gzipped(data)
		w.Header().Set("Content-Encoding", "gzip")
		body, size = strings.NewReader(string(data)), int64(len(data))
	}
	if fault.Announce != 0 {
		size = fault.Announce
	}
	w.Header().Set("Content-Length", strconv.FormatInt(size, 10))
	w.WriteHeader(status)
	if r.Method == http.MethodHead {
		return
	}
	if fault.CutAfter > 0 {
		w = &cutter{ResponseWriter: w, left: fault.CutAfter}
	}
	_, _ = io.CopyBuffer(struct{ io.Writer }{w}, body, make([]byte, 256<<10))
}

// wantedRange reads "bytes=A-" and "bytes=A-B".
func wantedRange(v string, size int64) (a, b int64, ok bool) {
	v, ok = strings.CutPrefix(v, "bytes=")
	from, to, dash := strings.Cut(v, "-")
	if !ok || !dash {
		return 0, 0, false
	}
	a, err := strconv.ParseInt(from, 10, 64)
	if err != nil || a < 0 {
		return 0, 0, false
	}
	if b, err = strconv.ParseInt(to, 10, 64); err != nil || b >= size {
		b = size - 1
	}
	return a, b, true
}

// counting notes how much of a body was sent. It counts before it writes, so
// that a client that has a byte finds it counted.
type counting struct {
	http.ResponseWriter
	h    *Hub
	seen *Seen
}

func (c *counting) Write(p []byte) (int, error) {
	c.add(len(p))
	n, err := c.ResponseWriter.Write(p)
	c.add(n - len(p))
	return n, err
}

func (c *counting) add(n int) {
	c.h.mu.Lock()
	defer c.h.mu.Unlock()
	c.seen.Sent += int64(n)
}

// Unwrap is for http.ResponseController.
func (c *counting) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// watch notes the request, in the order of arrival.
func (h *Hub) watch(server string, w http.ResponseWriter, r *http.Request) http.ResponseWriter {
	s := &Seen{Server: server, Method: r.Method, Path: r.URL.Path, Range: r.Header.Get("Range"),
		Auth: r.Header.Get("Authorization"), Accept: r.Header.Get("Accept-Encoding")}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.seen = append(h.seen, s)
	return &counting{w, h, s}
}
