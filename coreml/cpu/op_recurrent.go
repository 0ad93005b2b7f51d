package cpu

import (
	"fmt"
	"math"

	"github.com/anepkg/anepkg/coreml/tensor"
)

var recurrentOps = []opDef{
	{name: "lstm", since: 15, types: "fp16 fp32", build: buildLSTM,
		limit: "activation scaled_tanh, whose factors nothing documents; hard_sigmoid is min(max(0.2 x + 0.5, 0), 1)",
		doc:   "long short-term memory over x [s, b, I] with weights [4H, I] and [4H, H], gates in the order input, forget, output, cell; results: states [s, b, D*H] (or the last [1, b, D*H]), last state and last cell [b, D*H]; in reverse y[t] belongs to x[t]"},
	{name: "gru", since: 15, types: "fp16 fp32", build: buildGRU,
		limit: "activation scaled_tanh, as in lstm",
		doc:   "gated recurrent unit over x [s, b, I] with weights [3H, I] and [3H, H], gates in the order reset, new, update; h = (1-z)*o + z*h with o = f(W x + b + r*(U h)); with reset_after bias stands inside the reset product and input_bias outside; results: states [s, b, H] (or the last), last state [b, H]"},
	{name: "rnn", since: 15, types: "fp16 fp32", build: buildRNN,
		limit: "activation scaled_tanh, as in lstm",
		doc:   "simple recurrent network: h = f(W x + U h + b) over x [s, b, I]; results: states [s, b, H] (or the last), last state [b, H]"},
}

// activation returns a named activation of the recurrent ops.
func (b *builder) activation(arg, def string) func(float32) float32 {
	switch name := b.strConst(arg, def); name {
	case "sigmoid":
		return func(x float32) float32 { return float32(1 / (1 + math.Exp(-float64(x)))) }
	case "tanh":
		return func(x float32) float32 { return float32(math.Tanh(float64(x))) }
	case "relu":
		return func(x float32) float32 { return max(x, 0) }
	case "linear":
		return func(x float32) float32 { return x }
	case "hard_sigmoid":
		return func(x float32) float32 { return min(max(0.2*x+0.5, 0), 1) }
	default:
		b.failf("%s is %q, want sigmoid, tanh, relu, linear or hard_sigmoid", arg, name)
		return nil
	}
}

// pass is one direction of a recurrent op.
type pass struct {
	wx, wh, bias slot
	reverse      bool
}

func (b *builder) pass(suffix string, reverse bool) pass {
	return pass{b.input("weight_ih" + suffix), b.input("weight_hh" + suffix), b.optional("bias" + suffix), reverse}
}

// recurrent is what the three ops share.
type recurrent struct {
	x, h     slot
	gates    int
	passes   []pass
	sequence bool
}

func (b *builder) recurrent(gates int) *recurrent {
	r := &recurrent{x: b.input("x"), h: b.input("initial_h"), gates: gates}
	r.sequence = b.boolConst("output_sequence", false)
	switch dir := b.strConst("direction", "forward"); {
	case dir == "forward" || dir == "reverse":
		r.passes = []pass{b.pass("", dir == "reverse")}
	case dir == "bidirectional" && gates == 4:
		r.passes = []pass{b.pass("", false), b.pass("_back", true)}
	default:
		b.failf("direction is %q, want forward, reverse or (lstm only) bidirectional", dir)
	}
	return r
}

// unroll is one pass over a sequence. Matrices have a column for each batch
// (and step): z [gates*H][s*b] is the part of the gates that x gives, zh
// [gates*H][b] the part that h gives, h [H][b] the state.
type unroll struct {
	steps, batch, hidden int
	z, zh, h             []float32
	wh                   weight
	at                   int // first column of z in this step
}

// x returns the part of gate g, unit k, batch j that comes from the input.
func (u *unroll) x(g, k, j int) float32 {
	return u.z[(g*u.hidden+k)*u.steps*u.batch+u.at+j]
}

// r returns the part that comes from the last state.
func (u *unroll) r(g, k, j int) float32 { return u.zh[(g*u.hidden+k)*u.batch+j] }

// start checks the shapes of a pass and multiplies the whole input.
func (r *recurrent) start(c *call, p pass, dir int) (*unroll, error) {
	x, h, wi, wh := c.in[r.x], c.in[r.h], c.in[p.wx], c.in[p.wh]
	if x.rank() != 3 || wh.rank() != 2 {
		return nil, fmt.Errorf("x has shape %s, weight_hh %s, want [s, b, I] and [%d*H, H]", tensor.ShapeString(x.shape), tensor.ShapeString(wh.shape), r.gates)
	}
	for _, v := range []*value{x, h, wi, wh} {
		if !v.isFloat() {
			return nil, fmt.Errorf("an operand is %s, want fp16 or fp32", v.dtype)
		}
	}
	u := &unroll{steps: x.shape[0], batch: x.shape[1], hidden: wh.shape[1]}
	in, rows := x.shape[2], r.gates*u.hidden
	if err := wantShape("weight_hh", wh, rows, u.hidden); err != nil {
		return nil, err
	}
	if err := wantShape("weight_ih", wi, rows, in); err != nil {
		return nil, err
	}
	if err := wantShape("initial_h", h, u.batch, len(r.passes)*u.hidden); err != nil {
		return nil, err
	}
	if u.steps == 0 {
		return nil, fmt.Errorf("x has shape %s, a sequence of no steps", tensor.ShapeString(x.shape))
	}
	bias, err := c.bias(p.bias, rows)
	if err != nil {
		return nil, err
	}
	n := u.steps * u.batch
	xt := c.scratch(n * in)
	copyStrided(c, &c.copyF, xt, c.f32(r.x), 0, []int{in, n}, []int{1, in})
	u.z, u.zh = c.scratch(bounded([]int{rows, n})), c.scratch(rows*u.batch)
	c.mulRows(u.z, wi.floatMatrix(), 0, rows, xt, n, bias)
	u.wh = (&value{dtype: wh.dtype, shape: wh.shape, f: c.f32(p.wh)}).floatMatrix()
	u.h = r.columns(c, r.h, u, dir)
	return u, nil
}

// columns returns the part of a state [b, D*H] that belongs to direction dir
// as [H][b].
func (r *recurrent) columns(c *call, s slot, u *unroll, dir int) []float32 {
	out := c.scratch(u.hidden * u.batch)
	copyStrided(c, &c.copyF, out, c.f32(s), dir*u.hidden, []int{u.hidden, u.batch}, []int{1, len(r.passes) * u.hidden})
	return out
}

// run executes every pass. prepare makes the function that advances the
// state of a pass by one step; finish is called at the end of it.
func (r *recurrent) run(c *call, prepare func(u *unroll, dir int) (step func(), finish func(), err error)) error {
	var y, last []float32
	for dir, p := range r.passes {
		u, err := r.start(c, p, dir)
		if err != nil {
			return err
		}
		step, finish, err := prepare(u, dir)
		if err != nil {
			return err
		}
		width := len(r.passes) * u.hidden
		if dir == 0 {
			rows := 1
			if r.sequence {
				rows = u.steps
			}
			y, last = c.newFloat(0, []int{rows, u.batch, width}), c.newFloat(1, []int{u.batch, width})
		}
		for n := range u.steps {
			t := n
			if p.reverse {
				t = u.steps - 1 - n
			}
			u.at = t * u.batch
			c.mulRows(u.zh, u.wh, 0, r.gates*u.hidden, u.h, u.batch, nil)
			step()
			if r.sequence {
				u.store(y[t*u.batch*width:], u.h, dir, width)
			}
		}
		if !r.sequence {
			u.store(y, u.h, dir, width)
		}
		u.store(last, u.h, dir, width)
		finish()
	}
	return nil
}

// store writes a state [H][b] to the columns of direction dir of [b, width].
func (u *unroll) store(dst, state []float32, dir, width int) {
	for k := range u.hidden {
		for j := range u.batch {
			dst[j*width+dir*u.hidden+k] = state[k*u.batch+j]
		}
	}
}

func buildRNN(b *builder) kernel {
	r := b.recurrent(1)
	f := b.activation("activation", "tanh")
	b.results(2)
	return func(c *call) error {
		return r.run(c, func(u *unroll, _ int) (func(), func(), error) {
			return func() {
				for k := range u.hidden {
					for j := range u.batch {
						u.h[k*u.batch+j] = f(u.x(0, k, j) + u.r(0, k, j))
					}
				}
			}, func() {}, nil
		})
	}
}
