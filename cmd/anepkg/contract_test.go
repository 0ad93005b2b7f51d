package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anepkg/anepkg/coreml/diag"
)

// execute runs one command line in this process.
func execute(ctx context.Context, stdin string, args ...string) (status int, stdout, stderr string) {
	var out, errs bytes.Buffer
	status = run(ctx, args, strings.NewReader(stdin), &out, &errs, func(string) string { return "" })
	return status, out.String(), errs.String()
}

// extractedDemo writes the demo package into a fresh folder.
func extractedDemo(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "demo")
	if _, err := extract(demoPackage(), dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestStatusOfEveryClass holds the table of docs/cli.md.
func TestStatusOfEveryClass(t *testing.T) {
	want := map[diag.Code]int{
		diag.Mismatch: 1, diag.Usage: 2, diag.NotFound: 3, diag.Malformed: 3, diag.IO: 3, diag.LFSPointer: 3, diag.TooLarge: 3,
		diag.Auth: 4, diag.Unsupported: 5, diag.RunFailed: 6, diag.Context: 6, diag.Interrupted: 130,
	}
	doc, err := os.ReadFile(filepath.Join("..", "..", "docs", "cli.md"))
	if err != nil {
		t.Fatal(err)
	}
	for code, status := range want {
		tl := &tool{stdout: &output{w: &bytes.Buffer{}}, global: globals{json: true}}
		if got := tl.fail(diag.Errorf(diag.Pos{}, code, "x")); got != status {
			t.Errorf("class %s: got status %d, want %d", code, got, status)
		}
		if !bytes.Contains(doc, []byte("`"+string(code)+"`")) {
			t.Errorf("docs/cli.md does not name %s", code)
		}
	}
	if len(want) != len(exitStatus) {
		t.Errorf("the table has %d classes, want %d", len(exitStatus), len(want))
	}
}

func TestErrorObject(t *testing.T) {
	tests := []struct {
		name string
		err  error
		want string
	}{
		{"text place", diag.Errorf(diag.Pos{File: "model.mil", Line: 41, Col: 17}, diag.Malformed, "got ]").WithHint("close it"),
			`{"schema":"anepkg.error/1","error":{"code":"malformed","message":"model.mil:41:17: got ]","hint":"close it","where":{"file":"model.mil","line":41,"column":17,"offset":null}}}`},
		{"binary place", diag.Errorf(diag.AtOffset("weights/weight.bin", 0), diag.Malformed, "bad magic"),
			`{"schema":"anepkg.error/1","error":{"code":"malformed","message":"weights/weight.bin:0x0: bad magic","where":{"file":"weights/weight.bin","line":null,"column":null,"offset":0}}}`},
		{"no class", os.ErrNotExist, `{"schema":"anepkg.error/1","error":{"code":"not_found","message":"file does not exist"}}`},
		{"list", diag.List{diag.Errorf(diag.In("a"), diag.Unsupported, "x"), diag.Errorf(diag.In("b"), diag.IO, "y")},
			`{"schema":"anepkg.error/1","error":{"code":"unsupported","message":"a: x (and 1 more errors)","where":{"file":"a","line":null,"column":null,"offset":null}}}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var b bytes.Buffer
			tl := &tool{stdout: &output{w: &b}, global: globals{json: true}}
			tl.fail(tt.err)
			var got bytes.Buffer
			if err := json.Compact(&got, b.Bytes()); err != nil {
				t.Fatal(err)
			}
			if got.String() != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got.String(), tt.want)
			}
		})
	}
}

func TestInterrupted(t *testing.T) {
	dir := extractedDemo(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, args := range [][]string{{"inspect", dir}, {"validate", dir}, {"run", dir, "-p", "x"}, {"demo"}, {"mil", dir, "--part", "1"}} {
		if status, _, stderr := execute(ctx, "", args...); status != exitInterrupted || stderr != "anepkg: interrupted\n" {
			t.Errorf("%s: got status %d and %q, want %d", args[0], status, stderr, exitInterrupted)
		}
	}
}

// panicking is a stream whose first write hits a bug.
type panicking struct{}

func (panicking) Write([]byte) (int, error) { panic("a bug") }

// TestPanicIsReported shows the last line of defence.
func TestPanicIsReported(t *testing.T) {
	var errs bytes.Buffer
	status := run(t.Context(), []string{"version"}, strings.NewReader(""), panicking{}, &errs, func(string) string { return "" })
	if status != exitRun || !strings.Contains(errs.String(), "anepkg: internal error: a bug\n") || !strings.Contains(errs.String(), "please report") {
		t.Errorf("got status %d and %q", status, errs.String())
	}
}

// TestChat talks to the demo package as a terminal would.
func TestChat(t *testing.T) {
	dir := extractedDemo(t)
	var out, errs bytes.Buffer
	tl := &tool{
		stdin: strings.NewReader("\n/help\nWhat is a KV cache?\n/clear\nWho are you?\n/exit\nnot read\n"), stdout: &output{w: &out}, stderr: &errs,
		getenv: func(string) string { return "" }, stdinTTY: true,
	}
	if status := tl.finish(t.Context(), tl.dispatch(t.Context(), []string{"run", dir})); status != exitOK {
		t.Fatalf("status %d: %s", status, errs.String())
	}
	for _, want := range []string{"/reset          begin a new conversation", "> "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("output lacks %q:\n%s", want, out.String())
		}
	}
	if n := strings.Count(errs.String(), "tokens/s"); n != 2 {
		t.Errorf("got %d summaries, want 2:\n%s", n, errs.String())
	}
	_, answer, _ := execute(t.Context(), "", "run", dir, "-q", "-p", "What is a KV cache?")
	if !strings.Contains(out.String(), answer) {
		t.Errorf("the chat's answer differs from that of run, %q:\n%s", answer, out.String())
	}
}
