package cpu

import "math"

// lstmArgs are the arguments that only lstm has.
type lstmArgs struct {
	*recurrent
	c             slot
	peephole      []slot // one for each direction, or absent
	gate, cell, f func(float32) float32
	clip          float32
}

func buildLSTM(b *builder) kernel {
	l := &lstmArgs{recurrent: b.recurrent(4), c: b.input("initial_c")}
	l.gate = b.activation("recurrent_activation", "sigmoid")
	l.cell = b.activation("cell_activation", "tanh")
	l.f = b.activation("activation", "tanh")
	l.clip = float32(b.floatConst("clip", math.Inf(1)))
	if !(l.clip > 0) {
		b.failf("clip is %g, want a number above 0", l.clip)
	}
	l.peephole = []slot{b.optional("peephole")}
	if len(l.passes) == 2 {
		l.peephole = append(l.peephole, b.optional("peephole_back"))
	} else {
		// Operands of the other direction may be there; they play no role.
		for _, name := range []string{"weight_ih_back", "weight_hh_back", "bias_back", "peephole_back"} {
			b.optional(name)
		}
	}
	b.results(3)
	return func(c *call) error {
		var last []float32
		return l.run(c, func(u *unroll, dir int) (func(), func(), error) {
			if err := wantShape("initial_c", c.in[l.c], c.in[l.h].shape...); err != nil {
				return nil, nil, err
			}
			cell := l.columns(c, l.c, u, dir)
			step, err := l.step(c, u, cell, dir)
			if err != nil {
				return nil, nil, err
			}
			return step, func() {
				width := len(l.passes) * u.hidden
				if dir == 0 {
					last = c.newFloat(2, []int{u.batch, width})
				}
				u.store(last, cell, dir, width)
			}, nil
		})
	}
}

// step returns the function that advances h and the cell state by one step.
func (l *lstmArgs) step(c *call, u *unroll, cell []float32, dir int) (func(), error) {
	n := u.hidden
	var peep []float32
	if v := c.get(l.peephole[dir]); v != nil {
		if v.size() != 3*n || !v.isFloat() {
			return nil, errCount("peephole", v, 3*n)
		}
		peep = c.wide(v)
	}
	return func() {
		for k := range n {
			for j := range u.batch {
				at := k*u.batch + j
				old := cell[at]
				i, f := u.x(0, k, j)+u.r(0, k, j), u.x(1, k, j)+u.r(1, k, j)
				o, g := u.x(2, k, j)+u.r(2, k, j), u.x(3, k, j)+u.r(3, k, j)
				if peep != nil {
					i += peep[k] * old
					f += peep[n+k] * old
				}
				now := l.gate(f)*old + l.gate(i)*l.cell(g)
				now = min(max(now, -l.clip), l.clip)
				if peep != nil {
					o += peep[2*n+k] * now
				}
				cell[at] = now
				u.h[at] = l.gate(o) * l.f(now)
			}
		}
	}, nil
}

func buildGRU(b *builder) kernel {
	r := b.recurrent(3)
	gate, f := b.activation("recurrent_activation", "sigmoid"), b.activation("activation", "tanh")
	after := b.boolConst("reset_after", false)
	inBias := b.optional("input_bias")
	hidBias := absent
	if after { // bias then belongs to the recurrent part
		hidBias, r.passes[0].bias = r.passes[0].bias, inBias
	}
	b.results(2)
	return func(c *call) error {
		return r.run(c, func(u *unroll, _ int) (func(), func(), error) {
			hb, err := c.bias(hidBias, 3*u.hidden)
			if err != nil {
				return nil, nil, err
			}
			if !after { // a second bias beside the usual one
				ib, err := c.bias(inBias, 3*u.hidden)
				if err != nil {
					return nil, nil, err
				}
				u.addInput(ib)
			}
			return func() {
				u.addState(hb)
				for k := range u.hidden {
					for j := range u.batch {
						at := k*u.batch + j
						reset := gate(u.x(0, k, j) + u.r(0, k, j))
						z := gate(u.x(2, k, j) + u.r(2, k, j))
						o := f(u.x(1, k, j) + reset*u.r(1, k, j))
						u.h[at] = (1-z)*o + z*u.h[at]
					}
				}
			}, func() {}, nil
		})
	}
}

// addInput adds a bias (nil = none) to the part that the input gives.
func (u *unroll) addInput(bias []float32) { addRows(u.z, bias, u.steps*u.batch) }

// addState adds a bias to the part that the last state gives.
func (u *unroll) addState(bias []float32) { addRows(u.zh, bias, u.batch) }

func addRows(dst, bias []float32, n int) {
	for g, b := range bias {
		for k := range n {
			dst[g*n+k] += b
		}
	}
}
