package cpu

import (
	"fmt"
	"slices"

	"github.com/anepkg/anepkg/coreml/tensor"
)

// Operand order of write_state, which the analysis of in-place updates uses.
const (
	writeStateTarget = 0
	writeStateData   = 1
)

var stateOps = []opDef{
	{name: "read_state", since: 18, types: "every type a state can have", impure: true, exact: true, build: buildReadState,
		doc: "the contents of a state at this point of the program"},
	{name: "write_state", since: 18, types: "every type a state can have", impure: true, exact: true, build: buildWriteState,
		doc: "store data in a state; later read_state ops, of later calls too, see it"},
	{name: "coreml_update_state", since: 18, types: "every type a state can have", impure: true, exact: true, build: buildUpdateState,
		doc: "store value in a state and give it back (the form before serialisation)"},
}

// stateParam returns the name of the state that an operand refers to.
func (b *builder) stateParam(name string) string {
	bs := b.bindings(name)
	if len(bs) != 1 || bs[0].Ref == "" {
		b.failf("argument %q: want the name of one state", name)
		return ""
	}
	id, ok := b.lo.ids[bs[0].Ref]
	if !ok {
		b.failf("%s = %q is not defined before this line", name, bs[0].Ref)
		return ""
	}
	if !b.lo.types[id].IsState() {
		b.failf("%s = %q is %s, want a state", name, bs[0].Ref, b.lo.types[id])
		return ""
	}
	b.n.ins = append(b.n.ins, id)
	return bs[0].Ref
}

func (c *call) cell(name string) (*stateCell, error) {
	if c.s.state == nil {
		return nil, fmt.Errorf("no state object was given for %q", name)
	}
	return c.s.state.cell(name)
}

func buildReadState(b *builder) kernel {
	name := b.stateParam("input")
	b.results(1)
	return func(c *call) error {
		cell, err := c.cell(name)
		if err != nil {
			return err
		}
		c.alias(0, cell.v, 0, cell.v.shape)
		return nil
	}
}

func buildWriteState(b *builder) kernel {
	name := b.stateParam("input")
	data := b.input("data")
	b.results(0)
	return func(c *call) error { return c.store(name, data) }
}

func buildUpdateState(b *builder) kernel {
	name := b.stateParam("state")
	data := b.input("value")
	b.results(1)
	return func(c *call) error {
		if err := c.store(name, data); err != nil {
			return err
		}
		c.alias(0, c.in[data], 0, c.in[data].shape)
		return nil
	}
}

// store puts an operand into a state: nothing is copied when it was updated
// in place, or when the operand's memory can become the state's.
func (c *call) store(name string, s slot) error {
	cell, err := c.cell(name)
	if err != nil {
		return err
	}
	v := c.in[s]
	if v.dtype != cell.typ.DType || !slices.Equal(v.shape, cell.typ.Shape) {
		return fmt.Errorf("data is %s %s, state %q wants %s", v.dtype, tensor.ShapeString(v.shape), name, cell.typ)
	}
	if v.buf != nil && v.buf == cell.v.buf {
		return nil
	}
	own := v.buf != nil && v.buf.refs == 1 && c.n.last[s]
	if own && len(v.h) > 0 && &v.h[0] == &v.buf.h[0] {
		v.buf.retain() // the session lets go of its own reference
		cell.take(c.s, v.buf)
		return nil
	}
	if cell.v.buf.refs > 1 { // an older read of this state is still in use
		cell.take(c.s, cell.newBuffer(&c.s.arena))
	}
	dst := cell.v
	switch {
	case dst.h != nil && v.h != nil:
		copy(dst.h, v.h)
	case dst.h != nil:
		narrowHalf(dst.h, c.wide(v))
	case dst.f != nil:
		copy(dst.f, c.wide(v))
	default:
		copy(dst.i, v.whole())
	}
	return nil
}
