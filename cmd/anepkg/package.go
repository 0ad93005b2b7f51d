package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/manifest"
)

// supportedForms is what an unsupported TARGET is told.
const supportedForms = "supported are ANEMLL and seed packages (meta.yaml), CoreML-LLM packages, and single ML Programs as .mlmodelc or .mlpackage"

// withPackage opens the command's single TARGET as a package, calls fn and
// closes it. A folder that is no supported package is refused by name.
func (t *tool) withPackage(c *cli.Context, fn func(ctx context.Context, pkg *manifest.Package) error) error {
	return t.withTarget(c, func(tg *target) error {
		return t.openPackage(c.Context, tg, func(pkg *manifest.Package) error {
			if err := refuse(pkg); err != nil {
				return err
			}
			t.warnProblems(c.Context, pkg, c.Command.Name == "states" || c.Command.Name == "layers")
			return fn(c.Context, pkg)
		})
	})
}

// openPackage opens a target as a package of any kind, calls fn and closes it.
func (t *tool) openPackage(ctx context.Context, tg *target, fn func(*manifest.Package) error) error {
	pkg, err := manifest.Open(ctx, tg.fsys, tg.path)
	if err != nil {
		return err
	}
	t.debugf("%s: %s %s: %s\n", pkg.Path, pkg.Kind, pkg.Layout, pkg.Reason)
	err = fn(pkg)
	if cerr := pkg.Close(); err == nil && cerr != nil {
		err = fmt.Errorf("closing %s: %w", pkg.Path, cerr)
	}
	return err
}

// maxWarnings bounds the warnings of one command.
const maxWarnings = 10

// warnProblems says on standard error what is wrong with the description
// files of a package that still opens and, with models, which models do not
// open: for commands that leave those out.
func (t *tool) warnProblems(ctx context.Context, pkg *manifest.Package, models bool) {
	var all []error
	for _, e := range pkg.Problems {
		all = append(all, e)
	}
	if models {
		for _, part := range pkg.Parts {
			if _, err := pkg.Model(ctx, part); err != nil && ctx.Err() == nil {
				all = append(all, err)
			}
		}
	}
	for i, err := range all {
		if i == maxWarnings {
			fmt.Fprintf(t.stderr, "warning: %s more; see anepkg validate\n", thousands(int64(len(all)-i)))
			return
		}
		fmt.Fprintf(t.stderr, "warning: %v\n", err)
	}
}

// refuse explains why nothing can be done with a folder of an unsupported
// kind; it returns nil for the supported ones.
func refuse(pkg *manifest.Package) error {
	pos := diag.In(pkg.Path)
	switch pkg.Kind {
	case manifest.NeuralNetwork:
		return diag.Errorf(pos, diag.Unsupported, "a neural network of the old kind, not an ML Program (%s); %s", pkg.Reason, supportedForms).
			WithHint("convert the source model again with convert_to=\"mlprogram\"")
	case manifest.CoreAI:
		return diag.Errorf(pos, diag.Unsupported, "a Core AI model (%s); %s", pkg.Reason, supportedForms)
	case manifest.Unknown:
		e := diag.Errorf(pos, diag.Unsupported, "not a known package: %s; %s", pkg.Reason, supportedForms)
		if pkg.Truncated {
			return e.WithHint("name the folder of the package itself")
		}
		if len(pkg.Seen) > 0 {
			return e.WithHint("the folder holds %s; a .mlmodelc or .mlpackage in it may be given as the TARGET", strings.Join(pkg.Seen, ", "))
		}
		return e
	}
	return nil
}

// partLabel names a part the way --part accepts it.
func partLabel(p *manifest.Part) string {
	if p.Path != "" && p.Path != "." {
		return p.Path
	}
	if p.Claimed != "" {
		return p.Claimed
	}
	return string(p.Role)
}

// choosePart finds the part that word means: a path, a role, the name of the
// model, or the number of a chunk. Without a word the package must have a
// single part.
func choosePart(pkg *manifest.Package, word string) (*manifest.Part, error) {
	var all []string
	var found []*manifest.Part
	for _, p := range pkg.Parts {
		all = append(all, partLabel(p))
		if word == "" || partMatches(p, word) {
			found = append(found, p)
		}
	}
	pos := diag.In(pkg.Path)
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(pkg.Parts) == 0:
		return nil, diag.Errorf(pos, diag.NotFound, "the package has no model")
	case word == "":
		return nil, diag.Errorf(pos, diag.Usage, "the package has %d parts: %s", len(all), strings.Join(all, ", ")).
			WithHint("choose one with --part, for example --part %s", all[0])
	case len(found) == 0:
		return nil, diag.Errorf(pos, diag.NotFound, "no part %q; the package has %s", word, strings.Join(all, ", ")).
			WithHint("%s", didYouMean(word, all, "--part takes a path, a role such as lm_head, or the number of a chunk"))
	}
	var names []string
	for _, p := range found {
		names = append(names, partLabel(p))
	}
	return nil, diag.Errorf(pos, diag.Usage, "--part %s fits %d parts: %s", word, len(found), strings.Join(names, ", ")).
		WithHint("give the path of one")
}

func partMatches(p *manifest.Part, word string) bool {
	word = strings.TrimSuffix(word, "/")
	base := p.Path[strings.LastIndex(p.Path, "/")+1:]
	stem := strings.TrimSuffix(strings.TrimSuffix(base, ".mlmodelc"), ".mlpackage")
	return word == p.Path || word == base || word == stem || word == string(p.Role) || word == p.Alternative ||
		p.Chunk > 0 && p.Role == manifest.Chunk && (word == fmt.Sprint(p.Chunk) || word == fmt.Sprintf("chunk %d", p.Chunk) || word == fmt.Sprintf("chunk%d", p.Chunk))
}

// openPart opens the model of the part that word means.
func openPart(ctx context.Context, pkg *manifest.Package, word string) (*manifest.Part, *coreml.Model, error) {
	part, err := choosePart(pkg, word)
	if err != nil {
		return nil, nil, err
	}
	m, err := pkg.Model(ctx, part)
	if err != nil {
		return nil, nil, err
	}
	if m == nil || m.Program == nil {
		return nil, nil, diag.Errorf(diag.In(partLabel(part)), diag.NotFound, "the part is absent")
	}
	return part, m, nil
}
