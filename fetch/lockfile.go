package fetch

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"slices"
	"strings"

	"github.com/anepkg/anepkg/coreml/diag"
)

const (
	lockSchema  = "anepkg.lock/1"
	maxLockFile = 32 << 20 // bytes
)

// Lock is an exact set of files: what a download gave once and has to give
// again.
type Lock struct {
	Schema   string     `json:"schema"`
	Kind     RepoKind   `json:"kind"`
	Repo     string     `json:"repo"`
	Revision string     `json:"revision"` // as it was asked for; a remark
	Commit   string     `json:"commit"`
	Sub      string     `json:"sub,omitempty"`
	Files    []LockFile `json:"files"`

	name string // of the file it was read from, for messages
}

// LockFile is a file of a Lock. Its digest in the hub's own form is kept
// besides the SHA-256 so that a changed listing shows without a download.
type LockFile struct {
	Path   string `json:"path"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// Lock describes what r holds.
func (r *Result) Lock() *Lock {
	l := &Lock{Schema: lockSchema, Kind: Models, Repo: r.Repo.Repo, Revision: r.Repo.Rev(), Commit: r.Repo.Commit, Sub: r.Repo.Sub}
	if r.Repo.Kind != "" {
		l.Kind = r.Repo.Kind
	}
	for _, f := range r.Files {
		l.Files = append(l.Files, LockFile{Path: f.Path, Bytes: f.Bytes, SHA256: f.SHA256})
	}
	slices.SortFunc(l.Files, func(a, b LockFile) int { return strings.Compare(a.Path, b.Path) })
	return l
}

// Write writes l as JSON.
func (l *Lock) Write(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(l)
}

// ReadLock reads what Write wrote. name is for messages.
//
// Errors: diag.Malformed, diag.Unsupported for another schema.
func ReadLock(r io.Reader, name string) (*Lock, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxLockFile+1))
	if err != nil {
		return nil, ioErr(name, err)
	}
	at := diag.In(name)
	if len(data) > maxLockFile {
		return nil, diag.Errorf(at, diag.TooLarge, "lock file of more than %d bytes", maxLockFile)
	}
	var l Lock
	if err := json.Unmarshal(data, &l); err != nil {
		return nil, diag.Errorf(at, diag.Malformed, "no lock file: %w", err)
	}
	if l.Schema != lockSchema {
		return nil, diag.Errorf(at, diag.Unsupported, "lock file has schema %q, want %q", l.Schema, lockSchema)
	}
	l.name = name
	ref := Ref{Kind: l.Kind, Repo: l.Repo, Revision: l.Commit, Sub: l.Sub}
	if err := ref.check(ref.String()); err != nil {
		return nil, err
	}
	if !commitHex.MatchString(l.Commit) || len(l.Files) == 0 {
		return nil, diag.Errorf(at, diag.Malformed, "lock file names commit %q and %d files", l.Commit, len(l.Files))
	}
	var names []string
	for _, f := range l.Files {
		names = append(names, f.Path)
		if !hex64.MatchString(f.SHA256) || f.Bytes < 0 {
			return nil, diag.Errorf(at, diag.Malformed, "%s: size %d or hash %q is none", quoteName(f.Path), f.Bytes, f.SHA256)
		}
	}
	return &l, checkPaths(names)
}

// Match reports whether ref, as a user names it beside the lock file, is what
// l is of: the repository, the revision or commit, and the folder. What ref
// leaves open is not compared.
//
// Errors: diag.Mismatch.
func (l *Lock) Match(ref Ref) error {
	rev := ref.Revision
	switch {
	case ref.Repo != l.Repo || cmp.Or(ref.Kind, Models) != cmp.Or(l.Kind, Models):
		return diag.Errorf(diag.In(l.name), diag.Mismatch, "the lock file is of %s, the argument names %s", l.Repo, ref.Repo).
			WithHint("leave the argument out, or name another lock file")
	case rev != "" && rev != cmp.Or(l.Revision, "main") && rev != l.Commit:
		return diag.Errorf(diag.In(l.name), diag.Mismatch, "the lock file is of revision %s (commit %s), the argument names revision %s", quoteName(cmp.Or(l.Revision, "main")), l.Commit, quoteName(rev)).
			WithHint("leave the revision out, or name another lock file")
	case ref.Sub != "" && ref.Sub != l.Sub:
		return diag.Errorf(diag.In(l.name), diag.Mismatch, "the lock file is of %s, the argument names %s", quoteName(cmp.Or(l.Sub, "the whole repository")), quoteName(ref.Sub)).
			WithHint("leave the folder out, or name another lock file")
	}
	return nil
}

// PlanLock plans exactly the files of l at its commit.
//
// Errors: diag.Mismatch when the hub lists a file otherwise or not at all;
// those of Plan.
func (c *Client) PlanLock(ctx context.Context, l *Lock, to string) (*Plan, error) {
	r := Repo{Ref: Ref{Kind: l.Kind, Repo: l.Repo, Revision: l.Commit, Sub: l.Sub}, Commit: l.Commit}
	all, err := c.wholeTree(ctx, r)
	if err != nil {
		return nil, err
	}
	listed := map[string]File{}
	for _, f := range all {
		listed[f.Path] = f
	}
	p := &Plan{Repo: r, Dir: to, lock: l}
	var files []File
	for _, want := range l.Files {
		f, ok := listed[want.Path]
		switch {
		case !ok:
			return nil, lockDiffers(want, "the repository has no such file")
		case f.Bytes != want.Bytes:
			return nil, lockDiffers(want, "it has %d bytes, the lock file says %d", f.Bytes, want.Bytes)
		case f.Digest.IsSHA256() && string(f.Digest) != want.SHA256:
			return nil, lockDiffers(want, "its hash is %s, the lock file says %s", f.Digest, want.SHA256)
		}
		files = append(files, f)
	}
	return p, c.fillPlan(p, files)
}

func lockDiffers(f LockFile, format string, args ...any) error {
	e := diag.Errorf(diag.In(f.Path), diag.Mismatch, format, args...)
	return e.WithHint("the repository was rewritten, or the lock file is of another one; make a new lock file if the change is wanted")
}

// compare checks the finished download.
func (l *Lock) compare(r *Result) error {
	got := map[string]FileResult{}
	for _, f := range r.Files {
		got[f.Path] = f
	}
	for _, want := range l.Files {
		if f := got[want.Path]; f.SHA256 != want.SHA256 {
			return lockDiffers(want, "its hash is %s, the lock file says %s", f.SHA256, want.SHA256)
		}
	}
	return nil
}
