// Package hubtest is a Hugging Face hub inside the process, for tests. It
// serves repositories as the real hub does (listings in pages, redirects to a
// storage server on another host, ranges, ETags) and misbehaves on demand. It
// shares no code with the client that it tests.
//
// Files: hub.go (Hub and repositories), serve.go (the API), content.go (file
// contents and the storage server), fault.go (misbehaviour).
package hubtest

import (
	"bytes"
	"crypto/sha1" //nolint:gosec // git's blob ids
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strings"
	"sync"
)

// Content is what a file holds. Large ones need not be in memory.
type Content struct {
	Size int64
	At   io.ReaderAt
}

// Bytes makes a Content of data.
func Bytes(data []byte) Content {
	return Content{Size: int64(len(data)), At: bytes.NewReader(data)}
}

// file is a Content with its names.
type file struct {
	Content
	gitID  string // of the content, or of its pointer when it is in LFS
	sha256 string // set for LFS files
}

// Access is what a token may do with a gated repository.
type Access string

// The stages of a request for access.
const (
	Granted  Access = "granted"
	None     Access = "none"
	Pending  Access = "pending"
	Rejected Access = "rejected"
)

type repo struct {
	commits map[string]map[string]file
	refs    map[string]string
	gated   bool
	private bool
}

// Seen is a request that the hub or its storage server got.
type Seen struct {
	Server string // "hub" or "storage"
	Method string
	Path   string // decoded, without the query
	Range  string
	Auth   string // the Authorization header
	Accept string // the Accept-Encoding header
	Sent   int64  // bytes of the body
}

// Hub is a running hub. Its exported fields are set before the first request;
// SetFault may be called at any time.
type Hub struct {
	URL      string // of the hub
	PageSize int    // entries of a tree page; 0 means 1000
	// LFSFrom makes files of at least this size LFS files, besides *.bin,
	// *.zip and tokenizer.json; 0 means 10 MB.
	LFSFrom int64
	// Tokens says what each token may do with gated repositories. With any
	// entry, unknown tokens are refused.
	Tokens map[string]Access
	// Fault is asked about every request; nil or a nil answer means none.
	Fault func(Request) *Fault

	hub, storage *httptest.Server

	mu    sync.Mutex
	repos map[string]*repo
	seen  []*Seen
	count map[string]int
}

// New starts a hub. Close it at the end.
func New() *Hub {
	h := &Hub{repos: map[string]*repo{}, count: map[string]int{}}
	h.hub = httptest.NewServer(http.HandlerFunc(h.serveHub))
	h.storage = httptest.NewServer(http.HandlerFunc(h.serveStorage))
	h.URL = h.hub.URL
	return h
}

// Close stops the servers.
func (h *Hub) Close() {
	h.hub.CloseClientConnections()
	h.storage.CloseClientConnections()
	h.hub.Close()
	h.storage.Close()
}

// Add makes a new commit of files on branch main of org/name and returns its
// id. The repository is made when it is new.
func (h *Hub) Add(name string, files map[string][]byte) string {
	c := map[string]Content{}
	for p, data := range files {
		c[p] = Bytes(data)
	}
	return h.AddContent(name, c)
}

// AddFS is Add with the regular files of fsys.
func (h *Hub) AddFS(name string, fsys fs.FS) (string, error) {
	files := map[string][]byte{}
	err := fs.WalkDir(fsys, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(fsys, p)
		files[p] = data
		return err
	})
	if err != nil {
		return "", err
	}
	return h.Add(name, files), nil
}

// AddContent is Add for contents of any size.
func (h *Hub) AddContent(name string, files map[string]Content) string {
	listed := map[string]file{}
	id := sha256.New()
	for _, p := range slices.Sorted(maps.Keys(files)) {
		f := h.newFile(p, files[p])
		listed[p] = f
		fmt.Fprintf(id, "%s %s\n", p, f.gitID)
	}
	commit := hex.EncodeToString(id.Sum(nil))[:40]
	h.mu.Lock()
	defer h.mu.Unlock()
	r := h.repo(name)
	r.commits[commit] = listed
	r.refs["main"] = commit
	return commit
}

// SetRef points a branch or tag of name to a commit.
func (h *Hub) SetRef(name, ref, commit string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.repo(name).refs[ref] = commit
}

// Restrict makes a repository gated or private.
func (h *Hub) Restrict(name string, gated, private bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.repo(name).gated, h.repo(name).private = gated, private
}

func (h *Hub) repo(name string) *repo {
	r := h.repos[name]
	if r == nil {
		r = &repo{commits: map[string]map[string]file{}, refs: map[string]string{}}
		h.repos[name] = r
	}
	return r
}

// Seen returns the requests so far.
func (h *Hub) Seen() []Seen {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := make([]Seen, len(h.seen))
	for i, s := range h.seen {
		out[i] = *s
	}
	return out
}

// Forget empties the list of requests.
func (h *Hub) Forget() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.seen, h.count = nil, map[string]int{}
}

// SentOf sums the body bytes sent for a file, whichever server sent them.
func (h *Hub) SentOf(name string) int64 {
	var sum int64
	for _, s := range h.Seen() {
		if s.Method == http.MethodGet && strings.HasSuffix(s.Path, "/"+name) {
			sum += s.Sent
		}
	}
	return sum
}

func (h *Hub) newFile(p string, c Content) file {
	from := h.LFSFrom
	if from == 0 {
		from = 10 << 20
	}
	ext := path.Ext(p)
	if c.Size < from && ext != ".bin" && ext != ".zip" && path.Base(p) != "tokenizer.json" {
		return file{Content: c, gitID: gitID(c)}
	}
	sum := sha256.New()
	_, _ = io.Copy(sum, io.NewSectionReader(c.At, 0, c.Size))
	hexSum := hex.EncodeToString(sum.Sum(nil))
	pointer := fmt.Sprintf("version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize %d\n", hexSum, c.Size)
	return file{Content: c, gitID: gitID(Bytes([]byte(pointer))), sha256: hexSum}
}

func gitID(c Content) string {
	sum := sha1.New() //nolint:gosec // git's blob ids
	fmt.Fprintf(sum, "blob %d\x00", c.Size)
	_, _ = io.Copy(sum, io.NewSectionReader(c.At, 0, c.Size))
	return hex.EncodeToString(sum.Sum(nil))
}
