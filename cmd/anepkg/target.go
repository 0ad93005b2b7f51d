package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/anepkg/anepkg/coreml/diag"
)

// target is a TARGET argument made readable.
type target struct {
	fsys fs.FS
	path string // as the user named it; for a zip with one top folder, that folder in it
	done func() error
}

// Close releases what the target holds open.
func (tg *target) Close() error {
	if tg.done == nil {
		return nil
	}
	return tg.done()
}

const targetUsage = "TARGET"

// oneTarget returns the single argument of a command.
func oneTarget(c *cli.Context) (string, error) {
	switch c.NArg() {
	case 1:
		if c.Args().First() != "" {
			return c.Args().First(), nil
		}
		fallthrough
	case 0:
		return "", usagef("%s needs a TARGET", c.Command.Name).
			WithHint("give a package folder, a .mlmodelc, a .mlpackage or a .zip; \"anepkg demo --extract DIR\" makes one to try")
	}
	e := usagef("%s takes one TARGET, got %d arguments: %s", c.Command.Name, c.NArg(), strings.Join(c.Args().Slice(), " "))
	if c.Command.Name == "run" {
		return "", e.WithHint("the prompt is given with --prompt")
	}
	return "", e.WithHint("put quotes around a path with spaces")
}

// openTarget resolves arg. An existing local path wins; a name that only a
// hub could know is an error of class diag.Unsupported, anything else that
// does not exist one of class diag.NotFound.
func openTarget(ctx context.Context, arg string) (*target, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	info, err := os.Stat(arg)
	switch {
	case err == nil && info.IsDir():
		return &target{fsys: dirFS(arg), path: filepath.Clean(arg)}, nil
	case err == nil:
		return openFile(arg, info)
	case isRemote(arg):
		return nil, diag.Errorf(diag.Pos{}, diag.Unsupported, "%s names a repository of the Hugging Face hub; here a local path is needed", arg).
			WithHint("fetch it first: anepkg fetch %s", arg)
	case errors.Is(err, fs.ErrNotExist) || isNotDir(arg):
		return nil, notFound(arg)
	}
	return nil, diag.Errorf(diag.Pos{}, diag.IO, "%w", err)
}

// present refuses a local TARGET that is not there, before anything else is
// asked of the user.
func present(c *cli.Context) error {
	arg, err := oneTarget(c)
	if err != nil || isRemote(arg) {
		return err
	}
	if _, err := os.Stat(arg); errors.Is(err, fs.ErrNotExist) {
		return notFound(arg)
	}
	return nil
}

// isNotDir reports whether a parent of path is a file.
func isNotDir(path string) bool {
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		if info, err := os.Stat(dir); err == nil {
			return !info.IsDir()
		}
		if dir == filepath.Dir(dir) {
			return false
		}
	}
}

// notFound says that path does not exist and names what is near.
func notFound(path string) error {
	e := diag.Errorf(diag.In(path), diag.NotFound, "no such file or folder")
	dir := filepath.Dir(path)
	entries, err := os.ReadDir(dir)
	if err != nil {
		for dir != filepath.Dir(dir) {
			dir = filepath.Dir(dir)
			if info, err := os.Stat(dir); err == nil && info.IsDir() {
				break
			}
		}
		if dir == filepath.Dir(dir) || dir == "." {
			return e
		}
		return e.WithHint("%s is the nearest folder that exists", dir)
	}
	var names []string
	for _, en := range entries {
		names = append(names, en.Name())
	}
	if n := nearest(filepath.Base(path), names); n != "" {
		return e.WithHint("did you mean %s?", filepath.Join(dir, n))
	}
	return e
}

var (
	remoteURL  = regexp.MustCompile(`^(hf://|https?://)`)
	remoteName = regexp.MustCompile(`^[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*(@[\w./-]+)?(/[\w.-]+)*$`)
	modelName  = regexp.MustCompile(`(?i)\.(mlmodelc|mlpackage|anemllpkg)$`)
	localName  = regexp.MustCompile(`(?i)\.(mlmodelc|mlpackage|mlmodel|aimodel|zip|anemllpkg|json|yaml|mil|bin)$`)
)

// isRemote reports whether an argument that is no local path looks like
// org/name, a model in it (org/name/m.mlmodelc), hf://... or a web address. A path below a folder that exists is a
// local one with a mistake in it.
func isRemote(arg string) bool {
	if remoteURL.MatchString(arg) {
		return true
	}
	if !remoteName.MatchString(arg) {
		return false
	}
	inRepo := strings.Count(arg, "/") > 1 && modelName.MatchString(arg) // org/name/m.mlmodelc
	if localName.MatchString(arg) && !inRepo {
		return false
	}
	first, _, _ := strings.Cut(arg, "/")
	_, err := os.Stat(first)
	return err != nil
}

// sniffBytes is how much of a single file is looked at to tell what it is.
const sniffBytes = 512

// openFile opens a TARGET that is a file: only archives hold a package.
func openFile(arg string, info fs.FileInfo) (*target, error) {
	if !info.Mode().IsRegular() {
		return nil, diag.Errorf(diag.In(arg), diag.Unsupported, "neither a folder nor a regular file")
	}
	f, err := os.Open(arg)
	if err != nil {
		return nil, diag.Errorf(diag.In(arg), diag.IO, "%w", err)
	}
	head := make([]byte, sniffBytes)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, errors.Join(diag.Errorf(diag.In(arg), diag.IO, "%w", err), f.Close())
	}
	if bytes.HasPrefix(head[:n], []byte("PK\x03\x04")) || bytes.HasPrefix(head[:n], []byte("PK\x05\x06")) {
		return openZip(f, info.Size(), arg)
	}
	return nil, errors.Join(notAPackage(arg, head[:n]), f.Close())
}

// notAPackage names the kind of a file that is no archive.
func notAPackage(arg string, head []byte) error {
	ext := strings.ToLower(filepath.Ext(arg))
	pos := diag.In(arg)
	switch {
	case bytes.HasPrefix(head, []byte("version https://git-lfs")):
		return diag.Errorf(pos, diag.LFSPointer, "a Git LFS pointer, not the file itself").WithHint("run \"git lfs pull\" in the repository")
	case ext == ".zip" || ext == ".anemllpkg":
		return diag.Errorf(pos, diag.Malformed, "not a zip archive: it begins with %q, want \"PK\"", head[:min(4, len(head))])
	case ext == ".mlmodel":
		return diag.Errorf(pos, diag.Unsupported, "a single .mlmodel file, the form of neural networks and older models; supported are ML Programs as .mlmodelc or .mlpackage").
			WithHint("convert the model again with convert_to=\"mlprogram\"")
	}
	if dir := packageAround(arg); dir != "" {
		return diag.Errorf(pos, diag.Unsupported, "a file inside a package, not a package").WithHint("give the folder: %s", dir)
	}
	return diag.Errorf(pos, diag.Unsupported, "not a package; supported are folders, .mlmodelc, .mlpackage and .zip")
}

// packageAround returns the nearest folder above path that looks like a
// package or model, "" if none does.
func packageAround(path string) string {
	dir := filepath.Dir(path)
	for range 4 {
		ext := strings.ToLower(filepath.Ext(dir))
		if ext == ".mlmodelc" || ext == ".mlpackage" {
			return dir
		}
		for _, name := range []string{"meta.yaml", "model_config.json"} {
			if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
				return dir
			}
		}
		dir = filepath.Dir(dir)
	}
	return ""
}

// withTarget opens the command's single TARGET, calls fn and closes it.
func (t *tool) withTarget(c *cli.Context, fn func(*target) error) error {
	arg, err := oneTarget(c)
	if err != nil {
		return err
	}
	tg, err := t.open(c, arg)
	if err != nil {
		return err
	}
	err = fn(tg)
	if e := diag.CodeOf(err); c.Command.Name != "validate" && slices.Contains([]diag.Code{diag.Malformed, diag.Mismatch, diag.TooLarge}, e) {
		err = hinted(err, "\"anepkg validate\" tells what is wrong with the package")
	}
	if cerr := tg.Close(); err == nil && cerr != nil {
		err = fmt.Errorf("closing %s: %w", arg, cerr)
	}
	return err
}
