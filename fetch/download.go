package fetch

import (
	"context"
	"path/filepath"
	"sync"
	"time"

	"github.com/anepkg/anepkg/coreml/diag"
)

// Event reports progress. Events come one at a time; the receiver must not
// block.
type Event struct {
	Path     string // of the file
	Status   Status // Missing while it runs, then the result
	Done     int64  // bytes of this file that are there
	Total    int64
	AllDone  int64 // bytes of all files
	AllTotal int64
	Finished bool // last event of this file
}

// FileResult is what became of one file.
type FileResult struct {
	Path   string
	Bytes  int64
	Digest Digest
	SHA256 string
	Status Status // Downloaded, Resumed or Reused
}

// Result is what a download has done.
type Result struct {
	Repo       Repo
	Path       string // folder or file that was asked for
	Files      []FileResult
	Downloaded int64 // bytes that came over the network and were kept
	Reused     int64 // bytes that were there
}

// download is one run.
type download struct {
	c        *Client
	plan     *Plan
	progress func(Event)

	mu      sync.Mutex
	done    int64
	perFile map[string]int64
	last    map[string]time.Time
	result  *Result
}

// Download fetches what plan lists, several files at a time, and returns when
// every file is in its place, whole and hashed. When it fails or is
// cancelled, finished files stay and begun ones are kept for the next run.
// progress may be nil.
//
// Errors: the first one that happened; ErrDiskFull before the first byte when
// the space does not suffice; diag.Mismatch when a lock file is not met.
func (c *Client) Download(ctx context.Context, plan *Plan, progress func(Event)) (*Result, error) {
	d := &download{c: c, plan: plan, progress: progress, perFile: map[string]int64{}, last: map[string]time.Time{},
		result: &Result{Repo: plan.Repo, Path: plan.Path, Files: make([]FileResult, len(plan.Files))}}
	if err := d.check(); err != nil {
		return nil, err
	}
	if err := d.all(ctx); err != nil {
		return nil, err
	}
	if plan.lock != nil {
		if err := plan.lock.compare(d.result); err != nil {
			return nil, err
		}
	}
	if plan.Dir == "" {
		if err := c.cacheOf(plan.Repo.Ref).writeRef(plan.Repo.Rev(), plan.Repo.Commit); err != nil {
			return nil, err
		}
	}
	return d.result, nil
}

// check looks for trouble before the first byte.
func (d *download) check() error {
	dir := d.plan.Dir
	if dir == "" {
		dir = d.c.cfg.CacheDir
	}
	if err := makeDirs(dir); err != nil {
		return ioErr(dir, err)
	}
	for _, f := range d.plan.Files {
		if f.XetHash != "" && f.Have < f.Bytes && f.Bytes > maxPlainHTTP {
			return diag.Errorf(diag.Pos{}, diag.Unsupported, "%s has %d bytes and is stored with Xet; over plain HTTP the hub serves at most %d", quoteName(f.Path), f.Bytes, int64(maxPlainHTTP)).
				WithHint("fetch it with \"hf download\", which speaks Xet; anepkg then finds it in the cache")
		}
	}
	if free, err := d.c.cfg.FreeSpace(dir); err == nil && free < d.plan.Missing {
		e := fail(diag.IO, ErrDiskFull, "%d bytes are missing and %d are free", d.plan.Missing, free).
			WithHint("free %d bytes, or choose another disk with --cache-dir or --to", d.plan.Missing-free)
		e.Pos = diag.In(dir)
		return e
	}
	return nil
}

// all runs the files over a bounded number of workers. The first error stops
// the others.
func (d *download) all(parent context.Context) error {
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	next := make(chan int)
	var wg sync.WaitGroup
	for range min(d.c.cfg.Jobs, len(d.plan.Files)) {
		wg.Go(func() {
			for i := range next {
				if err := d.file(ctx, i); err != nil {
					cancel(err)
				}
			}
		})
	}
feed:
	for i := range d.plan.Files {
		select {
		case next <- i:
		case <-ctx.Done():
			break feed
		}
	}
	close(next)
	wg.Wait()
	if parent.Err() != nil {
		return parent.Err()
	}
	return context.Cause(ctx)
}

// file brings one file into its place.
func (d *download) file(ctx context.Context, i int) error {
	f := d.plan.Files[i].File
	if !f.Digest.Valid() && !isWhole(d.plan.Files[i].Local, f.Bytes) {
		at := d.plan.Repo.Ref
		at.Revision = d.plan.Repo.Commit
		_, got, err := d.c.Stat(ctx, at, f.Path)
		if err != nil {
			return err
		}
		if !got.Digest.Valid() {
			return fail(diag.IO, ErrDigest, "%s: the hub names no hash for this file, so it cannot be verified", subject{ref: d.plan.Repo.Ref, file: f.Path})
		}
		f.Digest, f.Bytes = got.Digest, got.Bytes
	}
	into := d.intoCache
	if d.plan.Dir != "" {
		into = d.intoDir
	}
	res, moved, err := into(ctx, f)
	if err != nil {
		return err
	}
	d.finished(i, res, moved)
	return nil
}

// report tells the progress of one file, not more often than 20 times a
// second.
func (d *download) report(f File, have int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.done += have - d.perFile[f.Path]
	d.perFile[f.Path] = have
	if now := time.Now(); d.progress != nil && now.Sub(d.last[f.Path]) >= 50*time.Millisecond {
		d.last[f.Path] = now
		d.progress(Event{Path: f.Path, Status: Missing, Done: have, Total: f.Bytes, AllDone: d.done, AllTotal: d.plan.Bytes})
	}
}

// finished notes a result; moved is how many bytes came over the network.
func (d *download) finished(i int, res FileResult, moved int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.result.Files[i] = res
	d.result.Downloaded += moved
	d.result.Reused += max(res.Bytes-moved, 0)
	d.done += res.Bytes - d.perFile[res.Path]
	d.perFile[res.Path] = res.Bytes
	if d.progress != nil {
		d.progress(Event{Path: res.Path, Status: res.Status, Done: res.Bytes, Total: res.Bytes, AllDone: d.done, AllTotal: d.plan.Bytes, Finished: true})
	}
}

// intoCache puts f into the cache under its lock, so that two processes
// transfer a content once.
func (d *download) intoCache(ctx context.Context, f File) (FileResult, int64, error) {
	rc := d.c.cacheOf(d.plan.Repo.Ref)
	pointer := rc.file(d.plan.Repo.Commit, f.Path)
	if isWhole(pointer, f.Bytes) {
		res, err := reused(f, pointer)
		return res, 0, err
	}
	lock, err := takeLock(ctx, rc.lockPath(f.Digest))
	if err != nil {
		return FileResult{}, 0, err
	}
	defer lock.release()
	if isWhole(pointer, f.Bytes) {
		res, err := reused(f, pointer)
		return res, 0, err
	}
	p := placer{links: !d.c.cfg.DisableSymlinks}
	blob := rc.blob(f.Digest)
	if isWhole(blob, f.Bytes) {
		if err := p.place(blob, pointer, false); err != nil {
			return FileResult{}, 0, err
		}
		res, err := reused(f, pointer)
		return res, 0, err
	}
	partial := blob + partialSuffix
	if err := makeDirs(filepath.Dir(partial)); err != nil {
		return FileResult{}, 0, ioErr(partial, err)
	}
	t, err := d.c.transfer(ctx, d.plan.Repo, f, partial, func(have int64) { d.report(f, have) })
	if err != nil {
		return FileResult{}, 0, err
	}
	if err := replace(partial, blob); err != nil {
		return FileResult{}, 0, ioErr(blob, err)
	}
	syncDir(filepath.Dir(blob))
	if err := p.place(blob, pointer, true); err != nil {
		return FileResult{}, 0, err
	}
	return t.result(f), t.moved, nil
}

// reused is the result for a file that was there. Its SHA-256 is known, or
// the file is small and is hashed now.
func reused(f File, local string) (FileResult, error) {
	res := FileResult{Path: f.Path, Bytes: f.Bytes, Digest: f.Digest, Status: Reused}
	if f.Digest.IsSHA256() {
		res.SHA256 = string(f.Digest)
		return res, nil
	}
	h, err := hashFile(context.Background(), local, f)
	if err != nil {
		return res, err
	}
	if f.Digest != "" && !h.ok() {
		return res, fail(diag.IO, ErrDigest, "%s is not what the hub names: its hash is %s, want %s", local, h.got(), f.Digest).
			WithHint("run the command again with --repair")
	}
	res.SHA256 = h.sha256()
	return res, nil
}

func (t transferred) result(f File) FileResult {
	res := FileResult{Path: f.Path, Bytes: f.Bytes, Digest: f.Digest, SHA256: t.sha256, Status: Downloaded}
	if t.resumed {
		res.Status = Resumed
	}
	return res
}
