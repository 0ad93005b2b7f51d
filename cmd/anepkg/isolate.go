package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/coreml/backends"
	"github.com/anepkg/anepkg/coreml/diag"
)

// maxChildLine bounds a line of the child, maxChildNoise what is kept of its
// standard error, in bytes.
const (
	maxChildLine  = 1 << 20
	maxChildNoise = 16 << 10
)

// killedHint is what helps when the system ends a process that loads a model.
const killedHint = "the Neural Engine's compiler ends processes whose model is too large for it: use --compute-units cpuAndGPU, smaller chunks, or the CPU engine with --backend cpu"

// childProcess makes the command that runs anepkg again with args.
func (t *tool) childProcess(ctx context.Context, args []string) (*exec.Cmd, error) {
	if t.child != nil {
		return t.child(ctx, args), nil
	}
	self, err := os.Executable()
	if err != nil {
		return nil, diag.Errorf(diag.Pos{}, diag.IO, "anepkg cannot find itself to start a second process: %w", err)
	}
	cmd := exec.CommandContext(ctx, self, args...) //nolint:gosec // the program is this one
	cmd.Args[0] = os.Args[0]
	return cmd, nil
}

// childArgs is the command line of a child for a target. The token goes
// through the environment, where other users do not see it.
func (t *tool) childArgs(c *cli.Context, target string, from int) []string {
	args := []string{childName, "--from", strconv.Itoa(from), "--json"}
	for _, f := range []string{"backend", "compute-units", "precision", "threads"} {
		if c.IsSet(f) {
			args = append(args, "--"+f, fmt.Sprint(c.Value(f)))
		}
	}
	if t.global.offline {
		args = append(args, "--offline")
	}
	if t.global.cacheDir != "" {
		args = append(args, "--cache-dir", t.global.cacheDir)
	}
	if t.global.endpoint != "" {
		args = append(args, "--endpoint", t.global.endpoint)
	}
	return append(args, "--", target)
}

// loadIsolated loads every function of a target in a child process. When the
// child dies, its last load has failed and another child goes on behind it.
func (t *tool) loadIsolated(c *cli.Context, target string) ([]loadResult, error) {
	var all []loadResult
	for {
		done, died, err := t.loadInChild(c, target, len(all))
		all = append(all, done...)
		if err != nil || !died {
			return all, err
		}
	}
}

// loadInChild runs one child. died reports that it was ended from outside
// while it loaded the last function of done.
func (t *tool) loadInChild(c *cli.Context, target string, from int) (done []loadResult, died bool, err error) {
	cmd, err := t.childProcess(c.Context, t.childArgs(c, target, from))
	if err != nil {
		return nil, false, err
	}
	if t.global.token != "" {
		cmd.Env = append(cmd.Environ(), "HF_TOKEN="+t.global.token)
	}
	noise := &tailBuffer{max: maxChildNoise}
	cmd.Stderr = noise
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, false, diag.Errorf(diag.Pos{}, diag.IO, "%w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, false, diag.Errorf(diag.Pos{}, diag.IO, "a second process: %w", err)
	}
	var open *loadResult
	var rest strings.Builder
	sc := bufio.NewScanner(out)
	sc.Buffer(nil, maxChildLine)
	for sc.Scan() {
		var l childLine
		switch err := json.Unmarshal(sc.Bytes(), &l); {
		case err == nil && l.Begin != nil:
			open = l.Begin
		case err == nil && l.End != nil:
			done, open = append(done, *l.End), nil
		case rest.Len() < maxChildLine:
			rest.Write(sc.Bytes())
		}
	}
	werr := cmd.Wait()
	switch {
	case c.Err() != nil:
		return done, false, c.Err()
	case werr == nil:
		return done, false, nil
	case open == nil:
		return done, false, childFailure(rest.String(), noise.String(), werr)
	}
	open.Killed = endOf(werr)
	open.Error = &jsonError{Code: diag.RunFailed, Message: "the process that loaded it was ended by " + open.Killed + lastLine(noise.String()), Hint: killedHint}
	return append(done, *open), true, nil
}

// childFailure is the error of a child that failed between loads.
func childFailure(out, noise string, err error) error {
	var f jsonFailure
	if json.Unmarshal([]byte(out), &f) == nil && f.Error.Message != "" {
		e := diag.Errorf(diag.Pos{}, f.Error.Code, "%s", f.Error.Message)
		if f.Error.Hint != "" {
			return e.WithHint("%s", f.Error.Hint)
		}
		return e
	}
	return diag.Errorf(diag.Pos{}, diag.RunFailed, "the process that loads the package was ended by %s%s", endOf(err), lastLine(noise))
}

// endOf says what ended a process.
func endOf(err error) string {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.String() // "signal: killed", "exit status 2"
	}
	return err.Error()
}

// lastLine is the last line of what a child said on standard error, where
// Apple's compilers say why they fail.
func lastLine(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	for _, l := range slices.Backward(lines) {
		if strings.Contains(l, "ANECCompile") {
			return "; it said: " + strings.TrimSpace(l)
		}
	}
	if last := strings.TrimSpace(lines[len(lines)-1]); last != "" {
		return "; it said: " + last
	}
	return ""
}

// tailBuffer keeps the end of what is written to it.
type tailBuffer struct {
	max  int
	data []byte
}

func (b *tailBuffer) Write(p []byte) (int, error) {
	b.data = append(b.data, p...)
	if over := len(b.data) - b.max; over > 0 {
		b.data = slices.Delete(b.data, 0, over)
	}
	return len(p), nil
}

func (b *tailBuffer) String() string { return string(b.data) }

// isolated does what --isolate asks for: every function of every TARGET is
// loaded in a child process first. When one fails, the backend auto falls
// back to the CPU engine; any other is an error.
func (t *tool) isolated(c *cli.Context, b coreml.Backend) (coreml.Backend, error) {
	for _, target := range c.Args().Slice() {
		results, err := t.loadIsolated(c, target)
		if err != nil {
			return nil, err
		}
		for i := range results {
			err := results[i].err()
			switch _, auto := b.(coreml.Chooser); {
			case err == nil:
			case auto && results[i].Backend != "cpu":
				t.notef("note: Core ML does not load %s, function %s: %s; the CPU engine is used\n", results[i].Part, results[i].Function, results[i].Error.Message)
				return backends.New("cpu", t.backendOptions())
			default:
				return nil, err
			}
		}
	}
	return b, nil
}
