package fetch

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// localMeta is where a plain folder keeps the records of its downloads, the
// same place and form as with huggingface_hub.
const localMeta = ".cache/huggingface"

const cacheTag = "Signature: 8a477f597d28d172789f06886806bc55\n# This folder holds records of downloads; it may be deleted.\n"

// localDir is a plain folder with downloaded files.
type localDir struct{ root string }

func (d localDir) file(name string) string { return filepath.Join(d.root, filepath.FromSlash(name)) }

func (d localDir) meta(name string) string {
	return filepath.Join(d.root, filepath.FromSlash(localMeta), "download", filepath.FromSlash(name)+".metadata")
}

func (d localDir) lock(name string) string {
	return strings.TrimSuffix(d.meta(name), ".metadata") + ".lock"
}

// partial is the unfinished download of f. Two contents of one name do not
// meet there.
func (d localDir) partial(f File) string {
	return strings.TrimSuffix(d.meta(f.Path), ".metadata") + "." + string(f.Digest)[:min(16, len(f.Digest))] + partialSuffix
}

// current reports whether the file is there and the record says that it is f
// and was not changed since.
func (d localDir) current(f File) bool {
	info, err := os.Stat(d.file(f.Path))
	if err != nil || !info.Mode().IsRegular() || info.Size() != f.Bytes {
		return false
	}
	data, err := os.ReadFile(d.meta(f.Path))
	lines := strings.Split(string(data), "\n")
	if err != nil || len(data) > 4<<10 || len(lines) < 3 || strings.TrimSpace(lines[1]) != string(f.Digest) || f.Digest == "" {
		return false
	}
	stamp, err := strconv.ParseFloat(strings.TrimSpace(lines[2]), 64)
	mtime := float64(info.ModTime().UnixNano()) / 1e9
	return err == nil && mtime-1 <= stamp
}

// record writes the metadata of a file that was just verified.
func (d localDir) record(commit string, f File) error {
	base := filepath.Join(d.root, filepath.FromSlash(localMeta))
	if _, err := os.Stat(filepath.Join(base, "CACHEDIR.TAG")); err != nil {
		if err := writeAtomic(base, filepath.Join(base, "CACHEDIR.TAG"), []byte(cacheTag)); err != nil {
			return err
		}
		if err := writeAtomic(base, filepath.Join(base, ".gitignore"), []byte("*\n")); err != nil {
			return err
		}
	}
	stamp := float64(time.Now().UnixNano()) / 1e9
	return writeAtomic(filepath.Dir(d.meta(f.Path)), d.meta(f.Path), fmt.Appendf(nil, "%s\n%s\n%f\n", commit, f.Digest, stamp))
}

// intoDir puts f into the plain folder of the plan.
func (d *download) intoDir(ctx context.Context, f File) (FileResult, int64, error) {
	dir := localDir{root: d.plan.Dir}
	dst := dir.file(f.Path)
	lock, err := takeLock(ctx, dir.lock(f.Path))
	if err != nil {
		return FileResult{}, 0, err
	}
	defer lock.release()
	if dir.current(f) {
		res, err := reused(f, dst)
		return res, 0, err
	}
	commit := d.plan.Repo.Commit
	if isWhole(dst, f.Bytes) {
		h, err := hashFile(ctx, dst, f)
		if err != nil {
			return FileResult{}, 0, err
		}
		if h.ok() {
			res := FileResult{Path: f.Path, Bytes: f.Bytes, Digest: f.Digest, SHA256: h.sha256(), Status: Reused}
			return res, 0, dir.record(commit, f)
		}
	}
	partial := dir.partial(f)
	for _, p := range []string{partial, dst} {
		if err := makeDirs(filepath.Dir(p)); err != nil {
			return FileResult{}, 0, ioErr(p, err)
		}
	}
	res, moved, err := d.copyOrTransfer(ctx, f, partial)
	if err != nil {
		return FileResult{}, 0, err
	}
	if err := replace(partial, dst); err != nil {
		return FileResult{}, 0, ioErr(dst, err)
	}
	syncDir(filepath.Dir(dst))
	return res, moved, dir.record(commit, f)
}

// copyOrTransfer fills partial from the cache when the content is there and
// right, else from the hub.
func (d *download) copyOrTransfer(ctx context.Context, f File, partial string) (FileResult, int64, error) {
	rc := d.c.cacheOf(d.plan.Repo.Ref)
	if rc.dir != "" && isWhole(rc.blob(f.Digest), f.Bytes) {
		if err := copyFile(filepath.Dir(partial), rc.blob(f.Digest), partial); err == nil {
			if h, err := hashFile(ctx, partial, f); err == nil && h.ok() {
				return FileResult{Path: f.Path, Bytes: f.Bytes, Digest: f.Digest, SHA256: h.sha256(), Status: Reused}, 0, nil
			}
		}
		if err := os.Remove(partial); err != nil && !os.IsNotExist(err) {
			return FileResult{}, 0, ioErr(partial, err)
		}
	}
	t, err := d.c.transfer(ctx, d.plan.Repo, f, partial, func(have int64) { d.report(f, have) })
	return t.result(f), t.moved, err
}
