package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/coreml/backends"
	"github.com/anepkg/anepkg/manifest"
	"github.com/anepkg/anepkg/runner"
)

// backend makes the backend that --backend names.
func (t *tool) backend(name string) (coreml.Backend, error) {
	if words := flagWords["backend"]; !contains(words, name) {
		return nil, usagef("--backend %s: want %s", name, orList(words)).WithHint("%s", didYouMean(name, words, ""))
	}
	return backends.New(name, t.backendOptions())
}

func (t *tool) backendOptions() backends.Options {
	return backends.Options{CacheDir: t.compileCache(), Logger: t.logger()}
}

// compileCache is the folder for what Core ML compiles: in the user's cache
// folder, "" when the system names none.
func (t *tool) compileCache() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "anepkg", "coreml")
}

// compareBackends runs one package on the two backends of --backend A,B.
func (t *tool) compareBackends(c *cli.Context) error {
	opts, err := t.engineOptions(c)
	if err != nil {
		return err
	}
	names := strings.Split(c.String("backend"), ",")
	switch {
	case len(names) != 2:
		return usagef("--backend %s: want one backend, or two such as coreml,cpu", c.String("backend"))
	case c.IsSet("golden"):
		return usagef("--golden takes one backend, got --backend %s", c.String("backend"))
	case c.Bool("isolate"):
		return usagef("--isolate takes one backend, got --backend %s", c.String("backend"))
	case c.NArg() != 1:
		return usagef("--backend %s compares one TARGET on two backends, got %s", c.String("backend"), plural(c.NArg(), "argument"))
	}
	var both [2]coreml.Backend
	for i, name := range names {
		if name == backends.Auto {
			return usagef("--backend %s: name both backends", c.String("backend"))
		}
		if both[i], err = t.backend(name); err != nil {
			return err
		}
	}
	return t.withPackage(c, func(ctx context.Context, pkg *manifest.Package) error {
		bar := t.progress(&opts)
		r, err := runner.CompareBackends(ctx, pkg, both[0], both[1], opts, runner.PackagePair{})
		bar.done()
		if err != nil {
			return err
		}
		return t.printComparison(r)
	})
}

// partsText prints what CompareBackends found.
func (t *tool) partsText(r *runner.Comparison) {
	st := t.style(t.stdoutTTY)
	tb := table{indent: "  ", right: map[int]bool{3: true, 4: true, 5: true}}
	tb.head(st, "part", "function", "output", "calls", "cosine", "max diff", "")
	for _, p := range r.Parts {
		cos := "-"
		if p.CosineMin != nil {
			cos = fmt.Sprintf("%.6f", *p.CosineMin)
		}
		verdict, paint := "pass", st.green
		if !p.Pass {
			verdict, paint = "FAIL", st.red
		}
		tb.row(p.Part, p.Function, p.Output, fmt.Sprint(p.Calls), cos, fmt.Sprintf("%.4f", p.MaxAbs), cell{verdict, paint})
	}
	t.printf("\n")
	tb.write(t.stdout)
	if f := r.FirstPart; f != nil {
		t.printf("the backends part at %s, function %s, output %s: call %d of %s\n", st.bold(f.Part), f.Function, f.Output, f.Call, f.Case)
	}
}
