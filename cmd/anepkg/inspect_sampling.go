package main

import (
	"io"

	"github.com/anepkg/anepkg/inspect"
	"github.com/anepkg/anepkg/manifest"
	"github.com/anepkg/anepkg/runner"
)

// inspectReport is what inspect prints: the report of the package, what its
// files recommend for sampling, and its property lists.
type inspectReport struct {
	inspect.Report
	Sampling []samplingValue `json:"recommended_sampling"`
	Plists   []propertyList  `json:"property_lists"`

	choice sampling
}

func withSampling(r *inspect.Report, pkg *manifest.Package) *inspectReport {
	out := &inspectReport{Report: *r, Plists: propertyLists(pkg), choice: sampling{cfg: runner.Recommended(pkg).Config()}}
	for _, v := range runner.Recommended(pkg).Values {
		value := any(v.Value)
		if v.Name == runner.DoSample {
			value = v.Value == 1
		}
		out.Sampling = append(out.Sampling, samplingValue{string(v.Name), value, v.Source})
	}
	out.choice.values = out.Sampling
	return out
}

// WriteText implements report.
func (r *inspectReport) WriteText(w io.Writer, color bool) error {
	if err := r.Report.WriteText(w, color); err != nil {
		return err
	}
	if err := writePropertyLists(w, r.Plists); err != nil || len(r.Sampling) == 0 {
		return err
	}
	text := r.choice.String()
	if text == "" {
		text = "sampling: greedy (" + shortSource(r.Sampling[0].Source) + ")"
	}
	_, err := io.WriteString(w, "\nRecommended "+text+"\n")
	return err
}
