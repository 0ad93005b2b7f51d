//go:build unix

package main

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// A named pipe in a package must not be waited for.
func TestNamedPipeInPackage(t *testing.T) {
	dir := extractedDemo(t)
	for _, name := range []string{"meta.yaml", "tokenizer.json", "qwen_embeddings.mlmodelc/model.mil"} {
		file := filepath.Join(dir, name)
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mkfifo(file, 0o600); err != nil {
			t.Skip(err)
		}
	}
	for _, command := range []string{"inspect", "validate", "run"} {
		done := make(chan int, 1)
		go func() {
			status, _, _ := execute(t.Context(), "", command, dir)
			done <- status
		}()
		select {
		case status := <-done:
			if command == "validate" && status != 1 {
				t.Errorf("%s: status %d, want 1", command, status)
			}
		case <-time.After(30 * time.Second):
			t.Fatalf("%s waits for a named pipe", command)
		}
	}
}
