package native

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/coreml/diag"
)

// Version is a version of macOS.
type Version struct{ Major, Minor int }

func (v Version) String() string {
	if v.Minor == 0 {
		return strconv.Itoa(v.Major)
	}
	return fmt.Sprintf("%d.%d", v.Major, v.Minor)
}

// Before reports whether v is older than w.
func (v Version) Before(w Version) bool {
	return v.Major < w.Major || v.Major == w.Major && v.Minor < w.Minor
}

// ParseVersion reads "15.1" or "14.4.1"; what follows the second number is
// left out.
func ParseVersion(s string) (Version, error) {
	var v Version
	var err error
	major, rest, _ := strings.Cut(strings.TrimSpace(s), ".")
	if v.Major, err = strconv.Atoi(major); err == nil && rest != "" {
		minor, _, _ := strings.Cut(rest, ".")
		v.Minor, err = strconv.Atoi(minor)
	}
	if err != nil || v.Major < 0 || v.Minor < 0 {
		return Version{}, fmt.Errorf("%q is no version of macOS", s)
	}
	return v, nil
}

// Versions of macOS that brought something packages need.
var (
	bytesSince     = Version{12, 3} // getBytesWithHandler:
	statesSince    = Version{15, 0} // MLState, functionName
	planSince      = Version{14, 4} // MLComputePlan
	opsetSince     = map[string]Version{"ios15": {12, 0}, "ios16": {13, 0}, "ios17": {14, 0}, "ios18": {15, 0}, "ios26": {26, 0}}
	specSince      = map[int]Version{6: {12, 0}, 7: {13, 0}, 8: {14, 0}, 9: {15, 0}, 10: {26, 0}}
	neuralCPUSince = Version{13, 0} // compute units cpuAndNeuralEngine
)

// Needs returns the oldest macOS whose Core ML can run m, and why: the opset
// and the specification version (macOS 12 to 15 and 26 for versions 6 to 10),
// states and several functions (macOS 15), and what the bridge itself calls.
func Needs(m *coreml.Model) (Version, string) {
	need, why := bytesSince, "the bridge reads arrays as macOS 12.3 allows"
	raise := func(v Version, format string, args ...any) {
		if need.Before(v) {
			need, why = v, fmt.Sprintf(format, args...)
		}
	}
	raise(specSince[m.SpecVersion], "specification version %d", m.SpecVersion)
	for _, f := range m.Functions {
		raise(opsetSince[f.Opset], "function %s is of opset %s", f.Name, f.Opset)
		if len(f.States) > 0 {
			raise(statesSince, "function %s has states", f.Name)
		}
	}
	if len(m.Functions) > 1 {
		raise(statesSince, "the model has %d functions", len(m.Functions))
	}
	return need, why
}

// checkVersion is an error of class diag.Unsupported when host is too old for
// m.
func checkVersion(m *coreml.Model, host Version) error {
	need, why := Needs(m)
	if !host.Before(need) {
		return nil
	}
	return diag.Errorf(diag.In(m.Path), diag.Unsupported, "Core ML runs this model from macOS %s on (%s); this is macOS %s", need, why, host).
		WithHint("the CPU engine runs it here: --backend cpu")
}
