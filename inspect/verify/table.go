package verify

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// newestKnown is the newest opset of signatures.
const newestKnown = 18

// signature is what an op takes.
type signature struct {
	since    int
	required []string
	names    []string
	allowed  map[string]bool
}

// ops are the parsed signatures.
var ops = parseSignatures()

func parseSignatures() map[string]signature {
	out := map[string]signature{}
	for line := range strings.SplitSeq(strings.TrimSpace(signatures), "\n") {
		f := strings.Fields(line)
		s := signature{allowed: map[string]bool{}}
		s.since, _ = strconv.Atoi(f[1])
		for _, name := range f[2:] {
			bare, optional := strings.CutSuffix(name, "?")
			if !optional {
				s.required = append(s.required, bare)
			}
			s.names = append(s.names, bare)
			s.allowed[bare] = true
		}
		out[f[0]] = s
	}
	return out
}

// Checked lists the ops whose results are checked, sorted.
var Checked = sync.OnceValue(func() []string { return slices.Sorted(maps.Keys(table)) })

// table has the check of every op whose results follow from its operands.
var table = func() map[string]func(*call) {
	m := map[string]func(*call){}
	for _, family := range []map[string]func(*call){linearOps, layoutOps, sliceOps, gatherOps, reduceOps, spatialOps, compressedOps, statefulOps} {
		maps.Copy(m, family)
	}
	each := func(f func(*call), names string) {
		for name := range strings.FieldsSeq(names) {
			m[name] = f
		}
	}
	each(unary, `abs acos asin atan atanh ceil clip cos cosh erf exp exp2 floor inverse log round rsqrt sign sin sinh sqrt square tan tanh threshold
		clamped_relu elu gelu leaky_relu linear_activation prelu relu relu6 scaled_tanh sigmoid sigmoid_hard silu softplus softplus_parametric softsign thresholded_relu
		l2_norm local_response_norm instance_norm band_part reverse reverse_sequence`)
	each(binary, "add sub mul real_div floor_div mod pow maximum minimum")
	each(comparison, "equal not_equal greater greater_equal less less_equal")
	each(logical, "logical_and logical_or logical_xor")
	each(reduction, `reduce_sum reduce_mean reduce_max reduce_min reduce_prod reduce_l1_norm reduce_l2_norm reduce_log_sum reduce_log_sum_exp reduce_sum_square`)
	m["logical_not"], m["cast"], m["select"], m["identity"] = logicalNot, cast, selection, identity
	return m
}()
