package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/coreml/tensor"
	"github.com/anepkg/anepkg/runner"
)

// savedState is state.json in a folder that run --save-state writes. The
// states themselves lie beside it, NAME.npy each; in folders 0, 1, ... when
// the package has several state objects.
type savedState struct {
	Schema  string     `json:"schema"` // "anepkg.state/1"
	IDs     []int      `json:"ids"`    // whose positions the states hold
	Pending []int      `json:"pending"`
	States  [][]string `json:"states"` // names in each state object
}

const savedSchema = "anepkg.state/1"

// objectDir is the folder of state object i of n.
func objectDir(dir string, i, n int) string {
	if n == 1 {
		return dir
	}
	return filepath.Join(dir, strconv.Itoa(i))
}

// mayHoldState refuses a folder of something else.
func mayHoldState(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0 {
		return nil
	}
	if err != nil {
		return usagef("--save-state %s: %v", dir, errors.Unwrap(err)).WithHint("name a new or empty folder")
	}
	if _, err := os.Stat(filepath.Join(dir, "state.json")); err != nil {
		return usagef("--save-state %s: the folder holds other files", dir).WithHint("name a new or empty folder")
	}
	return nil
}

// unfed returns the last tokens of a conversation that were not fed: those
// after the end of fed, which after a shift is no beginning of all.
func unfed(all, fed []int) []int {
	for n := len(all); n >= len(fed); n-- {
		if slices.Equal(all[n-len(fed):n], fed) {
			return all[n:]
		}
	}
	return all[min(len(all), len(fed)):]
}

// saveState writes the conversation, of which all are the tokens, to a folder.
func saveState(dir string, r *runner.Runner, all []int) error {
	cp, err := r.Checkpoint()
	if err != nil {
		return err
	}
	snaps := cp.Snapshots()
	pending := unfed(all, cp.IDs())
	saved := savedState{Schema: savedSchema, IDs: cp.IDs(), Pending: pending, States: make([][]string, len(snaps))}
	for i, snap := range snaps {
		saved.States[i] = slices.Sorted(maps.Keys(snap))
		for name, v := range snap {
			if _, err := writeTensor(objectDir(dir, i, len(snaps)), name, v); err != nil {
				return err
			}
		}
	}
	data, err := json.Marshal(saved)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // results, as readable as any new folder
		return err
	}
	return replaceFile(filepath.Join(dir, "state.json"), func(f *os.File) error {
		_, err := f.Write(append(data, '\n'))
		return err
	})
}

// loadState brings a saved conversation back and returns the ids that a
// prompt continues.
func loadState(dir string, r *runner.Runner) ([]int, error) {
	data, err := readFileBounded(filepath.Join(dir, "state.json"))
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, usagef("--load-state %s: there is no state.json", dir).WithHint("name a folder that --save-state wrote")
		}
		return nil, err
	}
	var saved savedState
	if err := json.Unmarshal([]byte(data), &saved); err != nil || saved.Schema != savedSchema {
		return nil, usagef("--load-state %s: state.json is not %s", dir, savedSchema).WithHint(stateHint)
	}
	if saved.IDs == nil {
		return nil, usagef("--load-state %s: state.json has no ids, the tokens that the states hold", dir).WithHint(stateHint)
	}
	snaps := make([]coreml.Snapshot, len(saved.States))
	for i, names := range saved.States {
		snaps[i] = coreml.Snapshot{}
		for _, name := range names {
			v, err := readNPY(stateFile(objectDir(dir, i, len(snaps)), name))
			if err != nil {
				return nil, hinted(err, stateHint)
			}
			if len(saved.IDs) == 0 && !allZero(v) {
				return nil, usagef("--load-state %s: state.json names no tokens, and state %q is not empty", dir, name).WithHint(stateHint)
			}
			snaps[i][name] = v
		}
	}
	if err := r.Rollback(runner.NewCheckpoint(snaps, saved.IDs)); err != nil {
		return nil, hinted(err, stateHint)
	}
	return append(saved.IDs, saved.Pending...), nil
}

// stateHint is for states that cannot be loaded.
const stateHint = "name a folder that --save-state wrote with the same package"

// hinted gives an error that has none a hint.
func hinted(err error, hint string) error {
	var e *diag.Error
	if errors.As(err, &e) && e.Hint == "" {
		e.Hint = hint
	}
	return err
}

func allZero(t *tensor.Tensor) bool {
	return !slices.ContainsFunc(t.Data, func(b byte) bool { return b != 0 })
}

// stateValues is what states --values tells of one state.
type stateValues struct {
	Min       float64 `json:"min"`
	Max       float64 `json:"max"`
	Mean      float64 `json:"mean"`
	Nonzero   int     `json:"nonzero"`
	NaN       int     `json:"nan"`
	Positions int     `json:"positions"` // fed before it was read
}

// measure looks at every element.
func measure(v *tensor.Tensor, positions int) stateValues {
	s := stateValues{Positions: positions}
	n := v.Len()
	sum := 0.0
	for i := range n {
		x := v.Float64(i)
		if x != x {
			s.NaN++
			continue
		}
		if x != 0 {
			s.Nonzero++
		}
		if i == s.NaN {
			s.Min, s.Max = x, x
		}
		s.Min, s.Max = min(s.Min, x), max(s.Max, x)
		sum += x
	}
	if n > s.NaN {
		s.Mean = sum / float64(n-s.NaN)
	}
	return s
}

func (s stateValues) String() string {
	text := fmt.Sprintf("%.4g to %.4g, mean %.4g, %s not 0", s.Min, s.Max, s.Mean, thousands(int64(s.Nonzero)))
	if s.NaN > 0 {
		text += fmt.Sprintf(", %s NaN", thousands(int64(s.NaN)))
	}
	return strings.ReplaceAll(text, "-0 ", "0 ")
}
