package main

import (
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/anepkg/anepkg/fetch"
)

const cacheText = `  ls lists the repositories in the hub cache with their sizes. verify hashes every
  file. rm REPOSITORY removes one, or a revision of it with @revision. prune
  deletes contents that no revision names, and with --partials unfinished
  downloads, with --detached revisions that no branch points to. --dry-run
  tells what would be freed. What another process works on is left alone.`

type cacheRepoJSON struct {
	Repo      string              `json:"repo"`
	Kind      string              `json:"kind"`
	Path      string              `json:"path"`
	Bytes     int64               `json:"bytes"`
	Partial   int64               `json:"partial_bytes"`
	Unused    int64               `json:"unused_bytes"`
	Refs      map[string]string   `json:"refs"`
	Snapshots []cacheSnapshotJSON `json:"snapshots"`
}

type cacheSnapshotJSON struct {
	Commit string   `json:"commit"`
	Refs   []string `json:"refs"`
	Path   string   `json:"path"`
	Files  int      `json:"files"`
	Bytes  int64    `json:"bytes"`
	Broken int      `json:"broken"`
}

type cacheResultJSON struct {
	Repo   string `json:"repo"`
	File   string `json:"file"`
	Status string `json:"status"`
	Bytes  int64  `json:"bytes"`
	Want   string `json:"want"`
	Got    string `json:"got"`
}

type removalJSON struct {
	Paths  []string `json:"paths"`
	Bytes  int64    `json:"bytes"`
	Busy   []string `json:"busy"`
	DryRun bool     `json:"dry_run"`
}

func (t *tool) cacheCommand() *cli.Command {
	return &cli.Command{
		Name:        "cache",
		Usage:       "list, verify and clean the hub cache",
		ArgsUsage:   "ls | verify [REPOSITORY] | rm REPOSITORY | prune",
		Description: cacheText,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "dry-run", Usage: "rm and prune: tell what would be freed"},
			&cli.BoolFlag{Name: "partials", Usage: "prune: unfinished downloads too"},
			&cli.BoolFlag{Name: "detached", Usage: "prune: revisions that no branch or tag points to too"},
		},
		Action: func(c *cli.Context) error {
			client, err := t.hub()
			if err != nil {
				return err
			}
			cache, err := fetch.OpenCache(client.CacheDir())
			if err != nil {
				return err
			}
			args := c.Args().Slice()
			verbs := []string{"ls", "verify", "rm", "prune"}
			switch {
			case len(args) == 1 && args[0] == "ls":
				return t.cacheList(c, cache)
			case len(args) <= 2 && len(args) > 0 && args[0] == "verify":
				return t.cacheVerify(c, client, cache, args[1:])
			case len(args) == 2 && args[0] == "rm":
				ref, err := fetch.ParseRef(args[1], client.Endpoint())
				if err != nil {
					return err
				}
				r, err := cache.Remove(c.Context, ref, c.Bool("dry-run"))
				return t.printRemoval(c, r, err)
			case len(args) == 1 && args[0] == "prune":
				r, err := cache.Prune(c.Context, fetch.PruneOptions{Detached: c.Bool("detached"), Partials: c.Bool("partials"), DryRun: c.Bool("dry-run")})
				return t.printRemoval(c, r, err)
			case len(args) > 0 && !slices.Contains(verbs, args[0]):
				return usagef("cache has no %q; it has %s", args[0], orList(verbs)).WithHint("%s", didYouMean(args[0], verbs, ""))
			}
			return usagef("cache needs ls, verify [REPOSITORY], rm REPOSITORY or prune")
		},
	}
}

func (t *tool) cacheList(c *cli.Context, cache *fetch.Cache) error {
	repos, err := cache.List(c.Context)
	if err != nil {
		return err
	}
	var out struct {
		Dir   string          `json:"dir"`
		Repos []cacheRepoJSON `json:"repos"`
	}
	out.Dir = cache.Dir()
	total := int64(0)
	tb := table{right: map[int]bool{1: true, 2: true}}
	tb.head(t.style(t.stdoutTTY), "repository", "size", "revisions", "unused", "unfinished")
	for _, r := range repos {
		j := cacheRepoJSON{r.Repo, string(r.Kind), r.Dir, r.Bytes, r.Partial, r.Unused, r.Refs, nil}
		for _, s := range r.Snapshots {
			j.Snapshots = append(j.Snapshots, snapshotFields(s))
		}
		out.Repos = append(out.Repos, j)
		total += r.Bytes
		tb.row(r.Repo, sizeText(r.Bytes), thousands(int64(len(r.Snapshots))), sizeText(r.Unused), sizeText(r.Partial))
	}
	if t.global.json {
		t.writeJSON("anepkg.cache/1", out)
		return nil
	}
	if len(repos) > 0 {
		tb.write(t.stdout)
		t.printf("\n")
	}
	t.printf("%s in %s, %s\n", plural(len(repos), "repository"), out.Dir, sizeText(total))
	return nil
}

func snapshotFields(s fetch.CachedSnapshot) cacheSnapshotJSON {
	return cacheSnapshotJSON{s.Commit, s.Refs, s.Dir, s.Files, s.Bytes, s.Broken}
}

func (t *tool) cacheVerify(c *cli.Context, client *fetch.Client, cache *fetch.Cache, names []string) error {
	keep := func(fetch.CachedRepo) bool { return true }
	if len(names) == 1 {
		ref, err := fetch.ParseRef(names[0], client.Endpoint())
		if err != nil {
			return err
		}
		keep = func(r fetch.CachedRepo) bool { return r.Repo == ref.Repo && r.Kind == ref.Kind }
	}
	checks, err := cache.Verify(c.Context, keep, func(k fetch.Check) {
		if k.Status != fetch.Good && !t.global.json {
			t.printf("%-8s %s %s\n", k.Status, k.Repo, k.File)
		}
	})
	if err != nil {
		return err
	}
	var out struct {
		Results []cacheResultJSON `json:"results"`
	}
	for _, k := range checks {
		out.Results = append(out.Results, cacheResultJSON{k.Repo, k.File, string(k.Status), k.Bytes, string(k.Want), string(k.Got)})
	}
	faults := fetch.Faults(checks)
	if t.global.json {
		t.writeJSON("anepkg.cache.verify/1", out)
	} else {
		t.printf("%s hashed, %s\n", plural(len(checks), "file"), plural(faults, "fault"))
	}
	if faults > 0 {
		return errFindings
	}
	return nil
}

func (t *tool) printRemoval(c *cli.Context, r *fetch.Removal, err error) error {
	if err != nil {
		return err
	}
	if t.global.json {
		t.writeJSON("anepkg.cache.remove/1", removalJSON{r.Paths, r.Bytes, r.Busy, c.Bool("dry-run")})
		return nil
	}
	verb := "freed"
	if c.Bool("dry-run") {
		verb = "would be freed"
	}
	for _, p := range r.Paths {
		t.debugf("%s\n", p)
	}
	for _, p := range r.Busy {
		t.notef("left alone, another process works on it: %s\n", p)
	}
	t.printf("%s %s\n", sizeText(r.Bytes), verb)
	return nil
}
