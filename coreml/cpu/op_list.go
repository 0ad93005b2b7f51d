package cpu

import (
	"errors"
	"fmt"
	"slices"

	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/coreml/tensor"
)

var listOps = []opDef{
	{name: "make_list", since: 15, types: "elements fp16 fp32 int32 bool", exact: true, build: buildMakeList,
		doc: "a list of init_length arrays of elem_shape, all zero, that grows on writing past its end when dynamic_length holds"},
	{name: "list_length", since: 15, types: "int32", exact: true, build: buildListLength,
		doc: "how many elements the list has"},
	{name: "list_read", since: 15, types: "that of the elements", exact: true, build: buildListRead,
		doc: "the element at index"},
	{name: "list_write", since: 15, types: "that of the elements", exact: true, build: buildListWrite,
		doc: "the list with value at index"},
	{name: "list_gather", since: 15, types: "that of the elements", exact: true, build: buildListGather,
		doc: "the elements at indices stacked along a new first dimension"},
	{name: "list_scatter", since: 15, types: "that of the elements", exact: true, build: buildListScatter,
		doc: "the list with value[i] at indices[i]"},
}

// listValue is a list of arrays of one type. Its elements are never changed:
// a write makes a new list that shares the others.
type listValue struct {
	elems   []*value // nil where nothing was written
	dtype   tensor.DType
	shape   []int // of an element; nil when the first write tells it
	dynamic bool
}

// maxList bounds the length of a list.
const maxList = 1 << 20

func buildMakeList(b *builder) kernel {
	l := listValue{dynamic: b.boolConst("dynamic_length", true)}
	name := b.strConst("dtype", "fp32")
	var ok bool
	if l.dtype, ok = tensor.ParseDType(name); !ok || l.dtype == tensor.String {
		b.failf("dtype is %q, want fp16, fp32, int32 or bool", name)
	}
	l.shape = b.elemShape()
	length := b.optional("init_length")
	b.results(1)
	return func(c *call) error {
		n := 1
		if length != absent {
			var err error
			if n, err = c.oneInt("init_length", length); err != nil {
				return err
			}
		}
		if n < 0 || n > maxList {
			return diag.Errorf(diag.Pos{}, diag.TooLarge, "init_length is %d, want 0 to %d", n, maxList)
		}
		made := l
		made.elems = make([]*value, n)
		c.out[0] = &value{dtype: l.dtype, list: &made}
		return nil
	}
}

// elemShape reads the shape of a list's elements: a tuple of integers, or of
// names for dimensions that the first write decides; then it returns nil.
func (b *builder) elemShape() []int {
	shape := []int{}
	for _, bd := range b.bindings("elem_shape") {
		v := b.constOf("elem_shape", bd)
		switch {
		case v == nil:
			return nil
		case len(v.s) > 0:
			shape = nil
		case shape != nil && v.i != nil:
			shape = append(shape, toInts(v.i)...)
		case v.i == nil:
			b.failf("elem_shape holds %s, want integers or names", v.dtype)
		}
	}
	for _, d := range shape {
		if d < 0 {
			return nil
		}
	}
	return shape
}

// list returns the list in a slot.
func (c *call) list(s slot) (*listValue, error) {
	if l := c.in[s].list; l != nil {
		return l, nil
	}
	return nil, fmt.Errorf("ls is %s %s, want a list", c.in[s].dtype, tensor.ShapeString(c.in[s].shape))
}

// at returns element i, which is zero when it was never written.
func (l *listValue) at(i int) (*value, error) {
	if i < 0 || i >= len(l.elems) {
		return nil, fmt.Errorf("index %d is outside a list of %d elements", i, len(l.elems))
	}
	if e := l.elems[i]; e != nil {
		return e, nil
	}
	if l.shape == nil {
		return nil, fmt.Errorf("element %d was never written and its shape is not known", i)
	}
	n := bounded(l.shape)
	e := &value{dtype: l.dtype, shape: l.shape}
	if l.dtype.IsFloat() {
		e.f = make([]float32, n)
	} else {
		e.i = make([]int32, n)
	}
	return e, nil
}

// with returns a list that has v at index i. v must not change any more.
func (l *listValue) with(i int, v *value) (*listValue, error) {
	if v.dtype != l.dtype || l.shape != nil && !slices.Equal(v.shape, l.shape) {
		return nil, fmt.Errorf("value is %s %s, the elements of the list are %s %s", v.dtype, tensor.ShapeString(v.shape), l.dtype, tensor.ShapeString(l.shape))
	}
	if i < 0 || i >= len(l.elems) && !l.dynamic {
		return nil, fmt.Errorf("index %d is outside a list of %d elements", i, len(l.elems))
	}
	if i >= maxList {
		return nil, diag.Errorf(diag.Pos{}, diag.TooLarge, "index %d: a list can have %d elements", i, maxList)
	}
	out := *l
	out.elems = make([]*value, max(i+1, len(l.elems)))
	copy(out.elems, l.elems)
	out.elems[i] = v
	if out.shape == nil {
		out.shape = v.shape
	}
	return &out, nil
}

// lasting returns a value that shares v's memory and keeps it from being
// used again while the list is there; it is left to the collector.
func lasting(v *value) *value {
	v.buf.retain()
	keep := *v
	return &keep
}

func buildListLength(b *builder) kernel {
	ls := b.input("ls")
	b.results(1)
	return func(c *call) error {
		l, err := c.list(ls)
		if err != nil {
			return err
		}
		c.newInt(0, []int{})[0] = int32(len(l.elems))
		return nil
	}
}

func buildListRead(b *builder) kernel {
	ls, index := b.input("ls"), b.input("index")
	b.results(1)
	return func(c *call) error {
		l, err := c.list(ls)
		if err != nil {
			return err
		}
		i, err := c.oneInt("index", index)
		if err != nil {
			return err
		}
		e, err := l.at(i)
		if err != nil {
			return err
		}
		c.alias(0, e, 0, e.shape)
		return nil
	}
}

func buildListWrite(b *builder) kernel {
	ls, index, val := b.input("ls"), b.input("index"), b.input("value")
	b.results(1)
	return func(c *call) error {
		l, err := c.list(ls)
		if err != nil {
			return err
		}
		i, err := c.oneInt("index", index)
		if err != nil {
			return err
		}
		out, err := l.with(i, lasting(c.in[val]))
		if err != nil {
			return err
		}
		c.out[0] = &value{dtype: out.dtype, list: out}
		return nil
	}
}

func buildListGather(b *builder) kernel {
	ls, indices := b.input("ls"), b.input("indices")
	b.results(1)
	return func(c *call) error {
		l, err := c.list(ls)
		if err != nil {
			return err
		}
		iv := c.in[indices]
		if err := errors.Join(wantInts("indices", iv), wantRank("indices", iv, 1)); err != nil {
			return err
		}
		if iv.size() == 0 {
			return c.move(&value{dtype: l.dtype, f: []float32{}, i: []int32{}}, append([]int{0}, l.shape...), 1, func(int) int { return -1 })
		}
		j := &joined{}
		for _, i := range iv.whole() {
			e, err := l.at(int(i))
			if err != nil {
				return err
			}
			row := *e
			row.shape = append([]int{1}, e.shape...)
			j.vals = append(j.vals, &row)
		}
		j.shape = slices.Clone(j.vals[0].shape)
		j.shape[0] = len(j.vals)
		bounded(j.shape)
		return c.join(j, false)
	}
}

func buildListScatter(b *builder) kernel {
	ls, indices, val := b.input("ls"), b.input("indices"), b.input("value")
	b.results(1)
	return func(c *call) error {
		l, err := c.list(ls)
		if err != nil {
			return err
		}
		iv, v := c.in[indices], lasting(c.in[val])
		if err := errors.Join(wantInts("indices", iv), wantRank("indices", iv, 1)); err != nil {
			return err
		}
		if v.rank() == 0 || v.shape[0] != iv.size() {
			return fmt.Errorf("value has shape %s for %d indices", tensor.ShapeString(v.shape), iv.size())
		}
		out := l
		n := product(v.shape[1:])
		for k, i := range iv.whole() {
			if out, err = out.with(int(i), part(c, v, k*n, v.shape[1:])); err != nil {
				return err
			}
		}
		c.out[0] = &value{dtype: out.dtype, list: out}
		return nil
	}
}

// part returns the elements of v from off on in another shape.
func part(c *call, v *value, off int, shape []int) *value {
	n := product(shape)
	o := &value{dtype: v.dtype, shape: shape, buf: v.buf}
	switch {
	case v.h != nil:
		o.h = v.h[off : off+n : off+n]
	case v.isFloat():
		o.f = slices.Clone(c.wide(v)[off : off+n])
	default:
		o.i = v.whole()[off : off+n : off+n]
	}
	return o
}
