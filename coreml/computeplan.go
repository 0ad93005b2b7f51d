package coreml

// ComputePlan says where Core ML would run the ops of one function, and what
// share of the time each is estimated to take.
type ComputePlan struct {
	Function string
	Ops      []PlannedOp
}

// PlannedOp is one op of a plan, in the order of the program; ops of nested
// blocks follow the op that holds them.
type PlannedOp struct {
	Op        string   // operation type
	Name      string   // result identifier; "" without one
	Device    Device   // where it would run; "" for constants and what the plan leaves out
	Supported []Device // where it could run
	// Cost is the op's share of the whole function's time, 0 to 1; nil when
	// the plan gives none.
	Cost *float64
}

// Device is a processor that Core ML knows.
type Device string

// The devices.
const (
	DeviceCPU          Device = "cpu"
	DeviceGPU          Device = "gpu"
	DeviceNeuralEngine Device = "neural_engine"
	DeviceOther        Device = "other"
)

// Share is the part of the function, 0 to 1, that a device would run: by the
// estimated costs when any op has one, else by the number of ops. Ops without
// a device, constants among them, do not count; 0 when no op has one.
func (p *ComputePlan) Share(d Device) float64 {
	var on, all, ops, placed float64
	for _, op := range p.Ops {
		if op.Device == "" {
			continue
		}
		placed++
		cost := 0.0
		if op.Cost != nil {
			cost = *op.Cost
		}
		all += cost
		if op.Device == d {
			on += cost
			ops++
		}
	}
	switch {
	case all > 0:
		return on / all
	case placed > 0:
		return ops / placed
	}
	return 0
}
