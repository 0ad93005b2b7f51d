package fetch

import (
	"net/url"
	"path"
	"regexp"
	"strings"

	"github.com/anepkg/anepkg/coreml/diag"
)

// RepoKind is the kind of a repository, in the plural form that the hub's
// addresses use.
type RepoKind string

// The kinds.
const (
	Models   RepoKind = "models"
	Datasets RepoKind = "datasets"
	Spaces   RepoKind = "spaces"
)

// Ref names a repository, a revision in it and a folder or file below.
type Ref struct {
	Kind     RepoKind
	Repo     string // "org/name", or "name" alone for old models
	Revision string // branch, tag or commit; "" means "main"
	Sub      string // slash separated, "" for the whole repository
}

// Rev returns the revision, "main" when none is named.
func (r Ref) Rev() string {
	if r.Revision == "" {
		return "main"
	}
	return r.Revision
}

// String prints r as ParseRef reads it.
func (r Ref) String() string {
	var b strings.Builder
	if r.Kind != Models && r.Kind != "" {
		b.WriteString("hf://" + string(r.Kind) + "/")
	}
	b.WriteString(r.Repo)
	if r.Revision != "" {
		b.WriteString("@" + strings.ReplaceAll(r.Revision, "/", "%2F"))
	}
	if r.Sub != "" {
		b.WriteString("/" + r.Sub)
	}
	return b.String()
}

var (
	// repoPart follows huggingface_hub's validate_repo_id.
	repoPart  = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,95}$`)
	commitHex = regexp.MustCompile(`^[0-9a-f]{40}$`)
	webHost   = regexp.MustCompile(`(?i)^(www\.)?(huggingface\.co|hf\.co)$`)
)

const maxRevision = 255 // characters of a branch or tag

// ParseRef reads "org/name[@revision][/sub/folder]", "hf://[models|datasets|
// spaces/]org/name…" and the address of a repository's web page (with
// /tree/REV/…, /blob/REV/… or /resolve/REV/…). A slash inside a revision is
// written %2F; "refs/pr/N" needs no quoting. endpoint is the hub whose web
// addresses are accepted besides the public one; it may be empty.
//
// Errors: diag.Usage, saying which part is wrong.
func ParseRef(s, endpoint string) (Ref, error) {
	switch {
	case strings.HasPrefix(s, "http://") || strings.HasPrefix(s, "https://"):
		return parseWeb(s, endpoint)
	case strings.HasPrefix(s, "hf://"):
		return parseParts(s, strings.TrimPrefix(s, "hf://"))
	}
	return parseParts(s, s)
}

// kindOf takes the kind off the front of rest.
func kindOf(rest string) (RepoKind, string) {
	for _, k := range []RepoKind{Models, Datasets, Spaces} {
		if cut, ok := strings.CutPrefix(rest, string(k)+"/"); ok {
			return k, cut
		}
	}
	return Models, rest
}

func parseParts(whole, rest string) (Ref, error) {
	kind, rest := kindOf(strings.TrimRight(rest, "/"))
	owner, rest, ok := strings.Cut(rest, "/")
	if !ok {
		return Ref{}, badRef(whole, "want org/name")
	}
	name, sub, _ := strings.Cut(rest, "/")
	r := Ref{Kind: kind, Sub: sub}
	if at := strings.IndexByte(name, '@'); at >= 0 {
		rev := name[at+1:]
		name = name[:at]
		// refs/pr/3 and refs/convert/x are the revisions with slashes that
		// the hub itself makes.
		if rev == "refs" {
			if p := strings.SplitN(sub, "/", 3); len(p) >= 2 {
				rev, r.Sub = "refs/"+p[0]+"/"+p[1], strings.Join(p[2:], "/")
			}
		}
		if rev == "" {
			return Ref{}, badRef(whole, "the revision after @ is empty")
		}
		un, err := url.PathUnescape(rev)
		if err != nil {
			return Ref{}, badRef(whole, "the revision is quoted wrongly")
		}
		r.Revision = un
	}
	r.Repo = owner + "/" + name
	return r, r.check(whole)
}

func parseWeb(s, endpoint string) (Ref, error) {
	u, err := url.Parse(s)
	if err != nil {
		return Ref{}, badRef(redactURL(s), "not an address")
	}
	prefix := ""
	if e, err := url.Parse(endpoint); err == nil && e.Host != "" && strings.EqualFold(e.Host, u.Host) {
		prefix = strings.TrimRight(e.EscapedPath(), "/")
	} else if !webHost.MatchString(u.Host) {
		return Ref{}, badRef(redactURL(s), "%s is not the hub", u.Host).WithHint("give org/name, or set the endpoint to that hub")
	}
	p, ok := strings.CutPrefix(u.EscapedPath(), prefix+"/")
	if !ok {
		return Ref{}, badRef(redactURL(s), "the address names no repository")
	}
	kind, p := kindOf(strings.Trim(p, "/"))
	segs := strings.Split(p, "/")
	if len(segs) < 2 {
		return Ref{}, badRef(redactURL(s), "the address names no repository")
	}
	for i := range segs {
		if segs[i], err = url.PathUnescape(segs[i]); err != nil {
			return Ref{}, badRef(redactURL(s), "wrong quoting")
		}
	}
	r := Ref{Kind: kind, Repo: segs[0] + "/" + segs[1]}
	if len(segs) > 2 {
		switch segs[2] {
		case "tree", "blob", "resolve", "raw":
		default:
			return Ref{}, badRef(redactURL(s), "/%s/ is no page of files", segs[2])
		}
		n := 4
		if len(segs) > 5 && segs[3] == "refs" {
			n = 6
		}
		if len(segs) < n {
			return Ref{}, badRef(redactURL(s), "no revision after /%s/", segs[2])
		}
		r.Revision, r.Sub = strings.Join(segs[3:n], "/"), strings.Join(segs[n:], "/")
	}
	return r, r.check(redactURL(s))
}

// check bounds every part.
func (r Ref) check(whole string) error {
	parts := strings.Split(r.Repo, "/")
	if len(parts) > 2 {
		return badRef(whole, "want org/name")
	}
	for _, p := range parts {
		if !repoPart.MatchString(p) || strings.Contains(p, "--") || strings.Contains(p, "..") || strings.HasSuffix(p, ".git") || strings.HasSuffix(p, ".") || strings.HasSuffix(p, "-") {
			return badRef(whole, "%q is no name of an organisation or repository", p)
		}
	}
	if err := checkRevision(r.Rev()); err != "" {
		return badRef(whole, "revision %q %s", r.Revision, err)
	}
	if r.Sub != "" && (path.Clean(r.Sub) != r.Sub || checkPath(r.Sub) != nil) {
		return badRef(whole, "%q is no path inside a repository", r.Sub)
	}
	return nil
}

// checkRevision says what is wrong with rev, "" when nothing is. Revisions
// become file names below refs/.
func checkRevision(rev string) string {
	switch {
	case rev == "" || len(rev) > maxRevision:
		return "is empty or too long"
	case checkPath(rev) != nil || path.Clean(rev) != rev:
		return "holds parts that no branch or tag may have"
	}
	return ""
}

func badRef(s, format string, args ...any) *diag.Error {
	e := diag.Errorf(diag.Pos{}, diag.Usage, format, args...)
	e.Msg = s + ": " + e.Msg
	return e.WithHint("a repository is written org/name, org/name@revision or org/name/folder")
}
