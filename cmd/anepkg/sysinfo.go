package main

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"howett.net/plist"

	"github.com/anepkg/anepkg/fetch"
	"github.com/anepkg/anepkg/inspect"
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
func (t *tool) coreMLDiagnoses(ctx context.Context) []diagnosis {
	v, ok := thisMac()
	if !ok {
		return []diagnosis{{Name: "Core ML", Status: healthy, Value: "not on this system: packages run on the CPU engine"}}
	}
	_, err := t.backend("coreml")
	out := append(macDiagnoses(v), bridgeDiagnosis(err), compileCacheDiagnosis(t.compileCache()))
	return append(out, xcodeDiagnosis(ctx))
}

// bridgeDiagnosis tells whether Core ML could be loaded, as every command
// with the backend auto does.
func bridgeDiagnosis(err error) diagnosis {
	if err != nil {
		return diagnosis{"backend", warning, "auto takes the CPU engine: " + err.Error(), "packages run, but not on the Neural Engine or the GPU"}
	}
	return diagnosis{Name: "backend", Status: healthy, Value: "auto takes Core ML for the packages that it runs, else the CPU engine"}
}

// compileCacheDiagnosis looks at the folder of what Core ML compiled.
func compileCacheDiagnosis(dir string) diagnosis {
	d := diagnosis{Name: "compile cache", Status: healthy, Value: dir}
	if dir == "" {
		d.Status, d.Value, d.Hint = warning, "the system names no folder for caches", "an .mlpackage cannot be compiled then: set HOME"
		return d
	}
	info, err := os.Stat(dir)
	switch {
	case err == nil && !info.IsDir():
		d.Status, d.Hint = problem, "it is a file: remove it"
		return d
	case err != nil:
		d.Value += " (not there yet)"
	default:
		d.Value += ", " + inspect.Bytes(folderBytes(dir))
		f, err := os.CreateTemp(dir, ".anepkg-doctor-*")
		if err != nil {
			d.Status, d.Hint = problem, "it cannot be written: change its permissions"
			return d
		}
		_ = f.Close()
		_ = os.Remove(f.Name())
	}
	free, err := fetch.FreeSpace(nearestFolder(dir))
	switch {
	case err != nil:
	case free < 4<<30:
		d.Status, d.Hint = warning, "make room: a compiled copy is as large as its model, and the system keeps one more"
	}
	if err == nil {
		d.Value += ", " + inspect.Bytes(free) + " free"
	}
	return d
}

// nearestFolder is dir, or the folder above it that exists.
func nearestFolder(dir string) string {
	for dir != filepath.Dir(dir) {
		if _, err := os.Stat(dir); err == nil {
			break
		}
		dir = filepath.Dir(dir)
	}
	return dir
}

// folderBytes adds up the files below dir.
func folderBytes(dir string) int64 {
	var n int64
	_ = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			if info, err := e.Info(); err == nil {
				n += info.Size()
			}
		}
		return nil
	})
	return n
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

// xcodeTimeout bounds the question for coremlcompiler.
const xcodeTimeout = 10 * time.Second

// xcodeDiagnosis looks for coremlcompiler, which only those who make packages
// need.
func xcodeDiagnosis(ctx context.Context) diagnosis {
	d := diagnosis{Name: "Xcode tools", Status: healthy}
	ctx, cancel := context.WithTimeout(ctx, xcodeTimeout)
	defer cancel()
	if _, err := exec.LookPath("xcrun"); err != nil {
		d.Value, d.Hint = "not found", "only coremlcompiler needs them: xcode-select --install"
		return d
	}
	out, err := exec.CommandContext(ctx, "xcrun", "--find", "coremlcompiler").Output()
	if d.Value = strings.TrimSpace(string(out)); err != nil || d.Value == "" {
		d.Value, d.Hint = "xcrun, without coremlcompiler", "only those who compile packages need it: it comes with Xcode, not with the command line tools"
	}
	return d
}
