package fetch

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/anepkg/anepkg/coreml/diag"
)

// Cache is the cache folder as a whole, for housekeeping.
type Cache struct{ dir string }

// OpenCache returns the cache at dir, which need not exist.
func OpenCache(dir string) (*Cache, error) {
	if dir == "" {
		return nil, diag.Errorf(diag.Pos{}, diag.Usage, "no cache folder is set").WithHint("set HF_HUB_CACHE or --cache-dir")
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, ioErr(dir, err)
	}
	return &Cache{dir: abs}, nil
}

// Dir returns the absolute path.
func (ca *Cache) Dir() string { return ca.dir }

// CachedRepo is a repository in the cache.
type CachedRepo struct {
	Kind      RepoKind
	Repo      string
	Dir       string
	Bytes     int64 // on disk, every content once
	Partial   int64 // of it in unfinished downloads
	Unused    int64 // of it in contents that no snapshot names
	Refs      map[string]string
	Snapshots []CachedSnapshot
	Modified  time.Time // of the newest content

	blobs []cachedBlob
}

// CachedSnapshot is a revision in the cache.
type CachedSnapshot struct {
	Commit string
	Refs   []string
	Dir    string
	Files  int
	Bytes  int64 // sum of its files
	Broken int   // links that point to nothing

	files []cachedEntry
}

type cachedBlob struct {
	name     string
	size     int64
	modified time.Time
}

// cachedEntry is a name in a snapshot; blob is "" for a file of its own.
type cachedEntry struct {
	name, blob string
	size       int64
}

// List reads the cache. An absent folder is an empty cache.
func (ca *Cache) List(ctx context.Context) ([]CachedRepo, error) {
	entries, err := os.ReadDir(ca.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, ioErr(ca.dir, err)
	}
	var out []CachedRepo
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		kind, name, ok := parseFolder(e.Name())
		if !e.IsDir() || !ok {
			continue
		}
		r := CachedRepo{Kind: kind, Repo: name, Dir: filepath.Join(ca.dir, e.Name()), Refs: map[string]string{}}
		if err := r.scan(); err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, nil
}

// parseFolder reads "models--org--name".
func parseFolder(s string) (RepoKind, string, bool) {
	kind, name, ok := strings.Cut(s, "--")
	name = strings.Replace(name, "--", "/", 1)
	switch RepoKind(kind) {
	case Models, Datasets, Spaces:
		return RepoKind(kind), name, ok && name != ""
	}
	return "", "", false
}

func (r *CachedRepo) scan() error {
	used := map[string]bool{}
	r.scanRefs()
	commits, err := os.ReadDir(filepath.Join(r.Dir, "snapshots"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return ioErr(r.Dir, err)
	}
	for _, e := range commits {
		if !e.IsDir() || !commitHex.MatchString(e.Name()) {
			continue
		}
		s := CachedSnapshot{Commit: e.Name(), Dir: filepath.Join(r.Dir, "snapshots", e.Name())}
		for ref, commit := range r.Refs {
			if commit == s.Commit {
				s.Refs = append(s.Refs, ref)
			}
		}
		slices.Sort(s.Refs)
		if err := s.scan(used); err != nil {
			return err
		}
		for _, f := range s.files {
			if f.blob == "" {
				r.Bytes += f.size
			}
		}
		r.Snapshots = append(r.Snapshots, s)
	}
	return r.scanBlobs(used)
}

func (r *CachedRepo) scanRefs() {
	root := filepath.Join(r.Dir, "refs")
	rc := repoCache{dir: r.Dir}
	_ = filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil //nolint:nilerr // what cannot be read is no reference
		}
		if rel, err := filepath.Rel(root, p); err == nil {
			if commit, ok := rc.commit(filepath.ToSlash(rel)); ok {
				r.Refs[filepath.ToSlash(rel)] = commit
			}
		}
		return nil
	})
}

func (s *CachedSnapshot) scan(used map[string]bool) error {
	return filepath.WalkDir(s.Dir, func(p string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // gone meanwhile
		}
		if err != nil {
			return ioErr(p, err)
		}
		if d.IsDir() {
			return nil
		}
		rel, err := filepath.Rel(s.Dir, p)
		if err != nil {
			return ioErr(p, err)
		}
		e := cachedEntry{name: filepath.ToSlash(rel)}
		if target, err := os.Readlink(p); err == nil {
			e.blob = filepath.Base(target)
			used[e.blob] = true
		}
		if info, err := os.Stat(p); err == nil {
			e.size = info.Size()
		} else {
			s.Broken++
		}
		s.Files++
		s.Bytes += e.size
		s.files = append(s.files, e)
		return nil
	})
}

func (r *CachedRepo) scanBlobs(used map[string]bool) error {
	blobs, err := os.ReadDir(filepath.Join(r.Dir, "blobs"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return ioErr(r.Dir, err)
	}
	for _, e := range blobs {
		info, err := e.Info()
		if err != nil || e.IsDir() {
			continue // gone meanwhile
		}
		modified := info.ModTime()
		if info.Mode()&fs.ModeSymlink != 0 { // huggingface_hub can share blobs through links
			if to, err := os.Stat(filepath.Join(r.Dir, "blobs", e.Name())); err == nil {
				info = to
			}
		}
		b := cachedBlob{name: e.Name(), size: info.Size(), modified: modified}
		r.blobs = append(r.blobs, b)
		r.Bytes += b.size
		switch {
		case isPartialName(b.name):
			r.Partial += b.size
		case !used[b.name]:
			r.Unused += b.size
		}
		if info.ModTime().After(r.Modified) {
			r.Modified = info.ModTime()
		}
	}
	return nil
}
