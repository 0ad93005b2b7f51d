package main

import (
	"bufio"
	"errors"
	"io/fs"
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

// writeHint is for results that cannot be written.
const writeHint = "see that the folder exists, may be written to and has room"

// replaceFile writes a file beside name and renames it when write succeeds.
// Behind a symbolic link the file that it names is replaced; a device or a
// pipe is written into.
func replaceFile(name string, write func(*os.File) error) error {
	if name == "-" {
		return usagef("- is no file to write").WithHint("give a file name, or ./- for a file of that name")
	}
	if info, err := os.Stat(name); err == nil {
		switch {
		case info.IsDir():
			return usagef("%s is a folder, want a file to write", name)
		case !info.Mode().IsRegular():
			return writeInto(name, write)
		}
		if name, err = filepath.EvalSymlinks(name); err != nil {
			return diag.Errorf(diag.Pos{}, diag.IO, "%w", err)
		}
	}
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".part-*")
	if err != nil {
		return diag.Errorf(diag.In(name), diag.IO, "%w", cause(err)).WithHint(writeHint)
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
		return diag.Errorf(diag.In(name), diag.IO, "%w", errors.Join(cause(err), os.Remove(f.Name()))).WithHint(writeHint)
	}
	return nil
}

// writeInto writes into an existing device or pipe.
func writeInto(name string, write func(*os.File) error) error {
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return diag.Errorf(diag.Pos{}, diag.IO, "%w", err)
	}
	if err := errors.Join(write(f), f.Close()); err != nil {
		return diag.Errorf(diag.In(name), diag.IO, "%w", cause(err))
	}
	return nil
}

// cause leaves out the name of a temporary file from an error of package os.
func cause(err error) error {
	if pe := (*fs.PathError)(nil); errors.As(err, &pe) {
		return pe.Err
	}
	return err
}
