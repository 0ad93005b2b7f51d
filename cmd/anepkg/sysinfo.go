package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"

	"howett.net/plist"
)

// systemVersionFile is where macOS keeps its name and version.
const systemVersionFile = "/System/Library/CoreServices/SystemVersion.plist"

// macVersion is SystemVersion.plist.
type macVersion struct {
	Product string `plist:"ProductName"`
	Version string `plist:"ProductVersion"`
	Build   string `plist:"ProductBuildVersion"`
}

// maxPlist bounds the property lists that are read here, in bytes.
const maxPlist = 1 << 20

// readMacVersion reads a SystemVersion.plist, in any form of property list.
func readMacVersion(r io.Reader) (macVersion, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxPlist))
	if err != nil {
		return macVersion{}, err
	}
	var v macVersion
	if _, err := plist.Unmarshal(data, &v); err != nil {
		return macVersion{}, err
	}
	if v.Version == "" {
		return macVersion{}, fmt.Errorf("the property list has no ProductVersion")
	}
	return v, nil
}

// major returns the number before the first dot; 0 when there is none.
func (v macVersion) major() int {
	head, _, _ := strings.Cut(v.Version, ".")
	n, err := strconv.Atoi(head)
	if err != nil {
		return 0
	}
	return n
}

func (v macVersion) String() string { return fmt.Sprintf("%s %s (%s)", v.Product, v.Version, v.Build) }

// thisMac reads this machine's version; ok is false elsewhere.
func thisMac() (v macVersion, ok bool) {
	if runtime.GOOS != "darwin" {
		return v, false
	}
	f, err := os.Open(systemVersionFile)
	if err != nil {
		return v, false
	}
	defer f.Close() //nolint:errcheck // read only
	v, err = readMacVersion(f)
	return v, err == nil
}

// systemName names the operating system and its version.
func systemName() string {
	if v, ok := thisMac(); ok {
		return v.String()
	}
	if runtime.GOOS == "linux" {
		if data, err := os.ReadFile("/etc/os-release"); err == nil {
			if name := osRelease(string(data)); name != "" {
				return name
			}
		}
	}
	if name := kernelVersion(); name != "" {
		return name
	}
	return runtime.GOOS
}

// osRelease finds the name in an os-release file.
func osRelease(text string) string {
	for line := range strings.Lines(text) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), "PRETTY_NAME="); ok {
			return strings.Trim(v, `"'`)
		}
	}
	return ""
}

// coreMLDiagnoses tells whether Core ML could run packages here.
func coreMLDiagnoses() []diagnosis {
	v, ok := thisMac()
	if !ok {
		return []diagnosis{{Name: "Core ML", Status: healthy, Value: "not on this system: packages run on the CPU engine"}}
	}
	return append(macDiagnoses(v), xcodeDiagnosis())
}

// macDiagnoses judges a version of macOS by what packages need of Core ML.
func macDiagnoses(v macVersion) []diagnosis {
	ml := diagnosis{Name: "Core ML", Status: healthy, Value: "ML Programs with states (macOS 15 and later)"}
	switch n := v.major(); {
	case n < 12:
		ml.Status, ml.Value, ml.Hint = warning, "no ML Programs before macOS 12", "packages run on the CPU engine"
	case n < 15:
		ml.Status, ml.Value, ml.Hint = warning, "no states before macOS 15", "packages with states run on the CPU engine"
	}
	return []diagnosis{ml}
}

func xcodeDiagnosis() diagnosis {
	d := diagnosis{Name: "Xcode tools", Status: healthy}
	path, err := exec.LookPath("xcrun")
	if d.Value = path; err != nil {
		d.Value, d.Hint = "not found", "only coremlcompiler needs them: xcode-select --install"
	}
	return d
}
