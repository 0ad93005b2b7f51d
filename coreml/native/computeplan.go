//go:build darwin || gnustep

package native

import (
	"context"
	"time"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/coreml/diag"
)

var (
	selLoadPlan    = use("MLComputePlan", "loadContentsOfURL:configuration:completionHandler:")
	selStructure   = use("MLComputePlan", "modelStructure")
	selUsage       = use("MLComputePlan", "computeDeviceUsageForMLProgramOperation:")
	selCost        = use("MLComputePlan", "estimatedCostOfMLProgramOperation:")
	selPreferred   = use("MLComputePlanDeviceUsage", "preferredComputeDevice")
	selSupported   = use("MLComputePlanDeviceUsage", "supportedComputeDevices")
	selWeight      = use("MLComputePlanCost", "weight")
	selProgram     = use("MLModelStructure", "program")
	selFunctions   = use("MLModelStructureProgram", "functions")
	selBlock       = use("MLModelStructureProgramFunction", "block")
	selOperations  = use("MLModelStructureProgramBlock", "operations")
	selOperator    = use("MLModelStructureProgramOperation", "operatorName")
	selOpOutputs   = use("MLModelStructureProgramOperation", "outputs")
	selOpBlocks    = use("MLModelStructureProgramOperation", "blocks")
	selValueName   = use("MLModelStructureProgramNamedValueType", "name")
	classPlan      = useClass("MLComputePlan")
	classCPU       = useClass("MLCPUComputeDevice")
	classGPU       = useClass("MLGPUComputeDevice")
	classNeural    = useClass("MLNeuralEngineComputeDevice")
	planBlockDepth = 16 // nested blocks that are followed
)

// planTimeout bounds the wait for a plan: Core ML compiles the model for it.
const planTimeout = 30 * time.Minute

// ComputePlan asks Core ML where it would run each op of a function ("" = the
// default one) with these compute units, through MLComputePlan of macOS 14.4.
// Older systems are an error of class diag.Unsupported.
func (b *Backend) ComputePlan(ctx context.Context, m *coreml.Model, function, units string) (*coreml.ComputePlan, error) {
	fn := m.Function(function)
	if fn == nil {
		return nil, diag.Errorf(diag.In(m.Path), diag.NotFound, "no function %q; the model has %s", function, functionNames(m))
	}
	n, err := unitsOf(units, b.host)
	if err != nil {
		return nil, err
	}
	if b.host.Before(planSince) || classPlan.obj == 0 {
		return nil, diag.Errorf(diag.Pos{}, diag.Unsupported, "compute plans need macOS %s; this is macOS %s", planSince, b.host)
	}
	if err := checkVersion(m, b.host); err != nil {
		return nil, err
	}
	dir, err := b.folder(ctx, m)
	if err != nil {
		return nil, err
	}
	plan, err := loadPlan(ctx, m, fn, dir, n)
	if err != nil {
		return nil, err
	}
	out := &coreml.ComputePlan{Function: fn.Name}
	err = pooled(func() error {
		defer release(plan)
		program := sendID(sendID(plan, selStructure), selProgram)
		if program == 0 {
			return diag.Errorf(diag.In(m.Path), diag.Unsupported, "the compute plan of Core ML is not of an ML Program")
		}
		f := sendID(sendID(program, selFunctions), selForKey, uintptr(nsString(fn.Name)))
		if f == 0 {
			return diag.Errorf(diag.In(m.Path), diag.NotFound, "the compute plan of Core ML has no function %s; it has %s", fn.Name, keysOf(sendID(program, selFunctions)))
		}
		out.Ops = planned(plan, sendID(f, selBlock), nil, 0)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// loadPlan waits for the plan, which the caller owns. Its block is called on
// another thread.
func loadPlan(ctx context.Context, m *coreml.Model, fn *coreml.Function, dir string, units int) (id, error) {
	type answer struct {
		plan id
		fail failure
	}
	ready := make(chan answer, 1)
	h := newHandler(2)
	h.fn = func(args [3]uintptr) {
		if args[0] != 0 {
			ready <- answer{plan: sendID(id(args[0]), selRetain)}
			return
		}
		ready <- answer{fail: readError(id(args[1]))}
	}
	_ = pooled(func() error {
		cfg := configuration(m, fn, units)
		defer release(cfg)
		send(classPlan.obj, selLoadPlan, uintptr(fileURL(dir)), uintptr(cfg), h.block)
		return nil
	})
	timer := time.NewTimer(planTimeout)
	defer timer.Stop()
	select {
	case a := <-ready:
		h.close()
		if a.plan == 0 {
			return 0, failed(m.Path, "the compute plan of function "+fn.Name, a.fail)
		}
		return a.plan, nil
	case <-ctx.Done(): // the block stays: it may still be called
		return 0, ctx.Err()
	case <-timer.C:
		return 0, diag.Errorf(diag.In(m.Path), diag.RunFailed, "no compute plan of function %s came from Core ML in %s", fn.Name, planTimeout)
	}
}

// planned lists the ops of a block and of the blocks inside them.
func planned(plan, block id, out []coreml.PlannedOp, depth int) []coreml.PlannedOp {
	if block == 0 || depth > planBlockDepth {
		return out
	}
	for _, op := range items(sendID(block, selOperations)) {
		p := coreml.PlannedOp{Op: goString(sendID(op, selOperator))}
		if outs := items(sendID(op, selOpOutputs)); len(outs) > 0 {
			p.Name = goString(sendID(outs[0], selValueName))
		}
		if u := sendID(plan, selUsage, uintptr(op)); u != 0 {
			p.Device = deviceOf(sendID(u, selPreferred))
			for _, d := range items(sendID(u, selSupported)) {
				p.Supported = append(p.Supported, deviceOf(d))
			}
		}
		if c := sendID(plan, selCost, uintptr(op)); c != 0 {
			w := sendFloat(c, selWeight)
			p.Cost = &w
		}
		out = append(out, p)
		for _, b := range items(sendID(op, selOpBlocks)) {
			out = planned(plan, b, out, depth+1)
		}
	}
	return out
}

func deviceOf(d id) coreml.Device {
	switch {
	case d == 0:
		return ""
	case isKind(d, classNeural):
		return coreml.DeviceNeuralEngine
	case isKind(d, classGPU):
		return coreml.DeviceGPU
	case isKind(d, classCPU):
		return coreml.DeviceCPU
	}
	return coreml.DeviceOther
}
