package main

import (
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/anepkg/anepkg/fetch"
	"github.com/anepkg/anepkg/inspect"
)

// transfer shows a download: a bar on a terminal, a line for each finished
// file elsewhere, nothing with --quiet.
type transfer struct {
	t   *tool
	bar *progressbar.ProgressBar
}

func (t *tool) transfer(plan *fetch.Plan) *transfer {
	tr := &transfer{t: t}
	if t.stderrTTY && !t.global.quiet && plan.Missing > 0 {
		tr.bar = progressbar.NewOptions64(plan.Bytes,
			progressbar.OptionSetWriter(t.stderr),
			progressbar.OptionSetDescription(plan.Repo.String()),
			progressbar.OptionShowBytes(true),
			progressbar.OptionSetWidth(30),
			progressbar.OptionThrottle(100*time.Millisecond),
			progressbar.OptionEnableColorCodes(false),
			progressbar.OptionClearOnFinish(),
		)
	}
	return tr
}

func (tr *transfer) event(ev fetch.Event) {
	if tr.bar != nil {
		tr.bar.Describe(ev.Path)
		_ = tr.bar.Set64(ev.AllDone)
		return
	}
	if ev.Finished && ev.Status != fetch.Reused {
		tr.t.notef("%s  %s %s\n", ev.Path, sizeText(ev.Total), ev.Status)
	}
}

// done removes the bar.
func (tr *transfer) done() {
	if tr.bar != nil {
		_ = tr.bar.Clear()
		tr.bar = nil
	}
}

func sizeText(n int64) string { return inspect.Bytes(n) }
