package cpu

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/anepkg/anepkg/coreml/tensor"
)

var classifyOps = []opDef{
	{name: "classify", since: 15, types: "string int64 and dictionary; probabilities fp32", exact: true, build: buildClassify,
		doc: "the class of the largest of probabilities (the first of equals), and a dictionary from each class to its probability"},
}

func buildClassify(b *builder) kernel {
	probs := b.input("probabilities")
	classes := b.constant("classes")
	b.results(2)
	if classes == nil || classes.s == nil && classes.i == nil {
		b.failf("classes: want a constant list of strings or integers")
		return nil
	}
	names := classes.s
	if classes.i != nil {
		names = make([]string, len(classes.i))
		for k, x := range classes.i {
			names[k] = strconv.Itoa(int(x))
		}
	}
	return func(c *call) error {
		v := c.in[probs]
		if err := wantFloat("probabilities", v); err != nil {
			return err
		}
		p := c.wide(v)
		if len(p) != len(names) {
			return fmt.Errorf("probabilities has shape %s, classes has %d names", tensor.ShapeString(v.shape), len(names))
		}
		if len(p) == 0 {
			return errors.New("there is no class")
		}
		top := bestFloat(p, func(a, b float64) bool { return a > b })
		if classes.i != nil {
			c.out[0] = &value{dtype: tensor.Int64, shape: []int{}, i: []int32{classes.i[top]}}
		} else {
			c.out[0] = &value{dtype: tensor.String, shape: []int{}, s: []string{names[top]}}
		}
		c.out[1] = &value{dtype: tensor.FP64, shape: []int{len(p)}, f: append([]float32{}, p...), keys: names}
		return nil
	}
}
