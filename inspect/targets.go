package inspect

import (
	"slices"
	"strings"

	"github.com/anepkg/anepkg/coreml/diag"
)

// systemTargets are systems, chips and runtimes that a finding may name.
var systemTargets = []string{
	"macos12", "macos13", "macos14", "macos15", "macos26", "macos27", "ios15", "ios16", "ios17", "ios18", "ios26", "ios27",
	"m1", "m2", "m3", "m4", "m5", "a14", "a15", "a16", "a17", "a18", "a19", "ane",
	anemllPython, anemllSwift, coremlLLM,
}

// profiles are targets that stand for several others. Every chip has a Neural
// Engine, so that a chip as target includes ane.
var profiles = map[string][]string{
	"mac":    {"macos15", "macos26", "ane"},
	"iphone": {"ios18", "ios26", "ane"},
	"anemll": {anemllPython, anemllSwift},
}

// Targets lists what Options.Targets may name: systems, chip families, the
// Neural Engine (ane), runtimes, and profiles that join several of them.
func Targets() []string {
	out := slices.Clone(systemTargets)
	for name := range profiles {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// expandTargets replaces profiles by what they stand for. An unknown name is
// an error of class diag.Usage.
func expandTargets(names []string) ([]string, error) {
	var out []string
	add := func(name string) {
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	for _, name := range names {
		switch members, isProfile := profiles[name]; {
		case isProfile:
			for _, m := range members {
				add(m)
			}
		case !slices.Contains(systemTargets, name):
			return nil, diag.Errorf(diag.Pos{}, diag.Usage, "no target is called %q", name).WithHint("known targets: %s", strings.Join(Targets(), ", "))
		default:
			add(name)
			if len(name) >= 2 && (name[0] == 'm' || name[0] == 'a') && name[1] >= '0' && name[1] <= '9' {
				add("ane")
			}
		}
	}
	return out, nil
}
