package cpu

import (
	"bytes"
	"os"
	"runtime"

	"golang.org/x/sys/cpu"
)

// Info says what the engine runs on.
type Info struct {
	Model    string   `json:"model"`    // as the system names it; the architecture when it does not
	Features []string `json:"features"` // of those that kernels are made for
	Kernels  string   `json:"kernels"`  // which inner loops are used: "avx2" or "portable"
}

// Describe tells of this processor and the kernels chosen for it.
func Describe() Info {
	i := Info{Model: runtime.GOARCH, Kernels: kernels}
	for _, f := range []struct {
		has  bool
		name string
	}{
		{cpu.X86.HasAVX2, "avx2"}, {cpu.X86.HasFMA, "fma"}, {cpu.X86.HasF16C, "f16c"},
		{cpu.X86.HasAVX512F, "avx512f"}, {cpu.X86.HasAVX512BW, "avx512bw"}, {cpu.X86.HasAVX512VNNI, "avx512vnni"},
		{cpu.ARM64.HasASIMD, "asimd"}, {cpu.ARM64.HasFPHP, "fphp"},
	} {
		if f.has {
			i.Features = append(i.Features, f.name)
		}
	}
	if name := modelName(); name != "" {
		i.Model = name
	}
	return i
}

// modelName reads the processor's name where Linux keeps it.
func modelName() string {
	data, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	for line := range bytes.Lines(data) {
		if k, v, ok := bytes.Cut(line, []byte(":")); ok && string(bytes.TrimSpace(k)) == "model name" {
			return string(bytes.TrimSpace(v))
		}
	}
	return ""
}
