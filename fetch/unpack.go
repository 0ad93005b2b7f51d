package fetch

import (
	"archive/zip"
	"context"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/anepkg/anepkg/coreml/diag"
)

// Bounds for archives: far above any real model, low enough that a hostile
// one cannot fill the disk.
const (
	maxZipEntries = 50_000
	maxZipBytes   = 64 << 30 // all files, unpacked
	zipFreely     = 1 << 30  // all files, unpacked, that any archive may have
)

// MaxZipRatio is the most times that an archive of more than 1 GiB, unpacked,
// may grow: weights hardly shrink.
const MaxZipRatio = 100

// PlausibleZip tells from the sizes of all files whether an archive can be one
// of models, and not one that is made to fill the disk.
func PlausibleZip(packed, unpacked uint64) bool {
	return unpacked <= zipFreely || unpacked/MaxZipRatio <= packed
}

// Complete makes a finished download usable: it unpacks zipped models and
// verifies the bundles.
//
// Errors: those of UnpackZips and CheckBundles.
func (c *Client) Complete(ctx context.Context, plan *Plan, res *Result) error {
	if _, err := c.UnpackZips(ctx, plan, res); err != nil {
		return err
	}
	return c.CheckBundles(ctx, plan)
}

// root is the folder that the paths of a plan are below.
func (c *Client) root(plan *Plan) string {
	if plan.Dir != "" {
		return plan.Dir
	}
	return c.cacheOf(plan.Repo.Ref).snapshot(plan.Repo.Commit)
}

// UnpackZips unpacks the zipped models (*.mlmodelc.zip, *.mlpackage.zip) of a
// finished download, each beside its archive, and returns the folders. A
// folder that is there is left alone, unless its archive came anew or a file
// is missing or has another size; after Repair the CRC-32 of every file counts
// too. The archives stay: they are what the hub can verify.
//
// Errors: those of Unpack.
func (c *Client) UnpackZips(ctx context.Context, plan *Plan, res *Result) ([]string, error) {
	root := c.root(plan)
	var out []string
	for _, f := range res.Files {
		if _, form := containerOf(f.Path); form != "zip" {
			continue
		}
		archive := filepath.Join(root, filepath.FromSlash(f.Path))
		dir := strings.TrimSuffix(archive, ".zip")
		info, err := os.Lstat(dir)
		switch {
		case err == nil && !info.IsDir():
			return out, diag.Errorf(diag.In(dir), diag.IO, "a file stands where %s would be unpacked to", quoteName(f.Path))
		case err == nil && f.Status == Reused:
			same, err := isUnpacked(ctx, archive, dir, plan.repair)
			if err != nil {
				return out, err
			}
			if same {
				out = append(out, dir)
				continue
			}
		}
		if err := c.Unpack(ctx, archive, dir); err != nil {
			return out, err
		}
		out = append(out, dir)
	}
	return out, nil
}

// Unpack unpacks the zip archive into the folder dir, replacing what is
// there. Everything is unpacked under another name first and verified against
// the archive's checksums, so that dir is whole or absent. A single top folder
// of the name of dir counts as dir itself. What macOS adds (__MACOSX,
// .DS_Store) is left out.
//
// Errors: diag.Malformed for a broken archive, names that leave the folder,
// links, devices and names that collide; diag.Unsupported for encryption;
// diag.TooLarge beyond the bounds; ErrDiskFull before the first byte.
func (c *Client) Unpack(ctx context.Context, archive, dir string) error {
	r, u, err := openArchive(archive, filepath.Base(dir))
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	parent := filepath.Dir(dir)
	if err := makeDirs(parent); err != nil {
		return ioErr(parent, err)
	}
	if free, err := c.cfg.FreeSpace(parent); err == nil && free < u.bytes {
		e := fail(diag.IO, ErrDiskFull, "%s unpacks to %d bytes and %d are free", quoteName(filepath.Base(archive)), u.bytes, free).
			WithHint("free %d bytes", u.bytes-free)
		e.Pos = diag.In(parent)
		return e
	}
	tmp := filepath.Join(parent, tmpName())
	if err := u.write(ctx, tmp); err != nil {
		return errors.Join(err, os.RemoveAll(tmp))
	}
	return swapDir(tmp, dir)
}

// swapDir puts the folder tmp in the place of dir.
func swapDir(tmp, dir string) error {
	old := filepath.Join(filepath.Dir(dir), tmpName())
	err := os.Rename(dir, old)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return errors.Join(ioErr(dir, err), os.RemoveAll(tmp))
	}
	replaced := err == nil
	if err := os.Rename(tmp, dir); err != nil {
		return errors.Join(ioErr(dir, err), os.RemoveAll(tmp))
	}
	syncDir(filepath.Dir(dir))
	if replaced {
		return ioErr(old, os.RemoveAll(old))
	}
	return nil
}

// unpacker holds the files of an archive that passed the checks.
type unpacker struct {
	archive string
	top     string
	names   []string
	files   []*zip.File
	bytes   int64
}

func (u *unpacker) bad(code diag.Code, format string, args ...any) error {
	return diag.Errorf(diag.In(u.archive), code, "zip archive: "+format, args...).WithHint("nothing was unpacked; tell the owner of the repository")
}

// list checks every entry before the first one is written.
func (u *unpacker) list(entries []*zip.File) error {
	if len(entries) > maxZipEntries {
		return u.bad(diag.TooLarge, "%d entries, at most %d are read", len(entries), maxZipEntries)
	}
	var packed uint64
	for _, f := range entries {
		name := strings.TrimSuffix(f.Name, "/")
		if isMacExtra(name) {
			continue
		}
		if err := checkPath(name); err != nil {
			return u.bad(diag.Malformed, "%w", err)
		}
		mode := f.Mode()
		switch {
		case mode.IsDir() || strings.HasSuffix(f.Name, "/"):
			continue
		case !mode.IsRegular():
			return u.bad(diag.Malformed, "%s is a link or device, want a regular file", quoteName(name))
		case f.Flags&1 != 0:
			return u.bad(diag.Unsupported, "%s is encrypted", quoteName(name))
		case f.Method != zip.Store && f.Method != zip.Deflate:
			return u.bad(diag.Unsupported, "%s is compressed with method %d; supported are 0 (stored) and 8 (deflate)", quoteName(name), f.Method)
		case f.UncompressedSize64 > maxZipBytes || f.CompressedSize64 > maxZipBytes:
			return u.bad(diag.TooLarge, "%s unpacks from %d to %d bytes, at most %d are accepted", quoteName(name), f.CompressedSize64, f.UncompressedSize64, int64(maxZipBytes))
		}
		packed += f.CompressedSize64
		if u.bytes += int64(f.UncompressedSize64); u.bytes > maxZipBytes {
			return u.bad(diag.TooLarge, "unpacks to more than %d bytes", int64(maxZipBytes))
		}
		u.names, u.files = append(u.names, name), append(u.files, f)
	}
	if len(u.files) == 0 {
		return u.bad(diag.Malformed, "no files in it")
	}
	// Entries that share their data are how small archives unpack to
	// anything: together they claim more than the archive holds.
	if info, err := os.Stat(u.archive); err != nil || packed > uint64(info.Size()) {
		return u.bad(diag.Malformed, "its entries claim %d packed bytes, more than the archive has", packed)
	}
	if !PlausibleZip(packed, uint64(u.bytes)) {
		return u.bad(diag.TooLarge, "%d packed bytes unpack to %d, more than %d times as many", packed, u.bytes, MaxZipRatio)
	}
	u.stripTop()
	if err := checkPaths(u.names); err != nil {
		return u.bad(diag.Malformed, "%w", err)
	}
	return nil
}

// stripTop removes the folder that the archive was made of.
func (u *unpacker) stripTop() {
	prefix := u.top + "/"
	for _, n := range u.names {
		if !strings.HasPrefix(n, prefix) {
			return
		}
	}
	for i := range u.names {
		u.names[i] = strings.TrimPrefix(u.names[i], prefix)
	}
}

func isMacExtra(name string) bool {
	first, _, _ := strings.Cut(name, "/")
	base := path.Base(name)
	return first == "__MACOSX" || base == ".DS_Store" || strings.HasPrefix(base, "._")
}

func (u *unpacker) write(ctx context.Context, dir string) error {
	if err := makeDir(dir); err != nil {
		return ioErr(dir, err)
	}
	for i, f := range u.files {
		if err := u.one(ctx, f, u.names[i], filepath.Join(dir, filepath.FromSlash(u.names[i]))); err != nil {
			return err
		}
	}
	return nil
}

// one unpacks a file and checks its size and CRC-32 against the directory of
// the archive.
func (u *unpacker) one(ctx context.Context, f *zip.File, name, dst string) error {
	if err := makeDirs(filepath.Dir(dst)); err != nil {
		return ioErr(dst, err)
	}
	src, err := f.Open()
	if err != nil {
		return u.bad(diag.Malformed, "%s: %w", quoteName(name), err)
	}
	defer func() { _ = src.Close() }()
	out, err := openFile(dst, os.O_WRONLY|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return ioErr(dst, err)
	}
	w := &fileWriter{f: out}
	// One byte more than announced is enough to notice that there is more.
	n, err := copyContext(ctx, w, io.LimitReader(src, int64(f.UncompressedSize64)+1))
	switch {
	case w.err != nil:
		err = ioErr(dst, w.err)
	case ctx.Err() != nil:
		err = ctx.Err()
	case err != nil:
		err = u.bad(diag.Malformed, "%s: %w", quoteName(name), err)
	case n != int64(f.UncompressedSize64):
		err = u.bad(diag.Malformed, "%s unpacks to %d bytes, the archive announces %d", quoteName(name), n, f.UncompressedSize64)
	default:
		err = ioErr(dst, out.Sync())
	}
	if cerr := out.Close(); err == nil {
		err = ioErr(dst, cerr)
	}
	return err
}

// fileWriter tells trouble with the target from trouble with the source.
type fileWriter struct {
	f   *os.File
	err error
}

func (w *fileWriter) Write(p []byte) (int, error) {
	n, err := w.f.Write(p)
	if err != nil {
		w.err = err
	}
	return n, err
}
