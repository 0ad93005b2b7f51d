package fetch

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/manifest"
)

// variants are the folders that hold a package of their own: a meta.yaml or
// model_config.json. A description in the root means that the repository is
// one package; its folders are not counted then.
func variants(files []File, root string) []string {
	var out []string
	for _, f := range files {
		base := path.Base(f.Path)
		if base != "meta.yaml" && base != "model_config.json" {
			continue
		}
		if _, form := containerOf(f.Path); form != "" {
			continue
		}
		dir := path.Dir(f.Path)
		if dir == cmp.Or(root, ".") {
			return nil
		}
		if !slices.Contains(out, dir) {
			out = append(out, dir)
		}
	}
	slices.Sort(out)
	return out
}

// variant keeps one package of a repository that holds several.
func (s *selector) variant(files []File) ([]File, error) {
	root := s.plan.Repo.Sub
	found := variants(files, root)
	want := strings.Trim(s.sel.Variant, "/")
	if want == "" && len(found) < 2 {
		return files, nil
	}
	if want == "" {
		return nil, diag.Errorf(diag.Pos{}, diag.Usage, "%s holds %d packages: %s", s.plan.Repo.Repo, len(found), strings.Join(found, ", ")).
			WithHint("name one: %s", Ref{Kind: s.plan.Repo.Kind, Repo: s.plan.Repo.Repo, Revision: s.plan.Repo.Revision, Sub: found[0]})
	}
	dir := path.Join(root, want)
	inside := func(f File) bool { return strings.HasPrefix(f.Path, dir+"/") }
	if !slices.ContainsFunc(files, inside) {
		e := diag.Errorf(diag.Pos{}, diag.NotFound, "%s has no folder %s", s.plan.Repo.Repo, quoteName(want))
		if len(found) > 0 {
			e = e.WithHint("there are %s", strings.Join(found, ", "))
		}
		return nil, e
	}
	s.plan.Repo.Sub = dir
	return s.drop(files, "belongs to another package", func(f File) bool { return !inside(f) }), nil
}

// parts opens the package over the network, small files only, and keeps the
// models that the selection names.
func (c *Client) parts(ctx context.Context, s *selector, files []File) ([]File, error) {
	fsys, err := c.newFS(ctx, s.plan.Repo, files)
	if err != nil {
		return nil, err
	}
	pkg, err := manifest.Open(ctx, fsys, s.plan.Repo.Repo)
	if err != nil {
		return nil, err
	}
	wanted := map[string]bool{}
	var names []string
	for _, want := range s.sel.Parts {
		hit := false
		for _, part := range pkg.Parts {
			if partIs(part, want) {
				hit, wanted[path.Join(s.plan.Repo.Sub, part.Path)] = true, true
			}
		}
		if !hit {
			for _, part := range pkg.Parts {
				names = append(names, partName(part))
			}
			slices.Sort(names)
			return nil, diag.Errorf(diag.Pos{}, diag.Usage, "%s has no part %q", s.plan.Repo.Repo, want).
				WithHint("there are %s", strings.Join(slices.Compact(names), ", "))
		}
	}
	return s.drop(files, "another part", func(f File) bool {
		dir, form := containerOf(f.Path)
		return form != "" && !wanted[dir]
	}), nil
}

// partName is "lm_head" or "chunk2".
func partName(p *manifest.Part) string {
	if p.Chunk > 0 {
		return fmt.Sprintf("%s%d", p.Role, p.Chunk)
	}
	return string(p.Role)
}

func partIs(p *manifest.Part, want string) bool {
	return want == string(p.Role) || want == partName(p) || want == p.Path || want == path.Base(p.Path)
}
