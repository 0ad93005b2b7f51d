package cpu_test

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/coreml/backendtest"
	"github.com/anepkg/anepkg/coreml/sharedtest"
	"github.com/anepkg/anepkg/coreml/tensor"
)

// TestControlFlow runs packages with cond, while_loop and lists; expected
// values are numpy's.
func TestControlFlow(t *testing.T) {
	dir := sharedtest.Path(t, "vectors", "models", "control_flow")
	var file struct {
		Cases []struct {
			Name, Package string
			Tolerance     backendtest.Tolerance
			Runs          []backendtest.Step
		}
	}
	readJSON(t, filepath.Join(dir, "control_flow.json"), &file)
	if len(file.Cases) == 0 {
		t.Fatal("no cases")
	}
	for _, c := range file.Cases {
		for _, p := range []coreml.Precision{coreml.Strict, coreml.Fast} {
			t.Run(c.Name+"/"+string(p), func(t *testing.T) {
				m, err := coreml.Open(context.Background(), os.DirFS(dir), c.Package)
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = m.Close() }()
				s := load(t, m, p)
				for range 2 { // the second time with recycled memory
					for i, r := range c.Runs {
						out, err := s.Predict(context.Background(), decoded(t, r.Inputs), nil)
						if err != nil {
							t.Fatal(err)
						}
						for name, want := range decoded(t, r.Outputs) {
							if err := backendtest.Diff(out[name], want, c.Tolerance); err != nil {
								t.Errorf("run %d: result %q %v", i, name, err)
							}
						}
					}
				}
			})
		}
	}
}

const randomProgram = `program(1.3)
{
    func main<ios18>() {
            tensor<fp32, [4096]> u = random_uniform(high = fp32(0x1.8p+1), low = fp32(-0x1p+0), SEED shape = tensor<int32, [1]>([4096]))[name = string("u")];
            tensor<fp32, [4096]> n = random_normal(mean = fp32(0x1p+1), SEED shape = tensor<int32, [1]>([4096]), stddev = fp32(0x1p-1))[name = string("n")];
            tensor<fp32, [4096]> b = random_bernoulli(prob = fp32(0x1p-2), SEED shape = tensor<int32, [1]>([4096]))[name = string("b")];
            tensor<fp32, [1, 4096]> c = random_categorical(mode = string("probs"), SEED size = int32(4096), x = tensor<fp32, [1, 3]>([[0x1p-1, 0x0p+0, 0x1p-1]]))[name = string("c")];
        } -> (u, n, b, c);
}
`

// moments returns mean and standard deviation.
func moments(x *tensor.Tensor) (mean, dev float64) {
	n := float64(x.Len())
	for i := range x.Len() {
		mean += x.Float64(i) / n
	}
	for i := range x.Len() {
		d := x.Float64(i) - mean
		dev += d * d / n
	}
	return mean, math.Sqrt(dev)
}

// TestRandom holds the random ops to the moments of their distributions
// (closed forms; the margin is six standard errors of 4096 draws) and to
// repeating themselves after each load, but not from call to call.
func TestRandom(t *testing.T) {
	want := map[string][2]float64{"u": {1, 4 / math.Sqrt(12)}, "n": {2, 0.5}, "b": {0.25, math.Sqrt(0.25 * 0.75)}, "c": {1, 1}}
	for _, seed := range []string{"", "seed = int32(7),"} {
		var first map[string]*tensor.Tensor
		for range 2 {
			s := load(t, openText(t, strings.ReplaceAll(randomProgram, "SEED", seed)), coreml.Fast)
			out, err := s.Predict(context.Background(), nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			again, err := s.Predict(context.Background(), nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			for name, w := range want {
				mean, dev := moments(out[name])
				if margin := 6 * w[1] / 64; math.Abs(mean-w[0]) > margin || math.Abs(dev-w[1]) > margin {
					t.Errorf("seed %q: %s has mean %g and deviation %g, want %g and %g", seed, name, mean, dev, w[0], w[1])
				}
				if backendtest.Diff(again[name], out[name], backendtest.Tolerance{}) == nil {
					t.Errorf("seed %q: %s repeats from call to call", seed, name)
				}
				if first != nil && backendtest.Diff(out[name], first[name], backendtest.Tolerance{}) != nil {
					t.Errorf("seed %q: %s does not repeat after a load", seed, name)
				}
			}
			first = out
		}
	}
}
