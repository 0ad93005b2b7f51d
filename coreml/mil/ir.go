// Package mil is the intermediate representation of an ML Program and its
// text form (model.mil). Both front ends, the text parser here and the
// protobuf reader in coreml/mlpackage, produce the same Program.
//
// Files: ir.go (the tree), value.go (constants), lex.go, parse.go,
// parse_type.go, literal.go and number.go (text to tree, with positions),
// check.go (names resolve), print.go (tree to text), query.go (look-ups).
package mil

import (
	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/coreml/tensor"
)

// Pos is a place in the program's text: line and column from 1, columns in
// bytes. It is zero for programs that came from protobuf.
type Pos struct{ Line, Col int32 }

// Program is a whole ML Program.
type Program struct {
	File      string // where it was read from, for messages
	Version   string // "1.0" or "1.3": the text dialect
	Attrs     []Attr // buildInfo and the like
	Functions []*Function
}

// Function is one entry point.
type Function struct {
	Name   string
	Opset  string // "ios15" ... "ios26"
	Pos    Pos
	Params []Param // sorted by name in text; states are ordinary parameters
	Attrs  []Attr  // FlexibleShapeInformation
	Body   *Block
}

// Block is a list of operations and the names of its results.
type Block struct {
	Params  []Param // only for blocks nested in an op
	Ops     []*Op
	Outputs []Ref
}

// Ref names a value defined earlier.
type Ref struct {
	Name string
	Pos  Pos
}

// Param is a named and typed value: a parameter or the result of an op.
type Param struct {
	Name string
	Type Type
	Pos  Pos
}

// Op is one operation. A const has no Args and its value in Attr "val".
// Older constexpr ops have their operands in Attrs, newer ones in Args; use
// Operand to get either.
type Op struct {
	Type    string
	Pos     Pos // of the operation name
	Outputs []Param
	Args    []Arg
	Attrs   []Attr
	Blocks  []*Block // cond, while_loop
}

// Arg is a named argument. A variadic one, printed (a, b), has several
// bindings and Variadic set; any other has exactly one.
type Arg struct {
	Name     string
	Pos      Pos
	Bindings []Binding
	Variadic bool
}

// Binding is a reference to a value (Ref not empty) or an immediate Value.
type Binding struct {
	Ref   string
	Value *Value
	Pos   Pos
}

// Attr is a named constant attached to a program, function or op.
type Attr struct {
	Name  string
	Value *Value
	Pos   Pos
}

// Kind tells the sort of a Type.
type Kind uint8

// The kinds of types.
const (
	TensorType Kind = iota // also rank-0 scalars
	ListType
	TupleType
	DictType
	StateType
)

// Unknown is the dimension printed "?".
const Unknown = -1

// Type is the type of a value.
type Type struct {
	Kind  Kind
	DType tensor.DType // of a tensor
	Shape []int        // of a tensor; Unknown for "?"; empty for a scalar
	Bare  bool         // a scalar spelled without tensor<..., []>
	Elems []Type       // list: element; tuple: members; dict: key, value; state: the tensor
	Len   int          // of a list; Unknown for "?"
}

// TensorOf makes a tensor type.
func TensorOf(d tensor.DType, shape ...int) Type { return Type{DType: d, Shape: shape} }

// State returns the tensor type inside a state, or t itself.
func (t Type) State() Type {
	if t.Kind == StateType && len(t.Elems) == 1 {
		return t.Elems[0]
	}
	return t
}

// IsState reports whether t is state<tensor<...>>.
func (t Type) IsState() bool { return t.Kind == StateType }

// Equal compares two types; how scalars are spelled does not matter.
func (t Type) Equal(u Type) bool {
	if t.Kind != u.Kind || t.DType != u.DType || len(t.Shape) != len(u.Shape) || len(t.Elems) != len(u.Elems) || t.Len != u.Len {
		return false
	}
	for i := range t.Shape {
		if t.Shape[i] != u.Shape[i] {
			return false
		}
	}
	for i := range t.Elems {
		if !t.Elems[i].Equal(u.Elems[i]) {
			return false
		}
	}
	return true
}

// String prints t as text MIL does.
func (t Type) String() string {
	return string(appendType(nil, t))
}

// At turns a position of this program into one that names the file.
func (p *Program) At(pos Pos) diag.Pos {
	return diag.Pos{File: p.File, Line: int(pos.Line), Col: int(pos.Col)}
}
