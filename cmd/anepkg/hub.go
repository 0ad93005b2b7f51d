package main

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/fetch"
)

// hub makes a client of the environment and the global flags.
func (t *tool) hub() (*fetch.Client, error) {
	cfg, err := fetch.ConfigFromEnv(t.getenv, t.home())
	if err != nil {
		return nil, err
	}
	if t.global.endpoint != "" {
		cfg.Endpoint = t.global.endpoint
	}
	if t.global.token != "" {
		cfg.Token = t.global.token
	}
	if t.global.cacheDir != "" {
		cfg.CacheDir = t.global.cacheDir
	}
	cfg.Offline = cfg.Offline || t.global.offline
	cfg.UserAgent = "anepkg"
	t.keepSecret(cfg.Token)
	cfg.Log = t.logger()
	return fetch.New(cfg)
}

// masking writes text in which a secret is replaced.
type masking struct {
	w      io.Writer
	secret []byte
}

// Write implements io.Writer.
func (m *masking) Write(p []byte) (int, error) {
	if _, err := m.w.Write(bytes.ReplaceAll(p, m.secret, []byte("***"))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// keepSecret keeps the token out of everything that is printed from now on,
// also where a server sends it back.
func (t *tool) keepSecret(token string) {
	if len(token) < 4 {
		return
	}
	if t.stderr != nil {
		t.stderr = &masking{t.stderr, []byte(token)}
	}
	if t.stdout != nil {
		t.stdout.w = &masking{t.stdout.w, []byte(token)}
	}
}

// home is the user's folder.
func (t *tool) home() string {
	if h := t.getenv("HOME"); h != "" {
		return h
	}
	return t.getenv("USERPROFILE")
}

// reading says how a command wants a repository.
type reading int

const (
	wholeFiles reading = iota // everything that the package needs, fetched
	byRange                   // small files and ranges, nothing kept
)

// readingOf says how the command of c wants a repository: those that look at
// programs and small files need no weights.
func readingOf(c *cli.Context) reading {
	switch c.Command.Name {
	case "inspect", "layers", "mil", "tokenize", "detokenize", "render":
		return byRange
	case "states":
		if !c.Bool("values") {
			return byRange
		}
	case "weights":
		return byRange // one constant is read by range too
	case "validate", "diff":
		if c.Bool("fast") {
			return byRange
		}
	}
	return wholeFiles
}

// open makes a TARGET readable: a local path, else a repository of the hub.
func (t *tool) open(c *cli.Context, arg string) (*target, error) {
	if _, err := os.Stat(arg); err != nil && isRemote(arg) {
		return t.remoteTarget(c.Context, arg, readingOf(c))
	}
	return openTarget(c.Context, arg)
}

// readable reads one small file, so that a repository whose files may be
// listed but not read is refused at once.
func readable(fsys fs.FS) error {
	entries, err := fs.ReadDir(fsys, ".")
	if err != nil {
		return err
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() || info.Size() == 0 || info.Size() > 64<<10 {
			continue
		}
		if _, err := fs.ReadFile(fsys, e.Name()); diag.CodeOf(err) == diag.Auth {
			return err
		}
		return nil
	}
	return nil
}

// remoteTarget makes a repository readable: by fetching what its package
// needs into the cache, or over the network.
func (t *tool) remoteTarget(ctx context.Context, arg string, how reading) (*target, error) {
	client, err := t.hub()
	if err != nil {
		return nil, err
	}
	ref, err := fetch.ParseRef(arg, client.Endpoint())
	if err != nil {
		return nil, err
	}
	if how == byRange {
		fsys, err := client.FS(ctx, ref)
		if err != nil {
			return nil, err
		}
		if err := readable(fsys); err != nil {
			return nil, err
		}
		return &target{fsys: fsys, path: ref.String(), done: func() error {
			tr := client.Traffic()
			t.debugf("%s: %s over the network in %s\n", ref, sizeText(tr.Bytes), plural(int(tr.Requests), "request"))
			return nil
		}}, nil
	}
	plan, err := client.Plan(ctx, ref, fetch.PlanOptions{})
	if err != nil {
		return nil, err
	}
	for _, n := range plan.Notes {
		t.notef("note: %s\n", n)
	}
	bars := t.transfer(plan)
	res, err := client.Download(ctx, plan, bars.event)
	bars.done()
	if err != nil {
		return nil, err
	}
	if err := client.Complete(ctx, plan, res); err != nil {
		return nil, err
	}
	info, err := os.Stat(res.Path)
	if err != nil {
		return nil, diag.Errorf(diag.In(res.Path), diag.IO, "%w", err)
	}
	if !info.IsDir() {
		return openFile(res.Path, info)
	}
	return &target{fsys: dirFS(res.Path), path: filepath.Clean(res.Path)}, nil
}
