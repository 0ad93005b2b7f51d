package backendtest

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/coreml/tensor"
)

// RunModels runs real networks whose outputs an outside oracle computed:
// Silero VAD in all its encodings with its state carried over the calls, its
// parts, basic-pitch, small samples, and packages with cond, while_loop and
// lists. Only Precision and Threads of o are used. shared is the folder of shared data
// (vectors/models and models below it).
func RunModels(t *testing.T, b coreml.Backend, o Options, shared string) {
	m := models{backend: b, opts: o, shared: shared, vectors: filepath.Join(shared, "vectors", "models")}
	t.Run("silero", m.silero)
	t.Run("silero-parts", m.sileroParts)
	t.Run("basic-pitch", m.basicPitch)
	t.Run("small", m.small)
	t.Run("control_flow", m.controlFlow)
}

type models struct {
	backend         coreml.Backend
	opts            Options
	shared, vectors string
}

// readJSON reads a file of vectors.
func (m models) readJSON(t *testing.T, name string, v any) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(m.vectors, name))
	if err == nil {
		err = json.Unmarshal(data, v)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// floats reads a file of float32.
func (m models) floats(t *testing.T, name string) []float32 {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(m.vectors, name))
	if err != nil {
		t.Fatal(err)
	}
	out := make([]float32, len(data)/4)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
	}
	return out
}

// load opens the only model in a folder of samples and loads its default
// function; both are closed with the test. A folder that holds a program is
// itself the model, whatever its name.
func (m models) load(t *testing.T, sample string) coreml.Session {
	return m.loadFunction(t, sample, "")
}

func (m models) loadFunction(t *testing.T, sample, function string) coreml.Session {
	t.Helper()
	fsys := os.DirFS(m.shared)
	name := sample
	if entries, err := os.ReadDir(filepath.Join(m.shared, sample)); err == nil && !isModel(sample) {
		for _, e := range entries {
			if !isModel(e.Name()) {
				continue
			}
			if name != sample {
				t.Fatalf("%s holds more than one model", sample)
			}
			name = path.Join(sample, e.Name())
		}
	}
	model, err := coreml.Open(t.Context(), fsys, name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = model.Close() })
	s, err := m.backend.Load(t.Context(), model, function, coreml.LoadOptions{Precision: m.opts.Precision, Threads: m.opts.Threads})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func isModel(name string) bool {
	return strings.HasSuffix(name, ".mlmodelc") || strings.HasSuffix(name, ".mlpackage")
}

// predict feeds float32 values, in the types that the function wants.
func predict(ctx context.Context, s coreml.Session, inputs map[string][]float32, shapes map[string][]int) (map[string]*tensor.Tensor, error) {
	in := map[string]*tensor.Tensor{}
	for name, x := range inputs {
		f := s.Function().Input(name)
		if f == nil {
			return nil, fmt.Errorf("the function has no input %q", name)
		}
		v, err := tensor.FromFloat32(f.DType, shapes[name], x)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		in[name] = v
	}
	return s.Predict(ctx, in, nil)
}

// within fails the test when a result is further from what is wanted than
// tol, absolute.
func within(t *testing.T, what string, got *tensor.Tensor, want []float32, tol float64) {
	t.Helper()
	if got == nil || got.Len() != len(want) {
		t.Fatalf("%s is %v, want %d elements", what, got, len(want))
	}
	for i, w := range want {
		if d := math.Abs(got.Float64(i) - float64(w)); !(d <= tol) {
			t.Fatalf("%s: element %d is %g, want %g, allowed %g", what, i, got.Float64(i), w, tol)
		}
	}
}

// closeness is a tolerance for the three outputs of Silero.
type closeness struct{ Prob, H, C float64 }

func (m models) silero(t *testing.T) {
	var file struct {
		Sequences []struct {
			Name  string
			Steps int
		}
		Variants map[string]struct {
			Compiled  string
			Packages  []string
			Expected  string
			Tolerance map[string]closeness `json:"tolerance_abs"`
		}
	}
	m.readJSON(t, "silero.json", &file)
	if len(file.Variants) == 0 || len(file.Sequences) == 0 {
		t.Fatal("silero.json names no variants or sequences")
	}
	for name, v := range file.Variants {
		prefix := strings.TrimSuffix(v.Expected, "<seq>.*")
		for _, sample := range append([]string{v.Compiled}, v.Packages...) {
			t.Run(name+"/"+path.Base(sample), func(t *testing.T) {
				s := m.load(t, sample)
				for _, q := range file.Sequences {
					m.sileroSequence(t, s, q.Name, q.Steps, prefix, v.Tolerance[q.Name])
				}
			})
		}
	}
}

// sileroSequence feeds the windows of one signal, the state carried over.
func (m models) sileroSequence(t *testing.T, s coreml.Session, seq string, steps int, prefix string, tol closeness) {
	t.Helper()
	const window, hidden = 576, 128
	audio := m.floats(t, "silero."+seq+".audio.f32")
	prob := m.floats(t, prefix+seq+".prob.f32")
	h, c := make([]float32, hidden), make([]float32, hidden)
	if strings.HasPrefix(seq, "random_state") {
		h, c = m.floats(t, "silero."+seq+".h0.f32"), m.floats(t, "silero."+seq+".c0.f32")
	}
	if len(audio) != steps*window || len(prob) != steps {
		t.Fatalf("%s: %d samples and %d probabilities for %d steps", seq, len(audio), len(prob), steps)
	}
	shapes := map[string][]int{"audio_input": {1, window}, "hidden_state": {1, hidden}, "cell_state": {1, hidden}}
	for i := range steps {
		out, err := predict(t.Context(), s, map[string][]float32{
			"audio_input": audio[i*window : (i+1)*window], "hidden_state": h, "cell_state": c}, shapes)
		if err != nil {
			t.Fatal(err)
		}
		within(t, fmt.Sprintf("%s, step %d: vad_output", seq, i), out["vad_output"], prob[i:i+1], tol.Prob)
		h, c = out["new_hidden_state"].Float32s(), out["new_cell_state"].Float32s()
	}
	last := func(all, only string) []float32 {
		if _, err := os.Stat(filepath.Join(m.vectors, prefix+seq+only)); err == nil {
			return m.floats(t, prefix+seq+only)
		}
		x := m.floats(t, prefix+seq+all)
		return x[len(x)-hidden:]
	}
	hv, err := tensor.FromFloat32(tensor.FP32, []int{hidden}, h)
	if err != nil {
		t.Fatal(err)
	}
	cv, err := tensor.FromFloat32(tensor.FP32, []int{hidden}, c)
	if err != nil {
		t.Fatal(err)
	}
	within(t, seq+": new_hidden_state", hv, last(".h.f32", ".h_last.f32"), tol.H)
	within(t, seq+": new_cell_state", cv, last(".c.f32", ".c_last.f32"), tol.C)
}

func (m models) sileroParts(t *testing.T) {
	var file struct {
		Parts map[string]struct {
			Package   string
			Cases     []struct{ Inputs, Outputs map[string][]int }
			Tolerance map[string]float64 `json:"tolerance_abs"`
		}
	}
	m.readJSON(t, "silero.json", &file)
	for part, p := range file.Parts {
		t.Run(part, func(t *testing.T) {
			s := m.load(t, p.Package)
			for i, c := range p.Cases {
				in := map[string][]float32{}
				for name := range c.Inputs {
					in[name] = m.floats(t, fmt.Sprintf("silero.%s.%d.in.%s.f32", part, i, name))
				}
				out, err := predict(t.Context(), s, in, c.Inputs)
				if err != nil {
					t.Fatal(err)
				}
				for name := range c.Outputs {
					within(t, fmt.Sprintf("case %d: %s", i, name), out[name], m.floats(t, fmt.Sprintf("silero.%s.%d.out.%s.f32", part, i, name)), p.Tolerance[name])
				}
			}
		})
	}
}

func (m models) basicPitch(t *testing.T) {
	var file struct {
		Sample string
		Cases  []struct {
			Name       string
			Comparable bool
			Outputs    map[string]struct{}
			Tolerance  float64 `json:"tolerance_abs"`
		}
	}
	m.readJSON(t, "basic_pitch.json", &file)
	s := m.load(t, file.Sample)
	for _, c := range file.Cases {
		if !c.Comparable {
			continue // the program divides 0 by 0 there, its oracle does not
		}
		t.Run(c.Name, func(t *testing.T) {
			audio := m.floats(t, "basic_pitch."+c.Name+".audio.f32")
			out, err := predict(t.Context(), s, map[string][]float32{"input_2": audio}, map[string][]int{"input_2": {1, len(audio), 1}})
			if err != nil {
				t.Fatal(err)
			}
			if len(c.Outputs) == 0 {
				t.Fatal("no outputs to compare")
			}
			for name := range c.Outputs {
				within(t, name, out[name], m.floats(t, "basic_pitch."+c.Name+"."+name+".f32"), c.Tolerance)
			}
		})
	}
}

func (m models) small(t *testing.T) {
	var file struct {
		Cases []struct {
			Step
			Sample    string
			Tolerance Tolerance
			Error     bool
		}
	}
	m.readJSON(t, "small.json", &file)
	if len(file.Cases) == 0 {
		t.Fatal("no cases")
	}
	for i, c := range file.Cases {
		t.Run(fmt.Sprintf("%s/%d", path.Base(c.Sample), i), func(t *testing.T) {
			s := m.loadFunction(t, c.Sample, c.Function)
			in, err := tensorsOf(c.Inputs)
			if err != nil {
				t.Fatal(err)
			}
			got, err := s.Predict(t.Context(), in, nil)
			if c.Error {
				if err == nil {
					t.Error("got no error, want one")
				}
				return
			}
			if err == nil {
				err = compareAll(got, c.Outputs, c.Tolerance, nil)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// controlFlow runs each package several times in one session: branches and
// iteration counts depend on the inputs.
func (m models) controlFlow(t *testing.T) {
	var file struct {
		Cases []struct {
			Name, Package string
			Tolerance     Tolerance
			Runs          []Step
		}
	}
	m.readJSON(t, "control_flow/control_flow.json", &file)
	if len(file.Cases) == 0 {
		t.Fatal("no cases")
	}
	for _, c := range file.Cases {
		t.Run(c.Name, func(t *testing.T) {
			s := m.load(t, path.Join("vectors/models/control_flow", c.Package))
			for i, r := range c.Runs {
				in, err := tensorsOf(r.Inputs)
				if err != nil {
					t.Fatal(err)
				}
				got, err := s.Predict(t.Context(), in, nil)
				if err == nil {
					err = compareAll(got, r.Outputs, c.Tolerance, nil)
				}
				if err != nil {
					t.Errorf("run %d: %v", i, err)
				}
			}
		})
	}
}
