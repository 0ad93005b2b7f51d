package main

import (
	"log/slog"
	"slices"

	"github.com/schollz/progressbar/v3"

	"github.com/anepkg/anepkg/runner"
)

// progress shows loading and prefill as a bar on stderr. The zero value
// shows nothing.
type progress struct {
	t     *tool
	bar   *progressbar.ProgressBar
	phase runner.Phase
}

// progress hooks a bar into opts when stderr is a terminal and nobody asked
// for quiet.
func (t *tool) progress(opts *runner.Options) *progress {
	p := &progress{t: t}
	if t.stderrTTY && !t.global.quiet {
		opts.Progress = p.event
	}
	return p
}

// prefillShown is the number of prompt tokens from which a bar is worth it.
const prefillShown = 256

func (p *progress) event(ev runner.Event) {
	if ev.Phase == runner.Prefilling && ev.Total < prefillShown {
		return
	}
	if p.bar == nil || p.phase != ev.Phase {
		p.done()
		p.phase = ev.Phase
		title := "loading"
		if ev.Phase == runner.Prefilling {
			title = "reading the prompt"
		}
		p.bar = progressbar.NewOptions(ev.Total,
			progressbar.OptionSetWriter(p.t.stderr),
			progressbar.OptionSetDescription(title),
			progressbar.OptionShowCount(),
			progressbar.OptionSetWidth(30),
			progressbar.OptionEnableColorCodes(false),
			progressbar.OptionClearOnFinish(),
		)
	}
	_ = p.bar.Set(ev.Done)
}

// done removes the bar.
func (p *progress) done() {
	if p.bar != nil {
		_ = p.bar.Clear()
		p.bar = nil
	}
}

// logger writes the libraries' remarks to stderr with --verbose.
func (t *tool) logger() *slog.Logger {
	if !t.global.verbose {
		return nil
	}
	return slog.New(slog.NewTextHandler(t.stderr, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: dropTime}))
}

// dropTime leaves out the time of a record, which a reader at a terminal
// knows.
func dropTime(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return a
}

func contains(list []string, s string) bool { return slices.Contains(list, s) }
