package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/anepkg/anepkg/coreml/diag"
)

// The exit statuses; docs/cli.md explains them.
const (
	exitOK          = 0
	exitFindings    = 1
	exitUsage       = 2
	exitIO          = 3
	exitAuth        = 4
	exitUnsupported = 5
	exitRun         = 6
	exitInterrupted = 130
)

// exitStatus gives the status of each error class.
var exitStatus = map[diag.Code]int{
	diag.Usage:       exitUsage,
	diag.NotFound:    exitIO,
	diag.Malformed:   exitIO,
	diag.IO:          exitIO,
	diag.LFSPointer:  exitIO,
	diag.TooLarge:    exitIO,
	diag.Auth:        exitAuth,
	diag.Unsupported: exitUnsupported,
	diag.RunFailed:   exitRun,
	diag.Context:     exitRun,
	diag.Mismatch:    exitFindings,
	diag.Interrupted: exitInterrupted,
}

// errFindings ends a command whose output already says what is wrong.
var errFindings = errors.New("findings were reported")

// usagef makes an error of class usage.
func usagef(format string, args ...any) *diag.Error {
	return diag.Errorf(diag.Pos{}, diag.Usage, format, args...)
}

// badValue is how the flag parser reports a value of the wrong type.
var badValue = regexp.MustCompile(`(?s)^invalid (?:boolean )?value (".*") for (?:flag )?-+([^\s:]+)`)

// usageError turns what the flag parser reports into an error of class usage.
func usageError(c *cli.Context, err error, _ bool) error {
	m := badValue.FindStringSubmatch(err.Error())
	if m == nil {
		return usagef("%s", strings.TrimSuffix(err.Error(), ": parse error"))
	}
	want, name := "another value", "--"+m[2]
	if len(m[2]) == 1 {
		name = "-" + m[2]
	}
	for _, f := range append(slices.Clone(c.App.Flags), c.Command.Flags...) {
		if !slices.Contains(f.Names(), m[2]) {
			continue
		}
		switch f.(type) {
		case *cli.Uint64Flag:
			want = "a whole number from 0 to 18446744073709551615"
		case *cli.IntFlag, *cli.Int64Flag:
			want = "a whole number"
			if strings.Contains(err.Error(), "out of range") {
				want = "a smaller number"
			}
		case *cli.Float64Flag:
			want = "a number"
		case *cli.BoolFlag:
			want = "true or false"
		case *cli.DurationFlag:
			want = "a time such as 30s or 5m"
		}
	}
	return usagef("%s is %s, want %s", name, m[1], want)
}

// finish reports err, looks after the output stream, and returns the status.
func (t *tool) finish(ctx context.Context, err error) int {
	if werr := t.stdout.err; werr != nil {
		if errors.Is(werr, syscall.EPIPE) {
			return exitOK // the reader had enough
		}
		t.global.json = false // stdout is what failed
		return t.fail(diag.Errorf(diag.Pos{}, diag.IO, "standard output: %w", werr))
	}
	if err == nil {
		return exitOK
	}
	if errors.Is(err, errFindings) {
		return exitFindings
	}
	if errors.Is(err, errLines) {
		return exitRun
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		err = diag.Errorf(diag.Pos{}, diag.Interrupted, "interrupted")
	}
	return t.fail(err)
}

// jsonFailure is the error object of --json.
type jsonFailure struct {
	Error jsonError `json:"error"`
}

type jsonError struct {
	Code    diag.Code  `json:"code"`
	Message string     `json:"message"`
	Hint    string     `json:"hint,omitempty"`
	Where   *jsonWhere `json:"where,omitempty"`
}

// jsonWhere is a place in a file; what is not known is null.
type jsonWhere struct {
	File   string `json:"file"`
	Line   *int   `json:"line"`
	Column *int   `json:"column"`
	Offset *int64 `json:"offset"`
}

func whereOf(p diag.Pos) *jsonWhere {
	if p.IsZero() {
		return nil
	}
	w := &jsonWhere{File: p.File}
	switch {
	case p.Binary:
		w.Offset = &p.Offset
	case p.Line > 0 && p.Col > 0:
		w.Line, w.Column = &p.Line, &p.Col
	case p.Line > 0:
		w.Line = &p.Line
	}
	return w
}

// fail prints err, in the form that the caller asked for, and returns its
// exit status.
func (t *tool) fail(err error) int {
	code, pos, hint := classify(err)
	if t.global.json {
		t.writeJSON("anepkg.error/1", jsonFailure{jsonError{code, err.Error(), hint, whereOf(pos)}})
		return exitStatus[code]
	}
	st := t.style(t.stderrTTY)
	shown := func(v any) string { // text of a file cannot steer the terminal
		if t.stderrTTY {
			return visible(fmt.Sprint(v))
		}
		return fmt.Sprint(v)
	}
	fmt.Fprintf(t.stderr, "%s %s\n", st.red("anepkg:"), shown(err))
	var list diag.List
	if errors.As(err, &list) && len(list) > 1 {
		for _, e := range list[1:min(len(list), 10)] {
			fmt.Fprintf(t.stderr, "  %s\n", shown(e))
		}
	}
	if hint != "" {
		fmt.Fprintf(t.stderr, "%s %s\n", st.cyan("hint:"), shown(hint))
	}
	return exitStatus[code]
}

// classify finds class, place and hint of any error.
func classify(err error) (code diag.Code, pos diag.Pos, hint string) {
	var e *diag.Error
	if errors.As(err, &e) {
		pos, hint = e.Pos, e.Hint
	}
	code = diag.CodeOf(err)
	if _, known := exitStatus[code]; known {
		return code, pos, hint
	}
	switch {
	case errors.Is(err, context.Canceled):
		code = diag.Interrupted
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, diag.ErrNotFound):
		code = diag.NotFound
	case errors.Is(err, diag.ErrUnsupported):
		code = diag.Unsupported
	case errors.Is(err, diag.ErrMalformed):
		code = diag.Malformed
	case errors.Is(err, diag.ErrRunFailed):
		code = diag.RunFailed
	default:
		code = diag.IO
	}
	return code, pos, hint
}
