package mlpackage

import (
	"cmp"
	"slices"
	"strings"

	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/coreml/mil"
	"github.com/anepkg/anepkg/coreml/wire"
)

// maxBlockDepth bounds blocks in ops in blocks.
const maxBlockDepth = 16

// bareSpec is the first specification version whose text form spells scalars
// without tensor<..., []>, program(1.3).
const bareSpec = 9

// decoder turns the messages of MIL.proto into a tree.
type decoder struct {
	*wire.Source
	bare  bool
	names map[string]string
}

// parseProgram decodes message Program: functions = 2, attributes = 4.
// Functions, parameters, arguments and attributes are sorted by name, as
// Apple's compiler prints them; ops keep their order.
func parseProgram(src *wire.Source, msg []byte, spec int) (*mil.Program, error) {
	d := &decoder{Source: src, bare: spec >= bareSpec, names: map[string]string{}}
	p := &mil.Program{Version: "1.0"}
	if d.bare {
		p.Version = "1.3"
	}
	err := d.Each(msg, func(f wire.Field) error {
		switch {
		case f.Num == 2 && f.IsBytes():
			name, body, err := d.Entry(f.Bytes)
			if err != nil {
				return err
			}
			fn, err := d.function(name, body)
			if err != nil {
				return err
			}
			p.Functions = append(p.Functions, fn)
		case f.Num == 4 && f.IsBytes():
			return d.attr(&p.Attrs, f.Bytes)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	sortAttrs(p.Attrs)
	slices.SortFunc(p.Functions, func(a, b *mil.Function) int { return strings.Compare(a.Name, b.Name) })
	return p, nil
}

func sortAttrs(as []mil.Attr) {
	slices.SortStableFunc(as, func(a, b mil.Attr) int { return cmp.Compare(a.Name, b.Name) })
}

func sortParams(ps []mil.Param) {
	slices.SortStableFunc(ps, func(a, b mil.Param) int { return cmp.Compare(a.Name, b.Name) })
}

// intern returns b as a string that is shared with equal ones.
func (d *decoder) intern(b []byte) string {
	if s, ok := d.names[string(b)]; ok {
		return s
	}
	s := string(b)
	d.names[s] = s
	return s
}

// attr decodes an entry of a map<string, Value>.
func (d *decoder) attr(to *[]mil.Attr, entry []byte) error {
	name, msg, err := d.Entry(entry)
	if err != nil {
		return err
	}
	v, err := d.value(msg, 0)
	if err != nil {
		return err
	}
	*to = append(*to, mil.Attr{Name: d.intern([]byte(name)), Value: v})
	return nil
}

// function decodes message Function: inputs = 1, opset = 2,
// block specialisations by opset = 3, attributes = 4.
func (d *decoder) function(name string, msg []byte) (*mil.Function, error) {
	fn := &mil.Function{Name: name}
	opset := ""
	blocks := map[string][]byte{}
	err := d.Each(msg, func(f wire.Field) error {
		if !f.IsBytes() {
			return nil
		}
		switch f.Num {
		case 1:
			return d.param(&fn.Params, f.Bytes)
		case 2:
			opset = f.String()
		case 3:
			key, body, err := d.Entry(f.Bytes)
			blocks[key] = body
			return err
		case 4:
			return d.attr(&fn.Attrs, f.Bytes)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	body, ok := blocks[opset]
	if !ok {
		return nil, d.Errorf(msg, "function %s has no block for its opset %s", quote(name), quote(opset))
	}
	if fn.Opset = opsets[opset]; fn.Opset == "" {
		return nil, diag.Errorf(d.Pos(msg), diag.Unsupported, "function %s has opset %s; CoreML5 to CoreML9 are supported", quote(name), quote(opset))
	}
	sortParams(fn.Params)
	sortAttrs(fn.Attrs)
	fn.Body, err = d.block(body, 0)
	return fn, err
}

// param decodes message NamedValueType: name = 1, type = 2.
func (d *decoder) param(to *[]mil.Param, msg []byte) error {
	var p mil.Param
	typed := false
	err := d.Each(msg, func(f wire.Field) (err error) {
		switch {
		case f.Num == 1 && f.IsBytes():
			p.Name = d.intern(f.Bytes)
		case f.Num == 2 && f.IsBytes():
			p.Type, err = d.typ(f.Bytes, 0)
			typed = true
		}
		return err
	})
	if err == nil && !typed {
		err = d.Errorf(msg, "value %s has no type", quote(p.Name))
	}
	*to = append(*to, p)
	return err
}

// block decodes message Block: inputs = 1, outputs = 2, operations = 3.
func (d *decoder) block(msg []byte, depth int) (*mil.Block, error) {
	if depth > maxBlockDepth {
		return nil, diag.Errorf(d.Pos(msg), diag.TooLarge, "blocks nested deeper than %d", maxBlockDepth)
	}
	b := &mil.Block{}
	err := d.Each(msg, func(f wire.Field) error {
		if !f.IsBytes() {
			return nil
		}
		switch f.Num {
		case 1:
			return d.param(&b.Params, f.Bytes)
		case 2:
			b.Outputs = append(b.Outputs, mil.Ref{Name: d.intern(f.Bytes)})
		case 3:
			op, err := d.op(f.Bytes, depth)
			b.Ops = append(b.Ops, op)
			return err
		}
		return nil
	})
	return b, err
}

// op decodes message Operation: type = 1, inputs = 2, outputs = 3,
// blocks = 4, attributes = 5.
func (d *decoder) op(msg []byte, depth int) (*mil.Op, error) {
	op := &mil.Op{}
	err := d.Each(msg, func(f wire.Field) error {
		if !f.IsBytes() {
			return nil
		}
		switch f.Num {
		case 1:
			op.Type = d.intern(f.Bytes)
		case 2:
			name, body, err := d.Entry(f.Bytes)
			if err != nil {
				return err
			}
			a := mil.Arg{Name: d.intern([]byte(name))}
			a.Bindings, err = d.bindings(body)
			op.Args = append(op.Args, a)
			return err
		case 3:
			return d.param(&op.Outputs, f.Bytes)
		case 4:
			b, err := d.block(f.Bytes, depth+1)
			op.Blocks = append(op.Blocks, b)
			return err
		case 5:
			return d.attr(&op.Attrs, f.Bytes)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for i := range op.Args {
		a := &op.Args[i]
		a.Variadic = len(a.Bindings) != 1 || variadic[[2]string{op.Type, a.Name}]
	}
	slices.SortStableFunc(op.Args, func(a, b mil.Arg) int { return cmp.Compare(a.Name, b.Name) })
	sortAttrs(op.Attrs)
	return op, nil
}

// variadic lists the arguments that are a tuple in the op's definition, and
// so keep their parentheses around a single binding.
var variadic = map[[2]string]bool{
	{"concat", "values"}: true, {"stack", "values"}: true, {"einsum", "values"}: true,
	{"list_scatter", "values"}: true, {"while_loop", "loop_vars"}: true,
}

// bindings decodes message Argument: arguments = 1, each a Binding with
// name = 1 or value = 2.
func (d *decoder) bindings(msg []byte) ([]mil.Binding, error) {
	var out []mil.Binding
	err := d.Each(msg, func(f wire.Field) error {
		if f.Num != 1 || !f.IsBytes() {
			return nil
		}
		var b mil.Binding
		err := d.Each(f.Bytes, func(f wire.Field) (err error) {
			switch {
			case f.Num == 1 && f.IsBytes():
				b.Ref = d.intern(f.Bytes)
			case f.Num == 2 && f.IsBytes():
				b.Value, err = d.value(f.Bytes, 0)
			}
			return err
		})
		if err == nil && (b.Ref == "") == (b.Value == nil) {
			err = d.Errorf(f.Bytes, "a binding is either a name or a value")
		}
		out = append(out, b)
		return err
	})
	return out, err
}
