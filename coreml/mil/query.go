package mil

// Function returns the function called name, or nil.
func (p *Program) Function(name string) *Function {
	for _, f := range p.Functions {
		if f.Name == name {
			return f
		}
	}
	return nil
}

// Attr returns the program attribute called name, or nil.
func (p *Program) Attr(name string) *Value { return findAttr(p.Attrs, name) }

// Attr returns the function attribute called name, or nil.
func (f *Function) Attr(name string) *Value { return findAttr(f.Attrs, name) }

// Attr returns the attribute called name, or nil.
func (o *Op) Attr(name string) *Value { return findAttr(o.Attrs, name) }

func findAttr(attrs []Attr, name string) *Value {
	for i := range attrs {
		if attrs[i].Name == name {
			return attrs[i].Value
		}
	}
	return nil
}

// Arg returns the argument called name, or nil.
func (o *Op) Arg(name string) *Arg {
	for i := range o.Args {
		if o.Args[i].Name == name {
			return &o.Args[i]
		}
	}
	return nil
}

// Operand returns the bindings of an operand, wherever the dialect puts it:
// an argument, or an attribute (older constexpr ops). It returns nil when
// the op has neither.
func (o *Op) Operand(name string) []Binding {
	if a := o.Arg(name); a != nil {
		return a.Bindings
	}
	for i := range o.Attrs {
		if o.Attrs[i].Name == name {
			return []Binding{{Value: o.Attrs[i].Value, Pos: o.Attrs[i].Pos}}
		}
	}
	return nil
}

// Name returns the op's "name" attribute, or the identifier of its first
// result, or its type.
func (o *Op) Name() string {
	if s, ok := o.Attr("name").Str(); ok && s != "" {
		return s
	}
	if len(o.Outputs) > 0 {
		return o.Outputs[0].Name
	}
	return o.Type
}

// IsConst reports whether o defines a constant, compressed or not.
func (o *Op) IsConst() bool {
	return o.Type == "const" || len(o.Type) > 10 && o.Type[:10] == "constexpr_"
}

// Walk calls fn for every op of the block and of nested blocks, in order.
func (b *Block) Walk(fn func(*Op)) {
	for _, op := range b.Ops {
		fn(op)
		for _, nb := range op.Blocks {
			nb.Walk(fn)
		}
	}
}

// Histogram counts the ops of f by type, nested blocks included. const is
// not counted.
func Histogram(f *Function) map[string]int {
	h := map[string]int{}
	f.Body.Walk(func(op *Op) {
		if op.Type != "const" {
			h[op.Type]++
		}
	})
	return h
}
