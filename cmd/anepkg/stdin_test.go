package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"
	"time"
)

// An interrupt must end a command that waits for standard input.
func TestInterruptWhileReadingStdin(t *testing.T) {
	dir := extractedDemo(t)
	for _, args := range [][]string{{"run", dir}, {"tokenize", dir}} {
		ctx, cancel := context.WithCancel(t.Context())
		r, w := io.Pipe()
		time.AfterFunc(100*time.Millisecond, cancel)
		var stdout, stderr bytes.Buffer
		status := run(ctx, args, r, &stdout, &stderr, func(string) string { return "" })
		if status != 130 {
			t.Errorf("%v: status %d, want 130: %s", args, status, stderr.String())
		}
		_ = errors.Join(w.Close(), r.Close())
		cancel()
	}
}

func TestCtxReader(t *testing.T) {
	want := bytes.Repeat([]byte("0123456789"), 20000)
	got, err := io.ReadAll(&ctxReader{ctx: t.Context(), r: bytes.NewReader(want)})
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("read %d bytes, %v; want %d", len(got), err, len(want))
	}
}
