package fetch

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/anepkg/anepkg/coreml/diag"
)

// Check is the result of hashing one file.
type Check struct {
	Repo   string // "org/name"; "" outside the cache
	File   string // inside the repository; blobs without a name as blobs/DIGEST
	Local  string
	Bytes  int64
	Status CheckStatus
	Want   Digest
	Got    Digest
}

// CheckStatus says what was found.
type CheckStatus string

// The statuses. Only Corrupt and Absent are faults.
const (
	Good    CheckStatus = "ok"
	Corrupt CheckStatus = "corrupt" // size or hash differs
	Absent  CheckStatus = "missing" // a link points to nothing
	Unknown CheckStatus = "unknown" // nothing says what it should be
	Begun   CheckStatus = "partial" // an unfinished download
)

// VerifyPlan hashes what is there of plan's files. Missing files are Absent.
func (c *Client) VerifyPlan(ctx context.Context, plan *Plan) ([]Check, error) {
	var out []Check
	for _, f := range plan.Files {
		k, err := checkFile(ctx, f.Local, f.File)
		if err != nil {
			return out, err
		}
		k.Repo, k.File = plan.Repo.Repo, f.Path
		out = append(out, k)
	}
	return out, nil
}

// checkFile hashes one file against f.
func checkFile(ctx context.Context, local string, f File) (Check, error) {
	k := Check{Local: local, Bytes: f.Bytes, Want: f.Digest}
	info, err := os.Stat(local)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		k.Status = Absent
		return k, nil
	case err != nil:
		return k, ioErr(local, err)
	case !info.Mode().IsRegular() || f.Bytes >= 0 && info.Size() != f.Bytes:
		k.Status = Corrupt
		return k, nil
	case !f.Digest.Valid():
		k.Status, k.Bytes = Unknown, info.Size()
		return k, nil
	}
	k.Bytes = info.Size()
	h, err := hashFile(ctx, local, f)
	if err != nil {
		return k, err
	}
	if k.Got, k.Status = h.got(), Good; k.Got != f.Digest {
		k.Status = Corrupt
	}
	return k, nil
}

// Repair hashes plan's files, removes the ones that are wrong and downloads
// them and the missing ones. Right files are not touched. A later Complete or
// UnpackZips then compares what was unpacked by content.
func (c *Client) Repair(ctx context.Context, plan *Plan, progress func(Event)) (*Result, []Check, error) {
	plan.repair = true
	checks, err := c.VerifyPlan(ctx, plan)
	if err != nil {
		return nil, checks, err
	}
	for i, k := range checks {
		if k.Status != Corrupt {
			continue
		}
		f := &plan.Files[i]
		if err := c.discard(ctx, plan, f.File); err != nil {
			return nil, checks, err
		}
		plan.Missing += f.Have
		f.Have, f.Status = 0, Missing
	}
	res, err := c.Download(ctx, plan, progress)
	return res, checks, err
}

// discard removes a wrong file: in the cache its blob and its name, under the
// lock of the blob.
func (c *Client) discard(ctx context.Context, plan *Plan, f File) error {
	if plan.Dir != "" {
		d := localDir{root: plan.Dir}
		return errors.Join(removeFile(d.meta(f.Path)), removeFile(d.file(f.Path)))
	}
	rc := c.cacheOf(plan.Repo.Ref)
	lock, err := takeLock(ctx, rc.lockPath(f.Digest))
	if err != nil {
		return err
	}
	defer lock.release()
	return errors.Join(removeFile(rc.file(plan.Repo.Commit, f.Path)), removeFile(rc.blob(f.Digest)))
}

// removeFile removes a file that may be absent.
func removeFile(name string) error {
	err := os.Remove(name)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return ioErr(name, err)
}

// Verify hashes everything in the cache, or in the repositories that keep
// accepts. each is told every result, in a fixed order; it may be nil.
func (ca *Cache) Verify(ctx context.Context, keep func(CachedRepo) bool, each func(Check)) ([]Check, error) {
	repos, err := ca.List(ctx)
	if err != nil {
		return nil, err
	}
	var out []Check
	add := func(k Check) {
		out = append(out, k)
		if each != nil {
			each(k)
		}
	}
	for _, r := range repos {
		if keep != nil && !keep(r) {
			continue
		}
		if err := verifyRepo(ctx, r, add); err != nil {
			return out, err
		}
	}
	return out, nil
}

func verifyRepo(ctx context.Context, r CachedRepo, add func(Check)) error {
	done := map[string]bool{} // blobs that a name led to
	rc := repoCache{dir: r.Dir}
	for _, s := range r.Snapshots {
		tree := map[string]File{}
		if files, ok := rc.readTree(s.Commit); ok {
			for _, f := range files {
				tree[f.Path] = f
			}
		}
		add := func(k Check) {
			k.Repo = r.Repo
			add(k)
		}
		unpacked, err := verifyUnpacked(ctx, s, add)
		if err != nil {
			return err
		}
		for _, e := range s.files {
			if unpacked[e.name] {
				continue
			}
			f, known := tree[e.name]
			if !known {
				f = File{Path: e.name, Bytes: -1}
			}
			if e.blob != "" {
				f.Digest = Digest(e.blob)
				if done[e.blob] {
					continue
				}
				done[e.blob] = true
			}
			k, err := checkFile(ctx, filepath.Join(s.Dir, filepath.FromSlash(e.name)), f)
			if err != nil {
				return err
			}
			k.Repo, k.File = r.Repo, e.name
			add(k)
		}
	}
	for _, b := range r.blobs {
		if done[b.name] {
			continue
		}
		k := Check{Bytes: b.size, Local: filepath.Join(r.Dir, "blobs", b.name), Status: Begun}
		if d, ok := parseETag(b.name); ok {
			var err error
			if k, err = checkFile(ctx, k.Local, File{Bytes: b.size, Digest: d}); err != nil {
				return err
			}
		} else if !isPartialName(b.name) {
			k.Status = Unknown
		}
		k.Repo, k.File = r.Repo, "blobs/"+b.name
		add(k)
	}
	return nil
}

// isPartialName knows our unfinished downloads and those of huggingface_hub.
func isPartialName(name string) bool {
	return strings.HasSuffix(name, partialSuffix) || strings.HasSuffix(name, ".incomplete") || strings.HasPrefix(name, tmpPrefix)
}

// Faults counts the checks that are faults.
func Faults(checks []Check) int {
	n := 0
	for _, k := range checks {
		if k.Status == Corrupt || k.Status == Absent {
			n++
		}
	}
	return n
}

// ErrorOf makes an error of the first fault, nil when there is none.
func ErrorOf(checks []Check) error {
	for _, k := range checks {
		switch k.Status {
		case Corrupt:
			if k.Got == "" {
				return diag.Errorf(diag.In(k.File), diag.Mismatch, "the size or the content is wrong, want %d bytes", k.Bytes).WithHint("fetch it again with --repair")
			}
			return diag.Errorf(diag.In(k.File), diag.Mismatch, "the content has hash %s, want %s", k.Got, k.Want).WithHint("fetch it again with --repair")
		case Absent:
			return diag.Errorf(diag.In(k.File), diag.NotFound, "the file is missing").WithHint("fetch it again")
		}
	}
	return nil
}
