package native

import (
	"slices"
	"strings"

	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/coreml/tensor"
)

// Values of MLMultiArrayDataType: the kind in the high half (1 float, 2
// signed integer), the width in bits in the low half.
const (
	arrayFloat64 = 0x10000 | 64
	arrayFloat32 = 0x10000 | 32
	arrayFloat16 = 0x10000 | 16
	arrayInt32   = 0x20000 | 32
	arrayInt8    = 0x20000 | 8 // macOS 26
)

var arrayTypes = map[tensor.DType]int{
	tensor.FP64: arrayFloat64, tensor.FP32: arrayFloat32, tensor.FP16: arrayFloat16, tensor.Int32: arrayInt32, tensor.Int8: arrayInt8,
}

// arrayType returns the MLMultiArrayDataType of d.
func arrayType(d tensor.DType) (int, bool) {
	n, ok := arrayTypes[d]
	return n, ok
}

// elementType is the reverse of arrayType.
func elementType(n int) tensor.DType {
	for d, v := range arrayTypes {
		if v == n {
			return d
		}
	}
	return tensor.Invalid
}

// computeUnits are the values of MLComputeUnits by the names of Swift.
var computeUnits = map[string]int{"": 2, "all": 2, "cpuOnly": 0, "cpuAndGPU": 1, "cpuAndNeuralEngine": 3}

// unitsOf reads a name of compute units.
func unitsOf(name string, host Version) (int, error) {
	n, ok := computeUnits[name]
	if !ok {
		var names []string
		for s := range computeUnits {
			if s != "" {
				names = append(names, s)
			}
		}
		slices.Sort(names)
		return 0, diag.Errorf(diag.Pos{}, diag.Usage, "compute units %q: want %s", name, strings.Join(names, ", "))
	}
	if name == "cpuAndNeuralEngine" && host.Before(neuralCPUSince) {
		return 0, diag.Errorf(diag.Pos{}, diag.Unsupported, "compute units cpuAndNeuralEngine need macOS %s; this is macOS %s", neuralCPUSince, host).
			WithHint("use --compute-units all")
	}
	return n, nil
}
