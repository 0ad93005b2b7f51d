// Package backends is the table that joins the backends: the only package
// that imports all of them. A program that wants one by name, or the best one
// of the machine, asks here; the packages above and below know only the
// coreml.Backend interface.
//
// Files: backends.go (the table). The test that holds the import directions
// of the whole module is imports_test.go.
package backends

import (
	"strings"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/coreml/cpu"
	"github.com/anepkg/anepkg/coreml/diag"
)

// Auto is the name that stands for the best backend of this machine.
const Auto = "auto"

// entry is one backend. The best one comes first.
type entry struct {
	name string
	make func() (coreml.Backend, error)
}

var table = []entry{
	{"cpu", func() (coreml.Backend, error) { return cpu.New(), nil }},
}

// others are backends that exist in the format's world but not here; asking
// for one is not a typing mistake.
var others = map[string]string{
	"coreml": "Apple's Core ML is not linked into this build",
}

// Names lists the backends of this build, the best one first.
func Names() []string {
	names := make([]string, len(table))
	for i, e := range table {
		names[i] = e.name
	}
	return names
}

// OpInfo describes an op of the CPU engine.
type OpInfo = cpu.OpInfo

// Ops lists the ops that the CPU engine executes, sorted by name.
func Ops() []OpInfo { return cpu.Ops() }

// CPUInfo says what the CPU engine runs on.
type CPUInfo = cpu.Info

// CPU describes this processor and the kernels chosen for it.
func CPU() CPUInfo { return cpu.Describe() }

// New makes the backend called name; Auto and "" mean the best one. A
// backend that this build lacks is an error of class diag.Unsupported, an
// unknown name one of class diag.Usage.
func New(name string) (coreml.Backend, error) {
	for _, e := range table {
		if name == e.name || name == Auto || name == "" {
			return e.make()
		}
	}
	have := strings.Join(Names(), ", ")
	if why, ok := others[name]; ok {
		return nil, diag.Errorf(diag.Pos{}, diag.Unsupported, "backend %s: %s; this build has %s", name, why, have)
	}
	return nil, diag.Errorf(diag.Pos{}, diag.Usage, "unknown backend %q; this build has %s", name, have)
}
