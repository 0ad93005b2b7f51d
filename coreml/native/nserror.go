package native

import (
	"fmt"
	"strings"

	"github.com/anepkg/anepkg/coreml/diag"
)

// failure is an NSError in Go: domain, code, and its text with those of the
// errors below it.
type failure struct {
	domain string
	code   int
	text   string
}

func (f failure) String() string {
	text := strings.TrimSuffix(strings.TrimSpace(f.text), ".")
	if text == "" {
		text = "no description"
	}
	return fmt.Sprintf("%s (%s %d)", text, f.domain, f.code)
}

// known is one thing that users met. Texts are parts of what Core ML prints,
// in lower case; any of them decides, and so does any of the codes.
type known struct {
	texts []string
	codes []int
	hint  string
}

// knownFailures are in the order in which they are tried; sources are issues
// of public trackers as the reports quote them.
var knownFailures = []known{
	// Anemll/Anemll#5: after an update of the system or with a full disk.
	{[]string{"functionname must be nil"}, nil, "the system's copy of the model is stale or the disk is full: free 16 GB, restart, and run the .mlpackage instead of the .mlmodelc"},
	// Anemll/Anemll#14, FluidInference/FluidAudio.
	{[]string{"compiled model major version", "is newer than"}, nil, "the model was made for a newer macOS: update the system, or use the CPU engine with --backend cpu"},
	// Anemll/Anemll#39: packages of old converters on macOS 26.
	{[]string{"slice update", "update data type must match"}, nil, "the converter was older than this macOS allows: convert the package again, or use the CPU engine with --backend cpu"},
	// Anemll/Anemll#54, CoreML-LLM PR 147.
	{[]string{"multiarray shape", "does not match"}, nil, "the package's parts are of different context lengths: anepkg validate names them"},
	// FluidInference/FluidAudio#821.
	{[]string{"error in reading the mil network", "error in reading mil network"}, nil, "a file of the model is missing or cut short: anepkg validate names it"},
	// apple/coremltools#2758, CoreML-LLM's EXPERIMENTS.
	{[]string{"aneccompile"}, nil, "the Neural Engine's compiler refused the program, often because a part is too large: make smaller chunks, or use --compute-units cpuAndGPU"},
	// CoreML-LLM's MLSTATE_PATTERN: more states than the Neural Engine takes.
	{[]string{"0x1d", "program load failure"}, nil, "the Neural Engine refused the program, often for its states: use --compute-units cpuAndGPU"},
	// huggingface/swift-transformers#136.
	{[]string{"std::bad_cast", "bad_cast"}, nil, "the program uses an op form that this macOS does not know: update the system, or use the CPU engine with --backend cpu"},
	// apple/coremltools#1807.
	{[]string{"error in declaring network"}, nil, "Core ML cannot read the program or a weight: anepkg validate, then the CPU engine with --backend cpu"},
	// apple/coremltools#2325, getdictus/dictus-ios#20: weights missing or over 950 MB.
	{[]string{"error code: -14", "code -14"}, []int{-14}, "weights are missing or the part is too large for the Neural Engine: anepkg validate, then --compute-units cpuAndGPU"},
	{[]string{"no space left"}, nil, "make room on the disk: Core ML keeps a compiled copy of every model"},
	{[]string{"not a compiled model", "compile the model"}, nil, "give the .mlpackage, which is compiled first, or a complete .mlmodelc"},
}

// hint says what may help; "" when nothing is known.
func (f failure) hint() string {
	text := strings.ToLower(f.text)
	for _, k := range knownFailures {
		if k.fits(text, f.code) {
			return k.hint
		}
	}
	return ""
}

func (k known) fits(text string, code int) bool {
	for _, t := range k.texts {
		if strings.Contains(text, t) {
			return true
		}
	}
	for _, c := range k.codes {
		if c == code {
			return true
		}
	}
	return false
}

// failed makes an error of class diag.RunFailed out of an NSError.
func failed(path, what string, f failure) error {
	e := diag.Errorf(diag.In(path), diag.RunFailed, "%s: Core ML says: %s", what, f)
	if h := f.hint(); h != "" {
		return e.WithHint("%s", h)
	}
	return e.WithHint("the CPU engine may run it: --backend cpu")
}
