package coreml_test

import (
	"testing"

	"github.com/anepkg/anepkg/coreml"
)

func TestComputePlanShare(t *testing.T) {
	c := func(x float64) *float64 { return &x }
	tests := []struct {
		name string
		ops  []coreml.PlannedOp
		want float64 // of the Neural Engine
	}{
		{"empty", nil, 0},
		{"constants only", []coreml.PlannedOp{{Op: "const"}}, 0},
		{"by cost", []coreml.PlannedOp{{Device: coreml.DeviceNeuralEngine, Cost: c(0.6)}, {Device: coreml.DeviceCPU, Cost: c(0.2)}, {Op: "const"}}, 0.75},
		{"by count", []coreml.PlannedOp{{Device: coreml.DeviceNeuralEngine}, {Device: coreml.DeviceCPU}, {Op: "const"}}, 0.5},
		{"costs of nought", []coreml.PlannedOp{{Device: coreml.DeviceNeuralEngine, Cost: c(0)}, {Device: coreml.DeviceGPU, Cost: c(0)}}, 0.5},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			p := coreml.ComputePlan{Ops: tc.ops}
			if got := p.Share(coreml.DeviceNeuralEngine); got < tc.want-1e-12 || got > tc.want+1e-12 {
				t.Errorf("got %g, want %g", got, tc.want)
			}
		})
	}
}
