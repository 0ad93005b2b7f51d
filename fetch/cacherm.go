package fetch

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/anepkg/anepkg/coreml/diag"
)

// Removal is what a removal frees or would free.
type Removal struct {
	Paths []string // files and folders, absolute
	Bytes int64
	Busy  []string // left alone: another process holds its lock
}

// Remove deletes a repository from the cache, or the snapshot of one revision
// (a branch, tag or commit) and the contents that no other snapshot names.
// With dryRun nothing is deleted.
//
// Errors: diag.NotFound, with a near name as hint.
func (ca *Cache) Remove(ctx context.Context, ref Ref, dryRun bool) (*Removal, error) {
	repos, err := ca.List(ctx)
	if err != nil {
		return nil, err
	}
	kind := ref.Kind
	if kind == "" {
		kind = Models
	}
	i := slices.IndexFunc(repos, func(r CachedRepo) bool { return r.Kind == kind && r.Repo == ref.Repo })
	if i < 0 {
		e := diag.Errorf(diag.Pos{}, diag.NotFound, "%s is not in the cache %s", ref.Repo, ca.dir)
		var names []File
		for _, r := range repos {
			names = append(names, File{Path: r.Repo})
		}
		if n := nearPath(ref.Repo, names); n != "" {
			return nil, e.WithHint("did you mean %s?", n)
		}
		return nil, e.WithHint("\"anepkg cache ls\" lists what is there")
	}
	r := repos[i]
	rm := &remover{ca: ca, repo: r, dryRun: dryRun, out: &Removal{}}
	if ref.Revision == "" {
		return rm.out, rm.all()
	}
	commit := ref.Revision
	if c, ok := r.Refs[commit]; ok {
		commit = c
	}
	if !slices.ContainsFunc(r.Snapshots, func(s CachedSnapshot) bool { return s.Commit == commit }) {
		return nil, diag.Errorf(diag.Pos{}, diag.NotFound, "%s has no revision %q in the cache", ref.Repo, ref.Revision)
	}
	return rm.out, rm.snapshots(ctx, func(s CachedSnapshot) bool { return s.Commit == commit })
}

// PruneOptions says what Prune may delete besides contents that no snapshot
// names.
type PruneOptions struct {
	Detached bool // snapshots that no branch or tag points to
	Partials bool // unfinished downloads
	DryRun   bool
}

// Prune deletes what nothing refers to. A content that any snapshot names is
// kept, and so is one whose lock another process holds.
func (ca *Cache) Prune(ctx context.Context, opts PruneOptions) (*Removal, error) {
	repos, err := ca.List(ctx)
	if err != nil {
		return nil, err
	}
	out := &Removal{}
	for _, r := range repos {
		rm := &remover{ca: ca, repo: r, dryRun: opts.DryRun, partials: opts.Partials, out: out}
		if err := rm.snapshots(ctx, func(s CachedSnapshot) bool { return opts.Detached && len(s.Refs) == 0 }); err != nil {
			return out, err
		}
	}
	return out, nil
}

// tmpAge is how old a temporary name must be to count as left behind: it has
// no lock, and lives for moments.
const tmpAge = time.Hour

// remover deletes inside one repository.
type remover struct {
	ca       *Cache
	repo     CachedRepo
	dryRun   bool
	partials bool
	out      *Removal
}

// all removes the repository with its locks.
func (rm *remover) all() error {
	if rm.busy() {
		rm.out.Busy = append(rm.out.Busy, rm.repo.Dir)
		return nil
	}
	rm.out.Bytes += rm.repo.Bytes
	locks := filepath.Join(rm.ca.dir, ".locks", filepath.Base(rm.repo.Dir))
	if err := rm.tree(rm.repo.Dir); err != nil {
		return err
	}
	if isDir(locks) && rm.tree(locks) != nil {
		// Somebody takes or made a lock at this moment: it stays theirs.
		rm.out.Busy = append(rm.out.Busy, locks)
		rm.out.Paths = rm.out.Paths[:len(rm.out.Paths)-1]
	}
	return nil
}

// busy reports whether another process holds a lock of the repository, as one
// that fetches from it does.
func (rm *remover) busy() bool {
	locks, _ := filepath.Glob(filepath.Join(rm.ca.dir, ".locks", filepath.Base(rm.repo.Dir), "*.lock"))
	for _, name := range locks {
		l, err := tryLock(name)
		if errors.Is(err, errLocked) {
			return true
		}
		if err == nil {
			l.release()
		}
	}
	return false
}

// tree removes a folder, also one that somebody still puts files into.
func (rm *remover) tree(dir string) error {
	rm.out.Paths = append(rm.out.Paths, dir)
	if rm.dryRun {
		return nil
	}
	err := os.RemoveAll(dir)
	for try := 0; err != nil && try < 3; try++ {
		err = os.RemoveAll(dir)
	}
	return ioErr(dir, err)
}

// snapshots removes the snapshots that gone accepts, then what is not used
// any more.
func (rm *remover) snapshots(ctx context.Context, gone func(CachedSnapshot) bool) error {
	used := map[string]bool{}
	for _, s := range rm.repo.Snapshots {
		if gone(s) {
			continue
		}
		for _, f := range s.files {
			used[f.blob] = true
		}
	}
	for _, s := range rm.repo.Snapshots {
		if !gone(s) {
			continue
		}
		if err := rm.snapshot(s); err != nil {
			return err
		}
	}
	for _, b := range rm.repo.blobs {
		if err := ctx.Err(); err != nil {
			return err
		}
		if used[b.name] || isPartialName(b.name) && !rm.partials {
			continue
		}
		if strings.HasPrefix(b.name, tmpPrefix) && time.Since(b.modified) < tmpAge {
			continue
		}
		if err := rm.blob(b); err != nil {
			return err
		}
	}
	return nil
}

func (rm *remover) snapshot(s CachedSnapshot) error {
	for _, f := range s.files {
		if f.blob == "" {
			rm.out.Bytes += f.size
		}
	}
	for _, ref := range s.Refs {
		p := filepath.Join(rm.repo.Dir, "refs", filepath.FromSlash(ref))
		rm.out.Paths = append(rm.out.Paths, p)
		if !rm.dryRun {
			if err := removeFile(p); err != nil {
				return err
			}
		}
	}
	if absent := filepath.Join(rm.repo.Dir, ".no_exist", s.Commit); isDir(absent) {
		if err := rm.tree(absent); err != nil {
			return err
		}
	}
	if tree := filepath.Join(rm.repo.Dir, "trees", s.Commit+".json"); !rm.dryRun {
		if err := removeFile(tree); err != nil {
			return err
		}
	}
	return rm.tree(s.Dir)
}

// blob removes a content or a partial under its lock. A download that runs
// holds the lock from before the content appears until a snapshot names it,
// so under the lock an unnamed content is really unused – unless a snapshot
// has named it since the cache was read, which is looked up again.
func (rm *remover) blob(b cachedBlob) error {
	name := filepath.Join(rm.repo.Dir, "blobs", b.name)
	digest, ok := parseETag(b.name[:min(len(b.name), 64)])
	if !ok {
		digest, ok = parseETag(b.name[:min(len(b.name), 40)])
	}
	if ok && !rm.dryRun {
		rc := repoCache{root: rm.ca.dir, dir: rm.repo.Dir}
		lock, err := tryLock(rc.lockPath(digest))
		if errors.Is(err, errLocked) {
			rm.out.Busy = append(rm.out.Busy, name)
			return nil
		}
		if err != nil && !errors.Is(err, errNoLocks) {
			return ioErr(name, err)
		}
		defer lock.release()
		if rm.named(b.name) {
			return nil
		}
	}
	rm.out.Paths = append(rm.out.Paths, name)
	rm.out.Bytes += b.size
	if rm.dryRun {
		return nil
	}
	return removeFile(name)
}

// named looks whether a snapshot names the blob now.
func (rm *remover) named(blob string) bool {
	now := CachedRepo{Dir: rm.repo.Dir, Refs: map[string]string{}}
	if err := now.scan(); err != nil {
		return true
	}
	for _, s := range now.Snapshots {
		if slices.ContainsFunc(s.files, func(f cachedEntry) bool { return f.blob == blob }) {
			return true
		}
	}
	return false
}

func isDir(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}
