package inspect

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/coreml/diag"
)

// What a target may be. A finding that names no target of a kind says
// nothing about it.
var (
	macSystems = []string{"macos12", "macos13", "macos14", "macos15", "macos26", "macos27"}
	iPhones    = []string{"ios15", "ios16", "ios17", "ios18", "ios26", "ios27"}
	chips      = []string{"m1", "m2", "m3", "m4", "m5", "a12", "a13", "a14", "a15", "a16", "a17", "a18", "a19"}
	runtimes   = []string{anemllPython, anemllSwift, coremlLLM}
	allSystems = slices.Concat(macSystems, iPhones)
)

// engine is the Neural Engine of any chip.
const engine = "ane"

// Where rules' findings are errors.
var (
	onEngine          = []string{engine}
	onOldChips        = []string{"m1", "a14"}
	onPython          = []string{anemllPython}
	onSwift           = []string{anemllSwift}
	onANEMLL          = []string{anemllPython, anemllSwift}
	onCoreMLLLM       = []string{coremlLLM}
	onCoreMLLLMPython = []string{coremlLLM, anemllPython}
	onSwiftReaders    = []string{coremlLLM, anemllSwift}
)

// profiles are targets that stand for several others. Every chip has a Neural
// Engine, so that a chip as target includes ane.
var profiles = map[string][]string{
	"mac":    {"macos15", "macos26", "macos27", engine},
	"iphone": {"ios18", "ios26", "ios27", engine},
	"anemll": {anemllPython, anemllSwift},
}

// Targets lists what Options.Targets may name: systems, chips, the Neural
// Engine (ane), runtimes, and profiles that join several of them.
func Targets() []string {
	out := slices.Concat(allSystems, chips, runtimes, []string{engine})
	for name := range profiles {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// targetKind says what a target is: a system, a chip, the engine, a runtime.
func targetKind(name string) string {
	switch {
	case slices.Contains(allSystems, name):
		return "system"
	case slices.Contains(chips, name):
		return "chip"
	case slices.Contains(runtimes, name):
		return "runtime"
	}
	return engine
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
	known := Targets()
	for _, name := range names {
		name := strings.ToLower(name)
		if !slices.Contains(known, name) {
			return nil, diag.Errorf(diag.Pos{}, diag.Usage, "no target is called %q", name).WithHint("known targets: %s", strings.Join(known, ", "))
		}
		if members, ok := profiles[name]; ok {
			for _, m := range members {
				add(m)
			}
			continue
		}
		add(name)
		if targetKind(name) == "chip" {
			add(engine)
		}
	}
	return out, nil
}

// TargetInfo says what a package was judged for.
type TargetInfo struct {
	Names   []string `json:"names"`
	Assumed bool     `json:"assumed"` // nobody named a target: these are the systems that the package declares
	Reason  string   `json:"reason"`
}

func (t *TargetInfo) String() string {
	if t.Assumed {
		return t.Reason
	}
	return strings.Join(t.Names, ", ")
}

// minimum is the oldest system that loads every part: what the part with the
// newest demand says in its specification version, its opset, or the
// availability of its metadata.json. The index is that of systems, -1 when
// no part tells it.
func (v *view) minimum() (index int, who *partView, why string) {
	index = -1
	for _, pt := range v.usable() {
		for i, s := range systems {
			reason := ""
			switch {
			case slices.ContainsFunc(pt.model.Functions, func(f *coreml.Function) bool { return f.Opset == s.opset }):
				reason = "opset " + s.opset
			case s.spec == pt.model.SpecVersion:
				reason = "specification version " + strconv.Itoa(s.spec)
			case pt.model.Metadata != nil && declares(pt, s.macOS, s.iOS):
				reason = "availability in " + path.Join(pt.Path, "metadata.json")
			}
			if reason != "" && i > index {
				index, who, why = i, pt, reason
			}
		}
	}
	return index, who, why
}

// declares reports whether metadata.json names these systems as the oldest.
func declares(pt *partView, macOS, iOS string) bool {
	a := pt.model.Metadata.Availability
	return major(a["macOS"]) == macOS || a["macOS"] == "" && major(a["iOS"]) == iOS
}

func major(version string) string {
	n, _, _ := strings.Cut(version, ".")
	return n
}

// nameOf is a part's label; the only part of a single model has the package's
// name.
func (v *view) nameOf(pt *partView) string {
	if pt.Path == "." && v.pkg.Name != "" {
		return v.pkg.Name
	}
	return pt.label()
}

// assumeTarget is what a package is judged for when nobody names a target:
// every system from the package's own minimum on.
func (v *view) assumeTarget() TargetInfo {
	index, who, why := v.minimum()
	if index < 0 {
		return TargetInfo{Names: []string{}, Assumed: true, Reason: "every system: no program of the package tells its oldest one"}
	}
	s := systems[index]
	t := TargetInfo{Assumed: true, Reason: fmt.Sprintf("macOS %s, iOS %s and newer, the package's own minimum (%s of %s)", s.macOS, s.iOS, why, v.nameOf(who))}
	for _, name := range allSystems {
		if least := strings.TrimPrefix(strings.TrimPrefix(name, "macos"), "ios"); !olderSystem(least, s.macOS, s.iOS, strings.HasPrefix(name, "macos")) {
			t.Names = append(t.Names, name)
		}
	}
	return t
}

func olderSystem(version, macOS, iOS string, mac bool) bool {
	least := iOS
	if mac {
		least = macOS
	}
	a, err1 := strconv.Atoi(version)
	b, err2 := strconv.Atoi(least)
	return err1 == nil && err2 == nil && a < b
}

// judge gives a finding its severity for the targets: an error on a target
// that it names, when the user asked for that target; a note when the user
// asked only for others of the same kinds. What the package contradicts in
// itself is an error everywhere.
func (t *TargetInfo) judge(f *Finding) {
	if f.Severity == Error || len(f.Targets) == 0 || len(t.Names) == 0 {
		return
	}
	if slices.ContainsFunc(f.Targets, func(name string) bool { return slices.Contains(t.Names, name) }) {
		if !t.Assumed {
			f.Severity = Error
		}
		return
	}
	asked := func(name string) bool {
		return slices.ContainsFunc(t.Names, func(other string) bool { return targetKind(other) == targetKind(name) })
	}
	if !slices.ContainsFunc(f.Targets, func(name string) bool { return !asked(name) }) {
		f.Severity = Note
	}
}

// checkSystem names the oldest systems that can load the package, and fails
// for older targets.
func checkSystem(p *Pass) {
	best, who, why := p.minimum()
	if best < 0 {
		p.Skip("no program tells its version")
		return
	}
	s := systems[best]
	f := p.Report(diag.In(programFile(who)), "the package needs macOS %s or iOS %s (%s of %s)", s.macOS, s.iOS, why, p.nameOf(who)).As(Note)
	var older []string
	for _, o := range systems[:best] {
		older = append(older, "macos"+o.macOS, "ios"+o.iOS)
	}
	if hit := slices.DeleteFunc(slices.Clone(p.target.Names), func(t string) bool { return !slices.Contains(older, t) }); len(hit) > 0 {
		f.Compare("macOS "+s.macOS+", iOS "+s.iOS, strings.Join(hit, ", ")).Fix("convert with an older minimum_deployment_target, or choose a newer target")
	}
	f.On(older...)
}
