package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/coreml/tensor"
	"github.com/anepkg/anepkg/inspect"
	"github.com/anepkg/anepkg/manifest"
)

const predictText = `  Runs one function of one model once. Every --input names an input and gives
  its values: a .npy file, a .json file, or JSON in place, such as x=[[1,2]].
  Values are converted to the input's type; a flat list takes its shape when the
  number of values fits. States begin as zeros, or as the .npy files of
  --state-in, named after the states.`

type predictJSON struct {
	Part     string       `json:"part"`
	Function string       `json:"function"`
	Backend  string       `json:"backend"`
	Outputs  []outputJSON `json:"outputs"`
}

// outputJSON is one output; its values stand in a file or in the object, flat
// in row-major order.
type outputJSON struct {
	Name   string `json:"name"`
	DType  string `json:"dtype"`
	Shape  []int  `json:"shape"`
	Path   string `json:"path,omitempty"`
	Values any    `json:"values,omitempty"`
}

func (t *tool) predictCommand() *cli.Command {
	return &cli.Command{
		Name:        "predict",
		Usage:       "run one function of a model on given inputs",
		ArgsUsage:   targetUsage,
		Description: predictText,
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "part", Usage: "which `PART` of a package: a path, a role, or the number of a chunk"},
			&cli.StringFlag{Name: "function", Usage: "the function's `NAME`; the default one without"},
			&cli.StringSliceFlag{Name: "input", Usage: "`NAME=VALUES` of an input; once for each"},
			&cli.StringFlag{Name: "state-in", Usage: "read the states from `DIR`"},
			&cli.StringFlag{Name: "state-out", Usage: "write the states to `DIR` afterwards"},
			&cli.StringFlag{Name: "output-dir", Usage: "write the outputs to `DIR` as .npy files"},
		}, engineFlags()...),
		Action: func(c *cli.Context) error {
			backend, opts, err := t.engine(c)
			if err != nil {
				return err
			}
			load := coreml.LoadOptions{ComputeUnits: opts.ComputeUnits, Precision: opts.Precision, Threads: opts.Threads, Logger: opts.Logger}
			return t.withPackage(c, func(ctx context.Context, pkg *manifest.Package) error {
				part, m, err := openPart(ctx, pkg, c.String("part"))
				if err != nil {
					return err
				}
				if m.Function(c.String("function")) == nil {
					_, err := onlyFunction(m, c.String("function"))
					return err
				}
				s, err := backend.Load(ctx, m, c.String("function"), load)
				if err != nil {
					return err
				}
				defer s.Close() //nolint:errcheck // only read from
				return t.predict(ctx, c, partLabel(part), backend, s)
			})
		},
	}
}

// predict feeds the inputs and states of the flags and prints the outputs.
func (t *tool) predict(ctx context.Context, c *cli.Context, part string, backend coreml.Backend, s coreml.Session) error {
	fn := s.Function()
	inputs, err := readInputs(fn, c.StringSlice("input"))
	if err != nil {
		return err
	}
	state, err := readStates(backend, fn, c.String("state-in"))
	if err != nil {
		return err
	}
	outputs, err := s.Predict(ctx, inputs, state)
	if err != nil {
		return err
	}
	if dir := c.String("state-out"); c.IsSet("state-out") {
		if err := writeStates(dir, state); err != nil {
			return err
		}
	}
	out := predictJSON{Part: part, Function: fn.Name, Backend: backend.Name()}
	for _, name := range outputOrder(fn, outputs) {
		tn := outputs[name]
		o := outputJSON{Name: name, DType: tn.DType.Long(), Shape: tn.Shape}
		if dir := c.String("output-dir"); c.IsSet("output-dir") {
			if o.Path, err = writeTensor(dir, name, tn); err != nil {
				return err
			}
		} else {
			o.Values = valuesOf(tn)
		}
		out.Outputs = append(out.Outputs, o)
	}
	if t.global.json {
		t.writeJSON("anepkg.predict/1", out)
		return nil
	}
	t.predictText(out, outputs)
	return nil
}

// outputOrder lists the outputs as the program does.
func outputOrder(fn *coreml.Function, outputs map[string]*tensor.Tensor) []string {
	place := map[string]int{}
	for i, f := range fn.Outputs {
		place[f.Name] = i
	}
	return slices.SortedFunc(maps.Keys(outputs), func(a, b string) int {
		return cmp.Or(place[a]-place[b], strings.Compare(a, b))
	})
}

// predictText prints a table of outputs with their range and first values.
func (t *tool) predictText(out predictJSON, outputs map[string]*tensor.Tensor) {
	const shown = 6
	st := t.style(t.stdoutTTY)
	tb := table{}
	tb.head(st, "output", "type", "shape", "values")
	for _, o := range out.Outputs {
		tn := outputs[o.Name]
		text := o.Path
		if text == "" {
			var parts []string
			for i := range min(shown, tn.Len()) {
				parts = append(parts, fmt.Sprintf("%.6g", tn.Float64(i)))
			}
			if tn.Len() > shown {
				parts = append(parts, fmt.Sprintf("... (%s)", thousands(int64(tn.Len()))))
			}
			text = strings.Join(parts, " ")
		} else {
			text += " (" + inspect.Bytes(int64(len(tn.Data))) + ")"
		}
		tb.row(o.Name, o.DType, tensor.ShapeString(o.Shape), text)
	}
	tb.write(t.stdout)
}

// stateFile is where a state lies in a folder.
func stateFile(dir, name string) string { return filepath.Join(dir, fileName(name)+".npy") }

// fileName makes a name of a program safe as a file name.
func fileName(name string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(`/\:*?"<>|`, r) || r < ' ' {
			return '_'
		}
		return r
	}, name)
}

// readStates makes the function's states, nil when it has none; dir "" leaves
// them zero.
func readStates(backend coreml.Backend, fn *coreml.Function, dir string) (coreml.State, error) {
	if len(fn.States) == 0 {
		if dir != "" {
			return nil, usagef("--state-in: function %s has no states", fn.Name)
		}
		return nil, nil
	}
	state, err := backend.NewState(fn.States)
	if err != nil || dir == "" {
		return state, err
	}
	for _, f := range fn.States {
		tn, err := readNPY(stateFile(dir, f.Name))
		if err != nil {
			return nil, err
		}
		if tn, err = fit(&f, tn); err != nil {
			return nil, diag.Errorf(diag.In(stateFile(dir, f.Name)), diag.Usage, "state %s: %w", f.Name, err)
		}
		if err := state.Write(f.Name, tn); err != nil {
			return nil, err
		}
	}
	return state, nil
}

func writeStates(dir string, state coreml.State) error {
	if state == nil {
		return usagef("--state-out: the function has no states")
	}
	for _, name := range state.Names() {
		tn, err := state.Read(name)
		if err != nil {
			return err
		}
		if _, err := writeTensor(dir, name, tn); err != nil {
			return err
		}
	}
	return nil
}

// writeTensor writes dir/name.npy and returns its path.
func writeTensor(dir, name string, tn *tensor.Tensor) (string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // results, as readable as any new folder
		return "", diag.Errorf(diag.In(dir), diag.IO, "%w", err)
	}
	path := stateFile(dir, name)
	return path, replaceFile(path, func(f *os.File) error { return tensor.WriteNPY(f, tn) })
}

// valuesOf returns the elements in the form that JSON shows best.
func valuesOf(tn *tensor.Tensor) any {
	n := tn.Len()
	switch {
	case tn.DType == tensor.Bool:
		out := make([]bool, n)
		for i := range out {
			out[i] = tn.Int(i) != 0
		}
		return out
	case tn.DType == tensor.FP64:
		out := make([]float64, n)
		for i := range out {
			out[i] = tn.Float64(i)
		}
		return out
	case tn.DType.IsFloat():
		return tn.Float32s()
	}
	out := make([]int, n)
	for i := range out {
		out[i] = tn.Int(i)
	}
	return out
}
