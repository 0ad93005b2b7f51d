package cpu

import (
	"slices"
	"strings"

	"github.com/anepkg/anepkg/coreml/diag"
)

// opDef is an op of the table.
type opDef struct {
	name  string
	doc   string // what it computes, with shapes
	types string // element types of its results (or operands, when it says so)
	limit string // what of it the engine does not do; "" = all is done
	since int    // first opset, iosN
	build func(*builder) kernel
	// exact results need no rounding: data is moved, compared or counted.
	exact bool
	// impure ops are run every time, even when their operands are constant.
	impure bool
	// constant ops are always computed at load time.
	constant bool
	// views: the kernel walks operands that are views itself.
	views bool
}

// opTable holds every op by name. It is filled before main by init, since
// the constructors refer to the table themselves.
var opTable = map[string]*opDef{}

func init() {
	for _, family := range [][]opDef{constOps, stateOps, controlOps, binaryOps, unaryOps, selectOps, shapeOps, sliceOps, gatherOps, reduceOps, normOps, linearOps, convOps, scatterOps, sortOps, nmsOps, scanOps, listOps, quantOps, randomOps, classifyOps, einsumOps, attentionOps, recurrentOps, poolOps, resizeOps, sampleOps, spaceOps, convTransposeOps} {
		register(family)
	}
}

func register(family []opDef) {
	for i := range family {
		d := &family[i]
		if opTable[d.name] != nil {
			panic("op " + d.name + " is in the table twice")
		}
		opTable[d.name] = d
	}
}

// OpInfo describes an op that the engine executes.
type OpInfo struct {
	Name   string
	Doc    string // what it computes
	Types  string // element types
	Limits string // what the engine does not do; "" = nothing left out
	Opset  int    // first opset, iosN
}

// Ops lists what the engine executes, sorted by name.
func Ops() []OpInfo {
	out := make([]OpInfo, 0, len(opTable))
	for _, d := range opTable {
		out = append(out, OpInfo{Name: d.name, Doc: d.doc, Types: d.types, Limits: d.limit, Opset: d.since})
	}
	slices.SortFunc(out, func(a, b OpInfo) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// nearestOp returns the known op whose name differs least from name, or ""
// when none is close.
func nearestOp(name string) string {
	best, dist := "", 3
	for n := range opTable {
		if d := diag.Distance(n, name, dist); d < dist || d == dist && d < 3 && n < best {
			best, dist = n, d
		}
	}
	return best
}
