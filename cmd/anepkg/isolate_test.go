//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// childTrouble is the environment variable that tells a child of these tests
// when and how to end: "KILL 3" before its third load, "EXIT 1", or "START 0".
const childTrouble = "ANEPKG_TEST_CHILD"

// TestChildProcess is the second process of the tests below, not a test.
func TestChildProcess(*testing.T) {
	how := os.Getenv(childTrouble)
	if how == "" {
		return
	}
	args := os.Args[slices.Index(os.Args, "--")+1:]
	out := &dyingWriter{}
	out.how, out.left = "", 0
	if kind, n, ok := strings.Cut(how, " "); ok {
		out.how = kind
		out.left, _ = strconv.Atoi(n)
	}
	if out.how == "START" {
		os.Exit(3)
	}
	os.Exit(run(context.Background(), args, strings.NewReader(""), out, os.Stderr, os.Getenv))
}

// dyingWriter ends its process when it has seen so many loads begin.
type dyingWriter struct {
	how  string
	left int
}

func (w *dyingWriter) Write(p []byte) (int, error) {
	n, err := os.Stdout.Write(p)
	if bytes.Contains(p, []byte(`{"begin"`)) {
		if w.left--; w.left == 0 {
			_, _ = os.Stderr.WriteString("E5RT: ANECCompile() FAILED\nlast words\n")
			if w.how == "KILL" {
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			}
			os.Exit(7)
		}
	}
	return n, err
}

// isolatedRun runs a command line whose children have the given trouble.
func isolatedRun(t *testing.T, trouble string, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	tl := &tool{stdin: strings.NewReader(""), stdout: &output{w: &out}, stderr: &errs, getenv: func(string) string { return "" }}
	tl.global.json = wantsJSON(args)
	tl.child = func(ctx context.Context, args []string) *exec.Cmd {
		cmd := exec.CommandContext(ctx, os.Args[0], append([]string{"-test.run=^TestChildProcess$", "--"}, args...)...)
		cmd.Env = append(os.Environ(), childTrouble+"="+trouble)
		return cmd
	}
	return tl.finish(t.Context(), tl.dispatch(t.Context(), args)), out.String(), errs.String()
}

type loadsOutput struct {
	Summary  struct{ Error int }
	Findings []struct{ ID, Severity, Message, Hint string }
	Loads    []loadResult
}

func TestValidateLoadReportsADeadChild(t *testing.T) {
	dir := extractedDemo(t)
	for _, tc := range []struct {
		name, trouble, killed string
		status                int
	}{
		{"sound", "NONE 0", "", exitOK},
		{"killed", "KILL 3", "signal: killed", exitFindings},
		{"exit", "EXIT 3", "exit status 7", exitFindings},
	} {
		t.Run(tc.name, func(t *testing.T) {
			status, out, errs := isolatedRun(t, tc.trouble, "validate", "--load", "--json", "--backend", "cpu", dir)
			if status != tc.status {
				t.Fatalf("status %d, want %d\n%s%s", status, tc.status, out, errs)
			}
			var r loadsOutput
			if err := json.Unmarshal([]byte(out), &r); err != nil {
				t.Fatal(err)
			}
			if len(r.Loads) != 6 {
				t.Fatalf("%d loads, want all 6: a new child goes on behind the dead one", len(r.Loads))
			}
			dead := 0
			for i, l := range r.Loads {
				// Every child of this test dies at its third load.
				want := tc.killed != "" && i%3 == 2
				if want {
					dead++
				}
				if l.OK == want || want && (l.Killed != tc.killed || !strings.Contains(l.Error.Message, "ANECCompile") || !strings.Contains(l.Error.Hint, "cpuAndGPU")) {
					t.Errorf("load %d: %+v %+v", i, l, l.Error)
				}
			}
			found := 0
			for _, f := range r.Findings {
				if f.ID == loadCheck && f.Severity == "error" {
					found++
				}
			}
			if found != dead || r.Summary.Error != dead {
				t.Errorf("%d findings and %d errors for %d dead loads", found, r.Summary.Error, dead)
			}
		})
	}
}

func TestIsolate(t *testing.T) {
	dir := extractedDemo(t)
	status, out, errs := isolatedRun(t, "NONE 0", "run", "--isolate", "--backend", "cpu", "-p", "What is a KV cache?", "-n", "4", dir)
	if status != exitOK || !strings.Contains(out, "KV cache") {
		t.Errorf("a sound package: status %d\n%s%s", status, out, errs)
	}
	status, _, errs = isolatedRun(t, "KILL 2", "run", "--isolate", "--backend", "cpu", "-p", "x", dir)
	if status != exitRun || !strings.Contains(errs, "signal: killed") || !strings.Contains(errs, "chunk_01of02") {
		t.Errorf("a killed child: status %d\n%s", status, errs)
	}
	status, _, errs = isolatedRun(t, "START 0", "run", "--isolate", "-p", "x", dir)
	if status != exitRun || !strings.Contains(errs, "exit status 3") {
		t.Errorf("a child that does not begin: status %d\n%s", status, errs)
	}
	status, _, errs = isolatedRun(t, "NONE 0", "run", "--isolate", "-p", "x", dir+"x")
	if status != exitIO || !strings.Contains(errs, "no such file") {
		t.Errorf("no package: status %d\n%s", status, errs)
	}
}

func TestTailBuffer(t *testing.T) {
	b := &tailBuffer{max: 5}
	for _, s := range []string{"ab", "cdefgh", "i"} {
		if n, err := b.Write([]byte(s)); n != len(s) || err != nil {
			t.Fatal(n, err)
		}
	}
	if b.String() != "efghi" {
		t.Errorf("got %q", b.String())
	}
	for in, want := range map[string]string{"": "", "a\nb\n": "; it said: b", "x ANECCompile() FAILED\nb": "; it said: x ANECCompile() FAILED"} {
		if got := lastLine(in); got != want {
			t.Errorf("%q: got %q", in, got)
		}
	}
}
