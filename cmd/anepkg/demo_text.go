package main

import (
	"context"
	"strings"

	"github.com/anepkg/anepkg/coreml/tensor"
	"github.com/anepkg/anepkg/inspect"
	"github.com/anepkg/anepkg/runner"
)

// demoHead prints what is about to run.
func (t *tool) demoHead(out *demoJSON, r *runner.Runner) {
	if t.global.json || t.global.quiet {
		return
	}
	st := t.style(t.stdoutTTY)
	t.printf("%s: a %s package of layout %s, architecture %s, run by the %s backend\n\n",
		st.bold(out.Package.Name), out.Package.Kind, out.Package.Layout, out.Package.Architecture, r.Backend())
	tb := table{indent: "  ", right: map[int]bool{3: true, 4: true}}
	tb.head(st, "part", "file", "functions", "weights", "size")
	for _, p := range out.Parts {
		tb.row(p.Role, p.Path, strings.Join(p.Functions, ", "), thousands(int64(p.Weights)), inspect.Bytes(p.WeightBytes))
	}
	tb.write(t.stdout)
	t.printf("\n")
	tb = table{indent: "  "}
	tb.head(st, "state", "shape", "type", "size", "layers")
	for _, s := range out.States {
		tb.row(s.Name, tensor.ShapeString(s.Shape), s.DType, inspect.Bytes(s.Bytes), ranges(s.Layers))
	}
	tb.write(t.stdout)
	t.printf("\nloaded in %s\n", seconds(r.LoadTime().Seconds()))
}

// demoRun streams one answer.
func (t *tool) demoRun(ctx context.Context, r *runner.Runner, kind string, in runner.PromptInput) (*runner.Result, error) {
	p, err := r.Prompt(in)
	if err != nil {
		return nil, err
	}
	st := t.style(t.stdoutTTY)
	loud := !t.global.json
	if loud {
		t.printf("\n%s\n%s", st.dim(map[string]string{"story": "a story goes on", "chat": "a question is answered"}[kind]), st.green("> "+in.Text))
		if kind == "chat" {
			t.printf("\n")
		}
	}
	res, err := r.Generate(ctx, runner.Request{PromptIDs: p.IDs}, func(piece string) {
		if loud {
			t.say(piece)
		}
	})
	if loud {
		t.printf("\n")
	}
	if err != nil {
		return nil, err
	}
	if loud && !t.global.quiet {
		t.printf("%s\n", st.dim(summary(res)))
	}
	return res, nil
}

// demoTail says what the model is, and what to try next.
func (t *tool) demoTail(out *demoJSON) {
	if t.global.quiet {
		return
	}
	st := t.style(t.stdoutTTY)
	t.printf("\n")
	for _, line := range wrap(out.Note, 78) {
		t.printf("%s\n", line)
	}
	t.printf("\nTry next\n")
	for _, next := range out.Next {
		t.printf("  %s\n", st.cyan(next))
	}
}
