package cpu_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/coreml/backendtest"
	"github.com/anepkg/anepkg/coreml/cpu"
)

// spatialOps are the ops whose integer arguments give sizes, steps and edges.
var spatialOps = []string{"avg_pool", "max_pool", "l2_pool", "conv", "conv_transpose",
	"upsample_nearest_neighbor", "upsample_bilinear", "resize_nearest_neighbor", "resize_bilinear", "resize",
	"crop", "crop_resize", "affine", "resample",
	"batch_norm", "instance_norm", "l2_norm", "layer_norm", "local_response_norm",
	"depth_to_space", "space_to_depth", "space_to_batch", "batch_to_space", "pixel_shuffle", "pixel_unshuffle",
	"sliding_windows", "pad", "flatten2d"}

var (
	intList   = regexp.MustCompile(`val = (?:tensor<u?int32, \[[0-9, ]+\]>|u?int32)\(\[*([-0-9, \[\]]+?)\]*\)`)
	realConst = regexp.MustCompile(`val = fp(?:16|32)\(([^)]+)\)`)
	number    = regexp.MustCompile(`-?\d+`)
	result    = regexp.MustCompile(`(tensor<\w+, \[)([0-9, ]+)(\]> result = )`)
)

// oddPrograms are variants of a program in which one number of one constant
// is replaced. The declared shape of the result is opened up, so that the
// kernel's own checks are met and not only the comparison with it.
func oddPrograms(program string) []string {
	program = result.ReplaceAllStringFunc(program, func(s string) string {
		m := result.FindStringSubmatch(s)
		return m[1] + number.ReplaceAllString(m[2], "?") + m[3]
	})
	var out []string
	swap := func(from, to int, values ...string) {
		for _, v := range values {
			out = append(out, program[:from]+v+program[to:])
		}
	}
	for _, m := range intList.FindAllStringSubmatchIndex(program, -1) {
		list := program[m[2]:m[3]]
		for _, n := range number.FindAllStringIndex(list, -1) {
			swap(m[2]+n[0], m[2]+n[1], "-2147483648", "-1", "0", "1", "5", "700", "2147483647")
		}
		swap(m[2], m[3], number.ReplaceAllString(list, "2147483647"), number.ReplaceAllString(list, "-3"))
	}
	for _, m := range realConst.FindAllStringSubmatchIndex(program, -1) {
		swap(m[2], m[3], "nan", "inf", "-1", "0", "0x1p-14", "60000")
	}
	return out
}

// TestSpatialCases runs what the shared vectors leave out of the spatial ops:
// testdata/spatial.py says where the expected values come from.
func TestSpatialCases(t *testing.T) { runCases(t, "spatial.json", 28) }

// TestOddParameters replaces each number among the constants of the suite's
// spatial ops. Whatever the program then says, the engine answers with a
// result or an error of its own, never with a failure of the Go runtime.
func TestOddParameters(t *testing.T) {
	if testing.Short() {
		t.Skip("runs thousands of programs")
	}
	ops := spatialOps
	if *onlyOps != "" {
		ops = strings.Split(*onlyOps, ",")
	}
	for _, op := range ops {
		t.Run(op, func(t *testing.T) {
			cases, err := backendtest.Cases(op)
			if err != nil {
				t.Fatal(err)
			}
			ran := 0
			for i := range cases {
				if strings.HasSuffix(cases[i].Name, "_fp32") { // differs from fp16 in numbers only
					continue
				}
				for _, p := range oddPrograms(cases[i].Program) {
					c := cases[i]
					c.Program, c.Error = p, false
					ran++
					if err := oddRun(t, &c); err != nil {
						t.Errorf("%s: %v\n%s", c.Name, err, p)
					}
				}
			}
			if ran == 0 {
				t.Error("no constant was found")
			}
		})
	}
}

// oddRun runs one variant and returns what must not happen.
func oddRun(t *testing.T, c *backendtest.Case) error {
	err := backendtest.Check(t.Context(), cpu.New(), c, backendtest.Options{Precision: coreml.Strict, Threads: 1})
	if err == nil {
		return nil
	}
	for _, bad := range []string{"runtime error", "makeslice", "slice bounds", "index out of range [", "nil pointer", "divide by zero", "parallel"} {
		if strings.Contains(err.Error(), bad) {
			return err
		}
	}
	return nil
}
