package hubtest

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"strconv"
	"time"
)

// Request is what Hub.Fault decides on.
type Request struct {
	Kind  string // "revision", "tree", "head", "content" or "storage"
	Repo  string
	Path  string // of the file; "" for the API
	Range string
	N     int // how many requests of this kind and path came before
}

// Fault is a misbehaviour. The zero value does nothing.
type Fault struct {
	Status      int         // answer with this status, Header and Body
	Header      http.Header // added to the answer in any case
	Body        []byte
	CutAfter    int64         // close the connection after that many bytes of the body
	IgnoreRange bool          // answer 200 with everything
	WrongRange  int64         // start a range that many bytes too late
	Gzip        bool          // encode the content although nobody asked
	Content     []byte        // serve this instead of the content
	Announce    int64         // the Content-Length to lie with
	Hang        time.Duration // wait before answering
	Redirect    string        // answer 302 with this Location
	ETag        string        // the ETag and X-Linked-Etag to lie with
}

// SetFault changes Fault while requests may be under way.
func (h *Hub) SetFault(fn func(Request) *Fault) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.Fault = fn
}

// ask asks Fault.
func (h *Hub) ask(q Request) *Fault {
	h.mu.Lock()
	key := q.Kind + " " + q.Repo + " " + q.Path
	q.N = h.count[key]
	h.count[key]++
	fn := h.Fault
	h.mu.Unlock()
	if fn == nil {
		return &Fault{}
	}
	if f := fn(q); f != nil {
		return f
	}
	return &Fault{}
}

// early answers when the fault needs no content. It reports whether it did.
func (f *Fault) early(w http.ResponseWriter, r *http.Request) bool {
	if f.Hang > 0 {
		select {
		case <-time.After(f.Hang):
		case <-r.Context().Done():
			return true
		}
	}
	for k, v := range f.Header {
		w.Header()[k] = v
	}
	switch {
	case f.Redirect != "":
		w.Header().Set("Location", f.Redirect)
		w.WriteHeader(http.StatusFound)
	case f.Status != 0:
		if len(f.Body) > 0 {
			w.Header().Set("Content-Length", strconv.Itoa(len(f.Body)))
		}
		w.WriteHeader(f.Status)
		_, _ = w.Write(f.Body)
	default:
		return false
	}
	return true
}

// cutter closes the connection after n bytes.
type cutter struct {
	http.ResponseWriter
	left int64
}

func (c *cutter) Write(p []byte) (int, error) {
	if int64(len(p)) >= c.left {
		_, _ = c.ResponseWriter.Write(p[:c.left])
		_ = http.NewResponseController(c.ResponseWriter).Flush()
		panic(http.ErrAbortHandler)
	}
	c.left -= int64(len(p))
	return c.ResponseWriter.Write(p)
}

// gzipped is data as a server with an eager encoder sends it.
func gzipped(data []byte) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write(data)
	_ = z.Close()
	return b.Bytes()
}
