//go:build gnustep

package fakecoreml

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/coreml/mil"
)

// plan puts every op of every function into a plan: constants nowhere, gather
// on the CPU, the rest on the Neural Engine, each at the same cost.
func plan(program, path uintptr) uintptr {
	dir := goString(path)
	m, err := coreml.Open(context.Background(), os.DirFS(filepath.Dir(dir)), filepath.Base(dir))
	if err != nil {
		return 1
	}
	defer m.Close() //nolint:errcheck // read only
	for _, f := range m.Functions {
		counted := 0
		for _, op := range f.Program.Body.Ops {
			if deviceOf(op) != 0 {
				counted++
			}
		}
		addOps(program, f.Name, 0, f.Program.Body.Ops, 1/float64(max(counted, 1)))
	}
	return 0
}

func addOps(program uintptr, function string, parent uintptr, ops []*mil.Op, cost float64) {
	for _, op := range ops {
		name := ""
		if len(op.Outputs) > 0 {
			name = op.Outputs[0].Name
		}
		h := planOp(program, function, parent, op.Type, name, deviceOf(op), cost)
		for _, b := range op.Blocks {
			addOps(program, function, h, b.Ops, 0)
		}
	}
}

func deviceOf(op *mil.Op) int32 {
	switch {
	case op.Type == "const" || strings.HasPrefix(op.Type, "constexpr_"):
		return 0
	case op.Type == "gather":
		return 1
	}
	return 3
}
