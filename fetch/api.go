package fetch

import (
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/anepkg/anepkg/coreml/diag"
)

// Bounds for the answers of the hub.
const (
	maxAPIBody = 64 << 20 // bytes of one page
	maxPages   = 10_000
	maxEntries = 200_000 // files of one repository
)

// Repo is a repository at a fixed commit.
type Repo struct {
	Ref
	Commit string // 40 hex digits
}

// File is a file of a repository as the hub lists it.
type File struct {
	Path    string
	Bytes   int64
	Digest  Digest // of the content; "" when the hub names none
	GitID   string // blob id of what git stores (the pointer of an LFS file)
	LFS     bool
	XetHash string // not empty: stored with Xet
}

// repoPath is kind/org/name as it stands in API addresses.
func (c *Client) apiURL(r Ref, rest string) string {
	return c.cfg.Endpoint + "/api/" + string(cmp.Or(r.Kind, Models)) + "/" + r.Repo + rest
}

// fileURL is where the content of a file is found.
func (c *Client) fileURL(r Repo, name string) string {
	prefix := ""
	if r.Kind == Datasets || r.Kind == Spaces {
		prefix = string(r.Kind) + "/"
	}
	segs := strings.Split(name, "/")
	for i := range segs {
		segs[i] = url.PathEscape(segs[i])
	}
	return c.cfg.Endpoint + "/" + prefix + r.Repo + "/resolve/" + url.PathEscape(cmp.Or(r.Commit, r.Rev())) + "/" + strings.Join(segs, "/")
}

// Resolve finds the commit that ref's revision means now. Offline, the cache
// answers. A full commit id needs no request.
//
// Errors: diag.Auth and diag.NotFound as the package's sentinels tell.
func (c *Client) Resolve(ctx context.Context, ref Ref) (Repo, error) {
	if err := ref.check(ref.String()); err != nil {
		return Repo{}, err
	}
	if commitHex.MatchString(ref.Rev()) {
		return Repo{Ref: ref, Commit: ref.Rev()}, nil
	}
	if c.cfg.Offline {
		commit, ok := c.cacheOf(ref).commit(ref.Rev())
		if !ok {
			return Repo{}, errOffline(subject{ref: ref})
		}
		return Repo{Ref: ref, Commit: commit}, nil
	}
	var info struct {
		SHA string `json:"sha"`
	}
	about := subject{ref: ref}
	k := call{method: http.MethodGet, url: c.apiURL(ref, "/revision/"+url.PathEscape(ref.Rev())), about: about}
	if _, err := c.getJSON(ctx, k, &info); err != nil {
		return Repo{}, err
	}
	if !commitHex.MatchString(info.SHA) {
		return Repo{}, fail(diag.IO, ErrChanged, "%s: the hub names commit %s, want 40 hex digits", about, quoteName(info.SHA)).
			WithHint("check HF_ENDPOINT: this may be no hub")
	}
	return Repo{Ref: ref, Commit: info.SHA}, nil
}

// treeEntry is an entry of a tree page.
type treeEntry struct {
	Type string `json:"type"`
	OID  string `json:"oid"`
	Size int64  `json:"size"`
	Path string `json:"path"`
	LFS  *struct {
		OID  string `json:"oid"`
		Size int64  `json:"size"`
	} `json:"lfs"`
	XetHash string `json:"xetHash"`
}

// Tree lists the files of r, sorted by path, below its Sub when it names a
// folder, or the one file that Sub names. Names are not checked yet: Plan and
// FS do that for the files they use.
//
// Errors: ErrEmpty when there is no file at all; ErrFileNotFound, with near
// names as hint, when Sub is absent.
func (c *Client) Tree(ctx context.Context, r Repo) ([]File, error) {
	all, err := c.wholeTree(ctx, r)
	if err != nil {
		return nil, err
	}
	return below(r, all)
}

// wholeTree lists the whole repository, from the cache when it is there: the
// tree of a commit never changes.
func (c *Client) wholeTree(ctx context.Context, r Repo) ([]File, error) {
	rc := c.cacheOf(r.Ref)
	if files, ok := rc.readTree(r.Commit); ok {
		return files, nil
	}
	if c.cfg.Offline {
		if files := rc.snapshotFiles(r.Commit); len(files) > 0 {
			return files, nil
		}
		return nil, errOffline(subject{ref: r.Ref})
	}
	var files []File
	next := c.apiURL(r.Ref, "/tree/"+url.PathEscape(r.Commit)+"?recursive=true&expand=false")
	for page := 0; next != ""; page++ {
		if page >= maxPages {
			return nil, diag.Errorf(diag.Pos{}, diag.TooLarge, "%s: the listing has more than %d pages", r.Repo, maxPages)
		}
		var entries []treeEntry
		h, err := c.getJSON(ctx, call{method: http.MethodGet, url: next, about: subject{ref: r.Ref}}, &entries)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if e.Type == "file" {
				files = append(files, e.file())
			}
		}
		if len(files) > maxEntries {
			return nil, diag.Errorf(diag.Pos{}, diag.TooLarge, "%s holds more than %d files", r.Repo, maxEntries)
		}
		if next, err = nextPage(next, h); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	for i, f := range files {
		if f.Bytes < 0 {
			return nil, diag.Errorf(diag.Pos{}, diag.Malformed, "%s: the hub lists %s with %d bytes", r.Repo, quoteName(f.Path), f.Bytes)
		}
		if i > 0 && files[i-1].Path == f.Path {
			return nil, diag.Errorf(diag.Pos{}, diag.Malformed, "%s: the hub lists %s twice", r.Repo, quoteName(f.Path))
		}
	}
	rc.writeTree(r.Commit, files)
	return files, nil
}

func (e treeEntry) file() File {
	f := File{Path: e.Path, Bytes: e.Size, GitID: e.OID, XetHash: e.XetHash}
	oid := e.OID
	if e.LFS != nil {
		f.LFS, f.Bytes, oid = true, e.LFS.Size, e.LFS.OID
	}
	if d, ok := parseETag(oid); ok {
		f.Digest = d
	}
	return f
}

// nextPage finds rel="next" in the Link header (RFC 8288).
func nextPage(current string, h http.Header) (string, error) {
	for _, line := range h.Values("Link") {
		for item := range strings.SplitSeq(line, ",") {
			target, params, ok := strings.Cut(item, ">")
			target = strings.TrimSpace(target)
			if !ok || !strings.HasPrefix(target, "<") || !strings.Contains(strings.ReplaceAll(params, " ", ""), `rel="next"`) {
				continue
			}
			base, err := url.Parse(current)
			if err != nil {
				return "", err
			}
			u, err := base.Parse(target[1:])
			if err != nil || u.String() == current {
				return "", diag.Errorf(diag.Pos{}, diag.Malformed, "the hub's listing names a next page that cannot be used")
			}
			return u.String(), nil
		}
	}
	return "", nil
}

// below keeps the files of r.Sub.
func below(r Repo, all []File) ([]File, error) {
	if len(all) == 0 {
		return nil, fail(diag.NotFound, ErrEmpty, "%s holds no file at revision %q", r.Repo, r.Rev())
	}
	if r.Sub == "" {
		return all, nil
	}
	var out []File
	for _, f := range all {
		if f.Path == r.Sub || strings.HasPrefix(f.Path, r.Sub+"/") {
			out = append(out, f)
		}
	}
	if len(out) == 0 {
		e := fail(diag.NotFound, ErrFileNotFound, "%s has no file or folder %s at revision %q", r.Repo, quoteName(r.Sub), r.Rev())
		if n := nearPath(r.Sub, all); n != "" {
			e.Hint = "did you mean " + n + "?"
		}
		return nil, e
	}
	return out, nil
}

// getJSON makes the call and decodes the answer. A web page in place of JSON
// is ErrHTML.
func (c *Client) getJSON(ctx context.Context, k call, into any) (http.Header, error) {
	r := c.newRetrier(k.about)
	for {
		h, err := c.jsonOnce(ctx, k, into)
		if err == nil {
			return h, nil
		}
		if err := r.again(ctx, err); err != nil {
			return nil, err
		}
	}
}

func (c *Client) jsonOnce(ctx context.Context, k call, into any) (http.Header, error) {
	a, err := c.once(ctx, k)
	if err != nil {
		return nil, err
	}
	defer a.close()
	var body io.Reader = a.body
	if strings.EqualFold(a.Header.Get("Content-Encoding"), "gzip") {
		if body, err = gzip.NewReader(a.body); err != nil {
			return nil, &brokenError{kind: ErrTruncated, msg: "the hub's answer is no gzip data"}
		}
	}
	data, err := io.ReadAll(io.LimitReader(body, maxAPIBody+1))
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, &brokenError{kind: ErrTruncated, msg: "the hub's answer is cut short"}
	case err != nil:
		return nil, err
	case len(data) > maxAPIBody:
		return nil, diag.Errorf(diag.Pos{}, diag.TooLarge, "%s: the hub's answer is larger than %d bytes", k.about, maxAPIBody)
	case looksHTML(data):
		return nil, &brokenError{kind: ErrHTML, msg: "a web page came instead of the hub's answer", final: true}
	}
	if err := json.Unmarshal(data, into); err != nil {
		return nil, &brokenError{kind: ErrServer, msg: "the hub's answer is no JSON of the expected form"}
	}
	return a.Header, nil
}

// Stat asks the hub for one file with HEAD: its commit, size and digest.
// The headers of the hub count (X-Linked-Etag, X-Linked-Size), not those of
// the storage server behind it.
//
// Errors: ErrFileNotFound (also noted in the cache's .no_exist) and the
// package's others.
func (c *Client) Stat(ctx context.Context, ref Ref, name string) (Repo, File, error) {
	if err := checkPath(name); err != nil {
		return Repo{}, File{}, err
	}
	r := Repo{Ref: ref}
	if commitHex.MatchString(ref.Rev()) {
		r.Commit = ref.Rev()
	}
	about := subject{ref: ref, file: name}
	a, err := c.do(ctx, call{method: http.MethodHead, url: c.fileURL(r, name), relativeOnly: true, about: about})
	if err != nil {
		if errors.Is(err, ErrFileNotFound) && r.Commit != "" {
			c.cacheOf(ref).noteAbsent(r.Commit, name)
		}
		return Repo{}, File{}, err
	}
	defer a.close()
	f := File{Path: name, Bytes: a.ContentLength, LFS: a.Header.Get("X-Linked-Etag") != "", XetHash: a.Header.Get("X-Xet-Hash")}
	if r.Commit = a.Header.Get("X-Repo-Commit"); !commitHex.MatchString(r.Commit) {
		return Repo{}, File{}, fail(diag.IO, ErrHTML, "%s: the answer names no commit, so it does not come from a hub", about).
			WithHint("check HF_ENDPOINT and the proxy settings")
	}
	if n, err := strconv.ParseInt(a.Header.Get("X-Linked-Size"), 10, 64); err == nil {
		f.Bytes = n
	}
	f.Digest, _ = parseETag(cmp.Or(a.Header.Get("X-Linked-Etag"), a.Header.Get("ETag")))
	if f.Bytes < 0 {
		return Repo{}, File{}, fail(diag.IO, ErrChanged, "%s: the hub names no size", about)
	}
	return r, f, nil
}
