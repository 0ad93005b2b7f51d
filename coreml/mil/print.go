package mil

import (
	"strconv"
	"strings"
)

func writeType(b *strings.Builder, t Type) {
	switch t.Kind {
	case ListType:
		b.WriteString("list<")
		writeType(b, t.Elems[0])
		b.WriteString(", ")
		writeDim(b, t.Len)
		b.WriteByte('>')
	case TupleType, DictType, StateType:
		b.WriteString(map[Kind]string{TupleType: "tuple<", DictType: "dict<", StateType: "state<"}[t.Kind])
		for i, e := range t.Elems {
			if i > 0 {
				b.WriteString(", ")
			}
			writeType(b, e)
		}
		b.WriteByte('>')
	default:
		if t.Bare && len(t.Shape) == 0 {
			b.WriteString(t.DType.String())
			return
		}
		b.WriteString("tensor<" + t.DType.String() + ", [")
		for i, d := range t.Shape {
			if i > 0 {
				b.WriteString(", ")
			}
			writeDim(b, d)
		}
		b.WriteString("]>")
	}
}

func writeDim(b *strings.Builder, d int) {
	if d < 0 {
		b.WriteByte('?')
		return
	}
	b.WriteString(strconv.Itoa(d))
}
