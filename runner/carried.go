package runner

import (
	"slices"
	"strings"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/coreml/tensor"
)

// maxCarried bounds the bytes of one tensor that a program may ask to carry.
const maxCarried = 4 << 30

// carry is an output that is the input of the same chunk's next call.
type carry struct{ in, out string }

// carries finds the pairs of a function: K_full_in and K_full_out (key-value
// caches as inputs and outputs), conv_state_0 and new_conv_state_0 (recurrent
// states). A pair whose types differ is an error of class diag.Mismatch.
func carries(u *unit) ([]carry, error) {
	var out []carry
	for _, in := range u.fn.Inputs {
		name := "new_" + in.Name
		if stem, ok := strings.CutSuffix(in.Name, "_in"); ok && u.fn.Output(name) == nil {
			name = stem + "_out"
		}
		o := u.fn.Output(name)
		if o == nil {
			continue
		}
		if o.DType != in.DType || !tensor.Known(in.Shape) || !slices.Equal(o.Shape, in.Shape) {
			return nil, diag.Errorf(u.pos(), diag.Mismatch, "function %s: output %s is %s %s, the input %s that it becomes %s %s", u.fn.Name,
				o.Name, o.DType, tensor.ShapeString(o.Shape), in.Name, in.DType, tensor.ShapeString(in.Shape))
		}
		if n := in.DType.ByteSize(int64(tensor.Count(in.Shape))); n <= 0 || n > maxCarried {
			return nil, diag.Errorf(u.pos(), diag.TooLarge, "input %s has %d bytes, the limit is %d", in.Name, n, int64(maxCarried))
		}
		out = append(out, carry{in.Name, name})
	}
	return out, nil
}

// carried holds the tensors that a chunk's outputs hand to its next call. It
// is a coreml.State, so that snapshots, resets and readers treat caches that
// are inputs and outputs like states.
type carried struct {
	zero map[string]coreml.Feature
	now  map[string]*tensor.Tensor
}

func newCarried(u *unit, pairs []carry) *carried {
	c := &carried{zero: map[string]coreml.Feature{}, now: map[string]*tensor.Tensor{}}
	for _, p := range pairs {
		c.zero[p.in] = *u.fn.Input(p.in)
	}
	_ = c.Reset()
	return c
}

// Names returns the names of the inputs, sorted.
func (c *carried) Names() []string {
	out := make([]string, 0, len(c.zero))
	for name := range c.zero {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// Read copies a tensor out.
func (c *carried) Read(name string) (*tensor.Tensor, error) {
	t := c.now[name]
	if t == nil {
		return nil, diag.Errorf(diag.Pos{}, diag.NotFound, "no carried tensor %q; there are %v", name, c.Names())
	}
	return &tensor.Tensor{DType: t.DType, Shape: slices.Clone(t.Shape), Data: slices.Clone(t.Data)}, nil
}

// Write replaces a tensor; element type and shape must match.
func (c *carried) Write(name string, t *tensor.Tensor) error {
	f, ok := c.zero[name]
	if !ok {
		return diag.Errorf(diag.Pos{}, diag.NotFound, "no carried tensor %q; there are %v", name, c.Names())
	}
	if t.DType != f.DType || !slices.Equal(t.Shape, f.Shape) {
		return diag.Errorf(diag.Pos{}, diag.Usage, "%q is %s %s, got %s %s", name, f.DType, tensor.ShapeString(f.Shape), t.DType, tensor.ShapeString(t.Shape))
	}
	if err := t.Check(); err != nil {
		return diag.Errorf(diag.Pos{}, diag.Usage, "%q: %w", name, err)
	}
	c.now[name] = &tensor.Tensor{DType: t.DType, Shape: slices.Clone(t.Shape), Data: slices.Clone(t.Data)}
	return nil
}

// Snapshot copies every tensor: later calls overwrite them.
func (c *carried) Snapshot() (coreml.Snapshot, error) {
	snap := make(coreml.Snapshot, len(c.now))
	for name := range c.now {
		t, err := c.Read(name)
		if err != nil {
			return nil, err
		}
		snap[name] = t
	}
	return snap, nil
}

// Restore brings a snapshot back.
func (c *carried) Restore(snap coreml.Snapshot) error {
	for name := range c.zero {
		if snap[name] == nil {
			return diag.Errorf(diag.Pos{}, diag.Usage, "the snapshot has no %q", name)
		}
		if err := c.Write(name, snap[name]); err != nil {
			return err
		}
	}
	return nil
}

// Reset sets every tensor to zero.
func (c *carried) Reset() error {
	for name, f := range c.zero {
		c.now[name] = tensor.New(f.DType, f.Shape...)
	}
	return nil
}

// Close has nothing to release.
func (c *carried) Close() error { return nil }
