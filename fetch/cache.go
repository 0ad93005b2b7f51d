package fetch

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Layout of the cache, the one of huggingface_hub:
//
//	models--org--name/blobs/DIGEST                 contents
//	models--org--name/snapshots/COMMIT/PATH        links to ../../blobs/DIGEST
//	models--org--name/refs/REVISION                the commit, as text
//	models--org--name/.no_exist/COMMIT/PATH        known to be absent
//	models--org--name/trees/COMMIT.json            the listing
//	.locks/models--org--name/DIGEST.lock
//
// An unfinished download of ours is blobs/DIGEST.anepkg-partial, kept for the
// next run; huggingface_hub uses other names (DIGEST.HEX.incomplete) and
// leaves these alone.
const (
	partialSuffix = ".anepkg-partial"
	tmpPrefix     = ".anepkg-tmp-"
	treeVersion   = 1
	maxTreeFile   = 256 << 20
)

// repoCache is one repository in the cache. With an empty dir it holds
// nothing and keeps nothing.
type repoCache struct {
	root string // the cache
	dir  string
	ref  Ref
}

func (c *Client) cacheOf(r Ref) repoCache {
	if c.cfg.CacheDir == "" {
		return repoCache{ref: r}
	}
	return repoCache{root: c.cfg.CacheDir, dir: filepath.Join(c.cfg.CacheDir, repoFolder(r)), ref: r}
}

// repoFolder is "models--org--name".
func repoFolder(r Ref) string {
	kind := r.Kind
	if kind == "" {
		kind = Models
	}
	return string(kind) + "--" + strings.ReplaceAll(r.Repo, "/", "--")
}

func (rc repoCache) blob(d Digest) string { return filepath.Join(rc.dir, "blobs", string(d)) }

// tmp is the folder for temporary names: what a killed process leaves there
// no reader takes for a file or a reference, and Prune removes it.
func (rc repoCache) tmp() string { return filepath.Join(rc.dir, "blobs") }

func (rc repoCache) lockPath(d Digest) string {
	return filepath.Join(rc.root, ".locks", filepath.Base(rc.dir), string(d)+".lock")
}

func (rc repoCache) snapshot(commit string) string { return filepath.Join(rc.dir, "snapshots", commit) }

func (rc repoCache) file(commit, name string) string {
	return filepath.Join(rc.snapshot(commit), filepath.FromSlash(name))
}

// commit reads refs/rev. A file that holds no commit id counts as absent.
func (rc repoCache) commit(rev string) (string, bool) {
	if rc.dir == "" || checkRevision(rev) != "" {
		return "", false
	}
	data, err := os.ReadFile(filepath.Join(rc.dir, "refs", filepath.FromSlash(rev)))
	s := strings.TrimSpace(string(data))
	return s, err == nil && commitHex.MatchString(s)
}

// writeRef notes which commit rev means.
func (rc repoCache) writeRef(rev, commit string) error {
	if rc.dir == "" || rev == commit {
		return nil
	}
	if old, ok := rc.commit(rev); ok && old == commit {
		return nil
	}
	return writeAtomic(rc.tmp(), filepath.Join(rc.dir, "refs", filepath.FromSlash(rev)), []byte(commit))
}

// noteAbsent notes that the hub has no such file, for huggingface_hub, which
// then does not ask. It is only a hint: trouble is no error.
func (rc repoCache) noteAbsent(commit, name string) {
	if rc.dir != "" {
		_ = writeAtomic(rc.tmp(), rc.absentPath(commit, name), nil)
	}
}

func (rc repoCache) absentPath(commit, name string) string {
	return filepath.Join(rc.dir, ".no_exist", commit, filepath.FromSlash(name))
}

// treeFile is trees/COMMIT.json.
type treeFile struct {
	Version int                   `json:"format_version"`
	Files   map[string]treeCached `json:"files"`
}

type treeCached struct {
	Size    int64  `json:"size"`
	BlobID  string `json:"blob_id"`
	SHA256  string `json:"lfs_sha256,omitempty"`
	LFSSize int64  `json:"lfs_size,omitempty"`
	XetHash string `json:"xet_hash,omitempty"`
}

func (rc repoCache) treePath(commit string) string {
	return filepath.Join(rc.dir, "trees", commit+".json")
}

// readTree reads the listing of a commit. One that is broken or of another
// version counts as absent.
func (rc repoCache) readTree(commit string) ([]File, bool) {
	if rc.dir == "" || !commitHex.MatchString(commit) {
		return nil, false
	}
	info, err := os.Stat(rc.treePath(commit))
	if err != nil || info.Size() > maxTreeFile {
		return nil, false
	}
	data, err := os.ReadFile(rc.treePath(commit))
	var t treeFile
	if err != nil || json.Unmarshal(data, &t) != nil || t.Version != treeVersion || len(t.Files) == 0 {
		return nil, false
	}
	var files []File
	for name, e := range t.Files {
		f := File{Path: name, Bytes: e.Size, GitID: e.BlobID, XetHash: e.XetHash}
		id := e.BlobID
		if e.SHA256 != "" {
			f.LFS, f.Bytes, id = true, e.LFSSize, e.SHA256
		}
		f.Digest, _ = parseETag(id)
		if f.Digest == "" || f.Bytes < 0 {
			return nil, false
		}
		files = append(files, f)
	}
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	return files, true
}

// writeTree keeps the listing of a commit. Trouble is no error. A listing
// without digests is not kept.
func (rc repoCache) writeTree(commit string, files []File) {
	if rc.dir == "" || len(files) == 0 {
		return
	}
	t := treeFile{Version: treeVersion, Files: map[string]treeCached{}}
	for _, f := range files {
		if f.Digest == "" {
			return
		}
		e := treeCached{Size: f.Bytes, BlobID: f.GitID, XetHash: f.XetHash}
		if f.LFS {
			e.SHA256, e.LFSSize = string(f.Digest), f.Bytes
		}
		t.Files[f.Path] = e
	}
	if data, err := json.MarshalIndent(t, "", " "); err == nil {
		_ = writeAtomic(rc.tmp(), rc.treePath(commit), data)
	}
}

// snapshotFiles lists what a snapshot holds, for offline use without a
// listing. Digests come from the links.
func (rc repoCache) snapshotFiles(commit string) []File {
	if rc.dir == "" {
		return nil
	}
	var files []File
	root := rc.snapshot(commit)
	_ = filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || len(files) >= maxEntries {
			return nil //nolint:nilerr // what cannot be read is not there
		}
		rel, err := filepath.Rel(root, p)
		info, serr := os.Stat(p)
		if err != nil || serr != nil || !info.Mode().IsRegular() || strings.HasPrefix(d.Name(), tmpPrefix) {
			return nil //nolint:nilerr // as above
		}
		f := File{Path: filepath.ToSlash(rel), Bytes: info.Size()}
		if target, err := os.Readlink(p); err == nil {
			if digest, ok := parseETag(filepath.Base(target)); ok {
				f.Digest, f.LFS = digest, digest.IsSHA256()
			}
		}
		files = append(files, f)
		return nil
	})
	return files
}

// writeAtomic writes a small file under a temporary name in the folder tmp and
// renames it.
func writeAtomic(tmp, name string, data []byte) error {
	for _, dir := range []string{tmp, filepath.Dir(name)} {
		if err := makeDirs(dir); err != nil {
			return ioErr(dir, err)
		}
	}
	f, err := createTemp(tmp)
	if err != nil {
		return ioErr(name, err)
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = replace(f.Name(), name)
	}
	if err != nil {
		return errors.Join(ioErr(name, err), os.Remove(f.Name()))
	}
	return nil
}

// createTemp makes a new file in dir with the permissions that the user's
// umask leaves, unlike os.CreateTemp.
func createTemp(dir string) (*os.File, error) {
	for try := 0; ; try++ {
		f, err := openFile(filepath.Join(dir, tmpName()), os.O_RDWR|os.O_CREATE|os.O_EXCL)
		if !errors.Is(err, fs.ErrExist) || try > 100 {
			return f, err
		}
	}
}

func tmpName() string { return fmt.Sprintf("%s%016x", tmpPrefix, rand.Uint64()) } //nolint:gosec // unlike others, not secret

// replace renames, and on Windows first makes an old file removable.
func replace(from, to string) error {
	err := os.Rename(from, to)
	if err != nil && runtime.GOOS == "windows" {
		_ = os.Chmod(to, 0o666) //nolint:gosec // only the read-only flag counts there
		err = os.Rename(from, to)
	}
	return err
}

// syncDir makes renames in dir durable, where the system can.
func syncDir(dir string) {
	if runtime.GOOS == "windows" {
		return
	}
	if d, err := os.Open(dir); err == nil {
		_ = d.Sync()
		_ = d.Close()
	}
}
