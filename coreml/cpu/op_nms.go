package cpu

import (
	"fmt"
	"slices"

	"github.com/anepkg/anepkg/coreml/tensor"
)

var nmsOps = []opDef{
	{name: "non_maximum_suppression", since: 15, types: "fp16 fp32", exact: true, build: buildNMS,
		doc: "per batch the boxes (centre x, y, width, height) of the best scores that overlap no better one by more than iou_threshold, of the same best class with per_class_suppression; boxes, scores, indices, and before ios17 how many; places left over hold 0 and index -1; the best box is always given"},
}

// nmsPlan holds the arguments of non_maximum_suppression.
type nmsPlan struct {
	boxes, scores slot
	iou, score    float64
	max           int
	perClass      bool
	boxesFirst    bool // [n, B, 4], as before ios17, else [n, 4, B]
}

func buildNMS(b *builder) kernel {
	p := nmsPlan{boxes: b.input("boxes"), scores: b.input("scores"), boxesFirst: !b.opsetAtLeast(17)}
	p.iou, p.score = b.floatConst("iou_threshold", 0), b.floatConst("score_threshold", negInf)
	p.max, p.perClass = b.intConst("max_boxes", -1), b.boolConst("per_class_suppression", false)
	if p.max < 0 {
		b.failf("max_boxes is %d, want 0 or more", p.max)
	}
	if p.boxesFirst {
		b.results(4)
	} else {
		b.results(3)
	}
	return p.run
}

// layout says how an array of n batches, boxes and fields lies in memory.
type layout struct{ batch, box, field int }

func (p nmsPlan) layout(boxes, fields int) layout {
	if p.boxesFirst {
		return layout{boxes * fields, fields, 1}
	}
	return layout{boxes * fields, 1, boxes}
}

func (p nmsPlan) shape(n, boxes, fields int) []int {
	if p.boxesFirst {
		return []int{n, boxes, fields}
	}
	return []int{n, fields, boxes}
}

func (p nmsPlan) run(c *call) error {
	bv, sv := c.in[p.boxes], c.in[p.scores]
	for _, v := range []*value{bv, sv} {
		if v.rank() != 3 || !v.isFloat() {
			return fmt.Errorf("boxes are %s %s, scores %s %s, want floats of rank 3", bv.dtype, tensor.ShapeString(bv.shape), sv.dtype, tensor.ShapeString(sv.shape))
		}
	}
	batches, count, classes := sv.shape[0], sv.shape[1], sv.shape[2]
	if !p.boxesFirst {
		count, classes = classes, count
	}
	if err := wantShape("boxes", bv, p.shape(batches, count, 4)...); err != nil {
		return err
	}
	boxes, scores := c.wide(bv), c.wide(sv)
	outBoxes := c.newFloat(0, p.shape(batches, p.max, 4))
	outScores := c.newFloat(1, p.shape(batches, p.max, classes))
	index := c.newInt(2, []int{batches, p.max})
	var counts []int32
	if p.boxesFirst {
		counts = c.newInt(3, []int{batches})
	}
	clear(outBoxes)
	clear(outScores)
	for k := range index {
		index[k] = -1
	}
	lb, ls := p.layout(count, 4), p.layout(count, classes)
	ob, os := p.layout(p.max, 4), p.layout(p.max, classes)
	for n := range batches {
		keep := p.choose(boxes[n*lb.batch:], lb, scores[n*ls.batch:], ls, count, classes)
		for r, i := range keep {
			for f := range 4 {
				outBoxes[n*ob.batch+r*ob.box+f*ob.field] = boxes[n*lb.batch+i*lb.box+f*lb.field]
			}
			for f := range classes {
				outScores[n*os.batch+r*os.box+f*os.field] = scores[n*ls.batch+i*ls.box+f*ls.field]
			}
			index[n*p.max+r] = int32(i)
		}
		if counts != nil {
			counts[n] = int32(len(keep))
		}
	}
	return nil
}

// choose returns the boxes of one batch that survive, the best first.
func (p nmsPlan) choose(boxes []float32, lb layout, scores []float32, ls layout, count, classes int) []int {
	top, class, by := make([]float32, count), make([]int, count), make([]int, count)
	for i := range count {
		by[i] = i
		for f := range classes {
			if s := scores[i*ls.box+f*ls.field]; f == 0 || s > top[i] {
				top[i], class[i] = s, f
			}
		}
	}
	slices.SortStableFunc(by, func(a, b int) int {
		switch {
		case top[a] > top[b]:
			return -1
		case top[a] < top[b]:
			return 1
		}
		return 0
	})
	box := func(i int) (b [4]float64) {
		for f := range b {
			b[f] = float64(boxes[i*lb.box+f*lb.field])
		}
		return b
	}
	var keep []int
	for _, i := range by {
		if len(keep) == p.max || float64(top[i]) < p.score {
			break
		}
		clash := slices.ContainsFunc(keep, func(j int) bool {
			return (!p.perClass || class[i] == class[j]) && overlap(box(i), box(j)) > p.iou
		})
		if !clash {
			keep = append(keep, i)
		}
	}
	if len(keep) == 0 && count > 0 && p.max > 0 {
		return by[:1]
	}
	return keep
}

// overlap is the intersection of two boxes over their union.
func overlap(a, b [4]float64) float64 {
	side := func(k int) float64 {
		return max(0, min(a[k]+a[k+2]/2, b[k]+b[k+2]/2)-max(a[k]-a[k+2]/2, b[k]-b[k+2]/2))
	}
	i := side(0) * side(1)
	if i == 0 {
		return 0
	}
	return i / (a[2]*a[3] + b[2]*b[3] - i)
}
