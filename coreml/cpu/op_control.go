package cpu

import (
	"context"
	"fmt"

	"github.com/anepkg/anepkg/coreml/tensor"
)

var controlOps = []opDef{
	{name: "cond", since: 15, types: "any", exact: true, build: buildCond, impure: true,
		doc: "run the first nested block when pred holds, else the second; results are the block's"},
	{name: "while_loop", since: 15, types: "any", exact: true, build: buildWhile, impure: true,
		doc:   "while the first nested block says true, replace loop_vars by the results of the second",
		limit: "a loop that runs more than 16777216 times is stopped"},
}

// runBlock executes a nested block; args become its parameters. The results
// belong to the caller.
func (c *call) runBlock(b *block, args []*value) ([]*value, error) {
	s := c.s
	if len(args) != len(b.params) {
		return nil, fmt.Errorf("the nested block has %d parameters, got %d values", len(b.params), len(args))
	}
	for i, id := range b.params {
		args[i].buf.retain()
		s.vals[id] = args[i]
	}
	ctx := c.ctx
	if ctx == nil {
		ctx = context.Background()
	}
	if err := s.runNodes(ctx, b.nodes); err != nil {
		return nil, err
	}
	outs := make([]*value, len(b.outs))
	for i, id := range b.outs {
		v := s.value(id)
		v.buf.retain()
		cp := *v
		outs[i] = &cp
	}
	for id := range b.own {
		s.drop(id)
	}
	return outs, nil
}

// truth reads the only element of a bool value.
func truth(v *value) (bool, error) {
	if v.dtype != tensor.Bool || v.size() != 1 {
		return false, fmt.Errorf("condition is %s %s, want one bool", v.dtype, tensor.ShapeString(v.shape))
	}
	return v.whole()[0] != 0, nil
}

func buildCond(b *builder) kernel {
	pred := b.input("pred")
	yes, no := b.block(0), b.block(1)
	if len(yes.outs) != len(b.op.Outputs) || len(no.outs) != len(b.op.Outputs) {
		b.failf("its blocks give %d and %d values, want %d", len(yes.outs), len(no.outs), len(b.op.Outputs))
	}
	return func(c *call) error {
		ok, err := truth(c.in[pred])
		if err != nil {
			return err
		}
		blk := no
		if ok {
			blk = yes
		}
		outs, err := c.runBlock(blk, nil)
		copy(c.out, outs)
		return err
	}
}

// maxLoop bounds the rounds of a while_loop.
const maxLoop = 1 << 24

func buildWhile(b *builder) kernel {
	vars := b.variadic("loop_vars")
	cond, body := b.block(0), b.block(1)
	if len(body.outs) != len(vars) || len(b.op.Outputs) != len(vars) || len(cond.outs) != 1 {
		b.failf("has %d loop variables, a body that gives %d, a condition that gives %d and %d results", len(vars), len(body.outs), len(cond.outs), len(b.op.Outputs))
	}
	return func(c *call) error {
		cur := make([]*value, len(vars))
		for i, s := range vars {
			cp := *c.in[s]
			cp.buf.retain()
			cur[i] = &cp
		}
		for range maxLoop {
			res, err := c.runBlock(cond, cur)
			if err != nil {
				return err
			}
			more, err := truth(res[0])
			res[0].buf.release()
			if err != nil {
				return err
			}
			if !more {
				copy(c.out, cur)
				return nil
			}
			next, err := c.runBlock(body, cur)
			if err != nil {
				return err
			}
			for _, v := range cur {
				v.buf.release()
			}
			cur = next
		}
		return fmt.Errorf("ran %d times without an end", maxLoop)
	}
}
