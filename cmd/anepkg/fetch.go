package main

import (
	"context"
	"os"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/fetch"
)

const fetchText = `  Fetches the files that a package needs from the Hugging Face hub, verified and
  resumable, into the cache that the hub's other tools use, or into a folder
  with --to. Of a model in two forms the compiled one is taken; a repository of
  several packages needs --variant. --dry-run tells what would be done.`

// fetchJSON is the result of fetch and of fetch --dry-run.
type fetchJSON struct {
	Repo       string          `json:"repo"`
	Revision   string          `json:"revision"`
	Commit     string          `json:"commit"`
	Path       string          `json:"path"`
	Files      []fetchFileJSON `json:"files"`
	Skipped    []fetchSkipJSON `json:"skipped"`
	Notes      []string        `json:"notes"`
	DryRun     bool            `json:"dry_run"`
	Downloaded int64           `json:"bytes_downloaded"`
	Reused     int64           `json:"bytes_reused"`
}

type fetchFileJSON struct {
	Path   string `json:"path"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
	Status string `json:"status"`
}

type fetchSkipJSON struct {
	Path   string `json:"path"`
	Bytes  int64  `json:"bytes"`
	Reason string `json:"reason"`
}

func (t *tool) fetchCommand() *cli.Command {
	return &cli.Command{
		Name:        "fetch",
		Aliases:     []string{"pull", "download"},
		Usage:       "get a package from the Hugging Face hub",
		ArgsUsage:   "REPOSITORY",
		Description: fetchText,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "to", Usage: "put the files into `DIR` instead of the cache"},
			&cli.StringSliceFlag{Name: "include", Usage: "only files that match `PATTERN`; may be repeated"},
			&cli.StringSliceFlag{Name: "exclude", Usage: "no files that match `PATTERN`; may be repeated"},
			&cli.StringSliceFlag{Name: "part", Usage: "only these `PARTS`: a role, a chunk (chunk1) or a path; may be repeated"},
			&cli.StringSliceFlag{Name: "without", Usage: "leave out `WHAT`: weights"},
			&cli.StringFlag{Name: "container", Usage: "`FORM` of models in two: mlmodelc, mlpackage or both", Value: "mlmodelc"},
			&cli.StringFlag{Name: "variant", Usage: "the package's `FOLDER` in a repository of several"},
			&cli.BoolFlag{Name: "all", Usage: "every file of the repository"},
			&cli.BoolFlag{Name: "dry-run", Usage: "tell what would be fetched"},
			&cli.BoolFlag{Name: "repair", Usage: "hash what is there and replace what is wrong"},
			&cli.StringFlag{Name: "lock", Usage: "restore exactly the files in `FILE`; write it after fetching when it is not there"},
			&cli.IntFlag{Name: "jobs", Usage: "fetch `N` files at the same time", Value: 4},
		},
		Action: t.fetchAction,
	}
}

func (t *tool) fetchAction(c *cli.Context) error {
	for _, w := range c.StringSlice("without") {
		if w != "weights" {
			return usagef("--without %s: want weights", w)
		}
	}
	forms := []string{"mlmodelc", "mlpackage", "both"}
	if f := c.String("container"); !slices.Contains(forms, f) {
		return usagef("--container %s: want %s", f, orList(forms))
	}
	client, err := t.hub()
	if err != nil {
		return err
	}
	plan, writeLock, err := t.fetchPlan(c, client)
	if err != nil {
		return err
	}
	out := fetchJSON{Repo: plan.Repo.Repo, Revision: plan.Repo.Rev(), Commit: plan.Repo.Commit, Path: plan.Path, Notes: plan.Notes, DryRun: c.Bool("dry-run")}
	for _, s := range plan.Skipped {
		out.Skipped = append(out.Skipped, fetchSkipJSON(s))
	}
	if out.DryRun {
		for _, f := range plan.Files {
			out.Files = append(out.Files, fetchFileJSON{f.Path, f.Bytes, sha256Of(f.Digest), string(f.Status)})
		}
		out.Reused = plan.Bytes - plan.Missing
		return t.printFetch(out, plan.Missing)
	}
	for _, n := range plan.Notes {
		t.notef("note: %s\n", n)
	}
	res, err := t.fetchFiles(c.Context, c, client, plan)
	if err != nil {
		return err
	}
	out.Path, out.Downloaded, out.Reused = res.Path, res.Downloaded, res.Reused
	for _, f := range res.Files {
		out.Files = append(out.Files, fetchFileJSON{f.Path, f.Bytes, f.SHA256, string(f.Status)})
	}
	if writeLock {
		if err := replaceFile(c.String("lock"), func(f *os.File) error { return res.Lock().Write(f) }); err != nil {
			return err
		}
	}
	return t.printFetch(out, 0)
}

// fetchPlan makes the plan of the flags; writeLock asks for a lock file
// afterwards.
func (t *tool) fetchPlan(c *cli.Context, client *fetch.Client) (plan *fetch.Plan, writeLock bool, err error) {
	if name := c.String("lock"); name != "" {
		f, err := os.Open(name)
		switch {
		case err == nil:
			l, err := fetch.ReadLock(f, name)
			_ = f.Close()
			if err != nil {
				return nil, false, err
			}
			if c.NArg() > 0 {
				ref, err := fetch.ParseRef(c.Args().First(), client.Endpoint())
				if err != nil {
					return nil, false, err
				}
				if err := l.Match(ref); err != nil {
					return nil, false, err
				}
			}
			plan, err = client.PlanLock(c.Context, l, c.String("to"))
			return plan, false, err
		case !os.IsNotExist(err):
			return nil, false, diag.Errorf(diag.In(name), diag.IO, "%w", err)
		}
		writeLock = true
	}
	if c.NArg() != 1 {
		return nil, false, usagef("fetch needs one repository, got %s", plural(c.NArg(), "argument")).WithHint("name it org/name, with @revision and /folder where needed")
	}
	ref, err := fetch.ParseRef(c.Args().First(), client.Endpoint())
	if err != nil {
		return nil, false, err
	}
	plan, err = client.Plan(c.Context, ref, fetch.PlanOptions{To: c.String("to"), Selection: fetch.Selection{
		Include: c.StringSlice("include"), Exclude: c.StringSlice("exclude"), Parts: c.StringSlice("part"),
		WithoutWeights: len(c.StringSlice("without")) > 0, Container: c.String("container"), Variant: c.String("variant"), All: c.Bool("all"),
	}})
	return plan, writeLock, err
}

// fetchFiles downloads or repairs, then unpacks zipped parts and verifies
// bundles.
func (t *tool) fetchFiles(ctx context.Context, c *cli.Context, client *fetch.Client, plan *fetch.Plan) (*fetch.Result, error) {
	bars := t.transfer(plan)
	defer bars.done()
	var res *fetch.Result
	var err error
	if c.Bool("repair") {
		var checks []fetch.Check
		res, checks, err = client.Repair(ctx, plan, bars.event)
		bars.done()
		for _, k := range checks {
			if k.Status != fetch.Good {
				t.notef("%s was %s\n", k.File, k.Status)
			}
		}
	} else {
		res, err = client.Download(ctx, plan, bars.event)
	}
	if err != nil {
		return nil, err
	}
	return res, client.Complete(ctx, plan, res)
}

// sha256Of returns a digest that is one of SHA-256, else "".
func sha256Of(d fetch.Digest) string {
	if d.IsSHA256() {
		return string(d)
	}
	return ""
}

func (t *tool) printFetch(out fetchJSON, missing int64) error {
	switch {
	case t.global.json:
		t.writeJSON("anepkg.fetch/1", out)
	case t.global.quiet:
		t.printf("%s\n", out.Path)
	case out.DryRun:
		tb := table{right: map[int]bool{1: true}}
		tb.head(t.style(t.stdoutTTY), "file", "size", "status")
		for _, f := range out.Files {
			tb.row(f.Path, sizeText(f.Bytes), f.Status)
		}
		for _, s := range out.Skipped {
			tb.row(s.Path, sizeText(s.Bytes), "left out: "+s.Reason)
		}
		tb.write(t.stdout)
		t.printf("\n%s at commit %s: %s to fetch, %s there already\n", out.Repo, out.Commit, sizeText(missing), sizeText(out.Reused))
	default:
		t.printf("%s\n", out.Path)
		t.notef("%s, %s fetched, %s there already\n", plural(len(out.Files), "file"), sizeText(out.Downloaded), sizeText(out.Reused))
	}
	return nil
}
