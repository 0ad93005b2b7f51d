package main

import (
	"bufio"
	"errors"
	"os"
	"path/filepath"

	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/coreml/tensor"
)

// writeLogits writes rows as a float32 .npy file of shape [steps, vocab].
// The file gets its name when it is complete.
func writeLogits(name string, rows [][]float32) error {
	width := 0
	if len(rows) > 0 {
		width = len(rows[0])
	}
	flat := make([]float32, 0, len(rows)*width)
	for _, r := range rows {
		flat = append(flat, r...)
	}
	tn, err := tensor.FromFloat32(tensor.FP32, []int{len(rows), width}, flat)
	if err != nil {
		return err
	}
	return replaceFile(name, func(f *os.File) error {
		w := bufio.NewWriter(f)
		if err := tensor.WriteNPY(w, tn); err != nil {
			return err
		}
		return w.Flush()
	})
}

// replaceFile writes a file beside name and renames it when write succeeds.
func replaceFile(name string, write func(*os.File) error) error {
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".part-*")
	if err != nil {
		return diag.Errorf(diag.In(name), diag.IO, "%w", err)
	}
	err = write(f)
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Chmod(f.Name(), 0o644) //nolint:gosec // a result, as readable as any new file
	}
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return diag.Errorf(diag.In(name), diag.IO, "%w", errors.Join(err, os.Remove(f.Name())))
	}
	return nil
}
