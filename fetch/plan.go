package fetch

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/anepkg/anepkg/coreml/diag"
)

// Status is where a file stands.
type Status string

// The states before a download, and after it.
const (
	Present    Status = "present"    // there already, whole
	Unverified Status = "unverified" // a file of this size is there; its hash will be checked
	Partial    Status = "partial"    // begun by an earlier run
	Missing    Status = "missing"

	Downloaded Status = "downloaded" // all bytes came over the network
	Resumed    Status = "resumed"    // the rest of a partial came
	Reused     Status = "reused"     // nothing came
)

// PlanFile is a file to be fetched.
type PlanFile struct {
	File
	Status Status
	Have   int64  // bytes that need no transfer
	Local  string // where it is or will be
}

// Skipped is a file of the repository that the plan leaves out.
type Skipped struct {
	Path   string
	Bytes  int64
	Reason string
}

// Plan says what a download will do. It is made from the listing and small
// files alone.
type Plan struct {
	Repo    Repo
	Dir     string // target folder; "" is the cache
	Path    string // where the result will be
	Files   []PlanFile
	Skipped []Skipped
	Notes   []string // choices that were made for the user, one sentence each
	Bytes   int64    // of all files
	Missing int64    // bytes to transfer

	lock   *Lock // set when made from a lock file
	repair bool  // what is unpacked is compared by content
}

// PlanOptions says what to fetch and where to.
type PlanOptions struct {
	Selection
	To string // plain folder; "" puts the files into the cache
}

// Plan resolves ref and decides which files are needed.
//
// Errors: those of Resolve and Tree; diag.Malformed for file names that could
// do harm; diag.Usage when a choice is needed (several variants) or nothing
// matches the selection.
func (c *Client) Plan(ctx context.Context, ref Ref, opts PlanOptions) (*Plan, error) {
	r, err := c.Resolve(ctx, ref)
	if err != nil {
		return nil, err
	}
	files, err := c.Tree(ctx, r)
	if err != nil {
		return nil, err
	}
	p := &Plan{Repo: r, Dir: opts.To}
	if files, err = c.choose(ctx, p, files, opts.Selection); err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, diag.Errorf(diag.Pos{}, diag.Usage, "no file of %s matches the selection", r.Repo).
			WithHint("list the files with --dry-run and a wider --include")
	}
	return p, c.fillPlan(p, files)
}

// fillPlan checks the names and looks at what is there.
func (c *Client) fillPlan(p *Plan, files []File) error {
	names := make([]string, len(files))
	for i, f := range files {
		names[i] = f.Path
	}
	if err := checkPaths(names); err != nil {
		return err
	}
	if p.Dir == "" && c.cfg.CacheDir == "" {
		return diag.Errorf(diag.Pos{}, diag.Usage, "no cache folder is set").WithHint("set HF_HUB_CACHE, --cache-dir or --to")
	}
	if p.Dir != "" {
		abs, err := filepath.Abs(p.Dir)
		if err != nil {
			return ioErr(p.Dir, err)
		}
		p.Dir = abs
	}
	for _, f := range files {
		if p.Dir != "" && (f.Path == localMeta || strings.HasPrefix(foldName(f.Path), localMeta+"/")) {
			return diag.Errorf(diag.Pos{}, diag.Malformed, "file name %s is in the folder for download records", quoteName(f.Path))
		}
		pf := c.look(p, f)
		p.Files = append(p.Files, pf)
		p.Bytes += f.Bytes
		p.Missing += f.Bytes - pf.Have
	}
	p.Path = p.Dir
	if p.Repo.Sub != "" {
		p.Path = filepath.Join(p.Path, filepath.FromSlash(p.Repo.Sub))
	}
	if p.Dir == "" {
		p.Path = filepath.Join(c.cacheOf(p.Repo.Ref).snapshot(p.Repo.Commit), filepath.FromSlash(p.Repo.Sub))
	}
	return nil
}

// look finds out what is there of f, without hashing.
func (c *Client) look(p *Plan, f File) PlanFile {
	pf := PlanFile{File: f, Status: Missing}
	rc := c.cacheOf(p.Repo.Ref)
	if p.Dir != "" {
		d := localDir{root: p.Dir}
		pf.Local = d.file(f.Path)
		switch {
		case d.current(f):
			pf.Status, pf.Have = Present, f.Bytes
		case isWhole(pf.Local, f.Bytes) && f.Bytes > 0:
			pf.Status, pf.Have = Unverified, f.Bytes
		default:
			pf.partial(d.partial(f))
		}
		return pf
	}
	pf.Local = rc.file(p.Repo.Commit, f.Path)
	switch {
	case isWhole(pf.Local, f.Bytes) || f.Digest.Valid() && isWhole(rc.blob(f.Digest), f.Bytes):
		pf.Status, pf.Have = Present, f.Bytes
	case f.Digest.Valid():
		pf.partial(rc.blob(f.Digest) + partialSuffix)
	}
	return pf
}

func (pf *PlanFile) partial(name string) {
	if info, err := os.Stat(name); err == nil && info.Size() > 0 && info.Size() <= pf.Bytes {
		pf.Status, pf.Have = Partial, info.Size()
	}
}

// isWhole reports whether a regular file of that size is at name.
func isWhole(name string, size int64) bool {
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular() && info.Size() == size
}
