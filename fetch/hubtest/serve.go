package hubtest

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
)

// serveHub is the first server.
func (h *Hub) serveHub(w http.ResponseWriter, r *http.Request) {
	w = h.watch("hub", w, r)
	segs := strings.Split(strings.Trim(r.URL.EscapedPath(), "/"), "/")
	for i := range segs {
		segs[i], _ = url.PathUnescape(segs[i])
	}
	switch {
	case len(segs) >= 4 && segs[0] == "api" && segs[1] == "models":
		h.serveAPI(w, r, segs[2]+"/"+segs[3], segs[4:])
	case len(segs) >= 5 && segs[2] == "resolve":
		name := segs[0] + "/" + segs[1]
		repo, ok := h.open(w, r, name, true)
		if !ok {
			return
		}
		commit, files := h.at(repo, segs[3])
		p := strings.Join(segs[4:], "/")
		f, found := files[p]
		switch {
		case files == nil:
			refuse(w, 404, "RevisionNotFound", "Invalid rev id: "+segs[3])
		case !found:
			w.Header().Set("X-Repo-Commit", commit)
			refuse(w, 404, "EntryNotFound", "Entry not found")
		default:
			h.serveFile(w, r, name, commit, p, f)
		}
	default:
		http.NotFound(w, r)
	}
}

// open finds the repository and checks the token. content says that a gated
// repository's gate counts: its listing is open to all.
func (h *Hub) open(w http.ResponseWriter, r *http.Request, name string, content bool) (*repo, bool) {
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	h.mu.Lock()
	repo, tokens := h.repos[name], h.Tokens
	h.mu.Unlock()
	access, known := tokens[token]
	switch {
	case token != "" && len(tokens) > 0 && !known:
		refuse(w, 401, "", "Invalid credentials in Authorization header")
	case repo == nil || repo.private && access != Granted:
		status := 404
		if token == "" {
			status = 401
		}
		refuse(w, status, "RepoNotFound", "Repository not found")
	case repo.gated && content && token == "":
		refuse(w, 401, "GatedRepo", "Access to model "+name+" is restricted. You must have access to it and be authenticated to access it. Please log in.")
	case repo.gated && content && access != Granted:
		refuse(w, 403, "GatedRepo", map[Access]string{
			Pending:  "Your request to access model " + name + " is awaiting a review from the repo authors.",
			Rejected: "Your request to access model " + name + " has been rejected by the repo's authors.",
		}[access])
	default:
		return repo, true
	}
	return nil, false
}

func refuse(w http.ResponseWriter, status int, code, message string) {
	if code != "" {
		w.Header().Set("X-Error-Code", code)
	}
	w.Header().Set("X-Error-Message", message)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": message})
}

// at finds the commit that rev means and its files.
func (h *Hub) at(r *repo, rev string) (string, map[string]file) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if c, ok := r.refs[rev]; ok {
		rev = c
	}
	return rev, r.commits[rev]
}

func (h *Hub) serveAPI(w http.ResponseWriter, r *http.Request, name string, rest []string) {
	kind := "revision"
	if len(rest) > 0 && rest[0] == "tree" {
		kind = "tree"
	}
	if h.ask(Request{Kind: kind, Repo: name}).early(w, r) {
		return
	}
	repo, ok := h.open(w, r, name, false)
	if !ok {
		return
	}
	rev := "main"
	if len(rest) > 1 {
		rev = rest[1]
	}
	commit, files := h.at(repo, rev)
	if files == nil {
		refuse(w, 404, "RevisionNotFound", "Invalid rev id: "+rev)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if kind == "tree" {
		h.serveTree(w, r, files)
		return
	}
	var siblings []map[string]any
	for _, p := range slices.Sorted(maps.Keys(files)) {
		siblings = append(siblings, map[string]any{"rfilename": p})
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"_id": "1", "id": name, "modelId": name, "sha": commit, "private": repo.private,
		"gated": repo.gated, "disabled": false, "downloads": 0, "likes": 0, "tags": []string{}, "siblings": siblings})
}

// serveTree lists recursively, in pages.
func (h *Hub) serveTree(w http.ResponseWriter, r *http.Request, files map[string]file) {
	var entries []map[string]any
	dirs := map[string]bool{}
	for _, p := range slices.Sorted(maps.Keys(files)) {
		for d := path.Dir(p); d != "." && d != "/" && d != ".." && !dirs[d]; d = path.Dir(d) {
			dirs[d] = true
			entries = append(entries, map[string]any{"type": "directory", "oid": strings.Repeat("0", 40), "size": 0, "path": d})
		}
		f := files[p]
		e := map[string]any{"type": "file", "oid": f.gitID, "size": f.Size, "path": p}
		if f.sha256 != "" {
			e["lfs"] = map[string]any{"oid": f.sha256, "size": f.Size, "pointerSize": 130}
		}
		entries = append(entries, e)
	}
	size := h.PageSize
	if size == 0 {
		size = 1000
	}
	from, _ := strconv.Atoi(r.URL.Query().Get("cursor"))
	from = min(max(from, 0), len(entries))
	to := min(from+size, len(entries))
	if to < len(entries) {
		q := r.URL.Query()
		q.Set("cursor", strconv.Itoa(to))
		w.Header().Set("Link", fmt.Sprintf("<%s%s?%s>; rel=\"next\"", h.URL, r.URL.EscapedPath(), q.Encode()))
	}
	if entries = entries[from:to]; entries == nil {
		entries = []map[string]any{}
	}
	_ = json.NewEncoder(w).Encode(entries)
}
