package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/coreml/backends"
	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/manifest"
)

// planFlags are the flags of inspect --compute-plan.
func planFlags() []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: "compute-plan", Usage: "show instead where Core ML would run each op (macOS 14.4 or later)"},
		unitsFlag(),
		&cli.Float64Flag{Name: "min-residency", Usage: "with --compute-plan: fail when a function runs less than `SHARE` (0 to 1) on the Neural Engine"},
	}
}

// planJSON is the result of inspect --compute-plan.
type planJSON struct {
	ComputeUnits string         `json:"compute_units"`
	Functions    []planFunction `json:"functions"`
	// Residency is the lowest share of a function on the Neural Engine.
	Residency    float64  `json:"residency"`
	MinResidency *float64 `json:"min_residency"`
	Pass         bool     `json:"pass"`
}

// planFunction is where the ops of one function would run. Residency is the
// Neural Engine's share of the estimated cost, or of the ops when the plan
// has no costs.
type planFunction struct {
	Part      string                  `json:"part"`
	Function  string                  `json:"function"`
	Residency float64                 `json:"residency"`
	Devices   map[coreml.Device]int   `json:"devices"` // ops on each
	Cost      map[coreml.Device]share `json:"cost"`    // share of each
	Ops       []planOp                `json:"ops"`
}

type share = float64

type planOp struct {
	Op        string          `json:"op"`
	Name      string          `json:"name"`
	Device    coreml.Device   `json:"device"`
	Supported []coreml.Device `json:"supported"`
	Cost      *float64        `json:"cost"`
}

// computePlan does inspect --compute-plan.
func (t *tool) computePlan(c *cli.Context) error {
	if v := c.String("compute-units"); c.IsSet("compute-units") && !contains(flagWords["compute-units"], v) {
		return usagef("--compute-units %s: want %s", v, orList(flagWords["compute-units"])).WithHint("%s", didYouMean(v, flagWords["compute-units"], ""))
	}
	least := c.Float64("min-residency")
	if !(least >= 0 && least <= 1) {
		return usagef("--min-residency %g: want 0 to 1", least)
	}
	return t.withPackage(c, func(ctx context.Context, pkg *manifest.Package) error {
		out := planJSON{ComputeUnits: c.String("compute-units"), Residency: 1, Pass: true}
		if out.ComputeUnits == "" {
			out.ComputeUnits = "all"
		}
		if c.IsSet("min-residency") {
			out.MinResidency = &least
		}
		for _, place := range loadPlaces(ctx, pkg) {
			p, err := backends.ComputePlan(ctx, place.model, place.function, c.String("compute-units"), t.backendOptions())
			if err != nil {
				return err
			}
			f := planOf(partLabel(place.part), p)
			out.Functions = append(out.Functions, f)
			out.Residency = min(out.Residency, f.Residency)
		}
		if len(out.Functions) == 0 {
			return diag.Errorf(diag.In(pkg.Path), diag.NotFound, "the package has no model that can be read")
		}
		out.Pass = out.MinResidency == nil || out.Residency >= least
		if t.global.json {
			t.writeJSON("anepkg.plan/1", out)
		} else {
			t.planText(&out)
		}
		if !out.Pass {
			return errFindings
		}
		return nil
	})
}

func planOf(part string, p *coreml.ComputePlan) planFunction {
	f := planFunction{Part: part, Function: p.Function, Residency: p.Share(coreml.DeviceNeuralEngine), Devices: map[coreml.Device]int{}, Cost: map[coreml.Device]share{}}
	for _, op := range p.Ops {
		f.Ops = append(f.Ops, planOp{op.Op, op.Name, op.Device, op.Supported, op.Cost})
		if op.Device != "" {
			f.Devices[op.Device]++
		}
	}
	for d := range f.Devices {
		f.Cost[d] = p.Share(d)
	}
	return f
}

// elsewhere counts the op types that would not run on the Neural Engine, the
// most frequent first.
func (f *planFunction) elsewhere() string {
	count := map[string]int{}
	for _, op := range f.Ops {
		if op.Device != "" && op.Device != coreml.DeviceNeuralEngine {
			count[op.Op]++
		}
	}
	names := slices.SortedFunc(maps.Keys(count), func(a, b string) int {
		if count[a] != count[b] {
			return count[b] - count[a]
		}
		return strings.Compare(a, b)
	})
	const shown = 5
	more := ""
	if len(names) > shown {
		more = fmt.Sprintf(", %d more", len(names)-shown)
		names = names[:shown]
	}
	for i, n := range names {
		names[i] = fmt.Sprintf("%s x%d", n, count[n])
	}
	return strings.Join(names, ", ") + more
}

func (t *tool) planText(out *planJSON) {
	st := t.style(t.stdoutTTY)
	t.printf("%s, compute units %s\n", plural(len(out.Functions), "function"), out.ComputeUnits)
	tb := table{indent: "  ", right: map[int]bool{2: true, 3: true, 4: true, 5: true}}
	tb.head(st, "part", "function", "neural engine", "gpu", "cpu", "share", "not on the neural engine")
	for i := range out.Functions {
		f := &out.Functions[i]
		paint := st.green
		if out.MinResidency != nil && f.Residency < *out.MinResidency {
			paint = st.red
		}
		tb.row(f.Part, f.Function, fmt.Sprint(f.Devices[coreml.DeviceNeuralEngine]), fmt.Sprint(f.Devices[coreml.DeviceGPU]), fmt.Sprint(f.Devices[coreml.DeviceCPU]),
			cell{fmt.Sprintf("%.1f%%", 100*f.Residency), paint}, f.elsewhere())
	}
	tb.write(t.stdout)
	switch {
	case out.MinResidency == nil:
		t.printf("the lowest share is %.1f%%\n", 100*out.Residency)
	case out.Pass:
		t.printf("%s: the lowest share is %.1f%%, wanted is %.1f%%\n", st.green("pass"), 100*out.Residency, 100**out.MinResidency)
	default:
		t.printf("%s: the lowest share is %.1f%%, wanted is %.1f%%\n", st.red("FAIL"), 100*out.Residency, 100**out.MinResidency)
	}
}
